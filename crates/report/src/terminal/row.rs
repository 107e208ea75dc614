//! Banners, headers and rows of the terminal's tables.

use measure::record::{Axes, Direction, LatencyKind, Point};

use super::{axes_text, cost, fan_out, kinds, open_loop, pairs, pipeline, plain, sockets};
use crate::unit::Scale;
use crate::value;

/// What a table's rows show, hence its columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    /// `ib_send_lat`'s columns.
    Latency(LatencyKind),
    /// What a call costs, a line for each step.
    Cost,
    /// Rounds of one to n, each with what a message of it takes.
    FanOut(LatencyKind),
    /// A line for each kind of latency, under a threshold in ns of its last column.
    Kinds { above_ns: Option<u64> },
    /// Messages at a set rate, by that and by how many ranks load the device.
    OpenLoop(LatencyKind),
    /// Samples at a fixed rate, by that and by how many values they have, with a share above a threshold in ns.
    Pipeline { kind: LatencyKind, above_ns: Option<u64> },
    /// Several pairs at once, by how many they are.
    Pairs(pairs::Shown),
    /// Messages over sockets.
    Sockets(sockets::Shown),
    /// `ib_send_bw`'s columns, of traffic that flows one way or of one direction of it.
    Bandwidth {
        direction: Direction,
        /// Whether messages can get lost, so that a column says how many did.
        has_losses: bool,
        /// Whether it is known what the link carries, so that a column says which share of that this is.
        has_link: bool,
    },
}

pub(super) const LATENCY_COLUMNS: [&str; 9] = [
    "#bytes",
    "#iterations",
    "t_min[usec]",
    "t_max[usec]",
    "t_typical[usec]",
    MEAN,
    "t_stdev[usec]",
    "99%[usec]",
    "99.9%[usec]",
];

const MEAN: &str = "t_avg[usec]";

/// The counter of messages that a service without acknowledgements lost.
const LOST: &str = "messages_lost";

/// The axis of calls that are timed by themselves.
const STEP: &str = "step";

/// Whether what carries its messages may lose some.
fn may_lose(point: &Point) -> bool {
    match point.axes.get("service") {
        Some(service) => service != "RC",
        None => point.axes.get("endpoint").is_some_and(|endpoint| endpoint == "udp"),
    }
}

/// Axes that columns show: their values share a table.
pub(super) const ROW_AXES: [&str; 10] =
    ["batch", "load", "load_bytes", "loaders", "pairs", "peers", "rate_hz", "size_bytes", STEP, "values"];

/// Room for a column whose name is shorter.
const WIDTH_MIN: usize = 10;

impl Layout {
    /// The layout for a point whose link is known or not; none when it holds no numbers.
    pub(super) fn of(point: &Point, has_link: bool) -> Option<Self> {
        let bandwidth = point.throughput.as_ref().map(|t| Self::Bandwidth {
            direction: t.direction,
            has_losses: point.counters.contains_key(LOST) && may_lose(point),
            has_link,
        });
        if point.cost.is_some() {
            return Some(Self::Cost);
        }
        if let Some(round) = fan_out::round(point) {
            return Some(Self::FanOut(round.kind));
        }
        if let Some(shown) = sockets::Shown::of(point) {
            return Some(Self::Sockets(shown));
        }
        if let Some(kind) = open_loop::kind(point) {
            return Some(Self::OpenLoop(kind));
        }
        if let Some(kind) = pipeline::kind(point) {
            return Some(Self::Pipeline { kind, above_ns: kinds::threshold(point) });
        }
        if point.pattern == "pairs" {
            let latency = point.latency.as_ref().map(|l| pairs::Shown::Latency(l.kind));
            let throughput = point.throughput.as_ref().map(|_| pairs::Shown::Throughput { has_link });
            return throughput.or(latency).map(Self::Pairs);
        }
        if !point.kinds.is_empty() {
            return Some(Self::Kinds { above_ns: kinds::threshold(point) });
        }
        let latency = point.latency.as_ref().map(|l| Self::Latency(l.kind));
        if point.pattern == "ping-pong" { latency.or(bandwidth) } else { bandwidth.or(latency) }
    }

    /// Whether rows have a share of a link.
    pub(super) fn has_link(self) -> bool {
        match self {
            Self::Bandwidth { has_link, .. } | Self::Pairs(pairs::Shown::Throughput { has_link }) => has_link,
            Self::OpenLoop(_) => true,
            _ => false,
        }
    }

