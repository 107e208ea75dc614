//! A model of the link under a port: when a message has left, when it arrives, and when its
//! acknowledgement is back.
//!
//! A port sends one message after another at the rate of the link, and receives in the same way: if
//! several senders share one port, each waits for those before it, as behind the last switch. A
//! message is cut into packets, each with its headers, and is under way for the latency in
//! addition. It begins to leave when it was fetched from memory, some time after the post, and when
//! the port is free; every later message of the port, of any queue pair, leaves behind it. Nothing
//! else between two ports is modelled: no losses, no congestion inside the fabric, no limit to the
//! buffers of switches.
//!
//! Time is the system's monotonic clock in 64ths of a nanosecond, because eight bytes on a fast
//! link take less than two nanoseconds, and errors must not add up.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use verbs::{LinkModel, LinkRate};

use crate::memory::layout::SharedPort;
use crate::sys::clock;

/// A point in time, or a time span, in 64ths of a nanosecond of `CLOCK_MONOTONIC`. It is good for
/// nine years of uptime.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticks(u64);

const PER_NS: u64 = 64;

impl Ticks {
    /// Later than any other time.
    pub(crate) const MAX: Self = Self(u64::MAX);

    pub(crate) const fn from_ns(ns: u64) -> Self {
        Self(ns * PER_NS)
    }

    /// Returns the present time.
    #[inline]
    pub(crate) fn now() -> Self {
        Self::from_ns(clock::now())
    }

    /// Returns the whole nanoseconds from `since` to this time; 0 if `since` is later.
    pub(crate) fn ns_since(self, since: Self) -> u64 {
        self.0.saturating_sub(since.0) / PER_NS
    }

    /// Returns the time after a span.
    pub(crate) fn after(self, span: Duration) -> Self {
        self.plus(Self::from_ns(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / PER_NS)))
    }

    fn plus(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A link model, ready for use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Option<LinkRate>,
    bits_per_s: Option<u64>,
    latency: Ticks,
    /// The latency in the opposite direction.
    back: Ticks,
    /// The time from post to fetch.
    fetch: Ticks,
    gap: Ticks,
    mtu_bytes: Option<u64>,
    header_bytes: u64,
    /// Whether messages have the headers of their operation; false if the model states the headers
    /// of a packet.
    has_extended: bool,
}

/// Extended transport headers of a message, in bytes (IBTA vol. 1, section 9.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Extended {
    /// In each packet.
    pub(crate) each: u64,
    /// In one packet, or in the request.
    pub(crate) once: u64,
}

impl Extended {
    /// A datagram's header (DETH), in its packet.
    pub(crate) const DATAGRAM: u64 = 8;
    /// The header of RDMA (RETH).
    pub(crate) const RDMA: u64 = 16;
    /// The header of an atomic (AtomicETH).
    pub(crate) const ATOMIC: u64 = 28;
    /// Immediate data (ImmDt).
    pub(crate) const IMMEDIATE: u64 = 4;
    /// The header of an acknowledgement, and of the first and the last packet of an answer (AETH).
    const ACKNOWLEDGE: u64 = 4;

    /// Returns the headers of an answer in `packets` packets.
    fn acknowledging(packets: u64) -> Self {
        Self { each: 0, once: Self::ACKNOWLEDGE * packets.min(2) }
    }
}

/// The times of a posted message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Schedule {
    /// It is fetched from memory, and its first bit leaves.
    pub(crate) leaves: Ticks,
    /// Its last bit has left.
    pub(crate) has_left: Ticks,
    /// Its last bit has arrived.
    pub(crate) is_there: Ticks,
    /// The acknowledgement has come back.
    pub(crate) is_acknowledged: Ticks,
}

/// The header bytes of a packet if the model states none: for RoCE v2 with IPv4 (preamble and gap
/// 20, Ethernet 14 and 4, IPv4 20, UDP 8, BTH 12, ICRC 4; Annex A17 of IBTA vol. 1), and for
/// InfiniBand inside a subnet (LRH 8, BTH 12, ICRC 4, VCRC 2; chapter 5).
const ROCE_HEADER_BYTES: u64 = 82;
const INFINIBAND_HEADER_BYTES: u64 = 26;

