//! `cargo xtask vm-tests`: the tests that need features that this host's kernel may not have: an
//! RDMA device (rxe0), links that lose and delay packets, and SCTP. They run in boots of the
//! virtual machine, one of them with two machines.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{shell, vm};

/// A test program of a package, the tests that run, and their environment variables.
struct Test {
    package: &'static str,
    name: &'static str,
    /// The module with the tests; `None` for all tests.
    module: Option<&'static str>,
    variables: &'static [(&'static str, &'static str)],
}

/// A boot, and the tests that run in it, in this order.
struct Boot {
    /// The option that selects this boot.
    word: &'static str,
    options: &'static [&'static str],
    tests: &'static [Test],
}

const BOOTS: [Boot; 3] = [
    Boot { word: CONFORMANCE, options: &["--before", IPV6], tests: &DEVICE },
    Boot { word: PROGRAMS, options: &["--before", HOOKS], tests: &ONE },
    Boot { word: TWO_MACHINES, options: &["--peer"], tests: &TWO },
];

/// The behaviour of the device, the program's tests, and two machines.
pub(crate) const CONFORMANCE: &str = "--conformance";
pub(crate) const PROGRAMS: &str = "--programs";
pub(crate) const TWO_MACHINES: &str = "--two-machines";

/// Installs the firewall hooks of the tests before the first packet. The kernel rewrites its own
/// instructions (`nf_hooks_needed`, a static key) for the first hook and after the last. QEMU (7.2,
/// 8.0) may still execute the intermediate instruction, an int3, on its other processor, and then
/// the kernel panics (<https://bugzilla.redhat.com/show_bug.cgi?id=2216496>).
const HOOKS: &str = "ip netns add hooks && ip netns exec hooks nft 'table ip hooks {
    chain prerouting { type filter hook prerouting priority 0; }
    chain input { type filter hook input priority 0; }
}'";

/// An IPv6 address that is valid without the name of its interface.
const IPV6: &str = "ip -6 address add fd00:2::15/64 dev eth0 nodad";

/// The conformance tests, which use GID 1 of rxe0, which packets of the same host can reach, and a
/// fleet with netem.
const DEVICE: [Test; 3] = [
    Test {
        package: "conformance",
        name: "conformance",
        module: None,
        variables: &[("RDMASCOPE_CONFORMANCE_DEVICE", "rxe0:1:1")],
    },
    Test {
        package: "conformance",
        name: "manager",
        module: None,
        variables: &[("RDMASCOPE_CONFORMANCE_DEVICE", "rxe0:1:1"), ("RDMASCOPE_REQUIRE", "librdmacm")],
    },
    // It takes too long for the boot of every change.
    Test {
        package: "rdmascope",
        name: "program",
        module: Some("kernel_fleet"),
        variables: &[("RDMASCOPE_REQUIRE", "namespaces,netem")],
    },
];

/// The program's tests in one machine.
const ONE: [Test; 3] = [
    Test {
        package: "rdmascope",
        name: "program",
        module: Some("kernel_device"),
        // One at a time: most tests wait for the device, and would count the time of other tests.
        variables: &[("RDMASCOPE_KERNEL_DEVICE", "rxe0"), ("RUST_TEST_THREADS", "1")],
    },
    Test {
        package: "rdmascope",
        name: "program",
        module: Some("kernel_network"),
        // This kernel has these features, so no test may be skipped.
        variables: &[("RDMASCOPE_REQUIRE", "namespaces,netem,sctp"), ("RUST_TEST_THREADS", "2")],
    },
    Test {
        package: "rdmascope",
        name: "program",
        module: Some("kernel_memory"),
        variables: &[("RDMASCOPE_REQUIRE", "yama")],
    },
];

