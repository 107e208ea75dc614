//! Python with packages, by which tests read what the program writes.

use std::process::Command;

use super::{Ended, Scratch, finish, skip};

/// The interpreter with some packages: that which the variable RDMASCOPE_PYTHON names, else
/// python3. Skips the test if it lacks one.
pub(crate) fn with(packages: &[&str]) -> Option<String> {
    let python = std::env::var("RDMASCOPE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = format!("import {}", packages.join(", "));
    let output = Command::new(&python).args(["-c", &import]).output();
    if output.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let all = packages.join(" ");
    skip("pandas", &format!("{python} cannot import {} (pip install {all})", packages.join(", ")));
    None
}

/// Runs a script in the directory of a test.
pub(crate) fn run(scratch: &Scratch, python: &str, script: &str) -> Ended {
    let mut command = scratch.command(python);
    command.args(["-c", script]);
    finish(command)
}

/// Validates files by the schema that Windy Road published for Ant's JUnit task, which is stricter
/// than that of Jenkins. ReFrame has it; without ReFrame, that is skipped.
#[track_caller]
pub(crate) fn keep_to_junit(scratch: &Scratch, files: &[&str]) {
    let Some(python) = with(&["lxml", "reframe"]) else { return };
    let ended = run(scratch, &python, &format!("files = {files:?}\n{JUNIT}"));
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

const JUNIT: &str = r#"
import os, reframe
from lxml import etree
schema = etree.XMLSchema(etree.parse(os.path.join(os.path.dirname(reframe.__file__), "schemas", "junit.xsd")))
for file in files:
    tree = etree.parse(file)
    schema.assertValid(tree)
    assert len(list(tree.iter("testcase"))) > 0
    # The schema refuses what is wrong.
    next(tree.iter("testsuite")).attrib.pop("hostname")
    assert not schema.validate(tree)
"#;
