//! The points that a pair of members measures.

use bench::axis;
use bench::command::Subject;
use bench::plan::offer::start;
use bench::plan::{Options, Plan, Resolved, Settings, resolve};
use bench::point::{Pattern, PointSpec};

use super::arguments::FleetArguments;
use crate::failure::Usage;

/// The points of a pair: of each quantity, one.
pub(super) struct Asked {
    pub(super) resolved: Resolved,
    /// What is measured: a word of both commands.
    pub(super) word: String,
    /// Whether the points need an RDMA device.
    pub(super) is_verbs: bool,
}

/// The commands whose points are measured, by the quantity that they give.
const COMMANDS: [(&str, &str); 2] = [("latency", "lat"), ("throughput", "bw")];

impl Asked {
    /// Returns the points over a subject of `rdmascope lat` and `rdmascope bw`.
    pub(super) fn of(word: &str, arguments: &FleetArguments) -> anyhow::Result<Self> {
        let title = format!("Fleet, {word}");
        let mut plan = Plan::new("fleet", title);
        for (quantity, command) in COMMANDS {
            let pattern = Pattern::offered().find(|pattern| pattern.command().name == command);
            let pattern = pattern.expect("these commands are of patterns");
            let subject = subject(pattern, word)?;
            let settings = start(pattern, Some(subject), subject.operation);
            let size = if quantity == "latency" { arguments.small } else { arguments.large };
            let settings = settings.axis(axis::SIZE_BYTES.value(size));
            let duration_s = arguments.duration.as_secs_f64();
            let (amount, longest_s) = match quantity {
                "latency" => {
                    let iterations = Some(arguments.iters);
                    (Settings { iterations, ..settings }, arguments.iters as f64 * MESSAGE_S)
                }
                _ => (Settings { duration_s: Some(duration_s), ..settings }, duration_s),
            };
            let timeout_s = Some(TIMEOUT_S + longest_s);
            let settings = Settings { keep_samples: Some(false), timeout_s, ..amount };
            plan = plan.experiment(quantity, pattern, settings);
        }
        let resolved = resolve(&plan, &Options::default())?;
        let is_verbs = resolved.needs_device();
        Ok(Self { resolved, word: word.to_owned(), is_verbs })
    }

    /// The point of a quantity.
    pub(super) fn spec(&self, quantity: &str) -> Option<&PointSpec> {
        self.resolved.points.iter().find(|spec| spec.experiment == quantity)
    }
}

/// Returns what a command measures by this word.
fn subject(pattern: Pattern, word: &str) -> Result<&'static Subject, Usage> {
    let is_of_all = |name: &str| {
        Pattern::offered()
            .filter(|pattern| COMMANDS.iter().any(|(_, command)| pattern.command().name == *command))
            .all(|pattern| pattern.command().subjects().any(|subject| subject.name == name))
    };
    let fits = |subject: &&Subject| !subject.endpoint.is_mpi() && is_of_all(subject.name);
    let found = pattern
        .command()
        .subjects()
        .filter(fits)
        .find(|subject| subject.name == word || subject.aliases.contains(&word));
    found.ok_or_else(|| {
        let words: Vec<&str> =
            pattern.command().subjects().filter(fits).map(|subject| subject.name).collect();
        Usage(format!("a fleet cannot measure {word:?}: use {}", words.join(", ")))
    })
}

/// The time limit of a point beside its messages, in s: a pair that hangs costs its round no more.
const TIMEOUT_S: f64 = 20.0;
/// The longest that a message of a latency may take, in s, on average.
const MESSAGE_S: f64 = 1e-3;
