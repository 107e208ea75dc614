//! How several requesters take receives from a shared receive queue.
//!
//! ```text
//! word: posted(k, index) ──► taken(k, block, index) ──► posted(k + size, ...)
//!                        ◄──     (not used after all)
//! ```
//!
//! Each requester takes a receive by an atomic exchange, for a message of its own lane. A mark says
//! where requesters begin. It may lag behind, and it may pass a receive that was put back: the
//! owner finds that receive when it reaches its word again.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::sys::limits::MAX_WR;
use crate::sys::sync::Atomic;
use crate::transport::local::claim::{after, is_at_or_after};

/// The state of a receive, one word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    Empty,
    /// Receive `k`, with this index, can be taken.
    Posted {
        k: u32,
        index: u32,
        /// The bytes that fit, up to [`ROOM_MAX`]; 0 if only the post says it.
        room: u16,
    },
    /// The process of a block has taken it.
    Taken {
        k: u32,
        block: u32,
        index: u32,
    },
}

/// Indexes and blocks fit their bits in a word (see `limits`).
const _: () = assert!(MAX_WR.next_power_of_two() <= 1 << 16 && crate::sys::limits::BLOCKS <= 1 << 12);

/// The largest room that a word states. A requester that needs no more does not read the post,
/// which is on another cache line.
pub(crate) const ROOM_MAX: u16 = 0xfff;

impl Entry {
    pub(crate) const fn encode(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Posted { k, index, room } => {
                1 | (room as u64 & 0xfff) << 4 | (index as u64 & 0xffff) << 16 | (k as u64) << 32
            }
            Self::Taken { k, block, index } => {
                2 | (block as u64 & 0xfff) << 4 | (index as u64 & 0xffff) << 16 | (k as u64) << 32
            }
        }
    }

    /// Decodes a word; every value is valid.
    pub(crate) const fn decode(word: u64) -> Self {
        let k = (word >> 32) as u32;
        let index = (word >> 16) as u32 & 0xffff;
        match word & 0xf {
            1 => Self::Posted { k, index, room: (word >> 4) as u16 & ROOM_MAX },
            2 => Self::Taken { k, block: (word >> 4) as u32 & 0xfff, index },
            _ => Self::Empty,
        }
    }
}

/// A receive that can be taken, or was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) k: u32,
    pub(crate) index: u32,
    /// The bytes that are known to fit: see [`Entry::Posted`].
    pub(crate) room: u16,
}

/// Why no receive was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// No receive is posted.
    Empty,
    /// The next receive is too small; it stays in the queue.
    Short,
}

/// The words of a queue, and its mark.
pub(crate) trait Order {
    type Word: Atomic<Value = u64>;
    type Mark: Atomic<Value = u32>;

    /// Returns the number of words, a power of two.
    fn size(&self) -> u32;
    /// Returns the word of receive `k`.
    fn word(&self, k: u32) -> &Self::Word;
    /// Returns the mark, at which requesters begin.
    fn mark(&self) -> &Self::Mark;

