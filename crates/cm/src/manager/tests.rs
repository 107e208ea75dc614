//! Managers of several processes, over a network that loses messages on demand.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;

use super::*;
use crate::abi::EventKind;
use crate::abi::Space;
use crate::abi::sockaddr::{self, STORAGE_BYTES};
use crate::host::{Claim, Link, Port};
use crate::identifier::Stage;
use crate::times::{BUSY_TIME, CALL_TIME, CALLS, RESPONSE_TIME, TIME_WAIT, TRIES};
use crate::wire;
use crate::wire::Mad;

/// The state that all processes share.
#[derive(Default)]
struct Network {
    now: Duration,
    ports: Vec<(Space, SocketAddr)>,
    listeners: Vec<(Space, SocketAddr, usize)>,
    /// Messages on the way: their receiver, and the receiver's link.
    under_way: VecDeque<(usize, Link, Vec<u8>)>,
    /// How many of the next messages are lost.
    loses: usize,
    sent: usize,
    drawn: u32,
    given: u16,
    /// Whether every listening process's queue of connections is full.
    is_full: bool,
}

type Shared = Rc<RefCell<Network>>;

struct Process {
    network: Shared,
    number: usize,
    signals: HashMap<u32, bool>,
}

struct Hold {
    network: Shared,
    at: (Space, SocketAddr),
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut network = self.network.borrow_mut();
        network.ports.retain(|port| *port != self.at);
        network.listeners.retain(|(space, address, _)| (*space, *address) != self.at);
    }
}

/// The link from one process to another; both use the same.
fn link(from: usize, to: usize) -> Link {
    Link((from * 100 + to) as u64)
}

impl Host for Process {
    type Hold = Hold;

    fn port_of(&mut self, address: IpAddr) -> Result<Port, Errno> {
        if address != IpAddr::from([10, 0, 0, 1]) && !address.is_loopback() {
            return Err(Errno::ADDRNOTAVAIL);
        }
        let gid = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        Ok(Port { guid: 7, number: 1, gid, gid_index: 3, lid: 0, is_infiniband: false, mtu: 3 })
    }

    fn source_for(&mut self, destination: IpAddr) -> Result<IpAddr, Errno> {
        self.port_of(destination).map(|_| destination).map_err(|_| Errno::NETUNREACH)
    }

    fn take(&mut self, claim: &Claim) -> Result<(u16, Hold), Errno> {
        let mut network = self.network.borrow_mut();
        network.given += 1;
        let port = if claim.address.port() == 0 { 40_000 + network.given } else { claim.address.port() };
        let at = (claim.space, SocketAddr::new(claim.address.ip(), port));
        if network.ports.contains(&at) {
            return Err(Errno::ADDRINUSE);
        }
        network.ports.push(at);
        Ok((port, Hold { network: Rc::clone(&self.network), at }))
    }

    fn mark(&mut self, _: &mut Hold, _: bool, _: bool) -> Result<(), Errno> {
        Ok(())
    }

    fn listen(&mut self, hold: &mut Hold) -> Result<(), Errno> {
        let (space, address) = hold.at;
        self.network.borrow_mut().listeners.push((space, address, self.number));
        Ok(())
    }

    fn reach(&mut self, space: Space, destination: SocketAddr) -> Result<Option<Link>, Errno> {
        let network = self.network.borrow();
        if network.is_full {
            return Err(Errno::AGAIN);
        }
        let is_it = |(of, at, _): &&(Space, SocketAddr, usize)| {
            *of == space
                && at.port() == destination.port()
                && (at.ip() == destination.ip() || at.ip().is_unspecified())
        };
        Ok(network.listeners.iter().find(is_it).map(|(_, _, process)| link(self.number, *process)))
    }

    fn send(&mut self, link: Link, message: &[u8]) {
        let mut network = self.network.borrow_mut();
        network.sent += 1;
        if network.loses > 0 {
            network.loses -= 1;
            return;
        }
        let a = (link.0 / 100) as usize;
        let b = (link.0 % 100) as usize;
        let to = if a == self.number { b } else { a };
        network.under_way.push_back((to, link, message.to_vec()));
    }

    fn signal(&mut self, channel: u32, has_events: bool) {
        self.signals.insert(channel, has_events);
    }

    fn now(&self) -> Duration {
        self.network.borrow().now
    }

    fn random(&mut self) -> u32 {
        let mut network = self.network.borrow_mut();
        network.drawn = network.drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        network.drawn
    }
}

/// A program's memory: a page that begins at `BASE`.
struct Page(RefCell<Vec<u8>>);

const BASE: u64 = 0x1000;

impl Memory for Page {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        let page = self.0.borrow();
        let at = address.checked_sub(BASE).ok_or(Errno::FAULT)? as usize;
        to.copy_from_slice(page.get(at..at + to.len()).ok_or(Errno::FAULT)?);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        let mut page = self.0.borrow_mut();
        let at = address.checked_sub(BASE).ok_or(Errno::FAULT)? as usize;
        page.get_mut(at..at + from.len()).ok_or(Errno::FAULT)?.copy_from_slice(from);
        Ok(())
    }
}

/// Processes, each with its manager and a channel with the number 1.
struct World {
    network: Shared,
    processes: Vec<Manager<Process>>,
}

const CHANNEL: u32 = 1;

/// The parts of an event that a program reads.
#[derive(Debug, PartialEq)]
struct Seen {
    kind: u32,
    status: i32,
    uid: u64,
    id: u32,
    parameters: Vec<u8>,
}

impl Seen {
    fn private_data(&self) -> &[u8] {
        &self.parameters[8..8 + usize::from(self.parameters[264])]
    }
}

impl World {
    fn new(processes: usize) -> Self {
        let network = Shared::default();
        let make = |number| {
            let mut manager =
                Manager::new(Process { network: Rc::clone(&network), number, signals: HashMap::new() });
            manager.open(CHANNEL);
            manager
        };
        Self { processes: (0..processes).map(make).collect(), network: Rc::clone(&network) }
    }

