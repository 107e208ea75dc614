//! From a plan to its points.
//!
//! The order of the points: experiments as they are written; inside one, launches outermost and
//! then repetitions, so that a machine that drifts (heat, neighbours) hits every combination alike
//! instead of one combination in all its repetitions; then the axes as they are written, the size
//! innermost. Every launch measures every combination: what differs from launch to launch is then
//! in all of them alike, and two combinations are compared within the same launches.
//!
//! Inside a launch, points whose ranks are started in one way (`World`: how many, where, over what
//! MPI goes) come together, in all of their repetitions, and those that MPI does not carry: so each
//! launch starts such ranks once, and the repetitions that it counts are of the same ranks.

use measure::conditions::{AS_IS, Wanted};
use measure::figure::Figure;
use measure::finding::Finding;
use measure::record::Axes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use verbs::{LinkModel, LinkRate};

use super::model::{Options, Plan};
use super::{applications, check, costs, environments, figures, findings, overrides};
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
    /// The plan as the record keeps it: every default filled in, every axis expanded. Its figures
    /// stand apart.
    pub plan: Value,
    /// Figures with the published numbers filled in.
    pub figures: Vec<Figure>,
    /// Findings to be answered.
    pub findings: Vec<Finding>,
    /// What starts all ranks, where the plan says so.
    pub mpi: Option<String>,
    /// What is measured, in order.
    pub points: Vec<PointSpec>,
}

impl Resolved {
    /// Whether messages of some point go through a device.
    pub fn needs_device(&self) -> bool {
        self.points.iter().any(|point| point.message.endpoint.is_verbs())
    }

    /// The most ranks that a point has.
    pub fn ranks(&self) -> usize {
        self.points.iter().map(PointSpec::ranks).max().unwrap_or(0) as usize
    }
}

/// Resolves a plan.
///
/// # Errors
///
/// If the plan, its quick form or an override asks for something that cannot be.
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
    // A shortened plan may lack what a finding or a row of a figure asks for; then the report says
    // so.
    let is_whole = !options.quick && options.set.is_empty();
    let whole = is_whole.then_some(&points);
    findings::check(plan, whole)?;
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
        mpi: plan.mpi.clone(),
        points,
    })
}

/// Appends the points of one experiment, of each kind of endpoint.
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

/// The points of a launch with those together that the same ranks measure, in the order of the
/// first of each, numbered from `first` on.
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
        // The number of the combination, written in a number system whose digits are the axes, last
        // one fastest.
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

/// The axes that say something of a point: of what another program measures, those that hold for
/// any; of some patterns, those that they name.
fn said(filled: &Filled, is_of_tool: bool, mut axes: Axes) -> Axes {
    let only = filled.pattern.row().only_axes;
    let is_said = |name: &str| only.is_none_or(|only| only.iter().any(|row| row.name == name));
    axes.retain(|name, _| (!is_of_tool || tool::is_common(name)) && is_said(name));
    axes
}

/// What is asked of the machine.
fn conditions(plan: &Plan, axes: &Axes) -> Wanted {
    let environment = axis::ENVIRONMENT.at(axes).unwrap_or_else(|| AS_IS.to_owned());
    let ipoib_mode = axis::IPOIB_MODE.at(axes).flatten();
    Wanted { ipoib_mode, ..environments::of(plan, &environment) }
}

/// How queue pairs are connected: where a step is RDMA CM's, by it, so that both ranks have it.
fn setup(axes: &Axes) -> Setup {
    let is_of_manager = axis::STEP.at(axes).is_some_and(Step::is_of_manager);
    let usual = if is_of_manager { Setup::RdmaCm } else { Setup::Exchange };
    axis::SETUP.at(axes).unwrap_or(usual)
}

/// The service of what has no such axis: what there are no acknowledgements of is a datagram to
/// whoever counts.
fn usual_service(endpoint: Carrier, axes: &Axes) -> Service {
    let drops = axis::PROTOCOL.at(axes) == Some(Protocol::PubSub);
    if endpoint == Carrier::Udp || drops { Service::Ud } else { Service::Rc }
}

/// Whether messages are inline: all, or samples up to a length.
fn inline(axes: &Axes, size_bytes: u64) -> bool {
    match axis::INLINE_MAX_BYTES.at(axes) {
        Some(max) => size_bytes <= u64::from(max),
        None => axis::INLINE.at(axes).unwrap_or(false),
    }
}

/// How sockets carry it.
fn socket(filled: &Filled, axes: &Axes) -> SocketSettings {
    let usual = SocketSettings::default();
    // What waits for an answer must not wait for more to send.
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

/// The most that a TCP connection sends.
fn pacing(axes: &Axes) -> Option<LinkRate> {
    let text = axis::PACING_RATE.at(axes).flatten();
    text.map(|text| text.parse().expect("a rate of a plan was read when the plan was"))
}

/// What the link is to be like: what `link` says, at the rate that `signal_rate` names.
fn link(axes: &Axes) -> Option<LinkModel> {
    let text = axis::LINK.at(axes).flatten();
    let link = text.map(|text| text.parse().expect("a link of a plan was read when the plan was"));
    let rate = axis::SIGNAL_RATE.at(axes).flatten().and_then(|name| LinkRate::usual(&name));
    match rate {
        Some(rate) => Some(LinkModel { rate: Some(rate), ..link.unwrap_or_default() }),
        None => link,
    }
}

/// The value of an axis that every point has that asks for it.
fn given<T: DeserializeOwned + Serialize>(axes: &Axes, key: Key<T>) -> T {
    key.at(axes).expect("an axis of all points has a default")
}
