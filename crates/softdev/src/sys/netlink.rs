//! The network interfaces of this process's network namespace, as the kernel reports them
//! (rtnetlink(7)).

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// A network interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Interface {
    /// Its number in the namespace (`ifindex`).
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) mtu_bytes: u32,
    pub(crate) is_loopback: bool,
    /// Whether the interface is up (`IFF_UP`).
    pub(crate) is_up: bool,
    /// Its usable addresses in the kernel's order: IPv6 addresses, and IPv4 addresses mapped to
    /// IPv6.
    pub(crate) addresses: Vec<[u8; 16]>,
}

/// Returns a socket that becomes readable whenever an interface or an address appears, disappears
/// or changes.
///
/// # Errors
/// If there are no more descriptors, or a filter of system calls refuses such sockets.
pub(crate) fn watch() -> Result<OwnedFd, Errno> {
    // linux/rtnetlink.h: a bit for each group.
    const LINKS: u32 = 1;
    const IPV4_ADDRESSES: u32 = 0x10;
    const IPV6_ADDRESSES: u32 = 0x100;
    let socket = open(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, LINKS | IPV4_ADDRESSES | IPV6_ADDRESSES))?;
    Ok(socket)
}

/// Reads all messages of a socket; returns whether there were any.
pub(crate) fn drain(socket: &OwnedFd) -> bool {
    let mut was_told = false;
    let mut bytes = [0; 4096];
    loop {
        match rustix::net::recv(socket, bytes.as_mut_slice(), RecvFlags::DONTWAIT) {
            // There were more messages than the socket has room for.
            Ok(_) | Err(Errno::NOBUFS) => was_told = true,
            Err(Errno::INTR) => {}
            Err(_) => return was_told,
        }
    }
}

/// Returns all interfaces, in the order of their numbers. If they change all the time, some may be
/// outdated.
///
/// # Errors
/// If there are no more descriptors, or a filter of system calls refuses such sockets.
pub(crate) fn interfaces() -> Result<Vec<Interface>, Errno> {
    /// Attempts to read a list that does not change meanwhile.
    const ATTEMPTS: usize = 3;
    let mut found = Vec::new();
    for _ in 0..ATTEMPTS {
        let is_whole;
        (found, is_whole) = list()?;
        if is_whole {
            break;
        }
    }
    Ok(found)
}

fn open(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    // The default protocol is NETLINK_ROUTE.
    rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
}

/// Returns all interfaces, and whether none has changed meanwhile.
fn list() -> Result<(Vec<Interface>, bool), Errno> {
    let socket = open(SocketFlags::CLOEXEC)?;
    let mut found: Vec<Interface> = Vec::new();
    let mut is_whole = dump(&socket, LINKS, |body| found.extend(interface(body)))?;
    found.sort_unstable_by_key(|interface| interface.index);
    is_whole &= dump(&socket, ADDRESSES, |body| {
        let Some((index, address)) = address(body) else { return };
        if let Ok(place) = found.binary_search_by_key(&index, |interface| interface.index) {
            found[place].addresses.push(address);
        }
    })?;
    Ok((found, is_whole))
}

/// `RTM_GETLINK` and its answer, `RTM_NEWLINK` (linux/rtnetlink.h).
const LINKS: [u16; 2] = [18, 16];
/// `RTM_GETADDR` and its answer, `RTM_NEWADDR`.
const ADDRESSES: [u16; 2] = [22, 20];
/// The size of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Requests everything of a kind and passes the body of each answer to `see`. Returns whether
/// nothing has changed meanwhile.
fn dump(socket: &OwnedFd, [asked, answered]: [u16; 2], mut see: impl FnMut(&[u8])) -> Result<bool, Errno> {
    const REQUEST_DUMP: u16 = 0x301;
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    const INTERRUPTED: u16 = 0x10;
    /// The size of the kernel's answers in a list (`netlink_dump()`).
    const ANSWER: usize = 32 << 10;
    /// The size of `struct ifinfomsg`; `struct ifaddrmsg` is at most half as long.
    const BODY: usize = 16;
    let mut request = [0; HEADER + BODY];
    request[..4].copy_from_slice(&((HEADER + BODY) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&asked.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    retry_on_intr(|| rustix::net::send(socket, &request, SendFlags::empty()))?;
    let mut answer = vec![0; ANSWER];
    let mut was_interrupted = false;
    loop {
        let length =
            retry_on_intr(|| rustix::net::recv(socket, answer.as_mut_slice(), RecvFlags::empty()))?.0;
        for message in parts(&answer[..length], |bytes| word(bytes, 0).map(|length| length as usize)) {
            was_interrupted |= half(message, 6).is_some_and(|flags| flags & INTERRUPTED != 0);
            let body = &message[HEADER.min(message.len())..];
            match half(message, 4) {
                Some(DONE) => return Ok(!was_interrupted),
                Some(ERROR) => return Err(refusal(body)),
                Some(kind) if kind == answered => see(body),
                _ => {}
            }
        }
    }
}

/// Returns the error of a `struct nlmsgerr`.
fn refusal(body: &[u8]) -> Errno {
    let code = word(body, 0).map_or(0, u32::cast_signed);
    if code < 0 { Errno::from_raw_os_error(-code) } else { Errno::IO }
}

/// Splits bytes into parts. Each part contains its length, and starts at a multiple of 4.
fn parts(mut bytes: &[u8], length: impl Fn(&[u8]) -> Option<usize>) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = length(bytes).filter(|length| (4..=bytes.len()).contains(length))?;
        let part = &bytes[..length];
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        Some(part)
    })
}

