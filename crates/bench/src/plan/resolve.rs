//! From a plan to its points.
//!
//! The order of the points: experiments as they are written; inside one, repetitions outermost, so that a machine that
//! drifts (heat, neighbours) hits every combination alike instead of one combination in all its repetitions; then the
//! axes as they are written, the size innermost.

use measure::conditions::AS_IS;
use measure::figure::Figure;
use measure::finding::Finding;
use measure::record::Axes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use verbs::{LinkModel, LinkRate};

use super::axis::{ANY, AS_IT_IS, NO_LINK, OURS, SAME, SYSTEM, USUAL};
use super::defaults::{Filled, SIGNAL_RATE};
use super::{Plan, check, environments, figures, findings, overrides};
use crate::Error;
use crate::point::{
    Carrier, Filling, LinkLayer, Load, Memory, Mesh, MessageSpec, Notify, Operation, Pattern, Pipeline,
    PointSpec, Poll, Protocol, QueuePoll, Service, Setup, SocketSettings, Stamp, Step, Traffic,
};

/// How a plan is to be run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The quick form.
    pub quick: bool,
    /// `KEY=VALUE` or `experiment.NAME.KEY=VALUE`, in the order in which they apply.
    pub set: Vec<String>,
}

/// A plan with nothing left to decide.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Name of the plan.
    pub name: String,
    /// Heading of the report.
    pub title: String,
    /// A paragraph on what the run is for.
    pub about: Option<String>,
    /// The plan as the record keeps it: every default filled in, every axis expanded. Its figures stand apart.
    pub plan: Value,
    /// Figures with the published numbers filled in.
    pub figures: Vec<Figure>,
    /// Findings to be answered.
    pub findings: Vec<Finding>,
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
    experiments.iter().try_for_each(check::carriers)?;
    let experiments: Vec<Vec<Filled>> = experiments.iter().map(Filled::each).collect();
    let all: Vec<&Filled> = experiments.iter().flatten().collect();
    all.iter().try_for_each(|filled| check::experiment(filled))?;
    all.iter().try_for_each(|filled| environments::check(plan, filled))?;
    check::points(plan, &all)?;
    let figures = figures::resolve(plan)?;
    let mut points = Vec::new();
    for filled in &experiments {
        expand(plan, filled, &mut points);
    }
    // A shortened plan may lack what a finding asks for; then the report says so.
    let is_whole = !options.quick && options.set.is_empty();
    findings::check(plan, is_whole.then_some(&points))?;
    let plan_json = json!({
        "name": plan.name,
        "title": plan.title,
        "about": plan.about,
        "seed": plan.seed,
        "quick": options.quick,
        "environments": environments::used(plan, &points),
        "experiments": all.iter().map(|filled| filled.to_json()).collect::<Vec<_>>(),
    });
    Ok(Resolved {
        name: plan.name.clone(),
        title: plan.title.clone(),
        about: plan.about.clone(),
        plan: plan_json,
        figures,
        findings: plan.findings.clone(),
        points,
    })
}

/// Appends the points of one experiment, of each kind of endpoint.
fn expand(plan: &Plan, experiment: &[Filled], points: &mut Vec<PointSpec>) {
    let repetitions = experiment.first().map_or(0, |filled| filled.repetitions);
    for repetition in 0..repetitions {
        for filled in experiment {
            combine(plan, filled, repetition, points);
        }
    }
}

/// Appends a point for each combination of the values of the axes.
fn combine(plan: &Plan, filled: &Filled, repetition: u32, points: &mut Vec<PointSpec>) {
    let lists: Vec<(&str, Vec<Value>)> =
        filled.axes.iter().map(|axis| (axis.name(), axis.values())).collect();
    let combinations: usize = lists.iter().map(|(_, values)| values.len()).product();
    for combination in 0..combinations {
        // The number of the combination, written in a number system whose digits are the axes, last one fastest.
        let mut rest = combination;
        let mut axes = Axes::new();
        for (name, values) in lists.iter().rev() {
            axes.insert((*name).to_owned(), values[rest % values.len()].clone());
            rest /= values.len();
        }
        if let Some(values) = axes.get("values").and_then(Value::as_u64) {
            axes.insert("size_bytes".to_owned(), Pipeline::sample_bytes(values).into());
        }
        points.push(point(plan, filled, points.len() as u64, repetition, axes));
    }
}

