//! `rdmascope pipeline`.

use crate::axis;
use crate::pattern::command::{Command, SettingFlag, Subject};
use crate::point::Carrier;

pub(super) const COMMAND: Command = Command {
    title: |_| "Samples at a fixed rate over {subject}",
    counts: "steps",
    subjects: &[Subject::over(
        Carrier::Verbs,
        "infiniband",
        "Queue pairs of a verbs device; the samples are written directly into registered memory",
    )
    .alias(&["verbs", "send"])],
    over: |carrier| !carrier.is_program(),
    without: |_, _| &[axis::OPERATION.row, axis::QUEUE_PAIRS.row, axis::SGE.row],
    settings: &[SettingFlag {
        key: "sink_dir",
        long: "sink-dir",
        value_name: "DIR",
        requires: "sink",
        help: "Directory for the files of --sink, on the host of each rank [default: the files are removed]",
    }],
    examples: "
  rdmascope pipeline shmem --local     8 values, 10,000 times per second
  rdmascope pipeline infiniband --local --rate 100,1k,10k,100k
                                       latency over the rate
  rdmascope pipeline infiniband --local -c UD --rate 25k --values 1,8,64
  rdmascope pipeline udp --local --rate 10k --timer timerfd
                                       a generator that sleeps between steps
  rdmascope pipeline zeromq --local --rate 100,1k,10k --protocol pair
                                       the same over a message library
  rdmascope pipeline shmem --local --rate 1M --sink csv --sink-dir logs
                                       a file with every sample of each rank
  rdmascope pipeline infiniband --listen 0.0.0.0
                                       on node7: waits, and prints the key
  rdmascope pipeline infiniband node7 --key KEY --rate 100k -D 5
                                       on another host, with a bound of clocks
  rdmascope run potter-2018-nodes --quick
                                       rates, sizes and endpoints, with a report",
    ..Command::new(
        "pipeline",
        "Measure samples at a fixed rate: how late each sample arrives, and how many steps are missed",
    )
};
