use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::point::{Carrier, Choice, Service};

#[test]
fn every_row_is_whole() {
    let mut names = BTreeSet::new();
    for row in ROWS {
        assert!(names.insert(row.name), "{} stands twice", row.name);
        assert_eq!(find(row.name).map(|found| found.name), Some(row.name));
        assert!(!row.help().is_empty() && !row.help().contains("  "), "{}: {:?}", row.name, row.help());
        assert!(Carrier::VALUES.iter().copied().any(row.is_for), "{} is for no endpoint", row.name);
        if let Some(most) = row.most {
            assert!(row.least < most.most, "{}", row.name);
        }
        for flag in row.flags {
            if let Sets::Word(text, _) = flag.sets {
                assert!(row.read_text(text).is_ok(), "--{}", flag.long);
            }
        }
    }
    assert!(find("size").is_none());
}

#[test]
fn plans_and_flags_are_read_by_one_body() {
    let read = |row: &AxisRow, items: Value| row.read(items.as_array().expect("a list"));
    for (row, items, text, values) in [
        (SIZE_BYTES.row, json!([64, "4..16"]), "64,4..16", json!([64, 4, 8, 16])),
        (PEERS.row, json!(["1..3", 9]), "1..3, 9", json!([1, 2, 3, 9])),
        (RATE_HZ.row, json!(["10k", 500]), "10k,500", json!([10_000, 500])),
        (PAUSE_NS.row, json!(["5.5us", "2"]), "5.5us,2", json!([5500, 2_000_000_000])),
        (PEERS.row, json!(["1k", "9..10"]), "1k,9..10", json!([1000, 9, 10])),
        (TX_DEPTH.row, json!(["1k", "16"]), "1k,16", json!([1000, 16])),
        (BURST.row, json!([4, "all"]), "4,all", json!([4, "all"])),
        (SERVICE.row, json!(["RC", "UD"]), "RC,UD", json!(["RC", "UD"])),
        (SEND_POLL.row, json!(["poll", "busy"]), "poll,busy", json!(["poll", "busy"])),
        (INLINE.row, json!([true, false]), "true,false", json!([true, false])),
        (LINK.row, json!(["10Gb/s, gap=0.5us"]), "10Gb/s, gap=0.5us", json!(["10Gb/s,gap=500ns"])),
        (SIGNAL_RATE.row, json!(["native", "FDR"]), "native,FDR", json!(["native", "FDR"])),
        (
            PACING_RATE.row,
            json!(["16Gb/s", "4x ddr", "none"]),
            "16Gb/s,4X DDR,none",
            json!(["16Gb/s", "4X DDR", "none"]),
        ),
        (CONGESTION.row, json!(["bbr", "system"]), "bbr,system", json!(["bbr", "system"])),
    ] {
        let values = values.as_array().cloned();
        assert_eq!(read(row, items).ok(), values, "{}", row.name);
        assert_eq!(row.read_text(text).ok(), values, "{}", row.name);
    }
}

#[test]
fn a_number_of_a_plan_is_in_the_unit_of_its_axis_and_a_text_in_that_of_durations() {
    assert_eq!(PAUSE_NS.row.read(&[7.into()]), Ok(vec![7.into()]));
    assert_eq!(PAUSE_NS.row.read_text("7ns"), Ok(vec![7.into()]));
    assert_eq!(PAUSE_NS.row.read_text("0.5"), Ok(vec![500_000_000.into()]));
}

#[test]
fn what_is_no_value_says_why() {
    assert_eq!(SGE.row.read_text("many"), Err(Fault::WrongType("many".into())));
    assert_eq!(SGE.row.read(&[(1u64 << 32).into()]), Err(Fault::WrongType((1u64 << 32).into())));
    assert_eq!(BURST.row.expected(), "a whole number or \"all\"");
    let unknown = Fault::Unknown { value: "rc".to_owned(), known: vec!["RC", "UC", "UD"] };
    assert_eq!(SERVICE.row.read_text("rc"), Err(unknown));
    let Err(Fault::Unknown { known, .. }) = NOTIFY.row.read_text("none") else {
        panic!("none is not a word of notify")
    };
    assert_eq!(known, ["usual", "completion", "memory"]);
    assert!(matches!(SIZE_BYTES.row.read_text("4..9"), Err(Fault::Unreadable(_))));
}

#[test]
fn keys_set_and_get_values_of_their_type() {
    let mut axes = AxisList::default();
    axes.put(SIZE_BYTES.values([4, 8]));
    axes.put(SERVICE.value(Service::Ud));
    axes.put(MTU_BYTES.values([None, Some(512)]));
    axes.put(ENVIRONMENT.value("as_is".to_owned()));
    axes.put(SIZE_BYTES.value(2));
    assert_eq!(axes.get(SIZE_BYTES), [2]);
    assert_eq!(axes.get(SERVICE), [Service::Ud]);
    assert_eq!(axes.get(MTU_BYTES), [None, Some(512)]);
    assert_eq!(axes.numbers(MTU_BYTES.row).collect::<Vec<_>>(), [512]);
    assert!(axes.get(PEERS).is_empty());
    axes.sort();
    let names: Vec<_> = axes.iter().map(|axis| axis.row.name).collect();
    assert_eq!(names, ["environment", "service", "mtu_bytes", "size_bytes"]);
    let point = [("mtu_bytes".to_owned(), json!("active")), ("size_bytes".to_owned(), json!(64))].into();
    assert_eq!((MTU_BYTES.at(&point), SIZE_BYTES.at(&point)), (Some(None), Some(64)));
    assert_eq!(SERVICE.at(&point), None);
}

#[test]
fn axes_of_a_point_from_another_process_have_one_value_of_their_own() {
    let read = |axes: Value| of_point(axes).map_err(|error| error.to_string());
    let axes = json!({
        "burst": "all", "environment": "as_is", "inline": true, "link": "10Gb/s,gap=500ns", "mtu_bytes": 2048,
        "peers": 15, "service": "RC", "size_bytes": 0,
    });
    assert_eq!(read(axes.clone()).map(|axes| json!(axes)), Ok(axes));
    for (name, value) in [
        ("bursts", json!(1)),
        ("burst", json!("none")),
        ("peers", json!(0)),
        ("peers", json!(1024)),
        ("peers", json!("1..3")),
        ("peers", json!([1])),
        ("pause_ns", json!("5us")),
        ("service", json!("rc")),
        ("tx_depth", json!(1u64 << 32)),
    ] {
        let error = format!("{value} is not a value of the axis {name:?}");
        assert_eq!(read(json!({ name: value })), Err(error));
    }
}
