//! How several requesters fill one lane: each claims a slot by an exchange before it writes there.
//!
//! A mark says where to begin. It may lag behind, for ever where a requester has died between
//! showing its message and moving the mark on; and it may pass a receive by that was taken back
//! from a requester that had died: then its owner sets it back, with every look, because somebody
//! may just be moving it on.

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
    /// Claims the slot of receive `n`, whose word says that it is `free`, for the process of a
    /// block; `None` when somebody else was faster. What comes next is a look whether the queue
    /// pair still receives: either that finds that it has ended, or who ends it finds the claim.
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

    /// Shows the message to the owner; false where he has taken the slot back.
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

/// Moves a mark on, never back: a slower requester may come after a faster one.
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

/// Where to look after a receive that another requester has taken.
#[inline]
pub(crate) fn after<Mark: Atomic<Value = u32>>(mark: &Mark, n: u32) -> u32 {
    let now = mark.load(Acquire);
    let next = n.wrapping_add(1);
    if is_at_or_after(now, next) { now } else { next }
}

/// Where to look for receive `n` of a lane of so many slots, whose next one to be posted is `tail`:
/// there, or where its slot has been posted again since, as a later receive, at the first that may
/// still be posted; `None` where it is yet to be posted.
#[inline]
pub(crate) fn posted_from(n: u32, tail: u32, size: u32) -> Option<u32> {
    let first = tail.wrapping_sub(size);
    let from = if is_at_or_after(first, n) { first } else { n };
    (!is_at_or_after(from, tail)).then_some(from)
}

/// Looks for a slot that is free, in a lane of so many, and tries to claim it: what comes of that;
/// `None` where there is none. `posted` is [`posted_from`].
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
            // A receive that another has taken is passed by, also where the mark lags behind and
            // the slot is in use for a later receive already.
            SlotState::Claimed(taken, _) | SlotState::Done(taken) if is_at_or_after(taken, n) => {
                n = after(mark, n);
            }
            _ => return None,
        }
    }
    None
}

/// The block whose process fills the slot of receive `n`.
pub(crate) fn claimer<State: Atomic<Value = u64>>(state: &State, n: u32) -> Option<u32> {
    match SlotState::decode(state.load(SeqCst)) {
        SlotState::Claimed(claimed, block) if claimed == n => Some(block),
        _ => None,
    }
}

/// Takes the slot of receive `n` back, in a lane of so many, from a process that has died; false
/// where it had shown its message.
pub(crate) fn take_back<State: Atomic<Value = u64>>(state: &State, n: u32, size: u32, block: u32) -> bool {
    let claimed = SlotState::Claimed(n, block).encode();
    let before = SlotState::Done(n.wrapping_sub(size)).encode();
    state.compare_exchange(claimed, before, SeqCst, Relaxed).is_ok()
}

/// Shows a receive that was taken back to requesters, who pass it by once the mark is behind it.
/// One of them may be moving the mark on at this very moment, which is why this is repeated with
/// every look at the receive.
pub(crate) fn offer<Mark: Atomic<Value = u32>>(mark: &Mark, n: u32) {
    if !is_at_or_after(n, mark.load(SeqCst)) {
        mark.store(n, SeqCst);
    }
}

/// Whether receive `a` is `b` or one after it; numbers come round.
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
    /// Whether the queue pair receives.
    const RECEIVES: u32 = 1;

    /// Where requesters look for a receive.
    type From = fn(u32, u32, u32) -> Option<u32>;

    /// The lane of a queue pair that has posted two receives.
    struct Lane<State> {
        slots: [(State, UnsafeCell<u32>); SIZE as usize],
        mark: AtomicU32,
        /// Number of the next receive to be posted.
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

        /// Claims a slot for a block, and then does something with it.
        fn claim<T>(&self, block: u32, then: impl Fn(Claim<'_, State>) -> T) -> Option<T> {
            self.claim_by(posted_from, block, then)
        }

        fn claim_by<T>(&self, from: From, block: u32, then: impl Fn(Claim<'_, State>) -> T) -> Option<T> {
            let claim = |n, free| Claim::new(self.state(n), n, free, block).map(&then);
            let posted = |n| from(n, self.tail.load(Acquire), SIZE);
            find(&self.mark, SIZE, |n| self.state(n), posted, claim)
        }

        /// Sends a datagram: whether it arrives.
        fn send(&self, block: u32) -> bool {
            let sent = self.claim(block, |claim| {
                if self.state.load(Acquire) != RECEIVES {
                    claim.withdraw();
                    return false;
                }
                // SAFETY: the slot is this requester's; were that not so, loom would say so.
                self.slots[claim.n as usize].1.with_mut(|payload| unsafe { *payload = block });
                claim.show(&self.mark)
            });
            sent.unwrap_or(false)
        }

        /// Takes message `n` if it is there: its payload.
        fn take(&self, n: u32) -> Option<u32> {
            let (state, payload) = &self.slots[n as usize];
            // SAFETY: the message is there, so its slot is the owner's; were that not so, loom
            // would say so.
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

    /// Some send a datagram each, while their owner polls.
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

    /// One dies with a claim while another sends; its owner takes the receive back and offers it
    /// again, with every look or once.
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
            assert!(lane.send(3), "the receive of the dead is lost");
            let found = [lane.take(0), lane.take(1)];
            assert!(found == [Some(3), Some(2)] || found == [Some(2), Some(3)], "{found:?}");
        }
    }

    /// One dies after it has shown its message and before it could move the mark on; its owner
    /// takes the message and posts again, while another sends.
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
            assert!(other.join().unwrap(), "a receive is posted and nobody finds it");
        }
    }

    /// The queue pair ends while one sends: then its memory is its owner's alone.
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
                // SAFETY: nobody is at work there any more; were it not so, loom would say so.
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
        assert_eq!(lost, "the receive of the dead is lost");
        let deaf =
            model::must_fail(goes_on(|n, tail, size| posted_from(n, tail, size).filter(|from| *from == n)));
        assert_eq!(deaf, "a receive is posted and nobody finds it");
        let faults = [
            model::must_fail(ends(|| Moved::<_, NoLight<Loom>>::of(state()))),
            model::must_fail(ends(|| Moved::<_, NoHeavy<Loom>>::of(state()))),
            model::must_fail(all_arrive(1, || Weaker { word: state(), order: Acquire })),
        ];
        assert!(faults.iter().all(|why| why.contains("access")), "{faults:?}");
    }
}
