//! The extended verbs: work request builders, extended completion queues and extensible queries.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::time::{SystemTime, UNIX_EPOCH};

use verbs::abi::*;
use verbs::verbs_get_ctx_op;

use super::{Rig, errno, made, op, wr};

/// The error of the header's functions if a device does not have the verb.
const ABSENT: u64 = libc::EOPNOTSUPP as u64;

impl Rig {
    pub(super) fn execute_extended(&mut self, command: u64, w: &[u64]) -> Vec<u64> {
        match command {
            op::DEVICE_EX => self.device_ex(w),
            op::PORT_EX => self.port_ex(w[0] as usize),
            op::CLOCK => self.clock(),
            op::CQ_EX => self.create_cq_ex(w),
            op::RESIZE => {
                // SAFETY: the queue is alive.
                let returned = unsafe { (self.provider.resize_cq)(self.queues[w[0] as usize], w[1] as i32) };
                vec![if returned == -1 { errno() } else { returned as u64 }]
            }
            op::START_POLL | op::NEXT_POLL => self.read_next(command, w[0]),
            op::END_POLL => {
                let cq = self.queue_ex(w[0]);
                // SAFETY: the queue is alive, and this thread has started to poll it.
                unsafe { (*cq).end_poll.expect("a polled queue has this function")(cq) };
                vec![0]
            }
            op::QP_EX => self.create_qp_ex(w),
            op::WR => vec![self.step(w)],
            op::SRQ_EX => self.create_srq_ex(w),
            other => panic!("no command {other}"),
        }
    }

    /// Words: the size of the structure in bytes, and the mask of the input. Returns the mask, the
    /// frequency of the clock in kHz and the number of ports, then whether the plain part is the
    /// result of `ibv_query_device`, and whether the bytes behind the structure are unchanged.
    fn device_ex(&self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let Some(query) = (unsafe { verbs_get_ctx_op!(self.context, query_device_ex) }) else {
            return vec![ABSENT];
        };
        const FILL: u8 = 0xa5;
        const BEHIND: usize = 64;
        let room = w[0] as usize;
        let mut bytes = vec![FILL; room.max(size_of::<ibv_device_attr_ex>()) + BEHIND];
        let input = ibv_query_device_ex_input { comp_mask: w[1] as u32 };
        let attr = bytes.as_mut_ptr().cast::<ibv_device_attr_ex>();
        // SAFETY: the context is open, and the buffer has at least `room` bytes.
        let returned = unsafe { query(self.context, &raw const input, attr, room) };
        let untouched = bytes[room..].iter().all(|byte| *byte == FILL);
        let known = room.min(size_of::<ibv_device_attr_ex>());
        let zeroed = returned != 0 || bytes[known..room].iter().all(|byte| *byte == 0);
        bytes[known..].fill(0);
        // SAFETY: the bytes contain the structure, in which all bytes are valid; the bytes behind
        // `known` are zero.
        let attr = unsafe { bytes.as_ptr().cast::<ibv_device_attr_ex>().read_unaligned() };
        // SAFETY: all-zero bytes are a valid ibv_device_attr: integers.
        let mut plain: ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the attributes are writable.
        unsafe { (self.provider.query_device)(self.context, &raw mut plain) };
        let both = [&plain, &attr.orig_attr];
        let [plain, seen] = both.map(|a| (a.node_guid, a.max_qp, a.max_sge, a.max_pkeys, a.phys_port_cnt));
        let ports = u64::from(attr.phys_port_cnt_ex);
        let clock = [attr.completion_timestamp_mask, attr.hca_core_clock, ports];
        let checks = [plain == seen, untouched && zeroed].map(u64::from);
        [u64::from(returned.unsigned_abs())].into_iter().chain(clock).chain(checks).collect()
    }

    /// Queries the port with a structure of `room` bytes. Answers whether these are the first bytes
    /// of a whole query, and whether the other bytes are unchanged.
    fn port_ex(&self, room: usize) -> Vec<u64> {
        // SAFETY: the context is open.
        let Some(query) = (unsafe { verbs_get_ctx_op!(self.context, query_port) }) else {
            return vec![ABSENT];
        };
        let mut answers = [[0xa5_u8; size_of::<ibv_port_attr>() + 16]; 2];
        for (answer, room) in answers.iter_mut().zip([size_of::<ibv_port_attr>(), room]) {
            let attr = answer.as_mut_ptr().cast::<ibv_port_attr>();
            // SAFETY: the context is open, and the buffer has at least `room` bytes.
            let returned = unsafe { query(self.context, self.port, attr, room) };
            if returned != 0 {
                return vec![returned as u64];
            }
        }
        let same = answers[0][..room] == answers[1][..room];
        vec![0, u64::from(same), u64::from(answers[1][room..].iter().all(|byte| *byte == 0xa5))]
    }

