//! Processes: one agent for each rank, and the coordinator that tells the agents what to measure.
//!
//! ```text
//! coordinator ── standard input ──► agent of rank 0   (a child, or whatever `--via` starts: ssh, ip netns exec, ...)
//!             ◄─ standard output ──
//!             ◄═ TCP, encrypted ══► server, rank 1    (started by hand, where that is what users want)
//! ```
//!
//! * [`frame`]: how messages travel in a byte stream, and how anything else is recognised;
//! * [`message`]: the messages;
//! * [`agent`]: the process that measures, around an [`agent::Worker`];
//! * [`coordinator`]: the process that decides, with a deadline on every wait and no child left
//!   behind;
//! * [`fleet`]: agents of many hosts, kept for all measurements, of which groups measure at the
//!   same time;
//! * [`server`], [`client_session`], [`dial`]: an agent and a coordinator that a user started by
//!   hand;
//! * [`key`], [`secure`]: the authentication and encryption between these two.
//!
//! # Invariants
//!
//! * The coordinator talks to an agent over a link: the standard streams of a child (no port, no
//!   firewall rule, no authentication to get wrong; every trusted way into a machine works,
//!   `--via`), or the connection to a server that a user started by hand.
//! * Only such a server listens for control: on loopback unless told otherwise, for one client,
//!   until that client has come. Before the key is verified, a client learns only the protocol
//!   version and cannot interrupt the server.
//! * Sockets that carry messages over IP listen while a point is set up: on loopback where all
//!   ranks are on this host. They accept only a peer that sends the number that the control
//!   connection gave it. Sockets of message libraries listen as long as the point lasts, and accept
//!   any peer.
//! * An agent's standard output carries nothing but the greeting and frames.
//! * Every wait has a deadline.
//! * Agents die with the coordinator, and the coordinator always reaps its agents.
//! * The control connection is silent while a point runs.

pub mod agent;
mod agent_set;
mod channel;
pub(crate) mod child;
pub mod client_session;
mod connection;
pub mod coordinator;
mod crowd;
pub mod dial;
pub mod fleet;
pub mod frame;
pub mod interrupt;
pub mod key;
pub mod launch;
pub mod launcher;
mod limits;
mod link;
mod listener;
pub mod message;
mod point_result;
mod rank_set;
mod rank_sets;
pub mod secure;
pub mod server;
pub mod sink;
pub mod template;
mod wait;

pub use child::end_with_us;
