//! The settings of a host that can be changed and restored. The path of each is built here, never
//! read from a file.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::{cpus, shield};

/// One setting of the host.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Setting {
    /// The ASPM policy.
    Aspm,
    /// Whether the cpuset controller is enabled for the control groups below the root (cgroups
    /// version 2): `on` or `off`.
    CpusetController,
    /// Clock rates above the nominal one, as most cpufreq drivers switch them: 1 or 0.
    Boost,
    /// The governor of a CPU.
    Governor { cpu: u32 },
    /// The mode of an IPoIB interface and, after a space, its MTU, which the kernel changes with
    /// the mode.
    Ipoib { interface: Interface },
    /// The CPUs that an interrupt may go to.
    IrqAffinity { irq: u32 },
    /// The inverse of `Boost`, as `intel_pstate` has it.
    NoTurbo,
    /// The CPUs reserved for the ranks, or [`NONE`].
    Shield,
    /// The profile of tuned, [`NONE`], or [`AUTO`] if tuned chooses it.
    Tuned,
}

impl Setting {
    /// Reads the current value.
    pub(crate) fn read(self, host: &Host) -> io::Result<String> {
        match self {
            Self::Aspm => {
                let choices = host.line(ASPM)?;
                let chosen = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                Ok(chosen.map_or(choices.clone(), |(chosen, _)| chosen.to_owned()))
            }
            Self::CpusetController => {
                let controllers = host.line(&self.path())?;
                let is_on = controllers.split_whitespace().any(|name| name == "cpuset");
                Ok(if is_on { ON } else { OFF }.to_owned())
            }
            Self::Ipoib { interface } => {
                Ok(format!("{} {}", host.line(&self.path())?, host.line(&interface.mtu())?))
            }
            Self::Shield => Ok(shield::read(host)?.unwrap_or_else(|| NONE.to_owned())),
            Self::Tuned => {
                let mode = host.line("etc/tuned/profile_mode").unwrap_or_default();
                let profile = host.line("etc/tuned/active_profile").unwrap_or_default();
                Ok(match (profile.as_str(), mode.as_str()) {
                    ("", _) => NONE.to_owned(),
                    (_, AUTO) => AUTO.to_owned(),
                    _ => profile,
                })
            }
            _ => host.line(&self.path()),
        }
    }

