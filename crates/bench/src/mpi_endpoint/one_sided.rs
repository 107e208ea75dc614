//! Puts and gets of MPI between two ranks, and the proof that they bring what they should.
//!
//! Rank 0 puts to the window of rank 1 or gets from it; where a flood goes both ways, each does.
//! Every put or get of a window of messages has memory of its own at both ends. The calls that
//! complete them follow the last of a window (of one, where each is timed by itself).
//!
//! # Invariants
//!
//! * A target is inside of MPI while others put to its window or get from it: some libraries do
//!   their work in the target's calls. It waits in MPI_Recv, or fences as often as the origin does.
//! * Contents are compared outside of what is timed: what the measured calls have brought, and then
//!   what a last round of other contents brings.

use mpi::{Communicator, Window};

use super::choices::{MpiOperation, MpiSync};
use super::rank::Context;
use crate::Error;
use crate::endpoint::contents::{CLEARED, compare};
use crate::point::MpiSettings;
use crate::topology::{Flow, PartSpec};

/// The windows of two ranks, and what this one does with the other's.
pub(super) struct OneSided {
    /// Absent once it is freed.
    window: Option<Window>,
    messages: Communicator,
    answers: Communicator,
    rank: u32,
    peer: u32,
    operation: MpiOperation,
    sync: MpiSync,
    size: usize,
    /// Puts or gets that the calls complete which complete some.
    slots: usize,
    /// Those that were started and not completed, and the most that ever were.
    started: usize,
    used: usize,
    /// Fences of both ranks so far.
    fences: usize,
    /// Whether the other rank does the same with this one's window.
    goes_both_ways: bool,
}

impl OneSided {
    /// Allocates the windows, and fills what is put or got. Both ranks call it; none where messages
    /// are sent.
    pub(super) fn new(context: &Context, spec: &PartSpec, peers: &[u32]) -> Result<Option<Self>, Error> {
        let MpiSettings { operation, sync, .. } = spec.message.mpi;
        let [peer] = *peers else { return Ok(None) };
        if operation == MpiOperation::Send {
            return Ok(None);
        }
        let is_flood = spec.usage.flow == Flow::Flood;
        let slots = if is_flood { (spec.message.tx_depth as usize).max(1) } else { 1 };
        let size = spec.message.size();
        let too_long = || Error::Impossible {
            reason: format!("a window of {slots} messages of {size} B is longer than any memory"),
        };
        let bytes = flags_at(slots, size).and_then(|at| at.checked_add(FLAGS_BYTES)).ok_or_else(too_long)?;
        let messages = context.messages.clone();
        let mut one_sided = Self {
            window: Some(Window::allocate(&messages, bytes, bytes)?),
            rank: messages.rank(),
            messages,
            answers: context.answers.clone(),
            peer,
            operation,
            sync,
            size,
            slots,
            started: 0,
            used: 0,
            fences: 0,
            goes_both_ways: is_flood && !spec.usage.is_one_sided_flood,
        };
        one_sided.prepare()?;
        Ok(Some(one_sided))
    }

    fn prepare(&mut self) -> Result<(), Error> {
        let (origin, target) = match self.operation {
            MpiOperation::Put => (self.contents(self.rank, FIRST), self.cleared()),
            _ => (self.cleared(), self.contents(self.rank, FIRST)),
        };
        self.give(&origin)?;
        self.with_own(|window| window.write(0, &target))?;
        match self.sync {
            MpiSync::Fence => self.fence()?,
            MpiSync::Flush | MpiSync::FlushLocal => self.window()?.lock_all()?,
            MpiSync::Lock | MpiSync::LockAll => {}
        }
        // No put or get before the peer's window is filled.
        Ok(self.messages.barrier()?)
    }

    /// Puts or gets the next message, and completes a full window of them.
    #[inline]
    pub(super) fn post(&mut self) -> Result<(), Error> {
        let Self { peer, size, sync, .. } = *self;
        let at = self.started * size;
        let Some(window) = &mut self.window else { return Err(freed()) };
        if self.started == 0 {
            match sync {
                MpiSync::Lock => window.lock(peer)?,
                MpiSync::LockAll => window.lock_all()?,
                MpiSync::Fence | MpiSync::Flush | MpiSync::FlushLocal => {}
            }
        }
        match self.operation {
            MpiOperation::Put => window.put(at, size, peer, at)?,
            _ => window.get(at, size, peer, at)?,
        }
        self.started += 1;
        if self.started == self.slots { self.complete() } else { Ok(()) }
    }

