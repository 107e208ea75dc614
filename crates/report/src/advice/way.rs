//! Configurations: the settings that a developer decides, and their order by simplicity.

use measure::record::Axes;
use serde_json::Value;

/// Services, the simplest first.
pub const SERVICES: [&str; 3] = ["RC", "UC", "UD"];
/// Operations, the simplest first.
pub const OPERATIONS: [&str; 2] = ["send_imm", "write_imm"];
/// Polling modes, the simplest first: a thread that sleeps leaves its CPU to others.
pub const POLLS: [&str; 4] = ["event", "event_repoll", "hybrid", "busy"];
/// A configuration: the settings that a developer decides.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Way {
    /// Transport service, of [`SERVICES`].
    pub service: String,
    /// Operation, of [`OPERATIONS`].
    pub operation: String,
    /// Whether the payload is copied into the work request.
    pub inline: bool,
    /// Every how many sends one is signalled.
    pub signal_interval: u64,
    /// How completions are waited for, of [`POLLS`].
    pub poll: String,
    /// Buffers at each rank, which messages use in turn.
    pub buffers: u64,
}

impl Way {
    /// The configuration of a point; `None` where an axis is missing.
    pub fn of(axes: &Axes) -> Option<Self> {
        let text = |name: &str| axes.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| axes.get(name).and_then(Value::as_u64);
        Some(Self {
            service: text("service")?,
            operation: text("operation")?,
            inline: axes.get("inline")?.as_bool()?,
            signal_interval: number("signal_interval")?,
            poll: text("poll")?,
            buffers: number("buffers")?,
        })
    }

    /// Sorts configurations from simple to elaborate: reliable before unreliable, send before
    /// write, not inline before inline, every send signalled before few, sleeping before polling,
    /// few buffers before many. The first difference decides.
    pub fn complexity(&self) -> [u64; 6] {
        let rank = |known: &[&str], name: &str| {
            known.iter().position(|known| *known == name).unwrap_or(known.len()) as u64
        };
        [
            rank(&SERVICES, &self.service),
            rank(&OPERATIONS, &self.operation),
            u64::from(self.inline),
            self.signal_interval,
            rank(&POLLS, &self.poll),
            self.buffers,
        ]
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { service, operation, inline, signal_interval, poll, buffers } = self;
        let inline = if *inline { ", inline" } else { "" };
        let signalled = if *signal_interval > 1 {
            format!(", every {signal_interval}th signalled")
        } else {
            String::new()
        };
        write!(f, "{service} {operation}, {poll}{inline}{signalled}, {buffers} buffers")
    }
}
