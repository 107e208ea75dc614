//! The conditions under which a point is measured: what a plan asks of the machine, and what
//! became of it. Nothing is changed here: the crate `conditions` does that.

mod outcome;
mod scheduler;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use outcome::{Condition, Outcome, Technique};
pub use scheduler::Scheduler;

/// The tuning that a plan asks of the machine. What is absent stays as it is.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// Policy of the PCI Express links' power management (ASPM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aspm: Option<Aspm>,
    /// Request to `/dev/cpu_dma_latency`, in microseconds: CPUs enter no idle state that takes
    /// longer to leave. 0 forbids all idle states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_dma_latency_us: Option<i32>,
    /// Which other tasks may use the CPUs of the ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpuset: Option<Cpuset>,
    /// Governor of the clock rate of all CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Mode of the IPoIB interfaces that messages may take. A point sets it, never an environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipoib_mode: Option<IpoibMode>,
    /// Where interrupts go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq_affinity: Option<IrqAffinity>,
    /// Whether the memory of the process may be paged out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// NUMA node that memory comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa: Option<Numa>,
    /// Scheduling class of the thread that measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub scheduler: Option<Scheduler>,
    /// Other work that the host does meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stress: Option<Stress>,
    /// Profile of tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuned: Option<String>,
    /// Whether CPUs may run above their nominal clock rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo: Option<Turbo>,
}

/// Policy of ASPM, as `/sys/module/pcie_aspm/parameters/policy` has it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aspm {
    /// What the firmware chose.
    Default,
    /// Links never enter a power-saving state.
    Performance,
    /// Links enter power-saving states.
    Powersave,
    /// Links enter the deepest power-saving states.
    Powersupersave,
}

/// Which other tasks may use the CPUs of the ranks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpuset {
    /// None that the kernel allows to be moved.
    Shield,
}

/// What IPoIB carries packets over, as `/sys/class/net/DEV/mode` has it (RFC 4391, RFC 4755).
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IpoibMode {
    /// Reliable connections: long packets.
    Connected,
    /// Unreliable datagrams: packets no longer than the link's MTU.
    Datagram,
}

/// Where interrupts go.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IrqAffinity {
    /// To CPUs without a rank, as far as interrupts can be moved.
    Away,
}

/// Whether the memory of the process may be paged out.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// All its memory, present and future, stays in RAM.
    Locked,
}

/// NUMA node that memory comes from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Numa {
    /// The node that the device is attached to.
    Device,
}

/// Other work that the host does meanwhile.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stress {
    /// Computing without a pause, in as many threads as the host has CPUs, without a real-time
    /// class and on every CPU that is not shielded from them.
    Cpu,
}

/// Whether CPUs may run above their nominal clock rate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Turbo {
    /// They may not.
    Off,
    /// They may.
    On,
}

impl Wanted {
    /// The environments that have a name without a plan that defines them.
    ///
    /// `optimised` is the list of techniques of Potter 2018, with the idle states forbidden. It has
    /// no real-time class: the kernel stops a real-time task that never sleeps for 50 ms of each
    /// second (`sched_rt_runtime_us`), which a maximum would show. `event` leaves out the isolation
    /// of CPUs and interrupts, which made event polling slower in Potter 2018. `loaded` gives the
    /// host other work.
    pub const BUILT_IN: [&'static str; 4] = [AS_IS, "optimised", "event", "loaded"];

    /// What a built-in name stands for.
    pub fn built_in(name: &str) -> Option<Self> {
        let event = Self {
            cpu_dma_latency_us: Some(0),
            governor: Some("performance".to_owned()),
            memory: Some(Memory::Locked),
            numa: Some(Numa::Device),
            tuned: Some("latency-performance".to_owned()),
            ..Self::default()
        };
        match name {
            AS_IS => Some(Self::default()),
            "event" => Some(event),
            "loaded" => Some(Self { stress: Some(Stress::Cpu), ..Self::default() }),
            "optimised" => {
                Some(Self { cpuset: Some(Cpuset::Shield), irq_affinity: Some(IrqAffinity::Away), ..event })
            }
            _ => None,
        }
    }

    /// Whether nothing is asked for.
    pub fn is_as_is(&self) -> bool {
        *self == Self::default()
    }

    /// The part that affects the whole host, and stays after the process unless it is reverted.
    #[must_use]
    pub fn host_wide(&self) -> Self {
        Self { cpu_dma_latency_us: None, memory: None, numa: None, scheduler: None, ..self.clone() }
    }

    /// What is asked for, in the order in which it is applied, each with its value as in a plan.
    /// Limits that protect the ranks come before the work that they protect from, profiles before
    /// the settings that they would change, and the scheduling class last, so that nothing else
    /// runs in it.
    pub fn techniques(&self) -> Vec<(Technique, String)> {
        let word = |value: Result<serde_json::Value, serde_json::Error>| {
            value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
        };
        let all = [
            (Technique::Stress, self.stress.map(|stress| word(serde_json::to_value(stress)))),
            (Technique::Tuned, self.tuned.clone()),
            (Technique::Governor, self.governor.clone()),
            (Technique::Turbo, self.turbo.map(|turbo| word(serde_json::to_value(turbo)))),
            (Technique::Aspm, self.aspm.map(|aspm| word(serde_json::to_value(aspm)))),
            (Technique::IpoibMode, self.ipoib_mode.map(|mode| word(serde_json::to_value(mode)))),
            (Technique::IrqAffinity, self.irq_affinity.map(|irq| word(serde_json::to_value(irq)))),
            (Technique::Cpuset, self.cpuset.map(|cpuset| word(serde_json::to_value(cpuset)))),
            (Technique::CpuDmaLatency, self.cpu_dma_latency_us.map(|us| format!("{us} us"))),
            (Technique::Numa, self.numa.map(|numa| word(serde_json::to_value(numa)))),
            (Technique::Memory, self.memory.map(|memory| word(serde_json::to_value(memory)))),
            (Technique::Scheduler, self.scheduler.map(|scheduler| scheduler.to_string())),
        ];
        all.into_iter().filter_map(|(technique, asked)| Some((technique, asked?))).collect()
    }
}

/// The environment that changes nothing.
pub const AS_IS: &str = "as_is";
