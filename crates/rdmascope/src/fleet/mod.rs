//! `rdmascope fleet`: measures pairs of many hosts, and says which host, pair or group is slow.
//!
//! The examination is a deterministic function of what was measured
//! ([`verdict::fleet::examine()`]). A fleet that was killed therefore goes on by examining its
//! record again, and measures what the record lacks.

mod agents;
mod arguments;
mod begun;
mod expected;
mod hosts;
mod members;
mod points;
mod probe;
mod time;
mod voice;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bench::process::interrupt::Interrupt;
use bench::process::sink::Sink;
use measure::clock::Deadline;
use measure::record::{self, Point, Run};
use measure::store::{EndedRun, RunWriter};
use report::fleet::{Outcome, QUANTITIES, Question, Replay, separate_rails};
use verdict::fleet::{Schedule, examine};

use self::agents::{pin, prepared, started};
pub(crate) use self::arguments::{EXAMPLES, FleetArguments};
use self::begun::{begun, expect};
use self::expected::{Baseline, Limits};
use self::members::{Way, members, within_job};
use self::points::Asked;
use self::probe::Measuring;
use self::time::Time;
use self::voice::Voice;
use crate::failure::{NOT_MET, UNDECIDED, Usage, harmless, reported};
use crate::report::write_html;
use crate::run::directory;
use crate::sink::warnings::NOT_PINNED;
use crate::{resume, sink, stdout};

/// Examines a fleet.
pub(crate) fn fleet(arguments: &FleetArguments, words: Vec<String>) -> anyhow::Result<ExitCode> {
    match &arguments.resume {
        Some(resumed) => go_on(resumed),
        None => {
            let out = arguments.out.clone().unwrap_or_else(|| directory("fleet"));
            begin(arguments, words, &out)
        }
    }
}

/// Starts a fleet and its record.
fn begin(arguments: &FleetArguments, words: Vec<String>, out: &Path) -> anyhow::Result<ExitCode> {
    // What is wrong with the command line is said before a thousand agents start.
    RunWriter::check(out)?;
    let members = members(arguments)?;
    let way = Way::of(arguments)?;
    if let Some(schedule) = Schedule::named(&arguments.schedule).filter(|_| arguments.separate_rails) {
        separate_rails(&members, schedule).map_err(|why| Usage(format!("--separate-rails: {why}")))?;
    }
    let limits = Limits::of(arguments)?;
    let baseline = arguments.baseline.as_deref().map(Baseline::read).transpose()?;
    baseline.as_ref().map_or(Ok(()), |baseline| baseline.check_asked(arguments))?;
    let interrupt = Interrupt::install()?;
    let mut voice = Voice::new(0);
    let began = Deadline::after(Duration::MAX);
    let (mut agents, asked) = started(arguments, &way, &members, &interrupt, &mut voice)?;
    let starting = began.elapsed();
    let mut run = begun(arguments, words, members, &asked, &agents);
    if let Some(pairs) = pin(&mut agents, &run.environments, arguments) {
        if arguments.cpu.is_none() {
            run.warnings.retain(|warning| warning != NOT_PINNED);
        }
        if !question_of(&run)?.options.schedule.is_fan
            && let Some(fleet) = &mut run.fleet
        {
            // More pairs would measure how the system shares its CPUs.
            fleet.parallel.get_or_insert(pairs);
        }
    }
    expect(arguments, &limits, &mut run, &asked, baseline.as_ref(), &mut agents)?;
    run.warnings.iter().for_each(|warning| voice.warning(warning));
    let question = question_of(&run)?;
    run.points_planned = question.points();
    let writer = RunWriter::create(out, &run)?;
    let has_suspects = question.has_suspects();
    let time = Time::of(arguments, has_suspects, starting, Duration::ZERO);
    time::warning(arguments).iter().filter(|_| has_suspects).for_each(|warning| voice.warning(warning));
    let replay = Replay::new(&question, &record::Fleet::default(), &[]);
    voice.expects(question.points());
    let mut measuring = Measuring {
        agents,
        members: question.hosts.count,
        replay,
        writer,
        run,
        specs: specs(&asked),
        voice,
        failures: BTreeSet::new(),
        next_id: 0,
        visited: Vec::new(),
        rest: time.next_visit(),
        time,
    };
    let all = 0..question.hosts.count;
    measuring.note_left(all)?;
    finish(measuring, &question, out, arguments.json)
}

/// Returns what is asked of the fleet of a run.
fn question_of(run: &Run) -> Result<Question, Usage> {
    Question::of(run.fleet.as_ref().unwrap_or(&record::Fleet::default())).map_err(Usage)
}

