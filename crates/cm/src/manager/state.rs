//! The state of a process's manager, and functions that all commands and messages use.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::{Event, Told};
use crate::host::{Host, Link};
use crate::identifier::{Identifier, Stage};
use crate::times::{CALL_TIME, CALLS, RESPONSE_TIME, TRIES};
use crate::wire::{Mad, Message};

/// A program's channel (`rdma_event_channel`): the events that it has not taken yet.
#[derive(Default)]
pub(super) struct Channel {
    pub(super) events: VecDeque<Queued>,
}

/// A waiting event, and the objects that it belongs to.
pub(super) struct Queued {
    pub(super) event: Event,
    pub(super) id: u32,
    /// The identifier that a request has created.
    pub(super) request: Option<u32>,
    pub(super) group: Option<u32>,
}

/// The connection manager of a process.
pub struct Manager<H: Host> {
    pub(super) host: H,
    pub(super) channels: HashMap<u32, Channel>,
    pub(super) identifiers: BTreeMap<u32, Identifier<H::Hold>>,
    pub(super) groups: BTreeMap<u32, Group>,
    /// Identifiers by their communication IDs.
    pub(super) conversations: HashMap<u32, u32>,
    pub(super) next: u32,
    /// The earliest time at which something may be due.
    pub(super) due: Option<Duration>,
}

/// A program's membership of a multicast group.
pub(super) struct Group {
    /// The identifier that has joined.
    pub(super) id: u32,
    /// How many events the program has taken.
    pub(super) reported: u32,
}

impl<H: Host> Manager<H> {
    /// Makes a manager without channels.
    pub fn new(host: H) -> Self {
        Self {
            host,
            channels: HashMap::new(),
            identifiers: BTreeMap::new(),
            groups: BTreeMap::new(),
            conversations: HashMap::new(),
            next: 0,
            due: None,
        }
    }

    /// Returns its host.
    pub fn host(&mut self) -> &mut H {
        &mut self.host
    }

    /// Whether the manager has no channel, and no object of one.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
            && self.identifiers.is_empty()
            && self.groups.is_empty()
            && self.conversations.is_empty()
    }

    /// Finds an identifier of a channel that its program knows.
    pub(super) fn find(&self, channel: u32, id: u32) -> Result<u32, Errno> {
        let found = self.identifiers.get(&id).filter(|found| found.is_known).ok_or(Errno::NOENT)?;
        if found.channel == channel { Ok(id) } else { Err(Errno::INVAL) }
    }

    /// Returns an existing identifier.
    pub(super) fn id(&mut self, id: u32) -> &mut Identifier<H::Hold> {
        self.identifiers.get_mut(&id).expect("it was looked up")
    }

    /// Returns an unused number.
    pub(super) fn new_number(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            if !self.identifiers.contains_key(&number) && !self.groups.contains_key(&number) {
                return number;
            }
        }
    }

    /// Queues an event of an identifier. An identifier that the program has not accepted yet has no
    /// events.
    pub(super) fn raise(&mut self, id: u32, kind: EventKind, status: i32, told: Told) {
        let found = self.id(id);
        if found.uid != 0 && found.is_known {
            let event = Event { uid: found.uid, id, kind, status, told };
            self.queue(Queued { event, id, request: None, group: None });
        }
    }

    pub(super) fn queue(&mut self, queued: Queued) {
        let channel = self.id(queued.id).channel;
        self.channels.entry(channel).or_default().events.push_back(queued);
        self.show(channel);
    }

    /// Reports to the host whether a channel has events.
    pub(super) fn show(&mut self, channel: u32) {
        let has_events = self.channels.get(&channel).is_some_and(|channel| !channel.events.is_empty());
        self.host.signal(channel, has_events);
    }

    /// Sends a message of an identifier to its peer. With `waits`, it is sent again until an answer
    /// arrives.
    pub(super) fn send(&mut self, id: u32, message: Message, waits: bool) {
        let now = self.host.now();
        let talk = &mut self.id(id).conversation;
        let bytes = Mad { transaction: talk.transaction, message }.encode();
        let link = talk.link;
        talk.waiting = waits.then(|| bytes.to_vec());
        talk.deadline = None;
        if waits {
            let (tries, time) = if link.is_some() { (TRIES, RESPONSE_TIME) } else { (CALLS, CALL_TIME) };
            talk.tries = tries;
            talk.deadline = Some(now + time);
            self.plan(now + time);
        }
        if let Some(link) = link {
            self.host.send(link, &bytes);
        }
    }

    /// Sends a message that belongs to no identifier.
    pub(super) fn answer(&mut self, link: Link, transaction: u64, message: Message) {
        self.host.send(link, &Mad { transaction, message }.encode());
    }

    /// Starts a conversation, and returns its number, by which the peer's messages name it.
    pub(super) fn begin(&mut self, id: u32, link: Option<Link>) -> u32 {
        let local = loop {
            let number = self.host.random();
            if number != 0 && !self.conversations.contains_key(&number) {
                break number;
            }
        };
        self.conversations.insert(local, id);
        let talk = &mut self.id(id).conversation;
        talk.link = link;
        talk.local = local;
        talk.transaction = u64::from(local) << 32 | u64::from(local);
        local
    }

    /// Checks that an identifier is in a stage.
    pub(super) fn expect(&mut self, id: u32, stage: Stage) -> Result<(), Errno> {
        if self.id(id).stage == stage { Ok(()) } else { Err(Errno::INVAL) }
    }
}
