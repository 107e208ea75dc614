//! Making, changing, querying and destroying queue pairs.

use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32};

use verbs::abi::*;
use verbs::transition;

use crate::engine::port;
use crate::objects::builder::Builder;
use crate::objects::completion::Cq;
use crate::objects::context::{Ctx, Pd};
use crate::objects::queue_pair::Qp;
use crate::objects::receiving::Receiving;
use crate::objects::send_queue::SendQueue;
use crate::objects::srq::Srq;
use crate::objects::work::operations;
use crate::sys::errno::fail;
use crate::sys::indexes::Indexes;
use crate::sys::limits::{MAX_INLINE, MAX_RD_ATOMIC, MAX_SGE, MAX_WR, PORT, QP_INDEX_BITS, QPS};
use crate::sys::own_lock::OwnLock;
use crate::sys::spin::SpinLock;
use crate::transport::local::address::{Way, follow, is_valid_route, port_word};
use crate::transport::local::group::forget_the_dead;
use crate::transport::local::host::host;
use crate::transport::local::raise::Kind;
use crate::transport::local::target::index;
use crate::verbs::builder::{self, builders_of};
use crate::verbs::multicast;

/// Entries of the table of queue pairs in use.
static INDEXES: Indexes<QPS> = Indexes::new();

pub(crate) unsafe extern "C" fn create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: the caller passes a live domain, live queues, and readable and writable attributes.
    unsafe { create(pd, &mut *init, false) }
}

/// Makes a queue pair, with or without builders of work requests.
///
/// # Safety
/// The domain and the queues are alive.
pub(crate) unsafe fn create(pd: *mut ibv_pd, init: &mut ibv_qp_init_attr, builders: bool) -> *mut ibv_qp {
    let service_known = matches!(init.qp_type, IBV_QPT_RC | IBV_QPT_UC | IBV_QPT_UD);
    if !service_known {
        return fail(libc::EOPNOTSUPP);
    }
    // SAFETY: the caller passes null or a live queue, which lives at least as long as the queue
    // pair.
    let srq = (!init.srq.is_null()).then(|| unsafe { Srq::from(init.srq) });
    if srq.is_some() {
        // They mean nothing with a shared queue (man ibv_create_qp).
        (init.cap.max_recv_wr, init.cap.max_recv_sge) = (0, 0);
    }
    let cap = init.cap;
    // SAFETY: the caller passes a live domain and null or live queues.
    if !is_allowed(&cap) || !unsafe { is_of_one_context(pd, init) } {
        return fail(libc::EINVAL);
    }
    let cap = with_room(&mut init.cap);
    let Ok(host) = host() else { return fail(libc::ENODEV) };
    host.tidy();
    forget_the_dead();
    let Some(index) = INDEXES.take() else { return fail(libc::ENOMEM) };
    let Some(receiving) = Receiving::new(&host.arena, &cap, srq.map(|srq| srq.area)) else {
        INDEXES.give_back(index);
        return fail(libc::ENOMEM);
    };
    // SAFETY: the caller passes a live domain.
    let domain = unsafe { &*pd.cast::<Pd>() };
    domain.children.fetch_add(1, Relaxed);
    // SAFETY: the domain's context lives at least as long as the domain.
    let ctx = unsafe { Ctx::from(domain.ibv.context) };
    // SAFETY: all-zero bytes are a valid ibv_qp_ex: integers, null pointers, absent functions, an
    // unlocked mutex, an unused condition.
    let mut ibv: ibv_qp_ex = unsafe { std::mem::zeroed() };
    let base = &mut ibv.qp_base;
    (base.context, base.qp_context, base.pd) = (domain.ibv.context, init.qp_context, pd);
    (base.send_cq, base.recv_cq, base.srq) = (init.send_cq, init.recv_cq, init.srq);
    (base.handle, base.qp_num, base.qp_type) = (index, host.block << QP_INDEX_BITS | index, init.qp_type);
    if builders {
        builder::install(&mut ibv);
    }
    let qp = Box::into_raw(Box::new(Qp {
        ibv,
        host,
        shared: host.arena.view.qp(index),
        pd: domain.ibv.handle,
        device: ctx.device,
        cap,
        sq_sig_all: init.sq_sig_all != 0,
        attr: SpinLock::new(ibv_qp_attr { cap, ..ibv_qp_attr::default() }),
        way: SpinLock::new(Way::Elsewhere),
        send: OwnLock::new(SendQueue::on(ctx.link())),
        retired: AtomicU32::new(0),
        operations: operations(init.qp_type),
        initiator_depth: AtomicU8::new(0),
        receiving,
        srq,
        holders: AtomicU32::new(0),
        builder: builders.then(|| Builder::new(&cap, init.qp_type)),
    }));
    if let Some(srq) = srq {
        // SAFETY: it was just made.
        srq.attach(unsafe { &raw const (*qp).receiving });
    }
    // SAFETY: it was just made.
    publish(unsafe { &*qp });
    qp.cast()
}

