//! A wire for tests, which loses the messages that a test selects.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use measure::clock::{Clock, Ticks};

use super::calls::{Batch, Calls, Step};
use super::collectives::{Collectives, Joint};
use super::{Arrival, Endpoint, Mark, Posted};
use crate::Error;

/// What is lost: greetings (`true`) or messages (`false`) by their number, each once.
type Losses = Arc<Mutex<Vec<(bool, u64)>>>;

/// One direction of a wire.
#[derive(Default)]
struct Direction {
    arrivals: Mutex<VecDeque<(Arrival, Vec<u64>)>>,
    came: Condvar,
}

/// One end of a wire between two threads. When idle it sleeps until a message comes, until the
/// instant it is told, or until its deadline.
pub(crate) struct Wire {
    out: Arc<Direction>,
    into: Arc<Direction>,
    losses: Losses,
    /// The message that the next message with [`Mark::Last`] overtakes, and that message while it
    /// is held back.
    overtaken: Option<u64>,
    held: Option<(Arrival, Vec<u64>)>,
    /// How often [`Endpoint::fill`] still has to be called before a message may be taken.
    unfilled: usize,
    is_filling: bool,
    /// How many messages may be on their way; further ones find no room.
    room: usize,
    /// The words of the next message, and of the message taken last.
    out_words: Vec<u64>,
    into_words: Vec<u64>,
    greeted: fn(u32),
    /// The greeting that was taken last.
    greeting: Option<u64>,
    posted: u64,
    /// The result of [`Endpoint::numbers`].
    numbers: u64,
    /// Messages whose completion [`Calls::poll_sends`] has not taken.
    unpolled: u32,
    clock: Clock,
    heard: Ticks,
    deadline: Ticks,
    sleeps: usize,
    /// The number that [`Collectives::hear`] returns in place of its argument, and the last
    /// argument of [`Collectives::largest`].
    heard_number: Option<u64>,
    largest_told: u64,
}

impl Wire {
    /// Creates a wire that loses greetings (`true`) and messages (`false`) by their number, each
    /// once. Each posted greeting calls `greeted` with its number.
    pub(crate) fn pair(losses: &[(bool, u64)], greeted: fn(u32)) -> [Self; 2] {
        let clock = Clock::monotonic();
        let one = Arc::<Direction>::default();
        let other = Arc::<Direction>::default();
        let losses: Losses = Arc::new(Mutex::new(losses.to_vec()));
        let deadline = Ticks(clock.now().0 + clock.ticks(PATIENCE));
        let end = |out: &Arc<Direction>, into: &Arc<Direction>| Self {
            out: Arc::clone(out),
            into: Arc::clone(into),
            losses: Arc::clone(&losses),
            overtaken: None,
            held: None,
            unfilled: 0,
            is_filling: false,
            room: usize::MAX,
            out_words: Vec::new(),
            into_words: Vec::new(),
            greeted,
            greeting: None,
            posted: 0,
            numbers: 0,
            unpolled: 0,
            clock,
            heard: clock.now(),
            deadline,
            sleeps: 0,
            heard_number: None,
            largest_told: 0,
        };
        [end(&one, &other), end(&other, &one)]
    }

    /// Ends its time now.
    pub(crate) fn end_now(&mut self) {
        self.deadline = self.clock.now();
    }

    /// Sets the number that rank 0 seems to have told.
    pub(crate) fn hears(&mut self, number: u64) {
        self.heard_number = Some(number);
    }

    /// Returns the last number of which this rank has asked for the largest.
    pub(crate) fn largest_told(&self) -> u64 {
        self.largest_told
    }

    /// Lets the message of this number be overtaken by the next message that is the last of its
    /// kind.
    pub(crate) fn hold(&mut self, number: u64) {
        self.overtaken = Some(number);
    }

    /// Lets answers carry the number of the message they answer, of `numbers` numbers.
    pub(crate) fn count_to(&mut self, numbers: u64) {
        self.numbers = numbers;
    }

    /// Limits the messages that may be on their way.
    pub(crate) fn hold_at_most(&mut self, messages: usize) {
        self.room = messages;
    }

    /// Requires so many receives to be filled before samples are taken.
    pub(crate) fn fill_first(&mut self, receives: usize) {
        self.unfilled = receives;
    }

    /// Returns how many of these receives are left.
    pub(crate) fn unfilled(&self) -> usize {
        self.unfilled
    }

    /// Returns how often it slept.
    pub(crate) fn sleeps(&self) -> usize {
        self.sleeps
    }

    /// Returns how many messages arrived and were not taken.
    pub(crate) fn left(&self) -> usize {
        self.into.arrivals.lock().unwrap().len()
    }

    /// Sets the deadline to `patience` from now.
    pub(crate) fn give_up_after(&mut self, patience: Duration) {
        self.deadline = Ticks(self.clock.now().0 + self.clock.ticks(patience));
    }

    fn send(&mut self, arrival: Arrival) -> Result<Posted, Error> {
        let message = (arrival, self.out_words.clone());
        let mut losses = self.losses.lock().unwrap();
        match losses.iter().position(|lost| *lost == (arrival.is_greeting, arrival.number)) {
            Some(lost) => drop(losses.remove(lost)),
            None if !arrival.is_greeting && self.overtaken == Some(arrival.number) => {
                self.held = Some(message);
            }
            None => {
                let mut arrivals = self.out.arrivals.lock().unwrap();
                arrivals.push_back(message);
                if arrival.mark == Mark::Last && !arrival.is_greeting {
                    arrivals.extend(self.held.take());
                }
            }
        }
        self.out.came.notify_all();
        Ok(Posted::Queued)
    }
}

