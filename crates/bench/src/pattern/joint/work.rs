//! What a rank does between its two stamps.

use measure::clock::Clock;

use super::calculation::Calculation;
use crate::Error;
use crate::endpoint::collectives::Collectives;

/// Something that all ranks do together.
pub(super) trait Work {
    /// Does it once; `call` is its number where it counts.
    ///
    /// # Errors
    /// What the endpoint says.
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

/// The call, and a calculation between its start and its end.
pub(super) struct Overlapped {
    clock: Clock,
    calculation: Calculation,
    /// What its parts have of it.
    split: [u64; 2],
    /// How often the calculation is interrupted to let the library go on.
    tests: u64,
    /// What the calculation took in each call that counts, without those interruptions, in ticks.
    pub(super) calculated: Vec<u64>,
}

impl Overlapped {
    /// A calculation of so many ticks.
    pub(super) fn new(clock: Clock, ticks: f64, tests: u32, calls: usize) -> Self {
        let calculation = Calculation::of(clock, ticks);
        // The parts are before the tests, between them and behind them. A short calculation has
        // few.
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