/// Whether a queue pair with these capacities is possible.
fn is_allowed(cap: &ibv_qp_cap) -> bool {
    cap.max_send_wr <= MAX_WR
        && cap.max_recv_wr <= MAX_WR
        && cap.max_send_sge as usize <= MAX_SGE
        && cap.max_recv_sge as usize <= MAX_SGE
        && cap.max_inline_data <= MAX_INLINE
}

/// Gives a request as much inline space as its elements take, like Soft-RoCE: some programs
/// (rdma_xclient) send inline without having asked for it.
fn with_room(cap: &mut ibv_qp_cap) -> ibv_qp_cap {
    let least = size_of::<ibv_sge>() as u32 * cap.max_send_sge;
    cap.max_inline_data = cap.max_inline_data.max(least).min(MAX_INLINE);
    *cap
}

/// Whether there are completion queues that belong to the domain's context: a handle of one context
/// means nothing in another.
///
/// # Safety
/// The domain is alive, and the queues are null or alive.
unsafe fn is_of_one_context(pd: *mut ibv_pd, init: &ibv_qp_init_attr) -> bool {
    // SAFETY: as the caller guarantees.
    let of = |cq: *mut ibv_cq| !cq.is_null() && unsafe { (*cq).context == (*pd).context };
    of(init.send_cq) && of(init.recv_cq)
}

/// Makes a queue pair known to its peers, its completion queues and its context.
fn publish(qp: &Qp) {
    // SAFETY: the caller of create_qp passed live queues.
    let (send_cq, recv_cq) = unsafe { (Cq::from(qp.ibv.send_cq), Cq::from(qp.ibv.recv_cq)) };
    let shared = qp.shared();
    shared.state.store(IBV_QPS_RESET, Relaxed);
    shared.service.store(qp.ibv.qp_type, Relaxed);
    shared.pd.store(qp.pd, Relaxed);
    shared.port.store(port_word(qp.device), Relaxed);
    shared.recv_cq.store(recv_cq.index, Relaxed);
    qp.receiving.show(&shared.posted);
    shared.stamped.store(u32::from(recv_cq.is_stamped()), Relaxed);
    shared.access.store(0, Relaxed);
    shared.dest_qp_num.store(0, Relaxed);
    shared.next.value.store(0, Relaxed);
    shared.qp_num.store(qp.ibv.qp_num, Release);
    let ctx = qp.ctx();
    let serial = shared.generation.load(Relaxed);
    shared.context.store(ctx.events.index, Relaxed);
    ctx.events.enter(Kind::QueuePair, qp.ibv.qp_num, serial, (&raw const *qp).cast_mut());
    send_cq.attach_sender();
    recv_cq.attach_receiver(qp);
    let mut queue_pairs = ctx.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
    queue_pairs.push(qp);
    if port::is_down(qp.device) {
        qp.set_port(false);
    }
}

