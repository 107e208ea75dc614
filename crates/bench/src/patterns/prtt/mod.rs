//! Parametrised round trips.

pub(crate) mod rank;
mod rounds;
