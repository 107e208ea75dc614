//! Initial inputs: the steps of real programs.

use super::command::{
    ACCEPT, BIND, BIND_IP, CONNECT, CREATE_ID, DESTROY_ID, DISCONNECT, GET_EVENT, INIT_QP_ATTR, JOIN,
    JOIN_IP, LEAVE, LISTEN, MIGRATE, NOTIFY, QUERY, QUERY_ROUTE, REJECT, RESOLVE, RESOLVE_IP, RESOLVE_ROUTE,
    SET_OPTION,
};
use super::step;

/// Port spaces and addresses, as numbered in `command.rs`.
const TCP: u8 = 0;
const UDP: u8 = 1;
const NOWHERE: u8 = 0;
const HERE: u8 = 1;
const HERE_TOO: u8 = 3;
const GROUP: u8 = 9;
const UNREACHABLE: u8 = 11;

/// The programs: the server listens, and the client connects.
const SERVER: u8 = 0;
const CLIENT: u8 = 1;
/// Selects the second channel of a program.
const SECOND: u8 = 2;

/// An input under construction.
#[derive(Clone)]
struct Script(Vec<u8>);

impl Script {
    fn new(options: u8) -> Self {
        Self(vec![options])
    }

    /// Adds a step of a program, on its first channel.
    fn step(mut self, program: u8, step: u8, operands: &[u8]) -> Self {
        self.0.push(step | program << 4);
        self.0.extend(operands);
        self
    }

    fn command(self, program: u8, number: u32, operands: &[u8]) -> Self {
        self.step(program, step::COMMAND, &[&[number as u8, 0], operands].concat())
    }

    /// Delivers all messages, and lets both programs take their events.
    fn settle(self) -> Self {
        self.step(0, step::DELIVER_ALL, &[]).step(SERVER, step::CHANNEL, &[1]).step(
            CLIENT,
            step::CHANNEL,
            &[1],
        )
    }

    /// Lets the server listen, with its first identifier.
    fn listen(self, space: u8, backlog: u8) -> Self {
        self.command(SERVER, CREATE_ID, &[space]).command(SERVER, BIND_IP, &[0, HERE]).command(
            SERVER,
            LISTEN,
            &[0, backlog],
        )
    }

    /// Lets the client request a connection, with its first identifier.
    fn ask(self, space: u8, to: u8) -> Self {
        self.command(CLIENT, CREATE_ID, &[space])
            .command(CLIENT, RESOLVE_IP, &[0, to, NOWHERE])
            .settle()
            .command(CLIENT, RESOLVE_ROUTE, &[0])
            .settle()
            .command(CLIENT, INIT_QP_ATTR, &[0, 1])
            .command(CLIENT, CONNECT, &[0, 0x42, 5, 0xa5])
    }

    /// Connects the programs.
    fn connected(self) -> Self {
        self.listen(TCP, 5)
            .ask(TCP, HERE)
            .settle()
            .command(SERVER, INIT_QP_ATTR, &[1, 2])
            .command(SERVER, INIT_QP_ATTR, &[1, 3])
            .command(SERVER, ACCEPT, &[1, 0x43, 7, 0x5a])
            .settle()
            .command(CLIENT, INIT_QP_ATTR, &[0, 2])
            .command(CLIENT, ACCEPT, &[0, 0, 0, 0])
            .settle()
    }

    /// Lets 2.56 s pass so many times.
    fn wait(self, times: usize) -> Self {
        (0..times).fold(self, |script, _| script.step(0, step::TIME, &[0x95]))
    }
}

/// Returns all initial inputs.
pub(crate) fn all() -> Vec<Vec<u8>> {
    let scripts = [connections(), ends(), datagrams(), others()].concat();
    scripts.into_iter().map(|script| script.0).collect()
}

/// Connections on a working network, and on a network that loses and alters messages.
fn connections() -> Vec<Script> {
    let connected = Script::new(0).connected();
    let over = |script: Script| {
        script
            .command(CLIENT, DISCONNECT, &[0])
            .settle()
            .command(SERVER, DISCONNECT, &[1])
            .settle()
            .wait(2)
            .settle()
    };
    let asked = Script::new(0).listen(TCP, 1).ask(TCP, HERE);
    vec![
        over(connected.clone()).command(CLIENT, DESTROY_ID, &[0]).command(SERVER, DESTROY_ID, &[1]).command(
            SERVER,
            DESTROY_ID,
            &[0],
        ),
        over(Script::new(3).connected().command(SERVER, QUERY_ROUTE, &[1]).command(CLIENT, QUERY, &[0, 1])),
        asked.clone().step(0, step::LOSE, &[0]).wait(2).settle(),
        asked.clone().step(0, step::DELIVER, &[0]).step(0, step::AGAIN, &[0]).settle().wait(1).settle(),
        asked.clone().step(0, step::ALTER, &[0, 32, 1]).settle(),
        // The RTU is lost.
        asked
            .settle()
            .command(SERVER, ACCEPT, &[1, 0x43, 0, 1])
            .settle()
            .command(CLIENT, ACCEPT, &[0, 0, 0, 0])
            .step(0, step::LOSE, &[0])
            .command(SERVER, NOTIFY, &[1, 4])
            .wait(17)
            .settle(),
        Script::new(0).ask(TCP, HERE_TOO).wait(20).settle(),
        Script::new(0).ask(TCP, UNREACHABLE).settle(),
    ]
}

