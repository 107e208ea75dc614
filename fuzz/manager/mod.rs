//! Simulates two programs of a host with a connection manager each, and the network between them.
//!
//! The input is a sequence of steps, each a byte with its operands: valid commands and arbitrary
//! bytes; messages that are delivered, lost, duplicated, altered or forged; links that break; time
//! that passes; channels that are opened and closed. The assertions in these files check the
//! managers.

mod command;
mod input;
mod network;
mod program;
pub(crate) mod seeds;

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use cm::wire::Mad;

use self::command::GET_EVENT;
use self::input::Input;
use self::network::{BASE, Process, Sent, Shared, WAYS};
use self::program::{CHANNELS, Program};

/// Kinds of steps: the lower four bits of a byte. Bit 4 chooses the program, the higher bits choose
/// the channel.
mod step {
    /// All numbers below `RAW_COMMAND`.
    pub(super) const COMMAND: u8 = 0;
    pub(super) const RAW_COMMAND: u8 = 6;
    pub(super) const DELIVER_ALL: u8 = 7;
    pub(super) const DELIVER: u8 = 8;
    pub(super) const LOSE: u8 = 9;
    pub(super) const AGAIN: u8 = 10;
    pub(super) const ALTER: u8 = 11;
    pub(super) const MAKE_UP: u8 = 12;
    pub(super) const TIME: u8 = 13;
    pub(super) const BREAK: u8 = 14;
    pub(super) const CHANNEL: u8 = 15;
}

/// More messages than the messages under way can cause.
const MESSAGES: usize = 20_000;

/// The number of response times after which every wait must have ended: a connection begins and
/// ends with several messages, and each is sent several times.
const WAITS: usize = 100;

/// The host, its processes, and the messages under way.
struct World {
    network: Shared,
    programs: [Program; 2],
}

/// Carries out the steps of an input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(input.byte());
    while let Some(step) = input.next() {
        world.step(step, &mut input);
        world.programs.iter_mut().for_each(Program::check_signals);
    }
    world.end();
}

impl World {
    /// Returns two programs with a channel each.
    fn new(options: u8) -> Self {
        let network = Shared::default();
        network.borrow_mut().is_narrow = options & 1 != 0;
        network.borrow_mut().is_infiniband = options & 2 != 0;
        let make = |number| {
            let network = Rc::clone(&network);
            let mut program = Program::new(Process { network, number, signals: HashMap::new() });
            program.turn(0);
            program
        };
        Self { programs: [make(0), make(1)], network: Rc::clone(&network) }
    }

    fn step(&mut self, step: u8, input: &mut Input<'_>) {
        let channel = u32::from(step >> 5) % CHANNELS;
        let program = usize::from(step >> 4 & 1);
        match step & 0xf {
            step::RAW_COMMAND => {
                let length = usize::from(u16::from_le_bytes(input.array()) % 512);
                let mut bytes = input.take(length).to_vec();
                self.programs[program].write(channel, &mut bytes, 1, true);
            }
            step::DELIVER_ALL => self.deliver_all(),
            step::DELIVER => {
                if let Some(sent) = self.picked(input.byte()) {
                    self.deliver(&sent);
                }
            }
            step::LOSE => drop(self.picked(input.byte())),
            step::AGAIN => {
                let mut network = self.network.borrow_mut();
                let at = usize::from(input.byte()) % network.history.len().max(1);
                let sent = network.history.get(at).cloned();
                network.under_way.extend(sent);
            }
            step::ALTER => {
                let picked = self.picked(input.byte());
                let at = usize::from(input.byte());
                let byte = input.byte();
                if let Some(mut sent) = picked {
                    let at = at % sent.bytes.len();
                    sent.bytes[at] ^= byte;
                    self.deliver(&sent);
                }
            }
            step::MAKE_UP => self.make_up(program, input),
            step::TIME => {
                // From a millisecond to more than an hour.
                let choice = input.byte();
                self.pass(Duration::from_millis(u64::from(choice & 0xf) << (choice >> 4)));
            }
            step::BREAK => self.breaks(input.byte()),
            step::CHANNEL => match input.byte() {
                0 => self.programs[program].turn(channel),
                _ => self.take_events(program, channel),
            },
            step::COMMAND.. => {
                let program = &mut self.programs[program];
                let (mut bytes, is_named) = command::command(input, &program.known);
                program.write(channel, &mut bytes, 1, is_named);
            }
        }
    }

