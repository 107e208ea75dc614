//! Tests that run the schedules of all ranks in memory, in any order.

use super::schedule::{Message, Place, Schedule, Step};
use super::{dissemination, doubling, halo, reduce, ring, schedule};
use crate::endpoint::collectives::{
    Algorithm, Blocks, Collective, CollectiveCall, CollectiveSpec, Element, HaloSpec, Joint, Reduction,
};
use crate::endpoint::contents::{Contents, side_expected, sides};
use crate::patterns::halo::choices::SIDES;
use crate::point::HaloMethod;

/// The ranks of a joint operation, with two sets of places as on a device.
struct World {
    ranks: Vec<Rank>,
    reduced_by: (Element, Reduction),
    /// The rank whose messages are corrupted by one byte.
    corrupts: Option<u32>,
    random: u64,
}

struct Rank {
    schedule: Schedule,
    given: Vec<u8>,
    vector: Vec<u8>,
    sources: [Vec<Vec<u8>>; 2],
    /// The arrived messages, each with the number of its call.
    arrivals: [Vec<(u64, Vec<u8>)>; 2],
    /// The call that the rank has begun, and its next step.
    call: u64,
    step: usize,
}

impl Rank {
    /// Returns the last call that the rank has finished.
    fn finished(&self) -> u64 {
        if self.step == self.schedule.steps.len() { self.call } else { self.call.saturating_sub(1) }
    }

    fn set(&self) -> usize {
        (self.call % 2) as usize
    }

    /// Returns a message in its place: messages end where their places end.
    fn message(&self, message: Message) -> &[u8] {
        let place = match message.place {
            Place::Arrival(arrival) => &self.arrivals[self.set()][arrival].1,
            Place::Source(source) => &self.sources[self.set()][source],
        };
        &place[place.len() - message.bytes..]
    }
}

impl World {
    fn new(schedules: Vec<Schedule>, given: impl Fn(u32) -> Vec<u8>) -> Self {
        let rank = |(rank, schedule): (u32, Schedule)| {
            let sources: Vec<Vec<u8>> = schedule.sources.iter().map(|bytes| vec![0; *bytes]).collect();
            let arrivals: Vec<_> = schedule.arrivals.iter().map(|bytes| (0, vec![0; *bytes])).collect();
            Rank {
                given: given(rank),
                vector: vec![0; schedule.vector],
                sources: [sources.clone(), sources],
                arrivals: [arrivals.clone(), arrivals],
                call: 0,
                step: schedule.steps.len(),
                schedule,
            }
        };
        let ranks: Vec<Rank> = (0..).zip(schedules).map(rank).collect();
        let places = |rank: &Rank| (rank.schedule.sources.clone(), rank.schedule.arrivals.clone());
        assert!(ranks.iter().all(|rank| places(rank) == places(&ranks[0])), "places differ between ranks");
        Self { ranks, reduced_by: (Element::Uint64, Reduction::Max), corrupts: None, random: 1 }
    }

    /// Makes `calls` calls, with the ranks in any order.
    fn run(&mut self, calls: u64) {
        while self.ranks.iter().any(|rank| rank.finished() < calls) {
            let order = self.random();
            let moved = (0..self.ranks.len()).any(|n| self.moves((n + order) % self.ranks.len(), calls));
            assert!(moved, "all ranks wait for each other");
        }
    }

    fn random(&mut self) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize
    }

    /// Lets a rank take its next step, if it can.
    fn moves(&mut self, rank: usize, calls: u64) -> bool {
        if self.ranks[rank].finished() == self.ranks[rank].call {
            return self.ranks[rank].call < calls && self.begins(rank);
        }
        let own = &mut self.ranks[rank];
        let set = own.set();
        match own.schedule.steps[own.step].clone() {
            Step::Give { at } => own.vector[at..at + own.given.len()].copy_from_slice(&own.given),
            Step::Pack { message, at, from } => {
                let Place::Source(source) = message.place else { panic!("{message:?} is another rank's") };
                let part = own.vector[from.clone()].to_vec();
                let begin = own.sources[set][source].len() - message.bytes + at;
                own.sources[set][source][begin..begin + part.len()].copy_from_slice(&part);
            }
            Step::Write { message, to, arrival } => self.writes(rank, message, to as usize, arrival),
            Step::Await { arrival } if own.arrivals[set][arrival].0 != own.call => return false,
            Step::Await { .. } => {}
            Step::Unpack { message, at, to } => {
                let part = own.message(message)[at..at + to.len()].to_vec();
                own.vector[to].copy_from_slice(&part);
            }
            Step::Reduce { message, to } => {
                let came = own.message(message).to_vec();
                reduce(self.reduced_by, &mut own.vector[to], &came);
            }
        }
        self.ranks[rank].step += 1;
        true
    }

    /// Lets a rank begin a call: all ranks that it writes to have finished the last call in the
    /// same places.
    fn begins(&mut self, rank: usize) -> bool {
        let call = self.ranks[rank].call + 1;
        for step in &self.ranks[rank].schedule.steps {
            let Step::Write { to, .. } = step else { continue };
            let done = self.ranks[*to as usize].finished();
            assert!(done + 2 >= call, "rank {rank} begins call {call} and rank {to} has only done {done}");
        }
        (self.ranks[rank].call, self.ranks[rank].step) = (call, 0);
        true
    }

    fn writes(&mut self, rank: usize, message: Message, to: usize, arrival: usize) {
        let own = &self.ranks[rank];
        let call = own.call;
        let set = own.set();
        let mut bytes = own.message(message).to_vec();
        if let (true, Some(byte)) = (self.corrupts == Some(rank as u32), bytes.last_mut()) {
            // It changes a number by more than rounding hides.
            *byte ^= 0x40;
        }
        let place = &mut self.ranks[to].arrivals[set][arrival];
        let begin = place.1.len() - bytes.len();
        place.1[begin..].copy_from_slice(&bytes);
        place.0 = call;
    }

    /// Returns how many messages go to other ranks in one call of all ranks.
    fn written(&self) -> u32 {
        let of = |(rank, own): (u32, &Rank)| {
            let is_other = |step: &&Step| matches!(step, Step::Write { to, .. } if *to != rank);
            own.schedule.steps.iter().filter(is_other).count() as u32
        };
        (0..).zip(&self.ranks).map(of).sum()
    }
}

