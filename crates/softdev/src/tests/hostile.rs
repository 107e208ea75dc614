//! A peer that writes any value anywhere in the shared memory while this process works.
//!
//! What must hold: no access outside the arena and the registered memory (the process would end, or
//! the bytes around the registered ones would change), and every verb returns. Which requests
//! complete, and with what status, is not defined.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use verbs::abi::*;

use crate::PROVIDER;
use crate::memory::layout::TABLES;
use crate::transport::local::host::host;

/// Makes the test program the victim, the process whose arena is overwritten. The arena is unusable
/// afterwards.
const VICTIM: &str = "RDMASCOPE_SOFTDEV_VICTIM";
/// How long the arena is overwritten, and how long the victim may take to end.
const SCRIBBLING: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes behind the tables that are overwritten as well: lanes and posted receives.
const BEHIND: u64 = 1 << 20;
/// The size of a message, and the value of the bytes around the registered memory.
const BYTES: usize = 256;
const MARK: u8 = 0x5a;

#[test]
fn whatever_a_peer_writes_nothing_else_is_touched() {
    if let Ok(seed) = std::env::var(VICTIM) {
        return victim(seed.parse().expect("a seed"));
    }
    for seed in 1..=2_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "tests::hostile::whatever_a_peer_writes_nothing_else_is_touched",
                "--nocapture",
            ])
            .env(VICTIM, seed.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("with seed {seed} a verb did not return");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "with seed {seed}: {status}");
    }
}

/// Random numbers (xorshift64; Marsaglia 2003).
struct Lot(u64);

impl Lot {
    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a value that the process might accept: small, large, random, or derived from the
    /// present one.
    fn value(&mut self, there: u64) -> u64 {
        match self.draw() % 6 {
            0 => self.draw(),
            1 => self.draw() % 64,
            2 => u64::MAX - self.draw() % 64,
            3 => there ^ 1 << (self.draw() % 64),
            4 => there.wrapping_add(1 << 32),
            _ => ((self.draw() % 8) << 32) | (self.draw() % 5),
        }
    }
}

/// Writes to the arena until `ends` is set.
fn scribble(seed: u64, ends: &AtomicBool) {
    let mut lot = Lot(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let view = &host().unwrap().arena.view;
    let mut used = Vec::new();
    while !ends.load(Relaxed) {
        // A word in use is a better target than an empty one.
        let anywhere = lot.draw() % ((TABLES + BEHIND) / 8) * 8;
        let offset = match lot.draw() % 4 {
            0 | 1 if !used.is_empty() => used[lot.draw() as usize % used.len()],
            2 => TABLES + lot.draw() % (BEHIND / 8) * 8,
            _ => anywhere,
        };
        let at = view.at(offset, 8).unwrap().cast::<u64>();
        // SAFETY: the word lies in this process's arena, which is never unmapped, and is aligned;
        // everything there is atomic.
        let word = unsafe { AtomicU64::from_ptr(at.as_ptr()) };
        let there = word.load(Relaxed);
        if there != 0 && used.len() < 4096 {
            used.push(offset);
        }
        word.store(lot.value(there), SeqCst);
        if lot.draw().is_multiple_of(64) {
            std::thread::yield_now();
        }
    }
}

fn victim(seed: u64) {
    let mut around = vec![MARK; 3 * BYTES];
    // SAFETY: objects are made and destroyed in order, and the bytes outlive their registration.
    unsafe {
        let context = (PROVIDER.open_device)(*(PROVIDER.get_device_list)(std::ptr::null_mut()));
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| scribble(seed, &ends));
            let start = Instant::now();
            while start.elapsed() < SCRIBBLING {
                round(context, around.as_mut_ptr().add(BYTES));
            }
            ends.store(true, SeqCst);
        });
    }
    let outside = around[..BYTES].iter().chain(&around[2 * BYTES..]);
    assert!(outside.copied().all(|byte| byte == MARK), "bytes around the registered ones have changed");
}

