//! Tests with a device that registers little memory, as under a small RLIMIT_MEMLOCK.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use measure::clock::Clock;
use verbs::Provider;
use verbs::abi::{ibv_mr, ibv_pd};

use super::{patience, watch};
use crate::transfer::digest::Checksum;
use crate::transfer::link::verbs::{Unconnected, VerbsInlet, VerbsOutlet, Wanted};
use crate::transfer::sink::{Receipt, Target, receive};
use crate::transfer::source::{Sending, What, send};
use crate::verbs_endpoint::{PortOptions, RankDevice};

/// The most registered memory, in bytes.
const LIMIT: usize = 8 << 20;
static REGISTERED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr {
    if REGISTERED.fetch_add(length, Relaxed) + length > LIMIT {
        REGISTERED.fetch_sub(length, Relaxed);
        // SAFETY: errno's location is valid in every thread.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return std::ptr::null_mut();
    }
    // SAFETY: the caller keeps the contract of the function of this name.
    unsafe { (softdev::PROVIDER.reg_mr)(pd, addr, length, access) }
}

unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    // SAFETY: the caller gives a live registration.
    REGISTERED.fetch_sub(unsafe { (*mr).length }, Relaxed);
    // SAFETY: as above.
    unsafe { (softdev::PROVIDER.dereg_mr)(mr) }
}

static ALL: &[&Provider] = &[&softdev::PROVIDER];
static LIMITED: Provider = Provider { reg_mr, dereg_mr, ..softdev::PROVIDER };

#[test]
fn where_little_memory_can_be_registered_blocks_are_fewer_and_smaller_and_that_is_said() {
    static PROVIDERS: &[&Provider] = &[&LIMITED];
    let mut device = RankDevice::new(PROVIDERS, None, PortOptions::default());
    let open = device.open().unwrap();
    let made = |block_bytes, depth| {
        let wanted = Wanted { is_source: false, pairs: 1, block_bytes, depth, keeps_registrations: true };
        let end = Unconnected::new(&open.context, &open.port, wanted, Clock::monotonic()).unwrap();
        let said = end.shrunk().map(str::to_owned);
        drop(end);
        said
    };
    assert_eq!(made(256 << 10, 8), None, "2 MiB are there");
    let fewer = made(1 << 20, 16).expect("16 MiB are not");
    assert!(
        fewer.starts_with("3 blocks of 1024 KiB instead of 16 of 1024 KiB, because no more memory"),
        "{fewer}"
    );
    let smaller = made(8 << 20, 8).expect("not a single block fits beside the answers");
    assert!(smaller.contains(" blocks of 1024 KiB instead of 8 of 8192 KiB"), "{smaller}");
    assert_eq!(REGISTERED.load(Relaxed), 0, "all was given back");
    // One rank has as many blocks as asked for, and adapts to its peer, which has fewer.
    for is_limited in [true, false] {
        let pair = [is_limited, !is_limited].map(|is_limited| {
            let providers: &'static [&'static Provider] = if is_limited { PROVIDERS } else { ALL };
            RankDevice::new(providers, None, PortOptions::default())
        });
        a_tree_arrives(pair);
    }
}

/// Sends files between ranks of two devices. One device cannot register all blocks.
fn a_tree_arrives(mut devices: [RankDevice; 2]) {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..20 << 20).map(|at: u32| (at / 7 + at / 4099) as u8).collect();
    std::fs::write(from.path().join("long"), &bytes).unwrap();
    std::fs::write(from.path().join("short"), "x").unwrap();
    let [source, sink] = &mut devices;
    let opens = [source.open().unwrap(), sink.open().unwrap()];
    let ends = [true, false].map(|is_source| {
        let wanted =
            Wanted { is_source, pairs: 2, block_bytes: 256 << 10, depth: 32, keeps_registrations: true };
        let open = opens[usize::from(!is_source)];
        Unconnected::new(&open.context, &open.port, wanted, Clock::monotonic()).unwrap()
    });
    assert_eq!(ends.iter().filter(|end| end.shrunk().is_some()).count(), 1);
    let addresses = [ends[0].address().unwrap(), ends[1].address().unwrap()];
    let [source, sink] = ends;
    let outlet = source.connect(&opens[0].port, &addresses[1], patience("the sink")).unwrap();
    let inlet = sink.connect(&opens[1].port, &addresses[0], patience("the source")).unwrap();
    let paths = vec![from.path().join(".")];
    let checksum = Checksum::Xxh3;
    let sending = Sending { what: What::Paths(paths), checksum, is_direct: false, resumes: false };
    let target = Some(Target::open(to.path(), 1).unwrap());
    let mut receipt = Receipt::new(target, checksum);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            send(&mut VerbsOutlet::new(outlet), &sending, watch(), Clock::monotonic()).unwrap();
        });
        receive(&mut VerbsInlet(inlet), &mut receipt, Clock::monotonic()).unwrap()
    });
    assert_eq!((told.counts.files, told.counts.failed), (2, 0), "{told:?}");
    assert!(std::fs::read(to.path().join("long")).unwrap() == bytes);
}
