//! One end of a case: verbs objects behind a table of commands.
//!
//! A command and its answer are rows of integers, so that an end can be in this process or at the far end of a pipe, and
//! so that what the safe wrapper forbids can be tried: everything goes through the provider's table and the context's
//! operations, as a C program's calls do. Objects are named by their number in order of creation.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::time::Instant;

use verbs::Provider;
use verbs::abi::*;

/// Commands. The answer's first word is an error number, 0 for success.
pub(crate) mod op {
    pub(crate) const GID: u64 = 0;
    pub(crate) const PD: u64 = 1;
    pub(crate) const DEALLOC_PD: u64 = 2;
    pub(crate) const CHANNEL: u64 = 3;
    pub(crate) const DESTROY_CHANNEL: u64 = 4;
    pub(crate) const CQ: u64 = 5;
    pub(crate) const DESTROY_CQ: u64 = 6;
    pub(crate) const MR: u64 = 7;
    pub(crate) const DEREG: u64 = 8;
    pub(crate) const QP: u64 = 9;
    pub(crate) const DESTROY_QP: u64 = 10;
    pub(crate) const AH: u64 = 11;
    pub(crate) const DESTROY_AH: u64 = 12;
    pub(crate) const MODIFY: u64 = 13;
    pub(crate) const QUERY: u64 = 14;
    pub(crate) const SEND: u64 = 15;
    pub(crate) const RECEIVE: u64 = 16;
    pub(crate) const POLL: u64 = 17;
    pub(crate) const FILL: u64 = 18;
    pub(crate) const CHECK: u64 = 19;
    pub(crate) const READ: u64 = 20;
    pub(crate) const ARM: u64 = 21;
    pub(crate) const EVENT: u64 = 22;
    pub(crate) const ACK: u64 = 23;
    pub(crate) const NONBLOCK: u64 = 24;
    pub(crate) const READY: u64 = 25;
    pub(crate) const DESCRIPTORS: u64 = 26;
    pub(crate) const SHARED_KIB: u64 = 27;
    pub(crate) const CLOSE: u64 = 28;
    pub(crate) const EXCHANGE: u64 = 29;
    pub(crate) const RELEASE: u64 = 30;
}

/// Words of a gather or scatter element: region, offset, length, key (0 for the region's own).
pub(crate) type Element = [u64; 4];

/// Key that stands for key 0 in an element.
pub(crate) const KEY_ZERO: u64 = 1 << 40;

struct Region {
    mr: *mut ibv_mr,
    addr: *mut u8,
    len: usize,
    lkey: u32,
    from_device: bool,
}

pub(crate) struct Rig {
    provider: &'static Provider,
    context: *mut ibv_context,
    domains: Vec<*mut ibv_pd>,
    channels: Vec<*mut ibv_comp_channel>,
    queues: Vec<*mut ibv_cq>,
    regions: Vec<Region>,
    pairs: Vec<*mut ibv_qp>,
    handles: Vec<*mut ibv_ah>,
}

// SAFETY: verbs are thread-safe, and a rig's own lists are reached by one owner at a time.
unsafe impl Send for Rig {}

impl Rig {
    pub(crate) fn open(provider: &'static Provider, device: &str) -> Self {
        let context = open(provider, device);
        Self {
            provider,
            context,
            domains: Vec::new(),
            channels: Vec::new(),
            queues: Vec::new(),
            regions: Vec::new(),
            pairs: Vec::new(),
            handles: Vec::new(),
        }
    }

