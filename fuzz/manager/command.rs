//! Builds the commands of a program from a few bytes of the input. Commands are valid except for
//! the errors that the input chooses.

use std::net::SocketAddr;

use super::input::Input;
use super::network::{BASE, PAGE};

/// Numbers of commands (`<rdma/rdma_user_cm.h>`).
pub(super) const CREATE_ID: u32 = 0;
pub(super) const DESTROY_ID: u32 = 1;
pub(super) const BIND_IP: u32 = 2;
pub(super) const RESOLVE_IP: u32 = 3;
pub(super) const RESOLVE_ROUTE: u32 = 4;
pub(super) const QUERY_ROUTE: u32 = 5;
pub(super) const CONNECT: u32 = 6;
pub(super) const LISTEN: u32 = 7;
pub(super) const ACCEPT: u32 = 8;
pub(super) const REJECT: u32 = 9;
pub(super) const DISCONNECT: u32 = 10;
pub(super) const INIT_QP_ATTR: u32 = 11;
pub(super) const GET_EVENT: u32 = 12;
pub(super) const SET_OPTION: u32 = 14;
pub(super) const NOTIFY: u32 = 15;
pub(super) const JOIN_IP: u32 = 16;
pub(super) const LEAVE: u32 = 17;
pub(super) const MIGRATE: u32 = 18;
pub(super) const QUERY: u32 = 19;
pub(super) const BIND: u32 = 20;
pub(super) const RESOLVE: u32 = 21;
pub(super) const JOIN: u32 = 22;
/// The number of commands.
const COMMANDS: u8 = 23;

/// The sizes in bytes of a `struct rdma_ucm_cmd_hdr` and of the parameters of a connection.
pub(super) const HEADER: usize = 8;
const PARAMETERS: usize = 272;

/// The errors of a command, as bits of a byte of the input.
pub(super) mod wrong {
    /// The identifier is an arbitrary number.
    pub(crate) const ID: u8 = 1;
    /// The response is near the end of the page, or crosses it.
    pub(crate) const EDGE: u8 = 1 << 1;
    /// The address of the response is an arbitrary number.
    pub(crate) const RESPONSE: u8 = 1 << 2;
    /// The size of the response is an arbitrary number.
    pub(crate) const ROOM: u8 = 1 << 3;
    /// Some bytes are replaced.
    pub(crate) const BYTES: u8 = 1 << 4;
    /// The command is too short.
    pub(crate) const SHORT: u8 = 1 << 5;
    /// The length in the header is wrong.
    pub(crate) const LENGTH: u8 = 1 << 6;
    /// The program's own number for the identifier (`uid`) is 0.
    pub(crate) const UID: u8 = 1 << 7;
}

/// Addresses to bind and to connect to; the first one has no family.
const ADDRESSES: [Option<&str>; 16] = [
    None,
    Some("10.0.0.1:7471"),
    Some("0.0.0.0:7471"),
    Some("10.0.0.2:7472"),
    Some("10.0.0.1:0"),
    Some("0.0.0.0:0"),
    Some("[::]:7471"),
    Some("[::1]:7471"),
    Some("127.0.0.1:7471"),
    Some("224.0.0.7:0"),
    Some("[ff02::7]:7471"),
    Some("192.0.2.1:7471"),
    Some("[fe80::1]:7471"),
    Some("[fe80::1%3]:7471"),
    Some("10.0.0.1:7473"),
    Some("10.0.0.2:80"),
];

