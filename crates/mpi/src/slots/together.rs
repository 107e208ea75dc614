//! Calls for the requests of several slots.

use std::ffi::c_int;
use std::ops::Range;

use super::{Envelope, Kind, Slot, Slots, sent};
use crate::communicator::count;
use crate::error::{Error, Result};
use crate::functions::Call;
use crate::status::Status;
use crate::waiting;

impl Slots {
    /// `MPI_Isend` of the first `bytes` bytes of each of a range of slots.
    ///
    /// # Errors
    /// As [`isend`](Self::isend). Sends before the one that failed are pending.
    #[inline]
    pub fn isend_each(&mut self, range: Range<usize>, bytes: usize, to: u32, tag: i32) -> Result<()> {
        let envelope = self.send_envelope(bytes, to, tag)?;
        self.begin_each(range, Kind::Send, envelope)
    }

    /// `MPI_Irecv` of up to `bytes` bytes into each of a range of slots; see
    /// [`irecv`](Self::irecv).
    ///
    /// # Errors
    /// As [`isend`](Self::isend). Receives before the one that failed are pending.
    #[inline]
    pub fn irecv_each(
        &mut self,
        range: Range<usize>,
        bytes: usize,
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<()> {
        let envelope = self.receive_envelope(bytes, from, tag)?;
        self.begin_each(range, Kind::Receive, envelope)
    }

    /// `MPI_Startall` of the persistent requests of a range of slots.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[inline]
    pub fn start_all(&mut self, range: Range<usize>) -> Result<()> {
        let length = count(range.len())?;
        for slot in range.clone() {
            self.startable(slot, Call::Startall)?;
        }
        let inner = &*self.communicator.0;
        for slot in &mut self.slots[range.clone()] {
            slot.is_pending = true;
        }
        // SAFETY: as in `start`; the array has `length` requests.
        let code = unsafe { (inner.functions.startall)(length, self.requests.range(range)) };
        inner.library.check(Call::Startall, None, code)
    }

    /// `MPI_Waitall` of the pending requests of a range of slots, with `MPI_STATUSES_IGNORE`. Slots
    /// without a pending request are skipped.
    ///
    /// # Errors
    /// Errors of MPI.
    #[inline]
    pub fn wait_all(&mut self, range: Range<usize>) -> Result<()> {
        let length = count(range.len())?;
        let inner = &*self.communicator.0;
        let requests = self.requests.range(range.clone());
        waiting::enter(Call::Waitall, None);
        // SAFETY: the array has `length` requests; null and inactive ones are allowed.
        let code =
            unsafe { (inner.functions.waitall)(length, requests, inner.library.constants.statuses_ignore()) };
        waiting::leave();
        inner.library.check(Call::Waitall, None, code)?;
        for slot in &mut self.slots[range] {
            slot.is_pending = false;
        }
        Ok(())
    }

    /// `MPI_Testall` of a range of slots whose requests are pending: whether all of them have
    /// completed. Then [`status`](Self::status) returns the status of each.
    ///
    /// # Errors
    /// Errors of MPI, a slot without a pending request.
    #[inline]
    pub fn test_all(&mut self, range: Range<usize>) -> Result<bool> {
        let length = count(range.len())?;
        self.all_pending(range.clone(), Call::Testall)?;
        let inner = &*self.communicator.0;
        let requests = self.requests.range(range.clone());
        let mut are_complete = 0;
        // SAFETY: the array has `length` requests, and there is space for as many statuses of any
        // ABI.
        let code = unsafe {
            (inner.functions.testall)(
                length,
                requests,
                &raw mut are_complete,
                self.statuses.out(range.clone(), inner.library),
            )
        };
        if code != 0 {
            return Err(self.lost_of(range, Call::Testall, code));
        }
        if are_complete == 0 {
            return Ok(false);
        }
        self.slots[range].iter_mut().for_each(|slot| slot.is_pending = false);
        Ok(true)
    }

    /// `MPI_Waitall` of a range of slots whose requests are pending. Then [`status`](Self::status)
    /// returns the status of each.
    ///
    /// # Errors
    /// Errors of MPI, a slot without a pending request.
    #[inline]
    pub fn wait_each(&mut self, range: Range<usize>) -> Result<()> {
        let length = count(range.len())?;
        self.all_pending(range.clone(), Call::Waitall)?;
        let inner = &*self.communicator.0;
        let requests = self.requests.range(range.clone());
        waiting::enter(Call::Waitall, self.slots.get(range.start).and_then(Slot::peer));
        // SAFETY: as in `test_all`.
        let code = unsafe {
            (inner.functions.waitall)(length, requests, self.statuses.out(range.clone(), inner.library))
        };
        waiting::leave();
        if code != 0 {
            return Err(self.lost_of(range, Call::Waitall, code));
        }
        self.slots[range].iter_mut().for_each(|slot| slot.is_pending = false);
        Ok(())
    }

    /// Returns the status of a slot's request that [`test_all`](Self::test_all) or
    /// [`wait_each`](Self::wait_each) has completed, until one of them tests it again.
    #[inline]
    #[must_use]
    pub fn status(&self, slot: usize) -> Status {
        match self.slots[slot] {
            Slot { kind: Kind::Receive, .. } => self.statuses.read(slot, self.communicator.0.library),
            Slot { envelope, .. } => sent(envelope),
        }
    }

    /// Whether the messages received by all slots of a range have the tag `tag`; see
    /// [`status`](Self::status).
    #[inline]
    #[must_use]
    pub fn are_tagged(&self, range: Range<usize>, tag: i32) -> bool {
        self.statuses.are_tagged(range, tag, self.communicator.0.library)
    }

    /// Creates the requests of a range of slots. All have the same envelope, so the loop calls only
    /// MPI's function.
    #[inline]
    fn begin_each(&mut self, range: Range<usize>, kind: Kind, envelope: Envelope) -> Result<()> {
        let is_free = |slot: &Slot| !slot.is_pending && !slot.is_persistent;
        if !self.slots[range.clone()].iter().all(is_free) {
            // Some slots have requests, which are freed or cause an error.
            return range.into_iter().try_for_each(|slot| self.begin_one(slot, kind, envelope));
        }
        let inner = &*self.communicator.0;
        let (length, peer, tag) = envelope;
        let byte = inner.byte;
        let communicator = inner.handle;
        let isend = inner.functions.isend;
        let irecv = inner.functions.irecv;
        let stride = inner.library.constants.numbers.handle_bytes as usize;
        let mut buffer = self.memory.at(range.start * self.stride);
        let mut request: *mut u8 = self.requests.range(range.clone()).cast();
        let mut begun = 0;
        let mut code = 0;
        while begun < range.len() {
            // SAFETY: as in `begin`.
            code = unsafe {
                match kind {
                    Kind::Send => isend(buffer.cast(), length, byte, peer, tag, communicator, request.cast()),
                    _ => irecv(buffer.cast(), length, byte, peer, tag, communicator, request.cast()),
                }
            };
            if code != 0 {
                break;
            }
            begun += 1;
            // SAFETY: each slot of the range has a buffer and a request: both pointers stay in
            // their allocations, or at the end of them.
            (buffer, request) = unsafe { (buffer.add(self.stride), request.add(stride)) };
        }
        let begins = Slot { kind, is_persistent: false, is_pending: true, envelope };
        self.slots[range.clone()][..begun].fill(begins);
        if code == 0 {
            return Ok(());
        }
        self.requests.set(range.start + begun, inner.library.constants.handles.request_null);
        Err(inner.library.failed(kind.call(), u32::try_from(peer).ok(), code))
    }

    /// Checks that all slots of a range have pending requests. The error names the first that has
    /// none.
    #[inline]
    fn all_pending(&self, range: Range<usize>, call: Call) -> Result<()> {
        if self.slots[range.clone()].iter().fold(true, |all, slot| all & slot.is_pending) {
            return Ok(());
        }
        range.into_iter().try_for_each(|slot| self.pending(slot, call))
    }

    /// Returns the error of `MPI_Testall` or `MPI_Waitall`, for the first failed request if the
    /// statuses tell which. Requests that MPI has freed are no longer pending.
    #[cold]
    fn lost_of(&mut self, range: Range<usize>, call: Call, code: c_int) -> Error {
        let inner = &*self.communicator.0;
        let constants = &inner.library.constants;
        let is_in_status = code == constants.numbers.err_in_status;
        let mut failed = None;
        for slot in range {
            if is_in_status && failed.is_none() {
                failed = self.statuses.error(slot, inner.library).map(|code| (self.slots[slot].peer(), code));
            }
            if self.requests.get(slot) == constants.handles.request_null {
                self.slots[slot].is_pending = false;
            }
        }
        let (peer, code) = failed.unwrap_or((None, code));
        inner.library.failed(call, peer, code)
    }
}
