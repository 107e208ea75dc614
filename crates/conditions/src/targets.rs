//! Maps a technique to the settings of the host that it changes.

use measure::conditions::{Outcome, Technique, Turbo, Wanted};

use crate::cpus;
use crate::host::Host;
use crate::place::Ranks;
use crate::refusal::Refusal;
use crate::setting::{Interface, NO_TUNED, ON, Setting, TUNED};
use crate::shield::Groups;

/// Returns the settings that a technique changes, with their values, in order.
pub(crate) fn targets(
    host: &Host,
    technique: Technique,
    wanted: &Wanted,
    ranks: &Ranks,
) -> Result<Vec<(Setting, String)>, Refusal> {
    let asked =
        || wanted.techniques().into_iter().find(|(name, _)| *name == technique).map(|(_, asked)| asked);
    match technique {
        Technique::Aspm => aspm(host, asked().unwrap_or_default()),
        Technique::Cpuset => shield(host, &ranks.cpus),
        Technique::Governor => governors(host, &asked().unwrap_or_default()),
        Technique::IpoibMode => ipoib(&ranks.interfaces, &asked().unwrap_or_default()),
        Technique::IrqAffinity => interrupts(host, &ranks.cpus),
        Technique::Tuned if !host.is_running(TUNED) => Err(nothing(NO_TUNED)),
        Technique::Tuned => Ok(vec![(Setting::Tuned, asked().unwrap_or_default())]),
        Technique::Turbo => turbo(host, wanted.turbo == Some(Turbo::On)),
        Technique::CpuDmaLatency
        | Technique::Memory
        | Technique::Numa
        | Technique::Scheduler
        | Technique::Stress => Ok(Vec::new()),
    }
}

fn aspm(host: &Host, asked: String) -> Result<Vec<(Setting, String)>, Refusal> {
    if !host.at(&Setting::Aspm.path()).exists() {
        return Err(nothing("the kernel does not manage the power of PCI Express links here (no pcie_aspm)"));
    }
    Ok(vec![(Setting::Aspm, asked)])
}

fn ipoib(interfaces: &[String], mode: &str) -> Result<Vec<(Setting, String)>, Refusal> {
    if interfaces.is_empty() {
        return Err(nothing(
            "no IPoIB interface to another host is up and has an address (`modprobe ib_ipoib`, `ip address`)",
        ));
    }
    let names = interfaces.iter().map(|name| Interface::try_from(name.clone()));
    let set = |interface| (Setting::Ipoib { interface }, mode.to_owned());
    Ok(names.collect::<Result<Vec<_>, _>>().map_err(|why| nothing(&why))?.into_iter().map(set).collect())
}

fn governors(host: &Host, governor: &str) -> Result<Vec<(Setting, String)>, Refusal> {
    let scaled = scaled(host);
    let Some(first) = scaled.first() else {
        return Err(nothing(
            "the kernel does not scale clock rates here (no cpufreq), as in most virtual machines",
        ));
    };
    let file = format!("sys/devices/system/cpu/cpu{first}/cpufreq/scaling_available_governors");
    match host.line(&file) {
        Ok(known) if !known.split_whitespace().any(|name| name == governor) => {
            Err(nothing(&format!("there is no governor {governor:?} here, only {known}")))
        }
        _ => Ok(scaled.into_iter().map(|cpu| (Setting::Governor { cpu }, governor.to_owned())).collect()),
    }
}

/// The CPUs with a scaled clock rate.
pub(crate) fn scaled(host: &Host) -> Vec<u32> {
    let names = host.root().numbered("sys/devices/system/cpu", "cpu");
    let cpus = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok());
    cpus.filter(|cpu| host.at(&Setting::Governor { cpu: *cpu }.path()).exists()).collect()
}

fn turbo(host: &Host, is_on: bool) -> Result<Vec<(Setting, String)>, Refusal> {
    let value = |on: bool| if on { "1" } else { "0" }.to_owned();
    if host.at(&Setting::Boost.path()).exists() {
        Ok(vec![(Setting::Boost, value(is_on))])
    } else if host.at(&Setting::NoTurbo.path()).exists() {
        Ok(vec![(Setting::NoTurbo, value(!is_on))])
    } else {
        Err(nothing("the kernel has no switch for turbo here (no cpufreq/boost)"))
    }
}

/// The numbers of the interrupts with an affinity.
pub(crate) fn numbers(host: &Host) -> Vec<u32> {
    let names = host.root().numbered("proc/irq", "");
    let numbers = names.iter().filter_map(|name| name.parse().ok());
    numbers.filter(|irq| host.at(&Setting::IrqAffinity { irq: *irq }.path()).exists()).collect()
}

fn interrupts(host: &Host, ranks: &[u32]) -> Result<Vec<(Setting, String)>, Refusal> {
    let others = others(host, ranks)?;
    let numbers = numbers(host);
    if numbers.is_empty() {
        return Err(nothing("no interrupt of this host can be moved to other CPUs (/proc/irq)"));
    }
    let target = |irq: u32| {
        let setting = Setting::IrqAffinity { irq };
        let left = cpus::without(&cpus::parse(&setting.read(host).unwrap_or_default()), ranks);
        (setting, cpus::text(if left.is_empty() { &others } else { &left }))
    };
    Ok(numbers.into_iter().map(target).collect())
}

fn shield(host: &Host, ranks: &[u32]) -> Result<Vec<(Setting, String)>, Refusal> {
    let groups = Groups::of(host)
        .ok_or_else(|| nothing("the host has no control groups with the cpuset controller"))?;
    others(host, ranks)?;
    let shield = (Setting::Shield, shielded(ranks));
    Ok(match groups {
        Groups::V1 => vec![shield],
        Groups::V2 => vec![(Setting::CpusetController, ON.to_owned()), shield],
    })
}

fn shielded(ranks: &[u32]) -> String {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    cpus::text(&ranks)
}

/// The CPUs without a rank.
fn others(host: &Host, ranks: &[u32]) -> Result<Vec<u32>, Refusal> {
    if ranks.is_empty() {
        return Err(nothing("the ranks are not pinned: pin them with --cpus A,B"));
    }
    let others = cpus::without(&host.online(), ranks);
    match others.is_empty() {
        true => Err(nothing("the ranks use all CPUs, and none is left for other work")),
        false => Ok(others),
    }
}

fn nothing(reason: &str) -> Refusal {
    (Outcome::NotApplied, reason.to_owned())
}
