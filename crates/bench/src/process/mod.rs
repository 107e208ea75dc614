//! Processes: one agent per rank that measures, and the coordinator that tells them what.
//!
//! ```text
//! coordinator ── standard input ──► agent of rank 0   (a child, or whatever `--via` starts: ssh, ip netns exec, ...)
//!             ◄─ standard output ──
//!             ◄═ TCP, encrypted ══► server, rank 1    (started by hand, where that is what users want)
//! ```
//!
//! * [`frame`]: how messages travel in a byte stream, and how anything else is recognised as such;
//! * [`message`]: what is said;
//! * [`agent`]: the end that measures, around a [`agent::Worker`];
//! * [`coordinator`]: the end that decides, with a deadline on every wait and no child left behind;
//! * [`server`], [`client_session`], [`dial`]: an agent and a coordinator that find each other
//!   because a user started both;
//! * [`key`], [`secure`]: how they know each other, and nobody else knows what they say.
//!
//! Invariants: nothing listens on a port but a server that waits for its one client, on loopback
//! unless told otherwise; whoever has not shown the key is told nothing, costs nothing and stops
//! nothing; nothing but frames on an agent's standard output; every wait has a deadline; agents die
//! with the coordinator and the coordinator reaps its agents, on every way out; control traffic
//! stops while a point is measured.
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
//!   ranks are on this host, and only for a peer that says the number that the control plane told
//!   it. Sockets of message libraries listen as long as the point lasts, and do not ask who
//!   connects.
//! * The control plane is silent while a point runs.

pub mod agent;
mod agent_set;
mod channel;
pub(crate) mod child;
pub mod client_session;
mod connection;
pub mod coordinator;
pub mod dial;
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
mod template;
mod wait;
