//! Made-up machines.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A file tree of these files.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

fn read(files: &[(&str, &str)]) -> Environment {
    Environment::read(tree(files).path(), 0, None)
}

/// Checks a group: exactly these facts.
fn assert_group(environment: &Environment, group: &str, expected: &[(&str, &str)]) {
    let facts: Vec<(&str, &str)> = environment
        .facts
        .get(group)
        .into_iter()
        .flatten()
        .map(|(name, value)| (&name[..], &value[..]))
        .collect();
    assert_eq!(facts, expected, "{group}");
}

#[test]
fn a_machine_that_shows_nothing_has_no_facts() {
    let environment = Environment::read(tree(&[]).path(), 3, Some(vec![1, 2]));
    assert_eq!((environment.rank, &environment.hostname[..]), (3, "unknown"));
    assert_eq!(environment.pinned_cpus, Some(vec![1, 2]));
    assert_eq!(environment.facts, BTreeMap::new());
}

#[test]
fn this_machine_has_a_kernel_and_limits() {
    let environment = Environment::capture(0, None);
    assert!(environment.facts["kernel"].contains_key("release"), "{environment:?}");
    assert!(environment.facts["limits"].contains_key("locked_memory"), "{environment:?}");
    assert!(environment.facts["isolation"].contains_key("affinity"), "{environment:?}");
    assert_ne!(environment.hostname, "unknown");
}

#[test]
fn processors_are_described() {
    let one = |id: u32, package: u32, mhz: &str| {
        format!(
            "processor\t: {id}\nmodel name\t: Xeon(R) Gold @ 2.10GHz\ncpu MHz\t\t: {mhz}\nphysical id\t: {package}\n\
             siblings\t: 4\ncpu cores\t: 2\nmicrocode\t: 0x2b\nflags\t\t: fpu constant_tsc nonstop_tsc avx2 avx\n\n"
        )
    };
    let info = one(0, 0, "800.000") + &one(1, 0, "2100.4") + &one(2, 1, "2100.4");
    let environment = read(&[
        ("proc/cpuinfo", &info),
        ("proc/sys/kernel/hostname", "node7\n"),
        ("sys/devices/system/cpu/online", "0-2\n"),
        ("sys/devices/system/cpu/smt/control", "on\n"),
    ]);
    assert_eq!(environment.hostname, "node7");
    assert_group(
        &environment,
        "cpu",
        &[
            ("count", "3"),
            ("flags", "constant_tsc nonstop_tsc avx2"),
            ("mhz", "800 to 2100"),
            ("microcode", "0x2b"),
            ("model", "Xeon(R) Gold @ 2.10GHz"),
            ("online", "0-2"),
            ("smt", "on"),
            ("sockets", "2"),
            ("threads_per_core", "2"),
        ],
    );
}

#[test]
fn the_neighbours_of_a_pinned_cpu_are_described() {
    let files = [
        ("sys/devices/system/cpu/cpu3/topology/core_cpus_list", "3,19\n"),
        ("sys/devices/system/cpu/cpu3/topology/core_siblings_list", "0-31\n"),
        ("sys/devices/system/cpu/cpu3/cache/index0/level", "1\n"),
        ("sys/devices/system/cpu/cpu3/cache/index0/shared_cpu_list", "3,19\n"),
        ("sys/devices/system/cpu/cpu3/cache/index3/level", "3\n"),
        ("sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list", "0-7,16-23\n"),
    ];
    let pinned = |cpus: Option<Vec<u32>>| Environment::read(tree(&files).path(), 0, cpus);
    let expected = [("cache", "0-7,16-23"), ("core", "3,19"), ("package", "0-31")];
    assert_group(&pinned(Some(vec![3])), "pinned_cpu", &expected);
    for cpus in [None, Some(vec![4]), Some(vec![3, 4])] {
        assert_group(&pinned(cpus), "pinned_cpu", &[]);
    }
}

#[test]
fn a_guest_names_its_hypervisor_as_far_as_it_can() {
    let guest = ("proc/cpuinfo", "processor : 0\nflags : hypervisor\n");
    let vendor = ("sys/class/dmi/id/sys_vendor", "QEMU\n");
    let product = ("sys/class/dmi/id/product_name", "Standard PC\n");
    let hypervisor = |files: &[(&str, &str)]| read(files).facts["cpu"].get("hypervisor").cloned();
    assert_eq!(hypervisor(&[guest]).as_deref(), Some("yes"));
    assert_eq!(hypervisor(&[guest, vendor, product]).as_deref(), Some("QEMU Standard PC"));
    assert_eq!(hypervisor(&[guest, ("sys/hypervisor/type", "xen\n")]).as_deref(), Some("xen"));
    assert_eq!(hypervisor(&[("proc/cpuinfo", "processor : 0\n"), vendor]), None);
}

