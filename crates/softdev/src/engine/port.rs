//! Ports that go down and come up: [`set_port`] does to a port what pulling a cable does to an
//! adapter's.
//!
//! A queue pair whose port is down says so in its table entry, so no peer finds it. The number of
//! its peer in the entry is then one that no queue pair has, so a peer that found it before gets no
//! answer. The queue pair also puts its own target aside. Requests of reliable connections
//! therefore end like unanswered ones, unless the port comes up before, and datagrams are dropped.

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

/// The devices of this process whose port is down, one bit each.
static DOWN: AtomicU32 = AtomicU32::new(0);

/// A bit in the word of a port: the port is down.
const DOWN_BIT: u32 = 1 << 31;
/// A bit in the number of a peer, of which 24 bits are in use (IBTA vol. 1, section 3.5.10).
const CUT_OFF: u32 = 1 << 31;

/// The open contexts of this process.
static CONTEXTS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn contexts() -> MutexGuard<'static, Vec<usize>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an open context.
pub(crate) fn enter(ctx: *const Ctx) {
    contexts().push(ctx.addr());
}

/// Removes a context.
pub(crate) fn leave(ctx: *const Ctx) {
    contexts().retain(|other| *other != ctx.addr());
}

/// Whether the port of a device is down.
pub(crate) fn is_down(device: u8) -> bool {
    DOWN.load(SeqCst) & 1 << device != 0
}

/// Takes the port of a device of this process down (`false`), or brings it up. `ibv_query_port`
/// reports the state, and each context of the device gets the event `IBV_EVENT_PORT_ERR` or
/// `IBV_EVENT_PORT_ACTIVE`. While the port is down, the queue pairs of this process neither send
/// nor receive. Other processes have ports of their own. Nothing happens if the port is already in
/// that state.
///
/// # Errors
/// If there is no such device.
pub fn set_port(device: u8, is_up: bool) -> io::Result<()> {
    let devices = settings().as_ref().map_or(0, |settings| settings.devices);
    if device >= devices {
        let why = format!("softdev has no device {device}: its {devices} devices are numbered from 0");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let contexts = contexts();
    if is_down(device) != is_up {
        return Ok(());
    }
    DOWN.fetch_xor(1 << device, SeqCst);
    for address in contexts.iter() {
        // SAFETY: a context removes itself from the list, whose lock is held, before it is closed.
        let ctx = unsafe { &*(*address as *const Ctx) };
        if ctx.device == device {
            let queue_pairs = ctx.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: a queue pair removes itself from the list, under the lock that is held,
            // before it is destroyed.
            queue_pairs.iter().for_each(|qp| unsafe { &**qp }.set_port(is_up));
            drop(queue_pairs);
            let event = if is_up { IBV_EVENT_PORT_ACTIVE } else { IBV_EVENT_PORT_ERR };
            ctx.events.raise(event, u32::from(PORT), 0);
        }
    }
    Ok(())
}

/// Whether a port with this word is up.
#[inline]
pub(crate) fn is_up(port: u32) -> bool {
    port & DOWN_BIT == 0
}

impl Qp {
    /// Whether its port is up.
    pub(crate) fn has_port(&self) -> bool {
        is_up(self.shared().port.load(Relaxed))
    }

    /// Follows its port, which has gone down or come up.
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
            // Senders of datagrams must look for the queue pair again.
            shared.generation.fetch_add(1, SeqCst);
        }
        queue.put_away(!is_up);
    }

    /// Shows the number of its peer, which is invalid while its port is down.
    pub(crate) fn show_peer(&self, qp_num: u32) {
        let cut_off = if self.has_port() { 0 } else { CUT_OFF };
        self.shared().dest_qp_num.store(qp_num | cut_off, SeqCst);
    }

    /// Returns the number of its peer; 0 if there is none.
    pub(crate) fn peer_number(&self) -> u32 {
        self.shared().dest_qp_num.load(Relaxed) & !CUT_OFF
    }
}
