//! State changes of a queue pair (man ibv_modify_qp).

use std::sync::atomic::Ordering::Relaxed;

use super::QpInner;
use crate::abi::*;
use crate::error::{Error, Result, service_name};

impl QpInner {
    /// Changes attributes, including the state.
    pub(super) fn modify(&self, attr: &mut ibv_qp_attr, mask: u32) -> Result<()> {
        // SAFETY: the queue pair is alive; of its members only the state changes, which is atomic.
        let qp = unsafe { &*self.raw };
        let qp_num = qp.qp_num;
        let service = qp.qp_type;
        let from = qp.state.load(Relaxed);
        // SAFETY: the queue pair is alive and the attributes are readable.
        let returned =
            unsafe { (self.provider().modify_qp)(self.raw, attr, (mask | IBV_QP_STATE).cast_signed()) };
        let object = || format!("{} queue pair {qp_num:#08x}", service_name(service));
        match returned {
            0 => Ok(()),
            libc::EINVAL => Err(Error::transition((qp_num, service), from, attr.qp_state, mask, returned)),
            _ => Error::check("modify_qp", object, returned),
        }
    }
}
