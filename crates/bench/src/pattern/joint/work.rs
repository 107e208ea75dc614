//! What a rank does between its two stamps.

use measure::clock::Clock;

use super::calculation::Calculation;
use crate::Error;
use crate::endpoint::collectives::Collectives;

/// A collective call, with what a rank does while it is under way.
pub(super) trait Work {
    /// Makes the call once; `call` is its number where it is timed.
    ///
    /// # Errors
    /// The errors of the endpoint.
    fn once<E: Collectives>(&mut self, endpoint: &mut E, call: Option<usize>) -> Result<(), Error>;
}

/// The call, and nothing else.
pub(super) struct Alone;

impl Work for Alone {
    #[inline]
    fn once<E: Collectives>(&mut self, endpoint: &mut E, _: Option<usize>) -> Result<(), Error> {
        endpoint.call()
    }
}

/// The call, with a computation between its start and its end.
pub(super) struct Overlapped {
    clock: Clock,
    calculation: Calculation,
    /// How the computation is split into parts.
    split: [u64; 2],
    /// How often the computation is interrupted by a call of the library's test function.
    tests: u64,
    /// The time of the computation in each timed call, without these interruptions, in ticks.
    pub(super) calculated: Vec<u64>,
}

impl Overlapped {
    /// A call with a computation of this many ticks.
    pub(super) fn new(clock: Clock, ticks: f64, tests: u32, calls: usize) -> Self {
        let calculation = Calculation::of(clock, ticks);
        // The parts are before, between and after the tests. A short computation has few parts.
        let tests = u64::from(tests).min(calculation.parts() - 1);
        let split = calculation.split(tests + 1);
        Self { clock, calculation, split, tests, calculated: vec![u64::MAX; calls] }
    }
}

impl Work for Overlapped {
    #[inline]
    fn once<E: Collectives>(&mut self, endpoint: &mut E, call: Option<usize>) -> Result<(), Error> {
        endpoint.begin()?;
        let begin = self.clock.now();
        let mut tested = 0;
        self.calculation.part(0, self.split).run();
        for part in 1..=self.tests {
            let test = self.clock.now();
            endpoint.test()?;
            tested += self.clock.now().since(test);
            self.calculation.part(part, self.split).run();
        }
        let taken = self.clock.now().since(begin).saturating_sub(tested);
        endpoint.finish()?;
        if let Some(calculated) = call.and_then(|call| self.calculated.get_mut(call)) {
            *calculated = taken;
        }
        Ok(())
    }
}
