//! The directory of ports: abstract names of Unix sockets, which the kernel keeps for a network
//! namespace. The kernel removes them when their process ends, however it ends.
//!
//! A port that a program has asked for (also any port) is a name (`claim`), which contains the
//! conditions for sharing it. Other local ports, which paths need, come from blocks; a process
//! takes as many blocks as it needs (`block`). A listener has another name (`listen`), to which
//! peers connect. Only one process at a time reads and makes claims and blocks (`order`).

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::abi::Space;
use crate::host::Claim;
use crate::process::forks::Private;
use crate::process::links::Listening;

/// The size of a block.
const BLOCK: u16 = 64;
/// The ports for programs that ask for any (the default of `ip_local_port_range`).
const EPHEMERAL: std::ops::Range<u16> = 32768..60992;

/// The version of the names and of the protocol between processes.
const VERSION: u32 = 1;

/// The prefix of the names of this user's processes.
fn prefix() -> String {
    format!("rdmascope-cm-{VERSION}/{}/", rustix::process::geteuid().as_raw())
}

fn name(rest: &str) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("{}{rest}", prefix()).as_bytes())
}

fn socket() -> Result<Private, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map(Private::from)
}

/// Binds a name; `None` if another socket has it.
fn take_name(rest: &str) -> Result<Option<Private>, Errno> {
    let socket = socket()?;
    match rustix::net::bind(&socket, &name(rest)?) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::ADDRINUSE) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Formats sixteen bytes as digits, short enough for a name.
fn digits(address: IpAddr) -> String {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    format!("{:032x}", u128::from(address))
}

fn address_of(digits: &str) -> Option<IpAddr> {
    let address = Ipv6Addr::from(u128::from_str_radix(digits, 16).ok()?);
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

fn listener_name(space: Space, address: SocketAddr) -> String {
    format!("listen/{:04x}/{}/{}", space as u16, address.port(), digits(address.ip()))
}

/// Returns the names of this user's processes on this host, without the prefix.
fn names() -> Vec<String> {
    let list = fs::read("/proc/net/unix").unwrap_or_default();
    let prefix = format!("@{}", prefix());
    let list = String::from_utf8_lossy(&list);
    list.lines().filter_map(|line| Some(line.split_once(&prefix)?.1.to_owned())).collect()
}

/// A claim of another identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Other {
    space: u16,
    address: SocketAddr,
    is_shared: bool,
    is_of_one_family: bool,
}

impl Other {
    fn of(claim: &Claim, port: u16) -> Self {
        let address = SocketAddr::new(claim.address.ip(), port);
        let Claim { space, is_shared, is_of_one_family, .. } = *claim;
        Self { space: space as u16, address, is_shared, is_of_one_family }
    }

    fn name(&self, number: u64) -> String {
        let flag = |is_set: bool, flag: &'static str| if is_set { flag } else { "-" };
        format!(
            "claim/{:04x}/{}/{}/{}{}/{}-{number}",
            self.space,
            self.address.port(),
            digits(self.address.ip()),
            flag(self.is_shared, "s"),
            flag(self.is_of_one_family, "f"),
            rustix::process::getpid().as_raw_nonzero(),
        )
    }

    /// Reads a name; `None` if it is not a claim.
    fn read(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("claim/")?.split('/');
        let space = u16::from_str_radix(parts.next()?, 16).ok()?;
        let port = parts.next()?.parse().ok()?;
        let address = SocketAddr::new(address_of(parts.next()?)?, port);
        let flags = parts.next()?;
        Some(Self { space, address, is_shared: flags.contains('s'), is_of_one_family: flags.contains('f') })
    }

    /// Returns why it cannot coexist with the claims in `names`, without its own.
    fn conflicts(&self, names: &[String], own: &str) -> Option<Errno> {
        let mut others = names.iter().filter(|name| *name != own).filter_map(|name| Self::read(name));
        others.find_map(|other| self.conflict(&other))
    }