    pub(crate) fn execute(&mut self, words: &[u64]) -> Vec<u64> {
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
            op::CLOSE => vec![self.close()],
            op::EXCHANGE => self.exchange(w),
            other => panic!("no command {other}"),
        }
    }

    fn gid(&self) -> Vec<u64> {
        let mut gid = ibv_gid::default();
        // SAFETY: the context is open and the GID is writable.
        let returned = unsafe { (self.provider.query_gid)(self.context, 1, 0, &raw mut gid) };
        let half = |i: usize| u64::from_be_bytes(gid.raw[i..i + 8].try_into().expect("eight bytes"));
        vec![u64::from(returned != 0), half(0), half(8)]
    }

    fn create_channel(&mut self) -> Vec<u64> {
        // SAFETY: the context is open.
        made(&mut self.channels, unsafe { (self.provider.create_comp_channel)(self.context) })
    }

    fn create_cq(&mut self, w: &[u64]) -> Vec<u64> {
        let channel = if w[1] == 0 { null_mut() } else { self.channels[w[1] as usize - 1] };
        // SAFETY: the context is open and the channel is null or alive.
        let cq = unsafe { (self.provider.create_cq)(self.context, w[0] as i32, null_mut(), channel, 0) };
        let mut answer = made(&mut self.queues, cq);
        if answer[0] == 0 {
            // SAFETY: it was just made.
            answer.push(unsafe { (*cq).cqe } as u64);
        }
        answer
    }

    fn register(&mut self, w: &[u64]) -> Vec<u64> {
        let (len, from_device) = (w[1] as usize, w[3] == 0 && self.provider.alloc_buffer.is_some());
        let addr = match self.provider.alloc_buffer {
            // SAFETY: the context is open.
            Some(alloc) if from_device => unsafe { alloc(self.context, len) },
            _ => map(len),
        };
        assert!(!addr.is_null(), "no memory for {len} B");
        // SAFETY: the domain is alive and the buffer is.
        let mr = unsafe { (self.provider.reg_mr)(self.domains[w[0] as usize], addr, len, w[2] as i32) };
        if mr.is_null() {
            return vec![errno()];
        }
        // SAFETY: it was just made.
        let lkey = unsafe { (*mr).lkey };
        self.regions.push(Region { mr, addr: addr.cast(), len, lkey, from_device });
        vec![0, self.regions.len() as u64 - 1, u64::from(lkey)]
    }

    /// Deregisters; the bytes and the key stay known, so that they can be misused.
    fn deregister(&mut self, i: usize) -> u64 {
        let mr = std::mem::replace(&mut self.regions[i].mr, null_mut());
        // SAFETY: the region is registered.
        unsafe { (self.provider.dereg_mr)(mr) as u64 }
    }

    /// Deregisters and gives the memory back.
    fn release(&mut self, i: usize) -> Vec<u64> {
        let errno = self.deregister(i);
        let nothing = Region { mr: null_mut(), addr: null_mut(), len: 0, lkey: 0, from_device: false };
        let region = std::mem::replace(&mut self.regions[i], nothing);
        self.give_back(&region);
        vec![errno]
    }

    fn give_back(&self, region: &Region) {
        let addr = region.addr.cast::<c_void>();
        match self.provider.free_buffer {
            _ if addr.is_null() => {}
            // SAFETY: the buffer came from the same provider with this length.
            Some(free) if region.from_device => unsafe { free(self.context, addr, region.len) },
            // SAFETY: the mapping was made with this length and nothing refers to it any more.
            _ => unsafe {
                libc::munmap(addr, region.len.max(1));
            },
        }
    }

    fn create_qp(&mut self, w: &[u64]) -> Vec<u64> {
        let cap = ibv_qp_cap {
            max_send_wr: w[4] as u32,
            max_recv_wr: w[5] as u32,
            max_send_sge: w[6] as u32,
            max_recv_sge: w[7] as u32,
            max_inline_data: w[8] as u32,
        };
        let mut init = ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: self.queues[w[1] as usize],
            recv_cq: self.queues[w[2] as usize],
            srq: null_mut(),
            cap,
            qp_type: w[3] as u32,
            sq_sig_all: w[9] as i32,
        };
        // SAFETY: the domain and the queues are alive and the attributes are writable.
        let qp = unsafe { (self.provider.create_qp)(self.domains[w[0] as usize], &raw mut init) };
        let mut answer = made(&mut self.pairs, qp);
        if answer[0] == 0 {
            let cap = init.cap;
            // SAFETY: it was just made.
            answer.push(u64::from(unsafe { (*qp).qp_num }));
            answer.extend([cap.max_send_wr, cap.max_recv_wr, cap.max_inline_data].map(u64::from));
        }
        answer
    }

    fn create_ah(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = route(&w[1..]);
        // SAFETY: the domain is alive and the attributes are readable.
        let ah = unsafe { (self.provider.create_ah)(self.domains[w[0] as usize], &raw mut attr) };
        made(&mut self.handles, ah)
    }

    fn modify(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = attributes(&w[2..]);
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
        answer
    }

    fn element(&self, w: &[u64]) -> ibv_sge {
        let region = &self.regions[w[0] as usize];
        let lkey = match w[3] {
            0 => region.lkey,
            KEY_ZERO => 0,
            key => key as u32,
        };
        ibv_sge { addr: (region.addr as u64).wrapping_add(w[1]), length: w[2] as u32, lkey }
    }

    /// Posts a list; answers with the error and the position of the request that `bad_wr` points to.
    fn send(&mut self, w: &[u64]) -> Vec<u64> {
        let (qp, count) = (self.pairs[w[0] as usize], w[1] as usize);
        let mut lists: Vec<Vec<ibv_sge>> = Vec::new();
        let mut requests: Vec<ibv_send_wr> = Vec::new();
        let mut rest = &w[2..];
        for _ in 0..count {
            let elements = rest[7] as usize;
            lists.push(rest[8..8 + 4 * elements].chunks(4).map(|e| self.element(e)).collect());
            // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
            let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
            (wr.wr_id, wr.send_flags, wr.opcode) = (rest[0], rest[1] as u32, rest[2] as u32);
            (wr.imm_data, wr.num_sge) = (rest[3] as u32, elements as i32);
            if rest[4] != 0 {
                let ah = self.handles[rest[4] as usize - 1];
                wr.wr.ud = ibv_wr_ud { ah, remote_qpn: rest[5] as u32, remote_qkey: rest[6] as u32 };
            }
            requests.push(wr);
            rest = &rest[8 + 4 * elements..];
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
        vec![returned as u64, position.map_or(u64::MAX, |p| p as u64)]
    }

    fn receive(&mut self, w: &[u64]) -> Vec<u64> {
        let (qp, count) = (self.pairs[w[0] as usize], w[1] as usize);
        let mut lists: Vec<Vec<ibv_sge>> = Vec::new();
        let mut requests: Vec<ibv_recv_wr> = Vec::new();
        let mut rest = &w[2..];
        for _ in 0..count {
            let elements = rest[1] as usize;
            lists.push(rest[2..2 + 4 * elements].chunks(4).map(|e| self.element(e)).collect());
            let (wr_id, num_sge) = (rest[0], elements as i32);
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
        // SAFETY: the context is open.
        let post = unsafe { (*self.context).ops.post_recv }.expect("a provider fills post_recv");
        // SAFETY: the queue pair is alive; requests and elements are readable.
        let returned = unsafe { post(qp, requests.as_mut_ptr(), &raw mut bad) };
        let position = requests.iter().position(|wr| std::ptr::eq(wr, bad));
        vec![returned as u64, position.map_or(u64::MAX, |p| p as u64)]
    }

    fn poll(&mut self, w: &[u64]) -> Vec<u64> {
        let room = w[1] as usize;
        let mut found: Vec<ibv_wc> = Vec::with_capacity(room);
        // SAFETY: the context is open.
        let poll = unsafe { (*self.context).ops.poll_cq }.expect("a provider fills poll_cq");
        // SAFETY: the queue is alive and there is room for so many.
        let n = unsafe { poll(self.queues[w[0] as usize], room as i32, found.as_mut_ptr()) };
        if n < 0 {
            return vec![u64::from(n.unsigned_abs())];
        }
        // SAFETY: the device wrote the first n.
        unsafe { found.set_len(n as usize) };
        let mut answer = vec![0];
        for wc in found {
            answer.push(wc.wr_id);
            answer.extend(
                [wc.status, wc.opcode, wc.byte_len, wc.imm_data, wc.qp_num, wc.src_qp, wc.wc_flags]
                    .map(u64::from),
            );
        }
        answer
    }

    fn fill(&mut self, w: &[u64]) -> Vec<u64> {
        let (at, len) = self.bytes(w);
        let bytes: Vec<u8> = (0..len).map(|i| pattern(w[3], i)).collect();
        // SAFETY: the range lies in the region.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, len) };
        vec![0]
    }

    /// The first byte that is not as `fill` made it, or all ones.
    fn check(&mut self, w: &[u64]) -> Vec<u64> {
        let bytes = self.copy(w);
        let first = w[4] as usize;
        let wrong = (0..bytes.len()).find(|i| bytes[*i] != pattern(w[3], first + i));
        vec![0, wrong.map_or(u64::MAX, |i| i as u64)]
    }

    fn read(&mut self, w: &[u64]) -> Vec<u64> {
        std::iter::once(0).chain(self.copy(w).into_iter().map(u64::from)).collect()
    }

    fn copy(&self, w: &[u64]) -> Vec<u8> {
        let (at, len) = self.bytes(w);
        let mut bytes = vec![0; len];
        // SAFETY: the range lies in the region.
        unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), len) };
        bytes
    }

    fn bytes(&self, w: &[u64]) -> (*mut u8, usize) {
        let region = &self.regions[w[0] as usize];
        let (offset, len) = (w[1] as usize, w[2] as usize);
        assert!(offset + len <= region.len, "bytes outside the region");
        // SAFETY: the sum was just checked.
        (unsafe { region.addr.add(offset) }, len)
    }

    fn arm(&mut self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let arm = unsafe { (*self.context).ops.req_notify_cq }.expect("a provider fills req_notify_cq");
        // SAFETY: the queue is alive.
        vec![unsafe { arm(self.queues[w[0] as usize], w[1] as i32) } as u64]
    }

    fn event(&mut self, w: &[u64]) -> Vec<u64> {
        let (mut cq, mut context) = (null_mut(), null_mut());
        let channel = self.channels[w[0] as usize];
        // SAFETY: the channel is alive and both results are writable.
        if unsafe { (self.provider.get_cq_event)(channel, &raw mut cq, &raw mut context) } != 0 {
            return vec![errno()];
        }
        let position = self.queues.iter().position(|other| *other == cq);
        vec![0, position.expect("an event names a queue of its channel") as u64]
    }

    fn channel(&self, i: u64) -> BorrowedFd<'_> {
        // SAFETY: the channel is alive, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw((*self.channels[i as usize]).fd) }
    }

    fn ready(&mut self, w: &[u64]) -> Vec<u64> {
        let fd = self.channel(w[0]);
        let mut polled = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec {
            tv_sec: (w[1] / 1000) as i64,
            tv_nsec: (w[1] % 1000 * 1_000_000) as i64,
        };
        vec![0, rustix::event::poll(&mut polled, Some(&limit)).expect("a channel can be polled") as u64]
    }

    /// Sends numbered messages and checks those that come, until all have, or an error ends it, or nothing has happened
    /// for a while. Answers with the numbers of those sent and received and the status that ended it.
    ///
    /// Words: queue pair, send queue, receive queue, region, bytes of a message, requests under way, messages to send,
    /// messages to receive, milliseconds, address handle (0 for none, else its number + 1), queue-pair number, Q_Key.
    fn exchange(&mut self, w: &[u64]) -> Vec<u64> {
        let [qp, send_cq, receive_cq, region, size, window, to_send, to_receive, idle_ms] = w[..9] else {
            panic!("twelve words");
        };
        let header = if w[9] == 0 { 0 } else { 40 };
        let slot = |n: u64, second_half: u64| (n % window + second_half * window) * (size + 64);
        let len = |n: u64| if n.is_multiple_of(3) { size } else { 8 + n * 64 % (size - 8) };
        let (mut posted, mut received, mut sent, mut confirmed) = (0, 0, 0, 0);
        let mut last = Instant::now();
        let status = loop {
            while posted < to_receive.min(received + window) {
                let answer = self.receive(&[qp, 1, posted, 1, region, slot(posted, 1), size + header, 0]);
                assert_eq!(answer[0], 0, "post_recv");
                posted += 1;
            }
            if sent < to_send.min(confirmed + window) {
                self.number_message(region, slot(sent, 0), len(sent), sent);
                let request = [sent, u64::from(IBV_SEND_SIGNALED), u64::from(IBV_WR_SEND_WITH_IMM)];
                let mut words = vec![qp, 1];
                words.extend(request);
                words.extend([u64::from((sent as u32).to_be()), w[9], w[10], w[11], 1]);
                words.extend([region, slot(sent, 0), len(sent), 0]);
                let answer = self.send(&words);
                assert_eq!(answer[0], 0, "post_send");
                sent += 1;
            }
            let sends = self.poll(&[send_cq, 16]);
            let receives = self.poll(&[receive_cq, 16]);
            if let Some(bad) = sends[1..].chunks(8).chain(receives[1..].chunks(8)).find(|wc| wc[1] != 0) {
                break bad[1];
            }
            confirmed += (sends.len() as u64 - 1) / 8;
            for wc in receives[1..].chunks(8) {
                let n = u64::from(u32::from_be(wc[4] as u32));
                assert!(header != 0 || n == received, "message {n} came instead of {received}");
                assert_eq!(wc[3], len(n) + header, "length of message {n}");
                self.check_number(region, slot(wc[0], 1) + header, len(n), n);
                received += 1;
            }
            if sends.len() + receives.len() > 2 {
                last = Instant::now();
            }
            if (confirmed == to_send && received == to_receive) || last.elapsed().as_millis() as u64 > idle_ms
            {
                break 0;
            }
        };
        vec![0, confirmed, received, status]
    }

    fn number_message(&mut self, region: u64, offset: u64, len: u64, n: u64) {
        let (at, len) = self.bytes(&[region, offset, len]);
        let words: Vec<u8> = (0..len as u64 / 8).flat_map(|i| (n << 32 | i).to_ne_bytes()).collect();
        // SAFETY: the range lies in the region, and the words are at most as long.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), at, words.len()) };
    }

    fn check_number(&mut self, region: u64, offset: u64, len: u64, n: u64) {
        let bytes = self.copy(&[region, offset, len]);
        let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("eight bytes"));
        let wrong = (0..).zip(bytes.chunks_exact(8)).find(|(i, chunk)| word(chunk) != (n << 32 | *i));
        assert!(wrong.is_none(), "message {n} of {len} B is broken: {wrong:x?}");
    }

    /// Destroys what is left, children first; the first error.
    fn close(&mut self) -> u64 {
        let mut errors = Vec::new();
        for i in 0..self.pairs.len() {
            errors.extend(destroy(&mut self.pairs, i as u64, self.provider.destroy_qp));
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
        for i in 0..self.domains.len() {
            errors.extend(destroy(&mut self.domains, i as u64, self.provider.dealloc_pd));
        }
        if !self.context.is_null() {
            // SAFETY: the context is open, and everything made from it is gone.
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

/// The byte at position `i` of what `fill` makes from `seed`: no two pages are alike, no two seeds either.
pub(crate) fn pattern(seed: u64, i: usize) -> u8 {
    let word = (i as u64 / 8 + 1).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word >> (8 * (i % 8))) as u8
}

/// A queue pair's attributes as words, in the order of [`attributes`].
pub(crate) fn attribute_words(a: &ibv_qp_attr) -> Vec<u64> {
    let mut words: Vec<u64> = [
        a.qp_state,
        a.cur_qp_state,
        a.path_mtu,
        a.path_mig_state,
        a.qkey,
        a.rq_psn,
        a.sq_psn,
        a.dest_qp_num,
        a.qp_access_flags,
    ]
    .map(u64::from)
    .to_vec();
    words.push(u64::from(a.pkey_index));
    words.extend(
        [
            a.en_sqd_async_notify,
            a.max_rd_atomic,
            a.max_dest_rd_atomic,
            a.min_rnr_timer,
            a.port_num,
            a.timeout,
            a.retry_cnt,
            a.rnr_retry,
        ]
        .map(u64::from),
    );
    words.extend(route_words(&a.ah_attr));
    words
}

fn attributes(w: &[u64]) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state: w[0] as u32,
        cur_qp_state: w[1] as u32,
        path_mtu: w[2] as u32,
        path_mig_state: w[3] as u32,
        qkey: w[4] as u32,
        rq_psn: w[5] as u32,
        sq_psn: w[6] as u32,
        dest_qp_num: w[7] as u32,
        qp_access_flags: w[8] as u32,
        pkey_index: w[9] as u16,
        en_sqd_async_notify: w[10] as u8,
        max_rd_atomic: w[11] as u8,
        max_dest_rd_atomic: w[12] as u8,
        min_rnr_timer: w[13] as u8,
        port_num: w[14] as u8,
        timeout: w[15] as u8,
        retry_cnt: w[16] as u8,
        rnr_retry: w[17] as u8,
        ah_attr: route(&w[18..]),
        ..ibv_qp_attr::default()
    }
}