    /// Carries out a command of a process and returns its answer.
    fn command(&mut self, process: usize, number: u32, body: &[u8], room: u16) -> Result<Vec<u8>, Errno> {
        let mut bytes = number.to_ne_bytes().to_vec();
        bytes.extend((body.len() as u16).to_ne_bytes());
        bytes.extend(room.to_ne_bytes());
        bytes.extend(body);
        let page = Page(RefCell::new(vec![0; 4096]));
        let find = |fd| (fd == 5).then_some(CHANNEL);
        if self.processes[process].write(CHANNEL, &bytes, &page, find)? == Outcome::NoEvent {
            assert_eq!(number, 12, "only a program that asks for an event waits");
            return Err(Errno::AGAIN);
        }
        Ok(page.0.into_inner()[..room.into()].to_vec())
    }

    fn create(&mut self, process: usize, uid: u64, space: Space) -> u32 {
        self.create_of(process, uid, space, 0)
    }

    /// An identifier for a transport service, as `enum ibv_qp_type` has it.
    fn create_of(&mut self, process: usize, uid: u64, space: Space, service: u8) -> u32 {
        let mut body = [uid.to_ne_bytes(), BASE.to_ne_bytes()].concat();
        body.extend((space as u16).to_ne_bytes());
        body.extend([service, 0, 0, 0, 0, 0]);
        let answer = self.command(process, 0, &body, 4).unwrap();
        u32::from_ne_bytes(answer.try_into().unwrap())
    }

    fn destroy(&mut self, process: usize, id: u32) -> Result<u32, Errno> {
        let body = [&BASE.to_ne_bytes()[..], &id.to_ne_bytes(), &[0; 4]].concat();
        self.command(process, 1, &body, 4).map(|answer| u32::from_ne_bytes(answer.try_into().unwrap()))
    }

    fn bind(&mut self, process: usize, id: u32, address: &str) -> Result<(), Errno> {
        let mut to = [0; 28];
        sockaddr::write(&mut to, Some(address.parse().unwrap()));
        let body = [&[0; 8][..], &to, &id.to_ne_bytes()].concat();
        self.command(process, 2, &body, 0).map(drop)
    }

    fn resolve(&mut self, process: usize, id: u32, address: &str) -> Result<(), Errno> {
        let mut to = [0; 28];
        sockaddr::write(&mut to, Some(address.parse().unwrap()));
        let body = [&[0; 28][..], &to, &id.to_ne_bytes(), &[0; 4]].concat();
        self.command(process, 3, &body, 0)?;
        Ok(())
    }

    fn listen(&mut self, process: usize, address: &str, backlog: i32, space: Space) -> u32 {
        let id = self.create(process, 77, space);
        self.bind(process, id, address).unwrap();
        self.command(process, 7, &[id.to_ne_bytes(), backlog.to_ne_bytes()].concat(), 0).unwrap();
        id
    }

    fn parameters(qp: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 272];
        bytes[..4].copy_from_slice(&qp.to_ne_bytes());
        bytes[8..8 + data.len()].copy_from_slice(data);
        bytes[264..].copy_from_slice(&[data.len() as u8, 0, 4, 3, 1, 7, 6, 1]);
        bytes
    }

    fn connect(&mut self, process: usize, id: u32, data: &[u8]) -> Result<(), Errno> {
        self.connect_by(process, id, 0x42, data)
    }

    fn connect_by(&mut self, process: usize, id: u32, qp: u32, data: &[u8]) -> Result<(), Errno> {
        let body = [&Self::parameters(qp, data)[..], &id.to_ne_bytes(), &[0; 4]].concat();
        self.command(process, 6, &body, 0).map(drop)
    }

    fn accept(&mut self, process: usize, id: u32, uid: u64, data: &[u8]) -> Result<(), Errno> {
        let body =
            [&uid.to_ne_bytes()[..], &Self::parameters(0x43, data), &id.to_ne_bytes(), &[0; 4]].concat();
        self.command(process, 8, &body, 0).map(drop)
    }

    fn confirm(&mut self, process: usize, id: u32) -> Result<(), Errno> {
        let body = [&[0; 280][..], &id.to_ne_bytes(), &[0; 4]].concat();
        self.command(process, 8, &body, 0).map(drop)
    }

    fn with_id(&mut self, process: usize, command: u32, id: u32) -> Result<(), Errno> {
        self.command(process, command, &[id.to_ne_bytes(), [0; 4]].concat(), 0).map(drop)
    }

    fn disconnect(&mut self, process: usize, id: u32) -> Result<(), Errno> {
        self.with_id(process, 10, id)
    }

    /// Moves an identifier to a channel, from the channel of a descriptor.
    fn migrate(
        &mut self,
        process: usize,
        id: u32,
        to: u32,
        descriptors: impl FnOnce(i32) -> Option<u32>,
    ) -> Result<(), Errno> {
        let body = [&BASE.to_ne_bytes()[..], &id.to_ne_bytes(), &5_i32.to_ne_bytes()].concat();
        let command = [&18_u32.to_ne_bytes()[..], &[16, 0], &[4, 0], &body].concat();
        self.processes[process].write(to, &command, &Page(RefCell::new(vec![0; 64])), descriptors).map(drop)
    }

    /// Returns the next event of a process, after all messages have arrived.
    fn event(&mut self, process: usize) -> Option<Seen> {
        self.deliver();
        let has_events = self.processes[process].host().signals.get(&CHANNEL).copied().unwrap_or(false);
        let answer = self.command(process, 12, &BASE.to_ne_bytes(), 336);
        assert_eq!(answer.is_ok(), has_events, "the channel says whether there are any");
        let bytes = answer.ok()?;
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        Some(Seen {
            uid: u64::from_ne_bytes(bytes[..8].try_into().unwrap()),
            id: word(8),
            kind: word(12),
            status: word(16).cast_signed(),
            parameters: bytes[20..324].to_vec(),
        })
    }

    fn kinds(&mut self, process: usize) -> Vec<u32> {
        std::iter::from_fn(|| self.event(process).map(|seen| seen.kind)).collect()
    }

    fn deliver(&mut self) {
        loop {
            let Some((to, link, bytes)) = self.network.borrow_mut().under_way.pop_front() else { return };
            self.processes[to].arrived(link, &bytes);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.network.borrow_mut().now += time;
        for process in &mut self.processes {
            process.tick();
        }
        self.deliver();
    }

    /// Passes the time in which a listener is searched for.
    fn call_in_vain(&mut self) {
        (0..=CALLS).for_each(|_| self.pass(CALL_TIME));
    }

    /// An identifier whose route to an address is resolved.
    fn routed(&mut self, process: usize, address: &str, space: Space) -> u32 {
        let id = self.create(process, 88, space);
        self.route(process, id, address);
        id
    }

    fn route(&mut self, process: usize, id: u32, address: &str) {
        self.resolve(process, id, address).unwrap();
        assert_eq!(self.event(process).unwrap().kind, EventKind::AddressResolved as u32);
        self.with_id(process, 4, id).unwrap();
        assert_eq!(self.event(process).unwrap().kind, EventKind::RouteResolved as u32);
    }

    /// Makes a connection from process 1 to process 0, and returns both identifiers.
    fn connected(&mut self) -> (u32, u32) {
        self.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
        let client = self.routed(1, "10.0.0.1:7471", Space::Tcp);
        self.connect(1, client, b"hello").unwrap();
        let request = self.event(0).unwrap();
        self.accept(0, request.id, 99, b"welcome").unwrap();
        assert_eq!(self.event(1).unwrap().kind, EventKind::ConnectResponse as u32);
        self.confirm(1, client).unwrap();
        assert_eq!(self.event(0).unwrap().kind, EventKind::Established as u32);
        (client, request.id)
    }

    fn attributes(&mut self, process: usize, id: u32, state: u32) -> Result<Vec<u32>, Errno> {
        let body = [&BASE.to_ne_bytes()[..], &id.to_ne_bytes(), &state.to_ne_bytes()].concat();
        let bytes = self.command(process, 11, &body, 144)?;
        Ok(bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect())
    }
}

