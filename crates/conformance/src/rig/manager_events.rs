//! Commands on event channels of the connection manager, and on queue pairs that librdmacm creates.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::manager::{library, said};
use super::{Rig, cm, errno, route_words};

impl Rig {
    /// The capacity of a queue pair that librdmacm creates.
    pub(super) const CAP: ibv_qp_cap = ibv_qp_cap {
        max_send_wr: 16,
        max_recv_wr: 16,
        max_send_sge: 4,
        max_recv_sge: 4,
        max_inline_data: 64,
    };

    pub(super) fn manage_pairs(&mut self, command: u64, w: &[u64]) -> Vec<u64> {
        match command {
            cm::CHANNEL => {
                // SAFETY: the function has no preconditions.
                let made = unsafe { (library().rdma_create_event_channel)() };
                super::made(&mut self.manager.channels, made)
            }
            cm::DESTROY_CHANNEL => {
                let channel = std::mem::replace(&mut self.manager.channels[w[0] as usize], null_mut());
                // SAFETY: the channel is alive; its identifiers are destroyed, except in the case
                // that tries a channel in use.
                unsafe { (library().rdma_destroy_event_channel)(channel) };
                vec![0]
            }
            cm::EVENT => self.manager_event(w),
            cm::READY => {
                let fd = self.event_descriptor(w[0]);
                let mut polled = [PollFd::new(&fd, PollFlags::IN)];
                let limit =
                    Timespec { tv_sec: (w[1] / 1000) as i64, tv_nsec: (w[1] % 1000 * 1_000_000) as i64 };
                vec![0, poll(&mut polled, Some(&limit)).expect("a channel can be polled") as u64]
            }
            cm::NONBLOCK => {
                let fd = self.event_descriptor(w[0]);
                rustix::io::ioctl_fionbio(fd, w[1] != 0).expect("a channel is a descriptor");
                vec![0]
            }
            cm::DUPLICATE => self.duplicate(w[0]),
            cm::MIGRATE => {
                let channel = self.manager.channel_or_none(w[1]);
                // SAFETY: the identifier is alive, and the channel is null or alive.
                said(unsafe { (library().rdma_migrate_id)(self.manager.id(w[0]), channel) })
            }
            cm::CREATE_QP => self.create_pair(w),
            cm::PAIR => self.pair(w[0]),
            cm::DESTROY_QP => {
                self.release_pair(w[0] as usize);
                vec![0]
            }
            cm::OWN_EVENT => {
                // SAFETY: the identifier is alive.
                let event = unsafe { (*self.manager.id(w[0])).event };
                if event.is_null() { vec![libc::ENOENT as u64] } else { self.event_words(event) }
            }
            other => panic!("no command {other}"),
        }
    }

