//! The references of plans and axes, from the definitions that read them: pages of `docs`, and what
//! `rdmascope plans --reference` prints.

mod axes;
mod plans;
mod text;

pub use axes::axes;
pub use plans::plans;
