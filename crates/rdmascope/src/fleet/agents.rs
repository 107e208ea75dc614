//! The agents of a fleet: how they are started, and which of them can be used.

use anyhow::bail;
use bench::process::fleet::{Fleet, FleetOptions, Group};
use bench::process::interrupt::Interrupt;
use bench::process::message::Description;
use measure::record::{Environment, FleetMember};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use verdict::fleet::Schedule;

use super::arguments::FleetArguments;
use super::members::Way;
use super::points::Asked;
use super::voice::Voice;
use crate::failure::Usage;
use crate::launch;

/// Returns the agents of a fleet, of which none runs yet: one for each member. The centre of a fan
/// has further ones behind them, since an agent measures one point at a time.
pub(super) fn prepared<'i>(
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
    let agents = agents?;
    let options =
        FleetOptions { at_once: arguments.starts_at_once.into(), start_timeout: arguments.start_timeout };
    allow_descriptors(agents.len())?;
    Ok(Fleet::new(agents, options, Some(interrupt)))
}

/// Starts all agents, and chooses what to measure if the user has not.
pub(super) fn started<'i>(
    arguments: &FleetArguments,
    way: &Way,
    members: &[FleetMember],
    interrupt: &'i Interrupt,
    voice: &mut Voice,
) -> anyhow::Result<(Fleet<'i>, Asked)> {
    let all = 0..members.len();
    let is_device_named = arguments.device.is_some() || members.iter().any(|member| member.device.is_some());
    let mut asked = Asked::of(arguments.subject.as_deref().unwrap_or(VERBS), arguments)?;
    if let Some(subject) = arguments.subject.as_ref().filter(|_| is_device_named && !asked.is_verbs) {
        return Err(Usage(format!(
            "{subject} uses no device: leave out --device and devices= in the file of hosts"
        ))
        .into());
    }
    let mut agents = prepared(arguments, way, members, asked.is_verbs, interrupt)?;
    agents.start(all.clone(), voice)?;
    if asked.is_verbs {
        let count = |is_adapter: bool| {
            let known = all.clone().filter_map(|member| agents.hello(member).ok());
            known.filter(|hello| is_in_memory(&hello.description) != is_adapter).count()
        };
        let is_free = arguments.subject.is_none() && !is_device_named;
        if is_free && (count(true) <= count(false) || have_one_port(&agents, members.len())) {
            // These agents have sockets, too.
            asked = Asked::of(SOCKETS, arguments)?;
        } else if count(true) > count(false) {
            leave_without_adapter(&mut agents, members.len());
        }
    }
    check(&agents, members, &asked)?;
    Ok((agents, asked))
}

/// Whether all members use the same port, as network namespaces do that share an adapter: messages
/// then never pass the links between them.
fn have_one_port(agents: &Fleet<'_>, members: usize) -> bool {
    let port = |member| {
        let attributes = &agents.hello(member).ok()?.description.device.as_ref()?.attributes;
        Some(["node_guid", "port"].map(|name| attributes.get(name).cloned()))
    };
    let ports: Vec<_> = (0..members).filter_map(port).collect();
    let is_known = |port: &[Option<Value>; 2]| port.iter().all(Option::is_some);
    ports.len() > 1 && is_known(&ports[0]) && ports.iter().all(|port| *port == ports[0])
}

/// Leaves out the members without an RDMA adapter, in a fleet whose other members have one.
fn leave_without_adapter(agents: &mut Fleet<'_>, members: usize) {
    for member in 0..members {
        let Ok(hello) = agents.hello(member) else { continue };
        if is_in_memory(&hello.description) {
            let known = hello.description.device.iter();
            let why = known.filter_map(|device| device.attributes.get("device_choice")?.as_str()).next();
            let why = why.map(|why| format!(": it has {why}")).unwrap_or_default();
            agents.leave(member, format!("it has no RDMA adapter that can be used{why}"));
        }
    }
}

/// Whether the device of an agent reaches the memory of its own host only.
fn is_in_memory(description: &Description) -> bool {
    description.limits.own_system.is_some()
}

/// Refuses a fleet of which no pair can be measured.
fn check(agents: &Fleet<'_>, members: &[FleetMember], asked: &Asked) -> anyhow::Result<()> {
    let mut here: Vec<usize> = (0..members.len()).filter(|member| agents.hello(*member).is_ok()).collect();
    if here.len() < 2 {
        let reasons = (0..members.len()).filter_map(|member| {
            let reason = agents.hello(member).err()?;
            Some(format!("{}: {reason}", members[member].name))
        });
        let reasons: Vec<String> = reasons.take(REASONS_MAX).collect();
        bail!("{} of {} members can be used: {}", here.len(), members.len(), reasons.join("; "));
    }
    // Members that reach each other are neighbours somewhere in the list: rail by rail.
    here.sort_by_key(|member| &members[*member].device);
    let pairs = here.iter().zip(here.iter().cycle().skip(1));
    let groups = pairs.flat_map(|(a, b)| {
        asked.resolved.points.iter().map(|spec| Group { members: vec![*a, *b], spec: spec.clone() })
    });
    let mut refusals = groups.map(|group| agents.refusal(&group));
    let first = refusals.next().flatten();
    match first.filter(|_| refusals.all(|refusal| refusal.is_some())) {
        Some(reason) => Err(Usage(format!("no pair of this fleet can be measured: {reason}")).into()),
        None => Ok(()),
    }
}

/// Pins the ranks where all members are on this host, as in a trial or in network namespaces: two
/// ranks that share a CPU would wait for each other. Returns how many pairs have CPUs of their own
/// there.
pub(super) fn pin(
    agents: &mut Fleet<'_>,
    environments: &[Environment],
    arguments: &FleetArguments,
) -> Option<u32> {
    let here = rustix::system::uname();
    let here = here.nodename().to_string_lossy();
    let mut used = environments.iter().filter(|environment| agents.left(environment.rank as usize).is_none());
    if !used.all(|environment| environment.hostname == here) {
        return None;
    }
    let cpus = launch::first_allowed(CPUS_MAX);
    let pairs = u32::try_from(cpus.len() / 2).unwrap_or(1).max(1);
    if arguments.cpu.is_none() {
        agents.pin(cpus);
    }
    Some(pairs)
}

/// Lets this process have the files of so many agents.
fn allow_descriptors(agents: usize) -> Result<(), Usage> {
    let limit = getrlimit(Resource::Nofile);
    let needed = DESCRIPTORS_OWN + DESCRIPTORS_OF_AGENT * agents as u64;
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let is_enough = limit.maximum.is_none_or(|maximum| maximum >= needed);
    match is_enough && setrlimit(Resource::Nofile, raised).is_ok() {
        true => Ok(()),
        false => Err(Usage(format!(
            "{agents} agents need {needed} open files, and this process may have {}: raise the limit (ulimit -n)",
            limit.maximum.unwrap_or(0)
        ))),
    }
}

/// The files of an agent: three pipes, and its process.
const DESCRIPTORS_OF_AGENT: u64 = 4;
/// The files of this process, with room.
const DESCRIPTORS_OWN: u64 = 64;
/// The most CPUs that ranks of one host use.
const CPUS_MAX: usize = 1024;
/// A refusal gives the reasons of at most this many members.
const REASONS_MAX: usize = 3;

/// What is measured between adapters, and without them.
const VERBS: &str = "send";
const SOCKETS: &str = "tcp";
