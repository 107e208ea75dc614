//! The references of plans and axes, generated from the definitions that read them: pages of
//! `docs`, and the output of `rdmascope plans --reference`.

mod axes;
mod plans;

pub use axes::axes;
pub use plans::plans;