fn point(plan: &Plan, filled: &Filled, id: u64, repetition: u32, axes: Axes) -> PointSpec {
    let size_bytes = value(&axes, "size_bytes");
    let rate_hz = number(&axes, "rate_hz");
    let (length, warmup) = filled.length_at(size_bytes, rate_hz);
    let count = |name: &str| number(&axes, name).and_then(|n| u32::try_from(n).ok());
    let tx_depth = count("tx_depth").unwrap_or(filled.tx_depth);
    let rx_depth = count("rx_depth").unwrap_or(filled.rx_depth);
    let rx_fill = count("rx_fill").unwrap_or(rx_depth);
    let step: Option<Step> = value_or(&axes, "step", None);
    let (poll, send_poll) = polls(&axes);
    let operation = value_or(&axes, "operation", Operation::Send);
    let endpoint: Carrier = value(&axes, "endpoint");
    let mut conditions = environments::of(plan, &value_or(&axes, "environment", AS_IS.to_owned()));
    conditions.ipoib_mode = known(&axes, "ipoib_mode", AS_IT_IS);
    let ipoib = conditions.ipoib_mode.map(|_| LinkLayer::Infiniband);
    let message = MessageSpec {
        endpoint,
        socket: socket(filled, &axes),
        service: value_or(&axes, "service", usual_service(endpoint, &axes)),
        operation,
        size_bytes,
        poll,
        send_poll,
        inline: inline(&axes),
        signal_interval: count("signal_interval").unwrap_or(tx_depth / 2).max(1),
        sge: value_or(&axes, "sge", 1),
        post_list: value_or(&axes, "post_list", 1),
        queue_pairs: value_or(&axes, "queue_pairs", 1),
        outstanding_reads: number(&axes, "outstanding_reads").and_then(|n| u8::try_from(n).ok()),
        setup: value_or(&axes, "setup", Setup::Exchange),
        mtu_bytes: count("mtu_bytes"),
        link_layer: ipoib.or(known(&axes, "link_layer", ANY)),
        memory: value_or(&axes, "memory", Memory::Device),
        buffers: count("buffers"),
        tx_depth,
        rx_depth,
        rx_fill,
    };
    PointSpec {
        id,
        experiment: filled.name.clone(),
        repetition,
        pattern: filled.pattern,
        tool: known(&axes, "tool", OURS),
        message,
        peers: value_or(&axes, "peers", 1),
        pairs: value_or(&axes, "pairs", 1),
        traffic: value_or(&axes, "traffic", Traffic::PingPong),
        rate_hz,
        pipeline: pipeline(filled, &axes),
        loaders: value_or(&axes, "loaders", 0),
        load: value_or(&axes, "load", Load::Beside),
        load_bytes: number(&axes, "load_bytes").unwrap_or(1),
        mesh: value_or(&axes, "mesh", Mesh::Star),
        notify: notify(&axes, operation),
        direction: value(&axes, "direction"),
        link: link(&axes),
        conditions,
        burst: count("burst"),
        pause_ns: number(&axes, "pause_ns").unwrap_or(0),
        stamp: value_or(&axes, "stamp", Stamp::Submitted),
        step,
        batch: count("batch").unwrap_or(step.map_or(1, |step| step.batch(tx_depth.min(rx_fill)))),
        length,
        warmup,
        keep_samples: filled.keep_samples,
        share_above_ns: filled.share_above_ns.clone(),
        timeout_s: filled.timeout_s,
        axes,
    }
    .with_its_axes()
}

