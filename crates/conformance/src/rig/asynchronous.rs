//! Asynchronous events, and multicast groups.

use std::os::fd::BorrowedFd;

use verbs::abi::*;

use super::{Rig, errno, gid_of, op};

impl Rig {
    pub(super) fn aside(&mut self, command: u64, w: &[u64]) -> Vec<u64> {
        match command {
            op::ASYNC => self.async_event(),
            op::ASYNC_ACK => {
                let event = &raw mut self.events[w[0] as usize];
                // SAFETY: the event was taken, and its object is alive: its destruction waits for
                // the acknowledgement.
                unsafe { (self.provider.ack_async_event)(event) };
                vec![0]
            }
            op::ASYNC_NONBLOCK => {
                // SAFETY: the context is open, and its descriptor as long.
                let fd = unsafe { BorrowedFd::borrow_raw((*self.context).async_fd) };
                rustix::io::ioctl_fionbio(fd, w[0] != 0).expect("events come through a descriptor");
                vec![0]
            }
            op::ATTACH => self.membership(self.provider.attach_mcast, w),
            op::DETACH => self.membership(self.provider.detach_mcast, w),
            other => panic!("no command {other}"),
        }
    }

    fn membership(
        &mut self,
        verb: unsafe extern "C" fn(*mut ibv_qp, *const ibv_gid, u16) -> i32,
        w: &[u64],
    ) -> Vec<u64> {
        let gid = ibv_gid { raw: gid_of([w[1], w[2]]) };
        let lid = if self.lid == 0 { 0 } else { op::GROUP_LID };
        // SAFETY: the queue pair is alive and the GID readable.
        let returned = unsafe { verb(self.pairs[w[0] as usize], &raw const gid, lid) };
        vec![if returned == -1 { errno() } else { u64::from(returned.unsigned_abs()) }]
    }

    /// Takes an event. Returns its number, its type and its object: the number of the object or of
    /// the port.
    fn async_event(&mut self) -> Vec<u64> {
        let element = ibv_async_element { port_num: 0 };
        let mut event = ibv_async_event { element, event_type: u32::MAX };
        // SAFETY: the context is open and the event is writable.
        if unsafe { (self.provider.get_async_event)(self.context, &raw mut event) } != 0 {
            return vec![errno()];
        }
        let find = |found: Option<usize>| found.expect("an event names an object of its context") as u64;
        // SAFETY: the type says which member was written.
        let object = unsafe {
            match event.event_type {
                IBV_EVENT_CQ_ERR => find(self.queues.iter().position(|cq| *cq == event.element.cq)),
                IBV_EVENT_QP_FATAL..=IBV_EVENT_PATH_MIG_ERR | IBV_EVENT_QP_LAST_WQE_REACHED => {
                    find(self.pairs.iter().position(|qp| *qp == event.element.qp))
                }
                IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => {
                    find(self.shared_queues.iter().position(|srq| *srq == event.element.srq))
                }
                _ => event.element.port_num as u64,
            }
        };
        let event_type = u64::from(event.event_type);
        self.events.push(event);
        vec![0, self.events.len() as u64 - 1, event_type, object]
    }
}
