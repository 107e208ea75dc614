//! Completion channels: arms queues and waits for their events.

use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use super::{Rig, errno, made};

impl Rig {
    pub(super) fn create_channel(&mut self) -> Vec<u64> {
        // SAFETY: the context is open.
        made(&mut self.channels, unsafe { (self.provider.create_comp_channel)(self.context) })
    }

    pub(super) fn arm(&mut self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let arm = unsafe { (*self.context).ops.req_notify_cq }.expect("a provider fills req_notify_cq");
        // SAFETY: the queue is alive.
        vec![unsafe { arm(self.queues[w[0] as usize], w[1] as i32) } as u64]
    }

    pub(super) fn event(&mut self, w: &[u64]) -> Vec<u64> {
        let mut cq = null_mut();
        let mut context = null_mut();
        let channel = self.channels[w[0] as usize];
        // SAFETY: the channel is alive and both results are writable.
        if unsafe { (self.provider.get_cq_event)(channel, &raw mut cq, &raw mut context) } != 0 {
            return vec![errno()];
        }
        let position = self.queues.iter().position(|other| *other == cq);
        vec![0, position.expect("an event names a queue of its channel") as u64]
    }

    pub(super) fn channel(&self, i: u64) -> BorrowedFd<'_> {
        // SAFETY: the channel is alive, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw((*self.channels[i as usize]).fd) }
    }

    pub(super) fn ready(&mut self, w: &[u64]) -> Vec<u64> {
        let fd = self.channel(w[0]);
        let mut polled = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec {
            tv_sec: (w[1] / 1000) as i64,
            tv_nsec: (w[1] % 1000 * 1_000_000) as i64,
        };
        vec![0, rustix::event::poll(&mut polled, Some(&limit)).expect("a channel can be polled") as u64]
    }
}
