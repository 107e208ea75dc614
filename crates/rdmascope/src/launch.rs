//! How the ranks of a run are started, and on which hosts and CPUs.

use std::net::{IpAddr, Ipv4Addr};

use bench::axis;
use bench::plan::Resolved;
use bench::point::{MpiTransport, PointSpec};
use bench::process::coordinator::{Launch, Launcher, MpiDevice, NOT_BY_COMMANDS, Points};
use bench::process::dial::Peer;
use bench::worker::{self, LocalPort, Net, PortOptions};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::backends::{self, providers};
use crate::cli::{Location, NetFlags, Placement, Places};
use crate::failure::Usage;

/// Fewest ranks of a point, and the ranks of a server and its client.
const RANKS: usize = 2;

/// Returns how to start the agents of a plan's ranks: all agents, or rank 0 only if there is a
/// server.
pub(crate) fn launch(
    places: &impl Places,
    server: Option<Peer>,
    resolved: &Resolved,
) -> anyhow::Result<Launch> {
    let location = places.location();
    let ranks = resolved.ranks();
    let mut launch = Launch::local()?;
    launch.start_timeout = location.start_timeout;
    launch.via.clone_from(&location.via);
    if let Some(path) = &location.agent_path {
        launch.program[0].clone_from(path);
    }
    match places.device().filter(|_| resolved.needs_device()) {
        Some(placement) => {
            launch.arguments.extend(device_arguments(placement));
            if resolved.points.iter().any(PointSpec::uses_rdma_cm) {
                launch.arguments.push(RDMA_CM.to_owned());
            }
            if location.via.is_none() {
                // On this host, an error can be reported now, with the list of devices.
                worker::check(providers(), placement.device.as_deref(), placement.port.options())?;
            }
        }
        None => launch.arguments.push("--no-device".to_owned()),
    }
    if resolved.points.iter().any(|point| point.message.endpoint.has_ports()) {
        launch.arguments.extend(net_arguments(places.net(), location, server.as_ref()));
    }
    if !resolved.points.iter().any(PointSpec::is_measurement) {
        launch.arguments.push("--plain-clock".to_owned());
    }
    if location.via.is_some() {
        launch.hosts = hosts(location, ranks)?;
    }
    launch.cpus = match server {
        Some(_) => own_cpu(location, 0)?.into_iter().collect(),
        None => cpus(location, ranks)?,
    };
    launch.launcher = launcher(places, resolved, &launch)?;
    launch.server = server;
    Ok(launch)
}

/// Returns the launcher of MPI ranks, if the plan has such ranks or the user wants it for all
/// ranks.
fn launcher(places: &impl Places, resolved: &Resolved, launch: &Launch) -> anyhow::Result<Option<Launcher>> {
    let location = places.location();
    let given = location.mpi.as_ref().or(resolved.mpi.as_ref());
    let needs = resolved.points.iter().any(PointSpec::has_launcher);
    if !needs && given.is_none() {
        return Ok(None);
    }
    if location.via.is_some() {
        // The other points of a plan can be measured without the launcher.
        return match resolved.points.iter().all(PointSpec::has_launcher) {
            true => Err(Usage(format!("--via {NOT_BY_COMMANDS}")).into()),
            false => Ok(None),
        };
    }
    let template = given.map_or(MPIRUN, String::as_str);
    let mut agent = [&launch.program[..], &launch.arguments[..]].concat();
    if needs {
        // MPI would find what makes RDMA CM work, and choose another transport.
        agent.retain(|word| word != RDMA_CM);
    }
    agent.extend(["--launcher".to_owned(), template.to_owned()]);
    // Ranks of other hosts choose among the CPUs there.
    let cpus = location.cpus.clone().unwrap_or_else(|| EACH.to_owned());
    agent.extend(["--cpus".to_owned(), cpus]);
    agent.extend(location.mpi_library.iter().flat_map(|name| ["--mpi-library".to_owned(), name.clone()]));
    Ok(Some(Launcher {
        template: template.to_owned(),
        points: match (&location.mpi, &resolved.mpi) {
            (Some(_), _) => Points::All,
            (None, Some(_)) => Points::AllIfPossible,
            (None, None) => Points::OfMpi,
        },
        listen: (location.mpi_listen.unwrap_or(Ipv4Addr::LOCALHOST.into()), 0).into(),
        supervisor: launch.supervisor(),
        agent,
        device: mpi_device(places, resolved)?,
        timeout: launch.start_timeout,
    }))
}