    /// Removes one of the messages under way from the network, and returns it.
    fn picked(&mut self, choice: u8) -> Option<Sent> {
        let under_way = &mut self.network.borrow_mut().under_way;
        let at = usize::from(choice) % under_way.len().max(1);
        under_way.remove(at)
    }

    fn deliver(&mut self, sent: &Sent) {
        self.programs[sent.to].manager.arrived(sent.link, &sent.bytes);
    }

    /// Delivers all messages and all their answers. Panics if the answers never end.
    fn deliver_all(&mut self) {
        for _ in 0..MESSAGES {
            let Some(sent) = self.picked(0) else { return };
            self.deliver(&sent);
        }
        panic!("messages without end");
    }

    /// Delivers a forged message: arbitrary bytes, alone or behind a valid header.
    fn make_up(&mut self, to: usize, input: &mut Input<'_>) {
        let attribute = input.byte();
        let link = self.network.borrow().link(input.byte() % WAYS);
        let length = usize::from(input.byte());
        let message = input.take(length);
        let mut bytes = Vec::new();
        if attribute != 0 {
            bytes.extend([1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, attribute, 0, 0x10 + attribute % 11]);
            bytes.resize(24, 0);
        }
        bytes.extend(message);
        bytes.resize(Mad::BYTES, 0);
        self.deliver(&Sent { to, link, bytes });
    }

    /// Lets time pass for both programs.
    fn pass(&mut self, time: Duration) {
        self.network.borrow_mut().now += time;
        let now = self.network.borrow().now;
        for program in &mut self.programs {
            let next = program.manager.tick();
            assert!(next.is_none_or(|next| next > now), "the manager has not handled an expired timer");
        }
    }

    /// Breaks a link, and notifies one or both of its processes.
    fn breaks(&mut self, choice: u8) {
        let way = choice % WAYS;
        let link = self.network.borrow_mut().breaks(way);
        for (process, program) in self.programs.iter_mut().enumerate() {
            let is_of_it = process == usize::from(way / 2) || process == usize::from(way % 2);
            if is_of_it && choice >> 2 & 3 != process as u8 + 1 {
                program.manager.lost(link);
            }
        }
    }

    /// Takes all events of a program's channel.
    fn take_events(&mut self, program: usize, channel: u32) {
        let program = &mut self.programs[program];
        while program.is_open[channel as usize] && program.manager.host().signals.get(&channel) == Some(&true)
        {
            let head = [&GET_EVENT.to_ne_bytes()[..], &8_u16.to_ne_bytes(), &336_u16.to_ne_bytes()].concat();
            program.write(channel, &mut [head, BASE.to_ne_bytes().to_vec()].concat(), 0, true);
        }
    }

    /// Checks that nothing waits for ever, and that no object is left when all channels are closed.
    fn end(mut self) {
        let mut waits = 0;
        self.deliver_all();
        while self.programs.iter_mut().any(|program| program.manager.tick().is_some()) {
            assert!(waits < WAITS, "something waits for ever");
            waits += 1;
            self.pass(cm::RESPONSE_TIME);
            self.deliver_all();
        }
        for program in 0..self.programs.len() {
            self.take_events(program, 0);
            for channel in 0..CHANNELS {
                if self.programs[program].is_open[channel as usize] {
                    self.programs[program].turn(channel);
                }
            }
            self.programs[program].check_signals();
            self.deliver_all();
        }
        for program in &mut self.programs {
            assert!(program.manager.is_empty(), "objects of closed channels are left");
            assert_eq!(program.manager.tick(), None);
        }
        assert!(self.network.borrow().is_free(), "a port is left");
    }
}