/// Does everything that a connection of this process with itself can do, whether it succeeds or
/// not.
///
/// # Safety
/// The context is open; [`BYTES`] are readable and writable at `buffer`.
unsafe fn round(context: *mut ibv_context, buffer: *mut u8) {
    // SAFETY: as the caller guarantees; an object that was not made is not used.
    unsafe {
        let pd = (PROVIDER.alloc_pd)(context);
        let cq = (PROVIDER.create_cq)(context, 64, std::ptr::null_mut(), std::ptr::null_mut(), 0);
        let access = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_ATOMIC;
        let mr = (PROVIDER.reg_mr)(pd, buffer.cast(), BYTES, access.cast_signed());
        assert!(!cq.is_null() && !mr.is_null());
        for service in [IBV_QPT_RC, IBV_QPT_UC] {
            let mut init: ibv_qp_init_attr = std::mem::zeroed();
            (init.send_cq, init.recv_cq, init.qp_type, init.sq_sig_all) = (cq, cq, service, 1);
            (init.cap.max_send_wr, init.cap.max_recv_wr) = (16, 16);
            (init.cap.max_send_sge, init.cap.max_recv_sge) = (1, 1);
            let pair = [(); 2].map(|()| (PROVIDER.create_qp)(pd, &raw mut init));
            assert!(pair.iter().all(|qp| !qp.is_null()));
            connect(context, pair, access);
            for turn in 0..8 {
                exchange(pair, mr, buffer as u64, turn);
                let mut room: [ibv_wc; 16] = std::mem::zeroed();
                let poll = (*context).ops.poll_cq.unwrap();
                for _ in 0..20 {
                    poll(cq, 16, room.as_mut_ptr());
                }
            }
            for qp in pair {
                (PROVIDER.destroy_qp)(qp);
            }
        }
        (PROVIDER.dereg_mr)(mr);
        (PROVIDER.destroy_cq)(cq);
        (PROVIDER.dealloc_pd)(pd);
    }
}

/// # Safety
/// The queue pairs are alive.
unsafe fn connect(context: *mut ibv_context, pair: [*mut ibv_qp; 2], access: u32) {
    let mut gid = ibv_gid::default();
    // SAFETY: as the caller guarantees; if a change of state is refused, the next ones are refused
    // as well.
    unsafe {
        (PROVIDER.query_gid)(context, 1, 0, &raw mut gid);
        for (qp, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let mut attr = ibv_qp_attr {
                qp_state: IBV_QPS_INIT,
                port_num: 1,
                qp_access_flags: access,
                dest_qp_num: (*other).qp_num,
                path_mtu: IBV_MTU_4096,
                max_rd_atomic: 4,
                max_dest_rd_atomic: 4,
                timeout: 8,
                retry_cnt: 1,
                rnr_retry: 1,
                min_rnr_timer: 1,
                ..ibv_qp_attr::default()
            };
            (attr.ah_attr.is_global, attr.ah_attr.port_num, attr.ah_attr.grh.dgid) = (1, 1, gid);
            let init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
            (PROVIDER.modify_qp)(qp, &raw mut attr, init.cast_signed());
            let mut mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
            let mut last = IBV_QP_STATE | IBV_QP_SQ_PSN;
            if (*qp).qp_type == IBV_QPT_RC {
                mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
                last |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
            }
            attr.qp_state = IBV_QPS_RTR;
            (PROVIDER.modify_qp)(qp, &raw mut attr, mask.cast_signed());
            attr.qp_state = IBV_QPS_RTS;
            (PROVIDER.modify_qp)(qp, &raw mut attr, last.cast_signed());
        }
    }
}

/// # Safety
/// The queue pairs and the region are alive.
unsafe fn exchange(pair: [*mut ibv_qp; 2], mr: *mut ibv_mr, addr: u64, turn: u32) {
    // SAFETY: as the caller guarantees; a request may be refused.
    unsafe {
        let ops = &(*(*pair[0]).context).ops;
        let post_send = ops.post_send.unwrap();
        let post_recv = ops.post_recv.unwrap();
        let length = [8, BYTES as u32, 32, 40][turn as usize % 4];
        let mut sge = ibv_sge { addr, length, lkey: (*mr).lkey };
        let mut receive =
            ibv_recv_wr { wr_id: 1, next: std::ptr::null_mut(), sg_list: &raw mut sge, num_sge: 1 };
        let mut bad_receive = std::ptr::null_mut();
        post_recv(pair[1], &raw mut receive, &raw mut bad_receive);
        for opcode in [
            IBV_WR_SEND,
            IBV_WR_RDMA_WRITE,
            IBV_WR_RDMA_WRITE_WITH_IMM,
            IBV_WR_RDMA_READ,
            IBV_WR_ATOMIC_FETCH_AND_ADD,
        ] {
            let mut request: ibv_send_wr = std::mem::zeroed();
            (request.opcode, request.sg_list, request.num_sge) = (opcode, &raw mut sge, 1);
            if opcode == IBV_WR_ATOMIC_FETCH_AND_ADD {
                sge.length = 8;
                request.wr.atomic =
                    ibv_wr_atomic { remote_addr: addr, compare_add: 1, swap: 0, rkey: (*mr).rkey };
            } else {
                request.wr.rdma = ibv_wr_rdma { remote_addr: addr, rkey: (*mr).rkey };
            }
            let mut bad = std::ptr::null_mut();
            post_send(pair[0], &raw mut request, &raw mut bad);
        }
    }
}
