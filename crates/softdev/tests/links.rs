//! When things happen on a modelled link, as seen by a program that polls.
//!
//! Times are milliseconds, so that other work of the machine hides none of them.

mod links {
    pub(crate) mod ends;
}

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use conformance::runner::{Trial, run};
use links::ends::{Ends, WRITTEN};
use verbs::abi::*;
use verbs::{SendRequest, Service};

const MS: Duration = Duration::from_millis(1);
/// The size of the longest packet.
const PACKET_BYTES: usize = 4096;
const SERVICES: [Service; 3] = [Service::Rc, Service::Uc, Service::Ud];

/// The trials run one after another: they share the process's port.
fn main() {
    let trial = |name: &str, case: fn()| {
        let run = Box::new(move || steadily(case));
        Trial { name: name.to_owned(), skipped: None, run }
    };
    run(&[
        trial("an_acknowledgement_takes_the_way_back", an_acknowledgement_takes_the_way_back),
        trial("a_read_goes_there_and_takes_the_way_back", a_read_goes_there_and_takes_the_way_back),
        trial("no_more_reads_are_under_way_than_may_be", no_more_reads_are_under_way_than_may_be),
        trial(
            "a_message_is_fetched_in_its_time_and_not_when_it_arrives",
            a_message_is_fetched_in_its_time_and_not_when_it_arrives,
        ),
        trial(
            "a_message_is_fetched_at_once_where_no_time_is_said",
            a_message_is_fetched_at_once_where_no_time_is_said,
        ),
        trial("a_message_is_fetched_when_the_port_is_free", a_message_is_fetched_when_the_port_is_free),
        trial(
            "what_is_inline_is_taken_by_posting_and_leaves_at_once",
            what_is_inline_is_taken_by_posting_and_leaves_at_once,
        ),
        trial("what_has_nothing_to_fetch_leaves_at_once", what_has_nothing_to_fetch_leaves_at_once),
        trial(
            "a_fenced_message_is_fetched_when_the_read_is_over",
            a_fenced_message_is_fetched_when_the_read_is_over,
        ),
        trial("a_completion_comes_after_fetching", a_completion_comes_after_fetching),
        trial("what_is_sent_again_was_fetched_once", what_is_sent_again_was_fetched_once),
        trial(
            "what_cannot_be_fetched_fails_when_it_should_leave",
            what_cannot_be_fetched_fails_when_it_should_leave,
        ),
    ]);
}

/// Attempts at a case: a machine that is busy for a tenth of a second spoils one.
const ATTEMPTS: usize = 4;

fn steadily(case: fn()) {
    if !(1..ATTEMPTS).any(|_| catch_unwind(case).is_ok()) {
        case();
    }
}

/// An iteration of a loop in which a program writes a stamp into a message and polls.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Nanoseconds since the start, and never 0.
    stamp: u64,
    /// When the stamp had been written.
    written: Duration,
}

/// The history of a message whose first and last words its sender kept changing.
struct Story {
    /// When the message had been posted.
    posted: Duration,
    turns: Vec<Turn>,
    /// The iteration whose stamp arrived.
    arrived: usize,
    /// When the arrival was seen.
    seen: Duration,
}

impl Story {
    /// Checks that the message was fetched in the iteration in which it was due, except for delays
    /// on a busy machine.
    #[track_caller]
    fn was_fetched_after(&self, due: Duration) {
        let next = self.turns.get(self.arrived + 1).expect("it arrives later than it is fetched");
        assert!(next.written >= due, "fetched by {:?}, before {due:?}", next.written);
        let late = self.turns[self.arrived.saturating_sub(1)].written.saturating_sub(self.posted + due);
        assert!(late < 60 * MS, "the stamp of {late:?} after {due:?} was sent");
    }
}

