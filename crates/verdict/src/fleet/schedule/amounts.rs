//! How much of a schedule is measured, and what a schedule gives.

/// Pairs that are measured at the same time.
pub type Pairs = Vec<[usize; 2]>;

/// The rounds of a pass.
pub type Rounds<'a> = Box<dyn Iterator<Item = Pairs> + 'a>;

/// How much of a schedule is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Amounts {
    /// The rounds of schedules that draw pairs: `random`, and `bisection` of each kind.
    pub rounds: usize,
    /// The most pairs at the same time; `None`: as many as the schedule has.
    pub parallel: Option<usize>,
    /// The host at the centre of a fan.
    pub root: usize,
}

impl Default for Amounts {
    /// 16 rounds suffice to find hosts.
    fn default() -> Self {
        Self { rounds: 16, parallel: None, root: 0 }
    }
}
