//! The metrics in the output of an application, found by the expressions of its plan.

use std::collections::BTreeMap;

use regex_lite::{Captures, Regex, RegexBuilder};

use super::definition::{Application, STDOUT};
use super::kept::Said;

/// The group of an expression that matches the number.
pub(crate) const VALUE: &str = "value";
/// The group of an expression that matches the number of ranks.
pub(crate) const RANKS: &str = "ranks";

/// Compiles an expression, in which `^` and `$` are the start and the end of a line.
///
/// # Errors
/// What is wrong with the expression, in one line.
pub(crate) fn expression(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).multi_line(true).size_limit(EXPRESSION_BYTES_MAX).build();
    built.map_err(|error| {
        let text = error.to_string();
        // The other lines only point at the place in the expression.
        let last = text.lines().last().unwrap_or_default();
        last.trim_start_matches("error: ").to_owned()
    })
}

/// Returns the metrics of an application, by their names, from its output `said` on `ranks` ranks.
///
/// # Errors
/// What is missing or wrong: the end of a sentence that starts with the application.
pub(crate) fn metrics(
    application: &Application,
    ranks: u32,
    said: &BTreeMap<String, Said>,
) -> Result<BTreeMap<String, f64>, String> {
    for verify in &application.verify {
        let text = text(said, &verify.place)?;
        let expression = expression(&verify.pattern)?;
        let Some(found) = expression.captures(&text.text) else {
            let pattern = &verify.pattern;
            let place = &verify.place;
            return Err(format!("failed its verification: {pattern:?} is not in its {place}{}", text.end()));
        };
        check_ranks(&found, ranks)?;
    }
    let mut metrics = BTreeMap::new();
    for metric in &application.metric {
        let text = text(said, &metric.place)?;
        let expression = expression(&metric.pattern)?;
        let mut all = expression.captures_iter(&text.text);
        let first = all.next();
        // If each rank runs as if alone, each prints the metric. Then the number of ranks is the
        // error to report, not the number of matches.
        first.iter().try_for_each(|found| check_ranks(found, ranks))?;
        let others = all.take(MATCHES_MAX).count();
        let Some(found) = first.filter(|_| others == 0) else {
            let matches = match others {
                0 => "does not match".to_owned(),
                _ => format!("matches {} times", others + 1),
            };
            let name = &metric.name;
            return Err(format!(
                "must print {name} once: {:?} {matches} in its {}{}",
                metric.pattern,
                metric.place,
                text.end()
            ));
        };
        let value = found.name(VALUE).map_or("", |value| value.as_str());
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number
            .ok_or_else(|| format!("prints {value:?} as its {}, which is not a number", metric.name))?;
        metrics.insert(metric.name.clone(), number);
    }
    Ok(metrics)
}

/// Returns the metrics of an application, by their names, from its standard output on `ranks`
/// ranks.
///
/// # Errors
/// What is missing or wrong: the end of a sentence that starts with the application.
pub fn metrics_of(
    application: &Application,
    ranks: u32,
    output: &[u8],
) -> Result<BTreeMap<String, f64>, String> {
    metrics(application, ranks, &BTreeMap::from([(STDOUT.to_owned(), Said::of(output))]))
}

/// The whole text of a place.
fn text<'a>(said: &'a BTreeMap<String, Said>, place: &str) -> Result<&'a Said, String> {
    let text = said.get(place).ok_or_else(|| format!("has not written the file {place:?}"))?;
    if text.left_out > 0 {
        return Err(format!(
            "has written {} bytes to its {place}, too many to search: let it write less, or write its results to a \
             separate file",
            text.bytes
        ));
    }
    Ok(text)
}

/// Compares the number of ranks that an application prints with the number that was started.
fn check_ranks(found: &Captures<'_>, ranks: u32) -> Result<(), String> {
    let Some(counted) = found.name(RANKS).map(|counted| counted.as_str()) else { return Ok(()) };
    if counted.parse() == Ok(ranks) {
        return Ok(());
    }
    Err(format!(
        "counts {counted} ranks, but {ranks} were started: it does not belong to the MPI of this launcher"
    ))
}

