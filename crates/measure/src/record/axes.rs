//! The values of the axes of a point.

use std::collections::BTreeMap;

use serde_json::Value;

/// The values of the axes that tell a point from its neighbours, by axis name.
///
/// Names are the same in plans, records and exports: `endpoint` (`verbs`, `tcp`, `udp`, `sctp`,
/// `unix_stream`, `unix_datagram`, `shmem`, `zeromq`, `nng`, `nanomsg`), of message libraries
/// `protocol` (`pub_sub`, `pair`), of sockets `family` (`ipv4`, `ipv6`) and where a plan varies
/// them `streams`, `socket_buffer_bytes`, `no_delay`, `busy_poll_us`, `congestion`, `offload`,
/// `zero_copy`, `ipoib_mode` (`found`, `datagram`, `connected`); of both `link_layer` (`any`,
/// `infiniband`, `ethernet`); of verbs `service` (`RC`, `UC`, `UD`), `operation` (`send`,
/// `send_imm`, `write`, `write_imm`, `read`, `fetch_add`, `compare_swap`), `size_bytes`,
/// `direction` (`uni`, `bi`), `poll` (`busy`, `event`), `inline`, `signal_interval`, `mtu_bytes`,
/// `signal_rate` (`native`, `SDR`, ...), `step` (the one call that is timed: `post_send`,
/// `poll_empty`, `register_cold`, ...), `batch` (calls between two stamps, or `step`: as suits it),
/// `burst` (messages that are posted without waiting for the peer), `pause_ns` (time between
/// posts), and where a plan varies them `queue_pairs`, `sge`, `post_list`, `outstanding_reads` (a
/// number or `max`), `setup` (`exchange`, `rdma_cm`), `memory` (`device`, `process`), `peers` (the
/// n of 1:n), `mesh` (`star`, `full`), `notify` (`completion`, `memory`), `pairs`, `traffic`
/// (`ping_pong`, `stream`), of pipelines `values`, `signal` (`random`, ...), `timer` (`tsc`,
/// `timerfd`), `sink` (`null`, `csv`, `human`), `inline_max_bytes` and where a plan varies it
/// `rx_filled` (`before`, `reading`), `link` (`none`, or the model of a link: `4X
/// FDR,latency=700ns`), `environment` (a name of the plan, `as_is` for none).
pub type Axes = BTreeMap<String, Value>;
