//! From a plan to its points.
//!
//! The order of the points: experiments in the order of the plan; inside an experiment, launches
//! outermost, then repetitions, then the axes in the order of the plan, the size innermost. Drift
//! of the machine (heat, neighbours) thus affects every combination alike, instead of all
//! repetitions of one combination. Every launch measures every combination, so that differences
//! between launches affect all combinations alike.
//!
//! Inside a launch, points that need the same ranks (`World`: the number of ranks, their hosts, the
//! transport of MPI) come together, with all of their repetitions; so do the points that MPI does
//! not carry. Each launch thus starts such ranks once, and all of its repetitions use the same
//! ranks.

use measure::conditions::{AS_IS, Wanted};
use measure::expectation::Expectation;
use measure::figure::Figure;
use measure::finding::Finding;
use measure::record::Axes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use verbs::{LinkModel, LinkRate};

use super::model::{Options, Plan};
use super::{applications, check, costs, environments, expectations, figures, findings, overrides};
use crate::Error;
use crate::axis::{self, Key};
use crate::pattern::experiment::Filled;
use crate::point::tool;
use crate::point::{
    Carrier, LinkLayer, Memory, MessageSpec, MpiCall, MpiOperation, MpiSettings, MpiSync, Operation,
    PointSpec, Protocol, Service, Setup, SocketSettings, Step, World,
};

/// A plan with nothing left to decide.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Name of the plan.
    pub name: String,
    /// Heading of the report.
    pub title: String,
    /// A paragraph on what the run is for.
    pub about: Option<String>,
    /// The plan as the record keeps it: every default filled in, every axis expanded, without its
    /// figures.
    pub plan: Value,
    /// Figures with the published numbers filled in.
    pub figures: Vec<Figure>,
    /// Findings to answer.
    pub findings: Vec<Finding>,
    /// Bounds on numbers of the run.
    pub expectations: Vec<Expectation>,
    /// The command that starts all ranks, if the plan has one.
    pub mpi: Option<String>,
    /// What is measured, in order.
    pub points: Vec<PointSpec>,
}

impl Resolved {
    /// Whether some point uses an RDMA device.
    pub fn needs_device(&self) -> bool {
        self.points.iter().any(|point| point.message.endpoint.is_verbs())
    }

    /// The largest number of ranks of a point.
    pub fn ranks(&self) -> usize {
        self.points.iter().map(PointSpec::ranks).max().unwrap_or(0) as usize
    }
}

/// Resolves a plan.
///
/// # Errors
///
/// If the plan, its quick form or an override asks for something that is not possible.
pub fn resolve(plan: &Plan, options: &Options) -> Result<Resolved, Error> {
    check::names(plan)?;
    let experiments = overrides::experiments(plan, options)?;
    let plan = &overrides::variables(plan, options);
    experiments.iter().try_for_each(check::carriers)?;
    let experiments: Vec<Vec<Filled>> = experiments.iter().map(Filled::each).collect();
    let all: Vec<&Filled> = experiments.iter().flatten().collect();
    all.iter().try_for_each(|filled| check::experiment(filled))?;
    all.iter().try_for_each(|filled| environments::check(plan, filled))?;
    all.iter().try_for_each(|filled| applications::check(plan, filled))?;
    check::points(plan, &all)?;
    let figures = figures::resolve(plan)?;
    let mut points = Vec::new();
    for filled in &experiments {
        expand(plan, filled, &mut points);
    }
    // A shortened plan may lack the points of a finding or of a row of a figure. The report then
    // says so.
    let is_whole = !options.quick && options.set.is_empty();
    let whole = is_whole.then_some(&points);
    findings::check(plan, whole)?;
    expectations::check(plan, whole)?;
    whole.map_or(Ok(()), |whole| costs::points(plan, whole))?;
    let mut plan_json = json!({
        "name": plan.name,
        "title": plan.title,
        "about": plan.about,
        "seed": plan.seed,
        "quick": options.quick,
        "environments": environments::used(plan, &points),
        "experiments": all.iter().map(|filled| filled.to_json()).collect::<Vec<_>>(),
    });
    if let Some(template) = &plan.mpi {
        plan_json["mpi"] = template.as_str().into();
    }
    applications::record(plan, &mut plan_json);
    Ok(Resolved {
        name: plan.name.clone(),
        title: plan.title.clone(),
        about: plan.about.clone(),
        plan: plan_json,
        figures,
        findings: plan.findings.clone(),
        expectations: expectations::distinct(plan),
        mpi: plan.mpi.clone(),
        points,
    })
}

