//! The outcome of each technique, as the record has it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of one technique on the host of one rank.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Condition {
    /// Rank for which it was tried.
    pub rank: u32,
    /// What was tried.
    pub technique: Technique,
    /// The value that the plan's environment asks for.
    pub asked: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The setting before; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Why it was not applied and what would help; or a remark on it although it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A technique that makes a machine's latencies smaller or steadier, or shows what such techniques
/// are good for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Technique {
    /// Policy of the PCI Express links' power management.
    Aspm,
    /// A request to `/dev/cpu_dma_latency`, held while the point runs.
    CpuDmaLatency,
    /// Other tasks moved off the ranks' CPUs.
    Cpuset,
    /// Governor of the clock rate.
    Governor,
    /// Mode of the IPoIB interfaces that messages may take.
    IpoibMode,
    /// Interrupts moved off the ranks' CPUs.
    IrqAffinity,
    /// Memory locked.
    Memory,
    /// Memory bound to the device's node.
    Numa,
    /// Scheduling class of the thread that measures.
    Scheduler,
    /// Other work on the host's CPUs.
    Stress,
    /// Profile of tuned.
    Tuned,
    /// Clock rates above the nominal one.
    Turbo,
}

/// The outcome of an attempt at a technique.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was in force while the point was measured.
    Applied,
    /// There was nothing to apply it to, or it would have done harm.
    NotApplied,
    /// The process lacked the rights for it.
    NotPermitted,
}

impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aspm => "aspm",
            Self::CpuDmaLatency => "cpu_dma_latency",
            Self::Cpuset => "cpuset",
            Self::Governor => "governor",
            Self::IpoibMode => "ipoib_mode",
            Self::IrqAffinity => "irq_affinity",
            Self::Memory => "memory",
            Self::Numa => "numa",
            Self::Scheduler => "scheduler",
            Self::Stress => "stress",
            Self::Tuned => "tuned",
            Self::Turbo => "turbo",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied",
            Self::NotApplied => "not applied",
            Self::NotPermitted => "not permitted",
        })
    }
}
