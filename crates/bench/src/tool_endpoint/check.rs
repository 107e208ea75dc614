//! What a plan must not ask of other programs.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Family, Pattern, Tool, tool};

/// Checks an experiment of which other programs measure points.
pub(crate) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let tools: Vec<Tool> = check.0.axes.get(axis::TOOL).into_iter().flatten().collect();
    let Some(first) = tools.first() else { return Ok(()) };
    if let Some(tool) = tools.iter().find(|tool| !check.0.pattern.row().tools.contains(tool)) {
        return check.refuse("tool", &format!("this pattern of {}", tool.word()), &all_measured());
    }
    let is_whole = |duration_s: f64| duration_s >= 1.0 && duration_s.fract() == 0.0;
    if !check.0.length.duration_s().is_some_and(is_whole) {
        let why = "it measures for whole seconds: give duration, such as \"1s\"";
        return check.refuse("duration", &format!("another length of {}", first.word()), why);
    }
    for (axis, what, is_asked) in [
        ("direction", "both ways", check.goes_both_ways()),
        ("family", "IPv6", check.has(axis::FAMILY, Family::Ipv6)),
    ] {
        if is_asked {
            let why = "not all of them have that: give it an experiment of its own";
            return check.refuse(axis, &format!("{what} of other programs"), why);
        }
    }
    let own = check.0.settings.axes.iter().map(|axis| axis.row.name).find(|name| !tool::is_common(name));
    own.map_or(Ok(()), |axis| {
        let why = "that is as each program has it: give it an experiment of its own";
        check.refuse(axis, &format!("{axis} of {}", first.word()), why)
    })
}

/// Which programs measure which patterns.
fn all_measured() -> String {
    let measured = Pattern::all().filter(|pattern| !pattern.row().tools.is_empty());
    let words = measured.enumerate().map(|(n, pattern)| {
        let tools: Vec<_> = pattern.row().tools.iter().map(|tool| tool.word()).collect();
        let verb = if n == 0 { "measure " } else { "" };
        format!("{} {verb}{:?}", tools.join(" and "), pattern.name())
    });
    words.collect::<Vec<_>>().join(", ")
}
