//! Points and expectations as results of tests, in the XML of JUnit as Jenkins, GitLab and Surefire
//! read it (the schema `jenkins-junit.xsd` of Jenkins' xUnit plugin).
//!
//! A point that was measured passes, one that was not is skipped, one that failed is an error. An
//! expectation that is not met is a failure; one that is not decided is skipped.

use std::io::Write;

use measure::presentation::Patterns;
use measure::record::{Point, Status};
use measure::text::axes_text;

use super::exported::Exported;
use super::rows::asked;
use super::rows::text;
use crate::Error;
use crate::escaped::xml;
use crate::expectations::{Case, Judgement, judge, line};
use crate::folded::fold;
use crate::varying::Varying;

/// A test with its result.
struct Test {
    class: String,
    name: String,
    seconds: f64,
    result: Outcome,
    /// The numbers, a line each.
    output: String,
}

/// How a test ended, with the reason.
enum Outcome {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

pub(super) fn write(runs: &[Exported<'_>], patterns: Patterns, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rdmascope\">")?;
    for run in runs {
        suite(run, patterns, out)?;
    }
    Ok(writeln!(out, "</testsuites>")?)
}

fn suite(run: &Exported<'_>, patterns: Patterns, out: &mut dyn Write) -> Result<(), Error> {
    let tests: Vec<Test> = points(run, patterns).chain(expectations(run, patterns)).collect();
    let count = |is: fn(&Outcome) -> bool| tests.iter().filter(|test| is(&test.result)).count();
    let seconds: f64 = tests.iter().map(|test| test.seconds).sum();
    let host = run.run.environments.first().map_or("", |environment| environment.hostname.as_str());
    // The schema has local time without a zone, in whole seconds.
    let started = run.run.started.split(['.', 'Z']).next().unwrap_or_default();
    write!(out, "  <testsuite name=\"{}\" tests=\"{}\"", xml(&run.run.title), tests.len())?;
    write!(out, " failures=\"{}\"", count(|result| matches!(result, Outcome::Failure(_))))?;
    write!(out, " errors=\"{}\"", count(|result| matches!(result, Outcome::Error(_))))?;
    write!(out, " skipped=\"{}\"", count(|result| matches!(result, Outcome::Skipped(_))))?;
    writeln!(out, " time=\"{seconds:.6}\" timestamp=\"{}\" hostname=\"{}\">", xml(started), xml(host))?;
    writeln!(out, "    <properties>")?;
    let version = format!("{} {}", run.run.program.name, run.run.program.version);
    for (name, value) in [("run", &run.name), ("command", &run.run.command.join(" ")), ("program", &version)]
    {
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", xml(value))?;
    }
    writeln!(out, "    </properties>")?;
    tests.iter().try_for_each(|test| case(test, out))?;
    Ok(writeln!(out, "  </testsuite>")?)
}

fn case(test: &Test, out: &mut dyn Write) -> Result<(), Error> {
    let Test { class, name, seconds, result, output } = test;
    write!(out, "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\">", xml(class), xml(name))?;
    match result {
        Outcome::Passed => {}
        Outcome::Failure(why) => write!(out, "<failure message=\"{}\" type=\"expectation\"/>", xml(why))?,
        Outcome::Error(why) => write!(out, "<error message=\"{}\" type=\"point\"/>", xml(why))?,
        Outcome::Skipped(why) => write!(out, "<skipped message=\"{}\"/>", xml(why))?,
    }
    if !output.is_empty() {
        write!(out, "<system-out>{}</system-out>", xml(output))?;
    }
    Ok(writeln!(out, "</testcase>")?)
}

/// The tests of points. Their names are the same in every run of a plan.
fn points<'a>(run: &'a Exported<'_>, patterns: Patterns) -> impl Iterator<Item = Test> + 'a {
    let mut varying = Varying::default();
    run.points.iter().for_each(|point| varying.see(point));
    let is_repeated = run.points.iter().any(|point| point.repetition > 0);
    run.points.iter().map(move |point| {
        let axes = axes_text(&point.axes, |axis| varying.has(&point.experiment, axis));
        let repetition = is_repeated.then(|| format!("repetition {}", point.repetition));
        let words = [Some(axes).filter(|axes| !axes.is_empty()), repetition].into_iter().flatten();
        let name = words.collect::<Vec<_>>().join(", ");
        Test {
            class: class(run, &point.experiment),
            name: if name.is_empty() { point.pattern.clone() } else { name },
            seconds: point.wall_ns as f64 / 1e9,
            result: match &point.status {
                Status::Measured => Outcome::Passed,
                Status::NotMeasured { reason } => Outcome::Skipped(reason.clone()),
                Status::Failed { error } => Outcome::Error(error.clone()),
            },
            output: output(point, patterns),
        }
    })
}

/// The usual numbers of a point.
fn output(point: &Point, patterns: Patterns) -> String {
    let number =
        |path: String| Some(format!("{path} {}", fold(&[point], patterns, &path, None).ok()?.text()));
    let numbers = asked(point, patterns, &[]).into_iter().filter_map(number);
    let unstable = point.unstable.as_ref().map(|reason| format!("unstable: {reason}"));
    numbers.chain(unstable).collect::<Vec<_>>().join("; ")
}

fn expectations<'a>(run: &'a Exported<'_>, patterns: Patterns) -> impl Iterator<Item = Test> + 'a {
    let judged = judge(&run.run.expectations, run.points(patterns));
    let tests = judged.into_iter().flat_map(|judged| {
        let expectation = judged.expectation.to_string();
        judged.cases.into_iter().map(move |case| (expectation.clone(), case))
    });
    tests.map(move |(expectation, case)| expected(run, &expectation, &case))
}

fn expected(run: &Exported<'_>, expectation: &str, case: &Case) -> Test {
    let name =
        if case.label.is_empty() { expectation.to_owned() } else { format!("{expectation}: {}", case.label) };
    let said = line(case);
    Test {
        class: class(run, "expectations"),
        name,
        seconds: 0.0,
        result: match case.judgement {
            Judgement::Met => Outcome::Passed,
            Judgement::NotMet => Outcome::Failure(format!("{expectation} is {said}")),
            Judgement::NotDecided(_) => Outcome::Skipped(said.clone()),
        },
        output: if case.judgement == Judgement::Met { said } else { String::new() },
    }
}

/// The class of a test: the plan and the experiment.
fn class(run: &Exported<'_>, experiment: &str) -> String {
    let plan = run.run.plan.get("name").map(text).unwrap_or_default();
    format!("rdmascope.{plan}.{experiment}")
}
