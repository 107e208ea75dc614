//! The verbs objects of a node, behind a table of commands.
//!
//! A command and its answer are rows of integers, so that a node can be in this process or behind a
//! pipe, and so that cases can try calls that the safe wrapper forbids. All calls use the
//! provider's table and the context's operations, as a C program does. Objects are numbered in the
//! order of creation.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

use verbs::Provider;
use verbs::abi::*;

use crate::subject::Subject;

mod ask;
mod asynchronous;
mod channels;
mod commands;
mod exchange;
mod extended;
mod identifiers;
pub(crate) mod librdmacm;
pub mod loan;
mod manager;
mod manager_events;
mod memory;
mod one_sided;
mod region;
mod srq;
mod words;
mod work;

pub use commands::{Element, KEY_ZERO, WC_WORDS, cm, op, wr};
pub use region::Memory;
pub use words::{address, address_words, attribute_words, attributes, gid_of, gid_words, route, route_words};

use identifiers::Identifiers;
use region::Region;

/// Verbs objects of one context.
pub struct Rig {
    provider: &'static Provider,
    port: u8,
    gid_index: u8,
    /// The port's LID; 0 on Ethernet.
    lid: u16,
    context: *mut ibv_context,
    domains: Vec<*mut ibv_pd>,
    channels: Vec<*mut ibv_comp_channel>,
    queues: Vec<*mut ibv_cq>,
    regions: Vec<Region>,
    pairs: Vec<*mut ibv_qp>,
    handles: Vec<*mut ibv_ah>,
    shared_queues: Vec<*mut ibv_srq>,
    /// The asynchronous events that were taken.
    events: Vec<ibv_async_event>,
    manager: Identifiers,
}

// SAFETY: verbs are thread-safe, and only one owner at a time uses a rig's lists.
unsafe impl Send for Rig {}

impl Rig {
    /// Opens a device.
    pub fn open(subject: &Subject) -> Self {
        let context = open(subject.provider, &subject.device);
        Self {
            provider: subject.provider,
            port: subject.origin.port,
            gid_index: subject.origin.gid_index,
            lid: port_of(subject, context).lid,
            context,
            domains: Vec::new(),
            channels: Vec::new(),
            queues: Vec::new(),
            regions: Vec::new(),
            pairs: Vec::new(),
            handles: Vec::new(),
            shared_queues: Vec::new(),
            events: Vec::new(),
            manager: Identifiers::default(),
        }
    }

    /// Executes a command and returns its answer.
    pub fn execute(&mut self, words: &[u64]) -> Vec<u64> {
        let (&command, w) = words.split_first().expect("a command");
        match command {
            op::GID => self.gid(),
            // SAFETY: the context is open.
            op::PD => made(&mut self.domains, unsafe { (self.provider.alloc_pd)(self.context) }),
            op::DEALLOC_PD => destroy(&mut self.domains, w[0], self.provider.dealloc_pd),
            op::CHANNEL => self.create_channel(),
            op::DESTROY_CHANNEL => destroy(&mut self.channels, w[0], self.provider.destroy_comp_channel),
            op::CQ => self.create_cq(w),
            op::DESTROY_CQ => destroy(&mut self.queues, w[0], self.provider.destroy_cq),
            op::MR => self.register(w),
            op::DEREG => vec![self.deregister(w[0] as usize)],
            op::QP => self.create_qp(w),
            op::DESTROY_QP => destroy(&mut self.pairs, w[0], self.provider.destroy_qp),
            op::AH => self.create_ah(w),
            op::DESTROY_AH => destroy(&mut self.handles, w[0], self.provider.destroy_ah),
            op::MODIFY => self.modify(w),
            op::QUERY => self.query(w),
            op::SEND => self.send(w),
            op::RECEIVE => self.receive(w),
            op::POLL => self.poll(w),
            op::FILL => self.fill(w),
            op::CHECK => self.check(w),
            op::READ => self.read(w),
            op::ARM => self.arm(w),
            op::EVENT => self.event(w),
            op::ACK => {
                // SAFETY: the queue is alive: its destruction waits for this.
                unsafe { (self.provider.ack_cq_events)(self.queues[w[0] as usize], w[1] as u32) };
                vec![0]
            }
            op::NONBLOCK => {
                rustix::io::ioctl_fionbio(self.channel(w[0]), w[1] != 0).expect("a channel is a descriptor");
                vec![0]
            }
            op::READY => self.ready(w),
            op::DESCRIPTORS => vec![0, descriptors() as u64],
            op::SHARED_KIB => vec![0, shared_kib()],
            op::RELEASE => self.release(w[0] as usize),
            op::UNMAP => self.unmap(w[0] as usize),
            op::TRUNCATE => self.truncate(w[0] as usize),
            op::CLOSE => vec![self.close()],
            op::EXCHANGE => self.exchange(w),
            op::REGION => {
                let region = &self.regions[w[0] as usize];
                vec![0, region.addr as u64, u64::from(region.rkey)]
            }
            op::DEVICE => self.device(),
            op::AWAIT => self.await_last_byte(w),
            op::VOLLEY => self.volley(w),
            op::COUNT => self.count(w),
            op::INCREMENT => self.increment(w),
            op::PUT => self.put(w),
            op::PORT => self.port(),
            op::DEPTHS => self.depths(w),
            op::ALARM => self.alarm(w),
            op::SRQ => self.create_srq(w),
            op::MODIFY_SRQ => self.modify_srq(w),
            op::QUERY_SRQ => self.query_srq(w),
            op::DESTROY_SRQ => destroy(&mut self.shared_queues, w[0], self.provider.destroy_srq),
            op::RECEIVE_SHARED => self.receive_shared(w),
            op::ASYNC..=op::LAST => self.aside(command, w),
            cm::CHANNEL..=cm::LAST => self.manage(command, w),
            other => self.execute_extended(other, w),
        }
    }

