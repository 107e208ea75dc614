//! `rdmascope pipeline`: samples at a fixed rate, through the same plan type as everything else.

use std::process::ExitCode;

use bench::axis;
use bench::plan::{Plan, Settings};
use bench::point::{Carrier, Pattern};
use measure::figure::Unit;

use crate::benchmark::measure;
use crate::cli::{PipelineNode, Site, SocketPlacement};

/// Measures what the flags ask for.
pub(crate) fn pipeline(node: &PipelineNode, command: Vec<String>) -> anyhow::Result<ExitCode> {
    match node {
        PipelineNode::Infiniband(flags) => {
            measure(&plan("infiniband", flags.settings()), &flags.site, Unit::MiBPerS, command)
        }
        PipelineNode::Sockets(sockets) => {
            let (carrier, flags) = sockets.carrier();
            measure_on(carrier, flags.settings(), &flags.site, command)
        }
        PipelineNode::Iceoryx2(flags) => {
            measure_on(Carrier::Iceoryx2, flags.settings(), &flags.site, command)
        }
        PipelineNode::Zeromq(flags) => measure_on(Carrier::Zeromq, flags.settings(), &flags.site, command),
        PipelineNode::Nng(flags) => measure_on(Carrier::Nng, flags.settings(), &flags.site, command),
        PipelineNode::Nanomsg(flags) => measure_on(Carrier::Nanomsg, flags.settings(), &flags.site, command),
    }
}

/// Measures over something without a device.
fn measure_on(
    carrier: Carrier,
    settings: Settings,
    site: &Site<SocketPlacement>,
    command: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let settings = settings.axis(axis::ENDPOINT.value(carrier));
    measure(&plan(carrier.name(), settings), site, Unit::MiBPerS, command)
}

fn plan(node: &str, settings: Settings) -> Plan {
    let title = format!("Samples at a fixed rate over {node}");
    Plan::new("pipeline", title).experiment("pipeline", Pattern::PIPELINE, settings)
}