#[test]
fn a_connection_is_made_and_ended() {
    let mut world = World::new(2);
    let listener = world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, b"hello").unwrap();
    let request = world.event(0).unwrap();
    assert_eq!((request.kind, request.status, request.uid), (EventKind::ConnectRequest as u32, 0, 77));
    assert_ne!(request.id, listener);
    assert_eq!(request.private_data().len(), 56, "the whole field");
    assert_eq!(&request.private_data()[..8], b"hello\0\0\0");
    assert_eq!(&request.parameters[..4], &0x42_u32.to_ne_bytes());
    assert_eq!(request.parameters[265..271], [0, 3, 4, 1, 7, 6], "the peer's values, seen from this side");
    // The first packet sequence numbers of both sides are known on both sides.
    assert!(world.attributes(0, request.id, 1).is_ok(), "INIT");
    world.accept(0, request.id, 99, b"welcome").unwrap();
    let response = world.event(1).unwrap();
    assert_eq!((response.kind, response.uid, response.id), (EventKind::ConnectResponse as u32, 88, client));
    assert_eq!((response.private_data().len(), &response.private_data()[..7]), (196, &b"welcome"[..]));
    let [receiver, sender] = [(0, request.id), (1, client)].map(|(process, id)| {
        let rtr = world.attributes(process, id, 2).unwrap();
        let rts = world.attributes(process, id, 3).unwrap();
        (rtr[6], rts[7], rtr[8], rtr[3])
    });
    assert_eq!((receiver.0, receiver.1), (sender.1, sender.0), "sequence numbers of each other");
    assert_eq!((receiver.2, sender.2), (0x42, 0x43), "queue pairs of each other");
    assert_eq!((receiver.3, sender.3), (3, 3), "one MTU");
    world.confirm(1, client).unwrap();
    assert_eq!(world.kinds(0), [EventKind::Established as u32]);
    assert_eq!(world.kinds(1), []);
    world.disconnect(1, client).unwrap();
    assert_eq!(world.kinds(0), [EventKind::Disconnected as u32]);
    assert_eq!(world.kinds(1), [], "the peer has not answered");
    world.disconnect(0, request.id).unwrap();
    assert_eq!(world.kinds(1), [EventKind::Disconnected as u32]);
    assert_eq!(world.disconnect(1, client), Ok(()), "as the kernel");
    world.pass(TIME_WAIT);
    assert_eq!(world.kinds(0), [EventKind::TimeWaitExit as u32]);
    assert_eq!(world.kinds(1), [EventKind::TimeWaitExit as u32]);
    assert_eq!(world.destroy(1, client), Ok(5), "events that were reported");
    assert_eq!(world.destroy(1, client), Err(Errno::NOENT));
    assert_eq!(world.destroy(0, request.id), Ok(3));
    assert_eq!(world.destroy(0, listener), Ok(1));
    assert!(world.network.borrow().ports.is_empty(), "no port is left taken");
}

#[test]
fn who_sends_nothing_again_needs_no_attributes_for_it() {
    /// `IBV_QPT_RC` and `IBV_QPT_UC`; attributes for RTR and for RTS that RC alone has.
    const SERVICES: [u8; 2] = [2, 3];
    const OF_RC: [u32; 2] = [1 << 15 | 1 << 17, 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13];
    for service in SERVICES {
        let mut world = World::new(2);
        world.listen(0, "0.0.0.0:7471", 5, Space::Ib);
        let client = world.create_of(1, 88, Space::Ib, service);
        world.route(1, client, "10.0.0.1:7471");
        world.connect(1, client, &[]).unwrap();
        let request = world.event(0).unwrap().id;
        world.accept(0, request, 99, &[]).unwrap();
        assert_eq!(world.kinds(1), [EventKind::ConnectResponse as u32]);
        for (process, id) in [(0, request), (1, client)] {
            let masks = [2, 3].map(|state| world.attributes(process, id, state).unwrap()[0]);
            let found = [0, 1].map(|at| masks[at] & OF_RC[at]);
            assert_eq!(found, if service == SERVICES[0] { OF_RC } else { [0; 2] }, "{process}");
        }
    }
}

