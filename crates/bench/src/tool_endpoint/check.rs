//! What plans cannot ask of other tools.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Family, Pattern, Tool, tool};

/// Checks an experiment whose points other tools measure.
pub(crate) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let tools: Vec<Tool> = check.0.axes.get(axis::TOOL).into_iter().flatten().collect();
    let Some(first) = tools.first() else { return Ok(()) };
    if let Some(tool) = tools.iter().find(|tool| !check.0.pattern.row().tools.contains(tool)) {
        return check.refuse("tool", &format!("this pattern with {}", tool.word()), &all_measured());
    }
    let is_whole = |duration_s: f64| duration_s >= 1.0 && duration_s.fract() == 0.0;
    if !check.0.length.duration_s().is_some_and(is_whole) {
        let why = "set duration, such as \"1s\"";
        return check.refuse(
            "duration",
            &format!("a run of {} without a duration in whole seconds", first.word()),
            why,
        );
    }
    for (axis, what, is_asked) in [
        ("direction", "both ways", check.goes_both_ways()),
        ("family", "IPv6", check.has(axis::FAMILY, Family::Ipv6)),
    ] {
        if is_asked {
            let why = "not all of them support it: use a separate experiment";
            return check.refuse(axis, &format!("{what} with other tools"), why);
        }
    }
    let own = check.0.settings.axes.iter().map(|axis| axis.row.name).find(|name| !tool::is_common(name));
    own.map_or(Ok(()), |axis| {
        let why = "each tool decides this itself: use a separate experiment";
        check.refuse(axis, &format!("{axis} with {}", first.word()), why)
    })
}

/// Returns which tools measure which patterns.
fn all_measured() -> String {
    let measured = Pattern::all().filter(|pattern| !pattern.row().tools.is_empty());
    let words = measured.enumerate().map(|(n, pattern)| {
        let tools: Vec<_> = pattern.row().tools.iter().map(|tool| tool.word()).collect();
        let verb = if n == 0 { "measure " } else { "" };
        format!("{} {verb}{:?}", tools.join(" and "), pattern.name())
    });
    words.collect::<Vec<_>>().join(", ")
}
