//! Which ranks of a benchmark a command has: both, the server's or the client's.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use bench::process::dial::Peer;
use bench::process::key::Key;
use bench::process::server::PORT;
use clap::Args;

use crate::cli::time::time;
use crate::failure::Usage;

/// The flags of a server and its client, as in perftest.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// Host of the server. This command is then the client, and its settings count; without HOST it
    /// is the server.
    #[arg(conflicts_with_all = ["local", "via", "hosts", "listen"])]
    pub(crate) host: Option<String>,
    /// Start both ranks on this host, without a server.
    #[arg(long, conflicts_with_all = ["via", "hosts", "listen", "port", "wait"])]
    pub(crate) local: bool,
    /// TCP port of the server.
    #[arg(short = 'p', long, default_value_t = PORT, conflicts_with = "via")]
    pub(crate) port: u16,
    /// Address that the server listens on, such as 0.0.0.0 for all addresses of this host [default:
    /// 127.0.0.1, which only this host reaches].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "via")]
    pub(crate) listen: Option<String>,
    /// Let the client of this server apply its --environment on this host, too, with the rights of
    /// this command.
    #[arg(long, conflicts_with_all = ["host", "local", "via"])]
    pub(crate) allow_environment: bool,
    /// Key that the server printed. RDMASCOPE_KEY in the environment may have it instead, which
    /// other users of this host cannot see. A script may also give a key to a server, for one use.
    #[arg(long, conflicts_with_all = ["local", "via"])]
    pub(crate) key: Option<String>,
    /// Time that the client waits for the server, or the server for its client, such as 60 or 5min
    /// [default: 30s for the client, 10min for the server].
    #[arg(long, value_name = "TIME", conflicts_with = "via", value_parser = time)]
    pub(crate) wait: Option<Duration>,
}

/// The variable that may have a key.
const KEY_VARIABLE: &str = "RDMASCOPE_KEY";
/// How long a server waits: long enough for a user to go to another host.
pub(crate) const SERVER_WAIT: Duration = Duration::from_secs(600);
/// How long a client waits: a script may start the server a little later.
pub(crate) const CLIENT_WAIT: Duration = Duration::from_secs(30);

impl ServerArgs {
    /// Returns the server of this command, if this command is a client.
    pub(crate) fn peer(&self) -> anyhow::Result<Option<Peer>> {
        let Some(host) = &self.host else { return Ok(None) };
        if host.is_empty() {
            return Err(Usage("HOST is empty: give the name or the address of the server".to_owned()).into());
        }
        if self.port == 0 {
            return Err(Usage(
                "-p 0 is not the port of a server: give the port that the server printed".to_owned(),
            )
            .into());
        }
        let key = key_of_client(self.given_key()?, host)?;
        let wait = self.wait.unwrap_or(CLIENT_WAIT);
        Ok(Some(Peer { host: host.clone(), port: self.port, key, wait }))
    }

    /// Returns the key that was given with the command or in the environment.
    pub(crate) fn given_key(&self) -> anyhow::Result<Option<Key>> {
        given_key(self.key.as_deref())
    }

    /// Returns the address on which the server listens.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        let Some(text) = &self.listen else { return Ok((Ipv4Addr::LOCALHOST, self.port).into()) };
        Ok(listening_address(text, self.port)?)
    }

    /// Returns how long the server waits for its client.
    pub(crate) fn server_wait(&self) -> Duration {
        self.wait.unwrap_or(SERVER_WAIT)
    }
}

/// Returns the key that was given with a command or in the environment.
pub(crate) fn given_key(given: Option<&str>) -> anyhow::Result<Option<Key>> {
    let of_environment = || std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty());
    let text = given.map(str::to_owned).or_else(of_environment);
    Ok(text.map(|text| text.parse()).transpose()?)
}

/// Returns the key of a client; fails without one.
pub(crate) fn key_of_client(given: Option<Key>, host: &str) -> Result<Key, Usage> {
    given.ok_or_else(|| {
        Usage(format!(
            "the client of {host} needs the key that the server printed: give --key KEY or {KEY_VARIABLE}"
        ))
    })
}

/// Parses an address of this host to listen on.
pub(crate) fn listening_address(text: &str, port: u16) -> Result<SocketAddr, Usage> {
    // Names are refused: Debian resolves a host's own name to a loopback address.
    let is_address = text.split('%').next().is_some_and(|address| address.parse::<IpAddr>().is_ok());
    let found = is_address.then(|| (text, port).to_socket_addrs().ok()?.next()).flatten();
    found.ok_or_else(|| {
        Usage(format!("--listen {text}: give an address of this host such as 192.0.2.7, or 0.0.0.0 for all"))
    })
}

/// Returns a command line for a record, without the key.
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
