use rustix::thread::CpuSet;

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
    let here = Started { launcher: vec!["mpirun".to_owned()], is_counted: true, ..Started::default() };
    let elsewhere = Started { is_counted: false, ..here.clone() };
    assert!(usage_of(&Started::default()).starts_with("the program and"));
    assert!(usage_of(&here).starts_with("the launcher, its ranks"));
    assert!(usage_of(&elsewhere).starts_with("not counted: "));
}

#[test]
fn the_cpus_are_those_that_this_process_could_have() {
    let before = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    let cpus = available_cpus();
    assert_eq!(sched_getaffinity(None).unwrap(), one, "it is where it was");
    sched_setaffinity(None, &before).unwrap();
    assert!(cpus >= before.count(), "{cpus}");
}
