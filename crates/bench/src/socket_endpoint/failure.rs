//! The meaning of socket errors, and what to do about them.

use std::fmt;
use std::io;

use crate::Error;
use crate::point::Carrier;

/// The path of an endpoint's messages.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) carrier: Carrier,
    pub(super) own: String,
    pub(super) theirs: String,
    /// The interface that has this rank's address.
    pub(super) interface: Option<String>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { carrier, own, theirs, .. } = self;
        write!(f, "{} from {own} to {theirs}", carrier.name())
    }
}

impl Path {
    /// Returns the error of a call that failed.
    pub(super) fn failed(&self, what: &'static str, error: &io::Error) -> Error {
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            let reason = format!(
                "{} cannot send a message of this length at once: send shorter messages, or use larger buffers (--socket-buffer)",
                self.carrier.name()
            );
            return Error::Impossible { reason };
        }
        let advice = advice(error).to_owned();
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the peer has closed the connection".to_owned(),
            _ => error.to_string(),
        };
        Error::Socket { what, path: self.to_string(), reason, advice }
    }

    /// Returns the error of a rank to which nothing came, or whose data was not taken, for
    /// `waited_s`.
    pub(super) fn silent(&self, awaits_room: bool, waited_s: f64, said: &str) -> Error {
        let what = if awaits_room { "was taken by the peer" } else { "came from the peer" };
        let advice = match (awaits_room, self.carrier.is_datagram()) {
            (true, _) => "its program has stopped, or the link drops all packets",
            (false, true) => {
                "its program has stopped, a firewall drops the datagrams (`nft list ruleset` on both hosts), or the link is down"
            }
            (false, false) => {
                "its program has stopped, or the link drops all packets (`ss -ti` on both hosts)"
            }
        };
        Error::Silent { what, path: self.to_string(), waited_s, said: said.to_owned(), advice }
    }
}

/// Returns what to do about an error of the system.
fn advice(error: &io::Error) -> &'static str {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, _) => {
            "its program has ended or failed: check its host"
        }
        (io::ErrorKind::ConnectionRefused, _) => {
            "the port is closed: the peer's program has ended, or a firewall rejects the packets"
        }
        (io::ErrorKind::TimedOut, _) => {
            "nothing is acknowledged: the link drops the packets, or the peer's host is down"
        }
        (_, Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => {
            "there is no route, or the link is down: check `ip route get ADDRESS` on both hosts, or name the network with --net"
        }
        (_, Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO)) => {
            "the interface is down: `ip link set DEV up`"
        }
        (_, Some(libc::EPERM)) => "a firewall on this host forbids it: check `nft list ruleset`",
        (_, Some(libc::ENOBUFS | libc::ENOMEM)) => "the kernel has no memory for it: send less at once",
        _ => "check the kernel log on both hosts (`dmesg`)",
    }
}
