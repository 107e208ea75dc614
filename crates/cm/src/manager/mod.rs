//! The connection manager of a process: what the kernel does with commands (drivers/infiniband/core:
//! ucma.c, cma.c and cm.c), and with the messages that come.
//!
//! It does nothing by itself: a program's commands, messages, ends of links and the time come in by
//! its functions; what it sends and which channels have events go out by its [`Host`].

mod address;
mod arrive;
mod attributes;
mod close;
mod connect;
mod datagram;
mod group;
mod option;
mod retry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::{Answer, Event, Told};
use crate::abi::command::{Command, Written};
use crate::host::{Host, Link, Memory};
use crate::identifier::{Identifier, Service, Stage};
use crate::manager::group::Group;
use crate::wire::{Mad, Message};

use crate::manager::retry::{CALL_TIME, CALLS};
pub use crate::manager::retry::{RESPONSE_TIME, TIME_WAIT, TRIES};

/// A program's channel (`rdma_event_channel`): events that it has not taken yet.
#[derive(Default)]
struct Channel {
    events: VecDeque<Queued>,
}

/// An event that waits, and what it belongs to.
struct Queued {
    event: Event,
    id: u32,
    /// The identifier that a request has made.
    request: Option<u32>,
    group: Option<u32>,
}

/// The connection manager of a process.
pub struct Manager<H: Host> {
    host: H,
    channels: HashMap<u32, Channel>,
    identifiers: BTreeMap<u32, Identifier<H::Hold>>,
    groups: BTreeMap<u32, Group>,
    /// Identifiers by the number that their messages have.
    conversations: HashMap<u32, u32>,
    next: u32,
    /// When the next of what the time does may be due; not later than it is.
    due: Option<Duration>,
}

impl<H: Host> Manager<H> {
    /// One without channels.
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

    /// Its host.
    pub fn host(&mut self) -> &mut H {
        &mut self.host
    }

