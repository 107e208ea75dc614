//! What devices are known to do otherwise than the cases ask, by theme: each line is one departure, and under it are the
//! cases that are not run for it.
//!
//! `RDMASCOPE_CONFORMANCE_DEPARTURES=run` runs them nevertheless, and lists those that pass: their entries are to go.

use crate::runner::Skip;

/// Departures of one kind of device that have to do with each other.
pub struct Theme {
    /// The kind of device: the name without the number, such as `rxe`.
    pub kind: &'static str,
    pub title: &'static str,
    /// What the device does and where its source says so, and the cases that ask for something else.
    pub departures: &'static [Departure],
    /// Those that do not show in each run.
    pub at_times: &'static [Departure],
}

/// A departure in a line, and the cases that are not run for it.
pub type Departure = (&'static str, &'static [&'static str]);

/// Why a kind of device is not asked to keep a case.
pub fn of(kind: &str, case: &str) -> Option<Skip> {
    find(DEPARTURES, kind, case)
}

/// All known departures.
pub const DEPARTURES: &[Theme] = &[];

fn find(themes: &[Theme], kind: &str, case: &str) -> Option<Skip> {
    let lists = |theme: &Theme| [(theme.departures, false), (theme.at_times, true)];
    let mut lists = themes.iter().filter(|theme| theme.kind == kind).flat_map(lists);
    lists.find_map(|(list, at_times)| {
        let (reason, _) = list.iter().find(|(_, cases)| cases.contains(&case))?;
        Some(Skip { why: format!("{kind}: {reason}"), at_times })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_departure_is_of_one_kind_and_of_the_cases_that_it_names() {
        const ERRORS: Theme = Theme {
            kind: "rxe",
            title: "Errors",
            departures: &[("it does otherwise", &["errors::first", "errors::third"])],
            at_times: &[("it is not sure", &["errors::fourth"])],
        };
        for (kind, case, expected) in [
            ("rxe", "errors::first", Some(("rxe: it does otherwise", false))),
            ("rxe", "errors::third", Some(("rxe: it does otherwise", false))),
            ("rxe", "errors::fourth", Some(("rxe: it is not sure", true))),
            ("rxe", "errors::second", None),
            ("softdev", "errors::first", None),
        ] {
            let expected = expected.map(|(why, at_times)| Skip { why: why.to_owned(), at_times });
            assert_eq!(find(&[ERRORS], kind, case), expected, "{kind} {case}");
        }
    }

    #[test]
    fn each_departure_names_cases_that_there_are_and_no_case_departs_twice() {
        let mut seen = HashSet::new();
        for theme in DEPARTURES {
            for (reason, cases) in theme.departures.iter().chain(theme.at_times) {
                assert!(!cases.is_empty(), "{reason}");
                for case in *cases {
                    assert!(crate::CASES.iter().any(|known| known.name == *case), "there is no case {case}");
                    assert!(seen.insert((theme.kind, case)), "{case} departs twice");
                }
            }
        }
    }
}