/// The service of what has no such axis: what there are no acknowledgements of is a datagram to whoever counts.
fn usual_service(endpoint: Carrier, axes: &Axes) -> Service {
    let drops = value_or(axes, "protocol", Protocol::Pair) == Protocol::PubSub;
    if endpoint == Carrier::Udp || drops { Service::Ud } else { Service::Rc }
}

/// Whether messages are inline: all, or samples up to a length.
fn inline(axes: &Axes) -> bool {
    match number(axes, "inline_max_bytes") {
        Some(max) => value::<u64>(axes, "size_bytes") <= max,
        None => value_or(axes, "inline", false),
    }
}

/// What the generator does, where there is one.
fn pipeline(filled: &Filled, axes: &Axes) -> Option<Pipeline> {
    (filled.pattern == Pattern::Pipeline).then(|| Pipeline {
        values: value(axes, "values"),
        signal: value(axes, "signal"),
        timer: value(axes, "timer"),
        rx_filled: value_or(axes, "rx_filled", Filling::Before),
        sink: value(axes, "sink"),
        sink_dir: filled.settings.sink_dir.clone(),
    })
}

/// How sockets carry it.
fn socket(filled: &Filled, axes: &Axes) -> SocketSettings {
    let usual = SocketSettings::default();
    // What waits for an answer must not wait for more to send.
    let no_delay = filled.pattern != Pattern::Stream;
    SocketSettings {
        family: value_or(axes, "family", usual.family),
        streams: value_or(axes, "streams", usual.streams),
        buffer_bytes: number(axes, "socket_buffer_bytes"),
        no_delay: value_or(axes, "no_delay", no_delay),
        busy_poll_us: number(axes, "busy_poll_us").and_then(|us| u32::try_from(us).ok()),
        offload: value_or(axes, "offload", usual.offload),
        zero_copy: value_or(axes, "zero_copy", usual.zero_copy),
        congestion: known(axes, "congestion", SYSTEM),
        protocol: value_or(axes, "protocol", usual.protocol),
    }
}

/// How it is learnt that bytes have come: only who is written to is told of nothing.
fn notify(axes: &Axes, operation: Operation) -> Notify {
    let usual = if operation == Operation::Write { Notify::Memory } else { Notify::Completion };
    known(axes, "notify", USUAL).unwrap_or(usual)
}

/// How receives and sends are waited for.
fn polls(axes: &Axes) -> (QueuePoll, QueuePoll) {
    let (receives, sends) = value::<Poll>(axes, "poll").queues();
    (receives, known(axes, "send_poll", SAME).unwrap_or(sends))
}

/// What the link is to be like: what `link` says, at the rate that `signal_rate` names.
fn link(axes: &Axes) -> Option<LinkModel> {
    let text: String = value_or(axes, "link", NO_LINK.to_owned());
    let link = (text != NO_LINK).then(|| text.parse().expect("a link of a plan was read when the plan was"));
    match LinkRate::usual(&value_or(axes, "signal_rate", SIGNAL_RATE.to_owned())) {
        Some(rate) => Some(LinkModel { rate: Some(rate), ..link.unwrap_or_default() }),
        None => link,
    }
}

/// The value of an axis that a plan may leave out.
fn value_or<T: DeserializeOwned>(axes: &Axes, name: &str, otherwise: T) -> T {
    if axes.contains_key(name) { value(axes, name) } else { otherwise }
}

/// The value of an axis, where it has one and not the word for none.
fn known<T: DeserializeOwned>(axes: &Axes, name: &str, none: &str) -> Option<T> {
    axes.get(name).filter(|value| *value != none).map(|_| value(axes, name))
}

/// The number of an axis, where it has one and no word in its place.
fn number(axes: &Axes, name: &str) -> Option<u64> {
    axes.get(name).and_then(Value::as_u64)
}

fn value<T: DeserializeOwned>(axes: &Axes, name: &str) -> T {
    serde_json::from_value(axes[name].clone()).expect("an axis holds the values that it was made from")
}