#[test]
fn nobody_listens() {
    let mut world = World::new(2);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    assert_eq!(world.event(1), None, "a process may be about to listen");
    world.call_in_vain();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Rejected as u32, 8));
    let early = world.routed(1, "10.0.0.1:7473", Space::Tcp);
    world.connect(1, early, &[]).unwrap();
    world.pass(CALL_TIME);
    world.listen(0, "10.0.0.1:7473", 5, Space::Tcp);
    world.pass(CALL_TIME);
    assert_eq!(world.event(0).unwrap().kind, EventKind::ConnectRequest as u32);
    // The listener has ended while the request was on the way.
    let listener = world.listen(0, "10.0.0.1:7471", 5, Space::Tcp);
    let other = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, other, &[]).unwrap();
    world.destroy(0, listener).unwrap();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status, event.id), (EventKind::Rejected as u32, 8, other));
}

#[test]
fn who_has_many_connections_to_take_is_asked_again() {
    let mut world = World::new(2);
    for (space, port) in [(Space::Tcp, 7471), (Space::Udp, 7472)] {
        world.network.borrow_mut().is_full = true;
        world.listen(0, &format!("0.0.0.0:{port}"), 5, space);
        let client = world.routed(1, &format!("10.0.0.1:{port}"), space);
        assert_eq!(world.connect(1, client, &[]), Ok(()));
        world.call_in_vain();
        assert_eq!(world.event(1), None, "it may take them yet");
        world.network.borrow_mut().is_full = false;
        world.pass(BUSY_TIME);
        assert_eq!(world.event(0).unwrap().kind, EventKind::ConnectRequest as u32);
        let other = world.routed(1, &format!("10.0.0.1:{port}"), space);
        world.network.borrow_mut().is_full = true;
        assert_eq!(world.connect_by(1, other, 0x44, &[]), Ok(()));
        (0..=CALLS).for_each(|_| world.pass(BUSY_TIME));
        let event = world.event(1).unwrap();
        assert_eq!((event.kind, event.status, event.id), (EventKind::Unreachable as u32, -110, other));
        world.network.borrow_mut().is_full = false;
    }
}

#[test]
fn a_program_rejects() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    let body = [&request.id.to_ne_bytes()[..], &[4, 28, 0, 0], b"busy", &[0; 252]].concat();
    world.command(0, 9, &body, 0).unwrap();
    assert_eq!(world.command(0, 9, &body, 0), Err(Errno::INVAL), "there is no peer left to reject");
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Rejected as u32, 28));
    assert_eq!((event.private_data().len(), &event.private_data()[..5]), (148, &b"busy\0"[..]));
    // A destroyed identifier rejects as well.
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    world.destroy(0, request.id).unwrap();
    assert_eq!(world.event(1).unwrap().status, 28);
    // A closed channel also rejects the requests that it has not given to its program.
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    world.deliver();
    world.processes[0].close(CHANNEL);
    assert_eq!(world.event(1).unwrap().status, 28);
}

#[test]
fn a_late_rejection_rejects_no_other_connection() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    world.deliver();
    // Rejections by processes without such a connection carry no communication ID of their own.
    let reasons = [wire::RejectReason::INVALID_SERVICE_ID, wire::RejectReason::TIMEOUT];
    for (reason, remote_communication_id) in reasons.into_iter().zip([4711, 0]) {
        let reject = wire::Reject { remote_communication_id, reason, ..Default::default() };
        world.processes[1].arrived(link(1, 0), &Mad { transaction: 1, message: reject.into() }.encode());
    }
    assert_eq!(world.event(1), None);
    // A client that gives up names only its own communication ID.
    let request = world.event(0).unwrap();
    world.destroy(1, client).unwrap();
    world.deliver();
    assert_eq!(world.accept(0, request.id, 1, &[]), Err(Errno::INVAL), "the request is over");
}

#[test]
fn a_rejection_ends_a_connection_whose_rtu_was_lost() {
    for disconnects in [false, true] {
        let mut world = World::new(2);
        world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
        let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
        world.connect(1, client, &[]).unwrap();
        let request = world.event(0).unwrap();
        world.accept(0, request.id, 1, &[]).unwrap();
        assert_eq!(world.kinds(1), [EventKind::ConnectResponse as u32]);
        world.network.borrow_mut().loses = 1 + usize::from(disconnects);
        world.confirm(1, client).unwrap();
        if disconnects {
            world.disconnect(1, client).unwrap();
        }
        world.destroy(0, request.id).unwrap();
        let event = world.event(1).unwrap();
        assert_eq!((event.kind, event.status), (EventKind::Rejected as u32, 28));
        assert_eq!(world.disconnect(1, client), Ok(()));
        world.pass(TIME_WAIT);
        assert_eq!(world.kinds(1), [], "the kernel tells of no end of the wait");
        assert_eq!(world.processes[1].tick(), None);
    }
}

#[test]
fn private_data_has_a_limit() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    assert_eq!(world.connect(1, client, &[1; 57]), Err(Errno::INVAL));
    assert_eq!(world.connect(1, client, &[1; 56]), Ok(()));
    let request = world.event(0).unwrap();
    assert_eq!(request.private_data(), [1; 56]);
    assert_eq!(world.accept(0, request.id, 1, &[2; 196]), Ok(()));
    assert_eq!(world.event(1).unwrap().private_data(), [2; 196]);
}