    fn gid(&self) -> Vec<u64> {
        let mut gid = ibv_gid::default();
        // SAFETY: the context is open and the GID is writable.
        let returned = unsafe {
            (self.provider.query_gid)(self.context, self.port, i32::from(self.gid_index), &raw mut gid)
        };
        let [high, low] = gid_words(gid.raw);
        vec![u64::from(returned != 0), high, low]
    }

    fn create_cq(&mut self, w: &[u64]) -> Vec<u64> {
        let channel = if w[1] == 0 { null_mut() } else { self.channels[w[1] as usize - 1] };
        // SAFETY: the context is open and the channel is null or alive.
        let cq = unsafe { (self.provider.create_cq)(self.context, w[0] as i32, null_mut(), channel, 0) };
        let mut answer = made(&mut self.queues, cq);
        if answer[0] == 0 {
            // SAFETY: the queue was just created.
            answer.push(unsafe { &(*cq).cqe }.load(Relaxed) as u64);
        }
        answer
    }

    /// The attributes of a new queue pair. Words: domain, queues for sends and receives, type,
    /// sends, receives, elements of each, inline bytes, whether all sends are signalled, and
    /// optionally a shared receive queue.
    fn qp_init(&self, w: &[u64]) -> ibv_qp_init_attr {
        ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: self.queues[w[1] as usize],
            recv_cq: self.queues[w[2] as usize],
            srq: w.get(10).map_or(null_mut(), |srq| self.shared_queues[*srq as usize]),
            cap: ibv_qp_cap {
                max_send_wr: w[4] as u32,
                max_recv_wr: w[5] as u32,
                max_send_sge: w[6] as u32,
                max_recv_sge: w[7] as u32,
                max_inline_data: w[8] as u32,
            },
            qp_type: w[3] as u32,
            sq_sig_all: w[9] as i32,
        }
    }

    fn create_qp(&mut self, w: &[u64]) -> Vec<u64> {
        let mut init = self.qp_init(w);
        // SAFETY: the domain and the queues are alive and the attributes are writable.
        let qp = unsafe { (self.provider.create_qp)(self.domains[w[0] as usize], &raw mut init) };
        let mut answer = made(&mut self.pairs, qp);
        if answer[0] == 0 {
            let cap = init.cap;
            // SAFETY: the queue pair was just created.
            answer.push(u64::from(unsafe { (*qp).qp_num }));
            answer.extend([cap.max_send_wr, cap.max_recv_wr, cap.max_inline_data].map(u64::from));
        }
        answer
    }

    fn create_ah(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = route(&w[1..], self.lid);
        // SAFETY: the domain is alive and the attributes are readable.
        let ah = unsafe { (self.provider.create_ah)(self.domains[w[0] as usize], &raw mut attr) };
        made(&mut self.handles, ah)
    }

    fn modify(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = attributes(&w[2..], self.lid);
        // SAFETY: the queue pair is alive and the attributes are readable.
        let returned =
            unsafe { (self.provider.modify_qp)(self.pairs[w[0] as usize], &raw mut attr, w[1] as i32) };
        vec![if returned == -1 { errno() } else { returned as u64 }]
    }

    fn query(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = ibv_qp_attr::default();
        // SAFETY: all-zero bytes are a valid ibv_qp_init_attr: integers and null pointers.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let qp = self.pairs[w[0] as usize];
        let everything = (1 << 21) - 1;
        // SAFETY: the queue pair is alive and both results are writable.
        let returned = unsafe { (self.provider.query_qp)(qp, &raw mut attr, everything, &raw mut init) };
        let a = &attr;
        let words = [a.qp_state, a.qkey, a.rq_psn, a.sq_psn, a.dest_qp_num, a.path_mtu];
        let small = [a.timeout, a.retry_cnt, a.rnr_retry, a.min_rnr_timer];
        let mut answer = vec![returned as u64];
        answer.extend(words.map(u64::from));
        answer.extend(small.map(u64::from));
        answer.push(u64::from(a.qp_access_flags));
        answer.extend([a.max_rd_atomic, a.max_dest_rd_atomic].map(u64::from));
        answer
    }

    /// The device's limits: the scope of its atomics, and the reads and atomics of a queue pair as
    /// responder and as initiator, and of the device as responder.
    fn device(&self) -> Vec<u64> {
        // SAFETY: all-zero bytes are a valid ibv_device_attr: integers.
        let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the attributes are writable.
        let returned = unsafe { (self.provider.query_device)(self.context, &raw mut attr) };
        let counts = [attr.max_qp_rd_atom, attr.max_qp_init_rd_atom, attr.max_res_rd_atom];
        let head = [u64::from(returned.unsigned_abs()), u64::from(attr.atomic_cap)];
        head.into_iter().chain(counts.map(|n| n as u64)).collect()
    }

    /// Destroys the remaining objects, children first. Returns the first error.
    fn close(&mut self) -> u64 {
        let mut errors = Vec::new();
        self.release_pairs();
        for i in 0..self.pairs.len() {
            errors.extend(destroy(&mut self.pairs, i as u64, self.provider.destroy_qp));
        }
        for i in 0..self.shared_queues.len() {
            errors.extend(destroy(&mut self.shared_queues, i as u64, self.provider.destroy_srq));
        }
        for i in 0..self.handles.len() {
            errors.extend(destroy(&mut self.handles, i as u64, self.provider.destroy_ah));
        }
        for i in 0..self.regions.len() {
            if !self.regions[i].mr.is_null() {
                errors.push(self.deregister(i));
            }
        }
        for region in std::mem::take(&mut self.regions) {
            self.give_back(&region);
        }
        for i in 0..self.queues.len() {
            errors.extend(destroy(&mut self.queues, i as u64, self.provider.destroy_cq));
        }
        for i in 0..self.channels.len() {
            errors.extend(destroy(&mut self.channels, i as u64, self.provider.destroy_comp_channel));
        }
        self.forget_domains();
        for i in 0..self.domains.len() {
            errors.extend(destroy(&mut self.domains, i as u64, self.provider.dealloc_pd));
        }
        self.release_identifiers();
        if !self.context.is_null() {
            // SAFETY: the context is open, and all its objects are destroyed.
            errors.push(unsafe { (self.provider.close_device)(self.context) } as u64);
            self.context = null_mut();
        }
        errors.into_iter().find(|e| *e != 0).unwrap_or(0)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let left = self.close();
        assert!(left == 0 || std::thread::panicking(), "an object could not be destroyed: errno {left}");
    }
}

