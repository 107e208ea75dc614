//! What a program has said, found by the expressions of its plan.

use std::collections::BTreeMap;

use regex::{Captures, Regex, RegexBuilder};

use super::definition::{Application, STDOUT};
use super::kept::Said;

/// The group of an expression that is the number.
pub(crate) const VALUE: &str = "value";
/// The group of an expression that says how many ranks there were.
pub(crate) const RANKS: &str = "ranks";

/// Compiles an expression as it is meant: `^` and `$` are the ends of lines.
///
/// # Errors
/// What is wrong with it, in one line.
pub(crate) fn expression(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).multi_line(true).size_limit(EXPRESSION_BYTES_MAX).build();
    built.map_err(|error| {
        let text = error.to_string();
        // The other lines only point at the place in the expression.
        let last = text.lines().last().unwrap_or_default();
        last.trim_start_matches("error: ").to_owned()
    })
}

/// The metrics of a program that ran on so many ranks and said this, by their names.
///
/// # Errors
/// What it does not say, or not as it should: the end of a sentence about it.
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
            return Err(format!("ran but did not verify: {pattern:?} is not in its {place}{}", text.end()));
        };
        check_ranks(&found, ranks)?;
    }
    let mut metrics = BTreeMap::new();
    for metric in &application.metric {
        let text = text(said, &metric.place)?;
        let expression = expression(&metric.pattern)?;
        let mut all = expression.captures_iter(&text.text);
        let first = all.next();
        // Ranks that know nothing of each other each print the metric: then their number is the
        // fault to report, not the number of matches.
        first.iter().try_for_each(|found| check_ranks(found, ranks))?;
        let others = all.take(MATCHES_MAX).count();
        let Some(found) = first.filter(|_| others == 0) else {
            let count = if others == 0 { "not".to_owned() } else { format!("{} times", others + 1) };
            let name = &metric.name;
            return Err(format!(
                "does not say {name} once: {:?} is {count} in its {}{}",
                metric.pattern,
                metric.place,
                text.end()
            ));
        };
        let value = found.name(VALUE).map_or("", |value| value.as_str());
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| format!("says {value:?} as its {}, which is no number", metric.name))?;
        metrics.insert(metric.name.clone(), number);
    }
    Ok(metrics)
}

/// The metrics of a program that ran on so many ranks and printed this on its standard output.
///
/// # Errors
/// What it does not say, or not as it should: the end of a sentence about it.
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
            "has written {} bytes into its {place}, which are too many to search: let it write less, or its results into a \
             file of their own",
            text.bytes
        ));
    }
    Ok(text)
}

/// Compares what a program counts with what was started.
fn check_ranks(found: &Captures<'_>, ranks: u32) -> Result<(), String> {
    let Some(counted) = found.name(RANKS).map(|counted| counted.as_str()) else { return Ok(()) };
    if counted.parse() == Ok(ranks) {
        return Ok(());
    }
    Err(format!(
        "counts {counted} ranks where {ranks} were started: it does not belong to the MPI of this launcher"
    ))
}

/// Matches that are counted for an error.
const MATCHES_MAX: usize = 1000;
/// Larger expressions are a slip of the pen.
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
            (LAMMPS, &[][..], "a\nb\n", "does not say time once: "),
            (LAMMPS, &[][..], "a\nb\n", "is not in its stdout, which ends with: a | b"),
            (LAMMPS, &[][..], twice, "is 2 times in its stdout"),
            (LAMMPS, &[][..], "Loop time of 1 on 1 procs\n", "counts 1 ranks where 2 were started"),
            (
                LAMMPS,
                &[][..],
                &"Loop time of 1 on 1 procs\n".repeat(2),
                "counts 1 ranks where 2 were started",
            ),
            (r"of (?<value>\S+)", &[][..], "of much\n", "says \"much\" as its time, which is no number"),
            (r"of (?<value>\S+)", &[][..], "of inf\n", "says \"inf\" as its time, which is no number"),
            (r"of (?<value>\S+)", &["SUCCESSFUL"][..], "of 1\n", "ran but did not verify: \"SUCCESSFUL\""),
            (r"of (?<value>\S+)", &[r"on (?<ranks>\d+)"][..], "of 1 on 3\n", "counts 3 ranks where 2"),
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
