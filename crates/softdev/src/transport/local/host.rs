//! The processes of one host that have the device open, and how they find each other.
//!
//! Each process claims a block of queue-pair numbers by listening on an abstract Unix socket named
//! after the block: the kernel keeps the name unique and removes it when the process ends, however
//! it ends. To reach a queue pair, a process connects to the socket of its block. The kernel names
//! the process that listens there (`SO_PEERCRED`, so another user cannot pose as a process of this
//! user), and allows only the same user to open that process's arena through `/proc/PID/fd`.
//! Nothing is ever sent. The connection stays open, and breaks when the process ends.
//!
//! Abstract names belong to a network namespace, as a host's address does, so processes in other
//! namespaces are other hosts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::PTracer;
use rustix::thread::MembarrierCommand;

use crate::memory::arena::{Arena, View};
use crate::memory::layout::{LAYOUT, MAGIC, TABLES, mr_index};
use crate::sys::clock::coarse;
use crate::sys::limits::{BLOCKS, QP_INDEX_BITS};
use crate::sys::sync::{Cpu, Machine};
use crate::sys::timer::Instant;

/// This process, as a member of the host.
pub(crate) struct Host {
    pid: u32,
    pub(crate) arena: Arena,
    pub(crate) block: u32,
    listener: OwnedFd,
    /// Connections of peers, accepted so that the listener's backlog never fills. They are kept,
    /// because a closed one would tell the peer that this process has ended.
    connections: Mutex<Vec<OwnedFd>>,
    peers: Mutex<HashMap<u32, Arc<Peer>>>,
    /// A descriptor that can be closed to make room for another one: see
    /// [`through`](Self::through).
    spare: Mutex<Option<OwnedFd>>,
}

/// Another process, or this one as its own peer.
pub(crate) struct Peer {
    pid: u32,
    mapping: Option<View>,
    connection: Option<OwnedFd>,
    /// Its completion channels, by descriptor and inode.
    channels: Mutex<HashMap<(i32, u64), Arc<OwnedFd>>>,
    /// The last key of each entry of its table of memory regions whose pages were mapped.
    regions: Mutex<HashMap<u32, u32>>,
    /// When it was last seen alive: see [`coarse`].
    seen: AtomicU64,
}

/// Returns the process's only membership, made when the device is first opened. A process that was
/// forked from a member is another member.
pub(crate) fn host() -> io::Result<&'static Host> {
    static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());
    static OPENING: Mutex<()> = Mutex::new(());
    // SAFETY: the pointer is null or to a leaked box.
    let look = || unsafe { HOST.load(Acquire).as_ref() };
    let pid = own_pid();
    if let Some(host) = look().filter(|host| host.pid == pid) {
        return Ok(host);
    }
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = look();
    if let Some(host) = before.filter(|host| host.pid == pid) {
        return Ok(host);
    }
    if let Some(parents) = before {
        parents.leave();
    }
    let host: &'static Host = Box::leak(Box::new(Host::join()?));
    HOST.store(std::ptr::from_ref(host).cast_mut(), Release);
    Ok(host)
}

fn own_pid() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().cast_unsigned()
}

/// Makes a descriptor that serves only as a reserve.
fn spare_of(listener: &OwnedFd) -> Option<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(listener, 0).ok()
}

/// Whether the process, or the system, has no more descriptors.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Returns the prefix of the names of this user's processes; the block follows.
fn prefix() -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("rdmascope-softdev-{LAYOUT}/{user}/")
}