#[test]
fn who_cannot_be_accepted_is_rejected() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    assert_eq!(world.accept(0, request.id, 1, &[2; 197]), Err(Errno::INVAL), "it is too long");
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Rejected as u32, 28));
    assert_eq!(world.accept(0, request.id, 1, &[]), Err(Errno::INVAL), "the request is rejected");
    // A request that is accepted twice is rejected, too.
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    world.accept(0, request.id, 1, &[]).unwrap();
    assert_eq!(world.accept(0, request.id, 1, &[]), Err(Errno::INVAL));
    assert_eq!(world.kinds(1), [EventKind::ConnectResponse as u32, EventKind::Rejected as u32]);
    assert_eq!(world.kinds(0), []);
    // The same for a datagram identifier.
    world.listen(0, "0.0.0.0:7472", 5, Space::Udp);
    let client = world.routed(1, "10.0.0.1:7472", Space::Udp);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    assert_eq!(world.accept(0, request.id, 1, &[2; 137]), Err(Errno::INVAL));
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Unreachable as u32, 2));
}

#[test]
fn a_peer_says_how_often_to_try_and_by_which_service() {
    let mut world = World::new(2);
    let listener = world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let set = |world: &mut World, process: usize, id: u32, name: u32, value: u8| {
        let mut body = BASE.to_ne_bytes().to_vec();
        body.extend([id, 0, name, 1].map(u32::to_ne_bytes).concat());
        let mut bytes = 14_u32.to_ne_bytes().to_vec();
        bytes.extend(24_u16.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(body);
        world.processes[process].write(CHANNEL, &bytes, &Page(RefCell::new(vec![value])), |_| None).unwrap();
    };
    set(&mut world, 0, listener, 0, 0x20);
    let client = world.create(1, 88, Space::Tcp);
    set(&mut world, 1, client, 0, 0x68);
    set(&mut world, 1, client, 3, 15);
    world.resolve(1, client, "10.0.0.1:7471").unwrap();
    world.with_id(1, 4, client).unwrap();
    world.kinds(1);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    let mut parameters = World::parameters(0x43, &[]);
    parameters[270] = 2;
    let body = [&9_u64.to_ne_bytes()[..], &parameters, &request.id.to_ne_bytes(), &[0; 4]].concat();
    world.command(0, 8, &body, 0).unwrap();
    assert_eq!(world.kinds(1), [EventKind::ConnectResponse as u32]);
    let [server, client] = [(0, request.id), (1, client)].map(|(process, id)| {
        let rtr = world.attributes(process, id, 2).unwrap();
        let rts = world.attributes(process, id, 3).unwrap();
        let [.., timeout, _] = rts[33].to_ne_bytes();
        (rtr[15].to_ne_bytes()[2], timeout, rts[34].to_ne_bytes()[0])
    });
    assert_eq!((server, client), ((0x68, 15, 6), (0x68, 15, 2)), "class, timeout, retries without receive");
}

#[test]
fn options_have_their_time() {
    let mut world = World::new(1);
    let switch = |world: &mut World, id: u32, name: u32, value: u8, bytes: u32| {
        let mut command = 14_u32.to_ne_bytes().to_vec();
        command.extend(24_u16.to_ne_bytes());
        command.extend([0; 2]);
        command.extend(BASE.to_ne_bytes());
        command.extend([id, 0, name, bytes].map(u32::to_ne_bytes).concat());
        let page = Page(RefCell::new(vec![value, 0, 0, 0]));
        world.processes[0].write(CHANNEL, &command, &page, |_| None).map(drop)
    };
    let id = world.create(0, 5, Space::Tcp);
    assert_eq!(switch(&mut world, id, 1, 1, 4), Ok(()));
    assert_eq!(switch(&mut world, id, 1, 0, 4), Ok(()), "no other identifier relies on it");
    world.bind(0, id, "10.0.0.1:1").unwrap();
    assert_eq!(switch(&mut world, id, 1, 1, 4), Ok(()));
    assert_eq!(switch(&mut world, id, 1, 0, 4), Err(Errno::INVAL), "another identifier may rely on it");
    world.command(0, 7, &[id.to_ne_bytes(), 1_u32.to_ne_bytes()].concat(), 0).unwrap();
    assert_eq!(switch(&mut world, id, 1, 1, 4), Err(Errno::INVAL), "a listener shares with no identifier");
    let datagrams = world.create(0, 5, Space::Udp);
    assert_eq!(switch(&mut world, datagrams, 3, 14, 1), Err(Errno::INVAL), "nothing is awaited");
}

#[test]
fn requests_beyond_the_backlog_are_sent_again() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 2, Space::Tcp);
    for qp in 1..4 {
        let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
        world.connect_by(1, client, qp, &[]).unwrap();
    }
    let request = EventKind::ConnectRequest as u32;
    assert_eq!(world.kinds(0), [request; 2]);
    world.pass(RESPONSE_TIME);
    assert_eq!(world.kinds(0), [request], "there is room again");
}

#[test]
fn a_queue_pair_has_one_connection() {
    let mut world = World::new(2);
    world.connected();
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Rejected as u32, 10), "stale");
    assert_eq!(world.kinds(0), []);
    // The same for the side that accepts.
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect_by(1, client, 0x44, &[]).unwrap();
    let request = world.event(0).unwrap();
    world.accept(0, request.id, 9, &[]).unwrap();
    assert_eq!(world.kinds(1), []);
    let event = world.event(0).unwrap();
    assert_eq!((event.kind, event.status, event.id), (EventKind::Rejected as u32, 10, request.id));
}