    /// Completes what was started.
    #[inline]
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        if self.started == 0 {
            return Ok(());
        }
        self.used = self.used.max(self.started);
        self.started = 0;
        let Some(window) = &mut self.window else { return Err(freed()) };
        match self.sync {
            MpiSync::Fence => {
                window.fence()?;
                self.fences += 1;
            }
            MpiSync::Flush => window.flush(self.peer)?,
            MpiSync::FlushLocal => window.flush_local(self.peer)?,
            MpiSync::Lock => window.unlock()?,
            MpiSync::LockAll => window.unlock_all()?,
        }
        Ok(())
    }

    /// Ends what was measured, at a rank that has put or got.
    ///
    /// # Errors
    /// [`Error::WrongResult`] where a get brought something else than it should; what MPI says.
    pub(super) fn release(&mut self) -> Result<(), Error> {
        self.complete()?;
        if !self.goes_both_ways {
            if self.sync == MpiSync::Fence {
                self.raise_flag()?;
            }
            return self.prove();
        }
        // The peer waits for the second half, wrong contents or not.
        if self.rank < self.peer {
            let proven = wrong_or(self.prove())?;
            return proven.and(self.serve_proof());
        }
        let served = wrong_or(self.serve_proof())?;
        served.and(self.prove())
    }

    /// Takes part as a target, until the peer has ended what it measures.
    ///
    /// # Errors
    /// [`Error::WrongResult`] where a put brought something else than it should; what MPI says.
    pub(super) fn attend(&mut self) -> Result<(), Error> {
        if self.sync == MpiSync::Fence {
            let mut flag = [0];
            while flag != RAISED[..1] {
                self.fence()?;
                let at = self.flag_of(self.fences);
                self.window()?.read(at, &mut flag)?;
            }
        }
        self.serve_proof()
    }

    /// Tells a target that fences, in an epoch after the last that is measured.
    fn raise_flag(&mut self) -> Result<(), Error> {
        let at = self.flag_of(self.fences + 1);
        let peer = self.peer;
        let window = self.window()?;
        window.origin_mut()[at..at + FLAG_BYTES].copy_from_slice(&RAISED);
        window.put(at, FLAG_BYTES, peer, at)?;
        self.fence()
    }

    /// Where the flag stands that is raised in the epoch which fence number `fences` completes.
    ///
    /// Two flags take turns: a put may be seen before the fence that completes it, and MPI forbids
    /// to load what a put of the same epoch stores. The target reads after each fence the flag of
    /// that fence, and the origin raises that of the next.
    fn flag_of(&self, fences: usize) -> usize {
        flags_at(self.slots, self.size).unwrap_or(0) + fences % 2 * FLAG_BYTES
    }

    /// A fence, which both ranks count.
    fn fence(&mut self) -> Result<(), Error> {
        self.window()?.fence()?;
        self.fences += 1;
        Ok(())
    }

    /// The origin's part of the proof. A wrong result ends it only after the target's part.
    fn prove(&mut self) -> Result<(), Error> {
        let used = self.used;
        if self.operation == MpiOperation::Put {
            self.make_visible()?;
            self.tell(used)?;
            self.hear()?;
            let contents = self.contents(self.rank, SECOND);
            self.give(&contents)?;
            self.post_all(used)?;
            self.make_visible()?;
            self.tell(used)?;
            self.hear()?;
            return Ok(());
        }
        let first = self.compare_origin(FIRST, used);
        self.tell(used)?;
        self.hear()?;
        let cleared = self.cleared();
        self.give(&cleared)?;
        self.begin_epoch()?;
        self.post_all(used)?;
        // Until here the target is inside of MPI.
        self.tell(used)?;
        first.and(self.compare_origin(SECOND, used))
    }

    /// The target's part.
    fn serve_proof(&mut self) -> Result<(), Error> {
        let used = self.hear()?.min(self.slots);
        if self.operation == MpiOperation::Put {
            let first = self.compare_window(FIRST, used);
            self.tell(used)?;
            self.begin_epoch()?;
            self.hear()?;
            let second = self.compare_window(SECOND, used);
            self.tell(used)?;
            return first.and(second);
        }
        let contents = self.contents(self.rank, SECOND);
        self.with_own(|window| window.write(0, &contents))?;
        self.tell(used)?;
        self.begin_epoch()?;
        self.begin_epoch()?;
        self.hear().map(|_| ())
    }

    /// A fence of both ranks, where fences complete.
    fn begin_epoch(&mut self) -> Result<(), Error> {
        if self.sync == MpiSync::Fence { self.fence() } else { Ok(()) }
    }

    /// Completes at the target what is complete at the origin alone.
    fn make_visible(&mut self) -> Result<(), Error> {
        if self.sync == MpiSync::FlushLocal {
            let peer = self.peer;
            self.window()?.flush(peer)?;
        }
        Ok(())
    }

    fn post_all(&mut self, count: usize) -> Result<(), Error> {
        (0..count).try_for_each(|_| self.post())?;
        self.complete()
    }

    fn tell(&self, used: usize) -> Result<(), Error> {
        Ok(self.answers.send(&(used as u64).to_ne_bytes(), self.peer, TOLD)?)
    }

    fn hear(&self) -> Result<usize, Error> {
        let mut used = [0; 8];
        self.answers.receive(&mut used, Some(self.peer), Some(TOLD))?;
        Ok(usize::try_from(u64::from_ne_bytes(used)).unwrap_or(usize::MAX))
    }

    fn compare_origin(&mut self, round: u32, used: usize) -> Result<(), Error> {
        let expected = self.contents(self.peer, round);
        let length = used * self.size;
        let rank = self.rank;
        compare("MPI_Get", rank, &expected[..length], &self.window()?.origin()[..length])
    }

    fn compare_window(&mut self, round: u32, used: usize) -> Result<(), Error> {
        let expected = self.contents(self.peer, round);
        let mut found = vec![0; used * self.size];
        self.with_own(|window| window.read(0, &mut found))?;
        compare("MPI_Put", self.rank, &expected[..found.len()], &found)
    }

    /// Writes what puts come from, or gets go to.
    fn give(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.window()?.origin_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Reads or writes this rank's own window, in an epoch where there must be one.
    fn with_own(&mut self, run: impl FnOnce(&mut Window) -> Result<(), mpi::Error>) -> Result<(), Error> {
        let rank = self.rank;
        let locks = matches!(self.sync, MpiSync::Lock | MpiSync::LockAll);
        let window = self.window()?;
        if locks {
            window.lock(rank)?;
        }
        window.sync()?;
        run(window)?;
        window.sync()?;
        if locks {
            window.unlock()?;
        }
        Ok(())
    }

    fn window(&mut self) -> Result<&mut Window, Error> {
        self.window.as_mut().ok_or_else(freed)
    }

    /// What a rank gives in a round: no slot has the bytes of another.
    fn contents(&self, rank: u32, round: u32) -> Vec<u8> {
        let byte = |at: usize| (rank as usize * 31 + round as usize * 17 + at * 7 + at / 251 * 3 + 1) as u8;
        (0..self.slots * self.size).map(byte).collect()
    }

    fn cleared(&self) -> Vec<u8> {
        vec![CLEARED; self.slots * self.size]
    }
}

