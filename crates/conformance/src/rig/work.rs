//! Commands for work requests, completions and the bytes of regions.

use std::ptr::null_mut;

use verbs::abi::*;

use super::{KEY_ZERO, Rig, pattern};

impl Rig {
    pub(crate) fn element(&self, w: &[u64]) -> ibv_sge {
        let region = &self.regions[w[0] as usize];
        let lkey = match w[3] {
            0 => region.lkey,
            KEY_ZERO => 0,
            key => key as u32,
        };
        ibv_sge { addr: (region.addr as u64).wrapping_add(w[1]), length: w[2] as u32, lkey }
    }

    /// Posts a list of send requests. Returns the error and the position of the request that
    /// `bad_wr` points to.
    ///
    /// Words of a request: identifier, flags, opcode, immediate, address handle (0 for none, else
    /// its number + 1), queue-pair number, Q_Key, remote address, remote key, operand to compare or
    /// to add, operand to swap in, number of elements, the elements.
    pub(super) fn send(&mut self, w: &[u64]) -> Vec<u64> {
        let qp = self.pairs[w[0] as usize];
        let count = w[1] as usize;
        let mut lists: Vec<Vec<ibv_sge>> = Vec::new();
        let mut requests: Vec<ibv_send_wr> = Vec::new();
        let mut rest = &w[2..];
        for _ in 0..count {
            let elements = rest[11] as usize;
            lists.push(rest[12..12 + 4 * elements].chunks(4).map(|e| self.element(e)).collect());
            // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
            let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
            (wr.wr_id, wr.send_flags, wr.opcode) = (rest[0], rest[1] as u32, rest[2] as u32);
            (wr.imm_data, wr.num_sge) = (rest[3] as u32, elements as i32);
            let remote_addr = rest[7];
            let rkey = rest[8] as u32;
            if rest[4] != 0 {
                let ah = self.handles[rest[4] as usize - 1];
                wr.wr.ud = ibv_wr_ud { ah, remote_qpn: rest[5] as u32, remote_qkey: rest[6] as u32 };
            } else if matches!(wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD) {
                wr.wr.atomic = ibv_wr_atomic { remote_addr, compare_add: rest[9], swap: rest[10], rkey };
            } else {
                wr.wr.rdma = ibv_wr_rdma { remote_addr, rkey };
            }
            requests.push(wr);
            rest = &rest[12 + 4 * elements..];
        }
        for (wr, list) in requests.iter_mut().zip(&mut lists) {
            wr.sg_list = list.as_mut_ptr();
        }
        for i in (1..count).rev() {
            requests[i - 1].next = &raw mut requests[i];
        }
        let mut bad = null_mut();
        // SAFETY: the context is open.
        let post = unsafe { (*self.context).ops.post_send }.expect("a provider fills post_send");
        // SAFETY: the queue pair is alive; requests, elements and inline bytes are readable.
        let returned = unsafe { post(qp, requests.as_mut_ptr(), &raw mut bad) };
        let position = requests.iter().position(|wr| std::ptr::eq(wr, bad));
        // Some providers return a negative error number, against the man page.
        vec![u64::from(returned.unsigned_abs()), position.map_or(u64::MAX, |p| p as u64)]
    }

    pub(super) fn receive(&mut self, w: &[u64]) -> Vec<u64> {
        let qp = self.pairs[w[0] as usize];
        // SAFETY: the context is open.
        let post = unsafe { (*self.context).ops.post_recv }.expect("a provider fills post_recv");
        // SAFETY: the queue pair is alive; requests and elements are readable.
        self.post_receives(w, |requests, bad| unsafe { post(qp, requests, bad) })
    }

