//! Slots of a ring, and what registering them costs.

use measure::clock::{Clock, Ticks};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain};

use crate::Error;
use crate::transfer::link::BLOCK_BYTES_MIN;

/// The least number of blocks where not enough memory can be locked.
const SLOTS_MIN: usize = 2;

/// How often and how long memory was registered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registered {
    pub(super) hits: u64,
    pub(super) misses: u64,
    /// How long that took.
    pub(super) ns: f64,
}

impl Registered {
    /// Registers memory that only this end reaches, or that the other end writes to.
    fn register(
        &mut self,
        clock: Clock,
        domain: &ProtectionDomain,
        bytes: usize,
        access: u32,
    ) -> Result<MemoryRegion, verbs::Error> {
        let buffer = domain.buffer(MemoryKind::Device, bytes)?;
        let begin = clock.now();
        let region = domain.register(buffer, access);
        self.see(clock, begin);
        region
    }

    /// Takes note that memory was registered, since then.
    pub(super) fn see(&mut self, clock: Clock, begin: Ticks) {
        self.misses += 1;
        self.ns += clock.ns_f64(clock.now().since(begin));
    }
}

/// As many slots as asked for, or fewer and smaller ones where memory cannot be locked.
///
/// # Errors
/// What the device says where not even those can be had.
pub(super) fn slots(
    registered: &mut Registered,
    clock: Clock,
    domain: &ProtectionDomain,
    (count, bytes): (usize, usize),
    access: u32,
) -> Result<(Vec<MemoryRegion>, usize), Error> {
    let mut bytes = bytes;
    loop {
        let mut slots = Vec::with_capacity(count);
        let failed = loop {
            if slots.len() == count {
                return Ok((slots, bytes));
            }
            match registered.register(clock, domain, bytes, access) {
                Ok(slot) => slots.push(slot),
                Err(error) => break error,
            }
        };
        // Half of those that could be had: the other end of a connection to oneself needs some.
        let half = slots.len() / 2;
        if half >= SLOTS_MIN {
            slots.truncate(half);
            return Ok((slots, bytes));
        }
        drop(slots);
        if bytes / 2 < BLOCK_BYTES_MIN as usize {
            return Err(failed.into());
        }
        bytes /= 2;
    }
}
