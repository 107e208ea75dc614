//! `rdmascope overhead`: what the calls of a program cost, through the same plan type as everything else.

use std::process::ExitCode;

use bench::axis;
use bench::plan::{Options, Plan, Settings, resolve};
use bench::point::{Operation, Pattern, Step};
use measure::figure::{Figure, FigureKind, Unit};

use crate::benchmark::listed;
use crate::cli::{OverheadArguments, Site};
use crate::execute::{Job, execute};
use crate::launch::launch;

/// Bytes of one call of each batch, all together: of large messages and regions fewer batches are enough.
const BYTES_MAX: u64 = 1 << 30;

/// Measures what the flags ask for.
pub(crate) fn overhead(arguments: &OverheadArguments, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let resolved = resolve(&plan(arguments)?, &Options::default())?;
    let Site { out, ends, placement } = &arguments.site;
    let launch = launch(placement, ends.peer()?, &resolved)?;
    execute(Job { resolved, quick: false, command, launch, out: out.clone(), bandwidth: Unit::MiBPerS })
}

fn plan(arguments: &OverheadArguments) -> anyhow::Result<Plan> {
    let operation = arguments.operation;
    let mut settings = Settings::default()
        .axis(axis::OPERATION.value(operation))
        .axis(axis::SERVICE.value(arguments.connection))
        .axis(axis::STEP.values(steps(&arguments.step, operation)))
        .axis(axis::BATCH.value(arguments.batch));
    settings = arguments.circumstances.settle(settings);
    settings.iterations = arguments.iters;
    settings.bytes_max = Some(BYTES_MAX);
    let sizes = arguments.size.as_deref().map(listed).transpose()?;
    // Sizes up to the inline limit and those above it differ in an axis, so they are two experiments. Without -I no size is
    // inline, not even one of 0 bytes.
    let inline = |size: &u64| arguments.inline_size > 0 && *size <= arguments.inline_size;
    let experiments = match sizes {
        Some(sizes) => {
            let (small, large): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(inline);
            [("inline", true, small), ("overhead", false, large)]
                .into_iter()
                .filter(|(.., sizes)| !sizes.is_empty())
                .map(|(name, inline, sizes)| (name, inline, Some(sizes)))
                .collect()
        }
        None if arguments.inline_size > 0 => vec![("inline", true, None)],
        None => vec![("overhead", false, None)],
    };
    let mut plan = Plan::new("overhead", "What calls cost");
    let names = experiments.iter().map(|(name, ..)| (*name).to_owned()).collect();
    for (name, inline, sizes) in experiments {
        let settings = settings.clone().axis(axis::INLINE.value(inline));
        let settings =
            sizes.into_iter().fold(settings, |settings, sizes| settings.axis(axis::SIZE_BYTES.values(sizes)));
        plan = plan.experiment(name, Pattern::OVERHEAD, settings);
    }
    Ok(plan.figure(table(names)))
}

/// The steps that are asked for, or all that the operation has.
fn steps(asked: &[Step], operation: Operation) -> Vec<Step> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    Step::ALL.into_iter().filter(|step| operation.arrives() || !step.is_of_receiver()).collect()
}

/// The report's table: a row for each step, a column for each size.
fn table(experiments: Vec<String>) -> Figure {
    Figure {
        caption: Some("A batch's time divided by its calls, the stamp's share included.".to_owned()),
        experiments,
        x: Some("step".to_owned()),
        y: Some("cost.ns".to_owned()),
        series: vec!["size_bytes".to_owned()],
        ..Figure::new(FigureKind::Table, "Cost of a call")
    }
}