/// Goes on with a fleet that was stopped or killed.
fn go_on(directory: &Path) -> anyhow::Result<ExitCode> {
    let ended = EndedRun::open(directory)?;
    let shown = directory.display();
    let refused = |why: &str| Usage(format!("cannot resume {shown}: {why}"));
    let Some((arguments, fleet)) =
        resume::arguments_of::<FleetArguments>(&ended.run, "fleet").zip(ended.run.fleet.clone())
    else {
        return Err(refused("it is no run of `rdmascope fleet`").into());
    };
    resume::of_this_version(&ended.run, directory)?;
    // A file of hosts may have changed since, and a Slurm job may have other nodes: then the hosts
    // of the record count.
    let are_typed = arguments.hosts.is_some() || arguments.local.is_some();
    if are_typed && members(&arguments)? != fleet.members {
        return Err(refused("the record has other hosts than its command line names").into());
    }
    within_job(&arguments, &fleet.members).map_err(|Usage(why)| refused(&why))?;
    let way = Way::of(&arguments)?;
    // A record may come from anywhere, and its command line may name programs.
    eprintln!("rdmascope: resuming `{}`", harmless(&ended.run.command.join(" ")));
    let question = Question::of(&fleet).map_err(|why| refused(&why))?;
    if (&arguments.schedule, arguments.separate_rails) != (&fleet.schedule, fleet.separate_rails) {
        return Err(refused("its schedule is not that of its command line").into());
    }
    let interrupt = Interrupt::install()?;
    let word = ended.run.plan["fleet"].as_str().unwrap_or_default().to_owned();
    let asked = Asked::of(&word, &arguments)?;
    let voice = Voice::new(question.points());
    let mut agents = prepared(&arguments, &way, &fleet.members, asked.is_verbs, &interrupt)?;
    for (member, reason) in &fleet.left {
        agents.leave(*member as usize, reason.clone());
    }
    pin(&mut agents, &ended.run.environments, &arguments);
    let replay = Replay::new(&question, &fleet, &ended.points);
    let time = Time::of(&arguments, question.has_suspects(), Duration::ZERO, used(&ended.points));
    let next_id = ended.points.iter().map(|point| point.id + 1).max().unwrap_or(0);
    let run = Run { ended: None, ..ended.run.clone() };
    let measuring = Measuring {
        agents,
        members: question.hosts.count,
        replay,
        writer: ended.go_on()?,
        run,
        specs: specs(&asked),
        voice,
        failures: BTreeSet::new(),
        next_id,
        visited: Vec::new(),
        rest: time.next_visit(),
        time,
    };
    finish(measuring, &question, directory, arguments.json)
}

/// Examines the fleet, ends the record and reports.
fn finish(
    mut measuring: Measuring<'_>,
    question: &Question,
    out: &Path,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let examined = examine(&question.hosts, &question.options, &mut measuring);
    measuring.voice.clear();
    let examined = match examined {
        Ok(examined) => examined,
        Err(error) => {
            if let Err(error) = measuring.write() {
                measuring.voice.warning(&error.to_string());
            }
            let kept = format!("`rdmascope fleet --resume {}` goes on", out.display());
            eprintln!("rdmascope: pairs that were measured are kept: {kept}");
            return Err(error);
        }
    };
    let Measuring { agents, writer, replay, mut run, mut voice, next_id, .. } = measuring;
    agents.quit(&mut voice);
    run.ended = Some(sink::now());
    if let Some(fleet) = &mut run.fleet {
        fleet.examined = Some(serde_json::to_value(&examined)?);
    }
    run.points_planned = next_id;
    writer.finish(&run)?;
    let fleet = run.fleet.clone().unwrap_or_default();
    let outcome = report::fleet::outcome(&fleet, &examined);
    let status = match outcome {
        Outcome::Healthy => 0,
        Outcome::Culprits => NOT_MET,
        Outcome::Undecided => UNDECIDED,
    };
    let text = report::fleet::text(&run, &fleet, question, &examined, replay.tails(), stdout::line());
    let shown = match is_json {
        true => {
            eprint!("{text}");
            stdout::print(&format!("{}\n", report::fleet::json(&fleet, question, &examined, replay.tails())))
        }
        false => stdout::print_folded(&text),
    };
    let report = write_html(out, None).map(|written| written.file.unwrap_or_default());
    let named = report.and_then(|path| {
        if !is_json {
            stdout::print(&format!("{}\n", path.display()))?;
        }
        Ok(())
    });
    Ok(reported(status, shown.map_err(anyhow::Error::from).and(named)))
}

fn specs(asked: &Asked) -> BTreeMap<&'static str, bench::point::PointSpec> {
    QUANTITIES.iter().filter_map(|row| Some((row.name, asked.spec(row.name)?.clone()))).collect()
}

/// Returns the time that earlier processes have used: that of the longest point of each step, since
/// all points of a step are measured at the same time.
fn used(points: &[Point]) -> Duration {
    let mut steps: BTreeMap<(u64, &str, bool), u64> = BTreeMap::new();
    for point in points {
        let Some(place) = &point.fleet else { continue };
        let is_back = place.members.first() > place.members.get(1);
        let longest = steps.entry((place.round, &point.experiment, is_back)).or_default();
        *longest = point.wall_ns.max(*longest);
    }
    Duration::from_nanos(steps.values().sum())
}
