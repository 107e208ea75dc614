use measure::clock::{ClockKind, Domain, Nominal};
use measure::record::{LatencyKind, Status, TimerAlone};
use measure::samples::Stamps;

use super::*;
use crate::patterns::one_way::{Column, Stamped};
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern as Named;

/// The report of a rank of four steps, the first of the warm-up, with these stamps; the generator
/// has missed one step.
fn end(columns: &[(Column, [u64; 4])], is_generator: bool) -> Option<Told> {
    let boot_id = Some("one".to_owned());
    let domain = Domain { kind: ClockKind::Tsc, boot_id, time_namespace: None };
    let clock = Nominal { tick_hz: 1e9, drift_ppm: 200.0, wander_ppm: 0.0 };
    let columns = columns.iter().map(|(column, stamps)| (*column, stamps.to_vec())).collect();
    let lateness = measure::stats::latency(LatencyKind::Lateness, &[5], &[]).unwrap();
    let timer = TimerAlone { steps: 10, missed: 1, rate_hz: 1.0, away_share: None, lateness };
    let generated = Generated { rate_hz: 1000.0, achieved_hz: 600.0, missed_waiting: 1, timer };
    let stamped = Stamped::new(domain, clock, None, columns);
    Some(Told { stamped, generated: is_generator.then_some(generated), sink_report: None })
}

#[test]
fn what_a_pipeline_carries_is_what_arrives_and_what_was_sent_is_known_if_nothing_does() {
    const NO: u64 = Stamps::NONE;
    let settings = Settings { iterations: Some(3), warmup: Some(1), ..Settings::default() };
    let plan = Plan::new("pipeline", "Pipeline").experiment("e", Named::PIPELINE, settings);
    let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
    let of = |received: [u64; 4]| {
        let due = [10, 20, NO, 40];
        let source = end(&[(Column::Due, due), (Column::Submitted, due)], true);
        let target = end(&[(Column::Received, received)], false);
        let mut outcomes = vec![Outcome::default(); 2];
        (Samples::merge(&spec, &mut outcomes, vec![source, target]), outcomes.len())
    };
    let (half, ranks) = of([11, 21, NO, NO]);
    assert_eq!((half.status, ranks), (None, 2));
    // One of the two samples that were sent.
    assert_eq!(half.throughput.map(|throughput| throughput.messages_per_s), Some(300.0));
    let (none, ranks) = of([NO; 4]);
    assert!(matches!(none.status, Some(Status::Failed { .. })), "{:?}", none.status);
    assert_eq!((none.pipeline.map(|pipeline| pipeline.achieved_hz), ranks), (Some(600.0), 1));
    assert_eq!((none.counters["steps_missed"], none.counters["messages_not_transmitted"]), (1, 2));
}
