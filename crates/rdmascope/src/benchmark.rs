//! `rdmascope lat` and `rdmascope bw`: one benchmark from flags, through the same plan type as everything else.

use std::process::ExitCode;

use bench::plan::{Axis, Options, Plan, Settings, resolve};
use bench::point::{Flow, Operation, Pattern, Poll, Service};
use measure::figure::Unit;
use measure::units;

use crate::cli::{BandwidthFlags, BandwidthOperation, Connection, Flags, LatencyOperation};
use crate::execute::{Job, execute};
use crate::launch::launch;

/// Largest size of `-a`: perftest's 2^23.
const ALL_MAX: u64 = 8 << 20;
/// Smallest size of `-a`: perftest's.
const ALL_MIN: u64 = 2;
/// Path MTU where none is given: the plan's default.
const MTU_BYTES: u32 = 4096;

/// `rdmascope lat ...`.
pub(crate) fn latency(operation: &LatencyOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let LatencyOperation::Send(flags) = operation;
    let settings = settings(flags);
    start("lat-send", "Send latency", Pattern::PingPong, settings, flags, command, Unit::MiBPerS)
}

/// `rdmascope bw ...`.
pub(crate) fn bandwidth(operation: &BandwidthOperation, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let BandwidthOperation::Send(BandwidthFlags { bidirectional, report_gbits, flags }) = operation;
    let flow = if *bidirectional { Flow::Bi } else { Flow::Uni };
    let settings = settings(flags).axis(Axis::Direction(vec![flow]));
    let unit = if *report_gbits { Unit::GbPerS } else { Unit::MiBPerS };
    start("bw-send", "Send throughput", Pattern::Stream, settings, flags, command, unit)
}

fn start(
    name: &str,
    title: &str,
    pattern: Pattern,
    settings: Settings,
    flags: &Flags,
    command: Vec<String>,
    bandwidth: Unit,
) -> anyhow::Result<ExitCode> {
    let mut plan = Plan::new(name, title);
    // Sizes up to the inline limit and those above it differ in an axis, so they are two experiments.
    let (small, large): (Vec<u64>, Vec<u64>) =
        sizes(flags)?.unwrap_or_default().into_iter().partition(|size| *size <= flags.inline_size);
    let default_size = small.is_empty() && large.is_empty();
    if !small.is_empty() || (default_size && flags.inline_size > 0) {
        let inline = settings.clone().axis(Axis::Inline(vec![true]));
        let inline = if default_size { inline } else { inline.axis(Axis::SizeBytes(small)) };
        plan = plan.experiment("inline", pattern, inline);
    }
    if !large.is_empty() || (default_size && flags.inline_size == 0) {
        let plain = if default_size { settings } else { settings.axis(Axis::SizeBytes(large)) };
        plan = plan.experiment(name, pattern, plain);
    }
    let resolved = resolve(&plan, &Options::default())?;
    let launch = launch(&flags.placement)?;
    execute(Job { resolved, quick: false, command, launch, out: flags.out.clone(), bandwidth })
}

/// The sizes that the flags ask for; `None` leaves the default of the pattern.
fn sizes(flags: &Flags) -> anyhow::Result<Option<Vec<u64>>> {
    if flags.all {
        let mtu = u64::from(flags.mtu.unwrap_or(MTU_BYTES));
        let max = if matches!(flags.connection, Connection::Ud) { mtu } else { ALL_MAX };
        let doubled = std::iter::successors(Some(ALL_MIN), |size| Some(size * 2));
        return Ok(Some(doubled.take_while(|size| *size <= max).collect()));
    }
    let Some(text) = &flags.size else { return Ok(None) };
    let sizes = text.split(',').map(|part| units::parse_sizes(part.trim())).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(sizes.concat()))
}

fn settings(flags: &Flags) -> Settings {
    let service = match flags.connection {
        Connection::Rc => Service::Rc,
        Connection::Uc => Service::Uc,
        Connection::Ud => Service::Ud,
    };
    let mut settings =
        Settings::default().axis(Axis::Operation(vec![Operation::Send])).axis(Axis::Service(vec![service]));
    settings.iterations = flags.iters;
    settings.duration_s = flags.duration;
    settings.tx_depth = flags.tx_depth;
    settings.rx_depth = flags.rx_depth;
    if flags.events {
        settings = settings.axis(Axis::Poll(vec![Poll::Event]));
    }
    if let Some(mtu_bytes) = flags.mtu {
        settings = settings.axis(Axis::MtuBytes(vec![mtu_bytes]));
    }
    if let Some(interval) = flags.cq_mod {
        settings = settings.axis(Axis::SignalInterval(vec![interval]));
    }
    settings
}
