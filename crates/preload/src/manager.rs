//! The connection manager: librdmacm opens `/dev/infiniband/rdma_cm` and writes commands to it.
//! This library provides the descriptor and handles the commands.
//!
//! # Invariants
//!
//! * A call with any other descriptor costs one read of a word, and goes to the C library.
//! * After `fork`, the child can poll descriptors that it has inherited. Commands on them fail with
//!   `EIO`, since the identifiers are in the parent. A descriptor that the child opens itself
//!   works.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::sync::{Mutex, PoisonError};

use cm::host::{Memory, Port};
use cm::{Devices, Process};
use rustix::fs::OFlags;
use rustix::io::Errno;
use softdev::{PROVIDER, tree};
use verbs::{Context, Device, LinkLayer, devices};

use crate::asked::{errno, fail};
use crate::files::Stat;
use crate::next::next_functions;

next_functions! {
    write(fd: c_int, from: *const c_void, bytes: usize) -> isize;
    close(fd: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, to: c_int) -> c_int;
    dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fstat(fd: c_int, to: Stat) -> c_int;
    fstat64(fd: c_int, to: Stat) -> c_int;
    __fxstat(version: c_int, fd: c_int, to: Stat) -> c_int;
    __fxstat64(version: c_int, fd: c_int, to: Stat) -> c_int;
}

/// The number of descriptors that can be channels: more than a process has by default.
const MOST: usize = 1 << 16;

/// Which descriptors are channels.
static CHANNELS: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

#[inline]
fn is_channel(fd: c_int) -> bool {
    CHANNELS.get(fd as usize).is_some_and(|channel| channel.load(Relaxed))
}

/// Marks whether a descriptor is a channel. Returns false if the descriptor is too high.
fn mark(fd: c_int, is_channel: bool) -> bool {
    CHANNELS.get(fd as usize).is_some_and(|channel| {
        channel.store(is_channel, Relaxed);
        true
    })
}

/// The manager of a process. Its children do not have it.
struct Own {
    process: &'static Process,
    pid: u32,
}

static OWN: AtomicPtr<Own> = AtomicPtr::new(std::ptr::null_mut());

/// This process's manager, if it has one.
fn own() -> Option<&'static Process> {
    // SAFETY: the pointer is null, or to a leaked object.
    let own = unsafe { OWN.load(Acquire).as_ref() }?;
    (own.pid == std::process::id()).then_some(own.process)
}

/// Returns this process's manager. The first call makes it, and its thread.
fn make_own() -> Result<&'static Process, c_int> {
    if let Some(own) = own() {
        return Ok(own);
    }
    static OPENING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have made it first.
    if let Some(own) = own() {
        return Ok(own);
    }
    let devices = Box::new(Softdev::open()?);
    let process = Process::start(devices).map_err(|e| e.raw_os_error().unwrap_or(libc::EIO))?;
    OWN.store(Box::into_raw(Box::new(Own { process, pid: std::process::id() })), Release);
    Ok(process)
}

/// Does nothing. Its symbol shows that a process has this manager (`verbs::manager::is_emulated`).
pub(crate) unsafe fn is_emulated() {}

/// Opens the manager's device. Returns a descriptor, or -1.
pub(crate) fn open(flags: c_int) -> c_int {
    // SAFETY: errno's location is valid in every thread.
    let before = unsafe { *errno() };
    let flags = OFlags::from_bits_retain(flags.cast_unsigned());
    let opened = make_own().and_then(|own| {
        let fd = own.open(flags).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?.into_raw_fd();
        if mark(fd, true) { Ok(fd) } else { Err(close_unmarked(own, fd)) }
    });
    match opened {
        Ok(fd) => {
            // SAFETY: as above.
            unsafe { *errno() = before };
            fd
        }
        Err(error) => fail(error),
    }
}

/// Closes a descriptor that is too high. Returns the error.
fn close_unmarked(own: &Process, fd: c_int) -> c_int {
    own.close(fd);
    // SAFETY: the descriptor was just opened, and nothing else uses it.
    unsafe { next::close(fd) };
    libc::EMFILE
}

