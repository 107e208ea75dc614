//! The files that the kernel would show for the devices (Linux,
//! `Documentation/ABI/stable/sysfs-class-infiniband`). A file is made when it is read, from the
//! answers of the verbs.
//!
//! A software port has no counters and no PCI function, so the files for these do not exist.

use ::verbs::{Context, LinkLayer, Port, PortState, devices};
use rustix::fs::{Mode, OFlags};

use crate::PROVIDER;
use crate::sys::limits::{DEVICE_PREFIX as DEVICE, UVERBS};
use crate::sys::netlink::Interface;
use crate::sys::settings::{LinkLayer as Layer, link_layer, settings};
use crate::transport::local::address::{held, table_length};
use crate::transport::local::gids::gids;

/// A file or a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Node {
    /// The character device with this number.
    Device(u8),
    /// The character device of the connection manager.
    Manager,
    /// A file that can be read.
    File(String),
    /// A directory with these names.
    Directory(Vec<String>),
}

/// The directories in which the kernel has such files.
pub const PLACES: [&str; 4] =
    ["/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/misc/rdma_cm"];

/// Whether a path may be in the tree; a cheap check.
pub fn concerns(path: &[u8]) -> bool {
    PLACES.iter().any(|place| {
        path.strip_prefix(place.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

/// Returns an absolute path without empty, `.` and `..` parts; `None` for any other path.
pub fn plain(path: &[u8]) -> Option<String> {
    parts(path).map(|parts| format!("/{}", parts.join("/")))
}

/// Returns the file or directory at an absolute path.
pub fn node(path: &[u8]) -> Option<Node> {
    if !concerns(path) {
        return None;
    }
    let node = node_of(&parts(path)?)?;
    let must_be_directory = path.ends_with(b"/");
    (!must_be_directory || matches!(node, Node::Directory(_))).then_some(node)
}

fn node_of(parts: &[&str]) -> Option<Node> {
    match *parts {
        ["dev", "infiniband"] => {
            Some(Node::Directory(names(UVERBS).into_iter().chain([MANAGER.to_owned()]).collect()))
        }
        ["dev", "infiniband", MANAGER] => Some(Node::Manager),
        ["dev", "infiniband", name] => number(UVERBS, name).map(Node::Device),
        ["sys", "class", "infiniband"] => Some(Node::Directory(names(DEVICE))),
        ["sys", "class", "infiniband", name, ref rest @ ..] => of_device(number(DEVICE, name)?, rest),
        ["sys", "class", "infiniband_verbs"] => {
            Some(Node::Directory(names(UVERBS).into_iter().chain(["abi_version".to_owned()]).collect()))
        }
        ["sys", "class", "infiniband_verbs", "abi_version"] => Some(file(KERNEL_ABI)),
        ["sys", "class", "infiniband_verbs", name, ref rest @ ..] => of_uverbs(number(UVERBS, name)?, rest),
        ["sys", "class", "misc", MANAGER] => Some(directory(&["abi_version", "dev"])),
        ["sys", "class", "misc", MANAGER, "abi_version"] => Some(file(MANAGER_ABI)),
        ["sys", "class", "misc", MANAGER, "dev"] => {
            let (major, minor) = manager_number();
            Some(file(format!("{major}:{minor}")))
        }
        _ => None,
    }
}

fn parts(path: &[u8]) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for part in std::str::from_utf8(path).ok()?.strip_prefix('/')?.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts)
}

fn count() -> u8 {
    settings().map_or(0, |settings| settings.devices)
}

fn names(prefix: &str) -> Vec<String> {
    (0..count()).map(|number| format!("{prefix}{number}")).collect()
}

/// Returns the number of a device from one of its names.
fn number(prefix: &str, name: &str) -> Option<u8> {
    let number = name.strip_prefix(prefix)?;
    (0..count()).find(|device| number == device.to_string())
}

fn file(text: impl std::fmt::Display) -> Node {
    Node::File(format!("{text}\n"))
}

fn directory(names: &[&str]) -> Node {
    Node::Directory(names.iter().map(|name| (*name).to_owned()).collect())
}

/// `IB_USER_VERBS_ABI_VERSION` (include/uapi/rdma/ib_user_verbs.h).
const KERNEL_ABI: u32 = 6;
/// The major number of such devices in the kernel (`INFINIBAND_MAJOR`,
/// drivers/infiniband/core/uverbs_main.c).
pub const MAJOR: u32 = 231;
/// The minor number of the first device (`IB_UVERBS_BASE_MINOR`); the others follow.
pub const FIRST_MINOR: u32 = 192;

/// The connection manager's name in `/dev/infiniband` and `/sys/class/misc`.
const MANAGER: &str = "rdma_cm";
/// `RDMA_USER_CM_ABI_VERSION` (include/uapi/rdma/rdma_user_cm.h).
const MANAGER_ABI: u32 = 4;

/// Returns the number of the connection manager's device. It is the kernel's number if the kernel
/// has one, because librdmacm compares it with other answers of the kernel.
pub fn manager_number() -> (u32, u32) {
    /// `MISC_MAJOR`, and one of the dynamically assigned minor numbers
    /// (include/linux/miscdevice.h).
    const ANY: (u32, u32) = (10, 58);
    kernels_number().unwrap_or(ANY)
}

/// Asks the kernel by a system call, because the preloaded library may replace the C library's
/// functions.
fn kernels_number() -> Option<(u32, u32)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("/sys/class/misc/rdma_cm/dev", flags, Mode::empty()).ok()?;
    let mut text = [0; 32];
    let bytes = rustix::io::read(&file, &mut text).ok()?;
    let (major, minor) = std::str::from_utf8(&text[..bytes]).ok()?.trim_end().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// `/sys/class/infiniband_verbs/uverbs0`.
fn of_uverbs(device: u8, rest: &[&str]) -> Option<Node> {
    Some(match *rest {
        [] => directory(&["abi_version", "dev", "device", "ibdev"]),
        // The driver's own version.
        ["abi_version"] => file(1),
        ["dev"] => file(format!("{MAJOR}:{}", FIRST_MINOR + u32::from(device))),
        ["ibdev"] => file(format!("{DEVICE}{device}")),
        ["device", ref rest @ ..] => return of_parent(device, rest),
        _ => return None,
    })
}

/// `/sys/class/infiniband/softdev0`.
fn of_device(device: u8, rest: &[&str]) -> Option<Node> {
    match *rest {
        [] => Some(directory(&[
            "device",
            "fw_ver",
            "node_desc",
            "node_guid",
            "node_type",
            "ports",
            "sys_image_guid",
        ])),
        ["device", ref rest @ ..] => of_parent(device, rest),
        ["ports"] => Some(directory(&["1"])),
        ["ports", "1", ref rest @ ..] => of_port(device, rest),
        ["node_type"] => Some(file("1: CA")),
        ["node_desc"] => Some(file(format!("{DEVICE}{device}"))),
        ["fw_ver"] => Some(file(open(device)?.limits().ok()?.firmware)),
        ["node_guid"] => Some(file(guid(open(device)?.limits().ok()?.node_guid))),
        // All devices belong to one system.
        ["sys_image_guid"] => Some(file(guid(open(0)?.limits().ok()?.node_guid))),
        _ => None,
    }
}

/// `/sys/class/infiniband/softdev0/device`: the PCI function of a hardware device.
fn of_parent(device: u8, rest: &[&str]) -> Option<Node> {
    let online = || std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    match *rest {
        [] => {
            let net = (!interfaces(device).is_empty()).then_some("net");
            let names = ["infiniband", "infiniband_verbs", "local_cpulist", "local_cpus"];
            let names: Vec<_> = names.into_iter().chain(net).chain(["numa_node"]).collect();
            Some(directory(&names))
        }
        ["net", ref rest @ ..] => of_net(&interfaces(device), rest),
        ["infiniband"] => Some(Node::Directory(vec![format!("{DEVICE}{device}")])),
        ["infiniband", name, ref rest @ ..] if number(DEVICE, name) == Some(device) => {
            of_device(device, rest)
        }
        ["infiniband_verbs"] => Some(Node::Directory(vec![format!("{UVERBS}{device}")])),
        ["infiniband_verbs", name, ref rest @ ..] if number(UVERBS, name) == Some(device) => {
            of_uverbs(device, rest)
        }
        // No CPU is nearer to the device than another.
        ["numa_node"] => Some(file(-1)),
        ["local_cpulist"] => online().map(|list| file(list.trim_end())),
        ["local_cpus"] => online().and_then(|list| mask(list.trim_end())).map(file),
        _ => None,
    }
}

/// Returns the network interfaces of a device.
fn interfaces(device: u8) -> Vec<Interface> {
    gids().below(device, count()).into_iter().cloned().collect()
}

/// `/sys/class/infiniband/softdev0/device/net`: for each interface, the files that name it and its
/// port. The kernel has its other files in `/sys/class/net`.
fn of_net(interfaces: &[Interface], rest: &[&str]) -> Option<Node> {
    let named = |name: &str| interfaces.iter().find(|interface| interface.name == name);
    match *rest {
        [] if interfaces.is_empty() => None,
        [] => Some(Node::Directory(interfaces.iter().map(|interface| interface.name.clone()).collect())),
        [name] => named(name).map(|_| directory(&["dev_port", "ifindex", "mtu"])),
        [name, "ifindex"] => named(name).map(|interface| file(interface.index)),
        [name, "mtu"] => named(name).map(|interface| file(interface.mtu_bytes)),
        // This file counts the ports of a function from 0.
        [name, "dev_port"] => named(name).map(|_| file(0)),
        _ => None,
    }
}

/// Returns a file of an entry of a device's GID table. An empty entry has a GID of zeroes, as in
/// the kernel. It has neither of the other files: the kernel's files cannot be read there.
fn of_gid(device: u8, directory: &str, number: &str) -> Option<Node> {
    let index = (0..table_length()).find(|index| number == index.to_string())?;
    let gids = gids();
    let held = held(&gids, device, index);
    match directory {
        "gids" => Some(file(groups(&held.map_or([0; 16], |held| held.gid.raw)))),
        // As in the kernel, one word stands for InfiniBand and for RoCE v1.
        "types" => held.map(|_| file(if link_layer() == Layer::Ethernet { "RoCE v2" } else { "IB/RoCE v1" })),
        _ => gids.interface(held?.interface).map(|interface| file(&interface.name)),
    }
}

/// Returns the numbers of the entries that have a file in one directory of the GID table.
fn numbers(device: u8, directory: &str) -> Node {
    let gids = gids();
    let has_file = |index: &u8| match (directory, held(&gids, device, *index)) {
        ("gids", _) => true,
        ("types", held) => held.is_some(),
        (_, held) => held.is_some_and(|held| gids.interface(held.interface).is_some()),
    };
    Node::Directory((0..table_length()).filter(has_file).map(|index| index.to_string()).collect())
}

/// `/sys/class/infiniband/softdev0/ports/1`.
fn of_port(device: u8, rest: &[&str]) -> Option<Node> {
    match *rest {
        [] => Some(directory(&[
            "gid_attrs",
            "gids",
            "lid",
            "lid_mask_count",
            "link_layer",
            "phys_state",
            "pkeys",
            "rate",
            "sm_lid",
            "state",
        ])),
        ["gid_attrs"] => Some(directory(&["ndevs", "types"])),
        [name @ "gids"] | ["gid_attrs", name @ ("types" | "ndevs")] => Some(numbers(device, name)),
        [name @ "gids", number] | ["gid_attrs", name @ ("types" | "ndevs"), number] => {
            of_gid(device, name, number)
        }
        ["pkeys"] => Some(directory(&["0"])),
        ["pkeys", "0"] => open(device)?.pkey(1, 0).ok().map(|pkey| file(format!("{pkey:#06x}"))),
        [name] => said_by(&open(device)?.port(1).ok()?, name),
        _ => None,
    }
}

/// A file of a port (drivers/infiniband/core/sysfs.c).
fn said_by(port: &Port, name: &str) -> Option<Node> {
    Some(match name {
        "state" => file(match port.state {
            PortState::Down => "1: DOWN",
            PortState::Initialize => "2: INIT",
            PortState::Armed => "3: ARMED",
            PortState::Active => "4: ACTIVE",
            PortState::Other(_) => return None,
        }),
        "phys_state" => file(match port.physical_state.0 {
            1 => "1: Sleep",
            2 => "2: Polling",
            3 => "3: Disabled",
            4 => "4: PortConfigurationTraining",
            5 => "5: LinkUp",
            6 => "6: LinkErrorRecovery",
            7 => "7: Phy Test",
            _ => return None,
        }),
        "rate" => {
            let (rate, lanes, name) =
                (port.speed.gbit_per_s()?, port.speed.lanes()?, port.speed.rate_name()?);
            file(format!("{rate} Gb/sec ({lanes}X {name})"))
        }
        "lid" => file(format!("{:#x}", port.lid)),
        "sm_lid" => file(format!("{:#x}", port.sm_lid)),
        "lid_mask_count" => file(port.lmc),
        "link_layer" => file(match port.link_layer {
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::InfiniBand => "InfiniBand",
            LinkLayer::Other(_) => "Unknown",
        }),
        _ => return None,
    })
}

fn open(device: u8) -> Option<Context> {
    let name = format!("{DEVICE}{device}");
    devices(&PROVIDER).ok()?.into_iter().find(|device| device.name() == name)?.open().ok()
}

/// `0011:2233:4455:6677`.
fn guid(guid: u64) -> String {
    groups(&guid.to_be_bytes())
}

/// Formats all digits in groups of four.
fn groups(bytes: &[u8]) -> String {
    let group = |pair: &[u8]| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(2).map(group).collect::<Vec<_>>().join(":")
}

/// Formats a list of CPUs such as `0-3,8` as the kernel writes CPU sets: words of 32 bits, the
/// highest first.
fn mask(list: &str) -> Option<String> {
    let mut words = vec![0_u32];
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        for cpu in first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(MOST_CPUS) {
            let word = cpu / 32;
            words.resize(words.len().max(word + 1), 0);
            words[word] |= 1 << (cpu % 32);
        }
    }
    let highest = words.pop()?;
    let rest = words.iter().rev().map(|word| format!(",{word:08x}"));
    Some(std::iter::once(format!("{highest:x}")).chain(rest).collect())
}

/// More CPUs than any kernel supports.
const MOST_CPUS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str) -> String {
        match node(path.as_bytes()) {
            Some(Node::File(text)) => text,
            other => panic!("{path}: {other:?}"),
        }
    }

    /// Checks that every path that a directory names exists.
    fn walk(path: &str, files: &mut Vec<String>) {
        match node(path.as_bytes()).unwrap_or_else(|| panic!("{path} is not there")) {
            Node::Directory(names) => {
                let is_loop = path.contains("/device/infiniband");
                names.iter().filter(|_| !is_loop).for_each(|name| walk(&format!("{path}/{name}"), files));
            }
            Node::File(text) => {
                assert!(text.ends_with('\n') && text.trim_end().len() < 4096, "{path}: {text:?}");
                files.push(path.to_owned());
            }
            Node::Device(_) | Node::Manager => files.push(path.to_owned()),
        }
    }

    #[test]
    fn whatever_a_directory_names_is_there() {
        let mut files = Vec::new();
        PLACES.iter().for_each(|place| walk(place, &mut files));
        assert!(files.len() > 20, "{files:?}");
        assert!(files.contains(&"/dev/infiniband/uverbs0".to_owned()));
    }

    #[test]
    fn files_say_what_the_verbs_say() {
        let context = open(0).unwrap();
        let port = context.port(1).unwrap();
        let at = |name: &str| text(&format!("/sys/class/infiniband/softdev0/{name}"));
        assert_eq!(at("node_type"), "1: CA\n");
        assert_eq!(
            at("node_guid").replace(':', "").trim_end(),
            format!("{:016x}", context.limits().unwrap().node_guid)
        );
        assert_eq!(at("ports/1/state"), "4: ACTIVE\n");
        assert_eq!(at("ports/1/phys_state"), "5: LinkUp\n");
        assert_eq!(at("ports/1/link_layer"), "Ethernet\n");
        assert_eq!(at("ports/1/lid"), "0x0\n");
        assert_eq!(at("ports/1/rate"), format!("2.5 Gb/sec ({})\n", port.speed));
        assert_eq!(at("ports/1/pkeys/0"), "0xffff\n");
        let gid = context.gids(1).unwrap()[0].gid.to_string();
        let said = at("ports/1/gids/0");
        assert_eq!(
            said.trim_end().parse::<std::net::Ipv6Addr>().unwrap(),
            gid.parse::<std::net::Ipv6Addr>().unwrap()
        );
        assert_eq!(said.len(), 40);
        assert_eq!(at("ports/1/gid_attrs/types/0"), "RoCE v2\n");
        assert_eq!(at("ports/1/gids/63").matches('0').count(), 32, "nothing is there");
        assert_eq!(text("/sys/class/infiniband_verbs/uverbs0/ibdev"), "softdev0\n");
        assert_eq!(text("/sys/class/infiniband_verbs/uverbs0/dev"), "231:192\n");
    }

    /// Compares entries of the table with their files, and the interfaces of both.
    #[test]
    fn files_of_addresses_name_their_interfaces() {
        let Some(Node::Directory(names)) = node(b"/sys/class/infiniband/softdev0/device/net") else {
            return eprintln!("SKIPPED: no network interface is up");
        };
        let at = |path: &str| text(&format!("/sys/class/infiniband/softdev0/{path}"));
        let context = open(0).unwrap();
        for entry in context.gids(1).unwrap() {
            let index = entry.index;
            let said = at(&format!("ports/1/gids/{index}")).trim_end().replace(':', "");
            assert_eq!(said, entry.gid.0.map(|byte| format!("{byte:02x}")).concat());
            let name = at(&format!("ports/1/gid_attrs/ndevs/{index}"));
            if index == 0 {
                assert_eq!(name.trim_end(), names[0]);
            }
        }
        let first = &names[0];
        let index = std::fs::read_to_string(format!("/sys/class/net/{first}/ifindex"));
        if let Ok(index) = index {
            assert_eq!(at(&format!("device/net/{first}/ifindex")), index);
        }
    }

    #[test]
    fn other_paths_are_not_of_the_tree() {
        for path in [
            "/dev/infiniband/uverbs1",
            "/dev/infiniband/uverbs",
            "/dev/infiniband/uverbs00",
            "/dev/infiniband/uverbs0/",
            "/dev/infiniband/softdev0",
            "/dev/infinibands",
            "/sys/class/infiniband/softdev1",
            "/sys/class/infiniband/softdev0/ports/2",
            "/sys/class/infiniband/softdev0/ports/1/gids/64",
            "/sys/class/infiniband/softdev0/ports/1/gids/01",
            "/sys/class/infiniband/softdev0/ports/1/gid_attrs/types/63",
            "/sys/class/infiniband/softdev0/ports/1/gid_attrs/ndevs/63",
            "/sys/class/infiniband/softdev0/device/net/none0",
            "/sys/class/infiniband_mad",
            "sys/class/infiniband",
            "",
            "/",
        ] {
            assert_eq!(node(path.as_bytes()), None, "{path}");
        }
        assert!(node(b"/sys/class/infiniband//softdev0/./ports/1/../1/state").is_some());
        assert!(node(b"/sys/class/infiniband/").is_some());
        assert_eq!(plain(b"/dev//infiniband/./x/../uverbs0/").as_deref(), Some("/dev/infiniband/uverbs0"));
    }

    #[test]
    fn sets_of_cpus_are_written_as_the_kernel_does() {
        assert_eq!(mask("0-1").as_deref(), Some("3"));
        assert_eq!(mask("0,2-3").as_deref(), Some("d"));
        assert_eq!(mask("0-31").as_deref(), Some("ffffffff"));
        assert_eq!(mask("0-33").as_deref(), Some("3,ffffffff"));
        assert_eq!(mask("").as_deref(), None);
    }
}