#[test]
fn lost_messages_are_sent_again() {
    for lost in [1, 3] {
        let mut world = World::new(2);
        world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
        let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
        world.network.borrow_mut().loses = lost;
        world.connect(1, client, &[]).unwrap();
        assert_eq!(world.event(0), None);
        (0..lost).for_each(|_| world.pass(RESPONSE_TIME));
        let request = world.event(0).unwrap();
        // The answer is lost. When the request is sent again, the answer is sent again, too.
        world.network.borrow_mut().loses = 1;
        world.accept(0, request.id, 1, &[]).unwrap();
        assert_eq!(world.event(1), None);
        world.pass(RESPONSE_TIME);
        assert_eq!(world.event(1).unwrap().kind, EventKind::ConnectResponse as u32);
        world.network.borrow_mut().loses = 1;
        world.confirm(1, client).unwrap();
        assert_eq!(world.event(0), None, "the RTU is lost");
        world.pass(RESPONSE_TIME);
        assert_eq!(world.kinds(0), [EventKind::Established as u32]);
        world.network.borrow_mut().loses = 1;
        world.disconnect(1, client).unwrap();
        world.pass(RESPONSE_TIME);
        assert_eq!(world.kinds(0), [EventKind::Disconnected as u32]);
        world.network.borrow_mut().loses = 1;
        world.disconnect(0, request.id).unwrap();
        assert_eq!(world.event(1), None, "the DREP is lost");
        world.pass(RESPONSE_TIME);
        assert!(world.kinds(1).contains(&(EventKind::Disconnected as u32)));
    }
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.network.borrow_mut().loses = usize::MAX;
    world.connect(1, client, &[]).unwrap();
    for _ in 0..TRIES {
        world.pass(RESPONSE_TIME);
        assert_eq!(world.event(1), None);
    }
    world.pass(RESPONSE_TIME);
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Unreachable as u32, -110));
    assert_eq!(world.network.borrow().sent, 16);
    assert_eq!(world.processes[1].tick(), None, "nothing is waited for any more");
}

#[test]
fn a_process_that_ends_disconnects_its_peers() {
    let mut world = World::new(2);
    let (client, _) = world.connected();
    world.processes[1].lost(link(1, 0));
    assert_eq!(world.kinds(1), [EventKind::Disconnected as u32]);
    assert_eq!(world.disconnect(1, client), Ok(()));
    world.pass(TIME_WAIT);
    assert_eq!(world.kinds(1), [EventKind::TimeWaitExit as u32]);

    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    let request = world.event(0).unwrap();
    world.processes[1].lost(link(1, 0));
    assert_eq!(world.event(1).unwrap().status, 28);
    world.processes[0].lost(link(1, 0));
    assert_eq!(world.accept(0, request.id, 1, &[]), Err(Errno::INVAL));
}

/// Both processes have ended the same connection before they knew of each other's end. Returns the
/// identifier of process 1, then that of process 0.
fn disconnected_at_a_time(world: &mut World) -> (u32, u32) {
    let (client, server) = world.connected();
    world.disconnect(0, server).unwrap();
    world.disconnect(1, client).unwrap();
    assert_eq!(world.kinds(0), [EventKind::Disconnected as u32]);
    assert_eq!(world.kinds(1), [EventKind::Disconnected as u32]);
    (client, server)
}

#[test]
fn both_ends_disconnect_at_a_time() {
    let mut world = World::new(2);
    let (client, server) = disconnected_at_a_time(&mut world);
    world.destroy(0, server).unwrap();
    world.destroy(1, client).unwrap();
    assert!(world.processes.iter().all(|process| process.conversations.is_empty()));
}

#[test]
fn a_reply_ends_the_wait_of_both_that_disconnect_at_a_time() {
    let mut world = World::new(2);
    let (_, server) = disconnected_at_a_time(&mut world);
    world.disconnect(0, server).unwrap();
    world.deliver();
    world.pass(TIME_WAIT);
    assert_eq!(world.kinds(0), [EventKind::TimeWaitExit as u32]);
    assert_eq!(world.kinds(1), [EventKind::TimeWaitExit as u32]);
}

#[test]
fn a_program_notifies_of_what_the_kernel_knows() {
    let mut world = World::new(2);
    let (client, _) = world.connected();
    let notify = |world: &mut World, id: u32, event: u32| {
        world.command(1, 15, &[id.to_ne_bytes(), event.to_ne_bytes()].concat(), 0).map(drop)
    };
    assert_eq!(notify(&mut world, client, 4), Err(Errno::ISCONN), "established");
    assert_eq!(notify(&mut world, client, 6), Ok(()), "path migrated");
    assert_eq!(notify(&mut world, client, 5), Err(Errno::INVAL), "send queue drained");
    let other = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, other, &[]).unwrap();
    assert_eq!(notify(&mut world, other, 6), Err(Errno::INVAL), "no connection yet");
}

#[test]
fn datagrams_are_resolved() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Udp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Udp);
    world.connect(1, client, b"who").unwrap();
    let request = world.event(0).unwrap();
    assert_eq!(request.kind, EventKind::ConnectRequest as u32);
    assert_eq!((&request.parameters[40..44], request.parameters[296]), (&b"who\0"[..], 180));
    world.accept(0, request.id, 9, b"me").unwrap();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Established as u32, 0));
    assert_eq!(&event.parameters[..8], [0x43_u32.to_ne_bytes(), 0x0123_4567_u32.to_ne_bytes()].concat());
    assert_eq!((&event.parameters[40..43], event.parameters[296]), (&b"me\0"[..], 136));
    assert_eq!(event.parameters[8 + 12..8 + 16], [10, 0, 0, 1], "where packets go");
    assert_eq!(world.kinds(0), [], "nothing more is told");
    let init = world.attributes(1, client, 1).unwrap();
    assert_eq!(init[5], 0x0123_4567);
    // No listener, and a listener that refuses.
    let other = world.routed(1, "10.0.0.1:1", Space::Udp);
    world.connect(1, other, &[]).unwrap();
    world.call_in_vain();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Unreachable as u32, 1));
    let other = world.routed(1, "10.0.0.1:7471", Space::Udp);
    world.connect(1, other, &[]).unwrap();
    let request = world.event(0).unwrap();
    world.destroy(0, request.id).unwrap();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Unreachable as u32, 2));
    let other = world.routed(1, "10.0.0.1:7471", Space::Udp);
    world.connect(1, other, &[]).unwrap();
    let request = world.event(0).unwrap();
    assert_eq!(request.parameters[8..40], [0; 32], "nothing is known of its way");
    let mut body = [&request.id.to_ne_bytes()[..], &[5, 0, 0, 0], b"moved"].concat();
    body.resize(264, 0);
    world.command(0, 9, &body, 0).unwrap();
    let event = world.event(1).unwrap();
    assert_eq!((event.kind, event.status), (EventKind::Unreachable as u32, 2));
    assert_eq!((&event.parameters[40..46], event.parameters[296]), (&b"moved\0"[..], 136));
    assert_eq!(event.parameters[..40], [0; 40], "there is nowhere to send to");
    body[5] = 77;
    assert_eq!(world.command(0, 9, &body, 0), Err(Errno::INVAL), "not a reason for programs");
}

