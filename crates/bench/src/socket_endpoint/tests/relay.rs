//! A relay between two UDP sockets that treats datagrams as networks do.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::peer::{Name, PeerParams};

/// A fault of the relay.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Drops every `every`-th datagram.
    Drop { every: u64 },
    /// Holds every `every`-th datagram back until the next one has passed.
    Hold { every: u64 },
    /// Drops datagram `number`, counted from 1.
    Lose { number: u64 },
    /// Sends every `every`-th datagram twice.
    Repeat { every: u64 },
}

/// What the relay has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) dropped: u64,
    pub(super) held: u64,
    pub(super) repeated: u64,
    seen: u64,
}

/// The ports of the ranks, and a socket of the relay for each.
struct Shared {
    facing: [UdpSocket; 2],
    ranks: Mutex<[Option<u16>; 2]>,
    is_over: AtomicBool,
    done: Mutex<Done>,
}

/// A relay that runs until it is ended.
pub(super) struct Relay {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    pub(super) fn start(faults: Vec<Fault>) -> Self {
        let facing = [(); 2].map(|()| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            socket
        });
        let shared = Arc::new(Shared {
            facing,
            ranks: Mutex::default(),
            is_over: AtomicBool::new(false),
            done: Mutex::default(),
        });
        let threads = (0..2).map(|from| {
            let shared = Arc::clone(&shared);
            let faults = faults.clone();
            std::thread::spawn(move || pass(&shared, from, &faults))
        });
        Self { threads: threads.collect(), shared }
    }

    /// Routes the messages between two ranks through the relay.
    pub(super) fn lead(&self, from: u32, to: u32, params: &mut PeerParams) {
        let [Name::Port(port)] = &mut params.sockets[..] else { panic!("one port") };
        self.shared.ranks.lock().unwrap()[from as usize] = Some(*port);
        *port = self.shared.facing[to as usize].local_addr().unwrap().port();
    }

    /// Ends the relay; returns what it has done.
    pub(super) fn end(self) -> Done {
        self.shared.is_over.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        *self.shared.done.lock().unwrap()
    }
}

/// Receives the datagrams of a rank, and sends them, or what is left of them, to the other rank.
/// Greetings pass unchanged.
fn pass(shared: &Shared, from: usize, faults: &[Fault]) {
    let mut bytes = [0; 2048];
    let mut held: Option<Vec<u8>> = None;
    let mut quiet = 0;
    while !shared.is_over.load(Relaxed) {
        let to = 1 - from;
        let Some(port) = shared.ranks.lock().unwrap()[to] else { continue };
        let send = |message: &[u8]| {
            // The receiver may have ended.
            let _ = shared.facing[to].send_to(message, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        };
        let Ok(length) = shared.facing[from].recv(&mut bytes) else {
            quiet += 1;
            if quiet > 2 {
                held.take().iter().for_each(|message| send(message));
            }
            continue;
        };
        quiet = 0;
        let message = &bytes[..length];
        if bytes[0] & 2 != 0 {
            send(message);
            continue;
        }
        let mut done = shared.done.lock().unwrap();
        done.seen += 1;
        let seen = done.seen;
        let is = |fault: &Fault| match fault {
            Fault::Drop { every } | Fault::Hold { every } | Fault::Repeat { every } => {
                seen.is_multiple_of(*every)
            }
            Fault::Lose { number } => seen == *number,
        };
        // The last message of a stream passes unchanged, so that it ends the stream.
        let fault = faults.iter().find(|fault| {
            is(fault) && (matches!(fault, Fault::Lose { .. } | Fault::Drop { every: 9 }) || bytes[0] & 1 == 0)
        });
        match fault {
            Some(Fault::Drop { .. } | Fault::Lose { .. }) => done.dropped += 1,
            Some(Fault::Hold { .. }) if held.is_none() => {
                done.held += 1;
                held = Some(message.to_vec());
                continue;
            }
            Some(Fault::Repeat { .. }) => {
                done.repeated += 1;
                send(message);
                send(message);
            }
            _ => send(message),
        }
        if fault.is_none() {
            held.take().iter().for_each(|message| send(message));
        }
    }
}
