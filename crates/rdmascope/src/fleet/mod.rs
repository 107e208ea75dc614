//! `rdmascope fleet`: measures pairs of many hosts, and says which host, pair or group is slow.
//!
//! The examination is a deterministic function of what was measured
//! ([`verdict::fleet::examine()`]). A fleet that was killed therefore goes on by examining its
//! record again, and measures what the record lacks.

mod arguments;
mod expected;
mod hosts;
mod members;
mod points;
mod probe;
mod voice;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bench::process::fleet::{Fleet, FleetOptions};
use bench::process::interrupt::Interrupt;
use measure::record::{self, FleetMember, FleetQuantity, Point, Run, SCHEMA_VERSION};
use measure::store::{EndedRun, RunWriter};
use report::fleet::{QUANTITIES, Question, Replay, Row};
use verdict::fleet::{Schedule, examine};

pub(crate) use self::arguments::{EXAMPLES, FleetArguments};
use self::expected::{Baseline, at_least, at_most};
use self::members::Way;
use self::points::Asked;
use self::probe::{Measuring, Time};
use self::voice::Voice;
use crate::failure::{DID_NOT_FINISH, NOT_MET, Usage, harmless};
use crate::report::write_html;
use crate::run::directory;
use crate::{launch, resume, sink, stdout};

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
    let way = Way::of(arguments)?;
    let members = way.members()?;
    let interrupt = Interrupt::install()?;
    let mut voice = Voice::new(0);
    let (mut agents, asked) = started(arguments, &way, &members, &interrupt, &mut voice)?;
    let baseline = arguments.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut run = begun(arguments, words, members, &asked, &agents);
    expect(arguments, &mut run, &asked, baseline.as_ref())?;
    if is_of_this_host(&run.environments) {
        let cpus = launch::first_allowed(CPUS_MAX);
        let is_fan = question_of(&run)?.options.schedule.is_fan;
        if let Some(fleet) = run.fleet.as_mut().filter(|_| !is_fan) {
            // More pairs would measure how the system shares its CPUs.
            fleet.parallel.get_or_insert(u32::try_from(cpus.len() / 2).unwrap_or(1).max(1));
        }
        if arguments.cpu.is_none() {
            agents.pin(cpus);
        }
    }
    let question = question_of(&run)?;
    let writer = RunWriter::create(out, &run)?;
    let replay = Replay::new(&record::Fleet::default(), &question.rows, &[]);
    let time = arguments.time.map(|limit| Time::new(limit, Duration::ZERO));
    let mut measuring = Measuring {
        agents,
        members: question.hosts.count,
        replay,
        writer,
        run,
        specs: specs(&asked),
        voice,
        next_id: 0,
        visited: Vec::new(),
        time,
    };
    let all = 0..question.hosts.count;
    measuring.note_left(all)?;
    finish(measuring, &question, out)
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
    let way = Way::of(&arguments)?;
    if way.members()? != fleet.members {
        return Err(refused("its hosts have changed since: start a new run").into());
    }
    // A record may come from anywhere, and its command line may name programs.
    eprintln!("rdmascope: resuming `{}`", harmless(&ended.run.command.join(" ")));
    let question = Question::of(&fleet).map_err(|why| refused(&why))?;
    let interrupt = Interrupt::install()?;
    let word = ended.run.plan["fleet"].as_str().unwrap_or_default().to_owned();
    let asked = Asked::of(&word, &arguments)?;
    let voice = Voice::new(ended.run.points_planned);
    let mut agents = prepared(&arguments, &way, &fleet.members, asked.is_verbs, &interrupt)?;
    if arguments.cpu.is_none() && is_of_this_host(&ended.run.environments) {
        agents.pin(launch::first_allowed(CPUS_MAX));
    }
    for (member, reason) in &fleet.left {
        agents.leave(*member as usize, reason.clone());
    }
    let replay = Replay::new(&fleet, &question.rows, &ended.points);
    let used = used(&ended.points);
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
        next_id,
        visited: Vec::new(),
        time: arguments.time.map(|limit| Time::new(limit, used)),
    };
    finish(measuring, &question, directory)
}