/// Returns how many messages all ranks write in a dissemination.
fn formula(ranks: u32, ways: u32) -> u32 {
    let known = |round: &u32| (ways + 1).pow(*round);
    (0..)
        .take_while(|round| known(round) < ranks)
        .map(|round| ways.min((ranks - 1) / known(&round)))
        .sum::<u32>()
        * ranks
}

#[test]
fn every_rank_hears_of_every_other_in_the_least_rounds() {
    for ranks in 1..=17 {
        for ways in 1..=4 {
            let all = |block: usize| {
                (0..ranks).map(|rank| dissemination::allgather(rank, ranks, ways, block)).collect()
            };
            let mut world = World::new(all(1), |rank| vec![rank as u8 + 1]);
            world.run(5);
            let expected: Vec<u8> = (1..=ranks as u8).collect();
            assert!(world.ranks.iter().all(|rank| rank.vector == expected), "{ranks} ranks, {ways} ways");
            let barrier = World::new(all(0), |_| Vec::new());
            assert_eq!(barrier.written(), formula(ranks, ways), "{ranks} ranks, {ways} ways");
            assert_eq!(world.written(), barrier.written());
        }
    }
}

#[test]
fn n_ways_are_n_times_rounds_times_ranks_writes_where_no_round_is_partial() {
    for (ranks, ways, rounds) in
        [(2, 1, 1), (4, 1, 2), (8, 1, 3), (3, 2, 1), (9, 2, 2), (16, 3, 2), (5, 4, 1)]
    {
        assert_eq!(formula(ranks, ways), ways * rounds * ranks);
    }
    // 4 ranks, 2-way: 2 writes by each rank in the first round, then one to the rank that is left.
    assert_eq!(formula(4, 2), 4 * (2 + 1));
    let to = |step: &Step| if let Step::Write { to, .. } = step { Some(*to) } else { None };
    let targets: Vec<u32> = dissemination::allgather(4, 9, 2, 0).steps.iter().filter_map(to).collect();
    assert_eq!(targets, [5, 6, 7, 1], "p + j 3^i modulo 9");
}

#[test]
fn no_rank_leaves_a_barrier_before_the_last_has_come() {
    for ranks in 2..=17 {
        for ways in 1..=4 {
            let all = (0..ranks).map(|rank| dissemination::allgather(rank, ranks, ways, 0)).collect();
            let mut world = World::new(all, |_| Vec::new());
            for call in 1..=20 {
                let late = world.random() % world.ranks.len();
                // All ranks but one advance as far as they can.
                while (0..world.ranks.len()).any(|rank| rank != late && world.moves(rank, call)) {}
                assert!(world.ranks.iter().all(|rank| rank.finished() < call), "{ranks} ranks, {ways} ways");
                world.run(call);
            }
        }
    }
}

fn spec(operation: Collective, size_bytes: usize) -> CollectiveSpec {
    CollectiveSpec {
        operation,
        call: CollectiveCall::Blocking,
        blocks: Blocks::Equal,
        size_bytes,
        element: Element::Float,
        reduction: Reduction::Sum,
        algorithm: None,
        ways: 1,
    }
}

/// Returns the results of all ranks; one rank's messages may be corrupted.
fn results(spec: CollectiveSpec, ranks: u32, corrupts: Option<u32>) -> Vec<Result<(), crate::Error>> {
    let contents = |rank| Contents { spec, rank, ranks };
    let all = (0..ranks).map(|rank| schedule(Joint::Collective(spec), rank, ranks).unwrap()).collect();
    let mut world = World::new(all, |rank| contents(rank).given());
    world.reduced_by = (spec.element, spec.reduction);
    world.corrupts = corrupts;
    world.run(4);
    (0..).zip(&world.ranks).map(|(rank, own)| contents(rank).verify(&own.vector)).collect()
}

