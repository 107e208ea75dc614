//! The techniques of the process, each on a thread of its own, on this machine.

use std::fs;
use std::path::Path;
use std::thread;

use measure::conditions::{Memory, Numa};

use super::*;

fn place(pinned: Option<u32>, ranks: &[u32]) -> Place {
    Place {
        rank: 0,
        pinned: pinned.map(|cpu| vec![cpu]),
        ranks: ranks.to_vec(),
        device: Some("mlx5_0".into()),
        ipoib: Vec::new(),
    }
}

fn fifo() -> Wanted {
    Wanted { scheduler: Some(Scheduler::Fifo(1)), ..Wanted::default() }
}

/// A host with these files.
fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let host = Host::new(root.path());
    (root, host)
}

/// Runs a test on a thread of its own.
fn apart(test: fn()) {
    thread::spawn(test).join().unwrap();
}

/// Runs a test with the result of applying [`fifo`], on a thread of its own that is pinned to an
/// allowed CPU. Skips the test if the right is missing.
fn in_real_time(test: fn(Own, Found)) {
    let pinned = move || {
        let cpu = affinity().unwrap()[0];
        pin(&[cpu]).unwrap();
        let mut own = Own::default();
        let place = place(Some(cpu), &[cpu, cpu + 1]);
        let result = own.apply(&Host::here(), Technique::Scheduler, &fifo(), &place);
        if !is_skipped(&result) {
            test(own, result.unwrap());
        }
    };
    thread::spawn(pinned).join().unwrap();
}

/// Whether a right that the test needs is missing.
fn is_skipped(result: &Result<Found, Refusal>) -> bool {
    match result {
        Err((Outcome::NotPermitted, why)) => {
            eprintln!("SKIPPED (rights): {why}");
            true
        }
        _ => false,
    }
}

#[test]
fn a_real_time_class_is_that_of_the_thread_until_it_is_taken_back() {
    in_real_time(|own, found| {
        assert_eq!(found.before.as_deref(), Some("other"));
        assert_eq!(scheduler().map(in_words).unwrap(), "fifo:1");
        // A thread that it starts does not inherit the class.
        let inherited = thread::spawn(|| scheduler().map(in_words).unwrap()).join().unwrap();
        assert_eq!(inherited, "other");
        drop(own);
        assert_eq!(scheduler().map(in_words).unwrap(), "other");
    });
}

#[test]
fn a_real_time_class_is_taken_back_without_the_right_to_clear_the_flag() {
    in_real_time(|mut own, _| {
        // As if a limit of real-time priorities had allowed the class, without a capability.
        let mut rights = rustix::thread::capabilities(None).unwrap();
        rights.effective.remove(rustix::thread::CapabilitySet::SYS_NICE);
        rustix::thread::set_capabilities(None, rights).unwrap();
        assert!(set_scheduler(libc::SCHED_OTHER, 0).is_err(), "the right is gone");
        assert_eq!(own.take_back(), None);
        assert_eq!(scheduler().map(in_words).unwrap(), "other");
        // A class that needs the right cannot be restored; the error is reported.
        own.scheduler = Some((libc::SCHED_FIFO, 99));
        let said = own.take_back().unwrap();
        assert!(said.contains("could not be set back to fifo:99: "), "{said}");
    });
}

#[test]
fn a_real_time_class_that_could_hang_a_cpu_is_not_applied() {
    let of = |runtime: &str| {
        let period = ("proc/sys/kernel/sched_rt_period_us", "1000000\n");
        host(&[("proc/sys/kernel/sched_rt_runtime_us", runtime), period])
    };
    let (_root, throttled) = of("950000\n");
    let (_root, endless) = of("-1\n");
    let (_root, whole) = of("1000000\n");
    let (_root, unknown) = host(&[]);
    let alone = |cpu| place(Some(cpu), &[cpu, cpu + 1]);
    let cpu = affinity().unwrap()[0];
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(&[cpu]).unwrap();
            assert!(harmless(&throttled, &alone(cpu)).is_ok());
            let said = "the kernel stops a rank that never sleeps for 50 ms of each 1000 ms (kernel.sched_rt_runtime_us)";
            assert_eq!(throttle(&throttled).as_deref(), Some(said));
            for (host, place, word) in [
                (&throttled, place(None, &[]), "pin it"),
                (&throttled, alone(cpu + 1), "is not on its CPU any more"),
                (&throttled, place(Some(cpu), &[cpu, cpu]), "the same CPU"),
                (&endless, alone(cpu), "kernel.sched_rt_runtime_us"),
                (&whole, alone(cpu), "kernel.sched_rt_runtime_us"),
                (&unknown, alone(cpu), "kernel.sched_rt_runtime_us"),
            ] {
                let refused = Own::default().apply(host, Technique::Scheduler, &fifo(), &place);
                let (outcome, why) = refused.unwrap_err();
                assert_eq!(outcome, Outcome::NotApplied);
                assert!(why.contains(word), "no {word} in {why}");
            }
            assert_eq!(scheduler().map(in_words).unwrap(), "other");
        });
    });
}

