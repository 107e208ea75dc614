//! Messages follow each other within a window of outstanding messages, and both ranks compute
//! throughput (Gamess and Ortiz-Zuazaga 2016, section V).
//!
//! # Invariants
//!
//! * Both ranks of a stream count messages: the throughput of one direction is that of the slower
//!   rank, so that messages which were only posted do not count.

mod command;
mod flood;
mod push;
mod table;

use measure::clock::Clock;
use measure::record::{self, Throughput};
use serde::{Deserialize, Serialize};

pub(crate) use flood::{Flow, stream};

use crate::Error;
use crate::axis::{self, AxisList};
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::{Defaults, SIZE_BYTES_STREAM, over_mpi, window};
use crate::pattern::flood::{Flood, messages_per_s};
use crate::pattern::outcome::{Merged, Outcome, Told, both_ways};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::timed::packets;
use crate::point::{Carrier, Flow as Direction, Length, MpiCall, PointSpec, Service, Tool};
use crate::topology::{self, Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct Stream;

/// For how long a rank sent and received, in s; absent for a direction that it does not have.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamSpan {
    /// From the first message that it posted to the last.
    sent_s: Option<f64>,
    /// From the first message that it received to the last.
    heard_s: Option<f64>,
}

impl Told for StreamSpan {}

impl Pattern for Stream {
    const ROW: Row = Row {
        needs: Capabilities::COUNTED,
        floods: true,
        axes: &[axis::MPI_CALL.row, axis::MPI_OPERATION.row, axis::MPI_SYNC.row],
        command: command::COMMAND,
        shown: &table::SHOWN,
        tools: &[Tool::Iperf3, Tool::Qperf],
        can_be_cut: |_| true,
        ..Row::named("stream")
    };
    /// Reported where no message is acknowledged.
    type Told = StreamSpan;

    fn defaults(given: &AxisList, carrier: Carrier) -> Defaults {
        Defaults {
            length: Length::Iterations(ITERATIONS),
            size_bytes: if carrier == Carrier::Udp { SIZE_BYTES_UDP } else { SIZE_BYTES_STREAM },
            tx_depth: window(carrier),
            signal_interval: Some(SIGNAL_INTERVAL),
            axes: over_mpi(given, MpiCall::Nonblocking),
            ..Defaults::default()
        }
    }

    fn topology(spec: &PointSpec) -> Topology {
        let usage = Usage {
            flow: topology::Flow::Flood,
            is_timed: false,
            is_one_way: direction(spec) == Direction::Uni,
            is_one_sided_flood: direction(spec) == Direction::Uni,
            pauses: false,
            ..Usage::PACED
        };
        Topology::of_one(PartSpec::main(&spec.message, usage, Links::of_two()))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<StreamSpan>), PointError> {
        let spec = rank.spec;
        let number = rank.rank;
        let clock = rank.clock();
        let endpoint = rank.main()?;
        if spec.message.arrives() {
            return Ok(taken(endpoint, spec, number, clock)?);
        }
        Ok((pushed(endpoint, spec, number, clock)?, None))
    }

    /// A stream failed if the receiver got its last message long before the sender stopped. Without
    /// acknowledgements, nothing else shows that.
    fn failure(told: &[Option<StreamSpan>]) -> Option<String> {
        let [Some(first), Some(second)] = told else { return None };
        [(0, first, second), (1, second, first)].into_iter().find_map(|(rank, sender, receiver)| {
            let (sent_s, heard_s) = sender.sent_s.zip(receiver.heard_s)?;
            let is_broken = sent_s - heard_s > BROKEN_OFF_S && heard_s < BROKEN_OFF_SHARE * sent_s;
            is_broken.then(|| {
                format!(
                    "rank {} received nothing after {heard_s:.1} of the {sent_s:.1} s in which rank {rank} sent: the link went \
                     down, or the link or a firewall drops all messages (see `ip link` and `nft list ruleset` on both hosts)",
                    1 - rank
                )
            })
        })
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, _told: Vec<Option<StreamSpan>>) -> Merged {
        let merged = Merged {
            // Nothing slows a UDP sender to the receiver's rate: the table has both throughputs and
            // the losses.
            floods_freely: spec.message.endpoint == Carrier::Udp,
            ..Merged::of(outcomes)
        };
        if direction(spec) == Direction::Uni {
            return merged;
        }
        let (throughput, throughput_total) = both_ways(outcomes);
        Merged { throughput, throughput_total, ..merged }
    }
}

/// A stream was broken off if the receiver got nothing for this long before its end, and at most
/// this share of its time. (A receiver gives up after 0.3 s.)
const BROKEN_OFF_S: f64 = 0.5;
const BROKEN_OFF_SHARE: f64 = 0.95;

