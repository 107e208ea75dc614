//! One host with two processes: its ports, the links between them, and messages under way.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use cm::Space;
use cm::host::{Claim, Host, Link, Memory, Port};
use rustix::io::Errno;

/// The number of links between the two processes: from each process to each.
pub(super) const WAYS: u8 = 4;

/// A port to which no link can be opened: the host fails with EMFILE.
pub(super) const NO_ROOM: u16 = 7473;

/// A message, its link, and the process that receives it.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) to: usize,
    pub(super) link: Link,
    pub(super) bytes: Vec<u8>,
}

/// A port that a process holds.
struct Taken {
    number: u32,
    space: Space,
    address: SocketAddr,
    is_shared: bool,
    /// The process that receives requests.
    listener: Option<usize>,
}

/// The state that both processes share.
#[derive(Default)]
pub(super) struct Network {
    pub(super) now: Duration,
    pub(super) under_way: VecDeque<Sent>,
    /// The latest messages that were sent.
    pub(super) history: VecDeque<Sent>,
    taken: Vec<Taken>,
    /// How often each link has broken.
    breaks: [u64; WAYS as usize],
    /// Whether random numbers repeat soon.
    pub(super) is_narrow: bool,
    /// Whether ports are InfiniBand ports.
    pub(super) is_infiniband: bool,
    drawn: u32,
    holds: u32,
    port: u16,
}

pub(super) type Shared = Rc<RefCell<Network>>;

/// The number of messages in the history.
const HISTORY: usize = 16;

impl Network {
    /// Returns the current link of a way.
    pub(super) fn link(&self, way: u8) -> Link {
        Link(self.breaks[usize::from(way)] * u64::from(WAYS) + u64::from(way))
    }

    /// Returns the peer of a process on a link.
    pub(super) fn peer(link: Link, process: usize) -> usize {
        let way = (link.0 % u64::from(WAYS)) as usize;
        if way / 2 == process { way % 2 } else { way / 2 }
    }

    /// Breaks a link and drops the messages on it. Returns the broken link.
    pub(super) fn breaks(&mut self, way: u8) -> Link {
        let link = self.link(way);
        self.breaks[usize::from(way)] += 1;
        self.under_way.retain(|sent| sent.link != link);
        link
    }

    /// Returns whether no port is held.
    pub(super) fn is_free(&self) -> bool {
        self.taken.is_empty()
    }

    fn send(&mut self, sent: Sent) {
        let way = (sent.link.0 % u64::from(WAYS)) as u8;
        if sent.link != self.link(way) {
            return;
        }
        self.history.push_back(sent.clone());
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        self.under_way.push_back(sent);
    }
}

/// A process as the host of its manager.
pub(super) struct Process {
    pub(super) network: Shared,
    pub(super) number: usize,
    pub(super) signals: HashMap<u32, bool>,
}

/// A port that a process holds, until this value is dropped.
pub(super) struct Hold {
    network: Shared,
    number: u32,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.network.borrow_mut().taken.retain(|taken| taken.number != self.number);
    }
}

/// Returns whether two addresses conflict: the ports are equal, and the IP addresses are equal or
/// one of them is unspecified.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && (a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified())
}

impl Host for Process {
    type Hold = Hold;