    fn columns(self, unit: &str) -> Vec<String> {
        let of_link = self.has_link().then(|| "of link[%]".to_owned());
        let (direction, has_losses) = match self {
            Self::Bandwidth { direction, has_losses, .. } => (direction, has_losses),
            Self::Cost => return cost::COLUMNS.map(str::to_owned).into(),
            Self::Kinds { above_ns } => return kinds::columns(above_ns),
            Self::FanOut(_) => return fan_out::columns(unit),
            Self::OpenLoop(_) | Self::Pipeline { .. } => return Vec::new(),
            Self::Pairs(shown) => return pairs::columns(shown, unit).into_iter().chain(of_link).collect(),
            Self::Latency(_) => return LATENCY_COLUMNS.map(str::to_owned).into(),
            Self::Sockets(shown) => {
                let first = ["#bytes", "#iterations"].map(str::to_owned);
                return first.into_iter().chain(sockets::columns(shown, unit)).collect();
            }
        };
        let rates = match direction {
            Direction::Load | Direction::Pairs | Direction::Uni => {
                vec![format!("BW average[{unit}]"), "MsgRate[Mpps]".into()]
            }
            Direction::BiOne | Direction::BiTotal => vec![
                format!("BW one direction[{unit}]"),
                format!("BW total[{unit}]"),
                "MsgRate one direction[Mpps]".into(),
                "MsgRate total[Mpps]".into(),
            ],
        };
        let lost = has_losses.then(|| "#lost".to_owned());
        let first = ["#bytes".to_owned(), "#iterations".to_owned()];
        first.into_iter().chain(rates).chain(lost).chain(of_link).collect()
    }

    pub(super) fn header(self, unit: &str) -> String {
        let columns = self.columns(unit);
        match self {
            Self::Cost => return cost::line(&columns, ""),
            Self::FanOut(_) => return fan_out::line(&columns, ""),
            Self::Kinds { .. } => return kinds::line(&columns, ""),
            Self::OpenLoop(_) => return open_loop::header(unit),
            Self::Pipeline { above_ns, .. } => return pipeline::header(above_ns),
            Self::Latency(_) | Self::Bandwidth { .. } | Self::Pairs(_) | Self::Sockets(_) => {}
        }
        line(columns.iter().zip(&columns).map(|(name, text)| (name.as_str(), text.clone())), "")
    }

    /// The line of a point, which reached a share of what its link carries where that is known.
    pub(super) fn row(self, point: &Point, bandwidth: Scale, of_link: Option<f64>) -> String {
        let columns = self.columns(bandwidth.label);
        let of_link =
            self.has_link().then(|| of_link.map_or("-".into(), |share| format!("{:.1}", 100.0 * share)));
        let numbers = match self {
            Self::Cost => return cost::row(point, &marks(point)),
            Self::FanOut(_) => return fan_out::rows(point, bandwidth, &marks(point)),
            Self::Kinds { above_ns } => return kinds::rows(point, above_ns, &marks(point)),
            Self::OpenLoop(_) => return open_loop::row(point, bandwidth, of_link, &marks(point)),
            Self::Pipeline { above_ns, .. } => return pipeline::row(point, above_ns, &marks(point)),
            Self::Pairs(shown) => {
                let cells = pairs::cells(point, shown, bandwidth).into_iter().chain(of_link);
                return line(columns.iter().map(String::as_str).zip(cells), &marks(point));
            }
            Self::Latency(_) => latency_cells(point),
            Self::Sockets(shown) => {
                let cells = [size(point), iterations(point)].into_iter();
                let cells = cells.chain(sockets::cells(point, shown, bandwidth));
                let row = line(columns.iter().map(String::as_str).zip(cells), &marks(point));
                return row + &sockets::losses(point, shown) + &sockets::meanwhile(point);
            }
            Self::Bandwidth { direction, .. } => bandwidth_cells(point, direction, bandwidth),
        };
        let has_losses = matches!(self, Self::Bandwidth { has_losses: true, .. });
        let lost = has_losses.then(|| point.counters.get(LOST).map_or("-".to_owned(), u64::to_string));
        let cells = [size(point), iterations(point)].into_iter().chain(numbers).chain(lost).chain(of_link);
        line(columns.iter().map(String::as_str).zip(cells), &marks(point))
    }
}