/// Appends the points of one experiment, of each of its endpoints.
fn expand(plan: &Plan, experiment: &[Filled], points: &mut Vec<PointSpec>) {
    let Some(&Filled { launches, repetitions, .. }) = experiment.first() else { return };
    let mut numbers = 0..;
    for launch in 0..launches {
        let first = points.len();
        let launch = (launches > 1).then_some(launch);
        for repetition in numbers.by_ref().take(repetitions as usize) {
            for filled in experiment {
                combine(plan, filled, (repetition, launch), points);
            }
        }
        if launch.is_some() {
            let of_launch = points.split_off(first);
            points.extend(by_world(of_launch, first as u64));
        }
    }
}

/// Groups the points of a launch by the ranks that measure them. The groups keep the order of their
/// first points. The points are numbered from `first` on.
fn by_world(points: Vec<PointSpec>, first: u64) -> impl Iterator<Item = PointSpec> {
    let mut worlds: Vec<(Option<World>, Vec<PointSpec>)> = Vec::new();
    for point in points {
        let world = point.world();
        match worlds.iter_mut().find(|(known, _)| *known == world) {
            Some((_, group)) => group.push(point),
            None => worlds.push((world, vec![point])),
        }
    }
    let all = worlds.into_iter().flat_map(|(_, group)| group);
    (first..).zip(all).map(|(id, point)| PointSpec { id, ..point })
}

/// Appends a point for each combination of the values of the axes, of one repetition in a launch.
fn combine(plan: &Plan, filled: &Filled, time: (u32, Option<u32>), points: &mut Vec<PointSpec>) {
    let lists: Vec<(&str, &[Value])> =
        filled.axes.iter().map(|axis| (axis.row.name, axis.values())).collect();
    let combinations: usize = lists.iter().map(|(_, values)| values.len()).product();
    for combination in 0..combinations {
        // The axes are the digits of the number of the combination; the last axis changes fastest.
        let mut rest = combination;
        let mut axes = Axes::new();
        for (name, values) in lists.iter().rev() {
            axes.insert((*name).to_owned(), values[rest % values.len()].clone());
            rest /= values.len();
        }
        if let Some(size_bytes) = filled.pattern.row().size_bytes {
            let size_bytes = size_bytes(&axes);
            axes.insert(axis::SIZE_BYTES.row.name.to_owned(), size_bytes.into());
        }
        points.push(point(plan, filled, points.len() as u64, time, axes));
    }
}

fn point(
    plan: &Plan,
    filled: &Filled,
    id: u64,
    (repetition, launch): (u32, Option<u32>),
    axes: Axes,
) -> PointSpec {
    let size_bytes = given(&axes, axis::SIZE_BYTES);
    let (length, warmup) = filled.length_at(size_bytes, axis::RATE_HZ.at(&axes));
    let tx_depth = axis::TX_DEPTH.at(&axes).unwrap_or(filled.tx_depth);
    let rx_depth = axis::RX_DEPTH.at(&axes).unwrap_or(filled.rx_depth);
    let rx_fill = axis::RX_FILL.at(&axes).flatten().unwrap_or(rx_depth);
    let (poll, send_poll) = given(&axes, axis::POLL).queues();
    let endpoint = given(&axes, axis::ENDPOINT);
    let conditions = conditions(plan, &axes);
    let ipoib = conditions.ipoib_mode.map(|_| LinkLayer::Infiniband);
    let message = MessageSpec {
        endpoint,
        socket: socket(filled, &axes),
        service: axis::SERVICE.at(&axes).unwrap_or_else(|| usual_service(endpoint, &axes)),
        operation: axis::OPERATION.at(&axes).unwrap_or(Operation::Send),
        size_bytes,
        poll,
        send_poll: axis::SEND_POLL.at(&axes).flatten().unwrap_or(send_poll),
        inline: inline(&axes, size_bytes),
        signal_interval: axis::SIGNAL_INTERVAL.at(&axes).flatten().unwrap_or(tx_depth / 2).max(1),
        sge: axis::SGE.at(&axes).unwrap_or(1),
        post_list: axis::POST_LIST.at(&axes).unwrap_or(1),
        queue_pairs: axis::QUEUE_PAIRS.at(&axes).unwrap_or(1),
        outstanding_reads: axis::OUTSTANDING_READS.at(&axes).flatten().and_then(|n| u8::try_from(n).ok()),
        setup: setup(&axes),
        mtu_bytes: axis::MTU_BYTES.at(&axes).flatten(),
        link_layer: ipoib.or(axis::LINK_LAYER.at(&axes).flatten()),
        memory: axis::MEMORY.at(&axes).unwrap_or(Memory::Device),
        buffers: axis::BUFFERS.at(&axes).flatten(),
        mpi: MpiSettings {
            call: axis::MPI_CALL.at(&axes).unwrap_or(MpiCall::Nonblocking),
            operation: axis::MPI_OPERATION.at(&axes).unwrap_or(MpiOperation::Send),
            sync: axis::MPI_SYNC.at(&axes).unwrap_or(MpiSync::Flush),
            may_oversubscribe: axis::MPI_OVERSUBSCRIBE.at(&axes).unwrap_or(false),
        },
        tx_depth,
        rx_depth,
        rx_fill,
    };
    let tool = axis::TOOL.at(&axes).flatten();
    PointSpec {
        id,
        experiment: filled.name.clone(),
        repetition,
        launch,
        pattern: filled.pattern,
        tool,
        message,
        link: link(&axes),
        conditions,
        length,
        warmup,
        keep_samples: filled.keep_samples,
        share_above_ns: filled.share_above_ns.clone(),
        timeout_s: filled.timeout_s,
        sink_dir: filled.settings.sink_dir.clone().filter(|_| filled.pattern.row().keeps_files),
        application: applications::of_point(plan, &axes),
        transfer: None,
        axes: said(filled, tool.is_some(), axes),
    }
}

