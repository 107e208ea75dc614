//! Made-up hosts: every finding from a file tree or a device that provokes it, and from one that
//! does not.

use std::fs;
use std::os::unix::fs::symlink;

use bench::process::launcher::installed::{MpiLauncher, MpiLibrary};
use tempfile::TempDir;
use verbs::DeviceKind;
use verbs::DeviceKind::{Hardware, KernelSoftware, UserSoftware};

use super::checks::findings;
use super::facts::{ClockFacts, CoreToCore, Facts, Firewall};
use super::finding::{Finding, Severity};
use super::print;
use super::trial::Refusal;
use crate::devices::Device;
use crate::devices::tests::{device, gid, survey};

/// A healthy host: an adapter, and two nodes of four CPUs, with two threads for each core.
const HEALTHY: &[(&str, &str)] = &[
    (
        "proc/self/status",
        "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\n",
    ),
    (
        "proc/self/limits",
        "Max locked memory         unlimited            unlimited            bytes     \n\
         Max realtime priority     99                   99                             \n",
    ),
    ("proc/self/uid_map", "         0          0 4294967295\n"),
    ("proc/sys/kernel/hostname", "node7\n"),
    ("proc/1/comm", "systemd\n"),
    ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,4\n"),
    ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,5\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3,6-7\n"),
    ("sys/class/infiniband/mlx5_0/device/current_link_speed", "16.0 GT/s PCIe\n"),
    ("sys/class/infiniband/mlx5_0/device/current_link_width", "16\n"),
    ("sys/class/infiniband/mlx5_0/device/max_link_speed", "16.0 GT/s PCIe\n"),
    ("sys/class/infiniband/mlx5_0/device/max_link_width", "16\n"),
    ("sys/class/infiniband_verbs/abi_version", "6\n"),
    ("dev/infiniband/uverbs0", ""),
    ("dev/infiniband/rdma_cm", ""),
    ("usr/lib64/librdmacm.so.1", ""),
];