/// Lines that say what the rows below are, before any number.
pub(super) fn banner(experiment: &str, pattern: &str, axes: &Axes, layout: Option<Layout>) -> String {
    let axis = |name: &str| axes.get(name).map(|value| plain(&value::text(value)));
    let service = [axis("service"), axis("operation")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut what = format!(" {}: {}", plain(experiment), plain(pattern));
    if !service.is_empty() {
        what += &format!(", {service}");
    }
    let mut shown_apart = vec!["service", "operation"];
    if let Some(test) = sockets::test(axes, pattern) {
        what += &format!(", {}", plain(&test));
        shown_apart.push("endpoint");
    }
    match layout {
        Some(
            Layout::Latency(kind)
            | Layout::FanOut(kind)
            | Layout::OpenLoop(kind)
            | Layout::Pipeline { kind, .. }
            | Layout::Sockets(sockets::Shown::Transactions(kind)),
        ) => {
            shown_apart.push("direction");
            what += &format!("; latency {}: {}", kind.name(), kind.meaning());
        }
        Some(Layout::Bandwidth { direction, .. }) => {
            shown_apart.push("direction");
            what += match direction {
                Direction::Load | Direction::Pairs | Direction::Uni => "; throughput one way",
                Direction::BiOne | Direction::BiTotal => "; throughput both ways at once",
            };
        }
        Some(Layout::Sockets(sockets::Shown::Stream { .. })) => {
            shown_apart.push("direction");
            what += "; throughput one way";
        }
        Some(Layout::Cost) => {
            what += "; per call: a batch's time divided by its calls, a stamp's share included";
        }
        Some(Layout::Pairs(pairs::Shown::Throughput { .. })) => {
            what += "; throughput of all pairs, one way, in the time that all are at it";
        }
        Some(Layout::Pairs(pairs::Shown::Latency(kind))) => {
            what += &format!("; latency {}: {}, of the messages of all pairs", kind.name(), kind.meaning());
        }
        Some(Layout::Kinds { .. }) => what += "; every kind of latency of the same messages",
        None => {}
    }
    let settings = axes_text(axes, |name| !shown_apart.contains(&name));
    let rule = "-".repeat(110);
    let settings = if settings.is_empty() { String::new() } else { format!(" {settings}\n") };
    format!("\n{rule}\n{what}\n{settings}{rule}\n")
}

pub(super) fn failed(point: &Point, error: &str) -> String {
    let step = point.axes.get(STEP).map_or(String::new(), |step| format!("  {}", plain(&value::text(step))));
    let places = [fan_out::place, open_loop::place, pairs::place, pipeline::place];
    let place = places.iter().find_map(|place| place(point)).unwrap_or_else(|| size(point));
    format!(" {place:>10}{step}  failed: {error}{}\n", repetition(point))
}

pub(super) fn latency_cells(point: &Point) -> Vec<String> {
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let Some(latency) = &point.latency else {
        // Another program says the mean alone.
        let Some(mean_ns) = point.reported.as_ref().and_then(|reported| reported.mean_ns) else {
            return Vec::new();
        };
        let cell = |name: &&str| if *name == MEAN { us(mean_ns) } else { "-".into() };
        return LATENCY_COLUMNS[2..].iter().map(cell).collect();
    };
    vec![
        us(latency.min_ns as f64),
        us(latency.max_ns as f64),
        us(latency.p50_ns as f64),
        us(latency.mean_ns),
        latency.stddev_ns.map_or("-".into(), us),
        us(latency.p99_ns as f64),
        us(latency.p999_ns as f64),
    ]
}

fn bandwidth_cells(point: &Point, direction: Direction, scale: Scale) -> Vec<String> {
    let bytes = |raw: f64| format!("{:.3}", scale.apply(raw));
    let messages = |raw: f64| format!("{:.6}", raw / 1e6);
    let one = point.throughput.as_ref();
    let one_bytes = one.map_or("-".into(), |t| bytes(t.bytes_per_s));
    let one_messages = one.map_or("-".into(), |t| messages(t.messages_per_s));
    match direction {
        Direction::Load | Direction::Pairs | Direction::Uni => return vec![one_bytes, one_messages],
        Direction::BiOne | Direction::BiTotal => {}
    }
    let total = point.throughput_total.as_ref();
    let total_bytes = total.map_or("-".into(), |t| bytes(t.bytes_per_s));
    let total_messages = total.map_or("-".into(), |t| messages(t.messages_per_s));
    vec![one_bytes, total_bytes, one_messages, total_messages]
}

pub(super) fn size(point: &Point) -> String {
    point.axes.get("size_bytes").map_or("-".into(), value::text)
}

fn iterations(point: &Point) -> String {
    let count = point.iterations.or(point.latency.as_ref().map(|l| l.count));
    count.map_or("-".into(), |n| n.to_string())
}

fn marks(point: &Point) -> String {
    let unstable = if point.unstable.is_some() { "  !" } else { "" };
    let approximate = if point.latency.as_ref().is_some_and(|l| l.resolution.is_some()) { "  ~" } else { "" };
    format!("{unstable}{approximate}{}", repetition(point))
}

/// Which repetition a row is of, counted from 1; nothing for the first.
pub(super) fn repetition(point: &Point) -> String {
    if point.repetition == 0 { String::new() } else { format!("  repetition {}", point.repetition + 1) }
}

/// Cells aligned to the right under their columns' names.
fn line<'a>(cells: impl Iterator<Item = (&'a str, String)>, end: &str) -> String {
    let cells: String = cells
        .enumerate()
        .map(|(index, (name, text))| {
            let gap = if index == 0 { " " } else { "  " };
            format!("{gap}{text:>width$}", width = name.len().max(WIDTH_MIN))
        })
        .collect();
    format!("{cells}{end}\n")
}
