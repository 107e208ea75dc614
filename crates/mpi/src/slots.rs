//! Message buffers, each with a request.

mod together;

use std::ffi::{c_int, c_void};

use crate::communicator::{Communicator, checked_tag, count};
use crate::error::{Error, Result};
use crate::functions::Call;
use crate::handles::HandleArray;
use crate::memory::Memory;
use crate::status::{RawStatus, RawStatuses, Status};
use crate::waiting;

/// The size of a cache line: no two slots share one.
const STRIDE: usize = 64;
/// How often a dropped pool tests a cancelled or late request, before it leaks its memory. A
/// cancelled receive completes with the first tests; a send to a rank that died never does.
const LAST_TESTS: usize = 10_000;

/// `count` message buffers in one page-aligned allocation, each with one request.
///
/// # Panics
/// Functions that take a slot's number panic if the pool has no such slot.
pub struct Slots {
    communicator: Communicator,
    memory: Memory,
    requests: HandleArray,
    slots: Vec<Slot>,
    bytes: usize,
    stride: usize,
    status: RawStatus,
    /// Space for the statuses of all slots.
    statuses: RawStatuses,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    None,
    Receive,
    Send,
}

/// The request of a slot. It has 16 bytes, because all requests of a window are written repeatedly.
#[derive(Clone, Copy)]
struct Slot {
    kind: Kind,
    is_persistent: bool,
    /// MPI may use the buffer.
    is_pending: bool,
    /// Count, rank and tag. The status of a send has the same values.
    envelope: Envelope,
}

/// Count, rank and tag of a request, as MPI takes them.
type Envelope = (c_int, c_int, c_int);

impl Slots {
    /// Allocates `slots` buffers of `bytes` bytes, and touches them.
    ///
    /// # Errors
    /// More than 2147483647 B in a slot, or more than the address space allows.
    pub fn new(communicator: &Communicator, slots: usize, bytes: usize) -> Result<Self> {
        count(bytes)?;
        let stride = bytes.max(1).next_multiple_of(STRIDE);
        let constants = &communicator.0.library.constants;
        let null = constants.handles.request_null;
        let slot = Slot { kind: Kind::None, is_persistent: false, is_pending: false, envelope: (0, 0, 0) };
        Ok(Self {
            memory: Memory::new(stride.checked_mul(slots).ok_or(Error::TooLong { bytes })?)?,
            requests: HandleArray::new(constants.numbers.handle_bytes, slots, null),
            slots: vec![slot; slots],
            communicator: communicator.clone(),
            bytes,
            stride,
            status: RawStatus::new(),
            statuses: RawStatuses::new(slots),
        })
    }

    /// The number of slots.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes of a slot. A pending send may be read.
    ///
    /// # Panics
    /// While a receive is pending.
    #[inline]
    #[must_use]
    pub fn bytes(&self, slot: usize) -> &[u8] {
        let Slot { kind, is_pending, .. } = self.slots[slot];
        assert!(!is_pending || kind == Kind::Send, "the receive of slot {slot} is pending");
        // SAFETY: no request that writes the slot is pending, and to start one takes `&mut self`.
        unsafe { self.memory.bytes(slot * self.stride, self.bytes) }
    }

