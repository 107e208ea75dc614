//! `rdmascope transfer`: sends files and trees from one host to another, as a plan of one point.

mod arguments;
mod progress;
mod receive;
mod summary;

use std::collections::BTreeSet;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use bench::plan::{Options, Plan, Resolved, Settings, resolve};
use bench::point::{Carrier, Checksum, Pattern, Place, Telling, TransferSpec};
use bench::process::coordinator;
use bench::process::interrupt::Interrupt;
use bench::{PATTERNS, axis};
use measure::expectation::{Expectation, Limit};
use measure::record::Point;
use report::{Points, expectations};

pub(crate) use self::arguments::TransferArguments;
use self::progress::Watched;
use crate::failure::{DID_NOT_FINISH, NOT_MET, Usage, reported};
use crate::launch::launch;
use crate::stdout;

/// Default number of outstanding blocks of a queue pair.
const DEPTH: u32 = 8;
/// Default time limit of a transfer: the longest that a point may have.
const TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Sends files, or waits for them.
pub(crate) fn transfer(arguments: &TransferArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if arguments.listen.is_some() {
        return receive::wait(arguments);
    }
    let peer = arguments.peer()?;
    let to = match (&arguments.to, &peer) {
        (Some(_), Some(_)) => {
            let words = "the receiver at --peer has chosen the directory: leave --to out";
            return Err(Usage(words.to_owned()).into());
        }
        (None, None) => {
            let words = "name the directory for the files: --to DIR";
            return Err(Usage(words.to_owned()).into());
        }
        (to, _) => to.as_ref().map(|to| to.clone().into_os_string()),
    };
    let carrier = arguments.carrier();
    refuse(arguments, carrier)?;
    let plan = Plan::new("transfer", "Transfer").experiment(
        "transfer",
        Pattern::TRANSFER,
        settings(arguments, carrier),
    );
    let plan = arguments.expect.iter().try_fold(plan, |plan, text| plan.expect(text))?;
    let mut resolved = resolve(&plan, &Options::default())?;
    let is_of_link = |one: &&Expectation| matches!(one.bound.limit, Limit::OfLink(_));
    if let Some(one) = resolved.expectations.iter().find(is_of_link) {
        let why = "what its links carry is not known to a transfer: give a bandwidth such as \">= 12 Gb/s\"";
        return Err(Usage(format!("--expect '{one}': {why}")).into());
    }
    for point in &mut resolved.points {
        let sources = arguments.sources.iter().map(|path| path.clone().into_os_string()).collect();
        let telling =
            Telling { progress: progress::is_wanted(arguments), files: arguments.verbose, arrival: false };
        point.transfer = Some(Box::new(TransferSpec {
            sources,
            to: to.clone(),
            resumes: arguments.resume,
            compares: arguments.checksum_all,
            syncs: arguments.sync,
            telling,
        }));
    }
    let launch = launch(&arguments.placement, peer, &resolved)?;
    let interrupt = Interrupt::install()?;
    let mut watched = Watched::new(arguments);
    let ended = coordinator::run(&resolved.points, &launch, Some(&interrupt), &mut watched);
    let point = watched.end();
    ended?;
    let Some(point) = point else { return Ok(ExitCode::from(DID_NOT_FINISH)) };
    let summary = summary::Summary::of(&point, carrier, words);
    summary.complain();
    let text = if arguments.json { summary.json() } else { summary.text() };
    let printed = stdout::print(&text);
    let (is_not_met, told) = is_not_met(arguments, &resolved, &point);
    let status = match (summary.is_complete(), is_not_met) {
        (false, _) => DID_NOT_FINISH,
        (true, true) => NOT_MET,
        (true, false) => 0,
    };
    Ok(reported(status, printed.and(told).map_err(anyhow::Error::from)))
}

/// Judges the expectations and prints the judgements. Returns whether one is not met.
fn is_not_met(arguments: &TransferArguments, resolved: &Resolved, point: &Point) -> (bool, io::Result<()>) {
    let points = Points { points: std::slice::from_ref(point), devices: &[], patterns: PATTERNS };
    let judged = expectations::judge(&resolved.expectations, &resolved.plan, points);
    let text = expectations::text(&judged, true);
    let printed = match arguments.json {
        true => {
            eprint!("{text}");
            Ok(())
        }
        false => stdout::print_folded(&text),
    };
    (expectations::is_any_not_met(&judged), printed)
}

/// Refuses flags without an effect, and sources that would replace each other.
fn refuse(arguments: &TransferArguments, carrier: Carrier) -> Result<(), Usage> {
    let of_verbs = [
        ("--depth", arguments.depth.is_some()),
        ("--link", arguments.link.is_some()),
        ("--no-registration-cache", arguments.no_registration_cache),
    ];
    if let Some((flag, _)) = of_verbs.iter().find(|(_, is_given)| *is_given && !carrier.is_verbs()) {
        return Err(Usage(format!(
            "{flag} has no effect on a transfer over TCP: leave it out, or add --over verbs"
        )));
    }
    if arguments.sendfile && carrier.is_verbs() {
        return Err(Usage(
            "--sendfile is for a transfer over TCP: leave it out, or add --over tcp".to_owned(),
        ));
    }
    if arguments.sendfile && arguments.checksum != Checksum::None {
        let words = "with --sendfile, only the kernel reads the files, so that there is no checksum: add \
            --checksum none, or leave --sendfile out";
        return Err(Usage(words.to_owned()));
    }
    let mut names = BTreeSet::new();
    for source in &arguments.sources {
        let is_contents = source.as_os_str().as_encoded_bytes().ends_with(b"/.");
        let name = source.file_name().filter(|_| !is_contents);
        if let Some(name) = name.filter(|name| !names.insert(*name)) {
            let name = name.to_string_lossy();
            let words = format!(
                "two sources are called {name:?}, and the second would replace the first: send them to two directories"
            );
            return Err(Usage(words));
        }
    }
    Ok(())
}

/// Returns the settings of the one point of the plan.
fn settings(arguments: &TransferArguments, carrier: Carrier) -> Settings {
    let place = if arguments.direct { Place::Direct } else { Place::File };
    let connections = arguments.streams;
    let mut settings = Settings::default()
        .axis(axis::ENDPOINT.value(carrier))
        .axis(axis::BLOCK_BYTES.value(arguments.block))
        .axis(axis::CHECKSUM.value(arguments.checksum))
        .axis(axis::PERSISTENT_SESSION.value(!arguments.no_persistent_session))
        .axis(axis::FILE_SOURCE.value(place))
        .axis(axis::FILE_SINK.value(place));
    settings = match carrier {
        Carrier::Verbs => settings
            .axis(axis::QUEUE_PAIRS.value(connections))
            .axis(axis::TX_DEPTH.value(arguments.depth.unwrap_or(DEPTH)))
            .axis(axis::REGISTRATION_CACHE.value(!arguments.no_registration_cache))
            .axis(axis::LINK.value(arguments.link.clone())),
        _ => settings.axis(axis::STREAMS.value(connections)).axis(axis::SENDFILE.value(arguments.sendfile)),
    };
    let timeout_s = Some(arguments.timeout.unwrap_or(TIMEOUT).as_secs_f64());
    Settings { timeout_s, ..settings }
}
