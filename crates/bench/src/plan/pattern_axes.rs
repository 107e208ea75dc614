//! Which patterns have the axes that not all have.

use super::check::Check;
use super::{fan_out, one_way, open_loop, overhead, pairs, pipeline, prtt};
use crate::Error;
use crate::axis::AxisRow;
use crate::point::Pattern;

/// The axes of each pattern that not every pattern has, the patterns in the order in which errors name them.
const AXES: [(Pattern, &[&AxisRow]); 7] = [
    (Pattern::FanOut, fan_out::AXES),
    (Pattern::OneWay, one_way::AXES),
    (Pattern::OpenLoop, open_loop::AXES),
    (Pattern::Overhead, overhead::AXES),
    (Pattern::Pairs, pairs::AXES),
    (Pattern::Pipeline, pipeline::AXES),
    (Pattern::Prtt, prtt::AXES),
];

impl Check<'_> {
    /// Refuses axes that only other patterns have.
    pub(super) fn listed(&self) -> Result<(), Error> {
        for axis in self.0.axes.iter() {
            let has = |rows: &[&AxisRow]| rows.iter().any(|row| row.name == axis.row.name);
            let patterns: Vec<Pattern> =
                AXES.iter().filter(|(_, rows)| has(rows)).map(|(pattern, _)| *pattern).collect();
            if patterns.is_empty() || patterns.contains(&self.0.pattern) {
                continue;
            }
            let what = format!("{} with the pattern {:?}", axis.row.name, self.0.pattern.name());
            let named: Vec<_> = patterns.iter().map(|pattern| format!("{:?}", pattern.name())).collect();
            let kind = if named.len() > 1 { "patterns" } else { "pattern" };
            let why = format!("it is for the {kind} {}", named.join(" and "));
            return self.refuse(axis.row.name, &what, &why);
        }
        Ok(())
    }
}