    /// Writes a value.
    pub(crate) fn write(self, host: &Host, value: &str) -> io::Result<()> {
        if !self.takes(value) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{value:?} is not a valid value of {self}"),
            ));
        }
        match self {
            Self::CpusetController => {
                host.write(&self.path(), if value == ON { "+cpuset" } else { "-cpuset" })
            }
            Self::Ipoib { interface } => {
                let (mode, mtu) = halves(value);
                host.write(&self.path(), mode)?;
                // The kernel sets the MTU that belongs to the mode: restore another one if it was
                // set.
                mtu.map_or(Ok(()), |mtu| host.write(&interface.mtu(), mtu))
            }
            Self::Shield if value == NONE => shield::lower(host),
            Self::Shield => shield::raise(host, &cpus::parse(value)),
            // tuned-adm would start the daemon, and nothing would stop it afterwards.
            Self::Tuned if !host.is_running(TUNED) => Err(io::Error::other(NO_TUNED)),
            Self::Tuned => match value {
                NONE => host.run(&["tuned-adm", "off"]),
                AUTO => host.run(&["tuned-adm", "auto_profile"]),
                profile => host.run(&["tuned-adm", "profile", profile]),
            },
            _ => host.write(&self.path(), value),
        }
    }

    /// Whether two values mean the same to the kernel.
    pub(crate) fn is_same(self, one: &str, other: &str) -> bool {
        match self {
            Self::IrqAffinity { .. } => cpus::parse(one) == cpus::parse(other),
            Self::Ipoib { .. } => {
                let (mode, mtu) = halves(one);
                let (other, other_mtu) = halves(other);
                mode == other && mtu.zip(other_mtu).is_none_or(|(one, other)| one == other)
            }
            _ => one.trim() == other.trim(),
        }
    }

    /// Whether a value is valid for this setting. The journal is a file, and may contain anything.
    fn takes(self, value: &str) -> bool {
        let is_word = !value.is_empty()
            && !value.starts_with('-')
            && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_. ".contains(c));
        match self {
            Self::Aspm | Self::Governor { .. } | Self::Tuned => is_word,
            Self::CpusetController => [ON, OFF].contains(&value),
            Self::Ipoib { .. } => {
                let (mode, mtu) = halves(value);
                ["connected", "datagram"].contains(&mode) && mtu.is_none_or(|mtu| mtu.parse::<u16>().is_ok())
            }
            Self::Boost | Self::NoTurbo => ["0", "1"].contains(&value),
            Self::IrqAffinity { .. } => !cpus::parse(value).is_empty(),
            Self::Shield => value == NONE || !cpus::parse(value).is_empty(),
        }
    }

    /// The file whose permissions show whether the setting may be changed.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Aspm => ASPM.to_owned(),
            Self::Boost => "sys/devices/system/cpu/cpufreq/boost".to_owned(),
            Self::CpusetController => "sys/fs/cgroup/cgroup.subtree_control".to_owned(),
            Self::Governor { cpu } => format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
            Self::Ipoib { interface } => format!("sys/class/net/{interface}/mode"),
            Self::IrqAffinity { irq } => format!("proc/irq/{irq}/smp_affinity_list"),
            Self::NoTurbo => "sys/devices/system/cpu/intel_pstate/no_turbo".to_owned(),
            Self::Shield => "sys/fs/cgroup".to_owned(),
            Self::Tuned => "etc/tuned/active_profile".to_owned(),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aspm => f.write_str("the ASPM policy"),
            Self::Boost => f.write_str("cpufreq's boost"),
            Self::CpusetController => f.write_str("the cpuset controller of the control groups"),
            Self::Governor { cpu } => write!(f, "the governor of CPU {cpu}"),
            Self::Ipoib { interface } => write!(f, "the IPoIB mode of {interface}"),
            Self::IrqAffinity { irq } => write!(f, "the CPUs of interrupt {irq}"),
            Self::NoTurbo => f.write_str("intel_pstate's no_turbo"),
            Self::Shield => f.write_str("the set of shielded CPUs"),
            Self::Tuned => f.write_str("tuned's profile"),
        }
    }
}

/// Splits a value into the mode and the MTU behind it, if there is one.
fn halves(value: &str) -> (&str, Option<&str>) {
    value.trim().split_once(' ').map_or((value.trim(), None), |(mode, mtu)| (mode, Some(mtu)))
}

/// The name of a network interface. It contains no path.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Interface([u8; INTERFACE_BYTES_MAX]);

/// `IFNAMSIZ` without the terminating zero (netdevice(7)).
const INTERFACE_BYTES_MAX: usize = 15;

impl Interface {
    /// The file of the interface's MTU.
    fn mtu(self) -> String {
        format!("sys/class/net/{self}/mtu")
    }
}

impl TryFrom<String> for Interface {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        // As the kernel's dev_valid_name(), restricted to ASCII.
        let is_name = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:".contains(&byte));
        if name.is_empty() || name.len() > INTERFACE_BYTES_MAX || name.starts_with('.') || !is_name {
            return Err(format!("{name:?} is not a valid name of a network interface"));
        }
        let mut bytes = [0; INTERFACE_BYTES_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Self(bytes))
    }
}

impl From<Interface> for String {
    fn from(interface: Interface) -> Self {
        interface.to_string()
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(String::from_utf8_lossy(&self.0).trim_end_matches('\0'))
    }
}

const ASPM: &str = "sys/module/pcie_aspm/parameters/policy";
/// No profile, or no shield.
const NONE: &str = "none";
/// The name of tuned's daemon.
pub(crate) const TUNED: &str = "tuned";
pub(crate) const NO_TUNED: &str = "tuned is not running (systemctl start tuned); rdmascope does not start it";
/// The states of the cpuset controller.
pub(crate) const ON: &str = "on";
const OFF: &str = "off";
/// The value for a profile that tuned chose.
const AUTO: &str = "auto";