    /// The device's clock in ticks, and the time of day in ns since 1970.
    fn clock(&self) -> Vec<u64> {
        // SAFETY: the context is open.
        let Some(query) = (unsafe { verbs_get_ctx_op!(self.context, query_rt_values) }) else {
            return vec![ABSENT];
        };
        let raw_clock = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut values = ibv_values_ex { comp_mask: IBV_VALUES_MASK_RAW_CLOCK, raw_clock };
        // SAFETY: the context is open and the values are writable.
        let returned = unsafe { query(self.context, &raw mut values) };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        vec![returned as u64, values.raw_clock.tv_nsec as u64, time.as_nanos() as u64]
    }

    /// Words: entries, channel (0 for none, else its number + 1), fields, `comp_mask`, flags,
    /// completion vector.
    fn create_cq_ex(&mut self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let Some(create) = (unsafe { verbs_get_ctx_op!(self.context, create_cq_ex) }) else {
            return vec![ABSENT];
        };
        let mut attr = ibv_cq_init_attr_ex {
            cqe: w[0] as u32,
            cq_context: null_mut(),
            channel: if w[1] == 0 { null_mut() } else { self.channels[w[1] as usize - 1] },
            comp_vector: w[5] as u32,
            wc_flags: w[2],
            comp_mask: w[3] as u32,
            flags: w[4] as u32,
            parent_domain: null_mut(),
        };
        // SAFETY: the context is open and the channel is null or alive.
        let cq = unsafe { create(self.context, &raw mut attr) };
        made(&mut self.queues, cq.cast())
    }

    fn queue_ex(&self, cq: u64) -> *mut ibv_cq_ex {
        self.queues[cq as usize].cast()
    }

    /// The next completion: identifier, status, opcode, bytes, immediate, queue pair, source,
    /// flags, stamp, wall clock.
    fn read_next(&self, command: u64, cq: u64) -> Vec<u64> {
        let cq = self.queue_ex(cq);
        let mut attr = ibv_poll_cq_attr::default();
        // SAFETY: the queue is alive and was created as an extended queue.
        let queue = unsafe { &*cq };
        let returned = if command == op::START_POLL {
            // SAFETY: as above; the attributes are readable.
            unsafe { queue.start_poll.expect("an extended queue has this function")(cq, &raw mut attr) }
        } else {
            // SAFETY: as above, and this thread has started to poll it.
            unsafe { queue.next_poll.expect("an extended queue has this function")(cq) }
        };
        if returned != 0 {
            return vec![returned as u64];
        }
        macro_rules! read {
            // SAFETY: the queue has a completion to read; a field that was not requested may have
            // no function.
            ($($field:ident)*) => {[$(queue.$field.map_or(0, |read| u64::from(unsafe { read(cq) }))),*]};
        }
        use std::sync::atomic::Ordering::Relaxed;
        let mut answer = vec![0, queue.wr_id.load(Relaxed), u64::from(queue.status.load(Relaxed))];
        answer.extend(read!(read_opcode read_byte_len read_imm_data read_qp_num read_src_qp read_wc_flags));
        answer.extend(read!(read_completion_ts read_completion_wallclock_ns));
        answer
    }

    /// Words: `comp_mask`, creation flags, operations, then the words of `qp_init`.
    fn create_qp_ex(&mut self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let Some(create) = (unsafe { verbs_get_ctx_op!(self.context, create_qp_ex) }) else {
            return vec![ABSENT];
        };
        let (asked, w) = w.split_at(3);
        // SAFETY: all-zero bytes are valid attributes: integers and null pointers.
        let mut init: ibv_qp_init_attr_ex = unsafe { std::mem::zeroed() };
        let plain = self.qp_init(w);
        (init.send_cq, init.recv_cq, init.srq) = (plain.send_cq, plain.recv_cq, plain.srq);
        (init.cap, init.qp_type, init.sq_sig_all) = (plain.cap, plain.qp_type, plain.sq_sig_all);
        (init.comp_mask, init.create_flags, init.send_ops_flags) =
            (asked[0] as u32, asked[1] as u32, asked[2]);
        init.pd = self.domains[w[0] as usize];
        // SAFETY: the context is open, the domain and the queues are alive and the attributes are
        // writable.
        let qp = unsafe { create(self.context, &raw mut init) };
        let mut answer = made(&mut self.pairs, qp);
        if answer[0] == 0 {
            // SAFETY: the queue pair was just created.
            answer.push(u64::from(unsafe { (*qp).qp_num }));
        }
        answer
    }