#[test]
fn a_latency_request_holds_until_it_is_taken_back() {
    let here = Host::here();
    let wanted = Wanted { cpu_dma_latency_us: Some(7), ..Wanted::default() };
    let mut own = Own::default();
    let before = latency(&here);
    let result = own.apply(&here, Technique::CpuDmaLatency, &wanted, &Place::default());
    if is_skipped(&result) || !Path::new("/dev/cpu_dma_latency").exists() {
        return;
    }
    result.unwrap();
    assert_eq!(latency(&here).as_deref(), Some("7 us"));
    drop(own);
    assert_eq!(latency(&here), before);
    let (_root, without) = host(&[]);
    let refused = Own::default().apply(&without, Technique::CpuDmaLatency, &wanted, &Place::default());
    assert_eq!(
        refused.unwrap_err(),
        (Outcome::NotApplied, "this kernel has no /dev/cpu_dma_latency".to_owned())
    );
}

#[test]
fn memory_is_locked_until_it_is_taken_back() {
    let here = Host::here();
    let wanted = Wanted { memory: Some(Memory::Locked), ..Wanted::default() };
    let locked = || here.status("self", "VmLck").unwrap();
    let limit = getrlimit(Resource::Memlock);
    let mut own = Own::default();
    let result = own.apply(&here, Technique::Memory, &wanted, &Place::default());
    if is_skipped(&result) {
        return;
    }
    result.unwrap();
    assert_ne!(locked(), "0 kB");
    // Memory that is mapped and not touched is not filled: softdev's arenas are sparse.
    let resident = || here.status("self", "VmRSS").unwrap().replace(" kB", "").parse::<u64>().unwrap();
    let before = resident();
    let sparse = Vec::<u8>::with_capacity(1 << 30);
    assert!(resident() < before + (1 << 19), "{} kB of {before} kB", resident());
    drop(sparse);
    drop(own);
    assert_eq!(locked(), "0 kB");
    assert_eq!(getrlimit(Resource::Memlock), limit);
}

#[test]
fn memory_is_bound_to_the_devices_node_where_there_is_more_than_one() {
    let wanted = Wanted { numa: Some(Numa::Device), ..Wanted::default() };
    let node = "sys/class/infiniband/mlx5_0/device/numa_node";
    let nodes = ["sys/devices/system/node/node0/cpulist", "sys/devices/system/node/node1/cpulist"];
    for (files, why) in [
        (&[(nodes[0], "0"), (node, "0")][..], "the host has one NUMA node"),
        (&[(nodes[0], "0"), (nodes[1], "1")], "mlx5_0 is attached to no NUMA node"),
        (&[(nodes[0], "0"), (nodes[1], "1"), (node, "-1")], "mlx5_0 is attached to no NUMA node"),
    ] {
        let (_root, host) = host(files);
        let refused = Own::default().apply(&host, Technique::Numa, &wanted, &place(None, &[])).unwrap_err();
        assert_eq!(refused, (Outcome::NotApplied, why.to_owned()));
    }
    apart(|| {
        let wanted = Wanted { numa: Some(Numa::Device), ..Wanted::default() };
        // Every host has node 0.
        let (_root, host) = host(&[
            ("sys/devices/system/node/node0/cpulist", "0"),
            ("sys/devices/system/node/node1/cpulist", "1"),
            ("sys/class/infiniband/mlx5_0/device/numa_node", "0"),
        ]);
        let mut own = Own::default();
        own.apply(&host, Technique::Numa, &wanted, &place(None, &[])).unwrap();
        assert_eq!(policy().unwrap().mode, libc::MPOL_BIND);
        drop(own);
        assert_eq!(policy().unwrap().mode, libc::MPOL_DEFAULT);
        // The policy of numactl --interleave.
        let mut given = policy().unwrap();
        (given.mode, given.nodes[0]) = (libc::MPOL_INTERLEAVE, 1);
        set_policy(&given).unwrap();
        let mut own = Own::default();
        let found = own.apply(&host, Technique::Numa, &wanted, &place(None, &[])).unwrap();
        assert!(found.before.unwrap().starts_with("memory policy 3 "));
        assert_eq!(policy().unwrap().mode, libc::MPOL_BIND);
        drop(own);
        assert_eq!(policy().unwrap(), given);
    });
}
