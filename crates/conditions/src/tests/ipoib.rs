//! Modes of IPoIB interfaces.

use super::*;

const MODE: &str = "sys/class/net/ib0/mode";
const MTU: &str = "sys/class/net/ib0/mtu";

/// A host with an interface in datagram mode, with an MTU that is not the default.
fn with_ipoib() -> (TempDir, Host) {
    let (root, host) = host();
    put(root.path(), MODE, "datagram\n");
    put(root.path(), MTU, "1500\n");
    (root, host)
}

fn wanted(mode: IpoibMode) -> Wanted {
    Wanted { ipoib_mode: Some(mode), ..Wanted::default() }
}

fn on(interfaces: &[&str]) -> Ranks {
    let interfaces = interfaces.iter().map(|name| (*name).to_owned()).collect();
    Ranks { count: 1, cpus: Vec::new(), interfaces }
}

#[test]
fn the_mode_is_set_and_comes_back_with_the_mtu_that_was_there() {
    let (root, host) = with_ipoib();
    let mut keeper = Keeper::new(host);
    let done = one(keeper.apply(&wanted(IpoibMode::Connected), &on(&["ib0"]), 1));
    assert_eq!(done.outcome, Outcome::Applied, "{done:?}");
    assert_eq!((done.before.as_deref(), get(&root, MODE).as_str()), (Some("datagram 1500"), "connected"));
    // As the kernel does with the mode.
    put(root.path(), MTU, "65520\n");
    assert_eq!(keeper.verify(), [], "the MTU is the kernel's");
    put(root.path(), MODE, "datagram\n");
    assert_eq!(keeper.verify().len(), 1);
    put(root.path(), MODE, "connected\n");
    assert_eq!(keeper.release(), Vec::<String>::new());
    assert_eq!((get(&root, MODE), get(&root, MTU)), ("datagram".to_owned(), "1500".to_owned()));
    assert_eq!(journal(&root), None);
}

#[test]
fn a_killed_guard_leaves_a_mode_that_the_next_takes_back() {
    let (root, host) = with_ipoib();
    let mut killed = Keeper::new(host.clone());
    killed.apply(&wanted(IpoibMode::Connected), &on(&["ib0"]), 1);
    drop(killed);
    put(root.path(), MTU, "65520\n");
    assert!(
        left_behind(&host).iter().any(|line| line.contains("the IPoIB mode of ib0")),
        "doctor reports it"
    );
    restore(&host);
    assert_eq!((get(&root, MODE), get(&root, MTU)), ("datagram".to_owned(), "1500".to_owned()));
}

#[test]
fn what_cannot_be_set_says_why() {
    let (_root, host) = with_ipoib();
    let apply = |interfaces: &[&str]| {
        one(Keeper::new(host.clone()).apply(&wanted(IpoibMode::Datagram), &on(interfaces), 1))
    };
    for (interfaces, words) in [
        (&[][..], "no IPoIB interface"),
        (&["ib0", "ib1"], "set the IPoIB mode of ib1"),
        (&["../../../etc"], "is not a valid name of a network interface"),
    ] {
        let done = apply(interfaces);
        assert_eq!(done.outcome, Outcome::NotApplied, "{done:?}");
        assert!(done.reason.as_ref().is_some_and(|why| why.contains(words)), "{done:?}");
    }
    assert_eq!(apply(&["ib0"]).outcome, Outcome::Applied, "it is in that mode");
}
