//! Results of tests in the XML of Ant's JUnit task, which Jenkins, GitLab and other programs read
//! (the schema `junit.xsd` that Windy Road published for it; the schema `junit-10.xsd` of Jenkins'
//! xUnit plugin allows more).

use std::io::{self, Write};

use crate::escaped::xml;

/// Tests that were made at the same time.
pub(crate) struct Suite {
    /// What is tested: the same in every report of its kind.
    pub(crate) package: String,
    /// Its name.
    pub(crate) name: String,
    /// When it started, as records have it (RFC 3339, UTC).
    pub(crate) started: String,
    /// The host that started it; may be empty.
    pub(crate) host: String,
    /// Facts about it.
    pub(crate) properties: Vec<(&'static str, String)>,
    /// The type of its failures.
    pub(crate) failure: &'static str,
    /// The tests. No two have the same class and name.
    pub(crate) tests: Vec<Test>,
}

/// A test with its result.
pub(crate) struct Test {
    /// What is tested, within a plan.
    pub(crate) class: String,
    /// Its name, which is the same in every run of a plan.
    pub(crate) name: String,
    /// The time that it took, in s.
    pub(crate) seconds: f64,
    pub(crate) result: Outcome,
    /// Its numbers; may be empty.
    pub(crate) output: String,
}

impl Test {
    /// A test that took no time and has no numbers.
    pub(crate) fn new(class: &str, name: &str, result: Outcome) -> Self {
        Self { class: class.to_owned(), name: name.to_owned(), seconds: 0.0, result, output: String::new() }
    }
}

/// How a test ended, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

/// Writes suites as one document.
pub(crate) fn write(suites: &[Suite], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>")?;
    suites.iter().enumerate().try_for_each(|(id, suite)| suite.write(id, out))?;
    writeln!(out, "</testsuites>")
}

impl Suite {
    fn write(&self, id: usize, out: &mut dyn Write) -> io::Result<()> {
        let Self { package, name, tests, .. } = self;
        let count = |is: fn(&Outcome) -> bool| tests.iter().filter(|test| is(&test.result)).count();
        let seconds: f64 = tests.iter().map(|test| test.seconds).sum();
        let host = if self.host.is_empty() { "localhost" } else { &self.host };
        // The schema has local time without a zone, in whole seconds.
        let started = self.started.split(['.', 'Z']).next().unwrap_or_default();
        write!(out, "  <testsuite id=\"{id}\" package=\"{}\" name=\"{}\"", xml(package), xml(name))?;
        write!(out, " tests=\"{}\"", tests.len())?;
        write!(out, " failures=\"{}\"", count(|result| matches!(result, Outcome::Failure(_))))?;
        write!(out, " errors=\"{}\"", count(|result| matches!(result, Outcome::Error(_))))?;
        write!(out, " skipped=\"{}\"", count(|result| matches!(result, Outcome::Skipped(_))))?;
        writeln!(out, " time=\"{seconds:.6}\" timestamp=\"{}\" hostname=\"{}\">", xml(started), xml(host))?;
        writeln!(out, "    <properties>")?;
        for (name, value) in &self.properties {
            writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", xml(value))?;
        }
        writeln!(out, "    </properties>")?;
        tests.iter().try_for_each(|test| test.write(self.failure, out))?;
        // Ant has the output of all tests together.
        writeln!(out, "    <system-out>")?;
        for Test { name, output, .. } in tests.iter().filter(|test| !test.output.is_empty()) {
            writeln!(out, "{}: {}", xml(name), xml(output))?;
        }
        writeln!(out, "    </system-out>\n    <system-err/>\n  </testsuite>")
    }
}

impl Test {
    fn write(&self, failure: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self { class, name, seconds, result, .. } = self;
        write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\"",
            xml(class),
            xml(name)
        )?;
        let (element, kind, why) = match result {
            Outcome::Passed => return writeln!(out, "/>"),
            Outcome::Failure(why) => ("failure", format!(" type=\"{failure}\""), why),
            Outcome::Error(why) => ("error", " type=\"measurement\"".to_owned(), why),
            Outcome::Skipped(why) => ("skipped", String::new(), why),
        };
        writeln!(out, "><{element} message=\"{}\"{kind}/></testcase>", xml(why))
    }
}
