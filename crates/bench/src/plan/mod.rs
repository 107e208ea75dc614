//! The plan: what to measure, from a text or from flags, and its resolution to points.
//!
//! ```text
//! plan.toml ─► Plan ─► resolve ─► points, figures and the plan with every default filled in
//!    flags ───► Plan
//! ```
//!
//! A plan is TOML. Unknown keys are refused with the nearest known key, and every error names its
//! line:
//!
//! ```toml
//! name = "example"                     # letters, digits, '-' and '_'
//! title = "Latency of small messages"  # heading of the report
//! about = "What it is for."            # optional, a paragraph of the report
//! seed = 1                             # optional, kept in the record
//!
//! [[experiment]]
//! name = "latency"
//! pattern = "ping-pong"                # or another of `patterns/`, which shows an experiment
//! iterations = 1000                    # or: duration = "5s"
//! bytes_max = "64MiB"                  # fewer iterations for large messages
//! warmup = 100
//! launches = 2                         # starts all ranks again; each launch measures all points
//! repetitions = 3                      # or as many as needed, 3 to 30: within = "2.5 %", repetitions_max = 30
//! tx_depth = 128
//! rx_depth = 512
//! keep_samples = true
//! share_above_ns = [10000]
//! timeout = "60s"
//! [experiment.axes]                    # each one value or a list
//! service = ["RC", "UC"]
//! size_bytes = "4..8MiB"               # the powers of two from 4 to 8 MiB; or a list of sizes
//! mtu_bytes = 4096
//! [experiment.quick]                   # with --quick these override the settings above
//! iterations = 100
//! axes = { size_bytes = ["4", "4KiB"] }
//!
//! [[experiment]]                       # over verbs and sockets; points have only the axes of their endpoint
//! name = "layers"
//! pattern = "ping-pong"
//! [experiment.axes]
//! endpoint = ["verbs", "tcp", "udp"]   # or "sctp", "unix_stream", "unix_datagram", "shmem", "zeromq", "nng", "nanomsg",
//!                                      # "iceoryx2" (where it is built in)
//! family = ["ipv4", "ipv6"]            # of sockets
//! service = "RC"                       # of verbs
//!
//! [[environment]]                      # measure::conditions::Wanted
//! name = "tuned"                       # for the axis: environment = ["as_is", "tuned"]
//! tuned = "latency-performance"
//!
//! [[figure]]                           # measure::figure::Figure
//! kind = "lines"
//! title = "Latency over size"
//! experiments = ["latency"]
//! x = "size_bytes"
//! y = "latency.p50_ns"
//! series = ["service"]
//!
//! [[figure]]
//! kind = "histogram"                   # distributions, one panel for each series
//! title = "Latency of 4 B"
//! experiments = ["latency"]
//! series = ["service"]
//! where = { size_bytes = 4 }
//! kinds = ["rtt_half"]                 # overlaid; one-way points have one_way, completion, one_way_send
//! limits_ns = [0, 10000]               # optional: samples outside of the limits are only counted
//! log_counts = true                    # optional
//!
//! [[figure]]
//! kind = "lines"
//! title = "Latency of RC above UC"
//! experiments = ["latency"]
//! x = "size_bytes"
//! y = "latency.p50_ns"
//! series = ["service"]
//! above_first = true                   # each series less the first; difference = true: less the previous
//!
//! [[figure]]
//! kind = "surface"                     # over x and the axis of the series
//! title = "Latency over size and service"
//! experiments = ["latency"]
//! x = "size_bytes"
//! y = "latency.p50_ns"
//! series = ["service"]
//! marked = { y = "latency.share_above.10000", above = 0.1 }   # optional: printed if it is above a tenth
//!
//! [[figure]]
//! kind = "costs"                       # costs of the slower modes against the best
//! title = "Costs of the slower services"
//! level = "Verbs"                      # optional, of any figure: heading of a group
//! [[figure.row]]
//! what = "Ping-pong"
//! level = "Verbs"                      # optional
//! experiments = ["latency"]
//! where = { size_bytes = [4, 64] }     # in any figure, a list selects each of its values
//! modes = ["service"]                  # the axes whose values are the modes
//! each = ["size_bytes"]                # optional: compared for each value
//! y = "latency.p50_ns"
//! better = "less"                      # optional for times, throughputs and metrics
//! published = "x 1.2"                  # optional
//! ```
//!
//! `y` and `quantity` are paths into a point: a statistic of a latency (`latency.p50_ns` of the
//! main latency, `rtt.max_ns` of a kind, `ends.1.latency.p99_ns` of a rank),
//! `throughput.bytes_per_s`, `cpu.0.user_ns`, `counters.rnr_waits`, or `per_message.p50_ns`: the
//! latency of a round of one to n, divided by the n of the axis `peers`. `per_message` has
//! `min_ns`, `p10_ns`, `p50_ns`, `p90_ns`, `p99_ns`, `p999_ns`, `max_ns` and `mean_ns`.
//!
//! A finding is a claim of a paper, which the report answers with the numbers of the run. Each kind
//! computes one number, with a 95 % interval, from the points of its experiments; the claim is
//! shown if the whole interval lies in `holds`. `of`, `against` and `order` pick points by their
//! axes, and by two more keys: `experiment` and `quantity`.
//!
//! ```toml
//! [[finding]]                          # `of` relative to `against`: percent or (no %) a ratio
//! kind = "change"
//! claim = "Unreliable connections are faster"
//! published = "1269 to 1251 ns"        # optional, as is the next
//! source = "Potter 2018, busy polling"
//! experiments = ["latency"]
//! quantity = "latency.p50_ns"          # this is the default
//! of = { service = "UC" }
//! against = { service = "RC" }
//! each = ["size_bytes"]                # a verdict for each value
//! holds = "< 0 %"                      # or "<= 0.9", "> 5", "-5 % .. 5 %", "< -200 ns"
//!
//! [[finding]]                          # the number itself; shares in percent, times with a unit
//! kind = "value"
//! claim = "Few messages take longer than 10 us"
//! experiments = ["latency"]
//! quantity = "latency.share_above.10000"
//! where = { size_bytes = 4 }
//! each = ["service"]
//! holds = "< 1 %"
//!
//! [[finding]]                          # the largest over x relative to the least
//! kind = "flat"
//! claim = "Constant up to 256 B"
//! experiments = ["latency"]
//! each = ["service"]
//! x = "size_bytes"
//! from = 8                             # optional, as is to
//! to = 256
//! holds = "< 10 %"
//!
//! [[finding]]                          # the largest step between neighbouring x
//! kind = "step"
//! claim = "There is a steep step from 128 to 256 B"
//! experiments = ["latency"]
//! each = ["service"]
//! x = "size_bytes"
//! to = 1024
//! between = [128, 256]
//! holds = "> 20 %"
//!
//! [[finding]]                          # the first x at which `of` exceeds `against`
//! kind = "crossover"
//! claim = "From 256 B on UC takes longer than RC"
//! experiments = ["latency"]
//! of = { service = "UC" }
//! against = { service = "RC" }
//! x = "size_bytes"
//! holds = "<= 256"
//!
//! [[finding]]                          # the share of the x at which the series rise in this order
//! kind = "order"
//! claim = "UC is faster than RC at every size"
//! experiments = ["latency"]
//! order = [{ service = "UC" }, { service = "RC" }]
//! x = "size_bytes"                     # optional: without it there is one row
//! holds = ">= 90 %"
//!
//! [[finding]]                          # the median over x from `at` on, relative to before
//! kind = "falls"
//! claim = "Latencies vary less from the MTU on"
//! experiments = ["latency"]
//! quantity = "latency.spread_ns"       # p90 - p10
//! each = ["service"]
//! x = "size_bytes"
//! from = 512
//! to = 32768
//! at = 4096
//! holds = "< 0 %"
//!
//! [[finding]]                          # R^2 of the least-squares line over x
//! kind = "linear"
//! claim = "Latency rises linearly with the size"
//! experiments = ["latency"]
//! each = ["service"]
//! x = "size_bytes"
//! to = 1024
//! holds = ">= 0.9"
//!
//! [[finding]]                          # the x at which the quantity is least
//! kind = "argmin"
//! claim = "Messages of about 64 B are fastest"
//! experiments = ["latency"]
//! each = ["service"]
//! x = "size_bytes"
//! holds = "32 .. 128"
//! ```
//!
//! An expectation is a bound of the user's own. A run that does not keep it ends with another exit
//! status, and `--expect` adds more.
//!
//! ```toml
//! [[expect]]
//! quantity = "p99"                     # or a path, such as "latency.p99_ns"
//! bound = "<= 5 us"                    # or ">= 90 % of link", ">= 12 Gb/s", "<= 0.1 %"
//! experiments = ["latency"]            # optional, as is the next
//! where = { size_bytes = [4, 64] }
//! reason = "The controller has 20 us for its step"
//!
//! [[expect]]
//! quantity = "no_loss"                 # needs no bound
//! ```
//!
//! All keys except `name`, `title` and an experiment with `name` and `pattern` have defaults: see
//! `plan/defaults.rs`.

mod applications;
mod bundled;
mod check;
mod costs;
mod defaults;
mod environments;
mod expectations;
mod figures;
mod findings;
mod keys;
mod load;
mod model;
mod names;
pub mod offer;
mod overrides;
mod quantities;
mod read;
mod resolve;
mod selections;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use bundled::{Bundled, bundled};
pub use check::MTU_BYTES_MAX;
pub use model::{Experiment, Options, Plan};
#[cfg(test)]
pub(crate) use read::{EXPERIMENT_KEYS, PLAN_KEYS};
pub use resolve::{Resolved, resolve};
pub use settings::{IN_CODE, Places, Settings};
pub use write::text as written;