    /// Posts a list of receives. Returns the same words as `send`.
    pub(super) fn post_receives(
        &self,
        w: &[u64],
        post: impl FnOnce(*mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> i32,
    ) -> Vec<u64> {
        let count = w[1] as usize;
        let mut lists: Vec<Vec<ibv_sge>> = Vec::new();
        let mut requests: Vec<ibv_recv_wr> = Vec::new();
        let mut rest = &w[2..];
        for _ in 0..count {
            let elements = rest[1] as usize;
            lists.push(rest[2..2 + 4 * elements].chunks(4).map(|e| self.element(e)).collect());
            let wr_id = rest[0];
            let num_sge = elements as i32;
            requests.push(ibv_recv_wr { wr_id, next: null_mut(), sg_list: null_mut(), num_sge });
            rest = &rest[2 + 4 * elements..];
        }
        for (wr, list) in requests.iter_mut().zip(&mut lists) {
            wr.sg_list = list.as_mut_ptr();
        }
        for i in (1..count).rev() {
            requests[i - 1].next = &raw mut requests[i];
        }
        let mut bad = null_mut();
        let returned = post(requests.as_mut_ptr(), &raw mut bad);
        let position = requests.iter().position(|wr| std::ptr::eq(wr, bad));
        vec![u64::from(returned.unsigned_abs()), position.map_or(u64::MAX, |p| p as u64)]
    }

    pub(super) fn poll(&mut self, w: &[u64]) -> Vec<u64> {
        let room = w[1] as usize;
        let mut found: Vec<ibv_wc> = Vec::with_capacity(room);
        // SAFETY: the context is open.
        let poll = unsafe { (*self.context).ops.poll_cq }.expect("a provider fills poll_cq");
        // SAFETY: the queue is alive and `found` has capacity for `room` completions.
        let n = unsafe { poll(self.queues[w[0] as usize], room as i32, found.as_mut_ptr()) };
        if n < 0 {
            return vec![u64::from(n.unsigned_abs())];
        }
        // SAFETY: the device wrote the first `n` completions.
        unsafe { found.set_len(n as usize) };
        let mut answer = vec![0];
        for wc in found {
            answer.push(wc.wr_id);
            answer.extend(
                [wc.status, wc.opcode, wc.byte_len, wc.imm_data, wc.qp_num, wc.src_qp, wc.wc_flags]
                    .map(u64::from),
            );
            answer.push(u64::from(wc.slid));
        }
        answer
    }

    pub(super) fn fill(&mut self, w: &[u64]) -> Vec<u64> {
        let (at, len) = self.bytes(w);
        let bytes: Vec<u8> = (0..len).map(|i| pattern(w[3], i)).collect();
        // SAFETY: the range lies in the region.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, len) };
        vec![0]
    }

    /// Sets eight bytes: region, offset, value.
    pub(super) fn put(&mut self, w: &[u64]) -> Vec<u64> {
        let (at, _) = self.bytes(&[w[0], w[1], 8]);
        // SAFETY: the range lies in the region.
        unsafe { at.cast::<u64>().write_unaligned(w[2]) };
        vec![0]
    }

    /// Returns the position of the first byte that differs from the pattern of `fill`, or all ones.
    pub(super) fn check(&mut self, w: &[u64]) -> Vec<u64> {
        let bytes = self.copy(w);
        let first = w[4] as usize;
        let wrong = (0..bytes.len()).find(|i| bytes[*i] != pattern(w[3], first + i));
        vec![0, wrong.map_or(u64::MAX, |i| i as u64)]
    }

    pub(super) fn read(&mut self, w: &[u64]) -> Vec<u64> {
        std::iter::once(0).chain(self.copy(w).into_iter().map(u64::from)).collect()
    }

    pub(super) fn copy(&self, w: &[u64]) -> Vec<u8> {
        let (at, len) = self.bytes(w);
        let mut bytes = vec![0; len];
        // SAFETY: the range lies in the region.
        unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), len) };
        bytes
    }

    pub(super) fn bytes(&self, w: &[u64]) -> (*mut u8, usize) {
        let region = &self.regions[w[0] as usize];
        let offset = w[1] as usize;
        let len = w[2] as usize;
        assert!(offset + len <= region.len, "bytes outside the region");
        // SAFETY: the sum was just checked.
        (unsafe { region.addr.add(offset) }, len)
    }
}
