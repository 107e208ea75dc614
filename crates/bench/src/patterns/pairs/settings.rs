//! The settings of pairs.

use super::choices::Traffic;
use crate::pattern::settings::settings;

settings! {
    usual {
        // One pair, with which other numbers of pairs are compared.
        pairs: u32 = PAIRS or 1,
        traffic: Traffic = TRAFFIC or Traffic::PingPong,
    }
    messages {
        MPI_CALL,
    }
}
