//! Commands on shared receive queues.

use std::ptr::null_mut;

use verbs::abi::*;

use super::{Rig, made};

impl Rig {
    /// Words: domain, receives, elements.
    pub(super) fn create_srq(&mut self, w: &[u64]) -> Vec<u64> {
        let attr = ibv_srq_attr { max_wr: w[1] as u32, max_sge: w[2] as u32, srq_limit: 0 };
        let mut init = ibv_srq_init_attr { srq_context: null_mut(), attr };
        // SAFETY: the domain is alive and the attributes are writable.
        let srq = unsafe { (self.provider.create_srq)(self.domains[w[0] as usize], &raw mut init) };
        made(&mut self.shared_queues, srq)
    }

    /// Words: queue, mask, receives, limit.
    pub(super) fn modify_srq(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = ibv_srq_attr { max_wr: w[2] as u32, max_sge: 0, srq_limit: w[3] as u32 };
        let srq = self.shared_queues[w[0] as usize];
        // SAFETY: the queue is alive and the attributes are readable.
        let returned = unsafe { (self.provider.modify_srq)(srq, &raw mut attr, w[1] as i32) };
        vec![if returned == -1 { super::errno() } else { u64::from(returned.unsigned_abs()) }]
    }

    /// Returns receives, elements and limit.
    pub(super) fn query_srq(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = ibv_srq_attr::default();
        // SAFETY: the queue is alive and the attributes are writable.
        let returned = unsafe { (self.provider.query_srq)(self.shared_queues[w[0] as usize], &raw mut attr) };
        let words = [attr.max_wr, attr.max_sge, attr.srq_limit].map(u64::from);
        std::iter::once(u64::from(returned.unsigned_abs())).chain(words).collect()
    }

    /// Posts receives to a shared queue; the words are as for `receive`.
    pub(super) fn receive_shared(&mut self, w: &[u64]) -> Vec<u64> {
        let srq = self.shared_queues[w[0] as usize];
        // SAFETY: the context is open.
        let post = unsafe { (*self.context).ops.post_srq_recv }.expect("a provider fills post_srq_recv");
        // SAFETY: the queue is alive; requests and elements are readable.
        self.post_receives(w, |requests, bad| unsafe { post(srq, requests, bad) })
    }
}
