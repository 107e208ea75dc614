//! Queue pairs whose work requests are built by calls (man ibv_wr_post).
//!
//! Requests between `wr_start` and `wr_complete` are built in memory that was allocated with the
//! queue pair. An error is remembered and refuses the whole batch; a batch without one is posted
//! like a list. The builder's lock is not the send queue's: between the two calls, the same thread
//! may poll, and waiting sends make progress.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::objects::builder::{Batch, Builder};
use crate::objects::queue_pair::Qp;
use crate::objects::work::{INLINE, list_of, operations};
use crate::sys::spin::Guard;

/// Returns the batch of a queue pair while it is being built; `None` if none was started.
///
/// # Safety
/// `qp` is a live queue pair of this device, and the calling thread has called `wr_start`.
#[inline]
unsafe fn batch<'a>(qp: *mut ibv_qp_ex) -> Option<(&'a Qp, Guard<'a, Batch>)> {
    // SAFETY: every ibv_qp_ex of this device is the first member of a Qp.
    let qp = unsafe { Qp::from(qp.cast()) };
    let Builder(lock) = qp.builder.as_ref()?;
    // SAFETY: the caller is the thread that holds it.
    lock.is_held().then(|| (qp, unsafe { lock.held() }))
}

/// Runs `work` on the batch; the lock stays held.
///
/// # Safety
/// As for [`batch`].
#[inline]
unsafe fn build(qp: *mut ibv_qp_ex, work: impl FnOnce(&mut Batch, &Qp)) {
    // SAFETY: as the caller guarantees.
    if let Some((qp, guard)) = unsafe { batch(qp) } {
        work(&mut ManuallyDrop::new(guard), qp);
    }
}

unsafe extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    // SAFETY: the caller passes a live queue pair of this device.
    let qp = unsafe { Qp::from(qp.cast()) };
    if let Some(Builder(lock)) = &qp.builder {
        lock.hold();
        // SAFETY: it was just taken.
        ManuallyDrop::new(unsafe { lock.held() }).clear();
    }
}

unsafe extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    // SAFETY: the caller has called wr_start for this queue pair.
    match unsafe { batch(qp) } {
        Some((qp, mut batch)) => batch.post(qp),
        None => libc::EINVAL, // No batch was started.
    }
}

unsafe extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    // SAFETY: the caller has called wr_start for this queue pair.
    drop(unsafe { batch(qp) });
}

/// Defines the functions that begin a request, each with its operation, its immediate data and its
/// remote memory.
macro_rules! builders {
    ($($name:ident($($arg:ident: $type:ty),*) = $opcode:ident, $imm:expr, $remote:expr;)*) => {$(
        unsafe extern "C" fn $name(qp: *mut ibv_qp_ex, $($arg: $type),*) {
            // SAFETY: the caller has called wr_start for this queue pair.
            unsafe { build(qp, |batch, qp| batch.begin(qp, $opcode, $imm, $remote)) };
        }
    )*};
}

builders! {
    wr_send() = IBV_WR_SEND, 0, rdma(0, 0);
    wr_send_imm(imm: u32) = IBV_WR_SEND_WITH_IMM, imm, rdma(0, 0);
    wr_send_inv(rkey: u32) = IBV_WR_SEND_WITH_INV, rkey, rdma(0, 0);
    wr_rdma_write(rkey: u32, addr: u64) = IBV_WR_RDMA_WRITE, 0, rdma(rkey, addr);
    wr_rdma_write_imm(rkey: u32, addr: u64, imm: u32) = IBV_WR_RDMA_WRITE_WITH_IMM, imm, rdma(rkey, addr);
    wr_rdma_read(rkey: u32, addr: u64) = IBV_WR_RDMA_READ, 0, rdma(rkey, addr);
    wr_atomic_cmp_swp(rkey: u32, addr: u64, compare: u64, swap: u64) =
        IBV_WR_ATOMIC_CMP_AND_SWP, 0, atomic(rkey, addr, compare, swap);
    wr_atomic_fetch_add(rkey: u32, addr: u64, add: u64) =
        IBV_WR_ATOMIC_FETCH_AND_ADD, 0, atomic(rkey, addr, add, 0);
}

/// Also for a send, which accesses no remote memory.
fn rdma(rkey: u32, remote_addr: u64) -> ibv_send_wr_remote {
    ibv_send_wr_remote { rdma: ibv_wr_rdma { remote_addr, rkey } }
}

fn atomic(rkey: u32, remote_addr: u64, compare_add: u64, swap: u64) -> ibv_send_wr_remote {
    ibv_send_wr_remote { atomic: ibv_wr_atomic { remote_addr, compare_add, swap, rkey } }
}