/// The axes that apply to a point: if another tool measures it, the axes common to all tools; for
/// some patterns, only the axes that they list.
fn said(filled: &Filled, is_of_tool: bool, mut axes: Axes) -> Axes {
    let only = filled.pattern.row().only_axes;
    let is_said = |name: &str| only.is_none_or(|only| only.iter().any(|row| row.name == name));
    axes.retain(|name, _| (!is_of_tool || tool::is_common(name)) && is_said(name));
    axes
}

/// The environment of a point.
fn conditions(plan: &Plan, axes: &Axes) -> Wanted {
    let environment = axis::ENVIRONMENT.at(axes).unwrap_or_else(|| AS_IS.to_owned());
    let ipoib_mode = axis::IPOIB_MODE.at(axes).flatten();
    Wanted { ipoib_mode, ..environments::of(plan, &environment) }
}

/// How queue pairs are connected. For a step of RDMA CM, both ranks use RDMA CM.
fn setup(axes: &Axes) -> Setup {
    let is_of_manager = axis::STEP.at(axes).is_some_and(Step::is_of_manager);
    let usual = if is_of_manager { Setup::RdmaCm } else { Setup::Exchange };
    axis::SETUP.at(axes).unwrap_or(usual)
}

/// The service of an endpoint without the axis `service`. Messages without acknowledgements count
/// as datagrams.
fn usual_service(endpoint: Carrier, axes: &Axes) -> Service {
    let drops = axis::PROTOCOL.at(axes) == Some(Protocol::PubSub);
    if endpoint == Carrier::Udp || drops { Service::Ud } else { Service::Rc }
}

/// Whether messages are inline: all messages, or samples up to a length.
fn inline(axes: &Axes, size_bytes: u64) -> bool {
    match axis::INLINE_MAX_BYTES.at(axes) {
        Some(max) => size_bytes <= u64::from(max),
        None => axis::INLINE.at(axes).unwrap_or(false),
    }
}

/// The settings of sockets.
fn socket(filled: &Filled, axes: &Axes) -> SocketSettings {
    let usual = SocketSettings::default();
    // A rank that waits for an answer must not delay its segments.
    let no_delay = !filled.pattern.row().floods;
    SocketSettings {
        family: axis::FAMILY.at(axes).unwrap_or(usual.family),
        streams: axis::STREAMS.at(axes).unwrap_or(usual.streams),
        buffer_bytes: axis::SOCKET_BUFFER_BYTES.at(axes).flatten().map(u64::from),
        no_delay: axis::NO_DELAY.at(axes).unwrap_or(no_delay),
        busy_poll_us: axis::BUSY_POLL_US.at(axes).flatten(),
        offload: axis::OFFLOAD.at(axes).unwrap_or(usual.offload),
        zero_copy: axis::ZERO_COPY.at(axes).unwrap_or(usual.zero_copy),
        congestion: axis::CONGESTION.at(axes).flatten(),
        pacing_bits_per_s: pacing(axes).map(LinkRate::bits_per_s),
        protocol: axis::PROTOCOL.at(axes).unwrap_or(usual.protocol),
    }
}

/// The largest sending rate of a TCP connection.
fn pacing(axes: &Axes) -> Option<LinkRate> {
    let text = axis::PACING_RATE.at(axes).flatten();
    text.map(|text| text.parse().expect("the rate was checked when the plan was read"))
}

/// The link model: the value of `link`, with the rate of `signal_rate` if that names one.
fn link(axes: &Axes) -> Option<LinkModel> {
    let text = axis::LINK.at(axes).flatten();
    let link = text.map(|text| text.parse().expect("the link was checked when the plan was read"));
    let rate = axis::SIGNAL_RATE.at(axes).flatten().and_then(|name| LinkRate::usual(&name));
    match rate {
        Some(rate) => Some(LinkModel { rate: Some(rate), ..link.unwrap_or_default() }),
        None => link,
    }
}

/// The value of an axis that the point must have.
fn given<T: DeserializeOwned + Serialize>(axes: &Axes, key: Key<T>) -> T {
    key.at(axes).expect("an axis of all points has a default")
}
