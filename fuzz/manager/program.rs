//! A program with its manager. It checks that the manager's responses and events are consistent.

use std::collections::BTreeMap;

use cm::{Manager, Outcome};
use rustix::io::Errno;

use super::command::{ACCEPT, CREATE_ID, DESTROY_ID, GET_EVENT, HEADER, JOIN, JOIN_IP, LEAVE, MIGRATE};
use super::network::{Page, Process};

/// The number of channels that a program may open, numbered from 0.
pub(super) const CHANNELS: u32 = 3;

/// Kinds of events: a request for a connection, and a group that was joined.
const CONNECT_REQUEST: u32 = 4;
const MULTICAST_JOIN: u32 = 12;

/// An identifier of a program.
struct Identifier {
    channel: u32,
    uid: u64,
    /// The number of its events that the program has taken.
    taken: u32,
}

/// A program's membership of a group.
struct Membership {
    id: u32,
    uid: u64,
    taken: u32,
}

/// One process.
pub(super) struct Program {
    pub(super) manager: Manager<Process>,
    pub(super) is_open: [bool; CHANNELS as usize],
    /// All identifiers and groups that the program has had, also destroyed ones.
    pub(super) known: Vec<u32>,
    identifiers: BTreeMap<u32, Identifier>,
    groups: BTreeMap<u32, Membership>,
    /// The last `uid` that the program has assigned to an identifier or a group.
    uid: u64,
}

/// A written command: its number and body.
struct Written<'a> {
    number: u32,
    body: &'a [u8],
}

impl Written<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.body[at..at + 4].try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.body[at..at + 8].try_into().unwrap())
    }
}

/// Returns the offset of the response's address in the body of a command.
fn response_at(number: u32) -> usize {
    if number == CREATE_ID { 8 } else { 0 }
}

/// Returns the offset of the `uid` in the body of a command, if it has one.
fn uid_at(number: u32) -> Option<usize> {
    match number {
        CREATE_ID | ACCEPT => Some(0),
        JOIN_IP | JOIN => Some(8),
        _ => None,
    }
}

impl Program {
    pub(super) fn new(process: Process) -> Self {
        Self {
            manager: Manager::new(process),
            is_open: [false; CHANNELS as usize],
            known: Vec::new(),
            identifiers: BTreeMap::new(),
            groups: BTreeMap::new(),
            uid: 0,
        }
    }

    /// Opens a channel, or closes it with its identifiers and groups.
    pub(super) fn turn(&mut self, channel: u32) {
        let is_open = &mut self.is_open[channel as usize];
        *is_open = !*is_open;
        if *is_open {
            return self.manager.open(channel);
        }
        self.manager.close(channel);
        self.identifiers.retain(|_, id| id.channel != channel);
        self.groups.retain(|_, group| self.identifiers.contains_key(&group.id));
    }

    /// Writes a command to a channel, if the channel is open, and checks its result. With
    /// `is_named` the command gets a new `uid`, otherwise 0.
    pub(super) fn write(&mut self, channel: u32, bytes: &mut [u8], fill: u8, is_named: bool) {
        if !self.is_open[channel as usize] {
            return;
        }
        let uid = if is_named { self.uid + 1 } else { 0 };
        let number = bytes.first_chunk().map_or(u32::MAX, |number| u32::from_ne_bytes(*number));
        let at = uid_at(number).map(|at| HEADER + at);
        if let Some(field) = at.and_then(|at| bytes.get_mut(at..at + 8)) {
            field.copy_from_slice(&uid.to_ne_bytes());
            self.uid = self.uid.max(uid);
        }
        let body = bytes.get(HEADER..).unwrap_or_default();
        let response = body.get(response_at(number)..).and_then(|bytes| bytes.first_chunk());
        let response = response.map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let room = bytes.get(6..HEADER).map_or(0, |room| u16::from_ne_bytes([room[0], room[1]]));
        let page = Page::new(fill, (response, room.into()));
        let is_open = self.is_open;
        let channel_of = |descriptor: i32| {
            let channel = u32::try_from(descriptor).ok()?;
            is_open.get(channel as usize)?.then_some(channel)
        };
        let result = outcome(self.manager.write(channel, bytes, &page, channel_of));
        assert_eq!(result == Err(Errno::FAULT), page.has_refused.get(), "EFAULT is for bad memory");
        self.observe(channel, &Written { number, body }, result, &page);
    }