/// Returns the device for MPI over verbs, if the plan has such points. If no device is named and
/// none can be used, returns the reason, with which these points are not measured.
fn mpi_device(
    places: &impl Places,
    resolved: &Resolved,
) -> anyhow::Result<Option<Result<MpiDevice, String>>> {
    let (name, options) = places.mpi_device();
    let takes_verbs = |point: &PointSpec| {
        let transport = axis::MPI_TRANSPORT.at(&point.axes);
        point.has_launcher() && transport == Some(MpiTransport::Verbs)
    };
    if !resolved.points.iter().any(takes_verbs) {
        // A plan's device may be for points that are left out.
        return match name.filter(|_| places.device().is_none()) {
            Some(name) => {
                let words = format!("--device {name} is for MPI over verbs: add --mpi-transport verbs");
                Err(Usage(words).into())
            }
            None => Ok(None),
        };
    }
    match find_mpi_device(name, options) {
        Err(error) if name.is_none() => Ok(Some(Err(format!("{error:#}")))),
        found => Ok(Some(Ok(found?))),
    }
}

fn find_mpi_device(name: Option<&str>, options: PortOptions) -> anyhow::Result<MpiDevice> {
    let (device, _) = worker::find(providers(), name, options)?;
    let port = LocalPort::find(&device.open()?, options)?;
    port.check()?;
    Ok(MpiDevice {
        name_and_port: format!("{}:{}", device.name(), port.number),
        gid_index: options.gid_index,
        variables: backends::variables_of_programs(&device)?,
        link_variable: backends::link_variable(&device),
    })
}

/// The argument of agents if some points connect by RDMA CM.
const RDMA_CM: &str = "--rdma-cm";
/// The command that starts MPI programs by default.
const MPIRUN: &str = "mpirun -np {ranks}";
/// Each rank of a host uses another CPU.
pub(crate) const EACH: &str = "each";

/// Returns the device as arguments of an agent.
fn device_arguments(placement: &Placement) -> Vec<String> {
    let name = placement.device.iter().flat_map(|device| ["--device".to_owned(), device.clone()]);
    name.chain(placement.port.arguments()).collect()
}

/// Returns the addresses of sockets as arguments of an agent: loopback if all ranks are on this
/// host.
fn net_arguments(net: Option<&NetFlags>, location: &Location, server: Option<&Peer>) -> Vec<String> {
    let is_here = location.via.is_none() && server.is_none_or(|server| is_loopback(&server.host));
    let given = net.and_then(|net| net.net.as_ref()).map(ToString::to_string);
    let net_words = given.or_else(|| is_here.then(|| Net::Loopback.to_string()));
    let port = net.and_then(|net| net.data_port);
    let words = [("--net", net_words), ("--data-port", port.map(|port| port.to_string()))];
    words.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
}

/// Whether a name or an address certainly means this host.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the hosts for the command template of `--via`.
fn hosts(location: &Location, ranks: usize) -> Result<Vec<String>, Usage> {
    let is_named = location.via.as_ref().is_some_and(|template| template.contains("{host}"));
    match (location.hosts.len(), is_named) {
        // A wrapper such as `--via 'nice -n -20'`.
        (0, false) => Ok(vec!["localhost".to_owned()]),
        (0, true) => Err(Usage("--via has {host}: name two hosts with --hosts, rank 0 first".to_owned())),
        (_, false) => Err(Usage("--hosts needs {host} in --via, as in 'ssh {host}'".to_owned())),
        (1, true) => Err(Usage("--hosts names 1 host, but a point is measured between two".to_owned())),
        (found, true) if found > ranks => {
            Err(Usage(format!("--hosts names {found} hosts, but no point has more than {ranks} ranks")))
        }
        (_, true) => Ok(location.hosts.clone()),
    }
}

