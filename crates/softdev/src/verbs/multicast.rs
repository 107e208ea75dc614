//! Joining and leaving multicast groups.

use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard, PoisonError};

use verbs::abi::*;

use crate::objects::queue_pair::Qp;
use crate::sys::limits::MEMBERS;
use crate::sys::settings::{LinkLayer, link_layer};
use crate::transport::local::address::{MULTICAST_LIDS, is_group};
use crate::transport::local::group::tell;

/// The queue pairs of this process and the groups that they have joined, by entry of the table.
static JOINED: Mutex<Vec<Option<(u32, ibv_gid)>>> = Mutex::new(Vec::new());

fn joined() -> MutexGuard<'static, Vec<Option<(u32, ibv_gid)>>> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a queue pair has joined a group: it then cannot be destroyed, as in the kernel
/// (`uverbs_free_qp()` in core/uverbs_std_types_qp.c).
pub(crate) fn is_member(qp_num: u32) -> bool {
    joined().iter().flatten().any(|(member, _)| *member == qp_num)
}

/// Makes the kernel's checks for joining and leaving (`ib_attach_mcast()` and
/// `is_valid_mcast_lid()` in core/verbs.c).
fn is_valid(qp: &Qp, group: &ibv_gid, lid: u16) -> bool {
    let has_lid = link_layer() == LinkLayer::Ethernet || MULTICAST_LIDS.contains(&lid);
    qp.ibv.qp_type == IBV_QPT_UD && is_group(group) && has_lid
}

pub(crate) unsafe extern "C" fn attach_mcast(qp: *mut ibv_qp, group: *const ibv_gid, lid: u16) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device and a readable GID.
    let (qp, group) = unsafe { (Qp::from(qp), *group) };
    if !is_valid(qp, &group, lid) {
        return libc::EINVAL;
    }
    let mut joined = joined();
    let entry = Some((qp.ibv.qp_num, group));
    if joined.contains(&entry) {
        return 0; // As in the kernel, one membership is enough.
    }
    let free = joined.iter().position(Option::is_none).unwrap_or(joined.len());
    if free == MEMBERS {
        return libc::ENOMEM;
    }
    if free == joined.len() {
        joined.push(None);
    }
    joined[free] = entry;
    let view = &qp.host.arena.view;
    view.member(free as u32).show(qp.ibv.qp_num, &group);
    view.header().members.store(joined.len() as u32, SeqCst);
    drop(joined);
    tell(qp.host);
    0
}

pub(crate) unsafe extern "C" fn detach_mcast(qp: *mut ibv_qp, group: *const ibv_gid, lid: u16) -> c_int {
    // SAFETY: the caller passes a live queue pair of this device and a readable GID.
    let (qp, group) = unsafe { (Qp::from(qp), *group) };
    let mut joined = joined();
    let entry = Some((qp.ibv.qp_num, group));
    let Some(found) = joined.iter().position(|other| *other == entry).filter(|_| is_valid(qp, &group, lid))
    else {
        return libc::EINVAL;
    };
    joined[found] = None;
    qp.host.arena.view.member(found as u32).qp_num.store(0, SeqCst);
    0
}