/// Defines functions that the device does not support: a program may call them without checking
/// that they exist.
macro_rules! refused {
    ($($name:ident($($type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(qp: *mut ibv_qp_ex, $(_: $type),*) {
            // SAFETY: the caller has called wr_start for this queue pair.
            unsafe { build(qp, |batch, _| batch.refuse(libc::EOPNOTSUPP)) };
        }
    )*};
}

refused! {
    wr_bind_mw(*mut c_void, u32, *const c_void);
    wr_local_inv(u32);
    wr_send_tso(*mut c_void, u16, u16);
    wr_atomic_write(u32, u64, *const c_void);
    wr_set_xrc_srqn(u32);
}

unsafe extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32) {
    // SAFETY: the caller has called wr_start for this queue pair.
    unsafe { build(qp, |batch, _| batch.set_address(ah, remote_qpn, remote_qkey)) };
}

unsafe extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    // SAFETY: the caller has called wr_start for this queue pair.
    unsafe { build(qp, |batch, _| batch.set_elements(&[ibv_sge { addr, length, lkey }])) };
}

unsafe extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, num_sge: usize, sg_list: *const ibv_sge) {
    // SAFETY: the caller passes this many elements and has called wr_start for this queue pair.
    unsafe { build(qp, |batch, _| batch.set_elements(list_of(sg_list, num_sge))) };
}

unsafe extern "C" fn wr_set_inline_data(qp: *mut ibv_qp_ex, addr: *mut c_void, length: usize) {
    // SAFETY: the caller passes this many bytes and has called wr_start for this queue pair.
    unsafe { build(qp, |batch, _| batch.set_inline(&[ibv_data_buf { addr, length }])) };
}

unsafe extern "C" fn wr_set_inline_data_list(qp: *mut ibv_qp_ex, num_buf: usize, list: *const ibv_data_buf) {
    // SAFETY: the caller passes this many buffers and has called wr_start for this queue pair.
    unsafe { build(qp, |batch, _| batch.set_inline(list_of(list, num_buf))) };
}

/// Installs all functions, whatever was asked for, as mlx5 does.
pub(crate) fn install(qp: &mut ibv_qp_ex) {
    qp.wr_start = Some(wr_start);
    qp.wr_complete = Some(wr_complete);
    qp.wr_abort = Some(wr_abort);
    qp.wr_send = Some(wr_send);
    qp.wr_send_imm = Some(wr_send_imm);
    qp.wr_send_inv = Some(wr_send_inv);
    qp.wr_rdma_write = Some(wr_rdma_write);
    qp.wr_rdma_write_imm = Some(wr_rdma_write_imm);
    qp.wr_rdma_read = Some(wr_rdma_read);
    qp.wr_atomic_cmp_swp = Some(wr_atomic_cmp_swp);
    qp.wr_atomic_fetch_add = Some(wr_atomic_fetch_add);
    qp.wr_bind_mw = Some(wr_bind_mw);
    qp.wr_local_inv = Some(wr_local_inv);
    qp.wr_send_tso = Some(wr_send_tso);
    qp.wr_atomic_write = Some(wr_atomic_write);
    qp.wr_set_ud_addr = Some(wr_set_ud_addr);
    qp.wr_set_xrc_srqn = Some(wr_set_xrc_srqn);
    qp.wr_set_sge = Some(wr_set_sge);
    qp.wr_set_sge_list = Some(wr_set_sge_list);
    qp.wr_set_inline_data = Some(wr_set_inline_data);
    qp.wr_set_inline_data_list = Some(wr_set_inline_data_list);
}

/// Returns `IBV_QP_EX_WITH_*` of a service: each is at the bit of its `IBV_WR_*`.
pub(crate) fn builders_of(service: ibv_qp_type) -> u64 {
    u64::from(operations(service))
}

const _: () = {
    assert!(IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE);
    assert!(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM == 1 << IBV_WR_RDMA_WRITE_WITH_IMM);
    assert!(IBV_QP_EX_WITH_SEND == 1 << IBV_WR_SEND);
    assert!(IBV_QP_EX_WITH_SEND_WITH_IMM == 1 << IBV_WR_SEND_WITH_IMM);
    assert!(IBV_QP_EX_WITH_RDMA_READ == 1 << IBV_WR_RDMA_READ);
    assert!(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP == 1 << IBV_WR_ATOMIC_CMP_AND_SWP);
    assert!(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD == 1 << IBV_WR_ATOMIC_FETCH_AND_ADD);
    assert!(IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV);
};