    /// Whether there is nothing: no channel, and nothing that belonged to one.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
            && self.identifiers.is_empty()
            && self.groups.is_empty()
            && self.conversations.is_empty()
    }

    /// A channel of a number that no other one has.
    pub fn open(&mut self, channel: u32) {
        self.channels.insert(channel, Channel::default());
    }

    /// A channel goes, with its identifiers.
    pub fn close(&mut self, channel: u32) {
        let of_it: Vec<u32> =
            self.identifiers.iter().filter(|(_, id)| id.channel == channel).map(|(key, _)| *key).collect();
        for id in of_it {
            self.destroy(id);
        }
        self.channels.remove(&channel);
    }

    /// What a program has written to a channel. `descriptors` finds the channel of a descriptor.
    ///
    /// # Errors
    /// The error number that the kernel would give. `EAGAIN`: the program asks for an event, and
    /// there is none.
    pub fn write(
        &mut self,
        channel: u32,
        bytes: &[u8],
        memory: &impl Memory,
        descriptors: impl FnOnce(i32) -> Option<u32>,
    ) -> Result<(), Errno> {
        let Written { command, room } = Written::read(bytes)?;
        let answer = |to: u64, answer: &Answer| memory.write(to, answer.fit(room)?);
        match command {
            Command::CreateId { uid, response, space, service } => {
                let id = self.create(channel, uid, space, service);
                answer(response, &Answer::number(id)).inspect_err(|_| {
                    self.destroy(id);
                })
            }
            Command::DestroyId { response, id } => {
                self.find(channel, id)?;
                answer(response, &Answer::number(0))?;
                answer(response, &Answer::number(self.destroy(id)))
            }
            Command::Bind { id, address } => self.bind(self.find(channel, id)?, address),
            Command::ResolveAddress { id, source, destination } => {
                self.resolve_address(self.find(channel, id)?, source, destination)
            }
            Command::ResolveRoute { id } => self.resolve_route(self.find(channel, id)?),
            Command::QueryRoute { response, id } => {
                let route = self.route(self.find(channel, id)?);
                answer(response, &route.whole())
            }
            Command::Query { response, id, what } => {
                let route = self.route(self.find(channel, id)?);
                match what {
                    0 => answer(response, &route.addresses()),
                    1 => answer(response, &route.paths(room)),
                    2 => answer(response, &route.gids()),
                    _ => Err(Errno::NOSYS),
                }
            }
            Command::Connect { id, parameters } => self.connect(self.find(channel, id)?, &parameters),
            Command::Listen { id, backlog } => self.listen(self.find(channel, id)?, backlog),
            Command::Accept { uid, id, parameters: Some(parameters) } => {
                self.accept(self.find(channel, id)?, uid, &parameters)
            }
            Command::Accept { id, parameters: None, .. } => self.confirm(self.find(channel, id)?),
            Command::Reject { id, reason, private_data } => {
                self.reject(self.find(channel, id)?, reason, private_data.get())
            }
            Command::Disconnect { id } => self.disconnect(self.find(channel, id)?),
            Command::InitQpAttr { response, id, state } => {
                let attributes = self.attributes(self.find(channel, id)?, state)?;
                answer(response, &attributes.answer())
            }
            Command::GetEvent { response } => self.give_event(channel, |event| answer(response, event)),
            Command::SetOption { id, level, name, value, length } => {
                let id = self.find(channel, id)?;
                self.set_option(id, level, name, memory, value, length)
            }
            Command::Notify { id, event } => self.notify(self.find(channel, id)?, event),
            Command::JoinMulticast { response, uid, id, address, flags } => {
                let id = self.find(channel, id)?;
                let group = self.join(id, uid, address, flags)?;
                answer(response, &Answer::number(group)).inspect_err(|_| self.forget_group(group))
            }
            Command::LeaveMulticast { response, id } => {
                let reported = self.leave(channel, id)?;
                answer(response, &Answer::number(reported))
            }
            Command::MigrateId { response, id, descriptor } => {
                let from = descriptors(descriptor).ok_or(Errno::NOENT)?;
                let reported = self.migrate(self.find(from, id)?, channel);
                answer(response, &Answer::number(reported))
            }
        }
    }

    /// An identifier of a channel that its program knows.
    fn find(&self, channel: u32, id: u32) -> Result<u32, Errno> {
        let found = self.identifiers.get(&id).filter(|found| found.is_known).ok_or(Errno::NOENT)?;
        if found.channel == channel { Ok(id) } else { Err(Errno::INVAL) }
    }

    /// An identifier that is there.
    fn id(&mut self, id: u32) -> &mut Identifier<H::Hold> {
        self.identifiers.get_mut(&id).expect("it was looked up")
    }

    /// A number that is not in use.
    fn new_number(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            if !self.identifiers.contains_key(&number) && !self.groups.contains_key(&number) {
                return number;
            }
        }
    }

    fn create(&mut self, channel: u32, uid: u64, space: crate::abi::Space, service: u8) -> u32 {
        use crate::abi::Space;
        /// `IBV_QPT_UD`.
        const UD: u8 = 4;
        let is_datagram = match space {
            Space::Tcp => false,
            Space::Udp | Space::IpoIb => true,
            Space::Ib => service == UD,
        };
        let service = if is_datagram { Service::Datagram } else { Service::Connection };
        let psn = self.host.random();
        let id = self.new_number();
        self.identifiers.insert(id, Identifier::new(channel, uid, space, service, psn));
        id
    }

    /// Moves an identifier to another channel, with its events. Returns how many of it were
    /// reported.
    fn migrate(&mut self, id: u32, to: u32) -> u32 {
        let from = std::mem::replace(&mut self.id(id).channel, to);
        if from != to
            && let Some(channel) = self.channels.get_mut(&from)
        {
            let (moved, left): (VecDeque<_>, _) =
                channel.events.drain(..).partition(|queued| queued.id == id);
            channel.events = left;
            self.show(from);
            // Those that it has not given to the program yet would go with the channel otherwise.
            for request in moved.iter().filter_map(|queued| queued.request) {
                self.id(request).channel = to;
            }
            self.channels.entry(to).or_default().events.extend(moved);
            self.show(to);
        }
        self.id(id).reported
    }

    /// Queues an event of an identifier. One that the program has not accepted yet has none.
    fn raise(&mut self, id: u32, kind: EventKind, status: i32, told: Told) {
        let found = self.id(id);
        if found.uid != 0 && found.is_known {
            let event = Event { uid: found.uid, id, kind, status, told };
            self.queue(Queued { event, id, request: None, group: None });
        }
    }

    fn queue(&mut self, queued: Queued) {
        let channel = self.id(queued.id).channel;
        self.channels.entry(channel).or_default().events.push_back(queued);
        self.show(channel);
    }

    /// Tells the host whether a channel has events.
    fn show(&mut self, channel: u32) {
        let has_events = self.channels.get(&channel).is_some_and(|channel| !channel.events.is_empty());
        self.host.signal(channel, has_events);
    }

    /// Gives a program its next event.
    fn give_event(
        &mut self,
        channel: u32,
        give: impl FnOnce(&Answer) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let events = &mut self.channels.get_mut(&channel).ok_or(Errno::BADF)?.events;
        give(&events.front().ok_or(Errno::AGAIN)?.event.answer())?;
        if let Some(Queued { id, request, group, .. }) = events.pop_front() {
            let owner = self.id(id);
            owner.reported += 1;
            if let Some(request) = request {
                owner.backlog += 1;
                let channel = owner.channel;
                let made = self.id(request);
                made.is_known = true;
                made.channel = channel;
            }
            if let Some(group) = group.and_then(|group| self.groups.get_mut(&group)) {
                group.reported += 1;
            }
        }
        self.show(channel);
        Ok(())
    }

    /// Sends a message of an identifier to its peer. It is sent again until there is an answer, if
    /// one is waited for.
    fn send(&mut self, id: u32, message: Message, waits: bool) {
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
    fn answer(&mut self, link: Link, transaction: u64, message: Message) {
        self.host.send(link, &Mad { transaction, message }.encode());
    }

    /// Begins a conversation: it has a number, by which the peer's messages name it.
    fn begin(&mut self, id: u32, link: Option<Link>) -> u32 {
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

    /// Whether a program is at a stage.
    fn expect(&mut self, id: u32, stage: Stage) -> Result<(), Errno> {
        if self.id(id).stage == stage { Ok(()) } else { Err(Errno::INVAL) }
    }
}
