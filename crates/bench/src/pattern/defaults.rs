//! What experiments are where a plan does not say, as far as patterns differ in that.

use crate::axis::{self, Axis, AxisList, AxisRow, Key};
use crate::point::{Carrier, Length, MpiCall, MpiOperation, MpiSync, Operation};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What an experiment is where its plan does not say.
pub(crate) struct Defaults {
    /// How long a point is measured.
    pub(crate) length: Length,
    /// Depth of the send queue, in requests.
    pub(crate) tx_depth: u32,
    /// Depth of the receive queue, in requests.
    pub(crate) rx_depth: u32,
    /// Payload of a message.
    pub(crate) size_bytes: u64,
    /// Operation that carries it.
    pub(crate) operation: Operation,
    /// Every how many sends one asks for a completion; absent for half of the send queue's depth.
    pub(crate) signal_interval: Option<u32>,
    /// Thresholds, in ns, for which the share of samples above is reported.
    pub(crate) share_above_ns: &'static [u64],
    /// Steps in a second at the least rate, where they are due by themselves: how long a point
    /// takes.
    pub(crate) paced_hz: Option<u64>,
    /// Whether receivers of shared memory poll: those of other messages sleep.
    pub(crate) polls_shared_memory: bool,
    /// Axes of its own.
    pub(crate) axes: Vec<Axis>,
    /// Axes that its points do not have, because others make what these say.
    pub(crate) made: &'static [&'static AxisRow],
}

impl Default for Defaults {
    /// Round trips.
    fn default() -> Self {
        Self {
            length: Length::Iterations(ITERATIONS),
            tx_depth: TX_DEPTH,
            rx_depth: RX_DEPTH,
            size_bytes: SIZE_BYTES,
            operation: Operation::Send,
            signal_interval: Some(SIGNAL_INTERVAL),
            share_above_ns: &SHARE_ABOVE_NS,
            paced_hz: None,
            polls_shared_memory: false,
            axes: Vec::new(),
            made: &[],
        }
    }
}

/// Whether an axis is given, and its values are all so.
pub(crate) fn are_all<T: DeserializeOwned + Serialize>(
    given: &AxisList,
    key: Key<T>,
    so: impl Fn(T) -> bool,
) -> bool {
    given.find(key.row.name).is_some() && given.get(key).into_iter().all(so)
}

/// How MPI carries messages: by which calls they are sent, or what completes a put or a get.
pub(crate) fn over_mpi(given: &AxisList, call: MpiCall) -> Vec<Axis> {
    if given.get(axis::MPI_OPERATION).into_iter().any(MpiOperation::is_one_sided) {
        return vec![axis::MPI_SYNC.value(MpiSync::Flush)];
    }
    vec![axis::MPI_CALL.value(call), axis::MPI_OPERATION.value(MpiOperation::Send)]
}

/// Messages of a flood that are under way.
pub(crate) fn window(carrier: Carrier) -> u32 {
    if carrier.is_mpi() { WINDOW_MPI } else { TX_DEPTH }
}

/// perftest's latency tests.
pub(crate) const ITERATIONS: u64 = 1000;
/// perftest's send queue.
const TX_DEPTH: u32 = 128;
/// The window of the OSU benchmarks.
const WINDOW_MPI: u32 = 64;
/// perftest's receive queue.
const RX_DEPTH: u32 = 512;
/// perftest's size for latency.
const SIZE_BYTES: u64 = 2;
/// perftest's size for bandwidth.
pub(crate) const SIZE_BYTES_STREAM: u64 = 65536;
/// Every send asks for its completion, so that both ends time every message.
const SIGNAL_INTERVAL: u32 = 1;
/// 10 us: the threshold of the thesis's tables (V8).
const SHARE_ABOVE_NS: [u64; 1] = [10_000];
/// A message waits for no other.
pub(crate) const BURST: u32 = 1;
/// Messages in a second that every device keeps up with.
pub(crate) const RATE_HZ: u64 = 10_000;
/// Of messages at a set rate: long enough for a thousand of them in the slowest hundredth at ten
/// times the default rate.
pub(crate) const DURATION_S: f64 = 1.0;
