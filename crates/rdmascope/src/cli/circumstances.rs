//! The flags that say what a benchmark is measured under, whatever it sends.

use bench::axis;
use bench::plan::Settings;
use bench::point::{Memory, Setup};
use clap::Args;
use measure::conditions::Wanted;
use verbs::LinkModel;

use super::words::words;

/// What a benchmark is measured under; the letters are perftest's.
#[derive(Args, Clone, Debug)]
pub(crate) struct Circumstances {
    /// Path MTU in bytes.
    #[arg(short = 'm', long, value_name = "BYTES")]
    pub(crate) mtu: Option<u32>,
    /// Send-queue depth.
    #[arg(short = 't', long, value_name = "N")]
    pub(crate) tx_depth: Option<u32>,
    /// Receive-queue depth.
    #[arg(short = 'r', long, value_name = "N")]
    pub(crate) rx_depth: Option<u32>,
    /// Model a link, where the device can: `4X FDR`, `40Gb/s,latency=700ns`, and back=, fetch=, gap=, mtu=, header=.
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<LinkModel>,
    /// Whose memory messages come from and go to.
    #[arg(long, value_name = "KIND", default_value = "device", value_parser = words::<Memory>())]
    pub(crate) memory: Memory,
    /// Measure in this environment, and take it back afterwards [possible values: as_is, optimised, event, loaded].
    #[arg(long, value_name = "NAME", value_parser = Wanted::BUILT_IN, hide_possible_values = true)]
    pub(crate) environment: Option<String>,
    /// Connect with RDMA CM.
    #[arg(short = 'R', long = "rdma_cm", alias = "rdma-cm")]
    pub(crate) rdma_cm: bool,
}

impl Circumstances {
    /// Settings of a plan with these; what is not given is left to the plan's defaults.
    pub(crate) fn settle(&self, mut settings: Settings) -> Settings {
        settings.tx_depth = self.tx_depth.or(settings.tx_depth);
        settings.rx_depth = self.rx_depth.or(settings.rx_depth);
        let memory = (self.memory == Memory::Process).then(|| axis::MEMORY.value(Memory::Process));
        let given = [
            self.mtu.map(|bytes| axis::MTU_BYTES.value(Some(bytes))),
            memory,
            self.link.map(|link| axis::LINK.value(Some(link.to_string()))),
            self.environment.as_ref().map(|name| axis::ENVIRONMENT.value(name.clone())),
            self.rdma_cm.then(|| axis::SETUP.value(Setup::RdmaCm)),
        ];
        given.into_iter().flatten().fold(settings, Settings::axis)
    }

    /// These as flags, each with a blank before it.
    pub(crate) fn words(&self) -> String {
        let is_process = self.memory == Memory::Process;
        let given = [
            self.mtu.map(|bytes| format!(" -m {bytes}")),
            self.tx_depth.map(|depth| format!(" -t {depth}")),
            self.rx_depth.map(|depth| format!(" -r {depth}")),
            self.link.map(|link| format!(" --link '{link}'")),
            is_process.then(|| " --memory process".to_owned()),
            self.environment.as_ref().map(|name| format!(" --environment {name}")),
            self.rdma_cm.then(|| " -R".to_owned()),
        ];
        given.into_iter().flatten().collect()
    }
}
