//! The connection manager of this process, as it really is: a [`Manager`] whose messages go through
//! sockets of the host, and a thread that takes those of others and watches the time.
//!
//! The thread begins with the first channel. It takes no signals, and sleeps until there is
//! something to do.

mod directory;
mod forks;
mod links;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use system::all_restart;

use crate::abi::Space;
use crate::host::{Claim, Host, Link, Memory, Port};
use crate::manager::{Manager, Outcome};
pub use crate::process::forks::is_memory_borrowed;

use crate::process::directory::{Directory, Hold};
use crate::process::links::{Links, Seen};

/// What is known of the devices of this host.
pub trait Devices: Send {
    /// The port that an address belongs to: see [`Host::port_of`].
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` where no interface has the address, `ENODEV` where no device does.
    fn port_of(&self, address: IpAddr) -> Result<Port, Errno>;
}

/// The connection manager of a process.
pub struct Process {
    manager: Mutex<Manager<Own>>,
    /// Numbers of channels by descriptor: several may have the same.
    channels: Mutex<HashMap<RawFd, u32>>,
    /// How many channels were opened.
    opened: AtomicU32,
    /// Wakes the thread.
    bell: OwnedFd,
}

impl Process {
    /// Makes one, and starts its thread. It stays until the process ends.
    ///
    /// # Errors
    /// Where the process has no room for its descriptors or the thread.
    pub fn start(devices: Box<dyn Devices>) -> io::Result<&'static Self> {
        forks::watch();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let links = Links::new(bell.as_fd())?;
        let own =
            Own { devices, directory: Directory::default(), links, shown: HashMap::new(), planned: None };
        let waiter = own.links.waiter()?;
        let manager = Mutex::new(Manager::new(own));
        let process = Arc::new(Self { manager, channels: Mutex::default(), opened: AtomicU32::new(0), bell });
        let of_thread = Arc::clone(&process);
        without_signals(|| {
            let name = "rdmascope-cm".to_owned();
            thread::Builder::new().name(name).spawn(move || of_thread.run(&waiter))
        })?;
        // Not before the thread runs: a failure leaves nothing behind.
        Ok(&**Box::leak(Box::new(process)))
    }

    fn lock(&self) -> MutexGuard<'_, Manager<Own>> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<RawFd, u32>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a channel: a descriptor that can be read from, as far as `poll` says, when there is an
    /// event.
    ///
    /// # Errors
    /// Where the process has no more descriptors.
    pub fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let mut how = EventfdFlags::empty();
        how.set(EventfdFlags::CLOEXEC, flags.contains(OFlags::CLOEXEC));
        how.set(EventfdFlags::NONBLOCK, flags.contains(OFlags::NONBLOCK));
        let theirs = eventfd(0, how)?;
        let own = rustix::io::fcntl_dupfd_cloexec(&theirs, 0)?;
        let mut manager = self.lock();
        // A number is not given again: somebody may still wait by that of a closed channel.
        let channel = self.opened.fetch_add(1, Relaxed);
        manager.host().shown.insert(channel, Shown { own, has_events: false });
        manager.open(channel);
        drop(manager);
        self.channels().insert(theirs.as_raw_fd(), channel);
        Ok(theirs)
    }

    /// A descriptor has become another name of a channel's.
    pub fn duplicated(&self, from: RawFd, to: RawFd) {
        let mut channels = self.channels();
        if let Some(channel) = channels.get(&from).copied() {
            channels.insert(to, channel);
        }
    }

    /// A descriptor is about to be closed; with the last one of it, so is the channel.
    pub fn close(&self, descriptor: RawFd) {
        let mut channels = self.channels();
        let Some(channel) = channels.remove(&descriptor) else { return };
        let is_last = !channels.values().any(|other| *other == channel);
        drop(channels);
        if is_last {
            let mut manager = self.lock();
            manager.close(channel);
            manager.host().shown.remove(&channel);
        }
    }

    /// The channel of a descriptor.
    ///
    /// # Errors
    /// `EBADF` where it is none's, or no longer.
    pub fn channel(&self, descriptor: RawFd) -> Result<u32, Errno> {
        self.channels().get(&descriptor).copied().ok_or(Errno::BADF)
    }

    /// What a program has written to a channel by a descriptor of it.
    ///
    /// # Errors
    /// The error number that the kernel would give. `EINTR` if a signal interrupts the wait for an
    /// event and some handler of the process has no `SA_RESTART`.
    ///
    /// Who waits for an event while another thread closes the channel waits on, as in the kernel,
    /// which keeps the file until the call returns: rping leaves a thread so when it ends.
    pub fn write(
        &self,
        channel: u32,
        descriptor: BorrowedFd<'_>,
        bytes: &[u8],
        memory: &impl Memory,
    ) -> Result<(), Errno> {
        let find = |descriptor: RawFd| self.channel(descriptor).ok();
        loop {
            let mut manager = self.lock();
            if !manager.is_open(channel) {
                drop(manager);
                return Err(wait_for_a_signal());
            }
            let done = manager.write(channel, bytes, memory, find);
            let planned = manager.host().planned;
            let wakes = manager.is_due_before(planned);
            drop(manager);
            if wakes {
                // Whatever is in it already wakes the thread as well.
                let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            }
            match done? {
                Outcome::Done => return Ok(()),
                Outcome::NoEvent if fcntl_getfl(descriptor)?.contains(OFlags::NONBLOCK) => {
                    return Err(Errno::AGAIN);
                }
                Outcome::NoEvent => {}
            }
            match rustix::event::poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], None) {
                Err(Errno::INTR) if all_restart() => {}
                waited => drop(waited?),
            }
        }
    }

    /// Takes what has come by a socket, but not more than its share: the rest is there the next
    /// time, and the program's commands and other peers have their turn before.
    fn look(&self, key: u64) {
        if key == links::BELL {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            return;
        }
        let mut manager = self.lock();
        for _ in 0..links::SHARE {
            match manager.host().links.look(key) {
                Some(Seen::Message(link, message)) => manager.arrived(link, &message),
                Some(Seen::End(link)) => manager.lost(link),
                None => return,
            }
        }
    }

    /// The thread.
    fn run(&self, waiter: &OwnedFd) {
        let mut due = None;
        loop {
            let timeout = due.map(|due: Duration| timespec(due.saturating_sub(now())));
            let mut ready = Vec::with_capacity(64);
            let waited = epoll::wait(waiter, rustix::buffer::spare_capacity(&mut ready), timeout.as_ref());
            if let Err(errno) = waited
                && errno != Errno::INTR
            {
                return;
            }
            self.lock().host().links.resume();
            for event in ready {
                self.look(event.data.u64());
            }
            let mut manager = self.lock();
            due = manager.tick();
            manager.host().planned = due;
            if manager.host().links.is_paused() {
                let again = now() + links::PAUSE;
                due = Some(due.map_or(again, |due| due.min(again)));
            }
        }
    }
}

/// Waits as somebody does for whom nothing comes any more: until a signal interrupts it.
fn wait_for_a_signal() -> Errno {
    loop {
        match rustix::event::poll(&mut [], None) {
            Err(Errno::INTR) if all_restart() => {}
            Err(errno) => return errno,
            Ok(_) => {}
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Runs `work`, whose threads take no signals: these are for the program's own.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: all-zero bytes are a valid set of signals; both sets are readable and writable, and
    // the thread's own mask is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let done = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        done
    }
}

/// A channel as its program polls it.
struct Shown {
    own: OwnedFd,
    has_events: bool,
}

/// The host of this process's manager.
struct Own {
    devices: Box<dyn Devices>,
    directory: Directory,
    links: Links,
    shown: HashMap<u32, Shown>,
    /// When the thread will look at the time.
    planned: Option<Duration>,
}

impl Host for Own {
    type Hold = Hold;

    fn port_of(&mut self, address: IpAddr) -> Result<Port, Errno> {
        self.devices.port_of(address)
    }

    fn source_for(&mut self, destination: IpAddr) -> Result<IpAddr, Errno> {
        // Those of this host are reached from themselves.
        if self.devices.port_of(destination).is_ok() {
            return Ok(destination);
        }
        // Connecting sends nothing; the kernel looks for the way.
        let any: IpAddr = if destination.is_ipv4() {
            std::net::Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        /// Any port does: discard.
        const PORT: u16 = 9;
        let found = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect((destination, PORT))?;
            socket.local_addr()
        });
        match found {
            Ok(address) => Ok(address.ip()),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::NETUNREACH)),
        }
    }

    fn take(&mut self, claim: &Claim) -> Result<(u16, Hold), Errno> {
        let random = self.random();
        self.directory.take(claim, random)
    }

    fn mark(&mut self, hold: &mut Hold, is_shared: bool, is_of_one_family: bool) -> Result<(), Errno> {
        self.directory.mark(hold, is_shared, is_of_one_family)
    }

    fn listen(&mut self, hold: &mut Hold) -> Result<(), Errno> {
        let listener = self.directory.listen(hold)?;
        hold.listening = Some(self.links.listen(listener)?);
        Ok(())
    }

    fn reach(&mut self, space: Space, destination: SocketAddr) -> Result<Option<Link>, Errno> {
        match directory::connect(space, destination)? {
            Some(connection) => self.links.add(connection).map(Some),
            None => Ok(None),
        }
    }

    fn send(&mut self, link: Link, message: &[u8]) {
        self.links.send(link, message);
    }

    fn signal(&mut self, channel: u32, has_events: bool) {
        let Some(shown) = self.shown.get_mut(&channel) else { return };
        if shown.has_events != has_events {
            shown.has_events = has_events;
            // A counter that is not zero can be read from. Nobody else writes or reads it.
            let _ = if has_events {
                rustix::io::write(&shown.own, &1_u64.to_ne_bytes()).map(drop)
            } else {
                rustix::io::read(&shown.own, &mut [0; 8]).map(drop)
            };
        }
    }

    fn now(&self) -> Duration {
        now()
    }

    fn random(&mut self) -> u32 {
        let mut bytes = [0; 4];
        // Where the system gives no numbers, the time is one that nobody else has at once.
        match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(_) => u32::from_ne_bytes(bytes),
            Err(_) => now().as_nanos() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    /// A host without devices, and a program whose memory nobody touches.
    struct Nothing;

    impl Devices for Nothing {
        fn port_of(&self, _: IpAddr) -> Result<Port, Errno> {
            Err(Errno::ADDRNOTAVAIL)
        }
    }

    impl Memory for Nothing {
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Errno> {
            Err(Errno::FAULT)
        }

        fn write(&self, _: u64, _: &[u8]) -> Result<(), Errno> {
            Err(Errno::FAULT)
        }
    }

    #[test]
    fn who_waits_for_an_event_does_not_return_when_the_channel_is_closed() {
        let process = Process::start(Box::new(Nothing)).unwrap();
        let opened = process.open(OFlags::CLOEXEC).unwrap();
        let number = process.channel(opened.as_raw_fd()).unwrap();
        // So it is where the channel is closed between the thread's look at it and its wait.
        process.close(opened.as_raw_fd());
        assert_eq!(process.channel(opened.as_raw_fd()), Err(Errno::BADF));
        let another = process.open(OFlags::CLOEXEC).unwrap();
        assert_ne!(process.channel(another.as_raw_fd()), Ok(number), "it would get events of that one");
        /// `RDMA_USER_CM_CMD_GET_EVENT`, with room for an answer.
        const GET_EVENT: [u8; 16] = [12, 0, 0, 0, 8, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
        let (says, heard) = channel();
        thread::spawn(move || says.send(process.write(number, opened.as_fd(), &GET_EVENT, &Nothing)));
        assert_eq!(heard.recv_timeout(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
    }
}