    fn port_of(&mut self, address: IpAddr) -> Result<Port, Errno> {
        let is_own = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])].contains(&address);
        if !is_own && !address.is_loopback() {
            return Err(Errno::ADDRNOTAVAIL);
        }
        let gid = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let is_infiniband = self.network.borrow().is_infiniband;
        let lid = if is_infiniband { 0x11 } else { 0 };
        Ok(Port { guid: 7, number: 1, gid, gid_index: 3, lid, is_infiniband, mtu: 3 })
    }

    fn source_for(&mut self, destination: IpAddr) -> Result<IpAddr, Errno> {
        if destination.is_multicast() {
            return Ok([10, 0, 0, 1].into());
        }
        self.port_of(destination).map(|_| destination).map_err(|_| Errno::NETUNREACH)
    }

    fn take(&mut self, claim: &Claim) -> Result<(u16, Hold), Errno> {
        let mut network = self.network.borrow_mut();
        let port = match claim.address.port() {
            0 => {
                network.port += 1;
                40_000 + network.port
            }
            1..1024 => return Err(Errno::ACCESS),
            port => port,
        };
        let address = SocketAddr::new(claim.address.ip(), port);
        let is_other = |taken: &Taken| {
            taken.space == claim.space
                && !(taken.is_shared && claim.is_shared)
                && overlap(taken.address, address)
        };
        if network.taken.iter().any(is_other) {
            return Err(Errno::ADDRINUSE);
        }
        network.holds += 1;
        let number = network.holds;
        let is_shared = claim.is_shared;
        network.taken.push(Taken { number, space: claim.space, address, is_shared, listener: None });
        Ok((port, Hold { network: Rc::clone(&self.network), number }))
    }

    fn mark(&mut self, hold: &mut Hold, is_shared: bool, _: bool) -> Result<(), Errno> {
        let mut network = self.network.borrow_mut();
        let own = network.taken.iter_mut().find(|taken| taken.number == hold.number).unwrap();
        assert!(own.listener.is_none(), "a listener does not share its port");
        own.is_shared = is_shared;
        Ok(())
    }

    fn listen(&mut self, hold: &mut Hold) -> Result<(), Errno> {
        let mut network = self.network.borrow_mut();
        let at = network.taken.iter().position(|taken| taken.number == hold.number).unwrap();
        let own = &network.taken[at];
        let is_other = |taken: &Taken| {
            taken.number != own.number
                && taken.space == own.space
                && (own.is_shared || taken.listener.is_some())
                && overlap(taken.address, own.address)
        };
        if network.taken.iter().any(is_other) {
            return Err(Errno::ADDRINUSE);
        }
        network.taken[at].is_shared = false;
        network.taken[at].listener = Some(self.number);
        Ok(())
    }

    fn reach(&mut self, space: Space, destination: SocketAddr) -> Result<Option<Link>, Errno> {
        if destination.port() == NO_ROOM {
            return Err(Errno::MFILE);
        }
        let network = self.network.borrow();
        let mut listeners = network
            .taken
            .iter()
            .filter(|taken| taken.space == space && overlap(taken.address, destination))
            .filter_map(|taken| taken.listener);
        Ok(listeners.next().map(|listener| network.link((self.number * 2 + listener) as u8)))
    }

    fn send(&mut self, link: Link, message: &[u8]) {
        let to = Network::peer(link, self.number);
        self.network.borrow_mut().send(Sent { to, link, bytes: message.to_vec() });
    }

    fn signal(&mut self, channel: u32, has_events: bool) {
        self.signals.insert(channel, has_events);
    }

    fn now(&self) -> Duration {
        self.network.borrow().now
    }

    fn random(&mut self) -> u32 {
        let mut network = self.network.borrow_mut();
        network.drawn = network.drawn.wrapping_add(1);
        let drawn = network.drawn;
        // Every second number is new, so a manager that needs an unused number finds one.
        if network.is_narrow && drawn.is_multiple_of(2) {
            drawn / 2 % 8
        } else {
            drawn.wrapping_mul(0x9e37_79b9)
        }
    }
}

/// A program's memory: a page that is filled with one byte, except for the response to a command.
pub(super) struct Page {
    fill: u8,
    /// The address of the response, and its largest size in bytes.
    room: (u64, usize),
    answer: RefCell<Vec<u8>>,
    /// Whether an access outside of the page was refused.
    pub(super) has_refused: Cell<bool>,
}

/// The address of the page, and its size in bytes.
pub(super) const BASE: u64 = 0x1000;
pub(super) const PAGE: u64 = 4096;

impl Page {
    pub(super) fn new(fill: u8, room: (u64, usize)) -> Self {
        Self { fill, room, answer: RefCell::default(), has_refused: Cell::new(false) }
    }

    /// Checks that an access is inside the page.
    fn check(&self, address: u64, bytes: usize) -> Result<(), Errno> {
        let at = address.checked_sub(BASE).filter(|at| *at <= PAGE && bytes as u64 <= PAGE - at);
        at.map(drop).ok_or_else(|| {
            self.has_refused.set(true);
            Errno::FAULT
        })
    }

    /// Returns the first `N` bytes of the response. Panics if it is shorter.
    pub(super) fn answer<const N: usize>(&self) -> [u8; N] {
        *self.answer.borrow().first_chunk().expect("the response has this length")
    }
}

impl Memory for Page {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        self.check(address, to.len())?;
        to.fill(self.fill);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        let (to, room) = self.room;
        assert_eq!(address, to, "the response is at the address of the command");
        assert!(
            from.len() <= room,
            "a response of {} bytes, but the command has room for {room}",
            from.len()
        );
        self.check(address, from.len())?;
        *self.answer.borrow_mut() = from.to_vec();
        Ok(())
    }
}
