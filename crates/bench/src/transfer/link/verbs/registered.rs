//! The slots of a ring, and the cost of registering them.

use measure::clock::{Clock, Ticks};
use verbs::{MemoryKind, MemoryRegion, ProtectionDomain};

use crate::Error;
use crate::transfer::link::BLOCK_BYTES_MIN;

/// The fewest slots of a ring that was shrunk because of too little locked memory.
const SLOTS_MIN: usize = 2;

/// The counts and the time of registrations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registered {
    /// The blocks whose memory was already registered.
    pub(super) hits: u64,
    /// The registrations.
    pub(super) misses: u64,
    /// Their time, in ns.
    pub(super) ns: f64,
}

impl Registered {
    /// Allocates and registers a slot.
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

    /// Counts a registration that began at `begin` and ends now.
    pub(super) fn see(&mut self, clock: Clock, begin: Ticks) {
        self.misses += 1;
        self.ns += clock.ns_f64(clock.now().since(begin));
    }
}

/// Makes `count` slots, or fewer and smaller ones if too little memory can be locked. Returns them
/// and their length in bytes.
///
/// # Errors
/// The error of the device if not even [`SLOTS_MIN`] slots of the smallest length can be made.
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
        // Only half of the possible slots: a peer on the same host needs locked memory, too.
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