pub(crate) unsafe fn write(fd: c_int, from: *const c_void, bytes: usize) -> isize {
    if !is_channel(fd) {
        // SAFETY: the caller keeps the contract of the function of this name.
        return unsafe { next::write(fd, from, bytes) };
    }
    match command(fd, from, bytes) {
        Ok(()) => bytes.cast_signed(),
        Err(errno) => fail(errno.raw_os_error()) as isize,
    }
}

#[cold]
fn command(fd: c_int, from: *const c_void, bytes: usize) -> Result<(), Errno> {
    /// The header and the longest content that it can announce.
    const MOST_BYTES: usize = 8 + u16::MAX as usize;
    // SAFETY: errno's location is valid in every thread.
    let before = unsafe { *errno() };
    let process = own().ok_or(Errno::IO)?;
    // First, as in the kernel: another thread may close the channel.
    let channel = process.channel(fd)?;
    let mut command = vec![0; bytes.min(MOST_BYTES)];
    OwnMemory.read(from as u64, &mut command)?;
    // SAFETY: the program has passed an open descriptor, and closes it only after this call.
    let descriptor = unsafe { BorrowedFd::borrow_raw(fd) };
    let done = process.write(channel, descriptor, &command, &OwnMemory);
    // SAFETY: as above.
    unsafe { *errno() = before };
    done
}

pub(crate) unsafe fn close(fd: c_int) -> c_int {
    if is_channel(fd) {
        forget(fd);
    }
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe { next::close(fd) }
}

#[cold]
fn forget(fd: c_int) {
    // A child of `vfork` closes its own descriptor; the parent's stays a channel.
    if cm::is_memory_borrowed() {
        return;
    }
    mark(fd, false);
    if let Some(process) = own() {
        process.close(fd);
    }
}

pub(crate) unsafe fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller keeps the contract of the function of this name.
    let to = unsafe { next::dup(fd) };
    duplicated(fd, to);
    to
}

pub(crate) unsafe fn dup2(fd: c_int, to: c_int) -> c_int {
    replaced(fd, to);
    // SAFETY: as for `dup`.
    let to = unsafe { next::dup2(fd, to) };
    duplicated(fd, to);
    to
}

pub(crate) unsafe fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    replaced(fd, to);
    // SAFETY: as for `dup`.
    let to = unsafe { next::dup3(fd, to, flags) };
    duplicated(fd, to);
    to
}

/// Closes the channel of a descriptor that is about to be replaced.
fn replaced(fd: c_int, to: c_int) {
    // SAFETY: the call only checks whether the descriptor is open.
    if is_channel(to) && fd != to && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0 {
        forget(to);
    }
}

fn duplicated(fd: c_int, to: c_int) {
    if is_channel(fd)
        && to >= 0
        && fd != to
        && !cm::is_memory_borrowed()
        && mark(to, true)
        && let Some(process) = own()
    {
        process.duplicated(fd, to);
    }
}

macro_rules! described {
    ($($name:ident($($arg:ident: $type:ty)?);)*) => {
        $(
            pub(crate) unsafe fn $name($($arg: $type,)? fd: c_int, to: Stat) -> c_int {
                // SAFETY: the caller keeps the contract of the function of this name.
                let answer = unsafe { next::$name($($arg,)? fd, to) };
                if answer == 0 && is_channel(fd) {
                    // SAFETY: the system has just filled it.
                    describe(unsafe { &mut *to });
                }
                answer
            }
        )*
    };
}

described! {
    fstat();
    fstat64();
    __fxstat(version: c_int);
    __fxstat64(version: c_int);
}

/// Makes the description of a descriptor that of the manager's device: librdmacm checks whether it
/// has opened the right file (util/open_cdev.c).
#[cold]
fn describe(file: &mut libc::stat) {
    let (major, minor) = tree::manager_number();
    file.st_mode = libc::S_IFCHR | 0o666;
    file.st_rdev = libc::makedev(major, minor);
}