#[test]
fn power_saving_is_described() {
    let environment = read(&[
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
        ("sys/devices/system/cpu/cpuidle/current_governor", "menu\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/name", "C6\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state10/disable", "1\n"),
        ("dev/cpu_dma_latency", "\x05\0\0\0"),
        ("etc/tuned/active_profile", "network-latency\n"),
        ("sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave \n"),
    ]);
    assert_group(
        &environment,
        "power",
        &[
            ("boost", "off"),
            ("cpu_dma_latency", if cfg!(target_endian = "little") { "5 us" } else { "83886080 us" }),
            ("cpuidle_driver", "intel_idle"),
            ("cpuidle_governor", "menu"),
            ("governor", "performance x 2, powersave x 1"),
            ("idle_states", "POLL, C1, C6 (disabled)"),
            ("pcie_aspm", "performance"),
            ("scaling_driver", "intel_pstate"),
            ("tuned_profile", "network-latency"),
        ],
    );
    let power = |files: &[(&str, &str)], name: &str| read(files).facts["power"].get(name).cloned();
    assert_eq!(power(&[("sys/devices/system/cpu/cpufreq/boost", "1\n")], "boost").as_deref(), Some("on"));
    let no_request = tree(&[]);
    fs::create_dir(no_request.path().join("dev")).unwrap();
    fs::write(no_request.path().join("dev/cpu_dma_latency"), 2_000_000_000i32.to_ne_bytes()).unwrap();
    let environment = Environment::read(no_request.path(), 0, None);
    assert_group(&environment, "power", &[("cpu_dma_latency", "no request")]);
}

#[test]
fn memory_and_nodes_are_described() {
    let environment = read(&[
        (
            "proc/meminfo",
            "MemTotal:  1024 kB\nSwapTotal:   0 kB\nHugePages_Total:   8\nHugepagesize:  2048 kB\n",
        ),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:   512 kB\nNode 0 MemFree: 1 kB\n"),
        ("sys/devices/system/node/node0/distance", "10 21\n"),
        ("sys/devices/system/node/node1/cpulist", "4-7\n"),
        ("sys/devices/system/node/possible", "0-1\n"),
        ("proc/sys/kernel/numa_balancing", "1\n"),
    ]);
    assert_group(
        &environment,
        "memory",
        &[
            ("hugepage_size", "2048 kB"),
            ("hugepages", "8"),
            ("swap", "0 kB"),
            ("total", "1024 kB"),
            ("transparent_hugepages", "madvise"),
        ],
    );
    assert_group(
        &environment,
        "numa",
        &[
            ("balancing", "on"),
            ("node0.cpus", "0-3"),
            ("node0.distances", "10 21"),
            ("node0.memory", "512 kB"),
            ("node1.cpus", "4-7"),
            ("nodes", "2"),
        ],
    );
}

