//! Which ends of a benchmark this command is: both, the server that waits, or the client that
//! measures.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use bench::process::dial::Peer;
use bench::process::key::Key;
use bench::process::server::PORT;
use clap::Args;

use crate::failure::Usage;

/// Ends that are started by hand, as perftest's are.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// Host of the server, which makes this the client, whose settings count; without HOST this is
    /// the server.
    #[arg(conflicts_with_all = ["local", "via", "hosts", "listen"])]
    pub(crate) host: Option<String>,
    /// Both ends on this host, started by this one command.
    #[arg(long, conflicts_with_all = ["via", "hosts", "listen", "port", "wait"])]
    pub(crate) local: bool,
    /// TCP port of the server.
    #[arg(short = 'p', long, default_value_t = PORT, conflicts_with = "via")]
    pub(crate) port: u16,
    /// Address that the server listens on, such as 0.0.0.0 for all of this host [default:
    /// 127.0.0.1, for this host only].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "via")]
    pub(crate) listen: Option<String>,
    /// Let the client of this server have its --environment on this host too, with the rights of
    /// this command.
    #[arg(long, conflicts_with_all = ["host", "local", "via"])]
    pub(crate) allow_environment: bool,
    /// Key that the server printed, or RDMASCOPE_KEY in the environment, which other users of this
    /// host cannot see; a script may give the server one, too, for this once.
    #[arg(long, conflicts_with_all = ["local", "via"])]
    pub(crate) key: Option<String>,
    /// Seconds to wait for the other end [default: 30 for the client, 600 for the server].
    #[arg(long, value_name = "SECONDS", conflicts_with = "via")]
    pub(crate) wait: Option<u32>,
}

/// The variable that a key may stand in.
const KEY_VARIABLE: &str = "RDMASCOPE_KEY";
/// How long a server waits: a user goes to another host, finds it busy and comes back.
pub(crate) const SERVER_WAIT_S: u32 = 600;
/// How long a client waits: both ends started by one script, the server a little later.
pub(crate) const CLIENT_WAIT_S: u32 = 30;

impl ServerArgs {
    /// The server that a client is to measure with, if this is one.
    pub(crate) fn peer(&self) -> anyhow::Result<Option<Peer>> {
        let Some(host) = &self.host else { return Ok(None) };
        if host.is_empty() {
            return Err(Usage("HOST is empty: give the name or the address of the server".to_owned()).into());
        }
        if self.port == 0 {
            return Err(Usage("-p 0 is no port of a server: give the one that it printed".to_owned()).into());
        }
        let key = key_of_client(self.given_key()?, host)?;
        let wait = Duration::from_secs(self.wait.unwrap_or(CLIENT_WAIT_S).into());
        Ok(Some(Peer { host: host.clone(), port: self.port, key, wait }))
    }

    /// The key that was given with the command or in the environment.
    pub(crate) fn given_key(&self) -> anyhow::Result<Option<Key>> {
        given_key(self.key.as_deref())
    }

    /// Where a server is to listen.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        let Some(text) = &self.listen else { return Ok((Ipv4Addr::LOCALHOST, self.port).into()) };
        Ok(listening_address(text, self.port)?)
    }

    /// How long a server waits for its client.
    pub(crate) fn server_wait(&self) -> Duration {
        Duration::from_secs(self.wait.unwrap_or(SERVER_WAIT_S).into())
    }
}

/// The key that was given with a command or in the environment.
pub(crate) fn given_key(given: Option<&str>) -> anyhow::Result<Option<Key>> {
    let of_environment = || std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    let text = given.map(str::to_owned).or_else(of_environment);
    Ok(text.map(|text| text.parse()).transpose()?)
}

/// The key that the client of a host has.
pub(crate) fn key_of_client(given: Option<Key>, host: &str) -> Result<Key, Usage> {
    given.ok_or_else(|| {
        Usage(format!(
            "the client of {host} needs the key that the server printed: give --key KEY or {KEY_VARIABLE}"
        ))
    })
}

/// An address of this host to listen on.
pub(crate) fn listening_address(text: &str, port: u16) -> Result<SocketAddr, Usage> {
    // A name would be looked up, and Debian's own of a host is of its loopback.
    let is_address = text.split('%').next().is_some_and(|address| address.parse::<IpAddr>().is_ok());
    let found = is_address.then(|| (text, port).to_socket_addrs().ok()?.next()).flatten();
    found.ok_or_else(|| {
        Usage(format!("--listen {text}: give an address of this host such as 192.0.2.7, or 0.0.0.0 for all"))
    })
}

/// A command line as a record keeps it: whoever reads the record needs no key.
pub(crate) fn without_key(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut is_key = false;
    let hide = |word: String| {
        let hidden = match (is_key, word.starts_with("--key=")) {
            (true, _) => "...".to_owned(),
            (false, true) => "--key=...".to_owned(),
            (false, false) => word.clone(),
        };
        is_key = !is_key && word == "--key";
        hidden
    };
    words.into_iter().map(hide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_no_key() {
        let hidden = |text: &str| without_key(text.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(hidden("r lat send h --key abc -n 5"), "r lat send h --key ... -n 5");
        assert_eq!(hidden("r lat send h --key=abc -n 5"), "r lat send h --key=... -n 5");
        assert_eq!(hidden("r lat send h --key"), "r lat send h --key");
        assert_eq!(hidden("r run keyed --keyed abc"), "r run keyed --keyed abc");
    }
}