/// Posts a message of `bytes` bytes, and changes it until it arrives. Returns its history.
fn rewrite_until_there(ends: &mut Ends, request: SendRequest, bytes: usize, at: usize) -> Story {
    ends.receive();
    let start = Instant::now();
    let is_send = at != WRITTEN;
    // Of a message longer than a packet, only the first packet is certain to be fetched at once.
    let places = [0, if bytes <= PACKET_BYTES { bytes - 8 } else { 0 }];
    let stamped = |ends: &mut Ends| {
        let stamp = u64::try_from(start.elapsed().as_nanos()).unwrap() + 1;
        for place in places {
            ends.near.region.write(place, &stamp.to_ne_bytes()).unwrap();
        }
        Turn { stamp, written: start.elapsed() }
    };
    let mut turns = vec![stamped(ends)];
    ends.post(request);
    let posted = start.elapsed();
    let is_there =
        |ends: &Ends| if is_send { ends.far.poll().is_some() } else { ends.far.word(at + bytes - 8) != 0 };
    while !is_there(ends) {
        turns.push(stamped(ends));
        ends.near.poll();
        assert!(start.elapsed() < 10_000 * MS, "nothing arrives");
    }
    let seen = start.elapsed();
    let words = places.map(|place| ends.far.word(at + place));
    assert_eq!(words[0], words[1], "fetched at once");
    let mut others = (8..bytes - 8).step_by(8);
    let wrong = others.find(|place| ends.far.word(at + place) != ends.near.word(*place));
    assert_eq!(wrong, None, "a word of {bytes} bytes");
    let arrived = turns.iter().position(|turn| turn.stamp == words[0]).expect("a stamp arrives");
    Story { posted, turns, arrived, seen }
}

/// Returns a Send and, if the service has it, an RDMA Write of `bytes` bytes of the near side's
/// region, with the place where each arrives.
fn messages(ends: &Ends, service: Service, bytes: usize) -> Vec<(SendRequest, usize)> {
    let payload = || vec![ends.near.region.sge(0, bytes).unwrap()];
    let send = (SendRequest::send(1, payload()), ends.received_at());
    let to = ends.far.region.remote(WRITTEN).unwrap();
    let write = (service != Service::Ud).then(|| (SendRequest::write(2, payload(), to), WRITTEN));
    [send].into_iter().chain(write).collect()
}

/// Returns the time from posting a request to its completion.
fn completes_after(ends: &mut Ends, request: SendRequest) -> Duration {
    let start = Instant::now();
    ends.post(request);
    let (wc, after) = ends.completions(start, 1)[0];
    assert!(wc.status().is_success(), "{wc:?}");
    after
}

fn an_acknowledgement_takes_the_way_back() {
    for (service, least, most) in [
        (Service::Rc, 210 * MS, 400 * MS),
        (Service::Uc, Duration::ZERO, 100 * MS),
        (Service::Ud, Duration::ZERO, 100 * MS),
    ] {
        let mut ends = Ends::connected(service, "latency=10ms,back=200ms");
        ends.receive();
        let send = SendRequest::send(1, vec![ends.near.region.sge(0, 8).unwrap()]);
        let after = completes_after(&mut ends, send);
        assert!((least..most).contains(&after), "{service:?}: {after:?}");
    }
}

fn a_read_goes_there_and_takes_the_way_back() {
    let mut ends = Ends::connected(Service::Rc, "latency=10ms,back=200ms");
    ends.far.region.write(WRITTEN, &7_u64.to_ne_bytes()).unwrap();
    let into = ends.near.region.sge(0, 8).unwrap();
    let from = ends.far.region.remote(WRITTEN).unwrap();
    let after = completes_after(&mut ends, SendRequest::read(1, vec![into], from));
    assert_eq!(ends.near.word(0), 7);
    assert!((210 * MS..400 * MS).contains(&after), "{after:?}");
}

/// Four Reads of 60 ms each, some of which may be under way at a time, and behind them a Write,
/// which takes no longer and waits for them. Both sides have one port, from which answers leave as
/// well: a request behind a Read leaves with its answer at the earliest.
fn no_more_reads_are_under_way_than_may_be() {
    for (most, due) in [(1, [60, 120, 180, 240, 270]), (8, [60, 90, 120, 150, 180])] {
        let mut ends = Ends::asking(most, "latency=30ms");
        let to = ends.far.region.remote(WRITTEN).unwrap();
        let from = ends.far.region.remote(0).unwrap();
        let element = ends.near.region.sge(0, 8).unwrap();
        let start = Instant::now();
        for id in 0..4 {
            ends.post(SendRequest::read(id, vec![element], from));
        }
        ends.post(SendRequest::write(4, vec![element], to));
        let found = ends.completions(start, 5);
        for ((wc, after), due) in found.iter().zip(due) {
            assert!(wc.status().is_success(), "{wc:?}");
            assert!((due * MS..(due + 25) * MS).contains(after), "{most}: {found:?}");
        }
    }
}

