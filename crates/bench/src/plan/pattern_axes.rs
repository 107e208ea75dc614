//! Which patterns have the axes that not all have.

use crate::Error;
use crate::axis::AxisRow;
use crate::pattern::check::Check;
use crate::point::Pattern;

impl Check<'_> {
    /// Refuses axes that only other patterns have.
    pub(super) fn listed(&self) -> Result<(), Error> {
        for axis in self.0.axes.iter() {
            let has = |rows: &[&AxisRow]| rows.iter().any(|row| row.name == axis.row.name);
            let patterns: Vec<Pattern> = Pattern::all().filter(|pattern| has(pattern.row().axes)).collect();
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