/// The program's memory, in this process.
struct OwnMemory;

impl OwnMemory {
    /// Lets the kernel copy, so that an invalid address is an error.
    fn copy(here: *mut c_void, there: u64, bytes: usize, writes: bool) -> Result<(), Errno> {
        let own = libc::iovec { iov_base: here, iov_len: bytes };
        let other =
            libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(there as usize), iov_len: bytes };
        // SAFETY: this function's memory is valid; the kernel checks the program's.
        let copied = unsafe {
            let pid = libc::getpid();
            if writes {
                libc::process_vm_writev(pid, &raw const own, 1, &raw const other, 1, 0)
            } else {
                libc::process_vm_readv(pid, &raw const own, 1, &raw const other, 1, 0)
            }
        };
        if usize::try_from(copied) == Ok(bytes) {
            return Ok(());
        }
        // SAFETY: errno's location is valid in every thread.
        let error = unsafe { *errno() };
        if copied >= 0 || error == libc::EFAULT {
            return Err(Errno::FAULT);
        }
        // If the system forbids this copy, the program's addresses are trusted.
        let (from, to) = if writes { (here, other.iov_base) } else { (other.iov_base, here) };
        // SAFETY: the program guarantees the memory that it names in a command.
        unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes) };
        Ok(())
    }
}

impl Memory for OwnMemory {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        if to.is_empty() { Ok(()) } else { Self::copy(to.as_mut_ptr().cast(), address, to.len(), false) }
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        Self::copy(from.as_ptr().cast_mut().cast(), address, from.len(), true)
    }
}

/// The software devices by their numbers. They stay open.
struct Softdev(Vec<Context>);

/// Software devices have one port.
const PORT: u8 = 1;

impl Softdev {
    /// Opens all devices: a missing one would shift the numbers of the others.
    fn open() -> Result<Self, c_int> {
        let errno = |error: verbs::Error| match error {
            verbs::Error::Verb { errno, .. } => errno,
            _ => libc::EIO,
        };
        let all = devices(&PROVIDER).map_err(errno)?;
        Ok(Self(all.iter().map(Device::open).collect::<Result<_, _>>().map_err(errno)?))
    }

    fn port(&self, device: u8, index: u8) -> Option<Port> {
        let context = self.0.get(usize::from(device))?;
        let port = context.port(PORT).ok()?;
        Some(Port {
            guid: context.limits().ok()?.node_guid,
            number: PORT,
            gid: context.gid(PORT, index.into()).ok()?.0,
            gid_index: index,
            lid: port.lid,
            is_infiniband: port.link_layer == LinkLayer::InfiniBand,
            mtu: port.active_mtu.code() as u8,
        })
    }
}

impl Devices for Softdev {
    fn port_of(&self, address: IpAddr) -> Result<Port, Errno> {
        let gid = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let is_infiniband =
            softdev::settings().is_ok_and(|settings| settings.link_layer == softdev::LinkLayer::Infiniband);
        // An address that belongs to no interface, such as 127.0.0.2, has no GID.
        let first = || (is_infiniband && is_own(address)).then_some((0, 0));
        let place = softdev::place_of(gid).or_else(first);
        let port = place.and_then(|(device, index)| self.port(device, index));
        port.ok_or_else(|| if is_own(address) { Errno::NODEV } else { Errno::ADDRNOTAVAIL })
    }
}

/// Whether an address belongs to this host.
fn is_own(address: IpAddr) -> bool {
    /// Any port will do: discard. Connecting sends nothing.
    const PORT: u16 = 9;
    if address.is_multicast() || address == IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
        return false;
    }
    // A socket can be bound to a broadcast address, but cannot connect to one.
    UdpSocket::bind((address, 0)).and_then(|socket| socket.connect((address, PORT))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_several_hosts_are_not_own() {
        for own in ["127.0.0.1", "127.0.0.2"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        for other in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.255.255.255", "ff02::1", "192.0.2.1"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }
}