#[test]
fn every_algorithm_brings_what_its_operation_should() {
    let algorithms = [Algorithm::Dissemination, Algorithm::RecursiveDoubling, Algorithm::Ring];
    for operation in [Collective::Allgather, Collective::Allreduce] {
        for algorithm in algorithms {
            for ranks in 1..=17 {
                for (size_bytes, ways) in [(0, 1), (8, 1), (24, 1), (24, 3)] {
                    let spec =
                        CollectiveSpec { algorithm: Some(algorithm), ways, ..spec(operation, size_bytes) };
                    if spec.over_verbs(ranks).is_none() {
                        let results = results(spec, ranks, None);
                        assert!(results.iter().all(Result::is_ok), "{spec:?}, {ranks} ranks: {results:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_byte_that_is_changed_on_its_way_is_a_wrong_result() {
    for operation in [Collective::Allgather, Collective::Allreduce] {
        for algorithm in [None, Some(Algorithm::Ring)] {
            let spec = CollectiveSpec { algorithm, ..spec(operation, 16) };
            assert!(results(spec, 4, None).iter().all(Result::is_ok));
            let wrong = results(spec, 4, Some(1)).into_iter().filter_map(Result::err);
            let wrong: Vec<String> = wrong.map(|error| error.to_string()).collect();
            assert!(!wrong.is_empty() && wrong[0].contains("brought a wrong result to rank"), "{wrong:?}");
        }
    }
}

#[test]
fn what_is_not_done_over_verbs_is_refused() {
    let refused = |operation, algorithm, ways, ranks| {
        let spec = CollectiveSpec { algorithm, ways, ..spec(operation, 8) };
        spec.over_verbs(ranks).map(|refusal| refusal.key)
    };
    assert_eq!(refused(Collective::Bcast, None, 1, 2), Some("collective"));
    assert_eq!(refused(Collective::Barrier, Some(Algorithm::Ring), 1, 2), Some("algorithm"));
    assert_eq!(refused(Collective::Allreduce, Some(Algorithm::Dissemination), 1, 2), Some("algorithm"));
    assert_eq!(refused(Collective::Allreduce, None, 2, 2), Some("ways"));
    assert_eq!(refused(Collective::Allgather, Some(Algorithm::RecursiveDoubling), 1, 6), Some("algorithm"));
    assert_eq!(refused(Collective::Allgather, Some(Algorithm::RecursiveDoubling), 1, 8), None);
    assert_eq!(refused(Collective::Barrier, None, 4, 7), None);
}

#[test]
fn every_rank_gets_the_sides_of_its_neighbours() {
    for grid in ["1x1", "1x2", "2x1", "2x2", "3x2", "4x4"] {
        let spec = HaloSpec { grid: grid.parse().unwrap(), method: HaloMethod::Put, side_bytes: 8 };
        let ranks = spec.grid.ranks();
        let mut world =
            World::new((0..ranks).map(|rank| halo::exchange(spec, rank)).collect(), |_| Vec::new());
        for (rank, own) in (0..).zip(&mut world.ranks) {
            let sides: Vec<Vec<u8>> = sides(rank, 8).chunks(8).map(<[u8]>::to_vec).collect();
            own.sources = [sides.clone(), sides];
        }
        world.run(5);
        for (rank, own) in (0..).zip(&world.ranks) {
            for side in 0..SIDES {
                assert_eq!(
                    own.arrivals[own.set()][side].1,
                    side_expected(spec, rank, side),
                    "{grid} {rank} {side}"
                );
            }
        }
    }
}

#[test]
fn the_largest_number_is_known_to_all() {
    for ranks in 1..=17 {
        let all = (0..ranks).map(|rank| dissemination::extreme(rank, ranks, 8)).collect();
        let mut world = World::new(all, |rank| u64::from((rank * 7) % ranks).to_ne_bytes().to_vec());
        world.run(3);
        let largest = (0..ranks).map(|rank| (rank * 7) % ranks).max().map(u64::from);
        assert!(
            world.ranks.iter().all(|rank| rank.vector == largest.unwrap().to_ne_bytes()),
            "{ranks} ranks"
        );
    }
}

#[test]
fn rings_write_to_the_next_rank_only() {
    for schedule in [ring::allgather(3, 4, 8), ring::allreduce(3, 4, 24, 4)] {
        assert!(schedule.steps.iter().all(|step| !matches!(step, Step::Write { to, .. } if *to != 0)));
    }
    let partners = |step: &Step| if let Step::Write { to, .. } = step { Some(*to) } else { None };
    let doubling: Vec<u32> = doubling::allreduce(5, 8, 8).steps.iter().filter_map(partners).collect();
    assert_eq!(doubling, [4, 7, 1]);
}
