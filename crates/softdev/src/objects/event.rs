//! Asynchronous events of queue pairs, queues and ports.
//!
//! The events of a context come through a pipe, like those of a completion channel. A record names
//! the object by its handle, and by a serial number that a later object with the same handle does
//! not have. The process that detects an event writes the record: this process, or a peer, which
//! opens the pipe through `/proc`. An event of a destroyed object is dropped. An event that finds
//! the pipe full is counted, and the next `ibv_get_async_event` fails with `EOVERFLOW` (the kernel
//! has a list, limited only by its memory).
//!
//! No process writes that a device's GIDs have changed, because the kernel reports it. Programs
//! poll a descriptor of epoll(7). It is readable when the pipe is, or when a socket of rtnetlink(7)
//! reports a change of any interface's addresses. Most changes do not concern this device: they are
//! read and forgotten when the program asks for an event.
//!
//! # Invariants
//!
//! * Events of a context come through a pipe. The process that detects the event writes to it, this
//!   process or a peer. The exception is `IBV_EVENT_GID_CHANGE`, which the context itself raises
//!   when its GID table has changed (and see [`Events::next`]).
//! * The members of multicast groups are listed in each process's arena. A process that joins
//!   increments a word in all arenas, so that no sender has to ask the kernel again.

use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use system::all_restart;
use verbs::abi::*;

use crate::memory::layout::SharedContext;
use crate::sys::indexes::Indexes;
use crate::sys::limits::{CONTEXTS, PORT};
use crate::sys::netlink;
use crate::sys::settings::{LinkLayer, link_layer};
use crate::transport::local::gids::gids_now;
use crate::transport::local::host::Host;
use crate::transport::local::notify::pipe;
use crate::transport::local::raise::{Kind, RECORD_BYTES, Record, kind_of};

/// The events of a context.
pub(crate) struct Events {
    host: &'static Host,
    /// The number of the context's device.
    device: u8,
    reading: OwnedFd,
    writing: OwnedFd,
    inode: u64,
    /// The socket that reports changes of addresses; `None` if GIDs are not addresses, or if the
    /// system refuses such a socket.
    addresses: Option<OwnedFd>,
    /// The last change of the device's GIDs that the program knows.
    known_change: AtomicU64,
    /// Whether something has changed that could not be looked at yet.
    is_unseen: AtomicBool,
    /// The entry of this process's table of contexts.
    pub(crate) index: u32,
    objects: Mutex<HashMap<(Kind, u32), Object>>,
    acknowledgement: Condvar,
}

impl Events {
    /// Returns a descriptor that is open as long as the context.
    pub(crate) fn descriptor(&self) -> c_int {
        self.writing.as_raw_fd()
    }
}

/// An object that can have events.
struct Object {
    serial: u32,
    /// The program's pointer to it.
    address: usize,
    /// Events that the program has taken and not acknowledged.
    taken: usize,
}

/// Entries of the table of contexts in use.
static INDEXES: Indexes<CONTEXTS> = Indexes::new();

impl Events {
    /// Makes a pipe, and an entry that tells peers of it. Also returns the descriptor that programs
    /// poll.
    ///
    /// # Errors
    /// If there are no more descriptors, or no more entries for contexts (`EMFILE`).
    pub(crate) fn new(host: &'static Host, device: u8) -> io::Result<(Self, RawFd)> {
        let (reading, writing, inode) = pipe()?;
        rustix::io::ioctl_fionbio(&reading, true)?;
        let addresses = match link_layer() {
            LinkLayer::Infiniband => None,
            LinkLayer::Ethernet => match netlink::watch() {
                Err(error @ (Errno::MFILE | Errno::NFILE)) => return Err(error.into()),
                watch => watch.ok(),
            },
        };
        // Only after the socket was made, so that no change is missed.
        let known_change = AtomicU64::new(gids_now().changes(device));
        let polled = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in [&reading].into_iter().chain(&addresses) {
            epoll::add(&polled, source, EventData::new_u64(0), EventFlags::IN)?;
        }
        let index = INDEXES.take().ok_or(Errno::MFILE)?;
        let shared = host.arena.view.context(index);
        shared.lost.store(0, Relaxed);
        shared.inode.store(inode, Relaxed);
        shared.fd.store(writing.as_raw_fd(), SeqCst);
        let objects = Mutex::default();
        let acknowledgement = Condvar::new();
        let made = Self {
            host,
            device,
            reading,
            writing,
            inode,
            addresses,
            known_change,
            is_unseen: AtomicBool::new(false),
            index,
            objects,
            acknowledgement,
        };
        Ok((made, polled.into_raw_fd()))
    }

