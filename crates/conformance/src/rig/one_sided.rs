//! Loops of one-sided operations that are too fast for a command each.

use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use verbs::abi::*;

use super::{Rig, pattern};

/// Returns the last byte of the message of round `n`: never the byte of the round before, nor 0,
/// the initial value of memory.
fn mark(n: u64) -> u8 {
    1 + (n % 200) as u8
}

impl Rig {
    /// Watches the last byte of a range, without calling any verb, until it has a value. Returns 0,
    /// or 110 (ETIMEDOUT).
    ///
    /// Words: region, offset, length, value, milliseconds.
    pub(super) fn await_last_byte(&mut self, w: &[u64]) -> Vec<u64> {
        let (at, len) = self.bytes(w);
        // SAFETY: the range lies in the region and is not empty.
        let last = unsafe { at.add(len - 1) };
        vec![if watch(last, w[3] as u8, w[4]) { 0 } else { libc::ETIMEDOUT as u64 }]
    }

    /// Alternately writes to the peer and waits for its write. It watches only the last byte; the
    /// other bytes must have arrived before it. Returns the number of rounds that succeeded.
    ///
    /// Words: queue pair, send queue, region, bytes of a message, rounds, 1 for the node that
    /// begins, remote address, remote key, milliseconds. The region holds the outgoing message,
    /// and behind it the incoming one.
    pub(super) fn volley(&mut self, w: &[u64]) -> Vec<u64> {
        let [qp, cq, region, size, rounds, begins, addr, key, ms] = w[..9] else { panic!("nine words") };
        let (out, _) = self.bytes(&[region, 0, size]);
        let (came, len) = self.bytes(&[region, size, size]);
        for n in 0..rounds {
            if begins == 0 && !self.arrives(came, len, n, ms) {
                return vec![0, n];
            }
            let bytes: Vec<u8> = (0..len - 1).map(|i| pattern(n, i)).chain([mark(n)]).collect();
            // SAFETY: the message lies in the region, and the last one has been sent.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out, len) };
            let flags = u64::from(IBV_SEND_SIGNALED);
            let head = [qp, 1, n, flags, u64::from(IBV_WR_RDMA_WRITE), 0, 0, 0, 0, addr, key, 0, 0, 1];
            let answer = self.send(&[&head[..], &[region, 0, size, 0]].concat());
            assert_eq!(answer[0], 0, "post_send");
            if self.completed(cq, ms) != Some(u64::from(IBV_WC_SUCCESS)) {
                return vec![0, n];
            }
            if begins == 1 && !self.arrives(came, len, n, ms) {
                return vec![0, n];
            }
        }
        vec![0, rounds]
    }

    fn arrives(&self, at: *const u8, len: usize, n: u64, ms: u64) -> bool {
        // SAFETY: the range lies in a region.
        if !watch(unsafe { at.add(len - 1) }, mark(n), ms) {
            return false;
        }
        // SAFETY: as above; the device has finished writing to it.
        let found = unsafe { std::slice::from_raw_parts(at, len - 1) };
        let wrong = (0..len - 1).find(|i| found[*i] != pattern(n, *i));
        assert_eq!(wrong, None, "the last byte was seen before byte {wrong:?} of {len} in round {n}");
        true
    }

    /// Returns the status of the next completion, or `None` after `ms` milliseconds.
    fn completed(&mut self, cq: u64, ms: u64) -> Option<u64> {
        let end = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < end {
            if let Some(status) = self.poll(&[cq, 1]).get(2) {
                return Some(*status);
            }
        }
        None
    }

    /// Repeatedly adds one to a remote word. Returns the number of additions and the sum of the
    /// values before each.
    ///
    /// Words: queue pair, send queue, region, offset of the local word, remote address, remote key,
    /// milliseconds to add for, 1 to add by compare-and-swap, milliseconds to wait for a
    /// completion.
    pub(super) fn count(&mut self, w: &[u64]) -> Vec<u64> {
        let [qp, cq, region, offset, addr, key, time, by_swap, ms] = w[..9] else {
            panic!("nine words");
        };
        let (local, _) = self.bytes(&[region, offset, 8]);
        let end = Instant::now() + Duration::from_millis(time);
        let mut sum = 0_u64;
        let mut done = 0;
        let mut guess = 0_u64;
        while Instant::now() < end {
            let (opcode, first, second) = match by_swap {
                0 => (IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0),
                _ => (IBV_WR_ATOMIC_CMP_AND_SWP, guess, guess.wrapping_add(1)),
            };
            let flags = u64::from(IBV_SEND_SIGNALED);
            let head = [qp, 1, done, flags, u64::from(opcode), 0, 0, 0, 0, addr, key, first, second, 1];
            let answer = self.send(&[&head[..], &[region, offset, 8, 0]].concat());
            assert_eq!(answer[0], 0, "post_send");
            assert_eq!(self.completed(cq, ms), Some(u64::from(IBV_WC_SUCCESS)), "an atomic");
            // SAFETY: the word lies in the region.
            let before = unsafe { local.cast::<u64>().read_unaligned() };
            let added = by_swap == 0 || before == guess;
            if added {
                sum = sum.wrapping_add(before);
                done += 1;
            }
            guess = before.wrapping_add(u64::from(added));
        }
        vec![0, done, sum]
    }

    /// Repeatedly adds one to a local word by atomics of the CPU. Returns the same words as
    /// `count`.
    ///
    /// Words: region, offset, milliseconds.
    pub(super) fn increment(&mut self, w: &[u64]) -> Vec<u64> {
        let (at, _) = self.bytes(&[w[0], w[1], 8]);
        // SAFETY: the word lies in the region, and cases use aligned words.
        let word = unsafe { AtomicU64::from_ptr(at.cast()) };
        let end = Instant::now() + Duration::from_millis(w[2]);
        let mut sum = 0_u64;
        let mut done = 0;
        while Instant::now() < end {
            sum = sum.wrapping_add(word.fetch_add(1, SeqCst));
            done += 1;
        }
        vec![0, done, sum]
    }
}

/// Waits until a byte has a value; the bytes that were written before it can then be read. Returns
/// false after `ms` milliseconds.
fn watch(at: *const u8, value: u8, ms: u64) -> bool {
    // SAFETY: the byte lies in a region; the device writes to it meanwhile.
    let byte = unsafe { std::sync::atomic::AtomicU8::from_ptr(at.cast_mut()) };
    let end = Instant::now() + Duration::from_millis(ms);
    while byte.load(Acquire) != value {
        for _ in 0..1000 {
            std::hint::spin_loop();
        }
        if Instant::now() > end {
            return byte.load(Acquire) == value;
        }
        // The thread that writes may need this CPU.
        std::thread::yield_now();
    }
    follow(at);
    true
}

/// Orders later reads after all writes that preceded the last byte. On a CPU, the load of the byte
/// suffices. The language, and with it a race detector, only orders accesses of one size, and
/// softdev stores the last bytes as one aligned word.
fn follow(at: *const u8) {
    let aligned = |bytes: usize| at.map_addr(|addr| addr & !(bytes - 1)).cast_mut();
    // SAFETY: a region consists of whole pages, so an aligned word around one of its bytes lies in
    // it. In this process only atomics write to it.
    unsafe {
        AtomicU16::from_ptr(aligned(2).cast()).load(Acquire);
        AtomicU32::from_ptr(aligned(4).cast()).load(Acquire);
        AtomicU64::from_ptr(aligned(8).cast()).load(Acquire);
    }
}
