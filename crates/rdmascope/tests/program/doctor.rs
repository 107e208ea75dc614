//! `rdmascope doctor` on the machine that runs the tests, whatever it has. The unit tests of the
//! checks use made-up hosts.

use serde_json::Value;

use crate::support::Scratch;

#[test]
fn softdev_can_be_measured_everywhere() {
    let scratch = Scratch::new();
    let ended = scratch.run(&["doctor", "-d", "softdev0"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.starts_with("Measuring on softdev0 of "), "{ended:?}");
    assert!(ended.stdout.contains("softdev0 is software: its numbers show this host's memory"));
    assert!(
        ended.stdout.contains("good     port state: port 1 of softdev0 is active (link up)\n"),
        "{ended:?}"
    );
    let distance = " core-to-core latency: ";
    let has_two_cpus = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(ended.stdout.matches(distance).count(), usize::from(has_two_cpus), "{ended:?}");
    assert!(ended.stdout.trim_end().ends_with(": measuring works."), "{ended:?}");
}

#[test]
fn the_object_has_the_names_of_the_help() {
    let scratch = Scratch::new();
    let ended = scratch.run(&["doctor", "-d", "softdev0", "--json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let help = scratch.succeed(&["doctor", "--help"]);
    let findings = report["findings"].as_array().unwrap();
    for object in [&report, &findings[0]] {
        for name in object.as_object().unwrap().keys() {
            assert!(help.contains(name.as_str()), "{name} is not in the help");
        }
    }
    assert_eq!(report["device"], "softdev0");
    assert_eq!(report["worst"], findings[0]["severity"], "the worst comes first");
    for finding in findings {
        assert!(["warning", "note", "good"].contains(&finding["severity"].as_str().unwrap()), "{finding}");
        assert!(["check", "looked_at", "found"].iter().all(|name| finding[name] != ""), "{finding}");
    }
}

#[test]
fn an_unknown_device_is_wrong_usage_with_those_that_exist() {
    let scratch = Scratch::new();
    scratch.refused(&["doctor", "-d", "mlx9_9"], 2, &["no device named \"mlx9_9\"", "softdev0"]);
}
