//! Tests on a real device (softdev): how ranks sleep, and which rank their messages reach.

use std::sync::Arc;
use std::time::Duration;

use measure::clock::{Clock, Ticks};
use verbs::{Context, LinkModel};

use super::address::PeerInfo;
use super::endpoint::{SPINS, VerbsEndpoint};
use super::setup::Unconnected;
use super::{LocalPort, PortOptions};
use crate::Error;
use crate::axis;
use crate::endpoint::conformance::{post_addressed, take_addressed, three};
use crate::endpoint::connecting::{DrivenEndpoint, UnconnectedEndpoint};
use crate::endpoint::{Endpoint, Mark};
use crate::placement::LocalPlacement;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::{Operation, Pattern, Poll, Service};
use crate::rank_clock::RankClock;
use crate::topology::{PartSpec, Topology, Usage};

/// Returns a point whose messages are timed one way.
fn spec(service: Service, poll: Poll) -> PartSpec {
    let settings = Settings::default()
        .axis(axis::SERVICE.value(service))
        .axis(axis::POLL.value(poll))
        .axis(axis::SIZE_BYTES.value(64));
    let plan = Plan::new("sleep", "Sleep").experiment("one", Pattern::ONE_WAY, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0).topology().parts.remove(0)
}

/// Returns the connected endpoints of a point, in rank order, each with the point that it believes
/// in.
pub(super) fn ends(context: &Context, believed: &[&PartSpec]) -> Vec<VerbsEndpoint> {
    let port = Arc::new(LocalPort::find(context, PortOptions::default()).unwrap());
    let rank_clock = RankClock::new(Clock::monotonic(), None);
    let clock = rank_clock.clock;
    let prepare =
        |(rank, spec): (u32, &&PartSpec)| Unconnected::new(context, &port, spec, rank, clock).unwrap();
    let info =
        LocalPlacement::new(&Topology::of_one(believed[0].clone()), 0, &rank_clock).unwrap().info().clone();
    let unconnected: Vec<_> = (0..).zip(believed).map(prepare).collect();
    let told = |rank: u32| -> Vec<PeerInfo> {
        let of = |one: &Unconnected| PeerInfo {
            info: info.clone(),
            address: Some(one.offer().address.clone()),
            params: one.offer().params(rank).cloned(),
        };
        unconnected.iter().map(of).collect()
    };
    let told: Vec<_> = (0..unconnected.len() as u32).map(told).collect();
    unconnected.into_iter().zip(told).map(|(end, told)| end.connect(&told, false).unwrap()).collect()
}

/// Returns two endpoints.
pub(super) fn two(ends: Vec<VerbsEndpoint>) -> (VerbsEndpoint, VerbsEndpoint) {
    let [us, them]: [VerbsEndpoint; 2] = ends.try_into().unwrap_or_else(|_| panic!("two ends"));
    (us, them)
}

/// Returns two connected endpoints.
fn pair(spec: &PartSpec) -> (VerbsEndpoint, VerbsEndpoint) {
    pair_over(None, spec)
}

/// Returns two connected endpoints over a link model.
fn pair_over(link: Option<&LinkModel>, spec: &PartSpec) -> (VerbsEndpoint, VerbsEndpoint) {
    let context = verbs::devices(&softdev::PROVIDER).unwrap()[0].open().unwrap();
    context.set_link(link).unwrap();
    two(ends(&context, &[spec, spec]))
}

/// Is idle for `time`; returns how often it checked whether there was something to do.
fn looks(endpoint: &mut VerbsEndpoint, time: Duration, look: impl Fn(&mut VerbsEndpoint) -> bool) -> usize {
    let clock = endpoint.clock();
    let until = Ticks(clock.now().0 + clock.ticks(time));
    let mut looks = 0;
    while clock.now() < until {
        assert!(!look(endpoint), "there is nothing to do");
        endpoint.idle_until(until).unwrap();
        looks += 1;
    }
    looks
}

/// One check to arm the queues, one to sleep, and some in the last microseconds, if the alarm is
/// early.
const LOOKS_MAX: usize = 8;