/// The byte at position `i` of the pattern `seed`. All pages and all seeds differ.
pub fn pattern(seed: u64, i: usize) -> u8 {
    let word = (i as u64 / 8 + 1).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word >> (8 * (i % 8))) as u8
}

fn open(provider: &'static Provider, device: &str) -> *mut ibv_context {
    let mut len = 0;
    // SAFETY: the provider writes the length into a valid integer.
    let list = unsafe { (provider.get_device_list)(&raw mut len) };
    assert!(!list.is_null() && len > 0, "the provider has no devices");
    let found = (0..len as usize).find_map(|i| {
        // SAFETY: the list has `len` entries.
        let entry = unsafe { *list.add(i) };
        // SAFETY: the entry is a device and its name a string, until the list is freed.
        let name = unsafe { std::ffi::CStr::from_ptr((provider.get_device_name)(entry)) };
        (name.to_bytes() == device.as_bytes()).then_some(entry)
    });
    // SAFETY: the device is in the list, which is not freed yet.
    let context = unsafe { (provider.open_device)(found.expect("the device exists")) };
    assert!(!context.is_null(), "open_device failed: errno {}", errno());
    // SAFETY: the list came from this provider and is freed once.
    unsafe { (provider.free_device_list)(list) };
    context
}

fn port_of(subject: &Subject, context: *mut ibv_context) -> ibv_port_attr {
    let mut attr = ibv_port_attr::default();
    // SAFETY: the context is open and the attributes are writable.
    let returned = unsafe { (subject.provider.query_port)(context, subject.origin.port, &raw mut attr) };
    assert_eq!(returned, 0, "the port exists");
    attr
}

/// Keeps an object that a verb has created. Returns its number, or the error number.
fn made<T>(list: &mut Vec<*mut T>, object: *mut T) -> Vec<u64> {
    if object.is_null() {
        return vec![errno()];
    }
    list.push(object);
    vec![0, list.len() as u64 - 1]
}

/// Destroys an object, unless it is destroyed already. It stays in the list if the device refuses.
fn destroy<T>(list: &mut [*mut T], i: u64, verb: unsafe extern "C" fn(*mut T) -> i32) -> Vec<u64> {
    let object = &mut list[i as usize];
    if object.is_null() {
        return vec![0];
    }
    // SAFETY: the object is alive.
    let returned = unsafe { verb(*object) };
    if returned == 0 {
        *object = null_mut();
    }
    vec![returned as u64]
}

fn errno() -> u64 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0) as u64
}

/// The number of open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a process sees its descriptors").count()
}

/// The resident shared memory of this process, in KiB.
fn shared_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process sees its status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).expect("Linux counts it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
