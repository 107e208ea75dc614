//! One host with two processes: its ports, the links between them, and messages under way.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use cm::Space;
use cm::host::{Claim, Host, Link, Memory, Port};
use rustix::io::Errno;

/// Links between two processes at a time: from each to each.
pub(super) const WAYS: u8 = 4;

/// A port of the own address that no link leads to: there is no room for one.
pub(super) const NO_ROOM: u16 = 7473;

/// A message, and to which process it goes.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) to: usize,
    pub(super) link: Link,
    pub(super) bytes: Vec<u8>,
}

/// A port that somebody has.
struct Taken {
    number: u32,
    space: Space,
    address: SocketAddr,
    is_shared: bool,
    /// The process that requests go to.
    listener: Option<usize>,
}

/// What both processes share.
#[derive(Default)]
pub(super) struct Network {
    pub(super) now: Duration,
    pub(super) under_way: VecDeque<Sent>,
    /// Messages that were sent, the latest ones.
    pub(super) history: VecDeque<Sent>,
    taken: Vec<Taken>,
    /// How often each link has broken.
    breaks: [u64; WAYS as usize],
    /// Whether random numbers come again soon, and whether ports are InfiniBand's.
    pub(super) is_narrow: bool,
    pub(super) is_infiniband: bool,
    drawn: u32,
    holds: u32,
    port: u16,
}

pub(super) type Shared = Rc<RefCell<Network>>;

/// Messages that are remembered.
const HISTORY: usize = 16;

impl Network {
    /// The link of a way as it is now.
    pub(super) fn link(&self, way: u8) -> Link {
        Link(self.breaks[usize::from(way)] * u64::from(WAYS) + u64::from(way))
    }

    /// The process at the other end of a link.
    pub(super) fn peer(link: Link, process: usize) -> usize {
        let way = (link.0 % u64::from(WAYS)) as usize;
        if way / 2 == process { way % 2 } else { way / 2 }
    }

    /// A link breaks, with what is under way on it. Returns what it was.
    pub(super) fn breaks(&mut self, way: u8) -> Link {
        let link = self.link(way);
        self.breaks[usize::from(way)] += 1;
        self.under_way.retain(|sent| sent.link != link);
        link
    }

    /// Whether nobody has a port.
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

/// A process, as its manager sees it.
pub(super) struct Process {
    pub(super) network: Shared,
    pub(super) number: usize,
    pub(super) signals: HashMap<u32, bool>,
}

/// A port that a process has.
pub(super) struct Hold {
    network: Shared,
    number: u32,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.network.borrow_mut().taken.retain(|taken| taken.number != self.number);
    }
}

/// Whether two addresses of a port are the same for one who asks for it.
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
        assert!(own.listener.is_none(), "who listens shares with nobody");
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
        // Every other one comes again: a manager that wants one that it does not have finds it.
        if network.is_narrow && drawn.is_multiple_of(2) {
            drawn / 2 % 8
        } else {
            drawn.wrapping_mul(0x9e37_79b9)
        }
    }
}

/// A program's memory: a page that is full of a byte, but for the answer to a command.
pub(super) struct Page {
    fill: u8,
    /// Where the answer may be written, and how many bytes it may have.
    room: (u64, usize),
    answer: RefCell<Vec<u8>>,
    /// Whether something was to be outside.
    pub(super) has_refused: Cell<bool>,
}

/// Where the page begins, and how long it is.
pub(super) const BASE: u64 = 0x1000;
pub(super) const PAGE: u64 = 4096;

impl Page {
    pub(super) fn new(fill: u8, room: (u64, usize)) -> Self {
        Self { fill, room, answer: RefCell::default(), has_refused: Cell::new(false) }
    }

    /// Refuses a piece of memory that is not in the page.
    fn check(&self, address: u64, bytes: usize) -> Result<(), Errno> {
        let at = address.checked_sub(BASE).filter(|at| *at <= PAGE && bytes as u64 <= PAGE - at);
        at.map(drop).ok_or_else(|| {
            self.has_refused.set(true);
            Errno::FAULT
        })
    }

    /// The first bytes of the answer, which has as many.
    pub(super) fn answer<const N: usize>(&self) -> [u8; N] {
        *self.answer.borrow().first_chunk().expect("an answer of that length")
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
        assert_eq!(address, to, "an answer is written where the command says");
        assert!(from.len() <= room, "{} bytes for a room of {room}", from.len());
        self.check(address, from.len())?;
        *self.answer.borrow_mut() = from.to_vec();
        Ok(())
    }
}
