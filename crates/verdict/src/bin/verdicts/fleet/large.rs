//! One large fleet, for the time of its schedule and its model.

use std::convert::Infallible;
use std::process::ExitCode;

use verdict::fleet::{Hosts, Measured, Options, Place, Probe, Quantity, Reading, Round, Schedule, examine};

/// The logarithm of the rate at which the slow host sends, relative to the others.
const SLOW: f64 = -0.2;

/// A fleet in which one host sends slowly. It answers at once, without a measurement.
struct Instantaneous {
    slow: usize,
}

impl Probe for Instantaneous {
    type Error = Infallible;

    fn round(&mut self, round: &Round) -> Result<Vec<Measured>, Self::Error> {
        let value = |from: usize| if from == self.slow { SLOW } else { 0.0 };
        let reading = |&[a, b]: &[usize; 2]| vec![Reading::directed(value(a), value(b))];
        Ok(round.pairs.iter().map(reading).collect())
    }

    fn visit(&mut self, _: &[usize]) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Examines a fleet of `count` hosts in random rounds, and prints the culprits. The exit status is
/// 1 unless the slow host is the only one.
pub(crate) fn large(count: usize) -> ExitCode {
    let slow = count / 2;
    let schedule = Schedule::named("random").expect("a row of the registry");
    let options = Options::new(vec![Quantity::directed("throughput")], schedule);
    let Ok(examined) = examine(&Hosts::new(count), &options, &mut Instantaneous { slow });
    let named: Vec<Place> = examined.culprits.iter().map(|culprit| culprit.place).collect();
    println!("{count} hosts, {} pairs measured: culprits {named:?}", examined.measurements.screening);
    if named == [Place::Host(slow)] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
