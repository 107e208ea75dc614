//! The settings of halo exchanges.

use super::choices::{Grid, HaloMethod};
use crate::pattern::joint::Start;
use crate::pattern::settings::settings;
use crate::point::Injection;

settings! {
    usual {
        grid: Grid = GRID or Grid { rows: 2, columns: 1 },
        halo_method: HaloMethod = HALO_METHOD or HaloMethod::Nonblocking,
        start: Start = START or Start::Barrier,
    }
    asked {
        inject: Option<Injection> = INJECT or None,
    }
    messages {
        SIDE_VALUES,
    }
}
