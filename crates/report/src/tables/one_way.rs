//! Messages that are timed one way: a line for each kind of latency.

use measure::table::{Presentation, Traffic};

pub(super) static SHOWN: Presentation =
    Presentation { pattern: "one-way", traffic: Traffic::between_two, ..Presentation::PLAIN };