/// A route as words, in the order of [`route`].
pub(crate) fn route_words(a: &ibv_ah_attr) -> [u64; 8] {
    let half =
        |i: usize| u64::from_be_bytes(a.grh.dgid.raw[i..i + 8].try_into().expect("eight bytes of sixteen"));
    let small = [a.grh.sgid_index, a.grh.hop_limit, a.grh.traffic_class, a.sl, a.is_global, a.port_num];
    let [index, hops, class, level, global, port] = small.map(u64::from);
    [half(0), half(8), index, hops, class, level, global, port]
}

fn route(w: &[u64]) -> ibv_ah_attr {
    let mut raw = [0; 16];
    raw[..8].copy_from_slice(&w[0].to_be_bytes());
    raw[8..].copy_from_slice(&w[1].to_be_bytes());
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw },
            flow_label: 0,
            sgid_index: w[2] as u8,
            hop_limit: w[3] as u8,
            traffic_class: w[4] as u8,
        },
        sl: w[5] as u8,
        is_global: w[6] as u8,
        port_num: w[7] as u8,
        ..ibv_ah_attr::default()
    }
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
    // SAFETY: the device is of the list, which is still held.
    let context = unsafe { (provider.open_device)(found.expect("the device exists")) };
    assert!(!context.is_null(), "open_device failed: errno {}", errno());
    // SAFETY: the list came from this provider and is freed once.
    unsafe { (provider.free_device_list)(list) };
    context
}

