//! Ports that go down and come up: what pulling a cable does to an adapter's port, a function does
//! to one of these.
//!
//! A queue pair whose port is down says so in its table entry, so that no peer finds it; the number
//! of its peer there is one that no queue pair has, so that nobody who has found it before is
//! answered; and it puts away whom it sends to. So requests of reliable connections end as those
//! that nobody answers, unless the port comes up before, and datagrams are dropped.

use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use verbs::abi::*;

use crate::objects::context::Ctx;
use crate::objects::queue_pair::Qp;
use crate::sys::limits::PORT;
use crate::sys::settings::settings;
use crate::transport::local::address::port_word;

/// Devices of this process whose port is down, a bit for each.
static DOWN: AtomicU32 = AtomicU32::new(0);

/// In the word of a port: it is down.
const DOWN_BIT: u32 = 1 << 31;
/// In the number of a peer, of which 24 bits are in use (IBTA vol. 1, section 3.5.10).
const CUT_OFF: u32 = 1 << 31;

/// Contexts of this process that are open.
static CONTEXTS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn contexts() -> MutexGuard<'static, Vec<usize>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A context is open from now on.
pub(crate) fn enter(ctx: *const Ctx) {
    contexts().push(ctx.addr());
}

/// It is not any more.
pub(crate) fn leave(ctx: *const Ctx) {
    contexts().retain(|other| *other != ctx.addr());
}

/// Whether the port of a device is down.
pub(crate) fn is_down(device: u8) -> bool {
    DOWN.load(SeqCst) & 1 << device != 0
}

/// Takes the port of a device of this process down (false), or brings it up again. `ibv_query_port`
/// says so, and each context of the device has an event, `IBV_EVENT_PORT_ERR` or
/// `IBV_EVENT_PORT_ACTIVE`. While it is down nothing goes out from the queue pairs of this process,
/// and nothing comes in to them; other processes' ports of the device are their own.
///
/// # Errors
/// When there is no such device. Nothing happens when the port is in that state already.
pub fn set_port(device: u8, is_up: bool) -> io::Result<()> {
    let devices = settings().as_ref().map_or(0, |settings| settings.devices);
    if device >= devices {
        let why =
            format!("softdev has no device {device} whose port could change: its {devices} count from 0");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let contexts = contexts();
    if is_down(device) != is_up {
        return Ok(());
    }
    DOWN.fetch_xor(1 << device, SeqCst);
    for address in contexts.iter() {
        // SAFETY: a context takes itself off the list, whose lock is held, before it goes.
        let ctx = unsafe { &*(*address as *const Ctx) };
        if ctx.device == device {
            let queue_pairs = ctx.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: a queue pair takes itself off the list, under the lock that is held, before
            // it goes.
            queue_pairs.iter().for_each(|qp| unsafe { &**qp }.set_port(is_up));
            drop(queue_pairs);
            let event = if is_up { IBV_EVENT_PORT_ACTIVE } else { IBV_EVENT_PORT_ERR };
            ctx.events.raise(event, u32::from(PORT), 0);
        }
    }
    Ok(())
}

/// Whether a port is up that has this word.
#[inline]
pub(crate) fn is_up(port: u32) -> bool {
    port & DOWN_BIT == 0
}

impl Qp {
    /// Whether its port is up.
    pub(crate) fn has_port(&self) -> bool {
        is_up(self.shared().port.load(Relaxed))
    }

    /// Its port has gone down or come up.
    pub(crate) fn set_port(&self, is_up: bool) {
        let mut queue = self.send.lock();
        let shared = self.shared();
        if is_up {
            shared.dest_qp_num.fetch_and(!CUT_OFF, SeqCst);
            shared.port.store(port_word(self.device), SeqCst);
        } else {
            shared.port.store(port_word(self.device) | DOWN_BIT, SeqCst);
            shared.dest_qp_num.fetch_or(CUT_OFF, SeqCst);
        }
        if self.ibv.qp_type == IBV_QPT_UD {
            // Whoever sends datagrams has to look for it anew.
            shared.generation.fetch_add(1, SeqCst);
        }
        queue.put_away(!is_up);
    }

    /// Shows whom it is connected to, as far as its port lets it be.
    pub(crate) fn show_peer(&self, qp_num: u32) {
        let cut_off = if self.has_port() { 0 } else { CUT_OFF };
        self.shared().dest_qp_num.store(qp_num | cut_off, SeqCst);
    }

    /// Whom it is connected to; 0 for nobody.
    pub(crate) fn peer_number(&self) -> u32 {
        self.shared().dest_qp_num.load(Relaxed) & !CUT_OFF
    }
}
