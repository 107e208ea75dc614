//! What a plan asks of several pairs beside their messages.

use super::choices::Traffic;
use crate::pattern::settings::settings;

settings! {
    usual {
        // One pair, beside which every other number of them stands.
        pairs: u32 = PAIRS or 1,
        traffic: Traffic = TRAFFIC or Traffic::PingPong,
    }
    messages {
        MPI_CALL,
    }
}