/// Runs a rank of a stream whose messages the receiver takes.
fn taken<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<(Outcome, Option<StreamSpan>), Error> {
    let reliable = spec.message.service == Service::Rc;
    let flow = flow(spec, rank);
    let (done, cpu) = watched(clock, || stream(endpoint, flow, spec.warmup, spec.length, reliable));
    let (sent, received) = done?;
    let slower = |flood: &Flood| flood.messages.saturating_mul(1 << 20).checked_div(flood.ticks).unwrap_or(0);
    // Of both directions the slower one: this rank cannot have received messages faster than they
    // were sent.
    let headline = [received, sent].into_iter().flatten().min_by_key(slower).unwrap_or_default();
    let mut counters = packets(sent.map_or(0, |sent| sent.total), spec);
    // Losses follow only from the counters of both ranks.
    let counted = [("messages_sent", sent), ("messages_received", received)];
    counters
        .extend(counted.iter().filter_map(|(name, flood)| Some(((*name).to_owned(), flood.as_ref()?.total))));
    let seconds = |flood: Flood| clock.ns_f64(flood.ticks) / 1e9;
    let span = StreamSpan { sent_s: sent.map(seconds), heard_s: received.map(seconds) };
    let messages = [sent, received].into_iter().flatten().map(|flood| flood.total + spec.warmup).sum();
    let throughput = Some(throughput(&headline, spec, clock)?);
    let cpu = cpu.map(|cpu| cpu.of(messages));
    Ok((Outcome { throughput, counters, cpu, ..Outcome::default() }, (!reliable).then_some(span)))
}

/// Runs a rank of a stream whose messages the receiver does not notice: only the sender measures.
fn pushed<E: Endpoint>(
    endpoint: &mut E,
    spec: &PointSpec,
    rank: u32,
    clock: Clock,
) -> Result<Outcome, Error> {
    let reliable = spec.message.service == Service::Rc;
    let flow = flow(spec, rank);
    let (done, cpu) = watched(clock, || push::push(endpoint, flow, spec.warmup, spec.length, reliable));
    let Some(posted) = done? else { return Ok(Outcome { cpu, ..Outcome::default() }) };
    let throughput = Some(throughput(&posted, spec, clock)?);
    Ok(Outcome { throughput, counters: packets(posted.total, spec), cpu, ..Outcome::default() })
}

/// The direction of the stream.
fn direction(spec: &PointSpec) -> Direction {
    axis::DIRECTION.at(&spec.axes).unwrap_or(Direction::Uni)
}

/// The direction of the messages at a rank.
fn flow(spec: &PointSpec, rank: u32) -> Flow {
    match (direction(spec), rank) {
        (Direction::Bi, _) => Flow::Both,
        (Direction::Uni, 0) => Flow::Out,
        (Direction::Uni, _) => Flow::In,
    }
}

fn throughput(flood: &Flood, spec: &PointSpec, clock: Clock) -> Result<Throughput, Error> {
    let direction =
        if direction(spec) == Direction::Bi { record::Direction::BiOne } else { record::Direction::Uni };
    Ok(Throughput::of(messages_per_s(flood, clock)?, spec.message.size_bytes, direction))
}

/// The number of messages: that of perftest's `ib_write_bw`. The 1000 of `ib_send_bw` take less
/// than a millisecond at small sizes, which is too short for a rate.
const ITERATIONS: u64 = 5000;
/// The longest datagram that fits into one Ethernet frame, also over IPv6.
const SIZE_BYTES_UDP: u64 = 1452;
/// perftest's `--cq-mod` for bandwidth; less where the send queue is shorter.
const SIGNAL_INTERVAL: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_that_is_not_heard_to_its_end_has_failed() {
        let one_way = |heard_s| {
            let sender = StreamSpan { sent_s: Some(8.0), heard_s: None };
            Stream::failure(&[Some(sender), Some(StreamSpan { sent_s: None, heard_s: Some(heard_s) })])
        };
        assert_eq!([one_way(8.0), one_way(7.8)], [None, None]);
        let error = one_way(2.0).expect("it was broken off");
        assert!(error.starts_with("rank 1 received nothing after 2.0 of the 8.0 s"), "{error}");
        let both_ways = |heard_s| {
            let first = StreamSpan { sent_s: Some(8.0), heard_s: Some(heard_s) };
            Stream::failure(&[Some(first), Some(StreamSpan { sent_s: Some(8.0), heard_s: Some(8.0) })])
        };
        assert_eq!(both_ways(8.0), None);
        let error = both_ways(3.0).expect("it was broken off one way");
        assert!(error.contains("rank 0 received nothing after 3.0 of the 8.0 s in which rank 1"), "{error}");
    }
}