    /// Returns the next receive that can be taken, with its word.
    fn next_posted(&self) -> Option<(u64, Ticket)> {
        let mut k = self.mark().load(Acquire);
        for _ in 0..2 * (u64::from(self.size()) + 1) {
            let word = self.word(k).load(Acquire);
            match Entry::decode(word) {
                Entry::Posted { k: posted, index, room } if posted == k => {
                    return Some((word, Ticket { k, index, room }));
                }
                // Another requester was faster, or the mark lags behind by a lap or more: the
                // receive that had this word last is gone, and so are all receives before it.
                Entry::Posted { k: found, .. } | Entry::Taken { k: found, .. }
                    if is_at_or_after(found, k) =>
                {
                    let gone = if found == k { k } else { found.wrapping_sub(self.size()) };
                    k = after(self.mark(), gone);
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether no receive can be taken.
    fn is_dry(&self) -> bool {
        self.next_posted().is_none()
    }

    /// Advances the mark behind a receive that was taken. The mark may instead go back behind that
    /// of a faster requester: it may lag, and an exchange would make each message wait for all
    /// earlier stores.
    #[inline]
    fn pass(&self, ticket: Ticket) {
        let next = ticket.k.wrapping_add(1);
        if !is_at_or_after(self.mark().load(Relaxed), next) {
            self.mark().store(next, Release);
        }
    }

    /// Takes the next receive for the process of a block if it `fits`. The caller must then `pass`
    /// it.
    fn take_where(&self, block: u32, fits: impl Fn(Ticket) -> bool) -> Result<Ticket, Refusal> {
        for _ in 0..=u64::from(self.size()) {
            let (word, ticket) = self.next_posted().ok_or(Refusal::Empty)?;
            let Ticket { k, index, .. } = ticket;
            if !fits(ticket) {
                // Unless it was taken meanwhile, and the content was that of another receive.
                if self.word(k).load(SeqCst) == word {
                    return Err(Refusal::Short);
                }
                continue;
            }
            let taken = Entry::Taken { k, block, index }.encode();
            if self.word(k).compare_exchange(word, taken, SeqCst, Relaxed).is_ok() {
                return Ok(ticket);
            }
        }
        Err(Refusal::Empty)
    }

    /// Puts back a receive that was taken in vain. A requester that advances the mark at the same
    /// time may pass it: the owner then finds it when it reaches its place again.
    fn put_back(&self, block: u32, ticket: Ticket) {
        let Ticket { k, index, room } = ticket;
        let taken = Entry::Taken { k, block, index }.encode();
        let posted = Entry::Posted { k, index, room }.encode();
        if self.word(k).compare_exchange(taken, posted, SeqCst, Relaxed).is_err() {
            return;
        }
        let mut now = self.mark().load(SeqCst);
        while !is_at_or_after(k, now) {
            match self.mark().compare_exchange_weak(now, k, SeqCst, SeqCst) {
                Ok(_) => return,
                Err(found) => now = found,
            }
        }
    }

    /// For the owner: shows receive `k` to requesters.
    fn show(&self, ticket: Ticket) {
        let Ticket { k, index, room } = ticket;
        self.word(k).store(Entry::Posted { k, index, room }.encode(), Release);
    }

    /// For the owner: hides the posted receive `k` from requesters, wherever the mark is; false if
    /// one of them has taken it.
    fn withdraw(&self, k: u32, index: u32) -> bool {
        let posted = self.word(k).load(Relaxed);
        if !matches!(Entry::decode(posted), Entry::Posted { k: at, index: of, .. } if (at, of) == (k, index))
        {
            return false;
        }
        let nobodys = Entry::Taken { k, block: 0, index: u32::MAX }.encode();
        self.word(k).compare_exchange(posted, nobodys, SeqCst, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, AtomicU64};
    use loom::thread;

    use super::*;
    use crate::sys::sync::model::{self, TwoSteps, Weaker};

    #[test]
    fn an_entry_survives_its_word() {
        for entry in [
            Entry::Empty,
            Entry::Posted { k: 0, index: 0, room: 0 },
            Entry::Posted { k: u32::MAX, index: 0x7fff, room: ROOM_MAX },
            Entry::Taken { k: 1 << 31, block: 0xfff, index: 0x7fff },
        ] {
            assert_eq!(Entry::decode(entry.encode()), entry);
        }
    }

    const SIZE: u32 = 2;

    /// A queue of two receives, with their posts and their memory.
    struct Queue<Word> {
        words: [Word; SIZE as usize],
        mark: AtomicU32,
        posts: [UnsafeCell<u32>; SIZE as usize],
        memory: [UnsafeCell<u32>; SIZE as usize],
    }

    impl<Word: Atomic<Value = u64>> Order for Queue<Word> {
        type Word = Word;
        type Mark = AtomicU32;

        fn size(&self) -> u32 {
            SIZE
        }

        fn word(&self, k: u32) -> &Word {
            &self.words[(k % SIZE) as usize]
        }

        fn mark(&self) -> &AtomicU32 {
            &self.mark
        }
    }

    /// The content of a post, less its index.
    const POST: u32 = 100;

    impl<Word: Atomic<Value = u64>> Queue<Word> {
        fn new(word: impl Fn() -> Word) -> Arc<Self> {
            Arc::new(Self {
                words: std::array::from_fn(|_| word()),
                mark: AtomicU32::new(0),
                posts: std::array::from_fn(|_| UnsafeCell::new(0)),
                memory: std::array::from_fn(|_| UnsafeCell::new(0)),
            })
        }

        /// Posts receive `k` with the index `k`.
        fn append(&self, k: u32) {
            // SAFETY: no requester reads what is not posted; otherwise loom reports it.
            self.posts[k as usize].with_mut(|post| unsafe { *post = POST + k });
            self.show(Ticket { k, index: k, room: 0 });
        }

        /// Takes a receive and fills it, as a requester.
        fn fill(&self, block: u32) -> Option<Ticket> {
            let fits = |Ticket { index, .. }: Ticket| {
                // SAFETY: the receive is posted; otherwise loom reports it.
                self.posts[index as usize].with(|post| unsafe { *post == POST + index })
            };
            let ticket = self.take_where(block, fits).ok()?;
            // SAFETY: only the requester that has taken the receive uses it; otherwise loom reports
            // it.
            self.memory[ticket.index as usize].with_mut(|memory| unsafe { *memory = block });
            self.pass(ticket);
            Some(ticket)
        }
    }

    /// Two requesters take a receive each while the owner posts the second one.
    fn both_take<Word>(word: impl Fn() -> Word + Send + Sync + 'static) -> impl Fn() + Send + Sync + 'static
    where
        Word: Atomic<Value = u64> + Send + Sync + 'static,
    {
        move || {
            let queue = Queue::new(&word);
            queue.append(0);
            let takers = [1, 2].map(|block| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.fill(block).map(|ticket| ticket.index))
            });
            queue.append(1);
            let mut taken: Vec<u32> = takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect();
            while let Some(ticket) = queue.fill(3) {
                taken.push(ticket.index);
            }
            taken.sort_unstable();
            assert_eq!(taken, [0, 1]);
        }
    }

    /// A requester puts its receive back while another one takes a receive. The owner reaches the
    /// place of the first receive before that and, if it looks again, afterwards.
    fn one_puts_back(looks_again: bool) -> impl Fn() + Send + Sync + 'static {
        move || {
            let queue = Queue::new(word);
            queue.append(0);
            queue.append(1);
            let ticket = queue.fill(1).unwrap();
            let [first, second] = [(); 2].map(|()| Arc::clone(&queue));
            let first = thread::spawn(move || first.put_back(1, ticket));
            let second = thread::spawn(move || second.fill(2).map(|ticket| ticket.index));
            let mut found = Vec::new();
            if queue.withdraw(0, 0) {
                // SAFETY: as for a requester.
                queue.memory[0].with_mut(|memory| unsafe { *memory = 7 });
                found.push(0);
            }
            first.join().unwrap();
            found.extend(second.join().unwrap());
            while let Some(ticket) = queue.fill(3) {
                found.push(ticket.index);
            }
            if looks_again && queue.withdraw(0, 0) {
                found.push(0); // It was passed.
            }
            found.sort_unstable();
            assert_eq!(found, [0, 1], "taken, each once");
        }
    }

    fn word() -> AtomicU64 {
        AtomicU64::new(0)
    }

    #[test]
    fn model_of_requesters_of_one_queue() {
        model::check_within(Some(3), both_take(word));
        model::check_within(Some(3), one_puts_back(true));
    }

    #[test]
    fn the_model_needs_whole_exchanges_the_orders_of_a_post_and_the_owners_look() {
        let without = |order| move || Weaker { word: word(), order };
        let faults = [
            model::must_fail_within(Some(2), both_take(|| TwoSteps(word()))),
            model::must_fail_within(Some(2), both_take(without(Acquire))),
            model::must_fail_within(Some(2), both_take(without(Release))),
        ];
        assert!(faults.iter().all(|why| why.contains("access")), "{faults:?}");
        let lost = model::must_fail_within(Some(2), one_puts_back(false));
        assert!(lost.contains("taken, each once"), "{lost}");
    }
}
