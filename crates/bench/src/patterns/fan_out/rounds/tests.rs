//! One to n over wires between threads.

use measure::clock::{Clock, Ticks};

use super::*;
use crate::endpoint::wire::Wire;
use crate::endpoint::{Arrival, Posted};
use crate::pattern::answer::answer;
use crate::pattern::times::Times;

/// The root's side of a wire to each leaf; messages use the wires in turn.
struct Root {
    wires: Vec<Wire>,
    next: usize,
    /// The leaf and the mark of each posted message, in order.
    posted: Vec<(usize, Mark)>,
    /// Messages that arrived, by leaf, and how often the memory was cleared.
    came: Vec<usize>,
    cleared: usize,
}

impl Root {
    fn new(wires: Vec<Wire>) -> Self {
        let came = vec![0; wires.len()];
        Self { wires, next: 0, posted: Vec::new(), came, cleared: 0 }
    }
}

impl Endpoint for Root {
    fn clock(&self) -> Clock {
        self.wires[0].clock()
    }

    fn lanes(&self) -> u64 {
        self.wires.len() as u64
    }

    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        let leaf = self.next;
        self.next = (self.next + 1) % self.wires.len();
        self.posted.push((leaf, mark));
        self.wires[leaf].try_send(mark)
    }

    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        for (leaf, wire) in self.wires.iter_mut().enumerate() {
            if let Some(arrival) = wire.try_receive()? {
                self.came[leaf] += 1;
                return Ok(Some(arrival));
            }
        }
        Ok(None)
    }

    fn has_room(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    fn put(&mut self, _: usize, _: u64) -> Result<(), Error> {
        unimplemented!("messages of one to n have no words")
    }

    fn get(&self, _: usize) -> Result<u64, Error> {
        unimplemented!("messages of one to n have no words")
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        Ok(0)
    }

    fn try_sent(&mut self) -> Result<u64, Error> {
        Ok(0)
    }

    fn clear_places(&mut self) -> Result<(), Error> {
        self.cleared += 1;
        Ok(())
    }

    fn idle(&mut self) -> Result<(), Error> {
        std::thread::yield_now();
        let now = self.clock().now();
        self.wires[0].idle_until(now)
    }

    fn idle_until(&mut self, _: Ticks) -> Result<(), Error> {
        self.idle()
    }

    fn quiet(&self) -> std::time::Duration {
        self.wires[0].quiet()
    }
}

/// Runs a root and `count` leaves, each leaf on its own thread.
fn with_leaves<T: Send>(
    count: usize,
    leaf: impl Fn(&mut Wire) -> T + Sync,
    root: impl FnOnce(&mut Root),
) -> (Root, Vec<T>) {
    let pairs: Vec<[Wire; 2]> = (0..count).map(|_| Wire::pair(&[], |_| ())).collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().map(|[one, other]| (one, other)).unzip();
    let mut own = Root::new(ours);
    let leaf = &leaf;
    let done = std::thread::scope(|scope| {
        let leaves: Vec<_> =
            theirs.into_iter().map(|mut wire| scope.spawn(move || leaf(&mut wire))).collect();
        root(&mut own);
        leaves.into_iter().map(|leaf| leaf.join().unwrap()).collect()
    });
    (own, done)
}

#[test]
fn every_round_goes_to_all_spokes_before_it_waits_for_any() {
    let mut times = Times::default();
    let (own, _) = with_leaves(
        3,
        |wire| answer(wire).unwrap(),
        |own| root(own, &mut times, 3, 2, Length::Iterations(4)).unwrap(),
    );
    assert_eq!(times.0.len(), 4, "rounds of the warm-up do not count");
    assert_eq!(own.came, [6, 6, 6]);
    let leaves: Vec<_> = own.posted.iter().map(|(leaf, _)| *leaf).collect();
    assert_eq!(leaves, [0, 1, 2].repeat(6));
    let last: Vec<_> = own.posted.iter().map(|(_, mark)| *mark == Mark::Last).collect();
    assert_eq!(last, [vec![false; 15], vec![true; 3]].concat());
}

#[test]
fn rounds_for_a_time_end_after_it() {
    let mut times = Times::default();
    let (own, _) = with_leaves(
        2,
        |wire| answer(wire).unwrap(),
        |own| root(own, &mut times, 2, 1, Length::Duration(0.02)).unwrap(),
    );
    assert!(!times.0.is_empty());
    assert!(own.came.iter().all(|came| *came == times.0.len() + 1));
}

#[test]
fn a_slow_spoke_is_waited_for_in_its_round() {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(30);
    let mut times = Times::default();
    let slow = std::sync::atomic::AtomicBool::new(true);
    let (own, _) = with_leaves(
        3,
        |wire| {
            let pauses = slow.swap(false, std::sync::atomic::Ordering::Relaxed);
            wire.receive().unwrap();
            if pauses {
                std::thread::sleep(PAUSE);
            }
            wire.send(Mark::Last).unwrap();
        },
        |own| root(own, &mut times, 3, 0, Length::Iterations(1)).unwrap(),
    );
    assert!(times.0[0] >= own.clock().ticks(PAUSE));
}

/// Wires fetch nothing: the test checks which rank does what, and when.
#[test]
fn those_that_fetch_take_turns_and_each_times_its_own() {
    for notify in [Notify::Completion, Notify::Memory] {
        let mut times = Times::default();
        let (own, theirs) = with_leaves(
            3,
            |wire| {
                let mut times = Times::default();
                // On a wire, the root's fetch is a message before its signal; this rank answers the
                // signal by a signal.
                for round in 0..3 {
                    wire.receive().unwrap();
                    let mark = wire.receive().unwrap();
                    assert_eq!(mark == Mark::Last, round == 2);
                    times.record(round);
                    wire.send(mark).unwrap();
                }
                times.0.len()
            },
            |own| fetching_root(own, &mut times, notify, 1, Length::Iterations(2)).unwrap(),
        );
        assert_eq!((times.0.len(), theirs), (2, vec![3, 3, 3]));
        assert_eq!(own.cleared, if notify == Notify::Memory { 3 } else { 0 });
    }
    // A leaf fetches once for each signal, and then signals.
    let [mut root, mut end] = Wire::pair(&[], |_| ());
    let mut times = Times::default();
    for mark in [Mark::More, Mark::More, Mark::Last] {
        root.send(mark).unwrap();
    }
    fetching_leaf(&mut end, &mut times, Notify::Completion, 1).unwrap();
    assert_eq!(times.0.len(), 2);
    let came: Vec<_> =
        std::iter::from_fn(|| root.try_receive().unwrap()).map(|a| a.mark == Mark::Last).collect();
    assert_eq!(
        came,
        [true, false, true, false, true, true],
        "a fetch ends its lane, a signal says what it was told"
    );
}
