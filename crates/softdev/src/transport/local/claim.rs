//! How several requesters fill one lane: each claims a slot by an atomic exchange before it writes
//! there.
//!
//! A mark says where requesters begin. It may lag behind, even for ever if a requester died between
//! showing its message and advancing the mark. It may also pass a receive that was reclaimed from a
//! dead requester. The owner then sets the mark back with every look at the receive, because a
//! requester may be advancing it at the same time.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::memory::slots::SlotState;
use crate::sys::sync::{Atomic, Machine};

/// A slot that its requester may fill.
pub(crate) struct Claim<'a, State> {
    state: &'a State,
    n: u32,
    free: u64,
    claimed: u64,
}

impl<'a, State: Atomic<Value = u64>> Claim<'a, State> {
    /// Claims the slot of receive `n`, whose word is `free`, for the process of a block; `None` if
    /// another requester was faster. The caller must then check whether the queue pair still
    /// receives: either it finds that the queue pair has ended, or the process that ends it finds
    /// the claim.
    #[inline]
    pub(crate) fn new(state: &'a State, n: u32, free: u64, block: u32) -> Option<Self> {
        let claimed = SlotState::Claimed(n, block).encode();
        state.compare_exchange(free, claimed, SeqCst, Relaxed).ok()?;
        State::On::light();
        Some(Self { state, n, free, claimed })
    }

    /// Leaves the slot as it was.
    pub(crate) fn withdraw(self) {
        let _ = self.state.compare_exchange(self.claimed, self.free, SeqCst, Relaxed);
    }

    /// Shows the message to the owner; false if the owner has reclaimed the slot.
    #[inline]
    pub(crate) fn show<Mark: Atomic<Value = u32>>(self, mark: &Mark) -> bool {
        let done = SlotState::Done(self.n).encode();
        let is_shown = self.state.compare_exchange(self.claimed, done, SeqCst, Relaxed).is_ok();
        if is_shown {
            move_on(mark, self.n.wrapping_add(1));
        }
        is_shown
    }
}

/// Advances a mark, never back: a slow requester may come after a faster one.
#[inline]
pub(crate) fn move_on<Mark: Atomic<Value = u32>>(mark: &Mark, to: u32) {
    let mut now = mark.load(Relaxed);
    while !is_at_or_after(now, to) {
        match mark.compare_exchange_weak(now, to, Release, Relaxed) {
            Ok(_) => return,
            Err(found) => now = found,
        }
    }
}

/// Returns where to look after receive `n`, which another requester has taken.
#[inline]
pub(crate) fn after<Mark: Atomic<Value = u32>>(mark: &Mark, n: u32) -> u32 {
    let now = mark.load(Acquire);
    let next = n.wrapping_add(1);
    if is_at_or_after(now, next) { now } else { next }
}

/// Returns where to look for receive `n` of a lane of `size` slots, whose next receive to be posted
/// is `tail`. This is `n`, or, if its slot has been posted again since, the first receive that may
/// still be posted; `None` if receive `n` is not posted yet.
#[inline]
pub(crate) fn posted_from(n: u32, tail: u32, size: u32) -> Option<u32> {
    let first = tail.wrapping_sub(size);
    let from = if is_at_or_after(first, n) { first } else { n };
    (!is_at_or_after(from, tail)).then_some(from)
}

/// Looks for a free slot in a lane of `size` slots, and tries to claim it. Returns the result of
/// `claim`; `None` if no slot is free. `posted` is [`posted_from`].
#[inline]
pub(crate) fn find<'a, State, Mark, T>(
    mark: &Mark,
    size: u32,
    state: impl Fn(u32) -> &'a State,
    posted: impl Fn(u32) -> Option<u32>,
    claim: impl Fn(u32, u64) -> Option<T>,
) -> Option<T>
where
    State: Atomic<Value = u64> + 'a,
    Mark: Atomic<Value = u32>,
{
    let mut n = mark.load(Acquire);
    for _ in 0..2 * (u64::from(size) + 1) {
        n = posted(n)?;
        let word = state(n).load(Acquire);
        match SlotState::decode(word) {
            state if state.is_free_for(n, size) => {
                if let Some(done) = claim(n, word) {
                    return Some(done);
                }
            }
            // A receive that another requester has taken is skipped, even if the mark lags behind
            // and the slot is already in use for a later receive.
            SlotState::Claimed(taken, _) | SlotState::Done(taken) if is_at_or_after(taken, n) => {
                n = after(mark, n);
            }
            _ => return None,
        }
    }
    None
}

