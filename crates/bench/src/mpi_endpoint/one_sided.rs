//! Puts and gets of MPI between two ranks, and the proof that they deliver the right data.
//!
//! Rank 0 puts to the window of rank 1 or gets from it; in a stream in both directions, each rank
//! does. Every put or get of a window of messages has separate memory at both ranks. The call that
//! completes them follows the last of a window (a window of one, if each is timed).
//!
//! # Invariants
//!
//! * A target is inside of MPI while another rank puts to its window or gets from it: some
//!   libraries do their work in the target's calls. It waits in MPI_Recv, or calls as many fences
//!   as the origin.
//! * Contents are compared outside of the timed part: first those of the measured calls, then those
//!   of a last round with different contents.

use mpi::{Communicator, Window};

use super::choices::{MpiOperation, MpiSync};
use super::rank::Context;
use crate::Error;
use crate::endpoint::contents::{CLEARED, compare};
use crate::point::MpiSettings;
use crate::topology::{Flow, PartSpec};

/// The windows of two ranks, and the operation of this rank on the other's window.
pub(super) struct OneSided {
    /// `None` once it is freed.
    window: Option<Window>,
    messages: Communicator,
    answers: Communicator,
    rank: u32,
    peer: u32,
    operation: MpiOperation,
    sync: MpiSync,
    size: usize,
    /// How many puts or gets one completing call completes.
    slots: usize,
    /// Operations that were started and not completed, and the most that ever were.
    started: usize,
    used: usize,
    /// The fences of both ranks so far.
    fences: usize,
    /// Whether the other rank does the same with this rank's window.
    goes_both_ways: bool,
}

impl OneSided {
    /// Allocates the windows, and fills the memory that is put or got. Both ranks call it; returns
    /// `None` if messages are sent.
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
            reason: format!("a window of {slots} messages of {size} B is larger than any memory"),
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
        // The peer's window must be filled before the first put or get.
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

    /// Completes the operations that were started.
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

    /// Ends the measured part, at a rank that has put or got.
    ///
    /// # Errors
    /// [`Error::WrongResult`] if a get delivered wrong data; the error of MPI.
    pub(super) fn release(&mut self) -> Result<(), Error> {
        self.complete()?;
        if !self.goes_both_ways {
            if self.sync == MpiSync::Fence {
                self.raise_flag()?;
            }
            return self.prove();
        }
        // The peer waits for the second half, whether or not the contents are right.
        if self.rank < self.peer {
            let proven = wrong_or(self.prove())?;
            return proven.and(self.serve_proof());
        }
        let served = wrong_or(self.serve_proof())?;
        served.and(self.prove())
    }

    /// Serves as the target until the peer has ended its measured part.
    ///
    /// # Errors
    /// [`Error::WrongResult`] if a put delivered wrong data; the error of MPI.
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

    /// Tells a target that calls fences that the measured part is over, in an additional epoch.
    fn raise_flag(&mut self) -> Result<(), Error> {
        let at = self.flag_of(self.fences + 1);
        let peer = self.peer;
        let window = self.window()?;
        window.origin_mut()[at..at + FLAG_BYTES].copy_from_slice(&RAISED);
        window.put(at, FLAG_BYTES, peer, at)?;
        self.fence()
    }

    /// Returns the offset of the flag that is raised in the epoch which fence number `fences`
    /// completes.
    ///
    /// There are two flags in turn: a put may be visible before the fence that completes it, and
    /// MPI forbids a target to load what a put of the same epoch stores. After each fence, the
    /// target reads the flag of that fence, and the origin raises the flag of the next.
    fn flag_of(&self, fences: usize) -> usize {
        flags_at(self.slots, self.size).unwrap_or(0) + fences % 2 * FLAG_BYTES
    }

    /// Calls a fence, which both ranks count.
    fn fence(&mut self) -> Result<(), Error> {
        self.window()?.fence()?;
        self.fences += 1;
        Ok(())
    }

    /// Runs the origin's part of the proof. A wrong result is returned only after the target's
    /// part.
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
        // Up to here the target is inside of MPI.
        self.tell(used)?;
        first.and(self.compare_origin(SECOND, used))
    }

    /// Runs the target's part of the proof.
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

    /// Starts an epoch with a fence of both ranks, if fences complete the operations.
    fn begin_epoch(&mut self) -> Result<(), Error> {
        if self.sync == MpiSync::Fence { self.fence() } else { Ok(()) }
    }

    /// Completes at the target the operations that are complete only at the origin.
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

    /// Writes the memory that puts read or gets fill.
    fn give(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.window()?.origin_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Reads or writes this rank's own window, in an epoch if one is required.
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

    /// Returns what a rank sends in a round; no two slots have the same bytes.
    fn contents(&self, rank: u32, round: u32) -> Vec<u8> {
        let byte = |at: usize| (rank as usize * 31 + round as usize * 17 + at * 7 + at / 251 * 3 + 1) as u8;
        (0..self.slots * self.size).map(byte).collect()
    }

    fn cleared(&self) -> Vec<u8> {
        vec![CLEARED; self.slots * self.size]
    }
}

impl Drop for OneSided {
    /// Frees the window together with the peer, as MPI requires.
    fn drop(&mut self) {
        let Some(mut window) = self.window.take() else { return };
        if matches!(self.sync, MpiSync::Flush | MpiSync::FlushLocal) && window.unlock_all().is_err() {
            return;
        }
        // The point has its result; the rest ends with the process.
        let _ = window.free();
    }
}

/// Returns the offset of the flags that end the fences of a target: behind all messages.
fn flags_at(slots: usize, size: usize) -> Option<usize> {
    slots.checked_mul(size)?.checked_next_multiple_of(FLAG_BYTES)
}

/// Returns wrong contents as a value, so that the peer gets what it waits for; returns any other
/// error as an error.
fn wrong_or(result: Result<(), Error>) -> Result<Result<(), Error>, Error> {
    match result {
        Ok(()) | Err(Error::WrongResult { .. }) => Ok(result),
        Err(error) => Err(error),
    }
}

#[cold]
fn freed() -> Error {
    Error::Mpi { reason: "the window of the point was freed too early".to_owned() }
}

/// The rounds of contents: the measured round, and the round of the proof.
const FIRST: u32 = 0;
const SECOND: u32 = 1;
/// The two flags of a target that calls fences. Windows are zeroed, and no message overlaps the
/// flags.
const FLAG_BYTES: usize = 8;
const FLAGS_BYTES: usize = 2 * FLAG_BYTES;
const RAISED: [u8; FLAG_BYTES] = [1; FLAG_BYTES];
/// The tag of messages of the proof, distinct from the tag of windows of a stream.
const TOLD: i32 = 2;
