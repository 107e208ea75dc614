//! The connection manager of a process: the kernel's handling of commands and of arriving messages
//! (drivers/infiniband/core: ucma.c, cma.c and cm.c).
//!
//! It does nothing by itself. Commands of the program, messages, ends of links and the time come in
//! through its functions. It sends messages and signals channels through its [`Host`].

mod address;
mod arrive;
mod attributes;
mod close;
mod connect;
mod datagram;
mod group;
mod option;
mod retry;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use rustix::io::Errno;

use crate::abi::Space;
use crate::abi::answer::Answer;
use crate::abi::command::{Command, Written};
use crate::host::{Host, Memory};
use crate::identifier::{Identifier, Service};
use crate::manager::state::{Channel, Queued};

pub use crate::manager::state::Manager;

/// The result of a command that has not failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The command was carried out.
    Done,
    /// The program asks for an event, and there is none yet. Only this command waits.
    NoEvent,
}

impl<H: Host> Manager<H> {
    /// Opens a channel with an unused number.
    pub fn open(&mut self, channel: u32) {
        self.channels.insert(channel, Channel::default());
    }

    /// Whether a channel is open.
    pub fn is_open(&self, channel: u32) -> bool {
        self.channels.contains_key(&channel)
    }

    /// Closes a channel, and destroys its identifiers.
    pub fn close(&mut self, channel: u32) {
        let of_it: Vec<u32> =
            self.identifiers.iter().filter(|(_, id)| id.channel == channel).map(|(key, _)| *key).collect();
        for id in of_it {
            self.destroy(id);
        }
        self.channels.remove(&channel);
    }

    /// Carries out a command that a program has written to a channel. `descriptors` maps a
    /// descriptor to its channel.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn write(
        &mut self,
        channel: u32,
        bytes: &[u8],
        memory: &impl Memory,
        descriptors: impl FnOnce(i32) -> Option<u32>,
    ) -> Result<Outcome, Errno> {
        let Written { command, room } = Written::read(bytes)?;
        let answer = |to: u64, answer: &Answer| memory.write(to, answer.fit(room)?);
        let done = match command {
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
                answer(response, &route.part(what, room).ok_or(Errno::NOSYS)?)
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
            Command::GetEvent { response } => return self.give_event(channel, |it| answer(response, it)),
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
        };
        done.map(|()| Outcome::Done)
    }

    fn create(&mut self, channel: u32, uid: u64, space: Space, service: u8) -> u32 {
        /// `IBV_QPT_UC` and `IBV_QPT_UD`.
        const UC: u8 = 3;
        const UD: u8 = 4;
        let service = match (space, service) {
            (Space::Udp | Space::IpoIb, _) | (Space::Ib, UD) => Service::Ud,
            (Space::Ib, UC) => Service::Uc,
            (Space::Tcp | Space::Ib, _) => Service::Rc,
        };
        let psn = self.host.random();
        let id = self.new_number();
        self.identifiers.insert(id, Identifier::new(channel, uid, space, service, psn));
        id
    }

    /// Moves an identifier to another channel, with its events. Returns how many of its events were
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
            // Requests that were not given to the program yet must not be lost with the old
            // channel.
            for request in moved.iter().filter_map(|queued| queued.request) {
                self.id(request).channel = to;
            }
            self.channels.entry(to).or_default().events.extend(moved);
            self.show(to);
        }
        self.id(id).reported
    }

    /// Passes the next event to the program.
    fn give_event(
        &mut self,
        channel: u32,
        give: impl FnOnce(&Answer) -> Result<(), Errno>,
    ) -> Result<Outcome, Errno> {
        let events = &mut self.channels.get_mut(&channel).ok_or(Errno::BADF)?.events;
        let Some(next) = events.front() else { return Ok(Outcome::NoEvent) };
        give(&next.event.answer())?;
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
        Ok(Outcome::Done)
    }
}
