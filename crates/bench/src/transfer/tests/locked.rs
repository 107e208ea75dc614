//! A device that registers no more than so much memory, as where RLIMIT_MEMLOCK is small.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use measure::clock::Clock;
use verbs::Provider;
use verbs::abi::{ibv_mr, ibv_pd};

use crate::transfer::link::verbs::{Unconnected, Wanted};
use crate::verbs_endpoint::{PortOptions, RankDevice};

/// How much may be registered in all, in bytes.
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

static LIMITED: Provider = Provider { reg_mr, dereg_mr, ..softdev::PROVIDER };

#[test]
fn where_little_memory_can_be_registered_blocks_are_fewer_and_smaller_and_that_is_said() {
    static PROVIDERS: &[&Provider] = &[&LIMITED];
    let mut device = RankDevice::new(PROVIDERS, None, PortOptions::default());
    let open = device.open().unwrap();
    let made = |block_bytes, depth| {
        let wanted = Wanted { is_source: false, pairs: 1, block_bytes, depth, keeps_registrations: true };
        let end = Unconnected::new(open, wanted, Clock::monotonic()).unwrap();
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
}
