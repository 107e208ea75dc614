//! Ranks over real sockets of this host, and over a relay that loses, repeats and delays messages.

mod floods;
mod relay;

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use measure::clock::Clock;

use self::relay::{Fault, Relay};
use super::endpoint::SocketEndpoint;
use super::endpoint::gathered::MUCH;
use super::peer::{Name, PeerInfo, PeerParams};
use super::setup::Unconnected;
use super::{Net, SocketOptions};
use crate::Error;
use crate::axis;
use crate::endpoint::conformance::{post_addressed, take_addressed, three};
use crate::endpoint::connecting::{DrivenEndpoint, UnconnectedEndpoint};
use crate::endpoint::{Endpoint, Mark};
use crate::pattern::times::Times;
use crate::patterns::ping_pong::ping_pong;
use crate::patterns::stream::{Flow, stream};
use crate::placement::LocalPlacement;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::{Carrier, Family, Length, Pattern, Poll};
use crate::rank_clock::RankClock;
use crate::topology::{PartSpec, Topology};

fn spec(pattern: Pattern, axes: impl IntoIterator<Item = axis::Axis>) -> PartSpec {
    let settings = axes.into_iter().fold(Settings::default(), Settings::axis);
    let plan = Plan::new("sockets", "Sockets").experiment("one", pattern, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0).topology().parts.remove(0)
}

/// Returns the halves of a point, in rank order.
fn halves(spec: &PartSpec) -> Vec<Unconnected> {
    let options = SocketOptions { net: Net::Loopback, port: None };
    let half = |rank| Unconnected::new(spec, rank, &options, Clock::monotonic()).unwrap();
    (0..spec.links.ranks()).map(half).collect()
}

/// Returns what each rank is told about all ranks, with the parameters from one rank to another
/// changed by `change`.
fn told(
    spec: &PartSpec,
    halves: &[Unconnected],
    change: impl Fn(u32, u32, &mut PeerParams),
) -> Vec<Vec<PeerInfo>> {
    let rank_clock = RankClock::new(Clock::monotonic(), None);
    let info = LocalPlacement::new(&Topology::of_one(spec.clone()), 0, &rank_clock).unwrap().info().clone();
    let one = |to: u32, from: u32| {
        let half = &halves[from as usize];
        let mut params = half.offer().params(to).cloned();
        params.iter_mut().for_each(|params| change(from, to, params));
        PeerInfo { info: info.clone(), address: Some(half.offer().address.clone()), params }
    };
    let ranks = halves.len() as u32;
    (0..ranks).map(|to| (0..ranks).map(|from| one(to, from)).collect()).collect()
}

/// Connects all halves at the same time and runs the part of each rank; returns their results. All
/// ranks stay until all have finished.
fn run<T: Send>(
    halves: Vec<Unconnected>,
    told: &[Vec<PeerInfo>],
    part: impl Fn(u32, &mut SocketEndpoint) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let all = Barrier::new(halves.len());
    run_until(halves, told, part, || {
        all.wait();
    })
}

