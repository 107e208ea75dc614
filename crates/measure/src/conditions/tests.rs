use super::*;

#[test]
fn a_scheduling_class_is_read_as_it_is_written() {
    for class in [Scheduler::Fifo(1), Scheduler::Fifo(99), Scheduler::RoundRobin(50), Scheduler::Other] {
        assert_eq!(class.to_string().parse(), Ok(class));
        let json = serde_json::to_string(&class).unwrap();
        assert_eq!(serde_json::from_str::<Scheduler>(&json).unwrap(), class);
    }
    for wrong in ["fifo", "fifo:", "fifo:0", "fifo:100", "rr:x", "other:1", "other:", "batch", "", "FIFO:1"] {
        assert!(wrong.parse::<Scheduler>().is_err(), "{wrong}");
    }
    let error = "fifo:100".parse::<Scheduler>().unwrap_err();
    assert_eq!(error, "\"fifo:100\" has no priority from 1 to 99: write fifo:50");
}

#[test]
fn the_built_in_environments_are_those_of_the_evaluation() {
    for name in Wanted::BUILT_IN {
        assert!(Wanted::built_in(name).is_some(), "{name}");
    }
    assert_eq!(Wanted::built_in("optimized"), None);
    assert!(Wanted::built_in(AS_IS).unwrap().is_as_is());
    let optimised = Wanted::built_in("optimised").unwrap();
    let event = Wanted::built_in("event").unwrap();
    // They differ only in isolation and interrupt affinity.
    assert_ne!(optimised, event);
    assert_eq!(Wanted { cpuset: None, irq_affinity: None, ..optimised }, event);
}

#[test]
fn what_is_asked_is_listed_in_the_order_of_application() {
    let all = Wanted {
        aspm: Some(Aspm::Performance),
        scheduler: Some(Scheduler::Fifo(50)),
        stress: Some(Stress::Cpu),
        turbo: Some(Turbo::Off),
        ..Wanted::built_in("optimised").unwrap()
    };
    let shown: Vec<_> = all.techniques().iter().map(|(name, asked)| format!("{name} {asked}")).collect();
    let expected = [
        "stress cpu",
        "tuned latency-performance",
        "governor performance",
        "turbo off",
        "aspm performance",
        "irq_affinity away",
        "cpuset shield",
        "cpu_dma_latency 0 us",
        "numa device",
        "memory locked",
        "scheduler fifo:50",
    ];
    assert_eq!(shown, expected);
    let host_wide = all.host_wide().techniques();
    assert_eq!(host_wide, all.techniques()[..7]);
    assert!(Wanted::default().techniques().is_empty());
}

#[test]
fn what_is_asked_keeps_to_its_names() {
    let optimised = Wanted::built_in("optimised").unwrap();
    let json = serde_json::to_value(&optimised).unwrap();
    assert_eq!(json.as_object().unwrap().len(), 7, "what is not asked is absent: {json}");
    assert_eq!(serde_json::from_value::<Wanted>(json).unwrap(), optimised);
    assert!(serde_json::from_str::<Wanted>("{\"govenor\":\"performance\"}").is_err());
}