/// Returns the blocks of this user's processes on this host, from the kernel's list of sockets, and
/// in any case this process's.
pub(crate) fn blocks(own: u32) -> Vec<u32> {
    let list = fs::read("/proc/net/unix").unwrap_or_default();
    let prefix = format!("@{}", prefix());
    let block = |line: &str| line.split_once(&prefix)?.1.parse().ok();
    let mut found: Vec<u32> = String::from_utf8_lossy(&list).lines().filter_map(block).chain([own]).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn address(block: u32) -> io::Result<SocketAddrUnix> {
    let name = format!("{}{block}", prefix());
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

/// Runs `work` while no other process of this user on this host does anything under that name; not
/// at all if another one does so all the time.
pub(crate) fn while_alone<T>(what: &str, patience: Duration, work: impl FnOnce() -> T) -> Option<T> {
    const PAUSE: Duration = Duration::from_micros(500);
    let end = Instant::now() + patience;
    let address = SocketAddrUnix::new_abstract_name(format!("{}{what}", prefix()).as_bytes()).ok()?;
    let flags = SocketFlags::CLOEXEC;
    let family = AddressFamily::UNIX;
    let name = rustix::net::socket_with(family, SocketType::STREAM, flags, None).ok()?;
    // The kernel removes the name with the descriptor, or with the process.
    while let Err(error) = rustix::net::bind(&name, &address) {
        if error != Errno::ADDRINUSE || Instant::now() > end {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
    Some(work())
}

/// Whether a descriptor is a socket that has the name of a block.
fn is_bound_to(socket: &OwnedFd, block: u32) -> bool {
    is_name_of(rustix::net::getsockname(socket).ok(), block)
}

/// Whether a descriptor is a connection to the socket of a block.
fn leads_to(socket: &OwnedFd, block: u32) -> bool {
    is_name_of(rustix::net::getpeername(socket).ok().flatten(), block)
}

fn is_name_of(found: Option<SocketAddrAny>, block: u32) -> bool {
    let found = found.and_then(|found| SocketAddrUnix::try_from(found).ok());
    address(block).is_ok_and(|wanted| found == Some(wanted))
}

fn arena_name(block: u32) -> String {
    format!("rdmascope-softdev-{block}")
}

impl Host {
    fn join() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let pid = own_pid();
        let block = (0..BLOCKS - 1).map(|i| 1 + (pid + i) % (BLOCKS - 1)).find_map(|block| {
            let address = address(block).ok()?;
            match rustix::net::bind(&listener, &address) {
                Ok(()) => Some(Ok(block)),
                Err(Errno::ADDRINUSE) => None,
                Err(error) => Some(Err(error)),
            }
        });
        let block = block.ok_or_else(|| io::Error::other("all blocks of queue-pair numbers are taken"))??;
        let arena = Arena::new(&arena_name(block), TABLES)?;
        let header = arena.view.header();
        header.block.store(block, Relaxed);
        header.layout.store(LAYOUT, Relaxed);
        header.life.store(RandomState::new().hash_one(block) as u32, Relaxed);
        header.magic.store(MAGIC, Release);
        // A failure only means that a peer at work may go on longer after its right was revoked:
        // see `agree`.
        let _ = rustix::thread::membarrier(MembarrierCommand::RegisterGlobalExpedited);
        crate::sys::own_lock::allow_own_locks();
        // Where the kernel's Yama module restricts it (`kernel.yama.ptrace_scope` 1), peers of the
        // same user reach registered memory (`foreign`) only with this. Without Yama it fails.
        let _ = rustix::process::set_ptracer(PTracer::Any);
        // Peers can connect only from now on, so they find the arena.
        rustix::net::listen(&listener, 4096)?;
        let spare = Mutex::new(spare_of(&listener));
        let connections = Mutex::default();
        let peers = Mutex::default();
        Ok(Self { pid, arena, block, listener, connections, peers, spare })
    }

    /// Closes the parent's sockets in a child: peers use them to tell whether the parent is alive.
    /// The child may have closed them already, and have other files under their numbers.
    fn leave(&self) {
        let close = |socket: &OwnedFd, is_its: bool| {
            if is_its {
                // SAFETY: the parent's membership is leaked, so nothing closes the socket again. In
                // this process nothing uses it, except objects of the parent, which must not be
                // used.
                unsafe { rustix::io::close(socket.as_raw_fd()) };
            }
        };
        let close_own = |socket: &OwnedFd| close(socket, is_bound_to(socket, self.block));
        close_own(&self.listener);
        // A thread that held a lock at the fork does not exist here to release it.
        if let Ok(spare) = self.spare.try_lock() {
            spare.iter().for_each(close_own);
        }
        if let Ok(connections) = self.connections.try_lock() {
            connections.iter().for_each(close_own);
        }
        if let Ok(peers) = self.peers.try_lock() {
            for (block, peer) in peers.iter() {
                peer.connection.iter().for_each(|socket| close(socket, leads_to(socket, *block)));
            }
        }
    }

    /// Returns the process of a queue-pair number, if there is one on this host.
    pub(crate) fn peer_of(&self, qp_num: u32) -> Option<Arc<Peer>> {
        self.reach(qp_num).ok()
    }

    /// Returns why this process cannot reach the process of a queue-pair number, although that
    /// process is alive: its memory could not be mapped (`ENOMEM`), /proc shows other processes
    /// (`ESRCH`), or /proc refuses access (`EACCES`, `EPERM`).
    pub(crate) fn obstacle(&self, qp_num: u32) -> Option<i32> {
        let errno = Errno::from_io_error(&self.reach(qp_num).err()?)?;
        let obstacles = [Errno::NOMEM, Errno::SRCH, Errno::ACCESS, Errno::PERM];
        obstacles.contains(&errno).then(|| errno.raw_os_error())
    }

    fn reach(&self, qp_num: u32) -> io::Result<Arc<Peer>> {
        let block = qp_num >> QP_INDEX_BITS;
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(&block) {
            if peer.is_alive() {
                return Ok(Arc::clone(peer));
            }
            peers.remove(&block);
        }
        let peer = Arc::new(if block == self.block { Peer::own() } else { Peer::attach(block)? });
        peers.insert(block, Arc::clone(&peer));
        Ok(peer)
    }

    /// Distinguishes this process from earlier ones with the same block.
    pub(crate) fn life(&self) -> u32 {
        self.arena.view.header().life.load(Relaxed)
    }

    /// Whether the process of a block still exists: only a missing name says that it does not. If
    /// it cannot be reached for another reason, such as too few descriptors, it counts as alive.
    pub(crate) fn lives(&self, block: u32) -> bool {
        let is_gone = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        !self.reach(block << QP_INDEX_BITS).is_err_and(is_gone)
    }

    /// Runs `work` with the write end of a peer's pipe, which wakes a sleeper. A lack of
    /// descriptors must not let a peer sleep: a spare one is closed, and the pipe is opened in its
    /// place for the time of `work`.
    ///
    /// # Errors
    /// If the pipe cannot be opened: the peer has ended or closed it, or the system has no more
    /// descriptors.
    pub(crate) fn through<T>(
        &self,
        peer: &Peer,
        fd: i32,
        inode: u64,
        work: impl FnOnce(BorrowedFd<'_>) -> T,
    ) -> io::Result<T> {
        match peer.channel(fd, inode) {
            Err(error) if is_out_of_descriptors(&error) => {}
            channel => return Ok(work(channel?.as_fd())),
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        drop(spare.take());
        let done = peer.open_channel(fd, inode).map(|channel| work(channel.as_fd()));
        *spare = spare_of(&self.listener);
        done
    }

    /// Forgets this process's connection to a completion channel of its own that is destroyed.
    pub(crate) fn forget_channel(&self, fd: i32, inode: u64) {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = peers.get(&self.block) {
            own.channels.lock().unwrap_or_else(PoisonError::into_inner).remove(&(fd, inode));
        }
    }

    /// Accepts connections of new peers, and drops those of peers that have ended, with their
    /// arenas.
    pub(crate) fn tidy(&self) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(connection) = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
            connections.push(connection);
        }
        connections.retain(|connection| !is_broken(connection));
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, peer| peer.is_alive());
    }
}

impl Peer {
    fn own() -> Self {
        Self {
            pid: own_pid(),
            mapping: None,
            connection: None,
            channels: Mutex::default(),
            regions: Mutex::default(),
            seen: AtomicU64::new(0),
        }
    }

    fn attach(block: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let connection = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&connection, &address(block)?)?;
        let listener = system::Peer::of(connection.as_fd())?;
        if !listener.is_of_own_user() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let pid = listener.process.ok_or(Errno::SRCH)?.get();
        let view = View::map(open_arena(pid, block)?.as_fd())?;
        if !view.holds(TABLES) {
            return Err(io::Error::other("the arena is too small"));
        }
        let header = view.header();
        let ours = (MAGIC, LAYOUT, block);
        if (header.magic.load(Acquire), header.layout.load(Relaxed), header.block.load(Relaxed)) != ours {
            return Err(io::Error::other("the arena has another layout version"));
        }
        Ok(Self {
            pid,
            mapping: Some(view),
            connection: Some(connection),
            channels: Mutex::default(),
            regions: Mutex::default(),
            seen: AtomicU64::new(0),
        })
    }

    /// Returns its arena; `own` if the peer is this process.
    #[inline]
    pub(crate) fn view<'a>(&'a self, own: &'a View) -> &'a View {
        self.mapping.as_ref().unwrap_or(own)
    }

    /// Whether the peer is this process.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.mapping.is_none()
    }

    /// Returns the number of its process. A process that was forked from this one is its own peer,
    /// not its parent's.
    pub(crate) fn process(&self) -> u32 {
        if self.is_own() { own_pid() } else { self.pid }
    }

    /// Whether the process still exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| !is_broken(connection))
    }

    /// Whether the process existed at most a tick of the kernel's clock ago (10 ms). Its number
    /// then belongs to it, or to no process, because the kernel first gives out all other numbers.
    /// Mostly without a system call.
    pub(crate) fn was_just_alive(&self) -> bool {
        let tick = coarse();
        if self.seen.load(Relaxed) == tick {
            return true;
        }
        let is_alive = self.is_alive();
        if is_alive {
            self.seen.store(tick, Relaxed);
        }
        is_alive
    }

    /// Whether the pages of a region have not been mapped yet; from now on they count as mapped.
    pub(crate) fn is_new_region(&self, key: u32) -> bool {
        if self.is_own() {
            return false;
        }
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions.insert(mr_index(key), key) != Some(key)
    }

    /// Returns the write end of one of its completion channels.
    pub(crate) fn channel(&self, fd: i32, inode: u64) -> io::Result<Arc<OwnedFd>> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(&(fd, inode)) {
            return Ok(Arc::clone(channel));
        }
        // The peer may have closed channels since: their descriptors are dropped.
        channels.retain(|(fd, inode), _| self.pipe_inode(*fd).is_ok_and(|found| found == *inode));
        let channel = Arc::new(self.open_channel(fd, inode)?);
        channels.insert((fd, inode), Arc::clone(&channel));
        Ok(channel)
    }

    /// Opens the write end of a pipe of the peer.
    fn open_channel(&self, fd: i32, inode: u64) -> io::Result<OwnedFd> {
        if self.pipe_inode(fd)? != inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Opened for reading as well, so that a write raises no SIGPIPE when the peer ends.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(self.descriptor(fd), flags, Mode::empty())?;
        if rustix::fs::fstat(&opened)?.st_ino != inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(opened)
    }
}

