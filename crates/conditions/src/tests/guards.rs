//! Guards and changes by others in the meantime: other guards, other processes, the death of a
//! guard.

use super::*;

#[test]
fn a_value_that_is_right_already_is_held_so() {
    let (root, host) = host();
    for cpu in [0, 1, 2] {
        put(
            root.path(),
            &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
            "performance\n",
        );
    }
    let mut first = Keeper::new(host.clone());
    let mut second = Keeper::new(host.clone());
    assert_eq!(one(first.apply(&performance(), &ranks(&[]), 1)).outcome, Outcome::Applied);
    let powersave = Wanted { governor: Some("powersave".to_owned()), ..Wanted::default() };
    assert_eq!(one(second.apply(&powersave, &ranks(&[]), 2)).outcome, Outcome::NotApplied);
    assert_eq!([0, 1, 2, 10].map(|cpu| governor(&root, cpu)), ["performance"; 4]);
    // There is nothing to revert, and nothing to report.
    kill(first, &root);
    assert_eq!(left_behind(&host), Vec::<String>::new());
    assert_eq!(restore(&host), crate::Restored::default());
    assert_eq!(journal(&root), None);
}

#[test]
fn what_was_changed_while_it_was_in_force_is_seen() {
    let (root, host) = host();
    let mut keeper = Keeper::new(host);
    let wanted = Wanted { irq_affinity: Some(IrqAffinity::Away), ..performance() };
    keeper.apply(&wanted, &ranks(&[0, 1]), 1);
    // An interrupt that the kernel does not move was never reported as moved.
    assert_eq!(keeper.verify(), []);
    put(root.path(), "proc/irq/26/smp_affinity_list", "0-1\n");
    let moved = one(keeper.verify());
    assert_eq!((moved.technique, moved.outcome), (Technique::IrqAffinity, Outcome::NotApplied));
    let why =
        "it was applied, but another process changed it during the point (the CPUs of interrupt 26: 0-1)";
    assert_eq!(moved.reason.as_deref(), Some(why));
    // Also a value that was right from the start.
    put(root.path(), "sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "schedutil\n");
    assert_eq!(keeper.verify().len(), 2);
    keeper.release();
    assert_eq!(keeper.verify(), []);
    assert_eq!(governor(&root, 10), "schedutil", "it was never set");
}

#[test]
fn guards_of_others_are_waited_for_and_named_if_they_stay() {
    let (_root, host) = host();
    let mut first = Keeper::new(host.clone());
    let second = Keeper::new(host.clone());
    first.apply(&performance(), &ranks(&[]), 1);
    assert_eq!(
        second.settle(&performance(), &ranks(&[])),
        None,
        "the same environment need not be waited for"
    );
    let line = second.settle(&Wanted { turbo: Some(Turbo::Off), ..Wanted::default() }, &ranks(&[])).unwrap();
    let id = std::process::id();
    let expected = format!(
        "process {id} of rdmascope holds the governor of CPU 0 at performance (and 3 more values), which this run does \
         not ask for"
    );
    assert_eq!(line, expected);
    let waiting = thread::spawn(move || settle(&host, "", |_| false));
    thread::sleep(Duration::from_millis(100));
    first.release();
    assert_eq!(waiting.join().unwrap(), None);
}

#[test]
fn a_guard_that_was_killed_is_made_up_for_by_the_next_of_its_agent() {
    let (root, host) = host();
    let mut killed = Keeper::new(host.clone());
    killed.apply(&performance(), &ranks(&[]), 1);
    kill(killed, &root);
    let next = Keeper::new(host);
    assert_eq!(next.restore(&[0]), Vec::<String>::new());
    assert_eq!(governor(&root, 0), "performance", "the value of another process");
    put(root.path(), "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n");
    let said = next.restore(&[std::process::id()]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!([0, 1, 2].map(|cpu| governor(&root, cpu)), ["powersave", "schedutil", "powersave"]);
    assert_eq!(journal(&root), None);
}

/// A guard that does not answer, one with a wrong answer, and one that ends: each costs no more
/// than its time limit.
#[test]
fn a_guard_that_does_not_answer_costs_its_techniques_and_no_more() {
    let (root, host) = host();
    for (script, word) in [
        ("exec sleep 9", "the guard did not answer in time"),
        ("read line; echo hello; exec sleep 9", "expected value"),
        ("exit 3", ""),
    ] {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let mut arranger =
            Arranger::new(host.clone(), Leave::Host(words), |_| {}).within(Duration::from_millis(300));
        let start = Instant::now();
        let refused = one(arranger.arrange(&performance(), &Place::default()));
        assert_eq!(refused.outcome, Outcome::NotApplied, "{script}");
        let reason = refused.reason.unwrap();
        assert!(
            reason.starts_with("rdmascope changes a host only through a guard: ") && reason.contains(word),
            "{reason}"
        );
        assert_eq!(arranger.verify(0), []);
        assert!(start.elapsed() < Duration::from_secs(5), "{script}: {:?}", start.elapsed());
        assert_eq!(governor(&root, 0), "powersave");
    }
}

#[test]
fn without_leave_nothing_is_changed_not_even_the_process_s_own() {
    let (_root, host) = host();
    let leave = Leave::Nothing("it is not yours".to_owned());
    let mut arranger = Arranger::new(host, leave, |_| {});
    let wanted = Wanted { memory: Some(Memory::Locked), ..performance() };
    let conditions = arranger.arrange(&wanted, &Place { rank: 1, ..Place::default() });
    let is_refused = |condition: &Condition| {
        (condition.rank, condition.outcome, condition.reason.as_deref())
            == (1, Outcome::NotPermitted, Some("it is not yours"))
    };
    assert!(conditions.len() == 2 && conditions.iter().all(is_refused), "{conditions:?}");
}

#[test]
fn other_work_takes_the_cpus_until_it_is_released() {
    let (_root, host) = host();
    let cpus = thread::available_parallelism().unwrap().get();
    let wanted = Wanted { stress: Some(Stress::Cpu), ..Wanted::default() };
    for (ranks, own) in [(1, cpus), (2, cpus.div_ceil(2))] {
        let mut keeper = Keeper::new(host.clone());
        let done = one(keeper.apply(&wanted, &Ranks { count: ranks, ..Ranks::default() }, 1));
        assert_eq!((done.technique, done.outcome), (Technique::Stress, Outcome::Applied));
        assert_eq!(
            done.reason,
            Some(format!("one thread for each of the {cpus} CPUs; this rank's guard runs {own} of them"))
        );
        await_workers(|had| had.len() == own && had.iter().all(|ticks| *ticks >= 3));
        assert_eq!(keeper.verify(), []);
        assert_eq!(keeper.release(), Vec::<String>::new());
        await_workers(<[u64]>::is_empty);
    }
}

/// Waits: a thread gets its name shortly after its start, and is listed for a short while after its
/// end.
#[track_caller]
fn await_workers(is_so: impl Fn(&[u64]) -> bool) {
    let start = Instant::now();
    while !is_so(&workers()) {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", workers());
        thread::sleep(Duration::from_millis(5));
    }
}

/// The CPU time of each load thread of this process, in ticks (`utime` of proc_pid_stat(5)).
fn workers() -> Vec<u64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let ours = stats.filter_map(|stat| stat.split_once(" (stress) ")?.1.split(' ').nth(11)?.parse().ok());
    ours.collect()
}