pub(crate) unsafe extern "C" fn destroy_qp(raw: *mut ibv_qp) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device.
    let qp = unsafe { Qp::from(raw) };
    if multicast::is_member(qp.ibv.qp_num) {
        return libc::EBUSY;
    }
    qp.land();
    qp.ctx()
        .queue_pairs
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|other| !std::ptr::eq(*other, qp));
    let shared = qp.shared();
    shared.state.store(IBV_QPS_RESET, SeqCst);
    shared.generation.fetch_add(1, SeqCst);
    shared.qp_num.store(0, SeqCst);
    qp.clear_sends(&mut qp.send.lock());
    qp.settle();
    // SAFETY: a queue pair's completion queues live at least as long as the queue pair.
    let (send_cq, recv_cq) = unsafe { (Cq::from(qp.ibv.send_cq), Cq::from(qp.ibv.recv_cq)) };
    send_cq.detach(qp);
    recv_cq.detach(qp);
    while qp.holders.load(Acquire) != 0 {
        std::thread::yield_now();
    }
    if !qp.ibv.srq.is_null() {
        qp.clear_receives();
        // SAFETY: a queue pair's shared receive queue lives at least as long as the queue pair.
        unsafe { Srq::from(qp.ibv.srq) }.detach(&raw const qp.receiving);
    }
    qp.receiving.free(&qp.host.arena);
    qp.ctx().events.leave(Kind::QueuePair, qp.ibv.qp_num);
    INDEXES.give_back(index(qp.ibv.qp_num));
    // SAFETY: a queue pair's domain lives at least as long as the queue pair.
    unsafe { &*qp.ibv.pd.cast::<Pd>() }.children.fetch_sub(1, Relaxed);
    // SAFETY: create_qp made it, and no list holds it any more.
    drop(unsafe { Box::from_raw(raw.cast::<Qp>()) });
    0
}

pub(crate) unsafe extern "C" fn modify_qp(raw: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device and readable attributes.
    let (qp, new) = unsafe { (Qp::from(raw), &*attr) };
    let mask = mask.cast_unsigned();
    let from = qp.state();
    let to = if mask & IBV_QP_STATE != 0 { new.qp_state } else { from };
    let current_as_said = mask & IBV_QP_CUR_STATE == 0 || new.cur_qp_state == from;
    let allowed = transition::check(qp.ibv.qp_type, from, to, mask).is_ok();
    if !current_as_said || !allowed || !is_valid(qp.device, new, mask) {
        return libc::EINVAL;
    }
    // An obstacle to a live peer does not go away: later it would look like a peer that does not
    // answer.
    if mask & IBV_QP_DEST_QPN != 0
        && let Some(errno) = qp.host.obstacle(new.dest_qp_num)
    {
        return errno;
    }
    apply(qp, new, mask);
    match to {
        IBV_QPS_RESET => qp.reset(),
        IBV_QPS_ERR => qp.fail(),
        _ if !qp.advance(from, to) => return libc::EINVAL,
        _ => {
            if to == IBV_QPS_RTS && from == IBV_QPS_RTR {
                qp.warm_up();
            }
            // Everything that had begun has ended: waiting requests begin again in RTS.
            let tell = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY != 0 && new.en_sqd_async_notify != 0;
            if to == IBV_QPS_SQD && from != to && tell {
                qp.raise(IBV_EVENT_SQ_DRAINED);
            }
            qp.ctx().progress();
        }
    }
    qp.ibv.state.store(to, Relaxed);
    0
}

/// Whether the values of the attributes in `mask` are acceptable.
fn is_valid(device: u8, attr: &ibv_qp_attr, mask: u32) -> bool {
    let unless = |bit: u32, valid: bool| mask & bit == 0 || valid;
    unless(IBV_QP_PORT, attr.port_num == PORT)
        && unless(IBV_QP_PKEY_INDEX, attr.pkey_index == 0)
        && unless(IBV_QP_AV, is_valid_route(device, &attr.ah_attr))
        && unless(IBV_QP_ALT_PATH, false)
        && unless(IBV_QP_PATH_MTU, (IBV_MTU_256..=IBV_MTU_4096).contains(&attr.path_mtu))
        && unless(IBV_QP_DEST_QPN, attr.dest_qp_num >> 24 == 0)
        && unless(IBV_QP_TIMEOUT, attr.timeout < 32)
        && unless(IBV_QP_RETRY_CNT, attr.retry_cnt < 8)
        && unless(IBV_QP_RNR_RETRY, attr.rnr_retry < 8)
        && unless(IBV_QP_MIN_RNR_TIMER, attr.min_rnr_timer < 32)
        && unless(IBV_QP_MAX_QP_RD_ATOMIC, attr.max_rd_atomic <= MAX_RD_ATOMIC)
        && unless(IBV_QP_MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic <= MAX_RD_ATOMIC)
}

