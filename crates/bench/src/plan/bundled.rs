//! The plans that come with the program, with their references. The program needs no other file.

use super::model::{Base, Plan};
use super::read;
use crate::Error;

/// A plan inside the program.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Its name for `rdmascope run`.
    pub name: &'static str,
    /// Its TOML.
    pub text: &'static str,
}

impl Bundled {
    /// Reads the plan.
    ///
    /// # Errors
    ///
    /// Users cannot cause an error: a test checks the plans.
    pub fn plan(&self) -> Result<Plan, Error> {
        read::plan(self.text, &format!("plans/{}.toml", self.name), Base::Bundled)
    }
}

/// Every plan that comes with the program.
pub fn bundled() -> &'static [Bundled] {
    &PLANS
}

/// The text of a reference that comes with the program.
pub(super) fn reference(file: &str) -> Option<&'static str> {
    REFERENCES.iter().find(|(name, _)| *name == file).map(|(_, text)| *text)
}

macro_rules! reference {
    ($file:literal) => {
        ($file, include_str!(concat!("../../../../plans/", $file)))
    };
}

const PLANS: [Bundled; 14] = [
    Bundled { name: "quick", text: include_str!("../../../../plans/quick.toml") },
    Bundled { name: "applications", text: include_str!("../../../../plans/applications.toml") },
    Bundled { name: "gamess-2016", text: include_str!("../../../../plans/gamess-2016.toml") },
    Bundled { name: "gamess-2016-ipoib", text: include_str!("../../../../plans/gamess-2016-ipoib.toml") },
    Bundled { name: "hoefler-2006", text: include_str!("../../../../plans/hoefler-2006.toml") },
    Bundled {
        name: "hoefler-2006-barrier",
        text: include_str!("../../../../plans/hoefler-2006-barrier.toml"),
    },
    Bundled { name: "layers", text: include_str!("../../../../plans/layers.toml") },
    Bundled { name: "load", text: include_str!("../../../../plans/load.toml") },
    Bundled { name: "models", text: include_str!("../../../../plans/models.toml") },
    Bundled { name: "mpi", text: include_str!("../../../../plans/mpi.toml") },
    Bundled { name: "potter-2018-hca", text: include_str!("../../../../plans/potter-2018-hca.toml") },
    Bundled { name: "potter-2018-nodes", text: include_str!("../../../../plans/potter-2018-nodes.toml") },
    Bundled { name: "subramoni-2009", text: include_str!("../../../../plans/subramoni-2009.toml") },
    Bundled { name: "sur-2007", text: include_str!("../../../../plans/sur-2007.toml") },
];

const REFERENCES: [(&str, &str); 23] = [
    reference!("reference/gamess-2016/figure5_throughput_gbps.csv"),
    reference!("reference/gamess-2016/figure7_rc_throughput_gbps.csv"),
    reference!("reference/gamess-2016/figure9_uc_throughput_gbps.csv"),
    reference!("reference/gamess-2016/table1_link_rates_gbps.csv"),
    reference!("reference/gamess-2016/table2_rc_send_latency_us.csv"),
    reference!("reference/gamess-2016/table3_uc_send_latency_us.csv"),
    reference!("reference/gamess-2016/table4_ud_send_latency_us.csv"),
    reference!("reference/gamess-2016-ipoib/table5_ipoib_datagram_udp_throughput_mbps.csv"),
    reference!("reference/gamess-2016-ipoib/table6_ipoib_datagram_latency_us.csv"),
    reference!("reference/gamess-2016-ipoib/table7_ipoib_connected_udp_throughput_mbps.csv"),
    reference!("reference/gamess-2016-ipoib/table8_ipoib_connected_latency_us.csv"),
    reference!("reference/potter-2018-hca/medians.csv"),
    reference!("reference/potter-2018-hca/unreliable_connection.csv"),
    reference!("reference/potter-2018-nodes/environments_percent.csv"),
    reference!("reference/potter-2018-nodes/timers_percent.csv"),
    reference!("reference/subramoni-2009/applications.csv"),
    reference!("reference/subramoni-2009/mpi_allgather_us.csv"),
    reference!("reference/subramoni-2009/mpi_allreduce_us.csv"),
    reference!("reference/subramoni-2009/mpi_latency_us.csv"),
    reference!("reference/subramoni-2009/mpi_pairs_us.csv"),
    reference!("reference/subramoni-2009/verbs_latency_us.csv"),
    reference!("reference/sur-2007/figure2_write_latency_us.csv"),
    reference!("reference/sur-2007/summary.csv"),
];