impl Link {
    pub(crate) fn new(model: &LinkModel, is_ethernet: bool) -> Self {
        let usual = if is_ethernet { ROCE_HEADER_BYTES } else { INFINIBAND_HEADER_BYTES };
        Self {
            rate: model.rate,
            bits_per_s: model.rate.map(|rate| rate.bits_per_s().max(1)),
            latency: Ticks::from_ns(model.latency_ns),
            back: Ticks::from_ns(model.back_ns.unwrap_or(model.latency_ns)),
            fetch: Ticks::from_ns(model.fetch_ns),
            gap: Ticks::from_ns(model.gap_ns),
            mtu_bytes: model.mtu_bytes.map(u64::from),
            header_bytes: model.header_bytes.map_or(usual, u64::from),
            has_extended: model.header_bytes.is_none(),
        }
    }

    /// Returns the number of packets of a message.
    fn packets(&self, payload_bytes: u64, path_mtu_bytes: u64) -> u64 {
        payload_bytes.div_ceil(self.mtu_bytes.unwrap_or(path_mtu_bytes)).max(1)
    }

    /// Returns the time that a message takes on the wire.
    fn serialization(&self, payload_bytes: u64, path_mtu_bytes: u64, extended: Extended) -> Ticks {
        let Some(bits_per_s) = self.bits_per_s else { return Ticks::default() };
        let packets = self.packets(payload_bytes, path_mtu_bytes);
        let extended = if self.has_extended { extended } else { Extended::default() };
        let bytes = payload_bytes + packets * (self.header_bytes + extended.each) + extended.once;
        let bits = u128::from(bytes) * 8;
        let ticks = bits * u128::from(PER_NS * 1_000_000_000) / u128::from(bits_per_s);
        Ticks(u64::try_from(ticks).unwrap_or(u64::MAX / 4))
    }

    /// Returns when a message can leave whose payload has to be fetched from memory.
    pub(crate) fn fetched(&self, posted: Ticks) -> Ticks {
        posted.plus(self.fetch)
    }

    /// Schedules a message from this process's port to a peer's; it can leave from `now` on.
    pub(crate) fn send(
        &self,
        own: &SharedPort,
        peer: &SharedPort,
        now: Ticks,
        payload_bytes: u64,
        extended: Extended,
        path_mtu_bytes: u64,
    ) -> Schedule {
        let wire = self.serialization(payload_bytes, path_mtu_bytes, extended);
        let (leaves, is_there) = self.transfer((own, peer), now, wire, self.latency);
        let acknowledgement =
            self.serialization(0, path_mtu_bytes, Extended::acknowledging(1)).plus(self.back);
        Schedule {
            leaves,
            has_left: leaves.plus(wire),
            is_there,
            is_acknowledged: is_there.plus(acknowledgement),
        }
    }

    /// Schedules a request that its peer answers with `payload_bytes` bytes: an RDMA Read or an
    /// atomic. `is_there` is when the answer arrives; the request has effect then.
    pub(crate) fn ask(
        &self,
        own: &SharedPort,
        peer: &SharedPort,
        now: Ticks,
        payload_bytes: u64,
        extended: Extended,
        path_mtu_bytes: u64,
    ) -> Schedule {
        let request = self.serialization(0, path_mtu_bytes, extended);
        let acknowledging = Extended::acknowledging(self.packets(payload_bytes, path_mtu_bytes));
        let answer = self.serialization(payload_bytes, path_mtu_bytes, acknowledging);
        let (leaves, asked) = self.transfer((own, peer), now, request, self.latency);
        let (_, is_there) = self.transfer((peer, own), asked, answer, self.back);
        Schedule { leaves, has_left: leaves.plus(request), is_there, is_acknowledged: is_there }
    }

    /// Occupies both ports for the time on the wire. Returns when the first bit leaves and when the
    /// last one has arrived.
    fn transfer(
        &self,
        (from, to): (&SharedPort, &SharedPort),
        now: Ticks,
        wire: Ticks,
        latency: Ticks,
    ) -> (Ticks, Ticks) {
        let begins = occupy(&from.sends_until.0, now, wire.max(self.gap));
        let arrives = occupy(&to.receives_until.0, begins.plus(latency), wire);
        (begins, arrives.plus(wire))
    }
}