    fn event_descriptor(&self, channel: u64) -> BorrowedFd<'_> {
        // SAFETY: the channel is alive, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw((*self.manager.channels[channel as usize]).fd) }
    }

    /// Replaces a channel's descriptor by a duplicate, and closes the first one.
    fn duplicate(&mut self, channel: u64) -> Vec<u64> {
        // Programs call `dup`, so that function is tested.
        // SAFETY: the descriptor is open, and the duplicate has no other owner.
        let made = unsafe { libc::dup(self.event_descriptor(channel).as_raw_fd()) };
        if made < 0 {
            return vec![errno()];
        }
        // SAFETY: the channel is alive, and takes any descriptor of its kind.
        let before = unsafe { std::mem::replace(&mut (*self.manager.channels[channel as usize]).fd, made) };
        // SAFETY: the channel now uses the duplicate, so this descriptor has no other owner.
        drop(unsafe { OwnedFd::from_raw_fd(before) });
        vec![0]
    }

    /// Takes the next event of a channel, and acknowledges it.
    fn manager_event(&mut self, w: &[u64]) -> Vec<u64> {
        let mut event = null_mut();
        // SAFETY: the channel is alive and the result is writable.
        let returned =
            unsafe { (library().rdma_get_cm_event)(self.manager.channels[w[0] as usize], &raw mut event) };
        if returned != 0 {
            return said(returned);
        }
        let words = self.event_words(event);
        // SAFETY: the event was just taken, and is not used afterwards.
        unsafe { (library().rdma_ack_cm_event)(event) };
        words
    }

    /// Returns an event as words: kind, status, identifier, listener + 1, parameters of a
    /// connection (7) and of datagrams (2 and a route), private data.
    fn event_words(&mut self, event: *mut rdma_cm_event) -> Vec<u64> {
        // SAFETY: the event is not acknowledged yet, and its identifiers are alive.
        let (event, is_datagram) = unsafe { (&*event, (*(*event).id).qp_type == IBV_QPT_UD) };
        let listener = if event.listen_id.is_null() { 0 } else { self.manager.number(event.listen_id) + 1 };
        let status = i64::from(event.status) as u64;
        let mut words = vec![0, event.event.into(), status, self.manager.number(event.id), listener];
        // SAFETY: both members of the union begin with these fields.
        let (data, len) = unsafe { (event.param.conn.private_data, event.param.conn.private_data_len) };
        if is_datagram {
            // SAFETY: events of an identifier for UD have this member.
            let ud = unsafe { event.param.ud };
            words.extend([0; 7]);
            words.extend([ud.qp_num, ud.qkey].map(u64::from));
            words.extend(route_words(&ud.ah_attr));
        } else {
            // SAFETY: events of all other identifiers have this member.
            let conn = unsafe { event.param.conn };
            let small = [conn.responder_resources, conn.initiator_depth, conn.flow_control];
            let counts = [conn.retry_count, conn.rnr_retry_count, conn.srq];
            words.extend(small.into_iter().chain(counts).map(u64::from));
            words.push(conn.qp_num.into());
            words.extend([0; 11]);
        }
        let data = if data.is_null() {
            &[][..]
        } else {
            // SAFETY: the data has `len` bytes until the event is acknowledged.
            unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len.into()) }
        };
        words.extend(data.iter().map(|byte| u64::from(*byte)));
        words
    }

    /// Has librdmacm create a queue pair for an identifier, in librdmacm's domain and with its
    /// completion queues.
    fn create_pair(&mut self, w: &[u64]) -> Vec<u64> {
        // SAFETY: all-zero bytes are a valid ibv_qp_init_attr: integers and null pointers.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.cap = Self::CAP;
        init.qp_type = w[1] as u32;
        // SAFETY: the identifier is alive and the attributes are writable.
        let returned: c_int =
            unsafe { (library().rdma_create_qp)(self.manager.id(w[0]), null_mut(), &raw mut init) };
        if returned == 0 { self.pair(w[0]) } else { said(returned) }
    }

    fn pair(&mut self, id: u64) -> Vec<u64> {
        fn number<T>(list: &mut Vec<*mut T>, object: *mut T) -> u64 {
            let known = list.iter().position(|other| *other == object);
            known.unwrap_or_else(|| {
                list.push(object);
                list.len() - 1
            }) as u64
        }
        // SAFETY: the identifier is alive.
        let id = unsafe { &*self.manager.id(id) };
        if id.qp.is_null() {
            return vec![libc::ENOENT as u64];
        }
        let pd = number(&mut self.domains, id.pd);
        self.manager.domains.push(id.pd);
        let queues = [id.send_cq, id.recv_cq].map(|queue| number(&mut self.queues, queue));
        // SAFETY: the queue pair is alive.
        let qp_num = unsafe { (*id.qp).qp_num };
        vec![0, pd, queues[0], queues[1], number(&mut self.pairs, id.qp), qp_num.into()]
    }

    /// Destroys an identifier's queue pair, where it has one.
    fn release_pair(&mut self, i: usize) {
        let raw = self.manager.ids[i];
        if raw.is_null() {
            return;
        }
        // SAFETY: the identifier is alive.
        let id = unsafe { &*raw };
        if id.qp.is_null() {
            return;
        }
        forget(&mut self.pairs, id.qp);
        forget(&mut self.queues, id.send_cq);
        forget(&mut self.queues, id.recv_cq);
        // SAFETY: the identifier is alive and has a queue pair.
        unsafe { (library().rdma_destroy_qp)(raw) };
    }

    /// Destroys the queue pairs of librdmacm, before the rig destroys its own objects.
    pub(super) fn release_pairs(&mut self) {
        for i in 0..self.manager.ids.len() {
            self.release_pair(i);
        }
    }

    /// Destroys identifiers and channels; their domains must be empty.
    pub(super) fn release_identifiers(&mut self) {
        for id in std::mem::take(&mut self.manager.ids).into_iter().filter(|id| !id.is_null()) {
            // SAFETY: the identifier is alive, and its events were acknowledged or are its own.
            unsafe { (library().rdma_destroy_id)(id) };
        }
        for channel in std::mem::take(&mut self.manager.channels).into_iter().filter(|c| !c.is_null()) {
            // SAFETY: the channel is alive, and its identifiers are destroyed.
            unsafe { (library().rdma_destroy_event_channel)(channel) };
        }
    }

    /// Removes librdmacm's domains from the rig's list: librdmacm destroys them.
    pub(super) fn forget_domains(&mut self) {
        for domain in self.manager.domains.drain(..) {
            forget(&mut self.domains, domain);
        }
    }
}

/// Removes an object that has another owner from a list of objects to destroy.
fn forget<T>(list: &mut [*mut T], object: *mut T) {
    list.iter_mut().filter(|other| **other == object).for_each(|other| *other = null_mut());
}
