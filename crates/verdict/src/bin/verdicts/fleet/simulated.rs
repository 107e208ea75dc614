//! A fleet whose truth is known.

use measure::random::Random;
use verdict::fleet::{Hosts, Measured, Probe, Reading, Round, TimeLeft};

use crate::noise::{Noise, Series, mixed};

/// The scale of the noise of one measurement, and the standard deviation of healthy hosts.
pub(super) const SCALE: f64 = 0.01;
const NATURAL: f64 = 0.01;
/// The standard deviation of what all pairs of a round have in common.
const COMMON: f64 = 0.005;
/// The standard deviation of what all pairs of a later session have in common.
const DRIFT: f64 = 0.01;
/// What a measurement loses beside those of other pairs.
const LOAD: f64 = 0.03;
/// A host that flips: how much slower, and for which share of the time. It does so whether or not
/// its agent is started anew.
const FLIP: f64 = 0.0834;
const FLIPPED: f64 = 0.05;

/// How time passes, in rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// For how many rounds at a time a host that flips is slow.
    pub(super) dwell: f64,
    /// How many rounds would fit between two visits.
    pub(super) gap: u64,
}

/// What is wrong in a fleet, in one quantity: logarithms, negative is slower.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    /// Hosts that send, and that receive, slower.
    pub(super) send: Vec<(usize, f64)>,
    /// The same for receiving.
    pub(super) receive: Vec<(usize, f64)>,
    /// Slower from one host to another.
    pub(super) pairs: Vec<([usize; 2], f64)>,
    /// All paths that leave or enter a group: an index of the first grouping.
    pub(super) group: Option<(usize, f64)>,
    /// All paths between groups, which is no fault.
    pub(super) across: f64,
}

/// A fleet that answers as a [`Probe`].
pub(super) struct Simulated<'a> {
    hosts: &'a Hosts,
    noise: Noise,
    rhythm: Rhythm,
    seed: u64,
    /// Measured at this time; every round is one step.
    time: u64,
    quantities: Vec<Quantity>,
    flips: Vec<bool>,
    /// How much faster all pairs are than in an earlier session.
    drift: f64,
    random: Random,
    /// For how many rounds of the schedule there is time, and what is left then.
    limit: Option<(u64, TimeLeft)>,
}

/// One quantity: the true effects of hosts, and what is wrong.
struct Quantity {
    is_directed: bool,
    send: Vec<f64>,
    receive: Vec<f64>,
    truth: Truth,
    /// The recorded series whose noise it has.
    series: &'static Series,
}

impl<'a> Simulated<'a> {
    /// A fleet with a truth for each quantity, directed or not. In a later session, healthy hosts
    /// are what they were, and all else is drawn anew.
    pub(super) fn new(
        hosts: &'a Hosts,
        (noise, rhythm): (Noise, Rhythm),
        truths: &[(bool, Truth)],
        seed: u64,
        session: u64,
    ) -> Self {
        let mut random = Random(mixed(&[seed, 1]));
        let quantities = (0..).zip(truths).map(|(index, (is_directed, truth))| {
            // Half of a host's variance is in both of its directions.
            let own: Vec<f64> = (0..hosts.count).map(|_| random.normal()).collect();
            let mut effects = |slow: &[(usize, f64)]| {
                let natural = |own: &f64| NATURAL * (own + random.normal()) / 2f64.sqrt();
                let mut effects: Vec<f64> = own.iter().map(natural).collect();
                slow.iter().for_each(|&(host, effect)| effects[host] += effect);
                effects
            };
            let send = effects(&truth.send);
            let receive = effects(&truth.receive);
            let series = Series::drawn(mixed(&[seed, 3, index]));
            Quantity { is_directed: *is_directed, send, receive, truth: truth.clone(), series }
        });
        let quantities = quantities.collect();
        let flips = vec![false; hosts.count];
        let (seed, random) = match session {
            0 => (seed, random),
            _ => (mixed(&[seed, 4, session]), Random(mixed(&[seed, 5, session]))),
        };
        let mut fleet =
            Self { hosts, noise, rhythm, seed, time: 0, quantities, flips, drift: 0.0, random, limit: None };
        if session > 0 {
            fleet.drift = DRIFT * fleet.random.normal();
        }
        if noise == Noise::Flips {
            fleet.flips.iter_mut().for_each(|is_slow| *is_slow = fleet.random.fraction() < FLIPPED);
        }
        fleet
    }

    /// The same with time for so many rounds of the schedule, after which so much is left.
    pub(super) fn limited(self, limit: Option<(u64, TimeLeft)>) -> Self {
        Self { limit, ..self }
    }

    fn pass_time(&mut self) {
        self.time += 1;
        if self.noise != Noise::Flips {
            return;
        }
        let dwell = self.rhythm.dwell;
        for is_slow in &mut self.flips {
            let leaves = if *is_slow { 1.0 / dwell } else { FLIPPED / (1.0 - FLIPPED) / dwell };
            *is_slow ^= self.random.fraction() < leaves;
        }
    }

    /// One direction of a pair, or its value in both.
    fn value(&self, index: usize, [from, to]: [usize; 2], common: f64) -> f64 {
        let Quantity { is_directed, send, receive, truth, series } = &self.quantities[index];
        let ends = if *is_directed { [from, to] } else { [from.min(to), from.max(to)] };
        let hosts = match is_directed {
            true => send[from] + receive[to],
            false => send[from] + send[to],
        };
        let pairs = truth.pairs.iter().filter(|(pair, _)| *pair == [from, to]).map(|(_, effect)| effect);
        let group = |host: usize| self.hosts.groupings.first().and_then(|grouping| grouping.of[host]);
        let across = if group(from) == group(to) { 0.0 } else { truth.across };
        let crosses = truth.group.filter(|(one, _)| (group(from) == Some(*one)) != (group(to) == Some(*one)));
        let flips = [from, to].into_iter().filter(|&host| self.flips[host]).count() as f64 * FLIP;
        let stream = mixed(&[self.seed, index as u64, ends[0] as u64, ends[1] as u64]);
        let noise = SCALE * self.noise.deviation(series, stream, self.time);
        hosts + pairs.sum::<f64>() + crosses.map_or(0.0, |(_, effect)| effect) + across - flips
            + noise
            + common
    }
}

impl Probe for Simulated<'_> {
    type Error = std::convert::Infallible;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Self::Error> {
        self.pass_time();
        let load = if round.pairs.len() * 4 > self.hosts.count { LOAD } else { 0.0 };
        let common = self.drift + COMMON * self.random.normal() - load;
        let reading = |index: usize, [a, b]: [usize; 2]| match self.quantities[index].is_directed {
            true => Reading::directed(self.value(index, [a, b], common), self.value(index, [b, a], common)),
            false => Reading::symmetric(self.value(index, [a.min(b), a.max(b)], common)),
        };
        let measured =
            |&pair: &[usize; 2]| (0..self.quantities.len()).map(|index| reading(index, pair)).collect();
        Ok(round.pairs.iter().map(measured).collect())
    }

    fn visit(&mut self, _: &[usize]) -> Result<(), Self::Error> {
        (0..self.rhythm.gap).for_each(|_| self.pass_time());
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        self.limit.is_none_or(|(rounds, _)| self.time < rounds)
    }

    fn time_left(&mut self) -> Option<TimeLeft> {
        self.limit.map(|(_, left)| left)
    }
}