    /// Updates the program's state by the result of a command, and checks it.
    fn observe(&mut self, channel: u32, written: &Written<'_>, result: Result<(), Errno>, page: &Page) {
        let number = written.number;
        let answer = || u32::from_ne_bytes(page.answer());
        if number == MIGRATE && matches!(result, Ok(()) | Err(Errno::FAULT | Errno::NOSPC)) {
            // The kernel, too, moves the identifier before it writes the response.
            let id = self.identifiers.get_mut(&written.u32(8)).expect("the moved identifier exists");
            id.channel = channel;
            assert!(result.is_err() || answer() == id.taken, "the events taken before the move");
            return;
        }
        if result.is_err() {
            return;
        }
        match number {
            CREATE_ID => self.begins(answer(), Identifier { channel, uid: written.u64(0), taken: 0 }),
            ACCEPT if written.body[8 + 271] != 0 => {
                let id = self.identifiers.get_mut(&written.u32(280)).expect("the accepted identifier exists");
                id.uid = written.u64(0);
            }
            JOIN_IP | JOIN => {
                let id = written.u32(if number == JOIN_IP { 44 } else { 16 });
                assert_eq!(self.identifiers[&id].channel, channel);
                let group = answer();
                self.known.push(group);
                self.groups.insert(group, Membership { id, uid: written.u64(8), taken: 0 });
            }
            DESTROY_ID => {
                let id = written.u32(8);
                let gone = self.identifiers.remove(&id).expect("the destroyed identifier exists");
                assert_eq!(gone.channel, channel);
                assert_eq!(answer(), gone.taken, "events that a program waits for");
                self.groups.retain(|_, group| group.id != id);
            }
            LEAVE => {
                let gone = self.groups.remove(&written.u32(8)).expect("the group exists");
                assert_eq!(answer(), gone.taken, "events that a program waits for");
            }
            GET_EVENT => self.takes(channel, page.answer()),
            _ => {}
        }
    }

    fn begins(&mut self, id: u32, identifier: Identifier) {
        self.known.push(id);
        let before = self.identifiers.insert(id, identifier);
        assert!(before.is_none() && !self.groups.contains_key(&id), "two objects have the number {id}");
    }

    /// Checks that an event belongs to an identifier or a group of the program, and has its `uid`.
    fn takes(&mut self, channel: u32, event: [u8; 324]) {
        let word = |at: usize| u32::from_ne_bytes(event[at..at + 4].try_into().unwrap());
        let uid = u64::from_ne_bytes(event[..8].try_into().unwrap());
        let number = word(8);
        let owner = match word(12) {
            CONNECT_REQUEST => {
                self.begins(number, Identifier { channel, uid: 0, taken: 0 });
                self.identifiers.iter_mut().find(|(id, owner)| **id != number && owner.uid == uid)
            }
            MULTICAST_JOIN => {
                let group = self.groups.get_mut(&number).expect("an event of a group");
                group.taken += 1;
                assert_eq!(group.uid, uid);
                self.identifiers.get_mut(&group.id).map(|owner| (&number, owner))
            }
            _ => self
                .identifiers
                .get_mut(&number)
                .map(|owner| (&number, owner))
                .filter(|(_, id)| id.uid == uid),
        };
        let (_, owner) = owner.expect("an event of an identifier");
        assert_eq!(owner.channel, channel, "an event is in its identifier's channel");
        owner.taken += 1;
    }

    /// Checks that each channel signals whether it has events. The check requests an event without
    /// room for it.
    pub(super) fn check_signals(&mut self) {
        for channel in 0..CHANNELS {
            let says = self.manager.host().signals.get(&channel).copied().unwrap_or(false);
            if !self.is_open[channel as usize] {
                assert!(!says, "a closed channel has no events");
                continue;
            }
            let command = [&GET_EVENT.to_ne_bytes()[..], &8_u16.to_ne_bytes(), &[0; 2], &[0; 8]].concat();
            let result = outcome(self.manager.write(channel, &command, &Page::new(0, (0, 0)), |_| None));
            let expected = if says { Errno::NOSPC } else { Errno::AGAIN };
            assert_eq!(result, Err(expected), "the signal of channel {channel}");
        }
    }
}

/// Returns the result of a command on a non-blocking channel.
fn outcome(result: Result<Outcome, Errno>) -> Result<(), Errno> {
    match result? {
        Outcome::Done => Ok(()),
        Outcome::NoEvent => Err(Errno::AGAIN),
    }
}