#[test]
fn addresses_are_found_or_not() {
    let mut world = World::new(1);
    let id = world.create(0, 5, Space::Tcp);
    assert_eq!(world.bind(0, id, "10.0.0.2:1"), Err(Errno::ADDRNOTAVAIL));
    assert_eq!(world.bind(0, id, "[fe80::1]:1"), Err(Errno::INVAL), "the interface is missing");
    assert_eq!(world.bind(0, id, "10.0.0.1:1"), Ok(()));
    let route = [&BASE.to_ne_bytes()[..], &id.to_ne_bytes(), &[0; 4]].concat();
    let route = world.command(0, 5, &route, 208).unwrap();
    assert_eq!(
        (&route[136..144], &route[164..172]),
        (&[2, 0, 0, 1, 10, 0, 0, 1][..], &[2, 0, 0, 0, 0, 0, 0, 0][..])
    );
    assert_eq!(world.bind(0, id, "10.0.0.1:1"), Err(Errno::INVAL), "once is enough");
    assert_eq!(world.resolve(0, id, "[::1]:1"), Err(Errno::INVAL), "of another family");
    let other = world.create(0, 6, Space::Tcp);
    assert_eq!(world.bind(0, other, "10.0.0.1:1"), Err(Errno::ADDRINUSE));
    assert_eq!(world.with_id(0, 4, other), Err(Errno::INVAL), "no address is resolved");
    assert_eq!(world.resolve(0, other, "10.9.9.9:1"), Err(Errno::NETUNREACH), "no route leads there");
    assert_eq!(world.event(0), None);
    let neighbour = world.create(0, 8, Space::Tcp);
    world.bind(0, neighbour, "10.0.0.1:2").unwrap();
    world.resolve(0, neighbour, "10.9.9.9:1").unwrap();
    let event = world.event(0).unwrap();
    assert_eq!((event.kind, event.status, event.uid), (EventKind::AddressError as u32, -113, 8));
    assert_eq!(world.resolve(0, other, "10.0.0.1:1"), Ok(()), "it can be tried again");
    assert_eq!(world.event(0).unwrap().kind, EventKind::AddressResolved as u32);
    // All interfaces stand for this host.
    let third = world.create(0, 7, Space::Tcp);
    world.resolve(0, third, "0.0.0.0:9").unwrap();
    assert_eq!(world.event(0).unwrap().kind, EventKind::AddressResolved as u32);
    let body = [&BASE.to_ne_bytes()[..], &third.to_ne_bytes(), &[0; 4]].concat();
    let route = world.command(0, 5, &body, 208).unwrap();
    assert_eq!(route[..8], 7_u64.to_be_bytes());
    assert_eq!(route[164..172], [2, 0, 0, 9, 127, 0, 0, 1]);
    let gids = world.command(0, 19, &[&body[..12], &2_u32.to_ne_bytes()].concat(), 280).unwrap();
    assert_eq!(gids[16..18], 27_u16.to_ne_bytes());
    assert_eq!(gids[144 + 24..144 + 32], (0x0106_0000_u64 + 9).to_be_bytes());
    assert_eq!(world.command(0, 19, &[&body[..12], &3_u32.to_ne_bytes()].concat(), 280), Err(Errno::NOSYS));
}

#[test]
fn an_identifier_moves_with_its_events() {
    let mut world = World::new(1);
    let id = world.create(0, 5, Space::Tcp);
    world.resolve(0, id, "10.0.0.1:1").unwrap();
    world.processes[0].open(2);
    world.migrate(0, id, 2, |fd| (fd == 5).then_some(CHANNEL)).unwrap();
    assert_eq!(world.event(0), None);
    assert_eq!(world.processes[0].host().signals.get(&2), Some(&true));
    assert_eq!(world.with_id(0, 4, id), Err(Errno::INVAL), "it belongs to another channel");
    assert_eq!(world.migrate(0, id, 2, |_| None), Err(Errno::NOENT));
}

#[test]
fn a_listener_moves_with_its_requests() {
    let mut world = World::new(2);
    let listener = world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    world.connect(1, client, &[]).unwrap();
    world.deliver();
    world.processes[0].open(2);
    world.migrate(0, listener, 2, |_| Some(CHANNEL)).unwrap();
    world.processes[0].close(CHANNEL);
    assert_eq!(world.event(1), None, "the request still waits");
    let command = [&12_u32.to_ne_bytes()[..], &[8, 0], &336_u16.to_ne_bytes(), &BASE.to_ne_bytes()].concat();
    let page = Page(RefCell::new(vec![0; 336]));
    world.processes[0].write(2, &command, &page, |_| None).unwrap();
    assert_eq!(page.0.into_inner()[12], EventKind::ConnectRequest as u8);
    world.processes[0].close(2);
    assert!(world.processes[0].is_empty());
    assert_eq!(world.event(1).unwrap().kind, EventKind::Rejected as u32);
}

#[test]
fn the_number_of_a_conversation_that_is_over_is_another_ones() {
    let mut world = World::new(2);
    world.listen(0, "0.0.0.0:7471", 5, Space::Tcp);
    let over = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    let client = world.routed(1, "10.0.0.1:7471", Space::Tcp);
    let drawn = world.network.borrow().drawn;
    world.connect(1, over, &[]).unwrap();
    let request = world.event(0).unwrap();
    world.destroy(0, request.id).unwrap();
    assert_eq!(world.event(1).unwrap().kind, EventKind::Rejected as u32);
    world.network.borrow_mut().drawn = drawn;
    world.connect(1, client, &[]).unwrap();
    world.destroy(1, over).unwrap();
    let request = world.event(0).unwrap();
    world.accept(0, request.id, 7, &[]).unwrap();
    assert_eq!(world.event(1).unwrap().kind, EventKind::ConnectResponse as u32);
}

