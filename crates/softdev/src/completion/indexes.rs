//! Entries of the table of completion queues: which are in use.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::CQS;

static INDEXES: Mutex<Indexes> = Mutex::new(Indexes { used: Vec::new(), next: 0, serial: 0 });

struct Indexes {
    used: Vec<bool>,
    next: usize,
    serial: u64,
}

fn indexes() -> MutexGuard<'static, Indexes> {
    INDEXES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A free entry, with a serial number that makes its handle unique.
pub(super) fn take() -> Option<(u32, u64)> {
    let mut table = indexes();
    table.used.resize(CQS, false);
    let index = (0..CQS).map(|i| (table.next + i) % CQS).find(|i| !table.used[*i])?;
    table.used[index] = true;
    table.next = index + 1;
    table.serial += 1;
    Some((index as u32, table.serial))
}

pub(super) fn give_back(index: u32) {
    indexes().used[index as usize] = false;
}
