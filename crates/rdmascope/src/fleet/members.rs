//! The members of a fleet: which hosts, on which devices, and how their agents are started.

use std::collections::BTreeSet;

use bench::process::coordinator::Launch;
use bench::process::fleet::Member;
use measure::record::FleetMember;

use super::arguments::FleetArguments;
use super::hosts::{self, Host};
use crate::failure::Usage;

/// The way into the nodes of a Slurm job, from inside the job.
const SRUN: &str = "srun --overlap --quiet --nodes=1 --ntasks=1 --nodelist={host}";
/// The variable of a Slurm job that lists its nodes.
const NODES: &str = "SLURM_JOB_NODELIST";

/// How the agents of a fleet are started.
pub(super) struct Way {
    launch: Launch,
    /// Whether all agents are on this host.
    is_local: bool,
}

/// Returns the members of the hosts that the arguments or the job name, as the record has them.
pub(super) fn members(arguments: &FleetArguments) -> anyhow::Result<Vec<FleetMember>> {
    let hosts = match (&arguments.hosts, &arguments.hosts_file, arguments.local) {
        (Some(list), ..) => hosts::list(list).map_err(|why| Usage(format!("--hosts: {why}")))?,
        (_, Some(file), _) => hosts::file(file)?,
        (.., Some(agents)) => {
            let host = |n| Host { name: format!("agent{n}"), ..Host::default() };
            (1..=agents).map(host).collect()
        }
        (None, None, None) => nodes()?.ok_or_else(|| {
            Usage("name the hosts with --hosts or --hosts-file, or try --local 4".to_owned())
        })?,
    };
    let mut all = Vec::new();
    for Host { name, group, devices } in hosts {
        let member = FleetMember {
            name: name.clone(),
            host: name.clone(),
            device: None,
            groups: group.iter().map(|group| ("group".to_owned(), group.clone())).collect(),
        };
        if devices.is_empty() {
            all.push(member);
            continue;
        }
        for device in devices {
            let mut rail = member.clone();
            rail.name = format!("{name}:{device}");
            rail.device = Some(device.clone());
            rail.groups.insert("rail".to_owned(), device);
            all.push(rail);
        }
    }
    match all.len() {
        0 | 1 => Err(Usage("a fleet has at least two hosts".to_owned()).into()),
        _ => Ok(all),
    }
}

/// Returns the nodes of the Slurm job in which this process is; none outside a job.
fn nodes() -> Result<Option<Vec<Host>>, Usage> {
    let Ok(list) = std::env::var(NODES) else { return Ok(None) };
    hosts::list(&list).map(Some).map_err(|why| Usage(format!("{NODES}: {why}")))
}

/// Refuses to resume a fleet of a Slurm job outside of a job that has all of its nodes. Such a
/// fleet has no `--via`: `srun` starts its agents.
pub(super) fn within_job(arguments: &FleetArguments, members: &[FleetMember]) -> Result<(), Usage> {
    if arguments.via.is_some() || arguments.local.is_some() {
        return Ok(());
    }
    let has: BTreeSet<String> = nodes()?.unwrap_or_default().into_iter().map(|host| host.name).collect();
    let lacks: BTreeSet<&str> =
        members.iter().map(|member| member.host.as_str()).filter(|host| !has.contains(*host)).collect();
    let Some(first) = lacks.first() else { return Ok(()) };
    let more =
        if lacks.len() > 1 { format!(" and {} more of its hosts", lacks.len() - 1) } else { String::new() };
    let words = match has.is_empty() {
        true => "its hosts are nodes of a Slurm job: resume it in a job that has them".to_owned(),
        false => format!("this Slurm job lacks {first}{more}: resume it in a job that has all of its hosts"),
    };
    Err(Usage(words))
}

impl Way {
    /// Returns the way into the hosts of the arguments.
    pub(super) fn of(arguments: &FleetArguments) -> anyhow::Result<Self> {
        let mut launch = Launch::local()?;
        launch.via.clone_from(&arguments.via);
        if let Some(path) = &arguments.agent_path {
            launch.program[0].clone_from(path);
        }
        let is_local = arguments.local.is_some();
        if !is_local && std::env::var_os(NODES).is_some() {
            launch.via.get_or_insert_with(|| SRUN.to_owned());
        }
        let is_named = launch.via.as_ref().is_some_and(|via| via.contains("{host}"));
        if !is_local && !is_named {
            let words = "--via has to say how to reach a host, with {host} for its name: --via 'ssh {host}'";
            return Err(Usage(words.to_owned()).into());
        }
        Ok(Self { launch, is_local })
    }

    /// Returns how the agent of a member is started. `is_verbs` says whether it opens a device.
    pub(super) fn agent(
        &self,
        member: &FleetMember,
        arguments: &FleetArguments,
        is_verbs: bool,
    ) -> anyhow::Result<Member> {
        let device = member.device.as_ref().or(arguments.device.as_ref());
        let mut words = match is_verbs {
            true => device.iter().flat_map(|device| ["--device".to_owned(), (*device).clone()]).collect(),
            false => vec!["--no-device".to_owned()],
        };
        if is_verbs {
            words.extend(arguments.port.arguments());
        }
        let loopback = self.is_local.then(|| "loopback".to_owned());
        let net = arguments.net.net.as_ref().map(ToString::to_string).or(loopback);
        words.extend(net.into_iter().flat_map(|net| ["--net".to_owned(), net]));
        let port = arguments.net.data_port.map(|port| port.to_string());
        words.extend(port.into_iter().flat_map(|port| ["--data-port".to_owned(), port]));
        words.extend(arguments.cpu.into_iter().flat_map(|cpu| ["--cpu".to_owned(), cpu.to_string()]));
        Ok(Member { name: member.name.clone(), words: self.launch.command_on(&member.host, &words)? })
    }
}