#[test]
fn groups_are_joined_and_left() {
    let mut world = World::new(1);
    let id = world.create(0, 5, Space::Udp);
    let join = |world: &mut World, id: u32, group: &str| {
        let mut to = [0; 28];
        sockaddr::write(&mut to, Some(group.parse().unwrap()));
        let body = [&BASE.to_ne_bytes()[..], &6_u64.to_ne_bytes(), &to, &id.to_ne_bytes()].concat();
        world.command(0, 16, &body, 4).map(|answer| u32::from_ne_bytes(answer.try_into().unwrap()))
    };
    assert_eq!(join(&mut world, id, "239.1.2.3:0"), Err(Errno::INVAL), "of no device");
    let stream = world.create(0, 6, Space::Tcp);
    world.bind(0, stream, "10.0.0.1:0").unwrap();
    assert_eq!(join(&mut world, stream, "239.1.2.3:0"), Err(Errno::INVAL), "connections have no groups");
    let routed = world.routed(0, "10.0.0.1:7471", Space::Udp);
    assert_eq!(join(&mut world, routed, "239.1.2.3:0"), Err(Errno::INVAL), "it has a route to a peer");
    world.bind(0, id, "10.0.0.1:0").unwrap();
    let group = join(&mut world, id, "239.1.2.3:0").unwrap();
    let event = world.event(0).unwrap();
    assert_eq!((event.kind, event.uid, event.id), (EventKind::MulticastJoin as u32, 6, group));
    assert_eq!(&event.parameters[..8], [0xff_ffff_u32.to_ne_bytes(), 0x0123_4567_u32.to_ne_bytes()].concat());
    assert_eq!(event.parameters[8..24], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3]);
    let body = [&BASE.to_ne_bytes()[..], &group.to_ne_bytes(), &[0; 4]].concat();
    assert_eq!(world.command(0, 17, &body, 4).unwrap(), 1_u32.to_ne_bytes());
    assert_eq!(world.command(0, 17, &body, 4), Err(Errno::NOENT));
    let group = join(&mut world, id, "[ff0e::7]:0").unwrap();
    assert_ne!(group, id);
    world.destroy(0, id).unwrap();
    assert!(world.processes[0].groups.is_empty());
    assert_eq!(world.event(0), None, "its events went with it");
    assert_eq!(group::address([239, 1, 2, 3].into(), true).0[..4], [0xff, 0x12, 0x40, 0x01]);
}

#[test]
fn commands_that_mean_nothing_are_refused() {
    let mut world = World::new(1);
    let id = world.create(0, 5, Space::Tcp);
    let mut write = |bytes: &[u8]| {
        let page = Page(RefCell::new(vec![0; 64]));
        world.processes[0].write(CHANNEL, bytes, &page, |_| None)
    };
    assert_eq!(write(&[]), Err(Errno::INVAL));
    assert_eq!(write(&[0; 7]), Err(Errno::INVAL));
    assert_eq!(write(&[0, 0, 0, 0, 24, 0, 4, 0]), Err(Errno::INVAL), "less than it says");
    assert_eq!(write(&[23, 0, 0, 0, 0, 0, 0, 0]), Err(Errno::INVAL), "no such command");
    assert_eq!(write(&[13, 0, 0, 0, 0, 0, 0, 0]), Err(Errno::NOSYS), "one that is not there");
    assert_eq!(world.command(0, 0, &[0; 24], 4), Err(Errno::INVAL), "no such space of ports");
    let no_room = [&BASE.to_ne_bytes()[..], &id.to_ne_bytes(), &[0; 4]].concat();
    assert_eq!(world.command(0, 1, &no_room, 3), Err(Errno::NOSPC));
    let nowhere = [&8_u64.to_ne_bytes()[..], &id.to_ne_bytes(), &[0; 4]].concat();
    assert_eq!(world.command(0, 1, &nowhere, 4), Err(Errno::FAULT));
    assert_eq!(world.destroy(0, id), Ok(0), "it is still there");
    let mut create = [5_u64.to_ne_bytes(), 8_u64.to_ne_bytes()].concat();
    create.extend([0x06, 0x01, 0, 0, 0, 0, 0, 0]);
    assert_eq!(world.command(0, 0, &create, 4), Err(Errno::FAULT));
    assert!(world.processes[0].identifiers.is_empty(), "no unknown identifier is left");
    // Addresses with a size that does not match their family.
    let id = world.create(0, 5, Space::Tcp);
    let mut bind = [&id.to_ne_bytes()[..], &27_u16.to_ne_bytes(), &[0; 2]].concat();
    bind.extend([0; STORAGE_BYTES]);
    bind[8] = 10;
    assert_eq!(world.command(0, 20, &bind, 0), Err(Errno::INVAL));
    bind[8] = 27;
    bind[4] = 48;
    assert_eq!(world.command(0, 20, &bind, 0), Err(Errno::INVAL), "addresses of InfiniBand");
}

#[test]
fn foreign_messages_do_nothing() {
    let mut world = World::new(2);
    let (client, _) = world.connected();
    let other = link(1, 1);
    let local = world.processes[1].id(client).conversation.local;
    let end = wire::DisconnectRequest { remote_communication_id: local, ..Default::default() };
    world.processes[1].arrived(other, &Mad { transaction: 1, message: end.into() }.encode());
    assert_eq!(world.processes[1].identifiers[&client].stage, Stage::Connect, "another's message");
    world.processes[1].arrived(link(1, 0), &[0; 256]);
    world.processes[1].arrived(link(1, 0), &[]);
    let request = wire::Request { service_id: u64::MAX, ..Default::default() };
    world.processes[0].arrived(link(1, 0), &Mad { transaction: 1, message: request.into() }.encode());
    assert_eq!(world.kinds(1), []);
}