/// The program's tests between two machines.
const TWO: [Test; 1] = [Test {
    package: "rdmascope",
    name: "program",
    module: Some("two_machines"),
    variables: &[
        ("RDMASCOPE_KERNEL_DEVICE", "rxe0"),
        ("RDMASCOPE_TWO_MACHINES", "vm,peer"),
        ("RUST_TEST_THREADS", "1"),
    ],
}];

/// The longest time of a boot's tests, in seconds: on a quiet host they take three minutes.
const LIMIT_S: &str = "900";

/// The first word for this program in the machine; the option of the boot and the programs follow.
const INSIDE: &str = "--inside";

/// `cargo xtask vm-tests`: builds the test programs and runs them in the machine, for all boots or
/// one. In the machine, runs the programs.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let words: Vec<String> = words.collect();
    match words.split_first() {
        None => BOOTS.iter().try_for_each(start),
        Some((first, rest)) if first == INSIDE => {
            let (word, programs) = rest.split_first().context("--inside is an internal option")?;
            run_all(boot(word)?.tests, programs)
        }
        Some((first, [])) => run_one_boot(first),
        Some(_) => bail!("vm-tests takes at most one option"),
    }
}

/// Runs the tests of one boot, by its word.
pub(crate) fn run_one_boot(word: &str) -> Result<()> {
    start(boot(word)?)
}

fn boot(word: &str) -> Result<&'static Boot> {
    let known: Vec<_> = BOOTS.iter().map(|boot| boot.word).collect();
    let found = BOOTS.iter().find(|boot| boot.word == word);
    found.with_context(|| format!("vm-tests: unknown option `{word}`; the options are {}", known.join(", ")))
}

/// Boots the machine and runs this program in it, with the test programs.
fn start(boot: &Boot) -> Result<()> {
    let program = shell::program()?;
    let mut command: Vec<OsString> = boot.options.iter().map(OsString::from).collect();
    // Emulation is slow, so the tests use the release build of rdmascope.
    shell::run(&["cargo", "build", "--release", "--quiet"])?;
    let tested = format!("RDMASCOPE_TESTED={}", shell::root().join("target/release/rdmascope").display());
    command.extend(["--env", &tested, "--timeout", LIMIT_S, "--"].map(OsString::from));
    command.extend([program.into(), "vm-tests".into(), INSIDE.into(), boot.word.into()]);
    command.extend(build(boot.tests)?.into_iter().map(OsString::from));
    let status = vm::status(command.into_iter())?;
    ensure!(status == 0, "tests in the virtual machine failed with exit status {status}");
    Ok(())
}

/// Builds the tests and returns their programs, in the order of the list. They are built with the
/// whole workspace, so that nothing is built twice.
fn build(tests: &[Test]) -> Result<Vec<PathBuf>> {
    let mut words = vec!["cargo", "test", "--workspace", "--quiet", "--no-run", "--message-format=json"];
    words.extend(tests.iter().flat_map(|test| ["--test", test.name]));
    let output = shell::output(&words)?;
    let messages: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    tests.iter().map(|test| program(test, &messages)).collect()
}

/// The path of a test program, from cargo's messages.
fn program(test: &Test, messages: &[Value]) -> Result<PathBuf> {
    let manifest = format!("/crates/{}/Cargo.toml", test.package);
    let is_it = |message: &&Value| {
        let of = message["manifest_path"].as_str().unwrap_or_default();
        message["executable"].is_string()
            && of.ends_with(&manifest)
            && message["target"]["name"] == test.name
            && message["target"]["kind"][0] == "test"
    };
    let found = messages.iter().find(is_it).and_then(|message| message["executable"].as_str());
    found.map(PathBuf::from).with_context(|| format!("cargo built no test {} of {}", test.name, test.package))
}

