//! rdma-core's Python tests: a process for each module and, after a crash, another process for the
//! rest of the module.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::run::{Places, Running};
use super::verdict::Verdict;
use crate::shell;

/// The directory of the tests in Debian's rdma-core.
const TESTS: &str = "/usr/share/doc/rdma-core/tests";
/// Debian's Python, for which python3-pyverbs is built.
const PYTHON: &str = "/usr/bin/python3";
/// Parts of the names of modules for the adapters of one vendor.
const VENDORS: [&str; 3] = ["mlx5", "efa", "vfio"];
/// Modules of the quick run.
pub(super) const QUICK: [&str; 4] = ["test_addr", "test_cq", "test_qp", "test_qpex"];
/// The longest time of a module.
const LIMIT: Duration = Duration::from_secs(120);
/// How often a module is started: again after each crash.
const MOST_STARTS: usize = 20;

const DRIVER: &str = include_str!("driver.py");

/// The unpacked tests.
pub(super) struct Tests {
    directory: PathBuf,
    pub(super) modules: Vec<String>,
}

impl Tests {
    /// Unpacks the tests into a directory.
    pub(super) fn unpack(scratch: &Path) -> Result<Self> {
        let directory = scratch.join("pyverbs");
        let tests = directory.join("tests");
        if tests.exists() {
            fs::remove_dir_all(&tests)?;
        }
        fs::create_dir_all(&tests)?;
        let mut modules = Vec::new();
        let entries = fs::read_dir(TESTS).with_context(|| format!("{TESTS}: install rdma-core"))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let plain = name.strip_suffix(".gz").unwrap_or(&name);
            let text = if plain == name {
                fs::read_to_string(&path)?
            } else {
                shell::output(&["gzip", "-dc", &path.to_string_lossy()])?
            };
            fs::write(tests.join(plain), text)?;
            let module = plain.strip_suffix(".py").filter(|name| name.starts_with("test_"));
            modules.extend(
                module.filter(|name| !VENDORS.iter().any(|vendor| name.contains(vendor))).map(str::to_owned),
            );
        }
        ensure!(!modules.is_empty(), "{TESTS} has no tests");
        modules.sort();
        fs::write(directory.join("driver.py"), DRIVER)?;
        Ok(Self { directory, modules })
    }

    /// Runs a module and returns its tests by name, without the packages in front.
    pub(super) fn run(&self, places: &Places, module: &str) -> Result<Vec<(String, Verdict)>> {
        let mut ended: Vec<(String, Verdict)> = Vec::new();
        for _ in 0..MOST_STARTS {
            let mut words: Vec<_> = [PYTHON.to_owned(), self.path("driver.py"), self.path("")].into();
            words.extend(["softdev0".to_owned(), module.to_owned()]);
            words.extend(ended.iter().map(|(name, _)| format!("tests.{name}")));
            let mut python = Running::start(&places.program, &[], &words, places.scratch.join("python"))?;
            let status = python.ended_before(Instant::now() + LIMIT)?;
            let how = if status.is_none() { "it hangs" } else { "it crashes" };
            let printed = python.printed();
            let open = read(&printed, &mut ended);
            match (open, status) {
                (Some(test), _) => ended.push((test, Verdict::Fails(how.to_owned()))),
                (None, Some(status)) if status.success() => return Ok(ended),
                (None, _) => {
                    let why = format!("{}: {}", how, printed.lines().last().unwrap_or_default());
                    ended.push((module.to_owned(), Verdict::Fails(why)));
                    return Ok(ended);
                }
            }
        }
        Ok(ended)
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

/// Reads the driver's output and adds its verdicts to `ended`. Returns the test that has started
/// and not ended.
fn read(printed: &str, ended: &mut Vec<(String, Verdict)>) -> Option<String> {
    let mut open = None;
    for line in printed.lines() {
        let Ok((test, how, why)) = serde_json::from_str::<(String, String, String)>(line) else { continue };
        let test = test.strip_prefix("tests.").unwrap_or(&test).to_owned();
        let verdict = match how.as_str() {
            "starts" => {
                open = Some(test);
                continue;
            }
            "passes" => Verdict::Passes,
            "skipped" => Verdict::of_skip(&test, &why),
            _ => Verdict::of_failure("", &why),
        };
        if open.as_ref() == Some(&test) {
            open = None;
        }
        // The first verdict of a test counts: its cleanup may fail, too.
        if !ended.iter().any(|(other, _)| *other == test) {
            ended.push((test, verdict));
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_says_is_understood() {
        let mut ended = Vec::new();
        let printed = "noise\n[\"tests.a.b\", \"starts\", \"\"]\n[\"tests.a.b\", \"passes\", \"\"]\n\
                       [\"tests.a.c\", \"starts\", \"\"]\n[\"tests.a.c\", \"skipped\", \"Create XRCD is not supported\"]\n\
                       [\"tests.a.d\", \"starts\", \"\"]\nSegmentation fault";
        assert_eq!(read(printed, &mut ended), Some("a.d".to_owned()));
        let expected = [("a.b", Verdict::Passes), ("a.c", Verdict::Skipped("XRC".to_owned()))];
        assert_eq!(ended, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
        let failed = "[\"tests.a.d\", \"fails\", \"AssertionError()\"]\n[\"tests.a.d\", \"passes\", \"\"]";
        assert_eq!(read(failed, &mut ended), None);
        assert_eq!(ended[2].1, Verdict::Fails("AssertionError()".to_owned()));
    }
}