    /// Returns why two claims cannot coexist (`cma_check_port()` of the kernel's cma.c).
    fn conflict(&self, other: &Self) -> Option<Errno> {
        let is_same = self.space == other.space && self.address.port() == other.address.port();
        let are_shared = self.is_shared && other.is_shared;
        let are_apart = self.is_of_one_family
            && other.is_of_one_family
            && self.address.is_ipv4() != other.address.is_ipv4();
        if !is_same || are_shared || are_apart {
            return None;
        }
        if self.address.ip().is_unspecified() || other.address.ip().is_unspecified() {
            return Some(Errno::ADDRNOTAVAIL);
        }
        (self.address.ip() == other.address.ip()).then_some(Errno::ADDRINUSE)
    }
}

/// A claim of this process. It ends when this is dropped.
struct Claimed {
    what: Other,
    name: String,
    /// Keeps the name.
    _socket: Private,
}

/// A block of ports of this process, and which of them are in use.
struct Block {
    space: Space,
    free: Mutex<BTreeSet<u16>>,
    /// Keeps its name.
    _name: Private,
}

/// Keeps a port claimed.
pub(crate) struct Hold {
    space: Space,
    address: SocketAddr,
    /// The claim of a port that the program has asked for.
    claim: Option<Claimed>,
    /// The block of the port, if it is in a block of this process.
    block: Option<Arc<Block>>,
    pub(crate) listening: Option<Listening>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(block) = &self.block {
            block.free.lock().unwrap_or_else(PoisonError::into_inner).insert(self.address.port());
        }
    }
}

impl Hold {
    fn of(claim: &Claim, port: u16, claimed: Option<Claimed>, block: Option<Arc<Block>>) -> Self {
        let address = SocketAddr::new(claim.address.ip(), port);
        Self { space: claim.space, address, claim: claimed, block, listening: None }
    }
}