/// Returns the CPUs that ranks use in turn.
fn cpus(location: &Location, ranks: usize) -> anyhow::Result<Vec<u32>> {
    match location.cpus.as_deref() {
        Some("none") => Ok(Vec::new()),
        Some(text) => {
            let cpus: Option<Vec<u32>> = text.split(',').map(|cpu| cpu.trim().parse().ok()).collect();
            match cpus {
                Some(cpus) if (RANKS..=ranks).contains(&cpus.len()) => {
                    // On another host, the agent checks its CPU.
                    if location.via.is_none() {
                        allowed(&cpus)?;
                    }
                    Ok(cpus)
                }
                _ => {
                    Err(Usage(format!("--cpus {text}: give {} such as 0,1, or `none`", numbers(ranks)))
                        .into())
                }
            }
        }
        // The CPUs of another host are not known here.
        None if location.via.is_some() => Ok(Vec::new()),
        None => Ok(first_allowed(ranks)),
    }
}

/// Returns how many numbers may be given.
fn numbers(ranks: usize) -> String {
    if ranks > RANKS { format!("two to {ranks} numbers") } else { "two numbers".to_owned() }
}

/// Returns the CPU of a server or its client. `A,B` means the same for both, so that they can have
/// the same flags.
pub(crate) fn own_cpu(location: &Location, rank: usize) -> anyhow::Result<Option<u32>> {
    let Some(text) = location.cpus.as_deref() else {
        // The other rank uses the other CPU, in case it is on this host.
        return Ok(first_allowed(RANKS).get(rank).copied());
    };
    if text == "none" {
        return Ok(None);
    }
    let cpus: Option<Vec<u32>> = text.split(',').map(|cpu| cpu.trim().parse().ok()).collect();
    let own = match cpus.as_deref() {
        Some([own]) => *own,
        Some(both) if both.len() == RANKS => both[rank],
        _ => {
            return Err(
                Usage(format!("--cpus {text}: give the CPU of this rank such as 2, or `none`")).into()
            );
        }
    };
    allowed(&[own])?;
    Ok(Some(own))
}

/// Refuses CPUs that this process may not use.
fn allowed(cpus: &[u32]) -> anyhow::Result<()> {
    let Ok(allowed) = sched_getaffinity(None) else { return Ok(()) };
    let is_allowed = |cpu: u32| (cpu as usize) < CpuSet::MAX_CPU && allowed.is_set(cpu as usize);
    let Some(cpu) = cpus.iter().find(|cpu| !is_allowed(**cpu)) else { return Ok(()) };
    let known: Vec<_> = (0..1024).filter(|cpu| is_allowed(*cpu)).map(|cpu| cpu.to_string()).collect();
    let known = known.join(",");
    Err(Usage(format!("--cpus names CPU {cpu}, which this process may not use: choose from {known}")).into())
}

/// Returns the CPU of the n-th rank of this host: the n-th allowed CPU, or the n-th of `cpus`.
pub(crate) fn cpu_of(local_rank: u32, cpus: &str) -> Result<Option<u32>, Usage> {
    let allowed: Vec<u32> = match cpus {
        "none" => return Ok(None),
        EACH => sched_getaffinity(None).map_or_else(
            |_| Vec::new(),
            |set| (0..CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect(),
        ),
        text => {
            let cpus: Option<Vec<u32>> = text.split(',').map(|cpu| cpu.trim().parse().ok()).collect();
            cpus.ok_or_else(|| Usage(format!("--cpus {text}: give numbers such as 0,1, or `none`")))?
        }
    };
    Ok(allowed.get(local_rank as usize % allowed.len().max(1)).copied())
}

/// Returns the first CPUs that this process may use, at most one for each rank; none if there is
/// only one, which all ranks then share.
pub(crate) fn first_allowed(ranks: usize) -> Vec<u32> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    let cpus = (0..CpuSet::MAX_CPU as u32).filter(|cpu| allowed.is_set(*cpu as usize));
    let first: Vec<_> = cpus.take(ranks).collect();
    if first.len() < RANKS { Vec::new() } else { first }
}