    fn shared(&self) -> &SharedContext {
        self.host.arena.view.context(self.index)
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<(Kind, u32), Object>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enables events of an object. An event of its handle with an older serial number belongs to
    /// an earlier object.
    pub(crate) fn enter<T>(&self, kind: Kind, handle: u32, serial: u32, object: *mut T) {
        let address = object as usize;
        self.objects().insert((kind, handle), Object { serial, address, taken: 0 });
    }

    /// Disables events of an object that is to be destroyed: drops its events, and waits until
    /// those that were taken are acknowledged (man ibv_get_async_event).
    pub(crate) fn leave(&self, kind: Kind, handle: u32) {
        let mut objects = self.objects();
        if let Some(object) = objects.get_mut(&(kind, handle)) {
            object.address = 0;
        }
        while objects.get(&(kind, handle)).is_some_and(|object| object.taken != 0) {
            objects = self.acknowledgement.wait(objects).unwrap_or_else(PoisonError::into_inner);
        }
        objects.remove(&(kind, handle));
    }

    /// Raises an event of an object of this context.
    #[cold]
    pub(crate) fn raise(&self, event: ibv_event_type, handle: u32, serial: u32) {
        let record = Record { event, handle, serial }.encode();
        if rustix::io::write(&self.writing, &record).is_err() {
            self.shared().lost.fetch_add(1, SeqCst);
        }
    }

    /// Returns the event of a record, which then counts as taken.
    fn take(&self, record: Record) -> Option<ibv_async_event> {
        let kind = kind_of(record.event)?;
        let event = |element| Some(ibv_async_event { element, event_type: record.event });
        if kind == Kind::Port {
            return event(ibv_async_element { port_num: record.handle.cast_signed() });
        }
        let mut objects = self.objects();
        let object = objects.get_mut(&(kind, record.handle))?;
        let is_older = record.serial.wrapping_sub(object.serial).cast_signed() < 0;
        if is_older || object.address == 0 {
            return None;
        }
        object.taken += 1;
        event(ibv_async_element { qp: object.address as *mut ibv_qp })
    }

    pub(crate) fn acknowledge(&self, kind: Kind, handle: u32) {
        if let Some(object) = self.objects().get_mut(&(kind, handle)) {
            object.taken = object.taken.saturating_sub(1);
        }
        self.acknowledgement.notify_all();
    }

    /// Returns the next event; blocks if the descriptor that programs poll does. A signal ends the
    /// wait as it ends one in read(2).
    ///
    /// A program that has found that descriptor readable expects an event, although the kernel may
    /// have reported a change that concerns none of this device's GIDs. The program then gets
    /// `GID_CHANGE` all the same, which is harmless, and does not block.
    pub(crate) fn next(&self, polled: BorrowedFd<'_>) -> Result<ibv_async_event, Errno> {
        let waits = !fcntl_getfl(polled)?.contains(OFlags::NONBLOCK);
        let was_promised = waits && is_readable(polled);
        loop {
            if self.shared().lost.swap(0, SeqCst) != 0 {
                return Err(Errno::OVERFLOW);
            }
            if let Some(event) = self.written()? {
                return Ok(event);
            }
            if self.has_other_gids() || was_promised {
                let element = ibv_async_element { port_num: PORT.into() };
                return Ok(ibv_async_event { element, event_type: IBV_EVENT_GID_CHANGE });
            }
            if !waits {
                return Err(Errno::AGAIN);
            }
            match poll(&mut [PollFd::from_borrowed_fd(polled, PollFlags::IN)], None) {
                Err(Errno::INTR) if all_restart() => {}
                polled => _ = polled?,
            }
        }
    }

    /// Returns the next event from the pipe.
    fn written(&self) -> Result<Option<ibv_async_event>, Errno> {
        let mut bytes = [0; RECORD_BYTES];
        loop {
            match rustix::io::read(&self.reading, &mut bytes) {
                Ok(RECORD_BYTES) => {}
                Err(Errno::AGAIN) => return Ok(None),
                // Impossible: the write end is open here, and every write has this length.
                Ok(_) => return Err(Errno::IO),
                Err(error) => return Err(error),
            }
            if let Some(event) = self.take(Record::decode(bytes)) {
                return Ok(Some(event));
            }
        }
    }

    /// Whether the device's GIDs differ from those that the program knows; from now on it knows
    /// them.
    fn has_other_gids(&self) -> bool {
        let Some(addresses) = &self.addresses else { return false };
        if !netlink::drain(addresses) && !self.is_unseen.load(SeqCst) {
            return false;
        }
        let gids = gids_now();
        self.is_unseen.store(gids.is_stale(), SeqCst);
        let change = gids.changes(self.device);
        self.known_change.swap(change, SeqCst) != change
    }

    /// Closes the pipe, and the descriptor that programs poll.
    pub(crate) fn close(self, polled: RawFd) {
        self.shared().fd.store(-1, SeqCst);
        self.host.forget_channel(self.writing.as_raw_fd(), self.inode);
        // SAFETY: `new` gave the descriptor up, and only its context, which is closed, has it.
        drop(unsafe { OwnedFd::from_raw_fd(polled) });
        INDEXES.give_back(self.index);
    }
}

/// Whether a descriptor has something to read now.
fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::local::host::host;

