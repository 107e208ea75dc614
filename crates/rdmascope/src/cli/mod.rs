//! Flags that several commands share.

pub(crate) mod axes;
pub(crate) mod benchmark;
pub(crate) mod count;
pub(crate) mod known;
pub(crate) mod mistyped;
mod placement;
pub(crate) mod refused;
#[cfg(test)]
mod tests;
pub(crate) mod time;

pub(crate) use self::axes::Circumstances;
pub(crate) use self::benchmark::{Amount, Output, Results};
pub(crate) use self::placement::{
    Location, MpiPlacement, NetFlags, Placement, Places, PlanPlacement, PortFlags, Site, SocketPlacement,
};