/// Returns the address that a byte chooses as a structure, and its length.
fn address(choice: u8) -> ([u8; 128], u16) {
    let mut to = [0; 128];
    let text = match choice {
        // Another address family, or an undefined one.
        0xf0.. => {
            to[..2].copy_from_slice(&(u16::from(choice) - 0xf0 + 16).to_ne_bytes());
            return (to, 48);
        }
        _ => ADDRESSES[usize::from(choice) % ADDRESSES.len()],
    };
    match text.map(|text| text.parse::<SocketAddr>().unwrap()) {
        None => (to, 0),
        Some(SocketAddr::V4(address)) => {
            to[..2].copy_from_slice(&2_u16.to_ne_bytes());
            to[2..4].copy_from_slice(&address.port().to_be_bytes());
            to[4..8].copy_from_slice(&address.ip().octets());
            (to, 16)
        }
        Some(SocketAddr::V6(address)) => {
            to[..2].copy_from_slice(&10_u16.to_ne_bytes());
            to[2..4].copy_from_slice(&address.port().to_be_bytes());
            to[8..24].copy_from_slice(&address.ip().octets());
            to[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
            (to, 28)
        }
    }
}

/// Returns the parameters of a connection from bytes for the queue pair, the length of the private
/// data, and the flags.
fn parameters(input: &mut Input<'_>) -> [u8; PARAMETERS] {
    let mut to = [0; PARAMETERS];
    to[..4].copy_from_slice(&u32::from(input.byte()).to_ne_bytes());
    let length = input.byte();
    to[8..8 + usize::from(length)].fill(length);
    let choice = input.byte();
    to[264] = length;
    to[265] = choice & 1;
    to[266] = choice & 7;
    to[267] = choice >> 3 & 7;
    to[268] = choice >> 1 & 1;
    to[269] = choice >> 4;
    to[270] = choice >> 5;
    // The last field marks valid parameters; an accept without them only confirms a connection.
    to[271] = u8::from(choice != 0);
    to
}

/// Returns one of the program's identifiers, or an arbitrary number.
fn id(input: &mut Input<'_>, wrong: u8, known: &[u32]) -> [u8; 4] {
    let choice = input.byte();
    if wrong & wrong::ID != 0 {
        return input.word().to_ne_bytes();
    }
    let at = usize::from(choice) % known.len().max(1);
    known.get(at).copied().unwrap_or_default().to_ne_bytes()
}

fn response(input: &mut Input<'_>, wrong: u8) -> [u8; 8] {
    let mut address = BASE;
    if wrong & wrong::EDGE != 0 {
        address += PAGE - 2 * u64::from(input.byte());
    }
    if wrong & wrong::RESPONSE != 0 {
        address = u64::from_ne_bytes(input.array());
    }
    address.to_ne_bytes()
}

/// Returns the next command of the input with its header, and whether its `uid` is not 0.
pub(super) fn command(input: &mut Input<'_>, known: &[u32]) -> (Vec<u8>, bool) {
    let number = u32::from(input.byte() % COMMANDS);
    let wrong = input.byte();
    let (mut body, mut room) = body(number, wrong, input, known);
    if wrong & wrong::ROOM != 0 {
        room = u16::from_ne_bytes(input.array());
    }
    if wrong & wrong::BYTES != 0 {
        for _ in 0..=input.byte() % 4 {
            let at = usize::from(u16::from_ne_bytes(input.array()));
            let at = at % body.len().max(1);
            let byte = input.byte();
            body.get_mut(at).into_iter().for_each(|to| *to = byte);
        }
    }
    if wrong & wrong::SHORT != 0 {
        let bytes = usize::from(u16::from_ne_bytes(input.array()));
        body.truncate(bytes % (body.len() + 1));
    }
    let length =
        if wrong & wrong::LENGTH != 0 { u16::from_ne_bytes(input.array()) } else { body.len() as u16 };
    let bytes = [&number.to_ne_bytes()[..], &length.to_ne_bytes(), &room.to_ne_bytes(), &body].concat();
    (bytes, wrong & wrong::UID == 0)
}

/// Returns the body of a command, and the size of its response.
fn body(number: u32, wrong: u8, input: &mut Input<'_>, known: &[u32]) -> (Vec<u8>, u16) {
    const NONE: [u8; 4] = [0; 4];
    match number {
        CREATE_ID => {
            let choice = input.byte();
            let space: u16 = [0x0106, 0x0111, 0x013f, 0x0002, 0x0107][usize::from(choice % 5)];
            let kind = choice / 5;
            let body = [&[0; 8], &response(input, wrong)[..], &space.to_ne_bytes(), &[kind, 0, 0, 0, 0, 0]];
            (body.concat(), 4)
        }
        DESTROY_ID | LEAVE => {
            let id = id(input, wrong, known);
            ([&response(input, wrong)[..], &id, &NONE].concat(), 4)
        }
        BIND_IP => {
            let id = id(input, wrong, known);
            ([&[0; 8], &address(input.byte()).0[..28], &id].concat(), 0)
        }
        RESOLVE_IP => {
            let id = id(input, wrong, known);
            let to = address(input.byte()).0;
            ([&address(input.byte()).0[..28], &to[..28], &id, &NONE].concat(), 0)
        }
        RESOLVE_ROUTE | DISCONNECT => ([id(input, wrong, known), NONE].concat(), 0),
        QUERY_ROUTE => {
            let id = id(input, wrong, known);
            ([&response(input, wrong)[..], &id, &NONE].concat(), 208)
        }
        CONNECT => {
            let id = id(input, wrong, known);
            ([&parameters(input)[..], &id, &NONE].concat(), 0)
        }
        LISTEN => {
            let id = id(input, wrong, known);
            let backlog = i32::from(input.byte().cast_signed());
            ([id, backlog.to_ne_bytes()].concat(), 0)
        }
        ACCEPT => {
            let id = id(input, wrong, known);
            ([&[0; 8], &parameters(input)[..], &id, &NONE].concat(), 0)
        }
        REJECT => {
            let id = id(input, wrong, known);
            let length = input.byte();
            let reason = input.byte();
            ([&id[..], &[length, reason, 0, 0], &[length; 256]].concat(), 0)
        }
        GET_EVENT => (response(input, wrong).to_vec(), 336),
        SET_OPTION => {
            let id = id(input, wrong, known);
            let choice = input.byte();
            let level = u32::from(choice & 1);
            let name = u32::from(choice >> 1 & 7);
            let length: u32 = [1, 4, 72, 144, 0, 71, 4096, 4097][usize::from(choice >> 4 & 7)];
            let [level, name, length] = [level, name, length].map(u32::to_ne_bytes);
            ([&response(input, wrong)[..], &id, &level, &name, &length].concat(), 0)
        }
        NOTIFY => {
            let id = id(input, wrong, known);
            ([id, u32::from(input.byte()).to_ne_bytes()].concat(), 0)
        }
        MIGRATE | INIT_QP_ATTR | QUERY => {
            let id = id(input, wrong, known);
            let what = u32::from(input.byte());
            let room = if number == MIGRATE { 4 } else { 280 };
            ([&response(input, wrong)[..], &id, &what.to_ne_bytes()].concat(), room)
        }
        JOIN_IP => {
            let id = id(input, wrong, known);
            ([&response(input, wrong)[..], &[0; 8], &address(input.byte()).0[..28], &id].concat(), 4)
        }
        BIND => {
            let id = id(input, wrong, known);
            let (address, bytes) = address(input.byte());
            ([&id[..], &bytes.to_ne_bytes(), &[0, 0], &address].concat(), 0)
        }
        RESOLVE => {
            let id = id(input, wrong, known);
            let (to, to_bytes) = address(input.byte());
            let (from, from_bytes) = address(input.byte());
            let lengths = [from_bytes.to_ne_bytes(), to_bytes.to_ne_bytes()].concat();
            ([&id[..], &NONE, &lengths, &NONE, &from, &to].concat(), 0)
        }
        JOIN => {
            let id = id(input, wrong, known);
            let choice = input.byte();
            let (address, bytes) = address(choice);
            let flags = u16::from(input.byte());
            let flags = [&bytes.to_ne_bytes()[..], &flags.to_ne_bytes()].concat();
            ([&response(input, wrong)[..], &[0; 8], &id, &flags, &address].concat(), 4)
        }
        // The kernel has removed this command.
        _ => (input.take(64).to_vec(), 64),
    }
}