/// Returns the type and the value of each attribute (`struct rtattr`).
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let parts = parts(bytes, |bytes| half(bytes, 0).map(usize::from));
    parts.filter_map(|part| Some((half(part, 2)?, &part[4..])))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Parses an interface without its addresses: `struct ifinfomsg` and its attributes.
fn interface(body: &[u8]) -> Option<Interface> {
    const UP: u32 = 1;
    const LOOPBACK: u32 = 8;
    const NAME: u16 = 3;
    const MTU: u16 = 4;
    let flags = word(body, 8)?;
    let mut made = Interface {
        index: word(body, 4)?,
        name: String::new(),
        mtu_bytes: 0,
        is_loopback: flags & LOOPBACK != 0,
        is_up: flags & UP != 0,
        addresses: Vec::new(),
    };
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            NAME => made.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            MTU => made.mtu_bytes = word(value, 0)?,
            _ => {}
        }
    }
    Some(made)
}

/// Parses a usable address and the number of its interface: `struct ifaddrmsg` and its attributes.
fn address(body: &[u8]) -> Option<(u32, [u8; 16])> {
    const INET: u8 = 2;
    const INET6: u8 = 10;
    /// The interface's address. On a point-to-point link it is the peer's, and `LOCAL` is the
    /// interface's.
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    const FLAGS: u16 = 8;
    // linux/if_addr.h. An optimistic address is used before it is known whether another host has it
    // (RFC 4429).
    const OPTIMISTIC: u32 = 0x04;
    const FAILED: u32 = 0x08;
    const TENTATIVE: u32 = 0x40;
    let mut flags = u32::from(*body.get(2)?);
    let mut found = [None; 2];
    for (kind, value) in attributes(body.get(8..)?) {
        match kind {
            FLAGS => flags = word(value, 0)?,
            LOCAL => found[0] = Some(value),
            ADDRESS => found[1] = Some(value),
            _ => {}
        }
    }
    if flags & FAILED != 0 || flags & (TENTATIVE | OPTIMISTIC) == TENTATIVE {
        return None;
    }
    let value = found.into_iter().flatten().next()?;
    let address = match *body.first()? {
        INET => Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).to_ipv6_mapped().octets(),
        INET6 => value.try_into().ok()?,
        _ => return None,
    };
    Some((word(body, 4)?, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = (4 + value.len()) as u16;
        let mut made = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        made.extend(value);
        made.resize(made.len().next_multiple_of(4), 0);
        made
    }

    /// Returns a `struct ifaddrmsg` with attributes.
    fn body(family: u8, flags: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let index = 7_u32.to_ne_bytes();
        [[family, 24, flags, 0].as_slice(), &index, &attributes.concat()].concat()
    }

    #[test]
    fn the_near_address_of_an_interface_is_taken() {
        let mapped = |last: u8| Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped().octets();
        let near = attribute(2, &[10, 0, 0, 1]);
        let far = attribute(1, &[10, 0, 0, 2]);
        assert_eq!(address(&body(2, 0x80, &[far.clone(), near])), Some((7, mapped(1))));
        assert_eq!(address(&body(2, 0x80, &[far])), Some((7, mapped(2))));
        let six = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(address(&body(10, 0, &[attribute(1, &six)])), Some((7, six)));
        // An interface's name is not an address, nor is a truncated attribute.
        assert_eq!(address(&body(2, 0, &[attribute(3, b"lo\0")])), None);
        assert_eq!(address(&body(2, 0, &[attribute(1, &[10, 0])])), None);
        assert_eq!(address(&[2, 24]), None);
    }

    #[test]
    fn an_address_that_may_be_anothers_is_not_used() {
        let six = attribute(1, &[0xfe; 16]);
        for (flags, is_used) in [(0x40, false), (0x44, true), (0x08, false), (0x48, false), (0x80, true)] {
            assert_eq!(address(&body(10, flags, std::slice::from_ref(&six))).is_some(), is_used, "{flags:x}");
            let long = attribute(8, &u32::from(flags).to_ne_bytes());
            let found = address(&body(10, 0, &[six.clone(), long]));
            assert_eq!(found.is_some(), is_used, "{flags:x} as an attribute");
        }
    }

    #[test]
    fn loopback_is_found_as_the_system_has_it() {
        let found = match interfaces() {
            Ok(found) => found,
            Err(error) => return eprintln!("SKIPPED: no rtnetlink socket: {error}"),
        };
        let lo = found.iter().find(|interface| interface.is_loopback).expect("every namespace has one");
        assert_eq!(lo.name, "lo");
        let localhost = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
        assert_eq!(lo.addresses.contains(&localhost), lo.is_up, "{lo:?}");
        let socket = watch().expect("another socket");
        assert!(!drain(&socket), "nothing has changed");
    }
}
