//! What the procedure asks for: rounds of measurements, and visits.

use std::time::Duration;

/// The time between two visits, and between the screening and the first one. All suspects are in
/// each visit, so it passes three times, however many there are. A host that is slow for a while is
/// told from one that is slow if it is so for no longer than about a third of this time: the
/// simulation shows the share of false alarms of flips of ten rounds and of a hundred.
pub const VISITS_APART: Duration = Duration::from_secs(60);

/// What asks for measurements: the program, or a simulation.
///
/// The calls are a deterministic function of earlier answers. A program that keeps its answers can
/// therefore give them again after it was killed, in the same order, and goes on where it stopped.
pub trait Probe {
    /// Why no further measurement is possible. One host that fails is no error: its readings are
    /// `None`.
    type Error;

    /// Measures the pairs of a round at the same time. Returns what each pair gave, in the order of
    /// [`Round::pairs`], each with a reading for each quantity, in the order of
    /// [`Options::quantities`](super::Options::quantities).
    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Self::Error>;

    /// Begins a visit: starts the agents of these hosts again and pins them anew before the next
    /// round, and waits until the last round before it is [`VISITS_APART`] ago. A placement that
    /// made a host suspect would otherwise confirm the suspicion.
    fn visit(&mut self, hosts: &[usize]) -> Result<(), Self::Error>;

    /// Whether time is left for another round of the screening. The procedure asks before each
    /// round but the first, and never during a confirmation.
    fn goes_on(&mut self) -> bool {
        true
    }

    /// The time that is left for suspects: again, in isolation and under load. `None`: no limit.
    /// The procedure asks once, after the screening, and keeps to it. Suspects for which no time is
    /// left stay undecided. A program that keeps its answers keeps this one too.
    fn time_left(&mut self) -> Option<TimeLeft> {
        None
    }
}

/// The probe has failed, and its error is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped;

/// The probe that the procedure asks: of one type, so that the program has it once.
pub(super) type AnyProbe<'a> = dyn Probe<Error = Stopped> + 'a;

/// Runs a procedure with a probe of any type, and returns the error of the probe if it has failed.
pub(super) fn with<P: Probe, T>(
    probe: &mut P,
    run: impl FnOnce(&mut AnyProbe<'_>) -> Result<T, Stopped>,
) -> Result<T, P::Error> {
    let mut kept = Kept { probe, error: None };
    run(&mut kept).map_err(|Stopped| kept.error.expect("a procedure stops when its probe has failed"))
}

/// A probe that keeps its error.
struct Kept<'p, P: Probe> {
    probe: &'p mut P,
    error: Option<P::Error>,
}

impl<P: Probe> Kept<'_, P> {
    fn keep<T>(&mut self, result: Result<T, P::Error>) -> Result<T, Stopped> {
        result.map_err(|error| {
            self.error = Some(error);
            Stopped
        })
    }
}

impl<P: Probe> Probe for Kept<'_, P> {
    type Error = Stopped;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Stopped> {
        let measured = self.probe.round(round);
        self.keep(measured)
    }

    fn visit(&mut self, hosts: &[usize]) -> Result<(), Stopped> {
        let visited = self.probe.visit(hosts);
        self.keep(visited)
    }

    fn goes_on(&mut self) -> bool {
        self.probe.goes_on()
    }

    fn time_left(&mut self) -> Option<TimeLeft> {
        self.probe.time_left()
    }
}

/// The time that is left after the screening, in rounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeLeft {
    /// The number of rounds that fit.
    pub rounds: usize,
    /// The number of rounds that would fit into the time before a visit begins.
    pub before_visit: usize,
}

/// Pairs that are measured at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// What the measurements are for.
    pub purpose: Purpose,
    /// The pairs. No host is in two of them, except in rounds of the schedules `one-to-all` and
    /// `all-to-one`, whose pairs share one host.
    pub pairs: Vec<[usize; 2]>,
}

/// What a round is for. All numbers start at 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// A round of the schedule.
    Screening {
        /// Which pass over the schedule.
        pass: usize,
        /// Which round of the pass.
        round: usize,
    },
    /// A second look at suspect pairs.
    Again {
        /// Which repetition.
        repetition: usize,
    },
    /// Measurements in isolation that confirm or clear suspects.
    Confirmation {
        /// Which visit.
        visit: usize,
    },
    /// The same pairs at once as in a round of the screening, to tell congestion from noise.
    UnderLoad {
        /// The round of the schedule that is repeated.
        round: usize,
    },
}

/// What one pair gave: a reading for each quantity.
pub type Measured = Vec<Reading>;

/// The values of one quantity of a pair `[a, b]`: natural logarithms, larger is better, so ln of a
/// throughput or -ln of a latency. `None` (or a value that is not finite) was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// From a to b. Of a quantity without direction, its value.
    pub there: Option<f64>,
    /// From b to a. Not read for a quantity without direction.
    pub back: Option<f64>,
}

impl Reading {
    /// Both directions of a quantity.
    pub fn directed(there: f64, back: f64) -> Self {
        Self { there: Some(there), back: Some(back) }
    }

    /// The value of a quantity without direction.
    pub fn symmetric(value: f64) -> Self {
        Self { there: Some(value), back: None }
    }
}

/// Whether a measurement gave nothing.
pub(super) fn is_missing(measured: &Measured) -> bool {
    measured.iter().all(|reading| reading.there.is_none() && reading.back.is_none())
}