#[test]
fn the_kernel_and_its_limits_are_described() {
    let environment = read(&[
        ("proc/sys/kernel/osrelease", "6.1.0-rt\n"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT\n"),
        (
            "proc/cmdline",
            "BOOT_IMAGE=/vmlinuz isolcpus=1 quiet isolcpus=2-3 nohz_full=2-3 mitigations=off hugepages\n",
        ),
        ("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
        ("sys/kernel/realtime", "1\n"),
        (
            "proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max open files            1024                 524288               files     \n\
             Max locked memory         unlimited            unlimited            bytes     \n\
             Max nice priority         0                    0                    \n",
        ),
    ]);
    assert_group(
        &environment,
        "kernel",
        &[
            ("clocksource", "tsc"),
            ("clocksources", "tsc hpet"),
            ("distribution", "Debian GNU/Linux 12"),
            ("parameter.hugepages", "set"),
            ("parameter.isolcpus", "2-3"),
            ("parameter.mitigations", "off"),
            ("parameter.nohz_full", "2-3"),
            ("realtime", "yes"),
            ("release", "6.1.0-rt"),
            ("version", "#1 SMP PREEMPT_RT"),
        ],
    );
    let limits = [("locked_memory", "unlimited"), ("nice_priority", "0"), ("open_files", "1024 files")];
    assert_group(&environment, "limits", &limits);
}

#[test]
fn the_cpus_of_the_control_group_are_found_where_it_is_mounted() {
    let cpus = |files: &[(&str, &str)]| read(files).facts.get("isolation")?.get("cgroup_cpus").cloned();
    let v2 = [
        ("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"),
        ("proc/self/cgroup", "0::/user.slice/a:b\n"),
        ("sys/fs/cgroup/user.slice/a:b/cpuset.cpus.effective", "0-3\n"),
    ];
    assert_eq!(cpus(&v2).as_deref(), Some("0-3"));
    let v1 = [
        (
            "proc/self/mountinfo",
            "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             32 25 0:28 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n\
             33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        ),
        ("proc/self/cgroup", "9:cpu,cpuacct:/x\n5:cpuset:/job\n0::/\n"),
        ("cg/cpuset/job/cpuset.cpus", "4-5\n"),
    ];
    assert_eq!(cpus(&v1).as_deref(), Some("4-5"));
    // In a container the mount shows the group of the container as its root.
    let nested = [
        ("proc/self/mountinfo", "30 25 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n"),
        ("proc/self/cgroup", "0::/docker/1/inner\n"),
        ("sys/fs/cgroup/inner/cpuset.cpus.effective", "7\n"),
    ];
    assert_eq!(cpus(&nested).as_deref(), Some("7"));
    assert_eq!(cpus(&v2[..2]), None);
}

#[test]
fn isolation_is_described() {
    let environment = read(&[
        ("proc/self/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n"),
        ("sys/devices/system/cpu/isolated", "2-3\n"),
        ("sys/devices/system/cpu/nohz_full", "(null)\n"),
        ("proc/irq/default_smp_affinity", "3\n"),
        ("proc/812/comm", "irqbalance\n"),
        ("proc/9/comm", "bash\n"),
    ]);
    assert_group(
        &environment,
        "isolation",
        &[
            ("affinity", "0-3"),
            ("default_irq_cpus_mask", "3"),
            ("irqbalance", "running"),
            ("isolated_cpus", "2-3"),
            ("memory_nodes", "0"),
        ],
    );
    let environment = read(&[("proc/9/comm", "bash\n")]);
    assert_group(&environment, "isolation", &[("irqbalance", "not running")]);
}

#[test]
fn rdma_devices_are_described() {
    // PCI Express as the first capability, with 256 B and 512 B in its control register.
    let mut config = [0; 128];
    for (at, byte) in [(0x06, 0x10), (0x34, 0x60), (0x60, 0x10), (0x68, 0x30), (0x69, 0x20)] {
        config[at] = byte;
    }
    let environment = read(&[
        ("sys/class/infiniband/mlx5_0/fw_ver", "20.31.1014\n"),
        ("sys/class/infiniband/mlx5_0/board_id", "MT_0000000008\n"),
        ("sys/class/infiniband/mlx5_0/device/current_link_speed", "16.0 GT/s PCIe\n"),
        ("sys/class/infiniband/mlx5_0/device/current_link_width", "16\n"),
        ("sys/class/infiniband/mlx5_0/device/config", str::from_utf8(&config).unwrap()),
        ("sys/class/infiniband/mlx5_0/device/numa_node", "1\n"),
        ("sys/class/infiniband/mlx5_0/device/msi_irqs/120", "msix\n"),
        ("sys/class/infiniband/mlx5_0/device/msi_irqs/121", "msix\n"),
        ("proc/irq/120/smp_affinity_list", "0-7\n"),
        ("proc/irq/121/smp_affinity_list", "0-7\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
        ("sys/class/infiniband/mlx5_0/device/net/ib0/mtu", "2044\n"),
        ("sys/class/infiniband/mlx5_0/device/net/ib0/mode", "datagram\n"),
        ("sys/module/mlx5_core/version", "5.0-0\n"),
    ]);
    assert_group(
        &environment,
        "infiniband",
        &[
            ("mlx5_0.board", "MT_0000000008"),
            ("mlx5_0.firmware", "20.31.1014"),
            ("mlx5_0.ib0.ipoib_mode", "datagram"),
            ("mlx5_0.ib0.mtu", "2044"),
            ("mlx5_0.irq_cpus", "0-7"),
            ("mlx5_0.numa_node", "1"),
            ("mlx5_0.pcie_payload_max_bytes", "256"),
            ("mlx5_0.pcie_read_request_max_bytes", "512"),
            ("mlx5_0.pcie_speed", "16.0 GT/s PCIe"),
            ("mlx5_0.pcie_width", "16"),
            ("mlx5_0.port1.link_layer", "InfiniBand"),
            ("mlx5_0.port1.rate", "100 Gb/sec (4X EDR)"),
            ("mlx5_0.port1.state", "4: ACTIVE"),
            ("mlx5_core.version", "5.0-0"),
        ],
    );
}

#[test]
fn network_interfaces_are_described() {
    let environment = read(&[
        ("sys/class/net/ib0/type", "32\n"),
        ("sys/class/net/ib0/mode", "connected\n"),
        ("sys/class/net/ib0/mtu", "65520\n"),
        ("sys/class/net/ib0/operstate", "up\n"),
        ("sys/class/net/eth0/type", "1\n"),
        ("sys/class/net/eth0/mode", "0\n"),
        ("sys/class/net/eth0/mtu", "1500\n"),
        ("sys/class/net/eth0/speed", "25000\n"),
        ("sys/class/net/lo/speed", "-1\n"),
        ("sys/class/net/lo/mtu", "65536\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ]);
    assert_group(
        &environment,
        "network",
        &[
            ("congestion_control", "cubic"),
            ("eth0.mtu_bytes", "1500"),
            ("eth0.speed_mbps", "25000"),
            ("ib0.ipoib_mode", "connected"),
            ("ib0.mtu_bytes", "65520"),
            ("ib0.state", "up"),
            ("lo.mtu_bytes", "65536"),
            ("tcp_rmem_bytes", "4096 131072 6291456"),
        ],
    );
}
