use super::*;

#[test]
fn a_program_is_found_as_a_shell_finds_it() {
    let directory = tempfile::tempdir().unwrap();
    assert!(executable("sh", directory.path()).is_some_and(|path| path.ends_with("sh")));
    assert_eq!(executable("no-such-program", directory.path()), None);
    assert_eq!(executable("./a", directory.path()), None);
    std::fs::write(directory.path().join("a"), "").unwrap();
    assert_eq!(executable("./a", directory.path()), None, "it cannot be executed");
    assert_eq!(executable("/dev/null", directory.path()), None);
}

#[test]
fn what_is_counted_is_said() {
    let here = Started { launcher: vec!["mpirun".to_owned()], ..Started::default() };
    let elsewhere = Started { is_elsewhere: true, ..here.clone() };
    assert!(usage_of(&Started::default()).starts_with("the program and"));
    assert!(usage_of(&here).starts_with("the launcher, its ranks"));
    assert!(usage_of(&elsewhere).contains("on this host itself"));
}

#[test]
fn there_is_a_cpu() {
    assert!((1..65_536).contains(&available_cpus()));
}