/// Occupies a port for a time span from `now` on, or from when it is free; returns the start. A
/// value that a hostile peer writes there only costs time, at most [`PATIENCE`].
fn occupy(until: &AtomicU64, now: Ticks, span: Ticks) -> Ticks {
    let mut found = until.load(Relaxed);
    loop {
        let free = Ticks(found).min(now.plus(PATIENCE));
        let begins = now.max(free);
        match until.compare_exchange_weak(found, begins.plus(span).0, Relaxed, Relaxed) {
            Ok(_) => return begins,
            Err(other) => found = other,
        }
    }
}

/// How far ahead a port may be occupied: the send queues of a process hold minutes at most at the
/// slowest rates in use.
const PATIENCE: Ticks = Ticks::from_ns(600_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the headers of each packet.
    const PLAIN: Extended = Extended { each: 0, once: 0 };
    const START: Ticks = Ticks::from_ns(1_000_000);

    fn link(text: &str) -> Link {
        Link::new(&text.parse().unwrap(), false)
    }

    fn ns(since: Ticks, to: Ticks) -> u64 {
        to.ns_since(since)
    }

    #[test]
    fn one_message_takes_its_bits_and_the_latency() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        // 1000 B and 26 B of headers at 8 Gb/s: a byte per nanosecond.
        let schedule = link("4X SDR,latency=500ns").send(&a, &b, START, 1000, PLAIN, 4096);
        assert_eq!(ns(START, schedule.has_left), 1026);
        assert_eq!(ns(START, schedule.is_there), 1526);
        assert_eq!(ns(START, schedule.is_acknowledged), 1526 + 30 + 500);
    }

    #[test]
    fn every_packet_has_its_headers() {
        for (bytes, mtu, packets) in
            [(0, 4096, 1), (1, 4096, 1), (4096, 4096, 1), (4097, 4096, 2), (65536, 256, 256)]
        {
            let wire = link("8Gb/s,header=40").serialization(bytes, mtu, PLAIN);
            assert_eq!(wire, Ticks::from_ns(bytes + packets * 40), "{bytes} B");
        }
        assert_eq!(
            link("8Gb/s,header=40,mtu=1024").serialization(4096, 4096, PLAIN),
            Ticks::from_ns(4096 + 160)
        );
        assert_eq!(
            Link::new(&"8Gb/s".parse().unwrap(), true).serialization(4, 1024, PLAIN),
            Ticks::from_ns(86)
        );
    }

    #[test]
    fn operations_have_headers_of_their_own() {
        let taken = |model, extended, bytes| link(model).serialization(bytes, 1024, extended);
        let once = |once| Extended { each: 0, once };
        assert_eq!(taken("8Gb/s", once(Extended::RDMA), 4096), Ticks::from_ns(4096 + 4 * 26 + 16));
        let datagram = Extended { each: Extended::DATAGRAM, once: Extended::IMMEDIATE };
        assert_eq!(taken("8Gb/s", datagram, 1000), Ticks::from_ns(1000 + 26 + 8 + 4));
        assert_eq!(taken("8Gb/s,header=40", datagram, 1000), Ticks::from_ns(1040), "as the model says");
        let a = SharedPort::new();
        let b = SharedPort::new();
        let read = link("8Gb/s").ask(&a, &b, START, 4096, once(Extended::RDMA), 1024);
        assert_eq!(ns(START, read.is_there), 26 + 16 + 4096 + 4 * 26 + 2 * 4);
        let a = SharedPort::new();
        let b = SharedPort::new();
        let atomic = link("8Gb/s").ask(&a, &b, START, 8, once(Extended::ATOMIC), 1024);
        assert_eq!(ns(START, atomic.has_left), 26 + 28);
    }

    #[test]
    fn messages_follow_each_other_at_the_rate() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let fdr = link("4X FDR,latency=1us,header=0");
        let count = 1_000_000;
        let last = (0..count).map(|_| fdr.send(&a, &b, START, 8, PLAIN, 4096)).last().unwrap();
        let expected = 1e9 * 64.0 / 54_545_454_545.0 * f64::from(count);
        let took = ns(START, last.is_there) as f64 - 1000.0;
        assert!((took / expected - 1.0).abs() < 0.006, "{took} ns of {expected}");
    }

    #[test]
    fn a_gap_holds_small_messages_apart_and_costs_large_ones_nothing() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let link = link("8Gb/s,gap=100ns,header=0");
        let left: Vec<_> = [8, 8, 500, 8]
            .iter()
            .map(|n| ns(START, link.send(&a, &b, START, *n, PLAIN, 4096).has_left))
            .collect();
        assert_eq!(left, [8, 108, 700, 708]);
    }

    #[test]
    fn two_senders_share_the_port_where_they_meet() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let c = SharedPort::new();
        let link = link("8Gb/s,latency=50ns,header=0");
        let first = link.send(&a, &c, START, 1000, PLAIN, 4096);
        let second = link.send(&b, &c, START, 1000, PLAIN, 4096);
        assert_eq!((ns(START, first.is_there), ns(START, second.is_there)), (1050, 2050));
        assert_eq!(ns(START, second.has_left), 1000, "its own port was free");
        let other_way = link.send(&c, &a, START, 1000, PLAIN, 4096);
        assert_eq!(ns(START, other_way.is_there), 1050, "both directions at once");
    }

    #[test]
    fn a_read_goes_there_and_comes_back() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let link = link("8Gb/s,latency=300ns,header=20");
        let read = link.ask(&a, &b, START, 1000, PLAIN, 4096);
        assert_eq!(ns(START, read.is_there), 20 + 300 + 1020 + 300);
        // The peer's own messages wait behind its answer, which begins when the request arrives.
        assert_eq!(ns(START, link.send(&b, &a, START, 0, PLAIN, 4096).has_left), 320 + 1020 + 20);
    }

    #[test]
    fn what_comes_back_has_a_latency_of_its_own() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let link = link("8Gb/s,latency=300ns,back=900ns,header=20");
        let sent = link.send(&a, &b, START, 1000, PLAIN, 4096);
        assert_eq!(ns(START, sent.is_there), 1020 + 300);
        assert_eq!(ns(START, sent.is_acknowledged), 1020 + 300 + 20 + 900);
        let a = SharedPort::new();
        let b = SharedPort::new();
        let read = link.ask(&a, &b, START, 1000, PLAIN, 4096);
        assert_eq!(ns(START, read.is_there), 20 + 300 + 1020 + 900);
        assert_eq!(read.is_acknowledged, read.is_there);
    }

    #[test]
    fn a_message_leaves_when_it_has_been_fetched_and_the_port_is_free() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let link = link("8Gb/s,latency=300ns,fetch=100ns,header=0");
        let leaves = |posted_ns: u64, fetches: bool| {
            let posted = START.plus(Ticks::from_ns(posted_ns));
            let ready = if fetches { link.fetched(posted) } else { posted };
            let schedule = link.send(&a, &b, ready, 1000, PLAIN, 4096);
            assert_eq!(schedule.has_left, schedule.leaves.plus(Ticks::from_ns(1000)));
            assert_eq!(schedule.is_there, schedule.has_left.plus(Ticks::from_ns(300)));
            ns(START, schedule.leaves)
        };
        assert_eq!(leaves(0, true), 100);
        assert_eq!(leaves(500, true), 1100, "fetched meanwhile, but the port is busy");
        assert_eq!(leaves(600, false), 2100, "nothing to fetch, but behind the others");
        assert_eq!(leaves(5000, false), 5000);
    }

    #[test]
    fn without_a_rate_only_the_latency_counts() {
        let a = SharedPort::new();
        let b = SharedPort::new();
        let schedule = link("latency=2us").send(&a, &b, START, 1 << 31, PLAIN, 4096);
        assert_eq!((ns(START, schedule.has_left), ns(START, schedule.is_there)), (0, 2000));
        assert_eq!(ns(START, schedule.is_acknowledged), 4000);
    }

    #[test]
    fn what_stands_in_a_peers_port_is_believed_within_bounds() {
        let port = SharedPort::new();
        port.sends_until.0.store(u64::MAX, Relaxed);
        let schedule = link("8Gb/s").send(&port, &SharedPort::new(), START, 8, PLAIN, 4096);
        assert!(schedule.has_left <= START.plus(PATIENCE).plus(Ticks::from_ns(1000)));
    }
}