impl Endpoint for Wire {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        self.posted += 1;
        self.send(Arrival { mark, number: self.posted - 1, lane: 0, is_greeting: false })
    }

    fn numbers(&self) -> u64 {
        self.numbers
    }

    fn try_answer(&mut self, arrival: &Arrival) -> Result<Posted, Error> {
        self.send(*arrival)
    }

    fn try_send_sync_as(&mut self, number: u32) -> Result<Posted, Error> {
        (self.greeted)(number);
        self.send(Arrival { mark: Mark::Last, number: number.into(), lane: 0, is_greeting: true })
    }

    fn fill(&mut self) -> Result<bool, Error> {
        self.is_filling = self.unfilled > 0;
        self.unfilled = self.unfilled.saturating_sub(1);
        Ok(self.is_filling)
    }

    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        assert!(!self.is_filling, "taken before all receives are posted");
        loop {
            let Some((arrival, words)) = self.into.arrivals.lock().unwrap().pop_front() else {
                return Ok(None);
            };
            self.heard = self.clock.now();
            // Greetings are repeated, as datagrams that are sent several times.
            if arrival.is_greeting && self.greeting.replace(arrival.number) == Some(arrival.number) {
                continue;
            }
            self.into_words = words;
            return Ok(Some(arrival));
        }
    }

    fn has_room(&mut self) -> Result<bool, Error> {
        Ok(self.out.arrivals.lock().unwrap().len() < self.room)
    }

    fn put(&mut self, word: usize, value: u64) -> Result<(), Error> {
        self.out_words.resize(self.out_words.len().max(word + 1), 0);
        self.out_words[word] = value;
        Ok(())
    }

    fn get(&self, word: usize) -> Result<u64, Error> {
        Ok(self.into_words.get(word).copied().unwrap_or_default())
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        Ok(0)
    }

    fn try_sent(&mut self) -> Result<u64, Error> {
        Ok(self.posted)
    }

    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        let now = self.clock.now();
        if now > self.deadline {
            return Err(Error::Deadline {
                what: "arrived",
                waited_s: PATIENCE.as_secs_f64(),
                advice: String::new(),
            });
        }
        self.sleeps += 1;
        let left = Duration::from_nanos(instant.min(self.deadline).0.saturating_sub(now.0) + 1);
        let arrivals = self.into.arrivals.lock().unwrap();
        drop(self.into.came.wait_timeout_while(arrivals, left, |arrivals| arrivals.is_empty()));
        Ok(())
    }

    fn quiet(&self) -> Duration {
        Duration::from_nanos(self.clock.now().since(self.heard))
    }
}

/// Collectives of a single rank.
impl Collectives for Wire {
    fn prepare(&mut self, _: &Joint) -> Result<(), Error> {
        Ok(())
    }

    fn call(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn verify(&self) -> Result<(), Error> {
        Ok(())
    }

    fn meet(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn hear(&mut self, number: u64) -> Result<u64, Error> {
        Ok(self.heard_number.unwrap_or(number))
    }

    fn largest(&mut self, number: u64) -> Result<u64, Error> {
        self.largest_told = number;
        Ok(number)
    }

    fn give(&mut self, _: u32, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn take(&mut self, _: u32) -> Result<u64, Error> {
        Ok(0)
    }

    fn swap(&mut self, _: u32, _: u32) -> Result<(), Error> {
        Ok(())
    }
}

/// A wire makes no objects.
pub(crate) enum NoObjects {}

impl Batch for NoObjects {
    fn prepare(&mut self) -> Result<(), Error> {
        match *self {}
    }

    fn run(&mut self) -> Result<u32, Error> {
        match *self {}
    }

    fn finish(&mut self, _done: u32) -> Result<(), Error> {
        match *self {}
    }
}

impl Calls for Wire {
    type Objects<'a> = NoObjects;

    fn objects(&self, _step: Step, _batch: u32) -> Result<NoObjects, Error> {
        Err(Error::Impossible { reason: "a wire has no device".to_owned() })
    }

    fn accept(&self, _step: Step, _batch: u32, _batches: u64) -> Result<(), Error> {
        Err(Error::Impossible { reason: "a wire has no device".to_owned() })
    }

    fn post_sends(&mut self, calls: u32) -> Result<(), Error> {
        self.unpolled += calls;
        (0..calls).try_for_each(|_| self.try_send(Mark::More).map(drop))
    }

    fn poll_sends(&mut self, calls: u32) -> Result<u32, Error> {
        let taken = calls.min(self.unpolled);
        self.unpolled -= taken;
        Ok(taken)
    }

    fn poll_receives(&mut self, calls: u32) -> Result<u32, Error> {
        let mut taken = 0;
        for _ in 0..calls {
            taken += u32::from(self.try_receive()?.is_some());
        }
        Ok(taken)
    }

    fn post_receives(&mut self, _: u32) -> Result<(), Error> {
        Ok(())
    }
}

/// How long a rank waits for the other one, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(60);