/// Examines the fleet, ends the record and reports.
fn finish(mut measuring: Measuring<'_>, question: &Question, out: &Path) -> anyhow::Result<ExitCode> {
    let examined = examine(&question.hosts, &question.options, &mut measuring);
    measuring.voice.clear();
    let examined = match examined {
        Ok(examined) => examined,
        Err(error) => {
            measuring.write()?;
            let kept = format!("`rdmascope fleet --resume {}` goes on", out.display());
            eprintln!("rdmascope: pairs that were measured are kept: {kept}");
            return Err(error);
        }
    };
    let Measuring { agents, writer, mut run, mut voice, next_id, .. } = measuring;
    agents.quit(&mut voice);
    run.ended = Some(sink::now());
    if let Some(fleet) = &mut run.fleet {
        fleet.examined = Some(serde_json::to_value(&examined)?);
    }
    run.points_planned = next_id;
    writer.finish(&run)?;
    let fleet = run.fleet.clone().unwrap_or_default();
    stdout::print_folded(&report::fleet::text(&run, &fleet, question, &examined, stdout::line()))?;
    let written = write_html(out, None)?;
    let path: PathBuf = written.file.unwrap_or_default();
    stdout::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::from(match report::fleet::outcome(&fleet, &examined) {
        report::fleet::Outcome::Healthy => 0,
        report::fleet::Outcome::Culprits => NOT_MET,
        report::fleet::Outcome::Undecided => DID_NOT_FINISH,
    }))
}

/// Returns the agents of a fleet, of which none runs yet: one for each member. The centre of a fan
/// has further ones behind them, since an agent measures one point at a time.
fn prepared<'i>(
    arguments: &FleetArguments,
    way: &Way,
    members: &[FleetMember],
    is_verbs: bool,
    interrupt: &'i Interrupt,
) -> anyhow::Result<Fleet<'i>> {
    let centre = Schedule::named(&arguments.schedule).filter(|schedule| schedule.is_fan).and(members.first());
    let further = centre.into_iter().cycle().take(members.len().saturating_sub(2));
    let agents: anyhow::Result<Vec<_>> =
        members.iter().chain(further).map(|member| way.agent(member, arguments, is_verbs)).collect();
    let options =
        FleetOptions { at_once: arguments.starts_at_once.into(), start_timeout: arguments.start_timeout };
    Ok(Fleet::new(agents?, options, Some(interrupt)))
}

/// Starts all agents, and chooses what to measure if the user has not.
fn started<'i>(
    arguments: &FleetArguments,
    way: &Way,
    members: &[FleetMember],
    interrupt: &'i Interrupt,
    voice: &mut Voice,
) -> anyhow::Result<(Fleet<'i>, Asked)> {
    let all = 0..members.len();
    let word = arguments.subject.as_deref().unwrap_or(VERBS);
    let asked = Asked::of(word, arguments)?;
    let mut agents = prepared(arguments, way, members, asked.is_verbs, interrupt)?;
    agents.start(all.clone(), voice)?;
    if arguments.subject.is_some() {
        return Ok((agents, asked));
    }
    let has_adapter = |member: &usize| {
        let hello = agents.hello(*member).ok();
        hello.is_some_and(|hello| hello.description.limits.own_system.is_none())
    };
    if 2 * all.clone().filter(has_adapter).count() > members.len() {
        return Ok((agents, asked));
    }
    let asked = Asked::of(SOCKETS, arguments)?;
    for (place, member) in members.iter().enumerate() {
        // An agent with a device also has sockets. One that has failed may have lacked a device.
        if agents.left(place).is_some() {
            agents.replace(place, way.agent(member, arguments, false)?.words);
        }
    }
    agents.start(all, voice)?;
    Ok((agents, asked))
}

/// Whether all members are on this host, as in a trial or in network namespaces. Their ranks are
/// then pinned: two ranks of a point that share a CPU would wait for each other.
fn is_of_this_host(environments: &[record::Environment]) -> bool {
    let here = rustix::system::uname();
    let here = here.nodename().to_string_lossy();
    environments.iter().all(|environment| environment.hostname == here)
}

