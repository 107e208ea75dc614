//! The settings of a table, in the words of its banner.

use std::time::Duration;

use measure::text::plain;
use measure::units::{format_duration, format_size};
use serde_json::Value;

use crate::value;

/// Names settings, with commas between them, and leaves out those that go without saying.
pub(crate) fn settings<'a>(axes: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    axes.into_iter().filter_map(|(axis, value)| setting(axis, value)).collect::<Vec<_>>().join(", ")
}

/// Names a setting: `inline`, `no inline`, `pause 5us`; none if it goes without saying.
pub(crate) fn setting(axis: &str, value: &Value) -> Option<String> {
    let text = plain(&value::text(value));
    let is_meant = |(of, one, _): &&(&str, &str, &str)| *of == axis && (one.is_empty() || *one == text);
    if let Some((.., words)) = WORDS.iter().find(is_meant) {
        return Some(words.replace("{}", &text)).filter(|words| !words.is_empty());
    }
    let unit = UNITS.iter().find_map(|(end, print)| Some((axis.strip_suffix(end)?, print)));
    let name = plain(unit.map_or(axis, |(name, _)| name));
    let name = name.split('_').map(|word| if word == "mpi" { "MPI" } else { word });
    let name = name.collect::<Vec<_>>().join(" ");
    Some(match (value, unit) {
        (Value::Bool(true), _) => name,
        (Value::Bool(false), _) => format!("no {name}"),
        (Value::Number(number), Some((_, print))) => match number.as_u64() {
            Some(number) => format!("{name} {}", print(number)),
            None => format!("{name} {text}"),
        },
        _ => format!("{name} {text}"),
    })
}

/// Prints a number with its unit.
type Print = fn(u64) -> String;

/// The units that end the names of axes.
const UNITS: [(&str, Print); 4] = [
    ("_bytes", format_size),
    ("_hz", |per_second| format!("{per_second}/s")),
    ("_ns", |ns| format_duration(Duration::from_nanos(ns))),
    ("_us", |us| format_duration(Duration::from_micros(us))),
];

/// Axes, one of their values or none for every other, and what a banner says: `{}` is the value.
/// Nothing is said of what a reader expects of a table of verbs.
const WORDS: [(&str, &str, &str); 15] = [
    ("burst", "1", "one message at a time"),
    ("direction", "bi", "both directions"),
    ("direction", "uni", ""),
    ("endpoint", "verbs", ""),
    ("family", "ipv4", "IPv4"),
    ("family", "ipv6", "IPv6"),
    ("inline_max_bytes", "", "inline up to {} B"),
    ("mtu_bytes", "", "MTU {}"),
    ("no_delay", "false", "Nagle's algorithm"),
    ("no_delay", "true", "TCP_NODELAY"),
    ("pause_ns", "0", ""),
    ("poll", "busy", "busy polling"),
    ("send_poll", "poll", ""),
    ("signal_interval", "1", "every message signalled"),
    ("signal_rate", "native", ""),
];

#[cfg(test)]
mod tests {
    use measure::record::Axes;
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_named_in_words() {
        for (axis, value, words) in [
            ("inline", json!(true), "inline"),
            ("inline", json!(false), "no inline"),
            ("mtu_bytes", json!(4096), "MTU 4096"),
            ("mtu_bytes", json!("active"), "MTU active"),
            ("load_bytes", json!(65536), "load 64KiB"),
            ("socket_buffer_bytes", json!("auto"), "socket buffer auto"),
            ("pause_ns", json!(100_000), "pause 100us"),
            ("busy_poll_us", json!(50), "busy poll 50us"),
            ("rate_hz", json!(500), "rate 500/s"),
            ("poll", json!("event"), "poll event"),
            ("signal_interval", json!(16), "signal interval 16"),
            ("mpi_call", json!("blocking"), "MPI call blocking"),
            ("link", json!("40Gb/s,latency=700ns"), "link 40Gb/s,latency=700ns"),
            ("later\u{1b}", json!(1.5), "later 1.5"),
        ] {
            assert_eq!(setting(axis, &value).as_deref(), Some(words), "{axis} {value}");
        }
        let axes =
            json!({ "endpoint": "verbs", "poll": "busy", "signal_interval": 1, "signal_rate": "native" });
        let axes: Axes = serde_json::from_value(axes).unwrap();
        assert_eq!(settings(&axes), "busy polling, every message signalled");
    }
}