/// Makes the files of a host.
fn tree(files: &[(&str, &str)], more: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files.iter().chain(more) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

/// Returns a healthy adapter.
fn adapter() -> Device {
    let mut adapter = device("mlx5_0", Hardware);
    adapter.ports[0].active_mtu_bytes = 4096;
    adapter.ports[0].interface_mtu_bytes = Some(4200);
    adapter
}

/// Returns a software device, of the kernel or of user space.
fn software(name: &str, kind: DeviceKind) -> Device {
    let mut software = device(name, kind);
    (software.pci_address, software.numa_node) = (None, None);
    if kind == UserSoftware {
        software.ports[0].protocol = None;
    }
    software
}

/// Returns the healthy host with more files, which replace its files of the same name.
fn host(more: &[(&str, &str)]) -> Facts {
    with(more, vec![adapter()])
}

fn with(more: &[(&str, &str)], devices: Vec<Device>) -> Facts {
    Facts::read(tree(HEALTHY, more).path(), survey(devices), None)
}

/// Returns the one finding of a check.
#[track_caller]
fn only(facts: &Facts, check: &str) -> Finding {
    let mut found: Vec<_> = findings(facts).into_iter().filter(|finding| finding.check == check).collect();
    assert_eq!(found.len(), 1, "{check}: {found:#?}");
    found.pop().unwrap()
}

/// Asserts the severity, the words and the remedy of the one finding of a check.
#[track_caller]
fn expect(facts: &Facts, check: &str, severity: Severity, words: &str, remedy: Option<&str>) {
    let finding = only(facts, check);
    assert_eq!(finding.severity, severity, "{finding:#?}");
    assert!(finding.found.contains(words), "no {words:?} in {finding:#?}");
    assert_eq!(finding.remedy.as_deref(), remedy, "{finding:#?}");
    assert_eq!(finding.why.is_empty(), severity == Severity::Good, "{finding:#?}");
}

#[test]
fn all_is_well_with_a_healthy_host() {
    let facts = host(&[]);
    let found = findings(&facts);
    assert!(found.iter().all(|finding| finding.severity == Severity::Good), "{found:#?}");
    let checks: Vec<_> = found.iter().map(|finding| finding.check).collect();
    let expected = [
        "device",
        "libraries",
        "modules",
        "device nodes",
        "port state",
        "GID",
        "MTU",
        "PCIe link",
        "registration",
        "locked memory",
        "CPUs",
        "cores",
        "NUMA",
        "governor",
        "idle states",
        "interrupts",
        "clock",
    ];
    let techniques = ["environment"; 10];
    assert_eq!(checks, [&expected[..], &techniques].concat());
    let text = print::text(&facts, &found);
    assert!(text.starts_with("Measuring on mlx5_0 of node7:\n\ngood     device: without -d"), "{text}");
    assert!(text.ends_with("\n0 problems, 0 warnings, 0 notes: measuring works.\n"), "{text}");
}

#[test]
fn a_host_that_shows_nothing_has_no_device() {
    let facts = Facts::read(tree(&[], &[]).path(), survey(Vec::new()), None);
    let found = findings(&facts);
    assert_eq!((found[0].check, found[0].severity), ("device", Severity::Problem));
    let json = print::json(&facts, &found);
    assert_eq!((&json["worst"], &json["device"]), (&"problem".into(), &serde_json::Value::Null));
}

#[test]
fn halves_of_an_mpi_are_told_with_what_is_missing() {
    let library = |abi: &str, version: Option<&str>, launchers: &[&str]| MpiLibrary {
        path: "/usr/lib/libmpi.so.12".into(),
        abi: abi.to_owned(),
        version: version.map(str::to_owned),
        launchers: launchers.iter().map(|name| (*name).to_owned()).collect(),
    };
    let launcher = |name: &str, kind: &str| MpiLauncher {
        name: name.to_owned(),
        aliases: Vec::new(),
        path: "/usr/bin/mpirun".into(),
        kind: kind.to_owned(),
        version: None,
        libraries: Vec::new(),
    };
    let mut facts = host(&[]);
    assert!(findings(&facts).iter().all(|finding| finding.check != "MPI"), "no MPI is no fault");
    facts.survey.mpi.libraries = vec![library("MPICH", Some("MPICH 4.0.2"), &["mpirun.mpich", "srun"])];
    expect(&facts, "MPI", Severity::Good, "MPICH 4.0.2 is started by mpirun.mpich, srun", None);
    for (abi, remedy) in
        [("Open MPI", "sudo apt-get install openmpi-bin"), ("MPI 5 standard", "sudo apt-get install mpich")]
    {
        facts.survey.mpi.libraries = vec![library(abi, None, &[])];
        let words = format!("MPI with the {abi} ABI has no launcher");
        expect(&facts, "MPI", Severity::Note, &words, Some(remedy));
    }
    // A library below its own prefix: its launcher is there, or no package has it.
    let prefix = tempfile::tempdir().unwrap();
    let own = MpiLibrary { path: prefix.path().join("lib/libmpi.so.40"), ..library("Open MPI", None, &[]) };
    facts.survey.mpi.libraries = vec![own];
    expect(&facts, "MPI", Severity::Note, "has no launcher", None);
    fs::create_dir(prefix.path().join("bin")).unwrap();
    fs::write(prefix.path().join("bin/mpirun"), "").unwrap();
    let remedy = format!("export PATH={}/bin:$PATH", prefix.path().display());
    expect(&facts, "MPI", Severity::Note, "has no launcher", Some(&remedy));
    facts.survey.mpi.libraries.clear();
    for (kind, remedy) in [
        ("Open MPI", Some("sudo apt-get install libopenmpi3")),
        ("MPICH", Some("sudo apt-get install libmpich12")),
        ("an unknown launcher", None),
    ] {
        facts.survey.mpi.launchers = vec![launcher("mpirun", kind)];
        let words = format!("mpirun ({kind}) has no library");
        expect(&facts, "MPI", Severity::Note, &words, remedy);
    }
}

#[test]
fn what_the_device_refuses_is_a_problem() {
    let limits = ("proc/self/limits", "Max locked memory         65536   unlimited   bytes\n");
    let mut facts = host(&[limits]);
    let refusal =
        |errno: &str, is_memory| Some(Refusal { error: format!("reg_mr failed: {errno}"), is_memory });
    facts.refusal = refusal("Cannot allocate memory", true);
    let remedy = Some("ulimit -l unlimited");
    expect(&facts, "registration", Severity::Problem, "Cannot allocate memory", remedy);
    facts.refusal = refusal("Operation not permitted", false);
    expect(&facts, "registration", Severity::Problem, "Operation not permitted", None);
}

#[test]
fn what_keeps_programs_from_the_memory_of_each_other_is_told() {
    let scope = ("proc/sys/kernel/yama/ptrace_scope", "2\n");
    let remedy = "sudo sysctl -w kernel.yama.ptrace_scope=1";
    expect(&host(&[scope]), "other processes", Severity::Note, "is 2", Some(remedy));
    expect(&host(&[(scope.0, "3\n")]), "other processes", Severity::Note, "is 3", None);
    // Processes allow it where it is 1. Root may always.
    let may = ("proc/self/status", "CapEff:\t0000000000080000\nCpus_allowed_list:\t0-7\n");
    for files in [&[][..], &[(scope.0, "1\n")], &[scope, may]] {
        let found = findings(&host(files));
        assert!(found.iter().all(|finding| finding.check != "other processes"), "{files:?}: {found:?}");
    }
}

#[test]
fn a_small_limit_of_locked_memory_is_told() {
    let limits = |soft: &str, hard: &str| format!("Max locked memory         {soft}   {hard}   bytes\n");
    let for_good =
        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/90-rdma.conf   # then log in again";
    let now = "ulimit -l unlimited";
    for (soft, hard, kind, severity, remedy, why) in [
        ("65536", "65536", Hardware, Severity::Warning, Some(for_good), "2 MiB"),
        ("65536", "unlimited", KernelSoftware, Severity::Warning, Some(now), "2 MiB"),
        ("65536", "65536", UserSoftware, Severity::Warning, Some(for_good), "page faults"),
        ("8388608", "8388608", Hardware, Severity::Warning, Some(for_good), "64 MiB"),
        ("8388608", "unlimited", UserSoftware, Severity::Note, Some(now), "32 MiB"),
        ("67108864", "67108864", Hardware, Severity::Good, None, ""),
        ("unlimited", "unlimited", Hardware, Severity::Good, None, ""),
    ] {
        let facts = with(&[("proc/self/limits", &limits(soft, hard))], vec![software("any0", kind)]);
        let words = if soft == "unlimited" { "is unlimited" } else { " KiB" };
        expect(&facts, "locked memory", severity, words, remedy);
        assert!(only(&facts, "locked memory").why.contains(why), "{soft} {kind}");
    }
    // The limit does not hold for root, but it does for the root of a user namespace.
    let capable = "CapEff:\t0000000000004000\nCpus_allowed_list:\t0-7\n";
    let files = [("proc/self/limits", limits("0", "0")), ("proc/self/status", capable.to_owned())];
    let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    expect(&host(&files), "locked memory", Severity::Good, "CAP_IPC_LOCK", None);
    files.push(("proc/self/uid_map", "0 100000 65536\n"));
    assert_eq!(only(&host(&files), "locked memory").severity, Severity::Warning);
}

#[test]
fn missing_libraries_are_named_with_their_packages() {
    let mut facts = host(&[]);
    facts.has_librdmacm = false;
    let remedy = "sudo apt-get install librdmacm1";
    expect(&facts, "libraries", Severity::Note, "librdmacm is missing", Some(remedy));
    facts.no_libibverbs = Some("libibverbs.so.1 cannot be used (No such file)".to_owned());
    let remedy = "sudo apt-get install libibverbs1 ibverbs-providers";
    expect(&facts, "libraries", Severity::Warning, "libibverbs.so.1 cannot be used", Some(remedy));
}

#[test]
fn a_device_of_the_kernel_that_libibverbs_does_not_list_is_told() {
    let facts = host(&[("sys/class/infiniband/erdma_0/node_type", "1: CA\n")]);
    let found = findings(&facts);
    let finding = found.iter().find(|finding| finding.found.contains("erdma_0")).expect("it is told");
    assert_eq!((finding.check, finding.severity), ("libraries", Severity::Warning));
    assert_eq!(finding.remedy.as_deref(), Some("sudo apt-get install ibverbs-providers rdma-core"));
}

#[test]
fn modules_that_are_not_loaded_are_named() {
    let mut facts = host(&[]);
    facts.rdma_cm = None;
    expect(&facts, "modules", Severity::Note, "rdma_ucm is not loaded", Some("sudo modprobe rdma_ucm"));
    facts.has_uverbs = false;
    expect(&facts, "modules", Severity::Warning, "ib_uverbs is not loaded", Some("sudo modprobe ib_uverbs"));
    facts.kernel_devices.clear();
    assert_eq!(only(&facts, "modules").severity, Severity::Note, "nothing waits for it");
}

#[test]
fn adapters_without_their_rdma_driver_are_told_once() {
    let root = tree(HEALTHY, &[]);
    let adapter_of = |interface: &str, address: &str, driver: &str| {
        let device = root.path().join("sys/devices").join(address);
        fs::create_dir_all(&device).unwrap();
        symlink(format!("/sys/bus/pci/drivers/{driver}"), device.join("driver")).unwrap();
        let class = root.path().join("sys/class/net").join(interface);
        fs::create_dir_all(&class).unwrap();
        symlink(&device, class.join("device")).unwrap();
        device
    };
    adapter_of("eth0", "0000:00:03.0", "virtio_net");
    let working = adapter_of("ens1f0", "0000:3b:00.0", "ice");
    fs::create_dir(working.join("infiniband")).unwrap();
    adapter_of("ens2f0", "0000:5e:00.0", "mlx5_core");
    adapter_of("ens2f1", "0000:5e:00.1", "mlx5_core");
    let facts = Facts::read(root.path(), survey(vec![adapter()]), None);
    let words = "ens2f0 is driven by mlx5_core";
    expect(&facts, "adapters", Severity::Warning, words, Some("sudo modprobe mlx5_ib"));
}

#[test]
fn device_nodes_that_are_missing_or_closed_are_problems_of_kernel_devices() {
    let mut facts = host(&[]);
    facts.uverbs[0].is_usable = false;
    let remedy = "sudo chmod 666 /dev/infiniband/uverbs0";
    expect(&facts, "device nodes", Severity::Problem, "may not read and write", Some(remedy));
    facts.uverbs.clear();
    let finding = only(&facts, "device nodes");
    assert_eq!(finding.severity, Severity::Problem);
    assert!(finding.remedy.unwrap().contains("--device /dev/infiniband"));
    // softdev needs no device node.
    facts.survey = survey(vec![software("softdev0", UserSoftware)]);
    assert_eq!(only(&facts, "device nodes").severity, Severity::Warning);
}

/// Returns the healthy host with a change of the adapter's port.
fn port_with(change: impl FnOnce(&mut crate::devices::Port)) -> Facts {
    let mut adapter = adapter();
    change(&mut adapter.ports[0]);
    with(&[], vec![adapter])
}

#[test]
fn a_port_that_is_down_is_brought_up_as_its_link_layer_wants() {
    let down = |link_layer: &str, state: &str, interface: Option<&str>| {
        port_with(|port| {
            (port.link_layer, port.state) = (link_layer.to_owned(), state.to_owned());
            (port.protocol, port.interface) = (Some(link_layer.to_owned()), interface.map(str::to_owned));
        })
    };
    for (link_layer, state, interface, remedy) in [
        ("Ethernet", "down", Some("ens1f0"), "sudo ip link set ens1f0 up"),
        ("Ethernet", "down", None, "rdma link   # shows the interface; then `ip link set NAME up`"),
        (
            "InfiniBand",
            "initialize",
            Some("ib0"),
            "sudo systemctl start opensm   # on one host of the fabric, unless a switch does it",
        ),
        ("InfiniBand", "down", None, "ibstat mlx5_0 1   # check the cable and the port of the switch"),
    ] {
        let facts = down(link_layer, state, interface);
        let words = format!("port 1 of mlx5_0 is {state}");
        expect(&facts, "port state", Severity::Problem, &words, Some(remedy));
    }
}

#[test]
fn a_port_that_is_not_needed_may_be_down() {
    let mut two_ports = adapter();
    let mut second = two_ports.ports[0].clone();
    (second.port, second.state) = (2, "down".to_owned());
    two_ports.ports.push(second);
    let mut other = device("mlx5_1", Hardware);
    other.ports[0].state = "down".to_owned();
    other.unusable = Some("port 1 of mlx5_1 is down".to_owned());
    let mut facts = with(&[], vec![two_ports, other]);
    let severities = |facts: &Facts| -> Vec<_> {
        let found = findings(facts).into_iter().filter(|finding| finding.check == "port state");
        found.map(|finding| (finding.found[..16].to_owned(), finding.severity)).collect()
    };
    let expected = [
        ("port 1 of mlx5_1", Severity::Warning),
        ("port 2 of mlx5_0", Severity::Note),
        ("port 1 of mlx5_0", Severity::Good),
    ];
    assert_eq!(severities(&facts), expected.map(|(text, severity)| (text.to_owned(), severity)));
    facts.named = Some("mlx5_1".to_owned());
    assert_eq!(severities(&facts), [("port 1 of mlx5_1".to_owned(), Severity::Problem)]);
}

#[test]
fn a_device_that_cannot_be_opened_is_a_problem_if_it_is_wanted() {
    let mut closed = device("mlx5_1", Hardware);
    closed.ports.clear();
    closed.error = Some("open_device on mlx5_1 failed".to_owned());
    closed.unusable = closed.error.clone();
    let mut facts = with(&[], vec![adapter(), closed]);
    let severity = |facts: &Facts| {
        let mut found = findings(facts).into_iter();
        found.find(|finding| finding.found.contains("open_device on mlx5_1")).unwrap().severity
    };
    assert_eq!(severity(&facts), Severity::Warning);
    facts.named = Some("mlx5_1".to_owned());
    assert_eq!(severity(&facts), Severity::Problem);
    // A problem that no check explains is reported, too.
    let mut strange = adapter();
    strange.unusable = Some("the moon is full".to_owned());
    let found = findings(&with(&[], vec![strange]));
    assert_eq!((found[0].severity, found[0].found.as_str()), (Severity::Problem, "the moon is full"));
}

#[test]
fn gids_that_reach_nobody_or_only_neighbours_are_told() {
    let remedy = "sudo ip addr add 192.0.2.1/24 dev ens1f0np0   # an address of your network";
    let facts = port_with(|port| {
        port.gids.clear();
        port.default_gid_index = None;
    });
    expect(&facts, "GID", Severity::Problem, "has no GID", Some(remedy));
    let facts = port_with(|port| {
        port.gids.truncate(2);
        port.gids[1].reach = "link-local".to_owned();
        port.default_gid_index = Some(1);
    });
    expect(&facts, "GID", Severity::Warning, "link-local", Some(remedy));
    let facts = port_with(|port| {
        port.gids = vec![gid(0, "::ffff:192.0.2.7", "RoCE v1")];
        port.default_gid_index = Some(0);
    });
    expect(&facts, "GID", Severity::Warning, "RoCE v1", None);
    // iWARP and software in user space need no GID.
    for protocol in [Some("iWARP".to_owned()), None] {
        let facts = port_with(|port| {
            port.gids.clear();
            (port.default_gid_index, port.protocol) = (None, protocol);
        });
        assert!(!findings(&facts).iter().any(|finding| finding.check == "GID"));
    }
}

#[test]
fn the_mtu_of_the_interface_bounds_the_path_mtu() {
    let with_mtu = |active: u32, interface: u32| {
        port_with(|port| {
            port.active_mtu_bytes = active;
            port.interface_mtu_bytes = Some(interface);
        })
    };
    let words = "ens1f0np0 has an MTU of 1500, port 1 of mlx5_0 a path MTU of 1024 B of at most 4096";
    let remedy = Some("sudo ip link set ens1f0np0 mtu 4200");
    expect(&with_mtu(1024, 1500), "MTU", Severity::Warning, words, remedy);
    expect(&with_mtu(4096, 9000), "MTU", Severity::Good, "4096 B of at most 4096", None);
    let remedy = Some("sudo ip link set ens1f0np0 mtu 4200");
    expect(&with_mtu(4096, 1500), "MTU", Severity::Warning, "a path MTU of 4096", remedy);
    let facts = port_with(|port| {
        port.active_mtu_bytes = 2048;
        (port.link_layer, port.protocol) = ("InfiniBand".to_owned(), Some("InfiniBand".to_owned()));
    });
    expect(&facts, "MTU", Severity::Note, "a path MTU of 2048 B of at most 4096", None);
}

#[test]
fn a_slot_that_is_slower_than_the_adapter_is_told() {
    let facts = host(&[("sys/class/infiniband/mlx5_0/device/current_link_width", "8\n")]);
    let remedy = "sudo lspci -vvs 0000:3b:00.0 | grep -e LnkCap -e LnkSta   # another slot?";
    expect(&facts, "PCIe link", Severity::Warning, "16.0 GT/s PCIe x8", Some(remedy));
}

#[test]
fn rules_that_drop_roce_are_found() {
    let filtered = |rules: &str| {
        let mut facts = with(&[], vec![software("rxe0", KernelSoftware)]);
        facts.firewall = Firewall::Rules(rules.to_owned());
        facts
    };
    let nft = |policy: &str, rule: &str| {
        format!(
            "table inet filter {{\n\tchain input {{\n\t\ttype filter hook input priority filter; policy {policy};\n\
             \t\t{rule}\n\t}}\n}}\n"
        )
    };
    let insert = "sudo nft insert rule inet filter input udp dport 4791 accept   # name your table and chain";
    let accept = "sudo iptables -I INPUT -p udp --dport 4791 -j ACCEPT";
    for (rules, severity, words, remedy) in [
        (String::new(), Severity::Good, "no rule drops", None),
        (nft("accept", "tcp dport 22 drop"), Severity::Good, "no rule drops", None),
        (nft("accept", "udp dport 4791 drop"), Severity::Warning, "udp dport 4791 drop", None),
        (nft("accept", "udp dport { 53, 4791 } counter reject"), Severity::Warning, "4791 }", None),
        (nft("drop", "tcp dport 22 accept"), Severity::Warning, "dropped by default", Some(insert)),
        (nft("drop", "udp dport 4791 accept"), Severity::Good, "no rule drops", None),
        (
            ":INPUT ACCEPT [0:0]\n-A INPUT -p udp -m udp --dport 4791 -j DROP\n".to_owned(),
            Severity::Warning,
            "--dport 4791 -j DROP",
            None,
        ),
        (":INPUT DROP [3:180]\n".to_owned(), Severity::Warning, "dropped by default", Some(accept)),
    ] {
        expect(&filtered(&rules), "firewall", severity, words, remedy);
    }
    let unknown = with(&[], vec![software("rxe0", KernelSoftware)]);
    expect(&unknown, "firewall", Severity::Note, "only root may read the rules", None);
    // The packets of an adapter do not pass the firewall.
    let mut facts = host(&[]);
    facts.firewall = Firewall::Rules(nft("drop", ""));
    assert!(!findings(&facts).iter().any(|finding| finding.check == "firewall"));
}

#[test]
fn software_by_accident_is_told() {
    let mut down = adapter();
    down.ports[0].state = "down".to_owned();
    down.unusable = Some("port 1 of mlx5_0 is down".to_owned());
    let facts = with(&[], vec![down, software("softdev0", UserSoftware)]);
    let words = "because the hardware here cannot be used: port 1 of mlx5_0 is down";
    expect(&facts, "device", Severity::Warning, words, None);
    let facts = with(&[], vec![software("rxe0", KernelSoftware), software("softdev0", UserSoftware)]);
    expect(&facts, "device", Severity::Note, "there is no hardware here", None);
    assert!(only(&facts, "device").why.contains("this host's CPUs and kernel, not an adapter"));
    let mut facts = with(&[], vec![adapter(), software("rxe0", KernelSoftware)]);
    expect(&facts, "device", Severity::Good, "measures mlx5_0: the first hardware", None);
    facts.named = Some("rxe0".to_owned());
    expect(
        &facts,
        "device",
        Severity::Note,
        "rxe0 is kernel software",
        Some("rdmascope run quick -d mlx5_0"),
    );
}

/// Returns the status of a process that may use these CPUs.
fn allowed(cpus: &str) -> String {
    format!("Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t{cpus}\n")
}

#[test]
fn too_few_cpus_are_told() {
    let facts = host(&[("proc/self/status", &allowed("3"))]);
    let remedy = "taskset -c 0,1 rdmascope run quick";
    expect(&facts, "CPUs", Severity::Warning, "CPU 3 only", Some(remedy));
    let quota = |text: &str| {
        host(&[("proc/self/cgroup", "0::/box\n"), ("sys/fs/cgroup/box/cpu.max", text)]).cpus.quota_percent
    };
    assert_eq!((quota("150000 100000\n"), quota("max 100000\n")), (Some(150), None));
    // The least of the group's own limit and of those above it counts.
    let nested = [
        ("proc/self/cgroup", "0::/slice/box\n"),
        ("sys/fs/cgroup/slice/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/slice/box/cpu.max", "150000 100000\n"),
    ];
    assert_eq!(host(&nested).cpus.quota_percent, Some(50));
    // Version 1, whose hierarchy of CPUs is often one of two controllers.
    for (controllers, path, expected) in [
        ("cpu", "cpu/box", Some(30)),
        ("cpu,cpuacct", "cpu,cpuacct/box", Some(30)),
        ("cpu", "cpu", Some(30)),
        ("cpuset", "cpuset/box", None),
    ] {
        let [quota, period] =
            ["quota", "period"].map(|file| format!("sys/fs/cgroup/{path}/cpu.cfs_{file}_us"));
        let groups = format!("2:{controllers}:/box\n0::/\n");
        let of = |limit| {
            let files = [("proc/self/cgroup", &*groups), (&*quota, limit), (&*period, "100000\n")];
            host(&files).cpus.quota_percent
        };
        assert_eq!((of("30000\n"), of("-1\n")), (expected, None), "{controllers} {path}");
    }
    let facts = host(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", "150000 100000\n")]);
    let found = findings(&facts);
    let finding = found.iter().find(|finding| finding.found.contains("150 %")).unwrap();
    assert_eq!((finding.check, finding.severity), ("CPUs", Severity::Warning));
}

#[test]
fn two_threads_of_a_core_are_no_place_for_two_ranks() {
    let threads = [
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
        ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n"),
    ];
    let remedy = "rdmascope run quick --cpus 0,2";
    expect(&host(&threads), "cores", Severity::Warning, "two threads of one core", Some(remedy));
    let only_two = allowed("0-1");
    let files = [&threads[..], &[("proc/self/status", only_two.as_str())]].concat();
    expect(&host(&files), "cores", Severity::Warning, "two threads of one core", None);
    let isolated = [("sys/devices/system/cpu/isolated", "5-6\n")];
    let remedy = "rdmascope run quick --cpus 5,6";
    expect(&host(&isolated), "cores", Severity::Note, "although 5 and 6 are isolated", Some(remedy));
}

#[test]
fn ranks_belong_to_the_node_of_the_device() {
    let mut far = adapter();
    far.numa_node = Some(1);
    let remedy = "rdmascope run quick --cpus 2,3";
    let words = "mlx5_0 is on node 1, the ranks would get CPUs 0 and 1";
    expect(&with(&[], vec![far.clone()]), "NUMA", Severity::Warning, words, Some(remedy));
    let status = allowed("0-1");
    let facts = with(&[("proc/self/status", &status)], vec![far]);
    let remedy = "numactl --cpunodebind=1 --membind=1 rdmascope run quick";
    expect(&facts, "NUMA", Severity::Warning, words, Some(remedy));
    let software = with(&[], vec![software("rxe0", KernelSoftware)]);
    assert!(!findings(&software).iter().any(|finding| finding.check == "NUMA"));
}

#[test]
fn power_saving_is_told() {
    let facts = host(&[("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")]);
    let remedy = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    expect(&facts, "governor", Severity::Warning, "performance x 1, powersave x 1", Some(remedy));
    let deep = [
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/name", "C10\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/latency", "890\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/disable", "0\n"),
    ];
    let remedy = "sudo cpupower idle-set -D 2";
    expect(&host(&deep), "idle states", Severity::Note, "C10, takes 890 us", Some(remedy));
    let disabled = ("sys/devices/system/cpu/cpu0/cpuidle/state10/disable", "1\n");
    let files = [&deep[..], &[disabled]].concat();
    expect(&host(&files), "idle states", Severity::Good, "C1, takes 2 us", None);
    let held = [&deep[..], &[("dev/cpu_dma_latency", "\0\0\0\0")]].concat();
    expect(&host(&held), "idle states", Severity::Good, "latency request: 0 us", None);
}

#[test]
fn what_moves_things_about_is_told() {
    let facts = host(&[("proc/77/comm", "irqbalance\n")]);
    let remedy = "sudo systemctl stop irqbalance";
    expect(&facts, "interrupts", Severity::Note, "irqbalance is running", Some(remedy));
    let facts = host(&[("proc/cpuinfo", "processor : 0\nflags : hypervisor\n")]);
    expect(&facts, "virtual machine", Severity::Note, "this host is a virtual machine", None);
}

#[test]
fn the_distance_of_the_ranks_cpus_is_judged() {
    const CHECK: &str = "core-to-core latency";
    let mut facts = host(&[]);
    assert!(findings(&facts).iter().all(|finding| finding.check != CHECK), "nothing was measured");
    let mut at = |ns: f64, best_ns: f64, severity: Severity, words: &str| {
        facts.core_to_core = Some(Ok(CoreToCore { ns, best_ns }));
        expect(&facts, CHECK, severity, words, None);
    };
    at(28.3, 28.3, Severity::Good, "28 ns between CPUs 0 and 1");
    at(60.0, 28.3, Severity::Good, "60 ns between CPUs 0 and 1");
    let far = "188 ns between CPUs 0 and 1, 6.7 times the best seen on this host (28 ns)";
    at(188.4, 28.3, Severity::Warning, far);
    at(188.4, 188.4, Severity::Note, "188 ns between CPUs 0 and 1");
    facts.core_to_core = Some(Err("the other rank does not answer".to_owned()));
    expect(&facts, CHECK, Severity::Warning, "CPUs 0 and 1: the other rank does not answer", None);
    let mut apart = host(&[("sys/devices/system/node/node0/cpulist", "0\n")]);
    apart.core_to_core = Some(Ok(CoreToCore { ns: 188.4, best_ns: 188.4 }));
    expect(&apart, CHECK, Severity::Good, "188 ns between CPUs 0 and 1", None);
}

#[test]
fn a_slow_clock_is_told_with_its_reason() {
    let mut facts = host(&[]);
    let why_not_tsc = Some("the kernel found the counter unstable");
    facts.clock = ClockFacts { name: "clock_monotonic", stamp_ns: 41, why_not_tsc };
    expect(&facts, "clock", Severity::Warning, "clock_monotonic, at 41 ns", Some("dmesg | grep -i tsc"));
    assert!(only(&facts, "clock").why.ends_with("but the kernel found the counter unstable"));
}

#[test]
fn the_text_fits_a_terminal_and_keeps_commands_whole() {
    let facts = Facts::read(tree(HEALTHY, &[]).path(), survey(vec![adapter()]), None);
    let finding = Finding::good("check", "looked at", "found ".repeat(40))
        .but(Severity::Problem, "why ".repeat(40))
        .mended_by(format!("{}\nsecond", "command ".repeat(20).trim_end()));
    let text = print::text(&facts, &[finding]);
    let (commands, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("         $ "));
    assert_eq!(commands.len(), 2, "{text}");
    assert!(rest.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.ends_with("1 problem, 0 warnings, 0 notes: fix the problems before you measure.\n"));
}

#[test]
fn a_technique_that_lacks_rights_is_a_note_and_one_that_lacks_a_host_is_not() {
    let governor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let all = |facts: &Facts| -> Vec<Finding> {
        findings(facts).into_iter().filter(|finding| finding.check == "environment").collect()
    };
    let found = |findings: &[Finding], text: &str| {
        let found = findings.iter().find(|finding| finding.found.starts_with(text));
        found.unwrap_or_else(|| panic!("no {text:?} in {findings:#?}")).severity
    };
    let node = "sys/class/infiniband/mlx5_0/device/numa_node";
    let healthy = all(&host(&[(governor, "powersave\n"), (node, "0\n")]));
    assert_eq!(found(&healthy, "governor can be applied (now powersave)"), Severity::Good);
    assert_eq!(found(&healthy, "tuned does not apply here: tuned is not installed"), Severity::Good);
    assert_eq!(found(&healthy, "numa can be applied"), Severity::Good);
    let limits = "Max locked memory  65536  65536  bytes\nMax realtime priority  0  0\n";
    let poor = all(&host(&[("proc/self/limits", limits), ("usr/sbin/tuned-adm", "")]));
    for technique in ["memory", "scheduler", "tuned"] {
        assert_eq!(found(&poor, &format!("{technique} is not permitted")), Severity::Note);
    }
    let note = poor.iter().find(|finding| finding.severity == Severity::Note).unwrap();
    assert!(note.why.starts_with("a run cannot apply it: "), "{note:?}");
}

#[test]
fn what_a_killed_run_left_behind_is_found() {
    let entry = "{\"setting\":{\"governor\":{\"cpu\":0}},\"before\":\"powersave\",\"set\":\"performance\",\
                 \"holders\":[\"4711-1-0\"]}";
    let journal = format!("{{\"entries\":[{entry}]}}");
    let facts = host(&[("run/rdmascope/journal.json", journal.as_str())]);
    let words =
        "the governor of CPU 0 was set from powersave to performance by process 4711, which was killed";
    expect(&facts, "left behind", Severity::Warning, words, Some("sudo rdmascope doctor --restore"));
}