/// The most CPUs that ranks of one host use.
const CPUS_MAX: usize = 1024;

/// What is measured between adapters, and without them.
const VERBS: &str = "send";
const SOCKETS: &str = "tcp";

/// Returns the record of a fleet that begins.
fn begun(
    arguments: &FleetArguments,
    command: Vec<String>,
    members: Vec<FleetMember>,
    asked: &Asked,
    agents: &Fleet<'_>,
) -> Run {
    let hellos: Vec<_> = (0..members.len()).map(|member| agents.hello(member).ok()).collect();
    let known = |rank: u32, name: &str| record::Environment {
        rank,
        hostname: name.to_owned(),
        ..record::Environment::default()
    };
    let environments = (0u32..).zip(&members).zip(&hellos).map(|((rank, member), hello)| {
        hello.map_or_else(|| known(rank, &member.name), |hello| hello.description.environment.clone())
    });
    let environments = environments.collect();
    let here = || hellos.iter().flatten().map(|hello| &hello.description);
    let schedule = Schedule::named(&arguments.schedule);
    let passes = arguments.passes.unwrap_or_else(|| schedule.map_or(1, |schedule| schedule.passes as u32));
    let mut plan = asked.resolved.plan.clone();
    plan["fleet"] = asked.word.clone().into();
    let quantities =
        QUANTITIES.iter().map(|row| FleetQuantity { name: row.name.to_owned(), ..FleetQuantity::default() });
    let devices = match asked.is_verbs {
        true => here().filter_map(|description| description.device.clone()).collect(),
        false => Vec::new(),
    };
    Run {
        schema_version: SCHEMA_VERSION,
        program: sink::program(),
        command,
        started: sink::now(),
        ended: None,
        title: format!("Fleet of {} members, {}", members.len(), asked.word),
        about: None,
        quick: false,
        plan,
        points_planned: 0,
        figures: Vec::new(),
        findings: Vec::new(),
        devices,
        environments,
        overheads: here().map(|description| description.overhead.clone()).collect(),
        launches: Vec::new(),
        expectations: Vec::new(),
        fleet: Some(record::Fleet {
            members,
            quantities: quantities.collect(),
            schedule: arguments.schedule.clone(),
            passes,
            rounds: arguments.rounds,
            parallel: arguments.parallel,
            time_s: arguments.time.map(|time| time.as_secs_f64()),
            rounds_in_time: None,
            least: arguments.least,
            tolerance: arguments.tolerance,
            alpha: ALPHA,
            seed: SEED,
            baseline: None,
            left: BTreeMap::new(),
            examined: None,
        }),
        warnings: Vec::new(),
    }
}

/// Adds what the fleet is compared with, beside its own members.
fn expect(
    arguments: &FleetArguments,
    run: &mut Run,
    asked: &Asked,
    baseline: Option<&Baseline>,
) -> anyhow::Result<()> {
    let Some(fleet) = &mut run.fleet else { return Ok(()) };
    fleet.baseline = arguments.baseline.as_ref().map(|directory| directory.display().to_string());
    for quantity in &mut fleet.quantities {
        let row = Row::named(&quantity.name);
        quantity.expected =
            match (row.is_some_and(|row| row.is_rate), &arguments.at_least, &arguments.at_most) {
                (true, Some(text), _) => {
                    asked.spec(&quantity.name).map(|spec| at_least(text, spec, &run.devices)).transpose()?
                }
                (false, _, Some(text)) => Some(at_most(text)?),
                _ => None,
            };
        if let Some(baseline) = baseline {
            quantity.baseline = baseline.cells(&quantity.name, &fleet.members);
            if quantity.baseline.is_empty() {
                let words = "--baseline: the earlier fleet has no pair of these hosts";
                return Err(Usage(words.to_owned()).into());
            }
        }
    }
    Ok(())
}

/// The share of healthy fleets in which something may be named.
const ALPHA: f64 = 0.01;
/// Any seed does: the pairs that it draws are the same in every run.
const SEED: u64 = 1;

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