/// Stores the attributes in `mask`, and shows peers those that concern them.
fn apply(qp: &Qp, new: &ibv_qp_attr, mask: u32) {
    /// Packet sequence numbers have 24 bits.
    const PSN: u32 = 0xff_ffff;
    if mask & IBV_QP_AV != 0 {
        // This asks the kernel, so it is done without a lock.
        let way = follow(&new.ah_attr);
        *qp.way.lock() = way;
    }
    let mut attr = qp.attr.lock();
    let shared = qp.shared();
    macro_rules! keep {
        ($($bit:ident => $field:ident $(= $value:expr)? $(, $($shown:ident).+)?;)*) => {$(
            if mask & $bit != 0 {
                attr.$field = new.$field;
                $(attr.$field = $value;)?
                $(shared.$($shown).+.store(u32::from(attr.$field), Release);)?
            }
        )*};
    }
    keep! {
        IBV_QP_ACCESS_FLAGS => qp_access_flags, access;
        IBV_QP_PKEY_INDEX => pkey_index;
        IBV_QP_PORT => port_num;
        IBV_QP_QKEY => qkey, qkey;
        IBV_QP_AV => ah_attr;
        IBV_QP_PATH_MTU => path_mtu;
        IBV_QP_TIMEOUT => timeout;
        IBV_QP_RETRY_CNT => retry_cnt;
        IBV_QP_RNR_RETRY => rnr_retry;
        IBV_QP_RQ_PSN => rq_psn = new.rq_psn & PSN, posted.rq_psn;
        IBV_QP_SQ_PSN => sq_psn = new.sq_psn & PSN;
        IBV_QP_MAX_QP_RD_ATOMIC => max_rd_atomic;
        IBV_QP_MAX_DEST_RD_ATOMIC => max_dest_rd_atomic, responder_resources;
        IBV_QP_MIN_RNR_TIMER => min_rnr_timer, posted.min_rnr_timer;
        IBV_QP_DEST_QPN => dest_qp_num;
    }
    if mask & IBV_QP_DEST_QPN != 0 {
        qp.show_peer(attr.dest_qp_num);
    }
    qp.initiator_depth.store(attr.max_rd_atomic, Relaxed);
}

pub(crate) unsafe extern "C" fn query_qp(
    raw: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device.
    let qp = unsafe { Qp::from(raw) };
    let mut now = *qp.attr.lock();
    now.qp_state = qp.state();
    now.cur_qp_state = now.qp_state;
    now.cap = qp.cap;
    let made = ibv_qp_init_attr {
        qp_context: qp.ibv.qp_context,
        send_cq: qp.ibv.send_cq,
        recv_cq: qp.ibv.recv_cq,
        srq: qp.ibv.srq,
        cap: qp.cap,
        qp_type: qp.ibv.qp_type,
        sq_sig_all: c_int::from(qp.sq_sig_all),
    };
    // SAFETY: the caller passes two writable structures.
    unsafe {
        attr.write(now);
        init.write(made);
    }
    qp.ibv.state.store(now.qp_state, Relaxed);
    0
}

/// The attributes that `create_qp_ex` knows; others give EOPNOTSUPP.
const KNOWN: u32 = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

/// `ibv_create_qp_ex`(3).
pub(crate) unsafe extern "C" fn create_qp_ex(
    _: *mut ibv_context,
    init: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: the caller passes readable and writable attributes.
    let init = unsafe { &mut *init };
    let has = |bit: u32| init.comp_mask & bit != 0;
    let asked = if has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) { init.send_ops_flags } else { 0 };
    let refused = init.comp_mask & !KNOWN != 0
        || (has(IBV_QP_INIT_ATTR_CREATE_FLAGS) && init.create_flags != 0)
        || !matches!(init.qp_type, IBV_QPT_RC | IBV_QPT_UC | IBV_QPT_UD)
        || asked & !builders_of(init.qp_type) != 0;
    if refused {
        return fail(libc::EOPNOTSUPP);
    }
    if !has(IBV_QP_INIT_ATTR_PD) || init.pd.is_null() {
        return fail(libc::EINVAL);
    }
    let mut plain = ibv_qp_init_attr {
        qp_context: init.qp_context,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        cap: init.cap,
        qp_type: init.qp_type,
        sq_sig_all: init.sq_sig_all,
    };
    // SAFETY: the domain is alive, and so are the queues.
    let made = unsafe { create(init.pd, &mut plain, has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) };
    init.cap = plain.cap;
    made
}
