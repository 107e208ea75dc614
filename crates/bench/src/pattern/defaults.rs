//! Defaults of experiments that differ between patterns.

use crate::axis::{self, Axis, AxisList, AxisRow, Key};
use crate::point::{Carrier, Length, MpiCall, MpiOperation, MpiSync, Operation};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The defaults of an experiment.
pub(crate) struct Defaults {
    /// How long a point is measured.
    pub(crate) length: Length,
    /// Depth of the send queue, in requests.
    pub(crate) tx_depth: u32,
    /// Depth of the receive queue, in requests.
    pub(crate) rx_depth: u32,
    /// Payload of a message.
    pub(crate) size_bytes: u64,
    /// The operation that carries a message.
    pub(crate) operation: Operation,
    /// Every Nth send asks for a completion; absent for half of the send queue's depth.
    pub(crate) signal_interval: Option<u32>,
    /// Thresholds, in ns, for which the share of samples above is reported.
    pub(crate) share_above_ns: &'static [u64],
    /// Steps per second at the lowest rate, for a pattern that is paced by a timer: they determine
    /// how long a point takes.
    pub(crate) paced_hz: Option<u64>,
    /// Whether receivers poll over shared memory. Over other endpoints they sleep.
    pub(crate) polls_shared_memory: bool,
    /// Axes that only this pattern has.
    pub(crate) axes: Vec<Axis>,
    /// Axes that its points do not have, because other axes determine them.
    pub(crate) made: &'static [&'static AxisRow],
}

impl Default for Defaults {
    /// The defaults of a pattern that times round trips.
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

/// Whether an axis is given and all its values satisfy `so`.
pub(crate) fn are_all<T: DeserializeOwned + Serialize>(
    given: &AxisList,
    key: Key<T>,
    so: impl Fn(T) -> bool,
) -> bool {
    given.find(key.row.name).is_some() && given.get(key).into_iter().all(so)
}

/// The axes of messages over MPI: the calls that send them, or what completes a put or a get.
pub(crate) fn over_mpi(given: &AxisList, call: MpiCall) -> Vec<Axis> {
    if given.get(axis::MPI_OPERATION).into_iter().any(MpiOperation::is_one_sided) {
        return vec![axis::MPI_SYNC.value(MpiSync::Flush)];
    }
    vec![axis::MPI_CALL.value(call), axis::MPI_OPERATION.value(MpiOperation::Send)]
}

/// The default number of outstanding messages of a stream.
pub(crate) fn window(carrier: Carrier) -> u32 {
    if carrier.is_mpi() { WINDOW_MPI } else { TX_DEPTH }
}

/// The iterations of perftest's latency tests.
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
/// Every send asks for its completion, so that both ranks time every message.
const SIGNAL_INTERVAL: u32 = 1;
/// 10 us: the threshold in the tables of Potter 2018.
const SHARE_ABOVE_NS: [u64; 1] = [10_000];
/// One message at a time.
pub(crate) const BURST: u32 = 1;
/// Messages per second that every device can carry.
pub(crate) const RATE_HZ: u64 = 10_000;
/// The duration of messages at a set rate: at ten times the default rate, a thousand of them are in
/// the slowest hundredth.
pub(crate) const DURATION_S: f64 = 1.0;