/// Runs all tests one after the other. Fails if a test failed.
fn run_all(tests: &[Test], programs: &[String]) -> Result<()> {
    ensure!(
        programs.len() == tests.len(),
        "{} programs were given for {} tests",
        programs.len(),
        tests.len()
    );
    let mut lines = Vec::new();
    let mut is_good = true;
    for (test, program) in tests.iter().zip(programs) {
        let (counts, succeeded) = run_one(test, program)?;
        let counts = counts.map_or_else(|| "ended without a result".to_owned(), |counts| counts.to_string());
        let name = test.module.unwrap_or(test.name);
        lines.push(format!("vm: {counts} ({name} of {})", test.package));
        is_good &= succeeded;
    }
    lines.iter().for_each(|line| println!("{line}"));
    ensure!(is_good, "not all tests passed");
    Ok(())
}

/// Runs a test program and prints its output. Returns its counts, and whether it succeeded.
fn run_one(test: &Test, program: &str) -> Result<(Option<Counts>, bool)> {
    let mut child = Command::new(program)
        .args(test.module.map(|module| format!("{module}::")))
        .current_dir(shell::root().join("crates").join(test.package))
        .envs(test.variables.iter().copied())
        // Under emulation, a backtrace takes seconds.
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let output = child.stdout.take().context("standard output has no pipe")?;
    let mut counts = None;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        counts = Counts::parse(&line).or(counts);
    }
    let succeeded = child.wait()?.success();
    let is_good = succeeded && counts.as_ref().is_some_and(|counts| counts.failed == 0 && counts.passed > 0);
    Ok((counts, is_good))
}

/// The counts in the last line of a test program.
#[derive(Debug, Default, Eq, PartialEq)]
struct Counts {
    passed: usize,
    /// Tests that were skipped by name, with a reason.
    skipped: usize,
    failed: usize,
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; ...` of both test harnesses.
    fn parse(line: &str) -> Option<Self> {
        let mut counts = Self::default();
        for part in line.strip_prefix("test result: ")?.split(['.', ';']) {
            let Some((number, word)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match word {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                "skipped" | "ignored" => counts.skipped += number,
                _ => {}
            }
        }
        Some(counts)
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { passed, skipped, failed } = self;
        write!(f, "{passed} passed, {skipped} skipped by name, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_harnesses_are_understood() {
        let ours = "test result: FAILED. 3 passed; 1 failed; 39 skipped; finished in 106.29s";
        let standard =
            "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        for (line, passed, skipped, failed) in [(ours, 3, 39, 1), (standard, 12, 2, 0)] {
            assert_eq!(Counts::parse(line), Some(Counts { passed, skipped, failed }), "{line}");
        }
        assert_eq!(Counts::parse("test one::two ... ok (3 passed)"), None);
        let counts = Counts { passed: 3, skipped: 39, failed: 1 };
        assert_eq!(counts.to_string(), "3 passed, 39 skipped by name, 1 failed");
    }

    #[test]
    fn a_program_is_found_by_its_package_and_name() {
        let artifact = |package: &str, kind: &str, executable: Value| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": format!("/somewhere/crates/{package}/Cargo.toml"),
                "target": { "name": "conformance", "kind": [kind] },
                "executable": executable,
            })
        };
        let messages = [
            artifact("conformance", "lib", json!("/lib")),
            artifact("other", "test", json!("/other")),
            artifact("conformance", "test", Value::Null),
            artifact("conformance", "test", json!("/it")),
        ];
        assert_eq!(program(&DEVICE[0], &messages).unwrap(), PathBuf::from("/it"));
        let error = program(&DEVICE[0], &messages[..3]).unwrap_err();
        assert_eq!(error.to_string(), "cargo built no test conformance of conformance");
    }

    #[test]
    fn each_test_of_the_list_is_there() {
        for test in BOOTS.iter().flat_map(|boot| boot.tests) {
            let tests = shell::root().join("crates").join(test.package).join("tests");
            let path = match test.module {
                Some(module) => tests.join(test.name).join(format!("{module}.rs")),
                None => tests.join(format!("{}.rs", test.name)),
            };
            assert!(path.is_file(), "there is no {}", path.display());
        }
    }
}