/// Does the same, but each rank stays until `stays` returns.
fn run_until<T: Send>(
    halves: Vec<Unconnected>,
    told: &[Vec<PeerInfo>],
    part: impl Fn(u32, &mut SocketEndpoint) -> Result<T, Error> + Sync,
    stays: impl Fn() + Sync,
) -> Vec<Result<T, Error>> {
    let part = &part;
    let stays = &stays;
    thread::scope(|scope| {
        let threads = (0..).zip(halves).zip(told).map(|((rank, half), told)| {
            scope.spawn(move || {
                let mut end = half.connect(told, false)?;
                end.start(30.0)?;
                let done = part(rank, &mut end);
                end.stop();
                stays();
                done
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Bounces `messages` messages; returns the samples and counters of both ranks.
fn bounce(spec: &PartSpec, messages: u64, relay: Option<&Relay>) -> Vec<(Times, BTreeMap<String, u64>)> {
    let halves = halves(spec);
    let told =
        told(spec, &halves, |from, to, params| relay.iter().for_each(|relay| relay.lead(from, to, params)));
    let ends = run(halves, &told, |rank, end| {
        let mut samples = Times::default();
        ping_pong(end, &mut samples, rank == 0, 1, Length::Iterations(messages))?;
        Ok((samples, end.counters()))
    });
    ends.into_iter().map(|end| end.unwrap()).collect()
}

const ALL: [Carrier; 4] = [Carrier::Tcp, Carrier::Udp, Carrier::UnixStream, Carrier::UnixDatagram];

#[test]
fn messages_go_to_the_rank_that_they_name_and_say_from_whom_they_are() {
    for carrier in ALL {
        for poll in [Poll::Busy, Poll::Event] {
            let axes = [axis::ENDPOINT.value(carrier), axis::POLL.value(poll)];
            let spec = three(&spec(Pattern::PING_PONG, axes).message);
            let halves = halves(&spec);
            let told = told(&spec, &halves, |_, _, _| {});
            let ends = run(halves, &told, |rank, end| {
                post_addressed(end, &spec, rank);
                take_addressed(end, &spec, rank);
                Ok(())
            });
            assert!(ends.iter().all(Result::is_ok), "{carrier:?} {poll:?}: {ends:?}");
        }
    }
}

/// The receiver of a long stream is woken for much data; less data arrives all the same. Afterwards
/// all data wakes it.
#[test]
fn the_receiver_of_a_flood_gathers() {
    for (carrier, poll, streams, gathers) in [
        (Carrier::Tcp, Poll::Event, 1, true),
        (Carrier::Tcp, Poll::Event, 3, true),
        (Carrier::Tcp, Poll::Busy, 1, false),
        (Carrier::UnixStream, Poll::Event, 1, false),
    ] {
        let axes = [
            axis::ENDPOINT.value(carrier),
            axis::POLL.value(poll),
            axis::STREAMS.value(streams),
            axis::SIZE_BYTES.value(100),
        ];
        let spec = spec(Pattern::STREAM, axes);
        let halves = halves(&spec);
        let told = told(&spec, &halves, |_, _, _| {});
        let ends = run(halves, &told, |rank, end| {
            let all = 30;
            if rank == 0 {
                (0..all).try_for_each(|_| end.send(Mark::More))?;
                end.flush()?;
                return Ok((0, 0));
            }
            let long = end.clock().now().0 + end.clock().ticks(Duration::from_secs(60));
            end.expect(u64::MAX, long)?;
            let during = end.wakes_for();
            let mut left = all;
            while left > 0 {
                match end.try_receive()? {
                    Some(_) => left -= 1,
                    None => end.idle()?,
                }
            }
            end.expect(0, 0)?;
            Ok((during, end.wakes_for()))
        });
        let [_, receiver] = &ends[..] else { unreachable!() };
        let much = if gathers { MUCH } else { 1 };
        assert_eq!(*receiver.as_ref().unwrap(), (much, 1), "{carrier:?} {poll:?} {streams}");
    }
}

#[test]
fn messages_of_every_size_go_forth_and_back() {
    for carrier in ALL {
        for poll in [Poll::Busy, Poll::Event] {
            for size in [1, 2, 3, 4, 5, 1000, 65_000, 1 << 20] {
                if carrier.is_datagram() && size > 65_507 {
                    continue;
                }
                let axes =
                    [axis::ENDPOINT.value(carrier), axis::POLL.value(poll), axis::SIZE_BYTES.value(size)];
                let ends = bounce(&spec(Pattern::PING_PONG, axes), 40, None);
                let counts: Vec<_> = ends.iter().map(|(samples, _)| samples.0.len()).collect();
                assert_eq!(counts, [40, 40], "{carrier:?} {poll:?} {size}");
                assert!(ends.iter().all(|(_, counters)| counters.values().all(|count| *count == 0)));
            }
        }
    }
}

#[test]
fn they_do_over_ipv6() {
    for carrier in [Carrier::Tcp, Carrier::Udp] {
        let axes = [axis::ENDPOINT.value(carrier), axis::FAMILY.value(Family::Ipv6)];
        let spec = spec(Pattern::PING_PONG, axes);
        if super::Reachable::own(&Net::Loopback, Family::Ipv6, None).is_err() {
            println!("SKIPPED: this host has no IPv6");
            return;
        }
        assert_eq!(bounce(&spec, 10, None)[0].0.0.len(), 10);
    }
}

/// Streams; returns what rank 0 posted and rank 1 received, with the counters of rank 1.
fn flood(spec: &PartSpec, messages: u64, relay: Option<&Relay>) -> (u64, u64, BTreeMap<String, u64>) {
    let halves = halves(spec);
    let told =
        told(spec, &halves, |from, to, params| relay.iter().for_each(|relay| relay.lead(from, to, params)));
    let reliable = spec.message.endpoint != Carrier::Udp;
    let ends = run(halves, &told, |rank, end| {
        let flow = if rank == 0 { Flow::Out } else { Flow::In };
        let floods = stream(end, flow, 0, Length::Iterations(messages), reliable)?;
        Ok((floods, end.counters()))
    });
    let mut ends = ends.into_iter().map(|end| end.unwrap());
    let ((sent, _), _) = ends.next().unwrap();
    let ((_, received), counters) = ends.next().unwrap();
    (sent.unwrap().total, received.unwrap().total, counters)
}

#[test]
fn floods_arrive_whole_over_what_loses_nothing() {
    for carrier in [Carrier::Tcp, Carrier::UnixStream, Carrier::UnixDatagram] {
        for (poll, streams) in [(Poll::Busy, 1), (Poll::Event, 1), (Poll::Event, 3), (Poll::Busy, 3)] {
            for size in [1, 100, 65_536] {
                let axes = [
                    axis::ENDPOINT.value(carrier),
                    axis::POLL.value(poll),
                    axis::SIZE_BYTES.value(size),
                    axis::STREAMS.value(streams),
                ];
                let (sent, received, _) = flood(&spec(Pattern::STREAM, axes), 3000, None);
                assert_eq!((sent, received), (3000, 3000), "{carrier:?} {poll:?} {streams} {size}");
            }
        }
    }
}

#[test]
fn lists_of_datagrams_arrive_as_messages() {
    for (list, offload) in [(1, false), (7, false), (16, true)] {
        let axes = [
            axis::ENDPOINT.value(Carrier::Udp),
            axis::POST_LIST.value(list),
            axis::OFFLOAD.value(offload),
            axis::SIZE_BYTES.value(100),
            // Enough for all messages, so that none is lost.
            axis::SOCKET_BUFFER_BYTES.value(Some(200_000)),
        ];
        let (sent, received, counters) = flood(&spec(Pattern::STREAM, axes), 100, None);
        assert_eq!((sent, received), (100, 100), "{list} {offload}");
        assert!(counters.values().all(|count| *count == 0), "{counters:?}");
    }
}

#[test]
fn what_is_lost_is_asked_for_again_and_is_no_sample() {
    let axes = [axis::ENDPOINT.value(Carrier::Udp), axis::SIZE_BYTES.value(1)];
    for poll in [Poll::Busy, Poll::Event] {
        let spec = spec(Pattern::PING_PONG, axes.clone().into_iter().chain([axis::POLL.value(poll)]));
        let relay = Relay::start(vec![Fault::Drop { every: 9 }]);
        let ends = bounce(&spec, 40, Some(&relay));
        let asks = &ends[0];
        let answers = &ends[1];
        let lost = relay.end().dropped;
        assert!(lost >= 5, "{lost}");
        // The last answer may be lost again and again; each loss costs one repetition.
        assert_eq!(asks.1["messages_lost"], lost, "{:?}", asks.1);
        let marred = 40 - asks.0.0.len() as u64;
        // On a busy machine, an answer may be so late that it is asked for again, and comes twice.
        let twice: u64 = ends.iter().filter_map(|end| end.1.get("messages_duplicate")).sum();
        assert!(marred >= lost / 2 && marred <= lost + twice, "{marred} of {lost}, {twice} twice");
        assert!(!asks.0.0.is_empty() && answers.0.0.len() < 40);
        // A machine may stall now and then, and not with each loss.
        let long = asks.0.0.iter().chain(&answers.0.0).filter(|ns| **ns > 190_000_000).count() as u64;
        assert!(long < lost / 2, "the wait for a lost message is no latency: {long} samples, {lost} lost");
    }
}

#[test]
fn the_loss_of_the_very_last_answer_is_made_good() {
    // There is one round before: the fourth message is the last answer.
    let spec = spec(Pattern::PING_PONG, [axis::ENDPOINT.value(Carrier::Udp)]);
    for last in [3, 4, 5, 6] {
        let relay = Relay::start(vec![Fault::Lose { number: last }]);
        let ends = bounce(&spec, 1, Some(&relay));
        assert!(ends[0].0.0.len() <= 1);
        assert_eq!(relay.end().dropped, 1, "{last}");
        assert_eq!(ends[0].1["messages_lost"], 1, "{last}");
    }
}

#[test]
fn what_comes_twice_or_late_is_counted() {
    let axes = [axis::ENDPOINT.value(Carrier::Udp), axis::SIZE_BYTES.value(64)];
    let spec = spec(Pattern::STREAM, axes);
    // As many as every socket holds, so that only the relay loses messages.
    let faults = vec![Fault::Drop { every: 10 }, Fault::Repeat { every: 7 }, Fault::Hold { every: 13 }];
    let relay = Relay::start(faults);
    let (sent, received, counters) = flood(&spec, 200, Some(&relay));
    let done = relay.end();
    assert!(done.dropped > 10 && done.repeated > 10 && done.held > 5, "{done:?}");
    assert_eq!(counters["messages_duplicate"], done.repeated, "{done:?}");
    assert_eq!(counters["messages_reordered"], done.held, "{done:?}");
    assert_eq!(received, sent - done.dropped + done.repeated, "{done:?}");
}

/// The last message overtakes the one before it, which still counts.
#[test]
fn what_the_end_of_a_flood_overtakes_still_counts() {
    let spec = spec(Pattern::STREAM, [axis::ENDPOINT.value(Carrier::Udp), axis::SIZE_BYTES.value(64)]);
    // Nineteen messages, and then the last one.
    let relay = Relay::start(vec![Fault::Hold { every: 19 }]);
    let (sent, received, counters) = flood(&spec, 20, Some(&relay));
    assert_eq!((relay.end().held, counters["messages_reordered"]), (1, 1));
    assert_eq!((sent, received), (20, 20));
}

/// A rank that sleeps until the next message reads the clock every second, and earlier if no
/// message may be left.
#[test]
fn a_flood_that_has_lost_some_is_soon_over() {
    let spec = spec(Pattern::STREAM, [axis::ENDPOINT.value(Carrier::Udp), axis::SIZE_BYTES.value(64)]);
    let took = |_| {
        let relay = Relay::start(vec![Fault::Lose { number: 10 }]);
        let begin = Instant::now();
        let (sent, received, _) = flood(&spec, 20, Some(&relay));
        assert_eq!((sent, received, relay.end().dropped), (20, 19, 1));
        begin.elapsed()
    };
    assert!((0..5).map(took).min().unwrap() < Duration::from_millis(900));
}

#[test]
fn who_is_no_rank_is_sent_away() {
    let spec = spec(Pattern::PING_PONG, [axis::ENDPOINT.value(Carrier::Tcp)]);
    let halves = halves(&spec);
    let told = told(&spec, &halves, |_, _, _| ());
    let Name::Port(port) = told[1][0].params.as_ref().unwrap().sockets[0] else { panic!("a port") };
    // Some connections stay silent, one sends wrong bytes, one is closed at once.
    let silent: Vec<_> = (0..9).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let mut wrong = TcpStream::connect(("127.0.0.1", port)).unwrap();
    std::io::Write::write_all(&mut wrong, &[7; 64]).unwrap();
    drop(TcpStream::connect(("127.0.0.1", port)).unwrap());
    let began = Instant::now();
    let ends = run(halves, &told, |rank, end| {
        let mut samples = Times::default();
        ping_pong(end, &mut samples, rank == 0, 1, Length::Iterations(10))?;
        Ok(samples.0.len())
    });
    assert!(ends.into_iter().all(|end| end.unwrap() == 10));
    assert!(began.elapsed() < Duration::from_secs(8));
    drop((silent, wrong));
}

#[test]
fn a_rank_that_has_gone_is_said_to_have_gone() {
    for (carrier, words) in [
        (Carrier::Tcp, "its program has ended or failed: check its host"),
        (Carrier::UnixStream, "its program has ended or failed: check its host"),
        (Carrier::Udp, "the port is closed"),
    ] {
        let spec = spec(Pattern::PING_PONG, [axis::ENDPOINT.value(carrier)]);
        let halves = halves(&spec);
        let told = told(&spec, &halves, |_, _, _| ());
        let part = |rank, end: &mut SocketEndpoint| {
            if rank == 1 {
                return Ok(());
            }
            ping_pong(end, &mut Times::default(), true, 1, Length::Iterations(10))
        };
        let ends = run_until(halves, &told, part, || ());
        let error = ends[0].as_ref().unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(carrier.name()), "{error}");
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let spec = spec(Pattern::PING_PONG, [axis::ENDPOINT.value(Carrier::Tcp)]);
    let options = SocketOptions { net: Net::Loopback, port: Some(port) };
    let error = Unconnected::new(&spec, 0, &options, Clock::monotonic()).err().unwrap().to_string();
    assert!(error.starts_with(&format!("TCP port {port} is in use: end the program")), "{error}");
    // The next rank has the next port.
    let next = Unconnected::new(&spec, 1, &options, Clock::monotonic());
    if let Ok(next) = next {
        let params = next.offer().params(0).unwrap();
        assert!(matches!(params.sockets[..], [Name::Port(next)] if next == port + 1));
    }
}

#[test]
fn who_sleeps_wakes_for_an_instant() {
    let spec = spec(Pattern::OPEN_LOOP, [axis::ENDPOINT.value(Carrier::Tcp)]);
    let halves = halves(&spec);
    let told = told(&spec, &halves, |_, _, _| ());
    let naps = run(halves, &told, |rank, end| {
        let clock = end.clock();
        let begin = clock.now();
        if rank == 0 {
            let until = measure::clock::Ticks(begin.0 + clock.ticks(Duration::from_millis(20)));
            while clock.now() < until {
                assert_eq!(end.try_receive()?, None);
                end.idle_until(until)?;
            }
        }
        Ok(clock.ns(clock.now().since(begin)))
    });
    let slept_ns = *naps[0].as_ref().unwrap();
    assert!((20_000_000..2_000_000_000).contains(&slept_ns), "{slept_ns}");
}