fn a_message_is_fetched_in_its_time_and_not_when_it_arrives() {
    for service in SERVICES {
        for bytes in if service == Service::Ud { &[8, 3000][..] } else { &[8, 3000, 8000] } {
            let mut ends = Ends::connected(service, "latency=120ms,fetch=20ms");
            for (request, at) in messages(&ends, service, *bytes) {
                let story = rewrite_until_there(&mut ends, request, *bytes, at);
                story.was_fetched_after(20 * MS);
                assert!(story.seen >= 140 * MS, "{service:?}: there after {:?}", story.seen);
            }
        }
    }
}

/// The link states no fetch time: the message is fetched at the post.
fn a_message_is_fetched_at_once_where_no_time_is_said() {
    for service in SERVICES {
        let mut ends = Ends::connected(service, "latency=50ms");
        for (request, at) in messages(&ends, service, 8) {
            let story = rewrite_until_there(&mut ends, request, 8, at);
            assert_eq!(story.arrived, 0, "{service:?}");
        }
    }
}

fn a_message_is_fetched_when_the_port_is_free() {
    for service in [Service::Rc, Service::Uc] {
        let mut ends = Ends::connected(service, "100kb/s,header=0,latency=70ms,fetch=5ms");
        // A thousand bytes take 80 ms.
        let [first, second] = [(2000, 1000), (0, 8)].map(|(at, len)| ends.near.region.sge(at, len).unwrap());
        let [elsewhere, to] = [WRITTEN + 2000, WRITTEN].map(|at| ends.far.region.remote(at).unwrap());
        ends.post(SendRequest::write(0, vec![first], elsewhere));
        let story = rewrite_until_there(&mut ends, SendRequest::write(1, vec![second], to), 8, WRITTEN);
        // Nearly 85 ms: the first message was posted slightly earlier.
        story.was_fetched_after(84 * MS);
    }
}

fn what_is_inline_is_taken_by_posting_and_leaves_at_once() {
    for service in SERVICES {
        let mut ends = Ends::connected(service, "latency=10ms,fetch=500ms");
        for (request, at) in messages(&ends, service, 8) {
            ends.receive();
            let start = Instant::now();
            let mut posted = ends.post(request.inline(&7_u64.to_ne_bytes()));
            posted.payload_mut().fill(9);
            let (wc, _) = ends.completions(start, 1)[0];
            assert!(wc.status().is_success(), "{wc:?}");
            // A message of an unreliable service is complete before it arrives.
            while ends.far.poll().is_none() && ends.far.word(at) == 0 {
                ends.near.poll();
            }
            let seen = start.elapsed();
            assert_eq!(ends.far.word(at), 7, "{service:?}");
            assert!((10 * MS..250 * MS).contains(&seen), "{service:?}: {seen:?}");
        }
    }
}

fn what_has_nothing_to_fetch_leaves_at_once() {
    let mut ends = Ends::connected(Service::Rc, "latency=10ms,fetch=500ms");
    let into = ends.near.region.sge(0, 8).unwrap();
    let from = ends.far.region.remote(WRITTEN).unwrap();
    ends.receive();
    let element = ends.near.region.sge(0, 8).unwrap();
    for (request, least, most) in [
        (SendRequest::read(1, vec![into], from), 20 * MS, 250 * MS),
        (SendRequest::send(2, Vec::new()), 20 * MS, 250 * MS),
        (SendRequest::write(3, vec![element], from), 520 * MS, 800 * MS),
    ] {
        let after = completes_after(&mut ends, request);
        assert!((least..most).contains(&after), "{after:?}");
    }
}

