use std::fs;

use super::*;

#[test]
fn failures_are_read_with_their_targets() {
    let text = "     Running unittests src/lib.rs (target/debug/deps/planted-1)

running 3 tests
test a::good ... ok
test a::bad ... FAILED
test worse ... FAILED

failures:

---- a::bad stdout ----
    indented by the test
failures:
    not_a_test
---- worse stdout ----

failures:
    a::bad
    worse

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `-p planted --lib`
     Running tests/whole.rs (target/debug/deps/whole-1)

running 1 test
error: test failed, to rerun pass `-p planted --test whole`

Caused by:
  process didn't exit successfully: `whole` (signal: 6, SIGABRT: process abort signal)
   Doc-tests planted
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: 2 targets failed:
    `-p planted --lib`
    `-p planted --test whole`";
    let mut output = Output::default();
    // In pieces, as from a pipe.
    text.as_bytes().chunks(7).for_each(|part| output.read(part));
    output.read(b"\n");
    let lib = Failed { target: "-p planted --lib".into(), tests: vec!["a::bad".into(), "worse".into()] };
    let whole = Failed { target: "-p planted --test whole".into(), tests: Vec::new() };
    assert_eq!(output.failed, [lib, whole]);
    assert_eq!(output.passed, 5);
    let names: Vec<_> = output.failed.iter().flat_map(Failed::each).map(|test| test.to_string()).collect();
    let whole = "all tests (-p planted --test whole)";
    assert_eq!(names, ["a::bad (-p planted --lib)", "worse (-p planted --lib)", whole]);
}

/// A crate with tests: one that always passes, one that passes from its second run on, and more.
fn planted(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| fs::write(folder.path().join(path), text).unwrap();
    fs::create_dir_all(folder.path().join("src")).unwrap();
    fs::create_dir_all(folder.path().join("tests")).unwrap();
    let manifest = "[package]\nname = \"planted\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    // Cargo prints the crate of a failure only if a workspace has several crates.
    write("Cargo.toml", &format!("{manifest}[workspace]\nmembers = [\"other\"]\n"));
    fs::create_dir_all(folder.path().join("other/src")).unwrap();
    write("other/src/lib.rs", "");
    write("other/Cargo.toml", &manifest.replace("planted", "other"));
    let second = "let mark = concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", module_path!());
        let was = std::path::Path::new(mark).exists();
        std::fs::write(mark, \"\").unwrap();";
    write(
        "src/lib.rs",
        &format!("#[test] fn good() {{}}\n#[test] fn at_second() {{ {second} assert!(was); }}\n{more}"),
    );
    write("tests/whole.rs", &format!("#[test] fn dies() {{ {second} if !was {{ std::process::abort() }} }}"));
    folder
}

fn run_planted(more: &str) -> Result<Vec<String>> {
    let folder = planted(more);
    let target = folder.path().join("target").to_string_lossy().into_owned();
    let variables = [("CARGO_TARGET_DIR", target.as_str()), ("CARGO_TERM_COLOR", "never")];
    // Not to the output of this test: a run of all tests would read it as its own output.
    let mut suite = Suite { folder: folder.path(), variables: &variables, shown: &mut std::io::sink() };
    suite.run(&["--offline", "--workspace"])
}

#[test]
fn what_passes_alone_is_flaky() {
    let documented = "/// ```\n/// let mark = concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/documented\");
        /// assert!(std::fs::exists(mark).unwrap() || std::fs::write(mark, \"\").is_err());\n///
        /// ```\npub fn f() {}";
    let flaky = run_planted(documented).unwrap();
    let expected = [
        "at_second (-p planted --lib)",
        "all tests (-p planted --test whole)",
        "src/lib.rs - f (line 5) (-p planted --doc)",
    ];
    assert_eq!(flaky, expected);
}

#[test]
fn packages_are_tested_beside_others_and_none_is_left_out() {
    let folder = planted("");
    let other = "#[test] fn quiet() {}\n#[test] fn beside() { panic!() }";
    fs::write(folder.path().join("other/src/lib.rs"), other).unwrap();
    let target = folder.path().join("target").to_string_lossy().into_owned();
    let variables = [("CARGO_TARGET_DIR", target.as_str()), ("CARGO_TERM_COLOR", "never")];
    let mut shown = Vec::new();
    let mut suite = Suite { folder: folder.path(), variables: &variables, shown: &mut shown };
    let error = suite.run_beside(&["--offline", "--workspace"], &["other"]).unwrap_err().to_string();
    assert_eq!(error, "these tests failed, and failed again alone:\nbeside (-p other --lib)");
    let shown = String::from_utf8(shown).unwrap();
    for name in [
        "test quiet ... ok",
        "test good ... ok",
        "Running -p other --lib",
        "Doc-tests other",
        "Doc-tests planted",
    ] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
}

#[test]
fn what_fails_twice_fails_the_run() {
    let error = run_planted("#[test] fn bad() { panic!() }").unwrap_err().to_string();
    assert_eq!(error, "these tests failed, and failed again alone:\nbad (-p planted --lib)");
}

#[test]
fn a_process_that_a_test_leaves_behind_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let id = folder.path().join("id");
    let sleep = "std::process::Command::new(\"sleep\").arg(\"300\").spawn().unwrap().id().to_string()";
    let leaves = format!("#[test] fn leaves() {{ std::fs::write({id:?}, {sleep}).unwrap(); }}");
    assert_eq!(run_planted(&leaves).unwrap().len(), 2);
    let id = fs::read_to_string(id).unwrap();
    assert!(Command::new("kill").arg(&id).status().unwrap().success(), "it has ended");
}

#[test]
fn what_does_not_build_is_no_flaky_test() {
    let error = run_planted("fn bad() -> u8 { \"\" }").unwrap_err().to_string();
    assert_eq!(error, "`cargo test --offline --workspace` failed before a test did");
}