/// Returns the builders of a queue pair that was made with builders; otherwise null
/// (`ibv_qp_to_qp_ex`).
///
/// # Safety
/// As for libibverbs' function: a live queue pair of this device.
pub unsafe extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    // SAFETY: the caller passes a live queue pair of this device.
    let has_builders = unsafe { Qp::from(qp) }.builder.is_some();
    if has_builders { qp.cast() } else { std::ptr::null_mut() }
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        (self.count, self.addressed, self.error) = (0, true, 0);
    }

    /// Remembers the first error.
    #[cold]
    pub(crate) fn refuse(&mut self, errno: c_int) {
        if self.error == 0 {
            self.error = errno;
        }
    }

    /// Refuses the batch if the last request is incomplete.
    #[inline]
    fn check_last(&mut self) {
        if !self.addressed {
            self.refuse(libc::EINVAL);
        }
    }

    /// Begins a request.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        qp: &Qp,
        opcode: ibv_wr_opcode,
        imm_data: u32,
        remote: ibv_send_wr_remote,
    ) {
        self.check_last();
        if self.operations >> opcode & 1 == 0 {
            self.refuse(libc::EOPNOTSUPP);
        } else if self.count == self.requests.len() {
            self.refuse(libc::ENOMEM);
        }
        if self.error != 0 {
            return;
        }
        // SAFETY: all-zero bytes are a valid ibv_send_wr: integers and null pointers.
        let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
        // A setter, not the program, says that the payload is inline.
        let flags = qp.ibv.wr_flags.load(Relaxed) & !IBV_SEND_INLINE;
        (wr.wr_id, wr.opcode, wr.send_flags) = (qp.ibv.wr_id.load(Relaxed), opcode, flags);
        (wr.imm_data, wr.wr) = (imm_data, remote);
        self.requests[self.count].write(wr);
        self.addressed = !self.is_datagram;
        self.count += 1;
    }

    /// Returns the request that setters change.
    #[inline]
    fn last(&mut self) -> Option<&mut ibv_send_wr> {
        if self.error != 0 {
            return None;
        }
        let Some(last) = self.count.checked_sub(1) else {
            self.refuse(libc::EINVAL);
            return None;
        };
        // SAFETY: the first `count` are initialised.
        Some(unsafe { self.requests[last].assume_init_mut() })
    }

    /// Sets where the last request's payload is, or is to go.
    #[inline]
    pub(crate) fn set_elements(&mut self, list: &[ibv_sge]) {
        if list.len() > self.max_sge {
            return self.refuse(libc::EINVAL);
        }
        let at = self.count.saturating_sub(1) * self.max_sge;
        let Some(wr) = self.last() else { return };
        wr.num_sge = list.len() as c_int;
        wr.send_flags &= !IBV_SEND_INLINE;
        for (to, from) in self.elements[at..].iter_mut().zip(list) {
            to.write(*from);
        }
    }

    /// Copies the last request's payload, which is then inline.
    ///
    /// # Safety
    /// The bytes are readable.
    #[inline]
    pub(crate) unsafe fn set_inline(&mut self, list: &[ibv_data_buf]) {
        let bytes = list.iter().fold(0_usize, |sum, buf| sum.saturating_add(buf.length));
        if bytes > self.max_inline || self.max_sge == 0 {
            return self.refuse(libc::EINVAL);
        }
        let last = self.count.saturating_sub(1);
        let Some(wr) = self.last() else { return };
        if INLINE >> wr.opcode & 1 == 0 {
            return self.refuse(libc::EINVAL);
        }
        (wr.num_sge, wr.send_flags) = (1, wr.send_flags | IBV_SEND_INLINE);
        let own = &mut self.inline[last * self.max_inline..][..bytes];
        let addr = own.as_ptr() as u64;
        let mut rest = own;
        for buf in list {
            let (to, behind) = rest.split_at_mut(buf.length);
            // SAFETY: the caller guarantees the bytes, and the batch's memory has as many.
            unsafe { std::ptr::copy_nonoverlapping(buf.addr.cast(), to.as_mut_ptr(), buf.length) };
            rest = behind;
        }
        self.elements[last * self.max_sge].write(ibv_sge { addr, length: bytes as u32, lkey: 0 });
    }

    pub(crate) fn set_address(&mut self, ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32) {
        if !self.is_datagram || ah.is_null() {
            return self.refuse(libc::EINVAL);
        }
        let Some(wr) = self.last() else { return };
        wr.wr.ud = ibv_wr_ud { ah, remote_qpn, remote_qkey };
        self.addressed = true;
    }

    /// Posts all requests or none.
    #[inline]
    pub(crate) fn post(&mut self, qp: &Qp) -> c_int {
        self.check_last();
        if self.error != 0 {
            return self.error;
        }
        let max_sge = self.max_sge;
        for (i, wr) in self.requests[..self.count].iter_mut().enumerate() {
            // SAFETY: the first `count` are initialised.
            let wr = unsafe { wr.assume_init_mut() };
            // For a request without elements, this points to none.
            wr.sg_list = self.elements[i * max_sge..].as_mut_ptr().cast();
        }
        // SAFETY: as above; a MaybeUninit has the layout of its value.
        let requests =
            unsafe { std::slice::from_raw_parts(self.requests.as_ptr().cast::<ibv_send_wr>(), self.count) };
        // SAFETY: the setters have written as many elements as each request has, within the queue
        // pair's limits; the program keeps a datagram's address handle alive, as for its other
        // requests.
        unsafe { qp.post_together(requests) }.err().unwrap_or(0)
    }
}