/// Returns the block whose process fills the slot of receive `n`.
pub(crate) fn claimer<State: Atomic<Value = u64>>(state: &State, n: u32) -> Option<u32> {
    match SlotState::decode(state.load(SeqCst)) {
        SlotState::Claimed(claimed, block) if claimed == n => Some(block),
        _ => None,
    }
}

/// Reclaims the slot of receive `n`, in a lane of `size` slots, from a dead process; false if the
/// process had shown its message.
pub(crate) fn take_back<State: Atomic<Value = u64>>(state: &State, n: u32, size: u32, block: u32) -> bool {
    let claimed = SlotState::Claimed(n, block).encode();
    let before = SlotState::Done(n.wrapping_sub(size)).encode();
    state.compare_exchange(claimed, before, SeqCst, Relaxed).is_ok()
}

/// Shows a reclaimed receive to requesters, which skip it once the mark has passed it. A requester
/// may be advancing the mark at the same time, so this is repeated with every look at the receive.
pub(crate) fn offer<Mark: Atomic<Value = u32>>(mark: &Mark, n: u32) {
    if !is_at_or_after(n, mark.load(SeqCst)) {
        mark.store(n, SeqCst);
    }
}

/// Whether receive `a` is `b` or a later one; numbers wrap around.
#[inline]
pub(crate) fn is_at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, AtomicU64};
    use loom::thread;

    use super::*;
    use crate::sys::sync::model::{self, Loom, Moved, NoHeavy, NoLight, Weaker};
    use crate::transport::local::lane::is_shown;

    const SIZE: u32 = 2;
    /// The state of a queue pair that receives.
    const RECEIVES: u32 = 1;

    /// How requesters look for a receive.
    type From = fn(u32, u32, u32) -> Option<u32>;

    /// The lane of a queue pair that has posted two receives.
    struct Lane<State> {
        slots: [(State, UnsafeCell<u32>); SIZE as usize],
        mark: AtomicU32,
        /// The number of the next receive to be posted.
        tail: AtomicU32,
        state: AtomicU32,
    }

    impl<State: Atomic<Value = u64>> Lane<State> {
        fn new(state: impl Fn() -> State) -> Arc<Self> {
            let slots = std::array::from_fn(|_| (state(), UnsafeCell::new(0)));
            Arc::new(Self {
                slots,
                mark: AtomicU32::new(0),
                tail: AtomicU32::new(SIZE),
                state: AtomicU32::new(RECEIVES),
            })
        }

        fn state(&self, n: u32) -> &State {
            &self.slots[(n % SIZE) as usize].0
        }

        /// Claims a slot for a block, and then runs `then`.
        fn claim<T>(&self, block: u32, then: impl Fn(Claim<'_, State>) -> T) -> Option<T> {
            self.claim_by(posted_from, block, then)
        }

        fn claim_by<T>(&self, from: From, block: u32, then: impl Fn(Claim<'_, State>) -> T) -> Option<T> {
            let claim = |n, free| Claim::new(self.state(n), n, free, block).map(&then);
            let posted = |n| from(n, self.tail.load(Acquire), SIZE);
            find(&self.mark, SIZE, |n| self.state(n), posted, claim)
        }

        /// Sends a datagram; returns whether it arrives.
        fn send(&self, block: u32) -> bool {
            let sent = self.claim(block, |claim| {
                if self.state.load(Acquire) != RECEIVES {
                    claim.withdraw();
                    return false;
                }
                // SAFETY: the slot is this requester's; otherwise loom reports it.
                self.slots[claim.n as usize].1.with_mut(|payload| unsafe { *payload = block });
                claim.show(&self.mark)
            });
            sent.unwrap_or(false)
        }

        /// Takes message `n` if it has arrived; returns its payload.
        fn take(&self, n: u32) -> Option<u32> {
            let (state, payload) = &self.slots[n as usize];
            // SAFETY: the message is there, so its slot is the owner's; otherwise loom reports it.
            is_shown(state, n).then(|| payload.with(|payload| unsafe { *payload }))
        }

        /// Waits for message `n`.
        fn poll(&self, n: u32) -> u32 {
            loop {
                match self.take(n) {
                    Some(payload) => return payload,
                    None => thread::yield_now(),
                }
            }
        }
    }

    /// Requesters send a datagram each while the owner polls.
    fn all_arrive<State>(
        senders: u32,
        state: impl Fn() -> State + Send + Sync + 'static,
    ) -> impl Fn() + Send + Sync + 'static
    where
        State: Atomic<Value = u64> + Send + Sync + 'static,
    {
        move || {
            let lane = Lane::new(&state);
            let others = (1..=senders).map(|block| {
                let lane = Arc::clone(&lane);
                thread::spawn(move || assert!(lane.send(block), "there is a receive for each"))
            });
            let others: Vec<_> = others.collect();
            let mut found: Vec<u32> = (0..senders).map(|n| lane.poll(n)).collect();
            found.sort_unstable();
            assert_eq!(found, (1..=senders).collect::<Vec<_>>());
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    }

    /// A requester dies with a claim while another one sends. The owner reclaims the receive and
    /// offers it again, once or with every look.
    fn one_dies(offers_again: bool) -> impl Fn() + Send + Sync + 'static {
        const DEAD: u32 = 1;
        move || {
            let lane = Lane::new(state);
            assert!(lane.claim(DEAD, |_| ()).is_some());
            let other = Arc::clone(&lane);
            let other = thread::spawn(move || assert!(other.send(2), "there is a second receive"));
            assert_eq!(claimer(lane.state(0), 0), Some(DEAD));
            assert!(take_back(lane.state(0), 0, SIZE, DEAD));
            offer(&lane.mark, 0);
            other.join().unwrap();
            if offers_again && lane.take(0).is_none() {
                offer(&lane.mark, 0);
            }
            assert!(lane.send(3), "the dead requester's receive is lost");
            let found = [lane.take(0), lane.take(1)];
            assert!(found == [Some(3), Some(2)] || found == [Some(2), Some(3)], "{found:?}");
        }
    }

    /// A requester dies after it has shown its message and before it could advance the mark. The
    /// owner takes the message and posts again while another requester sends.
    fn goes_on(from: From) -> impl Fn() + Send + Sync + 'static {
        move || {
            let lane = Lane::new(state);
            let unmoved = AtomicU32::new(0);
            assert_eq!(lane.claim(1, |claim| claim.show(&unmoved)), Some(true));
            let other = Arc::clone(&lane);
            let sends = move || other.claim_by(from, 2, |claim| claim.show(&other.mark)) == Some(true);
            let other = thread::spawn(sends);
            assert!(is_shown(lane.state(0), 0));
            lane.tail.store(SIZE + 1, Release);
            assert!(other.join().unwrap(), "no requester finds a posted receive");
        }
    }

    /// The queue pair ends while a requester sends: then the memory belongs to the owner alone.
    fn ends<State>(state: impl Fn() -> State + Send + Sync + 'static) -> impl Fn() + Send + Sync + 'static
    where
        State: Atomic<Value = u64> + Send + Sync + 'static,
    {
        move || {
            let lane = Lane::new(&state);
            let other = Arc::clone(&lane);
            let other = thread::spawn(move || other.send(1));
            lane.state.store(0, Relaxed);
            State::On::heavy();
            for n in 0..SIZE {
                while claimer(lane.state(n), n).is_some() {
                    State::On::yield_cpu();
                }
                // SAFETY: no requester is at work there any more; otherwise loom reports it.
                lane.slots[n as usize].1.with_mut(|payload| unsafe { *payload = 7 });
            }
            other.join().unwrap();
        }
    }

    fn state() -> AtomicU64 {
        AtomicU64::new(0)
    }

    #[test]
    fn model_of_requesters_of_one_lane() {
        model::check(all_arrive(1, state));
        model::check_within(Some(2), all_arrive(2, state));
        model::check_within(Some(4), one_dies(true));
        model::check_within(Some(4), goes_on(posted_from));
        model::check_within(Some(4), ends(state));
    }

    #[test]
    fn the_model_needs_the_offer_again_the_way_on_the_fences_and_the_order_of_a_poll() {
        let lost = model::must_fail(one_dies(false));
        assert_eq!(lost, "the dead requester's receive is lost");
        let deaf =
            model::must_fail(goes_on(|n, tail, size| posted_from(n, tail, size).filter(|from| *from == n)));
        assert_eq!(deaf, "no requester finds a posted receive");
        let faults = [
            model::must_fail(ends(|| Moved::<_, NoLight<Loom>>::of(state()))),
            model::must_fail(ends(|| Moved::<_, NoHeavy<Loom>>::of(state()))),
            model::must_fail(all_arrive(1, || Weaker { word: state(), order: Acquire })),
        ];
        assert!(faults.iter().all(|why| why.contains("access")), "{faults:?}");
    }
}
