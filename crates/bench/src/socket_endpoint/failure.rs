//! What a socket that fails means, and what to do about it.

use std::fmt;
use std::io;

use crate::Error;
use crate::point::Carrier;

/// The way of an endpoint's messages.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) carrier: Carrier,
    pub(super) own: String,
    pub(super) theirs: String,
    /// The interface that has our address.
    pub(super) interface: Option<String>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { carrier, own, theirs, .. } = self;
        write!(f, "{} from {own} to {theirs}", carrier.name())
    }
}

impl Path {
    /// A call that failed.
    pub(super) fn failed(&self, what: &'static str, error: &io::Error) -> Error {
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            let reason = format!(
                "{} sends no message so long in one piece: send shorter ones, or give larger buffers (--socket-buffer)",
                self.carrier.name()
            );
            return Error::Impossible { reason };
        }
        let advice = advice(error).to_owned();
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the peer has closed it".to_owned(),
            _ => error.to_string(),
        };
        Error::Socket { what, path: self.to_string(), reason, advice }
    }

    /// Nothing came, or nothing was taken, for so long.
    pub(super) fn silent(&self, awaits_room: bool, waited_s: f64, said: &str) -> Error {
        let what = if awaits_room { "was taken by the peer" } else { "came from the peer" };
        let advice = match (awaits_room, self.carrier.is_datagram()) {
            (true, _) => "its program has stopped, or the link drops all that is sent",
            (false, true) => {
                "its program has stopped, a firewall drops the datagrams (`nft list ruleset` at both ends), or the link is down"
            }
            (false, false) => {
                "its program has stopped, or the link drops all that is sent (`ss -ti` at both ends)"
            }
        };
        Error::Silent { what, path: self.to_string(), waited_s, said: said.to_owned(), advice }
    }
}

/// What a failure of the system means here.
fn advice(error: &io::Error) -> &'static str {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, _) => {
            "its program has ended or failed: look there"
        }
        (io::ErrorKind::ConnectionRefused, _) => {
            "nobody has that port any more: the peer's program has ended, or a firewall rejects what comes"
        }
        (io::ErrorKind::TimedOut, _) => {
            "what was sent is not acknowledged: the link drops it, or the peer's host is down"
        }
        (_, Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => {
            "no route leads there (any more, when the link is down): see `ip route get ADDRESS` at both ends, or give --net"
        }
        (_, Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO)) => {
            "the interface is down: `ip link set DEV up`"
        }
        (_, Some(libc::EPERM)) => "a firewall on this host forbids it: see `nft list ruleset`",
        (_, Some(libc::ENOBUFS | libc::ENOMEM)) => "the kernel has no memory for it: send less at once",
        _ => "look at the kernel's log at both ends (`dmesg`)",
    }
}
