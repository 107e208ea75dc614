//! Sets of queue pairs are made and destroyed thousands of times, and leave nothing: no descriptor,
//! no mapping, no memory.
//!
//! `RDMASCOPE_CYCLES` sets the number; the default takes seconds.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use softdev::PROVIDER;
use verbs::abi::*;
use verbs::{
    Connection, Context, GlobalRoute, Initialisation, MemoryKind, Mtu, QueuePairOptions, ReceiveRequest,
    Route, SendRequest, Service, devices,
};

/// The number of cycles, unless `RDMASCOPE_CYCLES` sets it.
const CYCLES: usize = 300;
/// The number of queue pairs of a set.
const PAIRS: usize = 100;
/// After this time, freed memory is allocated again, and its pages are freed once more.
const QUARANTINE: Duration = Duration::from_millis(1200);
/// The number of keys of a process. Each is used once before one is reused: its entry then has its
/// page.
const KEYS: usize = 1 << 16;

/// The resources that a process holds.
#[derive(Debug)]
struct Holdings {
    descriptors: usize,
    mappings: usize,
    /// Resident bytes.
    resident: u64,
    /// Bytes of its arena.
    arena: u64,
}

fn holdings() -> Holdings {
    let status = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_arena = |path: &std::path::Path| {
        fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:rdmascope-softdev-"))
    };
    let arenas = descriptors().map(|entry| entry.path()).filter(|path| is_arena(path));
    Holdings {
        descriptors: descriptors().count(),
        mappings: fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
        resident: pages * 4096,
        arena: arenas.map(|path| fs::metadata(path).unwrap().blocks() * 512).sum(),
    }
}

/// Makes a set of connections of this process with itself, uses each once, and destroys it.
fn cycle(context: &Context) {
    let domain = context.protection_domain().unwrap();
    let channel = context.completion_channel().unwrap();
    let sends = context.completion_queue(PAIRS as u32, Some(&channel)).unwrap();
    let receives = context.completion_queue(PAIRS as u32, None).unwrap();
    let region = domain.memory_region(PAIRS * 64, IBV_ACCESS_LOCAL_WRITE).unwrap();
    let options = QueuePairOptions {
        service: Service::Rc,
        max_send_wr: 8,
        max_recv_wr: 8,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let with = Initialisation { port: 1, pkey_index: 0, qkey: 0, access: 0 };
    let fresh =
        (0..PAIRS).map(|_| domain.queue_pair(&options, &sends, &receives).unwrap().init(&with).unwrap());
    let fresh: Vec<_> = fresh.collect();
    let numbers: Vec<u32> = fresh.iter().map(|pair| pair.number()).collect();
    let gid = context.gid(1, 0).unwrap();
    let to = |qp_num| Connection {
        qp_num,
        peer_psn: 0,
        own_psn: 0,
        mtu: Mtu::from_bytes(4096).unwrap(),
        route: Route {
            port: 1,
            lid: 0,
            service_level: 0,
            global: Some(GlobalRoute { gid_index: 0, gid, traffic_class: 0 }),
        },
        timeout: 14,
        retry_count: 7,
        rnr_retry: 7,
        min_rnr_timer: 12,
        responder_reads: 1,
        initiator_reads: 1,
    };
    // Queue pairs 2n and 2n + 1 send to each other.
    let ready = fresh.into_iter().enumerate().map(|(i, pair)| (pair, to(numbers[i ^ 1])));
    let ready: Vec<_> = ready.map(|(pair, to)| (pair.ready_to_receive(&to).unwrap(), to)).collect();
    let mut pairs: Vec<_> = ready.into_iter().map(|(pair, to)| pair.ready_to_send(&to).unwrap()).collect();
    for (i, pair) in pairs.iter_mut().enumerate() {
        let element = region.sge(i * 64, 64).unwrap();
        pair.post_receive(&mut ReceiveRequest::new(i as u64, vec![element])).unwrap();
    }
    for (i, pair) in pairs.iter_mut().enumerate() {
        let element = region.sge(i * 64, 64).unwrap();
        pair.post_send(&mut SendRequest::send(i as u64, vec![element]).signaled(true)).unwrap();
    }
    for queue in [&sends, &receives] {
        let mut room = [verbs::Completion::default(); PAIRS];
        let polled = queue.poll(&mut room).unwrap();
        assert!(polled.len() == PAIRS && polled.iter().all(|wc| wc.status().is_success()));
    }
}

/// Makes everything that is made once, and lets the quarantine lists reach their maximum, before
/// the first look.
fn warm_up(context: &Context) {
    let domain = context.protection_domain().unwrap();
    for _ in 0..KEYS {
        drop(domain.memory_region_of(MemoryKind::Process, 64, 0).unwrap());
    }
    let start = Instant::now();
    while start.elapsed() < 2 * QUARANTINE {
        cycle(context);
    }
}

#[test]
fn sets_of_queue_pairs_come_and_go_without_a_trace() {
    let cycles =
        std::env::var("RDMASCOPE_CYCLES").map_or(CYCLES, |text| text.parse().expect("a number of cycles"));
    let device = devices(&PROVIDER).unwrap().remove(0);
    warm_up(&device.open().unwrap());
    for _ in 0..50 {
        cycle(&device.open().unwrap());
    }
    std::thread::sleep(QUARANTINE);
    let context = device.open().unwrap();
    cycle(&context);
    std::thread::sleep(QUARANTINE);
    cycle(&context);
    let before = holdings();
    for _ in 0..cycles {
        cycle(&context);
    }
    // Freed pages are returned when the next allocation looks at the quarantine.
    std::thread::sleep(QUARANTINE);
    cycle(&context);
    let after = holdings();
    println!("{cycles} sets of {PAIRS}: {before:?}, {after:?}");
    assert_eq!(after.descriptors, before.descriptors);
    assert!(after.mappings <= before.mappings + 4, "{before:?} {after:?}");
    assert!(after.resident <= before.resident + (4 << 20), "{before:?} {after:?}");
    assert!(after.arena <= before.arena + (1 << 20), "{before:?} {after:?}");
}