#[test]
fn an_end_that_sleeps_for_a_message_wakes_for_nothing_else() {
    for (service, poll, time_ms) in [
        (Service::Uc, Poll::Event, 1000),
        (Service::Uc, Poll::EventRepoll, 500),
        (Service::Ud, Poll::Event, 500),
        (Service::Rc, Poll::Event, 500),
    ] {
        let (mut us, mut them) = pair(&spec(service, poll));
        them.start(20.0).unwrap();
        let receive = |end: &mut VerbsEndpoint| end.try_receive().unwrap().is_some();
        for _ in 0..2 {
            let looks = looks(&mut them, Duration::from_millis(time_ms), receive);
            assert!(looks <= LOOKS_MAX, "{service:?} {poll:?}: {looks} looks in {time_ms} ms");
            // A message that arrives is noticed all the same.
            us.send(Mark::Last).unwrap();
            let mut looks = 0;
            while !receive(&mut them) {
                them.idle().unwrap();
                looks += 1;
            }
            assert!(looks <= LOOKS_MAX, "{service:?} {poll:?}: {looks} looks for a message");
            them.replenish().unwrap();
        }
    }
}

#[test]
fn a_sleeping_sender_sleeps_through_its_pause() {
    for service in [Service::Rc, Service::Uc] {
        let (mut us, _them) = pair(&spec(service, Poll::Hybrid));
        us.start(20.0).unwrap();
        let sent = |end: &mut VerbsEndpoint| end.try_sent().unwrap() > 0;
        let looks = looks(&mut us, Duration::from_millis(1000), sent);
        assert!(looks <= LOOKS_MAX, "{service:?}: {looks} looks in a second");
    }
}

/// The receive queue was polled last for an answer that is no longer awaited.
#[test]
fn an_answer_that_was_given_up_keeps_nobody_awake() {
    let link = "fetch=300ms".parse().unwrap();
    let (mut us, _them) = pair_over(Some(&link), &spec(Service::Uc, Poll::Hybrid));
    us.start(20.0).unwrap();
    for _ in 0..2 {
        assert!(us.try_receive().unwrap().is_none());
        let sent = us.try_sent().unwrap();
        us.send(Mark::Last).unwrap();
        let mut looks = 0;
        while us.try_sent().unwrap() == sent {
            us.idle().unwrap();
            looks += 1;
        }
        // It may read its clock once before it sleeps.
        assert!(looks <= SPINS as usize + LOOKS_MAX, "{looks} looks in 300 ms");
    }
}

#[test]
fn a_sleep_ends_with_the_time_of_the_point() {
    for service in [Service::Rc, Service::Uc] {
        let (_us, mut them) = pair(&spec(service, Poll::Event));
        them.start(0.3).unwrap();
        let clock = them.clock();
        let begin = clock.now();
        let error = loop {
            assert!(them.try_receive().unwrap().is_none());
            // This is longer than the point.
            if let Err(error) = them.idle_until(Ticks(begin.0 + clock.ticks(Duration::from_secs(3600)))) {
                break error.to_string();
            }
        };
        assert!(error.starts_with("nothing arrived for "), "{service:?}: {error}");
    }
}

#[test]
fn messages_go_to_the_rank_that_they_name_and_say_from_whom_they_are() {
    let context = verbs::devices(&softdev::PROVIDER).unwrap()[0].open().unwrap();
    for service in [Service::Rc, Service::Uc, Service::Ud] {
        for poll in [Poll::Busy, Poll::Event] {
            let spec = three(&spec(service, poll).message);
            let mut ends = ends(&context, &[&spec, &spec, &spec]);
            for (rank, end) in (0..).zip(&mut ends) {
                end.start(20.0).unwrap();
                post_addressed(end, &spec, rank);
                end.stop();
            }
            for (rank, end) in (0..).zip(&mut ends) {
                end.start(20.0).unwrap();
                take_addressed(end, &spec, rank);
                end.stop();
            }
        }
    }
}

/// A byte of memory that several ranks change in turn does not show which rank changed it.
#[test]
fn what_is_polled_in_memory_has_no_address() {
    let context = verbs::devices(&softdev::PROVIDER).unwrap()[0].open().unwrap();
    let mut message = spec(Service::Rc, Poll::Busy).message;
    message.operation = Operation::Write;
    let spec = PartSpec { usage: Usage::ALTERNATING, ..three(&message) };
    let mut ends = ends(&context, &[&spec, &spec, &spec]);
    let error = ends[0].try_send_to(1, Mark::Last).unwrap_err();
    assert!(matches!(error, Error::Impossible { .. }), "{error}");
}
