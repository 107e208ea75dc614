//! How several requesters take receives from a shared receive queue.
//!
//! ```text
//! word: posted(k, index) ──► taken(k, block, index) ──► posted(k + size, ...)
//!                        ◄──     (not used after all)
//! ```
//!
//! Each takes one by an exchange, for a message of its own lane. A mark says where to begin; it may
//! lag behind, and it may pass a receive by that was put back: its owner finds that when he comes
//! to its word again.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::sys::limits::MAX_WR;
use crate::sys::sync::Atomic;
use crate::transport::local::claim::{after, is_at_or_after};

/// Whose turn a receive is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    Empty,
    /// Receive `k`, with this index, is there for the taking.
    Posted {
        k: u32,
        index: u32,
        /// Bytes that it has room for, up to [`ROOM_MAX`]; 0 where only its post says that.
        room: u16,
    },
    /// The process of a block has taken it.
    Taken {
        k: u32,
        block: u32,
        index: u32,
    },
}

/// Indexes fit the bits that they have in a word; blocks do too (see `limits`).
const _: () = assert!(MAX_WR.next_power_of_two() <= 1 << 16 && crate::sys::limits::BLOCKS <= 1 << 12);

/// Most that a word says of the room of a receive. A requester that knows of enough does not read
/// the post, which is on a line of its own.
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

    /// Any word has a meaning.
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

/// A receive that can be taken, or was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) k: u32,
    pub(crate) index: u32,
    /// Bytes that it is known to have room for: see [`Entry::Posted`].
    pub(crate) room: u16,
}

/// Why none was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// None is posted.
    Empty,
    /// The next one has not enough room; it was left there.
    Short,
}

/// The words of a queue.
pub(crate) trait Order {
    type Word: Atomic<Value = u64>;
    type Mark: Atomic<Value = u32>;

    /// Words, a power of two.
    fn size(&self) -> u32;
    /// The word of receive `k`.
    fn word(&self, k: u32) -> &Self::Word;
    /// Where requesters begin.
    fn mark(&self) -> &Self::Mark;

    /// The next receive that is there for the taking, with its word.
    fn next_posted(&self) -> Option<(u64, Ticket)> {
        let mut k = self.mark().load(Acquire);
        for _ in 0..2 * (u64::from(self.size()) + 1) {
            let word = self.word(k).load(Acquire);
            match Entry::decode(word) {
                Entry::Posted { k: posted, index, room } if posted == k => {
                    return Some((word, Ticket { k, index, room }));
                }
                // Another requester was faster, or the mark lags behind by a lap or more: what had
                // this word last is gone, and so is all that was posted before that.
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

    /// Whether there is no receive for the taking.
    fn is_dry(&self) -> bool {
        self.next_posted().is_none()
    }

    /// Moves the mark on behind a receive that was taken. It may go back behind that of a faster
    /// requester instead: it may lag, and an exchange would make each message wait for all stores
    /// before it.
    #[inline]
    fn pass(&self, ticket: Ticket) {
        let next = ticket.k.wrapping_add(1);
        if !is_at_or_after(self.mark().load(Relaxed), next) {
            self.mark().store(next, Release);
        }
    }

    /// Takes the next receive for the process of a block, if it `fits`; then it is to be passed.
    fn take_where(&self, block: u32, fits: impl Fn(Ticket) -> bool) -> Result<Ticket, Refusal> {
        for _ in 0..=u64::from(self.size()) {
            let (word, ticket) = self.next_posted().ok_or(Refusal::Empty)?;
            let Ticket { k, index, .. } = ticket;
            if !fits(ticket) {
                // Unless it was taken meanwhile, and what was read is of another.
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

    /// Puts a receive back that was taken for nothing. Whoever moves the mark on at this moment may
    /// pass it by: then its owner finds it when it comes to its place again.
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

    /// For the owner: shows receive `k` to the requesters.
    fn show(&self, ticket: Ticket) {
        let Ticket { k, index, room } = ticket;
        self.word(k).store(Entry::Posted { k, index, room }.encode(), Release);
    }

    /// For the owner: takes receive `k`, which is posted, out of the requesters' sight, wherever
    /// the mark is; false where one of them has taken it.
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

    /// A queue of two receives, and what its owner says of each.
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

    /// What a post says of an index.
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
            // SAFETY: nobody looks at what is not posted; were that not so, loom would say so.
            self.posts[k as usize].with_mut(|post| unsafe { *post = POST + k });
            self.show(Ticket { k, index: k, room: 0 });
        }

        /// Takes a receive and fills it, as a requester.
        fn fill(&self, block: u32) -> Option<Ticket> {
            let fits = |Ticket { index, .. }: Ticket| {
                // SAFETY: the receive is posted; were that not enough, loom would say so.
                self.posts[index as usize].with(|post| unsafe { *post == POST + index })
            };
            let ticket = self.take_where(block, fits).ok()?;
            // SAFETY: whoever has taken it is alone there; were that not so, loom would say so.
            self.memory[ticket.index as usize].with_mut(|memory| unsafe { *memory = block });
            self.pass(ticket);
            Some(ticket)
        }
    }

    /// Two requesters take a receive each while their owner posts the second one.
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

    /// One puts its receive back while another takes one, and their owner comes to the place of the
    /// first before and, if he looks again, after that.
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
                found.push(0); // It was passed by.
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