#[cfg(test)]
impl Peer {
    /// Makes a peer with the arena of a test.
    pub(crate) fn with_arena(view: View) -> Self {
        Self { mapping: Some(view), ..Self::own() }
    }
}

impl Peer {
    fn descriptor(&self, fd: i32) -> String {
        format!("/proc/{}/fd/{fd}", self.pid)
    }

    /// Returns the inode of a descriptor of the peer, which must be a pipe.
    fn pipe_inode(&self, fd: i32) -> io::Result<u64> {
        let found = rustix::fs::stat(self.descriptor(fd))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Fifo {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(found.st_ino)
    }
}

/// Executes a memory barrier on every CPU that runs a process of the device. This thread then sees
/// what other threads stored before the barrier, and they see what this thread has stored. The side
/// that takes something away thus pays for the order, not the side that uses it. If the kernel has
/// no such call (before 4.16, or forbidden), the order takes as long as a CPU's store buffer.
#[cold]
pub(crate) fn agree() {
    Cpu::heavy();
}

/// Finds the arena among the descriptors of a process.
fn open_arena(pid: u32, block: u32) -> io::Result<OwnedFd> {
    // The kernel reports the peer's number in this process's PID namespace; /proc may be that of
    // another one.
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    if fs::read_link("/proc/self").ok().is_none_or(|shown| shown.as_os_str() != own.as_str()) {
        return Err(Errno::SRCH.into());
    }
    let wanted = format!("/memfd:{} (deleted)", arena_name(block));
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        if fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str()) {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            return Ok(rustix::fs::open(entry.path(), flags, Mode::empty())?);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Whether the peer's side of a connection is gone.
fn is_broken(connection: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(connection, PollFlags::RDHUP)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let found = rustix::event::poll(&mut polled, Some(&now));
    found.is_ok() && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::RDHUP)
}

/// Returns an identifier of this host on this network, stable while the host runs: the low 64 bits
/// of the port's GID, and the node's GUID. It differs between hosts, boots and network namespaces.
pub(crate) fn guid() -> u64 {
    static GUID: OnceLock<u64> = OnceLock::new();
    *GUID.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::metadata("/proc/self/ns/net").map_or(0, |m| m.ino());
        // FNV-1a: a stable mix of the two is enough.
        let mixed =
            boot.bytes().chain(namespace.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        // An EUI-64 of local scope made from an EUI-48: 02:..:..:ff:fe:.. (RFC 4291, appendix A).
        (mixed & 0x00ff_ff00_00ff_ffff) | 0x0200_00ff_fe00_0000
    })
}