/// A fenced message may send what the Read has brought.
fn a_fenced_message_is_fetched_when_the_read_is_over() {
    for (link, fence, least, most) in [
        ("latency=50ms,fetch=20ms", false, 120 * MS, 170 * MS),
        ("latency=50ms,fetch=20ms", true, 220 * MS, 400 * MS),
        // Due at the moment at which the Read is over.
        ("latency=50ms", true, 200 * MS, 400 * MS),
    ] {
        let mut ends = Ends::connected(Service::Rc, link);
        let to = ends.far.region.remote(WRITTEN).unwrap();
        let from = ends.far.region.remote(0).unwrap();
        ends.near.region.write(0, &6_u64.to_ne_bytes()).unwrap();
        ends.far.region.write(0, &7_u64.to_ne_bytes()).unwrap();
        let element = ends.near.region.sge(0, 8).unwrap();
        let start = Instant::now();
        ends.post(SendRequest::read(1, vec![element], from));
        ends.post(SendRequest::write(2, vec![element], to).fenced(fence));
        let (_, after) = ends.completions(start, 2)[1];
        assert_eq!(ends.far.word(WRITTEN), if fence { 7 } else { 6 });
        assert!((least..most).contains(&after), "fence {fence}: {after:?}");
    }
}

/// An unreliable service reports that a message has left, which is not before it was fetched.
fn a_completion_comes_after_fetching() {
    for (service, least) in [(Service::Rc, 170 * MS), (Service::Uc, 150 * MS), (Service::Ud, 150 * MS)] {
        let mut ends = Ends::connected(service, "latency=10ms,fetch=150ms");
        ends.receive();
        let send = SendRequest::send(1, vec![ends.near.region.sge(0, 8).unwrap()]);
        let after = completes_after(&mut ends, send);
        assert!((least..400 * MS).contains(&after), "{service:?}: {after:?}");
    }
}

/// A reliable connection keeps the fetched payload until its receiver is ready.
fn what_is_sent_again_was_fetched_once() {
    let mut ends = Ends::connected(Service::Rc, "latency=5ms");
    ends.near.region.write(0, &1_u64.to_ne_bytes()).unwrap();
    let start = Instant::now();
    ends.post(SendRequest::send(1, vec![ends.near.region.sge(0, 8).unwrap()]));
    ends.near.region.write(0, &2_u64.to_ne_bytes()).unwrap();
    while start.elapsed() < 50 * MS {
        assert!(ends.near.poll().is_none(), "nothing was posted to receive it");
    }
    ends.receive();
    let (wc, _) = ends.completions(start, 1)[0];
    assert!(wc.status().is_success(), "{wc:?}");
    assert!(ends.far.poll().is_some_and(|wc| wc.status().is_success()));
    assert_eq!(ends.far.word(ends.received_at()), 1);
}

/// A request that the requester itself refuses fails when it should leave, in its turn.
fn what_cannot_be_fetched_fails_when_it_should_leave() {
    for service in SERVICES {
        let link = "latency=200ms,fetch=50ms";
        let mut ends = Ends::connected(service, link);
        let wrong = ibv_sge { lkey: 0xdead_be00, ..ends.near.region.sge(0, 8).unwrap() };
        let start = Instant::now();
        ends.post(SendRequest::send(1, vec![wrong]));
        let (wc, after) = ends.completions(start, 1)[0];
        assert_eq!(wc.status().0, IBV_WC_LOC_PROT_ERR, "{service:?}");
        assert!((50 * MS..200 * MS).contains(&after), "{service:?}: {after:?}");

        let mut ends = Ends::connected(service, link);
        ends.receive();
        ends.receive();
        let right = ends.near.region.sge(0, 8).unwrap();
        for (id, element) in [(1, right), (2, wrong), (3, right)] {
            ends.post(SendRequest::send(id, vec![element]));
        }
        let found: Vec<_> =
            ends.completions(Instant::now(), 3).iter().map(|(wc, _)| (wc.id(), wc.status().0)).collect();
        assert_eq!(
            found,
            [(1, IBV_WC_SUCCESS), (2, IBV_WC_LOC_PROT_ERR), (3, IBV_WC_WR_FLUSH_ERR)],
            "{service:?}"
        );
        assert!(ends.far.poll().is_some_and(|wc| wc.status().is_success()), "{service:?}: the first arrives");
    }
}
