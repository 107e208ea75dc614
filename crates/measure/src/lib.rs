//! What a measurement is: units, clocks, samples, statistics and the record. Knows no network.

pub mod figure;
pub mod record;