    /// Words: domain, receives, elements, `comp_mask`, type.
    fn create_srq_ex(&mut self, w: &[u64]) -> Vec<u64> {
        // SAFETY: the context is open.
        let Some(create) = (unsafe { verbs_get_ctx_op!(self.context, create_srq_ex) }) else {
            return vec![ABSENT];
        };
        // SAFETY: all-zero bytes are valid attributes: integers and null pointers.
        let mut init: ibv_srq_init_attr_ex = unsafe { std::mem::zeroed() };
        init.attr = ibv_srq_attr { max_wr: w[1] as u32, max_sge: w[2] as u32, srq_limit: 0 };
        (init.comp_mask, init.srq_type, init.pd) = (w[3] as u32, w[4] as u32, self.domains[w[0] as usize]);
        // SAFETY: the context is open, the domain is alive and the attributes are writable.
        let srq = unsafe { create(self.context, &raw mut init) };
        made(&mut self.shared_queues, srq)
    }

    /// Calls a function of a work request builder. Returns 0, the error of the completion, or
    /// EOPNOTSUPP if there is no such function.
    fn step(&self, w: &[u64]) -> u64 {
        let qp = self.pairs[w[0] as usize];
        let Some(convert) = self.provider.qp_to_qp_ex else { return ABSENT };
        // SAFETY: the queue pair is alive.
        let qp = unsafe { convert(qp) };
        if qp.is_null() {
            return ABSENT;
        }
        // SAFETY: the queue pair is alive.
        let ex = unsafe { &*qp };
        let step = w[1];
        let w = &w[2..];
        macro_rules! call {
            ($function:ident $(, $arg:expr)*) => {
                match ex.$function {
                    // SAFETY: the queue pair is alive, and the objects of the arguments live until
                    // the batch ends.
                    Some(function) => unsafe { function(qp $(, $arg)*) },
                    None => return ABSENT,
                }
            };
        }
        match step {
            wr::START => call!(wr_start),
            wr::COMPLETE => return u64::from(call!(wr_complete).unsigned_abs()),
            wr::ABORT => call!(wr_abort),
            wr::TAG => {
                use std::sync::atomic::Ordering::Relaxed;
                ex.wr_id.store(w[0], Relaxed);
                ex.wr_flags.store(w[1] as u32, Relaxed);
            }
            wr::SEND => call!(wr_send),
            wr::SEND_IMM => call!(wr_send_imm, w[0] as u32),
            wr::SEND_INV => call!(wr_send_inv, w[0] as u32),
            wr::WRITE => call!(wr_rdma_write, w[0] as u32, w[1]),
            wr::WRITE_IMM => call!(wr_rdma_write_imm, w[0] as u32, w[1], w[2] as u32),
            wr::READ => call!(wr_rdma_read, w[0] as u32, w[1]),
            wr::CMP_SWP => call!(wr_atomic_cmp_swp, w[0] as u32, w[1], w[2], w[3]),
            wr::FETCH_ADD => call!(wr_atomic_fetch_add, w[0] as u32, w[1], w[2]),
            wr::BIND_MW => call!(wr_bind_mw, null_mut(), 0, null()),
            wr::LOCAL_INV => call!(wr_local_inv, w[0] as u32),
            wr::TSO => call!(wr_send_tso, null_mut(), 0, 0),
            wr::ATOMIC_WRITE => call!(wr_atomic_write, w[0] as u32, w[1], (&raw const w[2]).cast()),
            wr::UD_ADDR => call!(wr_set_ud_addr, self.handles[w[0] as usize], w[1] as u32, w[2] as u32),
            wr::XRC_SRQN => call!(wr_set_xrc_srqn, w[0] as u32),
            wr::SGE => {
                let sge = self.element(w);
                call!(wr_set_sge, sge.lkey, sge.addr, sge.length);
            }
            wr::SGES => {
                let list: Vec<ibv_sge> = w.chunks(4).map(|e| self.element(e)).collect();
                call!(wr_set_sge_list, list.len(), list.as_ptr());
            }
            wr::INLINE => {
                let (addr, len) = self.bytes(w);
                call!(wr_set_inline_data, addr.cast::<c_void>(), len);
            }
            wr::INLINES => {
                let buffer = |(addr, length): (*mut u8, usize)| ibv_data_buf { addr: addr.cast(), length };
                let list: Vec<ibv_data_buf> = w.chunks(3).map(|b| buffer(self.bytes(b))).collect();
                call!(wr_set_inline_data_list, list.len(), list.as_ptr());
            }
            other => panic!("no step {other}"),
        }
        0
    }
}
