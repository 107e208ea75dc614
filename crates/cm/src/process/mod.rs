//! The connection manager of this process: a [`Manager`] with Unix sockets for its messages, and a
//! thread that receives messages of peers and handles timeouts.
//!
//! The thread starts with the first channel. It handles no signals, and sleeps until there is work.

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

/// The devices of this host.
pub trait Devices: Send {
    /// Returns the port that an address belongs to: see [`Host::port_of`].
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` if no interface has the address, `ENODEV` if no device does.
    fn port_of(&self, address: IpAddr) -> Result<Port, Errno>;
}

/// The connection manager of a process.
pub struct Process {
    manager: Mutex<Manager<Own>>,
    /// The numbers of channels by descriptor: several descriptors may have the same channel.
    channels: Mutex<HashMap<RawFd, u32>>,
    /// The number of channels that were opened.
    opened: AtomicU32,
    /// Wakes the thread.
    bell: OwnedFd,
}

impl Process {
    /// Makes a manager and starts its thread. It stays until the process ends.
    ///
    /// # Errors
    /// If the process has no space for its descriptors or the thread.
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
        // After the thread has started: a failure leaves nothing behind.
        Ok(&**Box::leak(Box::new(process)))
    }

    fn lock(&self) -> MutexGuard<'_, Manager<Own>> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<RawFd, u32>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a channel: a descriptor that `poll` reports as readable when there is an event.
    ///
    /// # Errors
    /// If the process has no more descriptors.
    pub fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let mut how = EventfdFlags::empty();
        how.set(EventfdFlags::CLOEXEC, flags.contains(OFlags::CLOEXEC));
        how.set(EventfdFlags::NONBLOCK, flags.contains(OFlags::NONBLOCK));
        let theirs = eventfd(0, how)?;
        let own = rustix::io::fcntl_dupfd_cloexec(&theirs, 0)?;
        let mut manager = self.lock();
        // Numbers are not reused: another thread may still wait on a closed channel.
        let channel = self.opened.fetch_add(1, Relaxed);
        manager.host().shown.insert(channel, Shown { own, has_events: false });
        manager.open(channel);
        drop(manager);
        self.channels().insert(theirs.as_raw_fd(), channel);
        Ok(theirs)
    }

    /// Notes that descriptor `to` is now a duplicate of channel `from`.
    pub fn duplicated(&self, from: RawFd, to: RawFd) {
        let mut channels = self.channels();
        if let Some(channel) = channels.get(&from).copied() {
            channels.insert(to, channel);
        }
    }

    /// Notes that a descriptor is about to be closed. The channel closes with its last descriptor.
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

    /// Returns the channel of a descriptor.
    ///
    /// # Errors
    /// `EBADF` if the descriptor is not, or no longer, a channel.
    pub fn channel(&self, descriptor: RawFd) -> Result<u32, Errno> {
        self.channels().get(&descriptor).copied().ok_or(Errno::BADF)
    }

    /// Carries out a command that a program has written to a channel.
    ///
    /// # Errors
    /// The kernel's error number. `EINTR` if a signal interrupts the wait for an event and some
    /// handler of the process has no `SA_RESTART`.
    ///
    /// If another thread closes the channel, a thread that waits for an event goes on waiting, as
    /// in the kernel, which keeps the file until the call returns. rping leaves a thread like this
    /// when it ends.
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
                // If the write fails, the counter is not zero, and wakes the thread as well.
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

    /// Takes messages that have arrived at a socket, up to a limit: the rest is taken the next
    /// time, after the program's commands and other peers.
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

    /// The main function of the thread.
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

/// Waits until a signal interrupts, like a thread whose event never comes.
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

/// Runs `work` with all signals blocked. Threads that it starts inherit this, so that signals go to
/// the program's own threads.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: all-zero bytes are a valid set of signals; both sets are readable and writable, and
    // the thread's own mask is restored.
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

/// The descriptor of a channel, as the program polls it.
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
    /// The time until which the thread sleeps.
    planned: Option<Duration>,
}

impl Host for Own {
    type Hold = Hold;

    fn port_of(&mut self, address: IpAddr) -> Result<Port, Errno> {
        self.devices.port_of(address)
    }

    fn source_for(&mut self, destination: IpAddr) -> Result<IpAddr, Errno> {
        // An address of this host is reached from itself.
        if self.devices.port_of(destination).is_ok() {
            return Ok(destination);
        }
        // Connecting sends nothing; the kernel selects the route.
        let any: IpAddr = if destination.is_ipv4() {
            std::net::Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        /// Any port will do: discard.
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
            // A counter that is not zero is readable. Only this function reads and writes it.
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
        // Without the system's random numbers, the time serves: no other call has the same.
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

    /// A host without devices, and a program memory that is never accessed.
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
        // As if the channel were closed between the thread's check and its wait.
        process.close(opened.as_raw_fd());
        assert_eq!(process.channel(opened.as_raw_fd()), Err(Errno::BADF));
        let another = process.open(OFlags::CLOEXEC).unwrap();
        assert_ne!(process.channel(another.as_raw_fd()), Ok(number), "it would get events of that one");
        /// `RDMA_USER_CM_CMD_GET_EVENT`, with space for an answer.
        const GET_EVENT: [u8; 16] = [12, 0, 0, 0, 8, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
        let (says, heard) = channel();
        thread::spawn(move || says.send(process.write(number, opened.as_fd(), &GET_EVENT, &Nothing)));
        assert_eq!(heard.recv_timeout(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
    }
}