/// Connections that end early.
fn ends() -> Vec<Script> {
    let asked = Script::new(0).listen(TCP, 5).ask(TCP, HERE);
    let connected = Script::new(1).connected();
    vec![
        asked.clone().settle().command(SERVER, REJECT, &[1, 9, 0]).settle(),
        asked.clone().command(CLIENT, DESTROY_ID, &[0]).settle(),
        asked.clone().step(0, step::DELIVER_ALL, &[]).command(SERVER, DESTROY_ID, &[0]).settle(),
        connected.clone().step(0, step::BREAK, &[2]).settle().wait(1).settle(),
        connected
            .clone()
            .step(0, step::BREAK, &[2 + (1 << 2)])
            .settle()
            .command(CLIENT, DISCONNECT, &[0])
            .wait(20),
        connected.clone().step(CLIENT, step::CHANNEL, &[0]).settle(),
        connected.command(CLIENT, DISCONNECT, &[0]).command(SERVER, DISCONNECT, &[1]).settle().wait(2),
        // The listener moves to another channel and its first channel is closed, while a request is
        // under way.
        asked
            .step(0, step::DELIVER_ALL, &[])
            .step(SERVER | SECOND, step::CHANNEL, &[0])
            .step(SERVER | SECOND, step::COMMAND, &[MIGRATE as u8, 0, 0, 0])
            .step(SERVER, step::CHANNEL, &[0])
            .step(SERVER | SECOND, step::CHANNEL, &[1])
            .step(SERVER | SECOND, step::COMMAND, &[ACCEPT as u8, 0, 1, 0x43, 0, 1])
            .settle(),
    ]
}

/// Datagrams and groups.
fn datagrams() -> Vec<Script> {
    let asked = Script::new(0).listen(UDP, 5).ask(UDP, HERE);
    vec![
        asked.clone().settle().command(SERVER, ACCEPT, &[1, 0x43, 7, 1]).settle(),
        asked.clone().settle().command(SERVER, REJECT, &[1, 9, 0]).settle(),
        asked.clone().step(0, step::DELIVER_ALL, &[]).step(SERVER, step::CHANNEL, &[0]).settle(),
        asked.step(0, step::LOSE, &[0]).wait(20).settle(),
        Script::new(0).ask(UDP, HERE_TOO).wait(20).settle(),
        Script::new(2)
            .command(CLIENT, CREATE_ID, &[UDP])
            .command(CLIENT, RESOLVE, &[0, GROUP, HERE])
            .command(CLIENT, JOIN_IP, &[0, GROUP])
            .command(CLIENT, JOIN, &[0, GROUP + 1, 1])
            .settle()
            .command(CLIENT, LEAVE, &[1])
            .command(CLIENT, DESTROY_ID, &[0]),
    ]
}

/// Connections of a program with itself, options, and bytes that are neither command nor message.
fn others() -> Vec<Script> {
    let raw = [&DESTROY_ID.to_ne_bytes()[..], &[16, 0, 4, 0], &[0, 0x10, 0, 0, 0, 0, 0, 0], &[0; 8]].concat();
    vec![
        Script::new(0)
            .listen(TCP, 5)
            .command(SERVER, CREATE_ID, &[TCP])
            .command(SERVER, RESOLVE_IP, &[1, HERE, NOWHERE])
            .command(SERVER, RESOLVE_ROUTE, &[1])
            .command(SERVER, CONNECT, &[1, 0x42, 0, 1])
            .settle()
            .command(SERVER, ACCEPT, &[2, 0x43, 0, 1])
            .settle()
            .command(SERVER, ACCEPT, &[1, 0, 0, 0])
            .settle(),
        Script::new(0)
            .command(CLIENT, CREATE_ID, &[TCP])
            .command(CLIENT, SET_OPTION, &[0, 0x12])
            .command(CLIENT, SET_OPTION, &[0, 0x14])
            .command(CLIENT, SET_OPTION, &[0, 6])
            .command(CLIENT, BIND, &[0, HERE])
            .command(CLIENT, RESOLVE, &[0, HERE, NOWHERE])
            .command(CLIENT, SET_OPTION, &[0, 0x23])
            .command(CLIENT, GET_EVENT, &[]),
        Script::new(0).command(SERVER, CREATE_ID, &[TCP]).step(
            SERVER,
            step::RAW_COMMAND,
            &[&[raw.len() as u8, 0], &raw[..]].concat(),
        ),
        Script::new(0).connected().step(
            SERVER,
            step::MAKE_UP,
            &[5, 2, 12, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0],
        ),
    ]
}