    /// Returns the bytes of a slot, to be changed.
    ///
    /// # Panics
    /// While a request is pending.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(!self.slots[slot].is_pending, "the request of slot {slot} is pending");
        // SAFETY: no request of the slot is pending, and to start one takes `&mut self`.
        unsafe { self.memory.bytes_mut(slot * self.stride, self.bytes) }
    }

    /// Whether the slot's request has started and is not known to be complete.
    #[inline]
    #[must_use]
    pub fn is_pending(&self, slot: usize) -> bool {
        self.slots[slot].is_pending
    }

    /// `MPI_Isend` of the slot's first `bytes` bytes.
    ///
    /// # Errors
    /// Errors of MPI, a rank or a tag that does not exist, a pending request, more bytes than the
    /// slot has.
    #[inline]
    pub fn isend(&mut self, slot: usize, bytes: usize, to: u32, tag: i32) -> Result<()> {
        let envelope = self.send_envelope(bytes, to, tag)?;
        self.begin_one(slot, Kind::Send, envelope)
    }

    /// `MPI_Irecv` of up to `bytes` bytes, from any rank (`None`) and with any tag (`None`).
    ///
    /// # Errors
    /// As [`isend`](Self::isend).
    #[inline]
    pub fn irecv(&mut self, slot: usize, bytes: usize, from: Option<u32>, tag: Option<i32>) -> Result<()> {
        let envelope = self.receive_envelope(bytes, from, tag)?;
        self.begin_one(slot, Kind::Receive, envelope)
    }

    /// `MPI_Send_init`: a persistent request, which [`start`](Self::start) starts any number of
    /// times. It replaces the slot's persistent request.
    ///
    /// # Errors
    /// As [`isend`](Self::isend).
    pub fn send_init(&mut self, slot: usize, bytes: usize, to: u32, tag: i32) -> Result<()> {
        let envelope = self.send_envelope(bytes, to, tag)?;
        self.begin(slot, Call::Send_init, envelope)?;
        self.slots[slot] = Slot { kind: Kind::Send, is_persistent: true, is_pending: false, envelope };
        Ok(())
    }

    /// `MPI_Recv_init`: as [`send_init`](Self::send_init), for a receive.
    ///
    /// # Errors
    /// As [`isend`](Self::isend).
    pub fn recv_init(
        &mut self,
        slot: usize,
        bytes: usize,
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<()> {
        let envelope = self.receive_envelope(bytes, from, tag)?;
        self.begin(slot, Call::Recv_init, envelope)?;
        self.slots[slot] = Slot { kind: Kind::Receive, is_persistent: true, is_pending: false, envelope };
        Ok(())
    }

    /// `MPI_Start` of the slot's persistent request.
    ///
    /// # Errors
    /// Errors of MPI, no persistent request, a pending one.
    #[inline]
    pub fn start(&mut self, slot: usize) -> Result<()> {
        self.startable(slot, Call::Start)?;
        let inner = &*self.communicator.0;
        self.slots[slot].is_pending = true;
        // SAFETY: the request is persistent and inactive; its buffer lives until it has completed.
        let code = unsafe { (inner.functions.start)(self.requests.at(slot)) };
        inner.library.check(Call::Start, None, code)
    }

    /// `MPI_Test`: returns the status if the request has completed, `None` while it is pending.
    ///
    /// # Errors
    /// Errors of MPI, a slot without a pending request.
    #[inline]
    pub fn test(&mut self, slot: usize) -> Result<Option<Status>> {
        self.pending(slot, Call::Test)?;
        let inner = &*self.communicator.0;
        let mut is_complete = 0;
        // SAFETY: the request is valid, the flag and the status are writable.
        let code = unsafe {
            (inner.functions.test)(self.requests.at(slot), &raw mut is_complete, self.status.out())
        };
        if code != 0 {
            return Err(self.lost(slot, Call::Test, code));
        }
        Ok((is_complete != 0).then(|| self.complete(slot)))
    }

    /// `MPI_Wait`: returns the status when the request has completed.
    ///
    /// # Errors
    /// Errors of MPI, a slot without a pending request.
    #[inline]
    pub fn wait(&mut self, slot: usize) -> Result<Status> {
        self.pending(slot, Call::Wait)?;
        let inner = &*self.communicator.0;
        waiting::enter(Call::Wait, self.slots[slot].peer());
        // SAFETY: the request is valid, the status is writable.
        let code = unsafe { (inner.functions.wait)(self.requests.at(slot), self.status.out()) };
        waiting::leave();
        if code != 0 {
            return Err(self.lost(slot, Call::Wait, code));
        }
        Ok(self.complete(slot))
    }

    #[inline]
    fn send_envelope(&self, bytes: usize, to: u32, tag: i32) -> Result<Envelope> {
        Ok((self.length(bytes)?, self.communicator.0.peer(to)?, checked_tag(tag)?))
    }

    #[inline]
    fn receive_envelope(&self, bytes: usize, from: Option<u32>, tag: Option<i32>) -> Result<Envelope> {
        let inner = &self.communicator.0;
        Ok((self.length(bytes)?, inner.source(from)?, inner.expected_tag(tag)?))
    }

    /// Returns a number of bytes as an int, if the slot has as many.
    #[inline]
    fn length(&self, bytes: usize) -> Result<c_int> {
        // `new` has checked that the slot's size fits an int.
        if bytes <= self.bytes {
            Ok(bytes as c_int)
        } else {
            Err(Error::Range { offset: 0, bytes, length: self.bytes })
        }
    }

    /// Creates the slot's request, which is pending from now on.
    #[inline]
    fn begin_one(&mut self, slot: usize, kind: Kind, envelope: Envelope) -> Result<()> {
        self.begin(slot, kind.call(), envelope)?;
        self.slots[slot] = Slot { kind, is_persistent: false, is_pending: true, envelope };
        Ok(())
    }

    /// Creates the slot's request. The caller stores its kind.
    #[inline]
    fn begin(&mut self, slot: usize, call: Call, envelope: Envelope) -> Result<()> {
        let Slot { is_pending, is_persistent, .. } = self.slots[slot];
        if is_pending {
            return Err(Error::Slot { call: call.name(), slot, reason: "its request is pending" });
        }
        if is_persistent {
            self.free(slot)?;
        }
        let inner = &*self.communicator.0;
        let functions = inner.functions;
        let (length, peer, tag) = envelope;
        let address: *mut c_void = self.memory.at(slot * self.stride).cast();
        let request = self.requests.at(slot);
        // SAFETY: the slot has `length` bytes, which are not freed or lent to conflicting Rust code
        // before the request has completed; there is space for the request.
        let code = unsafe {
            match call {
                Call::Isend => {
                    (functions.isend)(address, length, inner.byte, peer, tag, inner.handle, request)
                }
                Call::Irecv => {
                    (functions.irecv)(address, length, inner.byte, peer, tag, inner.handle, request)
                }
                Call::Send_init => {
                    (functions.send_init)(address, length, inner.byte, peer, tag, inner.handle, request)
                }
                _ => (functions.recv_init)(address, length, inner.byte, peer, tag, inner.handle, request),
            }
        };
        if code == 0 {
            return Ok(());
        }
        // A request that failed to start does not exist.
        self.requests.set(slot, inner.library.constants.handles.request_null);
        Err(inner.library.failed(call, u32::try_from(peer).ok(), code))
    }

    /// Frees the slot's inactive persistent request.
    fn free(&mut self, slot: usize) -> Result<()> {
        let inner = &*self.communicator.0;
        self.slots[slot].is_persistent = false;
        self.slots[slot].kind = Kind::None;
        // SAFETY: the request is valid and inactive.
        let code = unsafe { (inner.functions.request_free)(self.requests.at(slot)) };
        inner.library.check(Call::Request_free, None, code)
    }

    #[inline]
    fn startable(&self, slot: usize, call: Call) -> Result<()> {
        let reason = match self.slots[slot] {
            Slot { is_persistent: true, is_pending: false, .. } => return Ok(()),
            Slot { is_pending: true, .. } => "its request is pending",
            _ => "it has no persistent request",
        };
        Err(Error::Slot { call: call.name(), slot, reason })
    }

    #[inline]
    fn pending(&self, slot: usize, call: Call) -> Result<()> {
        if self.slots[slot].is_pending {
            return Ok(());
        }
        Err(Error::Slot { call: call.name(), slot, reason: "it has no pending request" })
    }

    /// Marks the request as complete.
    #[inline]
    fn complete(&mut self, slot: usize) -> Status {
        let slot = &mut self.slots[slot];
        slot.is_pending = false;
        match slot.kind {
            Kind::Send => sent(slot.envelope),
            _ => self.status.read(self.communicator.0.library),
        }
    }

    /// Returns the error of a request. The request stays pending unless MPI has freed it: some
    /// libraries free a failed request, others do not.
    #[cold]
    fn lost(&mut self, slot: usize, call: Call, code: c_int) -> Error {
        let inner = &*self.communicator.0;
        if self.requests.get(slot) == inner.library.constants.handles.request_null {
            self.slots[slot].is_pending = false;
        }
        inner.library.failed(call, self.slots[slot].peer(), code)
    }
}

impl Kind {
    /// The call that creates a request which is pending at once.
    #[inline]
    fn call(self) -> Call {
        if self == Self::Send { Call::Isend } else { Call::Irecv }
    }
}

impl Slot {
    /// The peer's rank, unless any rank may send.
    fn peer(&self) -> Option<u32> {
        u32::try_from(self.envelope.1).ok()
    }
}

/// Returns the status of a send.
#[inline]
fn sent((bytes, peer, tag): Envelope) -> Status {
    Status { source: peer, tag, bytes: bytes as usize }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let functions = self.communicator.0.functions;
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_pending && self.slots[slot].kind == Kind::Receive {
                // SAFETY: the request is valid, and MPI is not finalised while this holds a
                // communicator.
                unsafe { (functions.cancel)(self.requests.at(slot)) };
            }
        }
        for slot in 0..self.slots.len() {
            for _ in 0..LAST_TESTS {
                if !self.slots[slot].is_pending || self.test(slot).is_err() {
                    break;
                }
            }
            if self.slots[slot].is_pending {
                self.memory.leak();
            } else if self.slots[slot].is_persistent {
                let _ = self.free(slot);
            }
        }
    }
}