/// Makes a socket to which peers connect.
fn listener(space: Space, address: SocketAddr) -> Result<Private, Errno> {
    const BACKLOG: i32 = 4096;
    let socket = take_name(&listener_name(space, address))?.ok_or(Errno::ADDRINUSE)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The ports of this process.
#[derive(Default)]
pub(crate) struct Directory {
    blocks: Vec<Arc<Block>>,
    next: u64,
}

impl Directory {
    /// See [`Host::take`](crate::host::Host::take). `random` decides which port is taken if any was
    /// asked for.
    pub(crate) fn take(&mut self, claim: &Claim, random: u32) -> Result<(u16, Hold), Errno> {
        match (claim.address.port(), claim.is_asked_for) {
            (0, true) => self.take_free(claim, random),
            (0, false) => self.take_any(claim),
            _ => self.take_one(claim),
        }
    }

    /// Claims a free port.
    fn take_free(&mut self, claim: &Claim, random: u32) -> Result<(u16, Hold), Errno> {
        let made = in_order(|| {
            let names = names();
            let others = names.iter().filter_map(|name| Other::read(name));
            let space = claim.space as u16;
            let taken: HashSet<u16> =
                others.filter(|other| other.space == space).map(|other| other.address.port()).collect();
            let blocks: HashSet<&str> = names.iter().map(String::as_str).collect();
            let count = EPHEMERAL.end - EPHEMERAL.start;
            let begin = (random % u32::from(count)) as u16;
            let mut all = (begin..count).chain(0..begin).map(|n| EPHEMERAL.start + n);
            let is_free = |port: &u16| {
                !taken.contains(port) && !blocks.contains(&*block_name(claim.space, port - port % BLOCK))
            };
            self.name(Other::of(claim, all.find(is_free).ok_or(Errno::ADDRNOTAVAIL)?))
        });
        let made = made?;
        let port = made.what.address.port();
        Ok((port, Hold::of(claim, port, Some(made), None)))
    }

    fn take_one(&mut self, claim: &Claim) -> Result<(u16, Hold), Errno> {
        let port = claim.address.port();
        let own = Other::of(claim, port);
        let made = in_order(|| {
            let names = names();
            if let Some(errno) = own.conflicts(&names, "") {
                return Err(errno);
            }
            let is_of_block = names.contains(&block_name(claim.space, port - port % BLOCK));
            let block = if is_of_block { self.take_from_own(claim.space, port) } else { None };
            if is_of_block && block.is_none() {
                let is_all = claim.address.ip().is_unspecified();
                return Err(if is_all { Errno::ADDRNOTAVAIL } else { Errno::ADDRINUSE });
            }
            Ok((self.name(own)?, block))
        });
        let (made, block) = made?;
        Ok((port, Hold::of(claim, port, Some(made), block)))
    }

    /// Binds a name for a claim.
    fn name(&mut self, what: Other) -> Result<Claimed, Errno> {
        self.next += 1;
        let name = what.name(self.next);
        let socket = take_name(&name)?.ok_or(Errno::ADDRINUSE)?;
        Ok(Claimed { what, name, _socket: socket })
    }

    /// See [`Host::mark`](crate::host::Host::mark). A port that cannot be asked for needs no marks.
    pub(crate) fn mark(
        &mut self,
        hold: &mut Hold,
        is_shared: bool,
        is_of_one_family: bool,
    ) -> Result<(), Errno> {
        let Some(claim) = &hold.claim else { return Ok(()) };
        let what = Other { is_shared, is_of_one_family, ..claim.what };
        hold.claim = Some(in_order(|| self.name(what))?);
        Ok(())
    }

    /// See [`Host::listen`](crate::host::Host::listen): a socket to which peers connect.
    pub(crate) fn listen(&mut self, hold: &mut Hold) -> Result<Private, Errno> {
        if let Some(claim) = hold.claim.as_ref().filter(|claim| claim.what.is_shared) {
            let what = Other { is_shared: false, ..claim.what };
            let alone = in_order(|| match what.conflicts(&names(), &claim.name) {
                Some(errno) => Err(errno),
                None => self.name(what),
            });
            hold.claim = Some(alone?);
        }
        listener(hold.space, hold.address)
    }

    /// Takes a port from a block of this process.
    fn take_from_own(&self, space: Space, port: u16) -> Option<Arc<Block>> {
        let mut own = self.blocks.iter().filter(|block| block.space == space);
        let takes =
            |block: &&Arc<Block>| block.free.lock().unwrap_or_else(PoisonError::into_inner).remove(&port);
        own.find(takes).map(Arc::clone)
    }

    fn take_any(&mut self, claim: &Claim) -> Result<(u16, Hold), Errno> {
        let space = claim.space;
        let from = |block: &Arc<Block>| {
            let port = block.free.lock().unwrap_or_else(PoisonError::into_inner).pop_first()?;
            Some((port, Hold::of(claim, port, None, Some(Arc::clone(block)))))
        };
        if let Some(found) = self.blocks.iter().filter(|block| block.space == space).find_map(from) {
            return Ok(found);
        }
        let block = Arc::new(new_block(space)?);
        self.blocks.push(Arc::clone(&block));
        from(&block).ok_or(Errno::ADDRNOTAVAIL)
    }
}

fn block_name(space: Space, first: u16) -> String {
    format!("block/{:04x}/{first}", space as u16)
}

/// Takes a free block, without its ports that other programs have claimed. The search starts at a
/// place that depends on the process, so that ports of the previous process are not reused at once.
fn new_block(space: Space) -> Result<Block, Errno> {
    let count = (EPHEMERAL.end - EPHEMERAL.start) / BLOCK;
    let begin = rustix::process::getpid().as_raw_nonzero().get().cast_unsigned() % u32::from(count);
    in_order(|| {
        let names = names();
        for n in 0..u32::from(count) {
            let first = EPHEMERAL.start + ((begin + n) % u32::from(count)) as u16 * BLOCK;
            let Some(name) = take_name(&block_name(space, first))? else { continue };
            let asked_for = |port: &u16| {
                let is_it = |other: Other| other.space == space as u16 && other.address.port() == *port;
                names.iter().filter_map(|name| Other::read(name)).any(is_it)
            };
            let free: BTreeSet<u16> = (first..first + BLOCK).filter(|port| !asked_for(port)).collect();
            if !free.is_empty() {
                return Ok(Block { space, free: Mutex::new(free), _name: name });
            }
        }
        Err(Errno::ADDRNOTAVAIL)
    })
}

/// Runs `work` while no other process of this user on this host runs it.
///
/// # Errors
/// `EBUSY` if another process holds the order for 5 s; otherwise the errors of `work`.
fn in_order<T>(work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    const PAUSE: Duration = Duration::from_micros(200);
    /// The order is held for milliseconds: a process that holds it for 5 s is stopped.
    const PATIENCE: u32 = 25_000;
    for _ in 0..PATIENCE {
        if let Some(_order) = take_name("order")? {
            return work();
        }
        std::thread::sleep(PAUSE);
    }
    Err(Errno::BUSY)
}

/// Connects to the process that listens at an address; a listener at this address comes before one
/// at all addresses. `None` if there is none.
///
/// # Errors
/// `EAGAIN` if its queue of connections is full.
pub(crate) fn connect(space: Space, destination: SocketAddr) -> Result<Option<Private>, Errno> {
    let all: &[IpAddr] = match destination.ip() {
        IpAddr::V4(_) => &[IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)],
        IpAddr::V6(_) => &[IpAddr::V6(Ipv6Addr::UNSPECIFIED)],
    };
    for ip in std::iter::once(&destination.ip()).chain(all) {
        let at = SocketAddr::new(*ip, destination.port());
        let socket = socket()?;
        match rustix::net::connect(&socket, &name(&listener_name(space, at))?) {
            Ok(()) => return Ok(Some(socket)),
            Err(Errno::CONNREFUSED) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::forks::CHILDREN;

    fn claim(address: &str) -> Claim {
        let address = address.parse().unwrap();
        Claim { space: Space::Tcp, address, is_shared: false, is_of_one_family: false, is_asked_for: true }
    }

    /// Takes a port and returns its number, too.
    fn take(directory: &mut Directory, claim: &Claim) -> Result<(u16, Hold), Errno> {
        directory.take(claim, 4711)
    }

    #[test]
    fn a_claim_is_read_as_its_name_says_it() {
        for (address, is_shared, is_of_one_family) in
            [("127.0.0.1:7471", true, false), ("[::]:1", false, true), ("0.0.0.0:65535", false, false)]
        {
            let claim = Claim { is_shared, is_of_one_family, ..claim(address) };
            let own = Other::of(&claim, claim.address.port());
            assert_eq!(Other::read(&own.name(3)), Some(own));
            assert!(name(&own.name(u64::from(u32::MAX))).is_ok(), "it fits");
        }
        for foreign in ["", "claim/", "claim/0106/x/0/--", "claim/0106/1/zz/--/1-1", "block/0106/32768"] {
            assert_eq!(Other::read(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn claims_conflict_as_those_of_the_kernel() {
        let conflict = |one: &str, flags: [bool; 2], other: &str, others: [bool; 2]| {
            let make = |address: &str, [is_shared, is_of_one_family]: [bool; 2]| {
                let claim = Claim { is_shared, is_of_one_family, ..claim(address) };
                Other::of(&claim, claim.address.port())
            };
            make(one, flags).conflict(&make(other, others))
        };
        const NO: [bool; 2] = [false; 2];
        assert_eq!(conflict("127.0.0.1:1", NO, "127.0.0.1:1", NO), Some(Errno::ADDRINUSE));
        assert_eq!(conflict("127.0.0.1:1", NO, "127.0.0.1:2", NO), None);
        assert_eq!(conflict("127.0.0.1:1", NO, "127.0.0.2:1", NO), None);
        assert_eq!(conflict("0.0.0.0:1", NO, "127.0.0.1:1", NO), Some(Errno::ADDRNOTAVAIL));
        assert_eq!(conflict("127.0.0.1:1", NO, "[::]:1", NO), Some(Errno::ADDRNOTAVAIL));
        assert_eq!(conflict("0.0.0.0:1", [false, true], "[::]:1", [false, true]), None);
        assert_eq!(conflict("127.0.0.1:1", [true, false], "127.0.0.1:1", [true, false]), None);
        assert_eq!(conflict("127.0.0.1:1", [true, false], "127.0.0.1:1", NO), Some(Errno::ADDRINUSE));
    }

    #[test]
    fn a_free_port_is_given_to_one_only() {
        let mut directory = Directory::default();
        let (port, _hold) = take(&mut directory, &claim("127.0.0.1:0")).unwrap();
        assert!(EPHEMERAL.contains(&port));
        let one = claim(&format!("127.0.0.1:{port}"));
        assert_eq!(take(&mut directory, &one).err(), Some(Errno::ADDRINUSE), "the port is taken");
        let all = claim(&format!("0.0.0.0:{port}"));
        assert_eq!(take(&mut directory, &all).err(), Some(Errno::ADDRNOTAVAIL));
    }

    #[test]
    fn a_port_is_free_again_when_its_hold_goes() {
        let _childless = CHILDREN.read().unwrap_or_else(PoisonError::into_inner);
        let mut directory = Directory::default();
        // Ports outside the range are taken only on request, so the port stays free between the
        // steps.
        let port = 10_000 + (std::process::id() % 20_000) as u16;
        let one = claim(&format!("127.0.0.1:{port}"));
        drop(take(&mut directory, &one).unwrap());
        let mut other = Directory::default();
        let (_, mut hold) = take(&mut other, &one).expect("another one may have it now");
        assert_eq!(take(&mut directory, &one).err(), Some(Errno::ADDRINUSE));
        assert!(connect(Space::Tcp, one.address).unwrap().is_none(), "there is no listener");
        let listener = other.listen(&mut hold).unwrap();
        assert!(connect(Space::Tcp, one.address).unwrap().is_some());
        assert!(connect(Space::Udp, one.address).unwrap().is_none(), "another space");
        drop((listener, hold));
        assert!(connect(Space::Tcp, one.address).unwrap().is_none());
        assert!(take(&mut directory, &one).is_ok());
    }

    #[test]
    fn who_listens_shares_with_nobody() {
        let _childless = CHILDREN.read().unwrap_or_else(PoisonError::into_inner);
        let mut directory = Directory::default();
        let shared = |port: u16| Claim { is_shared: true, ..claim(&format!("127.0.0.2:{port}")) };
        let (port, mut first) = take(&mut directory, &shared(0)).unwrap();
        let (_, second) = take(&mut directory, &shared(port)).expect("both share it");
        assert_eq!(directory.listen(&mut first).err(), Some(Errno::ADDRINUSE));
        assert!(take(&mut directory, &shared(port)).is_ok(), "it is shared as before");
        drop(second);
        let _listener = directory.listen(&mut first).expect("it is alone");
        assert_eq!(take(&mut directory, &shared(port)).err(), Some(Errno::ADDRINUSE));
    }

    #[test]
    fn what_is_said_later_counts() {
        let mut directory = Directory::default();
        let (port, mut hold) = take(&mut directory, &claim("127.0.0.3:0")).unwrap();
        let shared = Claim { is_shared: true, ..claim(&format!("127.0.0.3:{port}")) };
        assert_eq!(take(&mut directory, &shared).err(), Some(Errno::ADDRINUSE));
        directory.mark(&mut hold, true, false).unwrap();
        assert!(take(&mut directory, &shared).is_ok());
    }

    #[test]
    fn more_ports_than_a_block_has_are_all_different() {
        let mut directory = Directory::default();
        let any = Claim { is_asked_for: false, ..claim("0.0.0.0:0") };
        let taken: Vec<_> = (0..200).map(|_| take(&mut directory, &any).unwrap()).collect();
        let ports: BTreeSet<u16> = taken.iter().map(|(port, _)| *port).collect();
        assert_eq!(ports.len(), 200);
        assert!(directory.blocks.len() >= 4);
        let of_a_block = claim(&format!("127.0.0.1:{}", taken[0].0));
        assert_eq!(take(&mut directory, &of_a_block).err(), Some(Errno::ADDRINUSE));
        let (port, _hold) = take(&mut directory, &claim("0.0.0.0:0")).unwrap();
        assert!(!ports.contains(&port) && EPHEMERAL.contains(&port));
    }
}