    fn events() -> (Events, RawFd) {
        let (events, polled) = Events::new(host().unwrap(), 0).unwrap();
        // SAFETY: the descriptor is open.
        rustix::io::ioctl_fionbio(unsafe { BorrowedFd::borrow_raw(polled) }, true).unwrap();
        (events, polled)
    }

    #[test]
    fn what_does_not_fit_in_the_pipe_is_reported() {
        let (events, polled) = events();
        // SAFETY: the descriptor is open until the end of this test.
        let fd = unsafe { BorrowedFd::borrow_raw(polled) };
        let next = || events.next(fd).map(|event| event.event_type);
        for _ in 0..20_000 {
            events.raise(IBV_EVENT_PORT_ACTIVE, 1, 0);
        }
        assert_eq!(next(), Err(Errno::OVERFLOW));
        let mut found = 0;
        while next() == Ok(IBV_EVENT_PORT_ACTIVE) {
            found += 1;
        }
        assert!((300..20_000).contains(&found), "{found} events fit in a pipe");
        assert_eq!(next(), Err(Errno::AGAIN), "it is reported once");
        events.raise(IBV_EVENT_PORT_ERR, 1, 0);
        assert_eq!(next(), Ok(IBV_EVENT_PORT_ERR), "and there is room again");
        events.close(polled);
    }

    /// Whatever a peer writes, only events of existing objects are reported.
    #[test]
    fn events_of_nothing_are_dropped() {
        let (events, polled) = events();
        // SAFETY: the descriptor is open until the end of this test.
        let fd = unsafe { BorrowedFd::borrow_raw(polled) };
        let mut object = 0_u32;
        events.enter(Kind::QueuePair, 7, 5, &raw mut object);
        for (event, handle, serial) in [
            (IBV_EVENT_QP_FATAL, 8, 5),
            (IBV_EVENT_QP_FATAL, 7, 4),
            (IBV_EVENT_CQ_ERR, 7, 5),
            (IBV_EVENT_SRQ_ERR, 7, 5),
            (IBV_EVENT_WQ_FATAL, 7, 5),
            (u32::MAX, 7, 5),
        ] {
            events.raise(event, handle, serial);
        }
        assert!(events.next(fd).is_err_and(|errno| errno == Errno::AGAIN));
        events.raise(IBV_EVENT_QP_FATAL, 7, 6);
        let found = events.next(fd).unwrap();
        // SAFETY: the event is a queue pair's.
        assert_eq!(unsafe { found.element.qp } as usize, &raw const object as usize);
        events.acknowledge(Kind::QueuePair, 7);
        events.leave(Kind::QueuePair, 7);
        events.raise(IBV_EVENT_QP_FATAL, 7, 6);
        assert!(events.next(fd).is_err(), "it has gone");
        events.close(polled);
    }
}