/// The most matches that an error counts.
const MATCHES_MAX: usize = 1000;
/// The largest compiled expression. A larger one is a typo.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use measure::figure::Better;

    use super::super::definition::{Metric, Said as Verify};
    use super::super::ranks::RanksAllowed;
    use super::*;

    fn application(pattern: &str, verify: &[&str]) -> Application {
        let place = STDOUT.to_owned();
        Application {
            name: "a".to_owned(),
            command: vec!["a".to_owned()],
            launcher: Default::default(),
            files: BTreeMap::new(),
            environment: BTreeMap::new(),
            ranks_allowed: RanksAllowed::Any,
            metric: vec![Metric {
                name: "time".to_owned(),
                unit: "s".to_owned(),
                pattern: pattern.to_owned(),
                place: place.clone(),
                better: Better::Less,
            }],
            verify: verify
                .iter()
                .map(|one| Verify { pattern: (*one).to_owned(), place: place.clone() })
                .collect(),
            version_command: Vec::new(),
            install: None,
        }
    }

    fn found(application: &Application, text: &str) -> Result<f64, String> {
        let said = BTreeMap::from([(STDOUT.to_owned(), Said::of(text.as_bytes()))]);
        metrics(application, 2, &said).map(|metrics| metrics["time"])
    }

    const LAMMPS: &str = r"^Loop time of (?<value>\S+) on (?<ranks>\d+) procs";

    #[test]
    fn a_metric_is_what_its_group_matches() {
        let text = "LAMMPS (2 Jun 2022)\nLoop time of 0.0657236 on 2 procs for 100 steps with 4000 atoms\n";
        assert_eq!(found(&application(LAMMPS, &["^LAMMPS"]), text), Ok(0.065_723_6));
        assert_eq!(found(&application(r"time of (?<value>[0-9.]+)", &[]), text), Ok(0.065_723_6));
    }

    #[test]
    fn what_is_not_said_as_it_should_is_one_sentence() {
        let twice = "Loop time of 1 on 2 procs\nLoop time of 2 on 2 procs\n";
        for (pattern, verify, text, words) in [
            (LAMMPS, &[][..], "a\nb\n", "must print time once: "),
            (LAMMPS, &[][..], "a\nb\n", "does not match in its stdout, which ends with: a | b"),
            (LAMMPS, &[][..], twice, "matches 2 times in its stdout"),
            (LAMMPS, &[][..], "Loop time of 1 on 1 procs\n", "counts 1 ranks, but 2 were started"),
            (LAMMPS, &[][..], &"Loop time of 1 on 1 procs\n".repeat(2), "counts 1 ranks, but 2 were started"),
            (r"of (?<value>\S+)", &[][..], "of much\n", "prints \"much\" as its time, which is not a number"),
            (r"of (?<value>\S+)", &[][..], "of inf\n", "prints \"inf\" as its time, which is not a number"),
            (r"of (?<value>\S+)", &["SUCCESSFUL"][..], "of 1\n", "failed its verification: \"SUCCESSFUL\""),
            (r"of (?<value>\S+)", &[r"on (?<ranks>\d+)"][..], "of 1 on 3\n", "counts 3 ranks, but 2"),
        ] {
            let error = found(&application(pattern, verify), text).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let mut elsewhere = application(LAMMPS, &[]);
        elsewhere.metric[0].place = "out.txt".to_owned();
        assert_eq!(found(&elsewhere, ""), Err("has not written the file \"out.txt\"".to_owned()));
    }

    #[test]
    fn what_is_wrong_with_an_expression_is_one_line() {
        let error = expression("(?<value>[0-9").unwrap_err();
        assert!(!error.is_empty() && !error.contains('\n'), "{error}");
    }
}