impl Drop for OneSided {
    /// Both ranks free their windows, as they have made them: together.
    fn drop(&mut self) {
        let Some(mut window) = self.window.take() else { return };
        if matches!(self.sync, MpiSync::Flush | MpiSync::FlushLocal) && window.unlock_all().is_err() {
            return;
        }
        // The point has its result; what is left over ends with the process.
        let _ = window.free();
    }
}

/// Where the flags stand that end the fences of a target: behind all messages.
fn flags_at(slots: usize, size: usize) -> Option<usize> {
    slots.checked_mul(size)?.checked_next_multiple_of(FLAG_BYTES)
}

/// Wrong contents as a value, so that what the peer waits for follows; any other error as an error.
fn wrong_or(result: Result<(), Error>) -> Result<Result<(), Error>, Error> {
    match result {
        Ok(()) | Err(Error::WrongResult { .. }) => Ok(result),
        Err(error) => Err(error),
    }
}

#[cold]
fn freed() -> Error {
    Error::Mpi { reason: "the window of a point was freed before its end".to_owned() }
}

/// Rounds of contents: what is measured, and what only the proof has.
const FIRST: u32 = 0;
const SECOND: u32 = 1;
/// The two flags of a target that fences. Windows are zeroed, and no message lies there.
const FLAG_BYTES: usize = 8;
const FLAGS_BYTES: usize = 2 * FLAG_BYTES;
const RAISED: [u8; FLAG_BYTES] = [1; FLAG_BYTES];
/// The tag of messages of the proof, beside that of windows of a flood.
const TOLD: i32 = 2;
