//! One to n, n to one.

pub(crate) mod rank;
mod rounds;

pub(crate) use rounds::spoke;