/// Keeps what a verb has made, or says why it has not.
fn made<T>(list: &mut Vec<*mut T>, object: *mut T) -> Vec<u64> {
    if object.is_null() {
        return vec![errno()];
    }
    list.push(object);
    vec![0, list.len() as u64 - 1]
}

/// Destroys an object unless that is done; it stays on the list if the device refuses.
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

fn map(len: usize) -> *mut c_void {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let addr = unsafe { libc::mmap(null_mut(), len.max(1), protection, flags, -1, 0) };
    assert!(addr != libc::MAP_FAILED, "no memory for {len} B");
    addr
}

/// Open descriptors of this process.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a process sees its descriptors").count()
}

/// Shared memory that this process has touched.
fn shared_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process sees its status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).expect("Linux counts it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// One object of a rig, to be used by another thread while the rig's owner does something else.
pub(crate) struct Loan<T> {
    provider: &'static Provider,
    object: *mut T,
}

// SAFETY: verbs are thread-safe; the borrower ends before the object does (scoped threads).
unsafe impl<T> Send for Loan<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Loan<T> {}

impl Rig {
    pub(crate) fn waiter(&self, channel: usize) -> Loan<ibv_comp_channel> {
        Loan { provider: self.provider, object: self.channels[channel] }
    }

    pub(crate) fn acknowledger(&self, cq: usize) -> Loan<ibv_cq> {
        Loan { provider: self.provider, object: self.queues[cq] }
    }

    pub(crate) fn poster(&self, qp: usize) -> Loan<ibv_qp> {
        Loan { provider: self.provider, object: self.pairs[qp] }
    }

    pub(crate) fn poller(&self, cq: usize) -> Loan<ibv_cq> {
        self.acknowledger(cq)
    }
}

impl Loan<ibv_comp_channel> {
    /// Waits for one event; the error number.
    pub(crate) fn wait(&self) -> i32 {
        let (mut cq, mut context) = (null_mut(), null_mut());
        // SAFETY: the channel is alive and both results are writable.
        match unsafe { (self.provider.get_cq_event)(self.object, &raw mut cq, &raw mut context) } {
            0 => 0,
            _ => errno() as i32,
        }
    }
}

impl Loan<ibv_cq> {
    pub(crate) fn acknowledge(&self, events: u32) {
        // SAFETY: the queue is alive: its destruction waits for this.
        unsafe { (self.provider.ack_cq_events)(self.object, events) };
    }

    /// Polls once for one completion: its status.
    pub(crate) fn poll(&self) -> Option<ibv_wc_status> {
        // SAFETY: all-zero bytes are a valid ibv_wc: integers.
        let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
        // SAFETY: the queue and so its context is alive.
        let poll = unsafe { (*(*self.object).context).ops.poll_cq }.expect("a provider fills poll_cq");
        // SAFETY: the queue is alive and there is room for one completion.
        (unsafe { poll(self.object, 1, &raw mut wc) } == 1).then_some(wc.status)
    }
}

impl Loan<ibv_qp> {
    /// Posts a signalled Send of these elements; the error number.
    pub(crate) fn post(&self, elements: &mut [ibv_sge]) -> i32 {
        // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
        let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
        (wr.opcode, wr.send_flags) = (IBV_WR_SEND, IBV_SEND_SIGNALED);
        (wr.sg_list, wr.num_sge) = (elements.as_mut_ptr(), elements.len() as i32);
        let mut bad = null_mut();
        // SAFETY: the queue pair and so its context is alive.
        let post = unsafe { (*(*self.object).context).ops.post_send }.expect("a provider fills post_send");
        // SAFETY: the queue pair is alive and the request readable.
        unsafe { post(self.object, &raw mut wr, &raw mut bad) }
    }
}
