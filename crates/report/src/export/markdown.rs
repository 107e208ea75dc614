//! A table for people: a row for each combination of axes, as tickets and merge requests show it.

use std::io::Write;

use measure::presentation::Patterns;
use measure::record::Point;
use measure::text::axes_text;

use super::exported::Exported;
use super::rows::asked;
use crate::Error;
use crate::escaped::markdown;
use crate::expectations::line;
use crate::fleet::{Found, OverPairs, SHARES, Tails, remarks, rows};
use crate::folded::fold_worst;
use crate::list::{distinct, grouped};
use crate::varying::Varying;

pub(super) fn write(
    runs: &[Exported<'_>],
    patterns: Patterns,
    quantities: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    for (index, run) in runs.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        writeln!(
            out,
            "{gap}### {} ({}, {})\n",
            markdown(&run.run.title),
            markdown(&run.name),
            markdown(&run.run.started)
        )?;
        match Found::of(run.run, run.points) {
            Some(Ok(found)) => fleet(run, &found, out)?,
            Some(Err(why)) => writeln!(out, "{}", markdown(&why))?,
            None => numbers(run, patterns, quantities, out)?,
        }
        expectations(run, patterns, out)?;
    }
    Ok(())
}

/// The verdict on a fleet with its evidence, and quantiles over the pairs: a row for each of them
/// would be a table of thousands.
fn fleet(run: &Exported<'_>, found: &Found<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let words = found.words();
    writeln!(out, "**{}**; {}\n", markdown(&words.verdict()), markdown(&words.measured()))?;
    for culprit in &found.examined.culprits {
        writeln!(out, "- **{}**", markdown(&words.culprit(culprit)))?;
        words.evidence(culprit).iter().try_for_each(|line| writeln!(out, "  - {}", markdown(line)))?;
    }
    remarks(&words).iter().try_for_each(|line| writeln!(out, "- {}", markdown(line)))?;
    let tails = Tails::of(run.points);
    let of = |judged| rows(&found.question, judged, &tails);
    let all: Vec<OverPairs> = found.examined.quantities.iter().flat_map(of).collect();
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let heads = std::iter::once("of pairs").chain(SHARES.iter().map(|(name, _)| *name));
    row(heads.map(markdown), out)?;
    row(std::iter::once("---").chain(SHARES.iter().map(|_| "---:")).map(str::to_owned), out)?;
    for over_pairs in &all {
        let cells = over_pairs.values.iter().map(|value| over_pairs.row.shown(*value));
        row(std::iter::once(over_pairs.name()).chain(cells).map(|cell| markdown(&cell)), out)?;
    }
    Ok(())
}

fn numbers(
    run: &Exported<'_>,
    patterns: Patterns,
    quantities: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut varying = Varying::default();
    run.points.iter().for_each(|point| varying.see(point));
    let paths = distinct(run.points.iter().flat_map(|point| asked(point, patterns, quantities)));
    let heads = ["experiment", "axes"].into_iter().chain(paths.iter().map(String::as_str)).chain(["remarks"]);
    let rule = ["---", "---"].into_iter().chain(paths.iter().map(|_| "---:")).chain(["---"]);
    row(heads.map(markdown), out)?;
    row(rule.map(str::to_owned), out)?;
    let key = |point: &Point| (point.experiment.clone(), point.axes.clone());
    for ((experiment, axes), points) in grouped(run.points.iter().map(|point| (key(point), point))) {
        let axes = axes_text(&axes, |axis| varying.has(&experiment, axis));
        let measured: Vec<_> =
            paths.iter().map(|path| fold_worst(&points, patterns, path, None, true)).collect();
        let cells = measured.iter().map(|one| match one {
            Ok(measured) => measured.in_its_unit(measured.y.value),
            Err(_) => "–".to_owned(),
        });
        let remarks =
            points.iter().filter_map(|point| super::rows::reason(point).or(point.unstable.as_deref()));
        let remarks = distinct(remarks).join("; ");
        let words = [experiment, axes].into_iter().chain(cells).chain([remarks]);
        row(words.map(|word| markdown(&word)), out)?;
    }
    Ok(())
}

fn expectations(run: &Exported<'_>, patterns: Patterns, out: &mut dyn Write) -> Result<(), Error> {
    let judged = run.judged(patterns);
    if judged.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    row(["expectation", "points", "judgement"].map(str::to_owned).into_iter(), out)?;
    row(["---"; 3].map(str::to_owned).into_iter(), out)?;
    for (judged, case) in judged.iter().flat_map(|judged| judged.cases.iter().map(move |case| (judged, case)))
    {
        let words = [judged.expectation.to_string(), case.label.clone(), line(case)];
        row(words.iter().map(|word| markdown(word)), out)?;
    }
    Ok(())
}

fn row(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> Result<(), Error> {
    Ok(writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "))?)
}
