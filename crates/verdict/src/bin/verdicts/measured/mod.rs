//! Fleets that the program measures (`--fleets`): from the start of the agents to the record and
//! the exit status. All hosts are on this machine, and what is slow is slow by a known share.

mod judged;
mod world;

use std::fs;
use std::path::Path;

use measure::random::Random;

use self::judged::{Culprit, Kind, examined, judge};
use self::world::{Fleet, NAMESPACES, SOFTDEV, World};
use crate::settings::Settings;
use crate::{Answer, Row, fleet};

/// Where fleets have their directories, below the current directory. That of a wrong verdict stays.
const DIRECTORIES: &str = "target/verdicts";

/// A fleet, and what is true of it.
struct Case {
    world: &'static World,
    hosts: usize,
    /// The number of hosts of a leaf switch. If there are several, they are groups.
    leaf: usize,
    name: &'static str,
    /// Shell commands that make something slow; see the script of the world.
    slow: &'static str,
    culprit: Option<Culprit>,
}

impl Case {
    const fn new(
        world: &'static World,
        [hosts, leaf]: [usize; 2],
        name: &'static str,
        slow: &'static str,
        culprit: Option<Culprit>,
    ) -> Self {
        Self { world, hosts, leaf, name, slow, culprit }
    }
}

/// The numbers of hosts, and of those of a leaf switch.
const FOUR: [usize; 2] = [4, 4];
const EIGHT: [usize; 2] = [8, 8];
const FOUR_LEAVES: [usize; 2] = [8, 2];
const TWO_LEAVES: [usize; 2] = [8, 4];

/// A link of 3 Gb/s instead of 4.
const SLOW_LINK: &str = "[ $host != h$A ] || link='3Gb/s,latency=20us'";
/// Messages from the host are under way for 40 us instead of 20: half a round trip is 30 us.
const LATE_LINK: &str = "[ $host != h$A ] || link='4Gb/s,latency=40us'";

/// All paths that leave or enter a leaf switch.
const SLOW_UPLINK: &str = "slow switches up$(leaf $A); slow switches down$(leaf $A)";

static CASES: [Case; 18] = [
    Case::new(&SOFTDEV, FOUR, "none", "", None),
    Case::new(&SOFTDEV, FOUR, "send", SLOW_LINK, SLOW_SENDER),
    Case::new(&SOFTDEV, FOUR, "latency", LATE_LINK, LATENCY),
    Case::new(&SOFTDEV, EIGHT, "none", "", None),
    Case::new(&SOFTDEV, EIGHT, "send", SLOW_LINK, SLOW_SENDER),
    Case::new(&SOFTDEV, EIGHT, "latency", LATE_LINK, LATENCY),
    Case::new(&NAMESPACES, FOUR, "none", "", None),
    Case::new(&NAMESPACES, FOUR, "send", "slow h$A link0", limited(Kind::Host, SENDS)),
    Case::new(&NAMESPACES, FOUR, "direction", "slow_path $A $B", limited(Kind::Pair, SENDS)),
    Case::new(&NAMESPACES, EIGHT, "none", "", None),
    Case::new(&NAMESPACES, EIGHT, "send", "slow h$A link0", limited(Kind::Host, SENDS)),
    Case::new(&NAMESPACES, EIGHT, "receive", "slow switches port$A", limited(Kind::Host, RECEIVES)),
    Case::new(&NAMESPACES, EIGHT, "both", "slow h$A link0; slow switches port$A", limited(Kind::Host, BOTH)),
    Case::new(&NAMESPACES, EIGHT, "direction", "slow_path $A $B", limited(Kind::Pair, SENDS)),
    Case::new(&NAMESPACES, EIGHT, "pair", "slow_path $A $B; slow_path $B $A", limited(Kind::Pair, BOTH)),
    Case::new(&NAMESPACES, FOUR_LEAVES, "group", SLOW_UPLINK, limited(Kind::Group, BOTH)),
    Case::new(
        &NAMESPACES,
        FOUR_LEAVES,
        "group sends",
        "slow switches up$(leaf $A)",
        limited(Kind::Group, SENDS),
    ),
    // A slow path between two groups cannot be told from a long one.
    Case::new(&NAMESPACES, TWO_LEAVES, "two groups", SLOW_UPLINK, None),
];

/// In which ways a culprit is slow: whether it sends, and receives, slowly.
const SENDS: [bool; 2] = [true, false];
const RECEIVES: [bool; 2] = [false, true];
const BOTH: [bool; 2] = [true, true];

/// 100 Mb/s instead of 400, less what bursts hide.
const fn limited(kind: Kind, ways: [bool; 2]) -> Option<Culprit> {
    Some(Culprit { quantity: "throughput", kind, ways, deficit: 0.68 })
}

/// 3 Gb/s instead of 4: the model slows what its host sends.
const SLOW_SENDER: Option<Culprit> =
    Some(Culprit { quantity: "throughput", kind: Kind::Host, ways: SENDS, deficit: 0.23 });
/// 30 us instead of 20, and what the software adds to both.
const LATENCY: Option<Culprit> =
    Some(Culprit { quantity: "latency", kind: Kind::Host, ways: SENDS, deficit: 0.3 });

/// A row for each case.
pub(crate) fn rows(settings: &Settings) -> Vec<Row> {
    let row = |case: &'static Case| {
        let Case { world, hosts, name, culprit, .. } = case;
        let program = settings.program.clone();
        Row {
            name: format!("{} n={hosts}: {name}", world.name),
            bar: Some(if *hosts == 4 && culprit.is_some() { 0.03 } else { 0.01 }),
            trials: settings.fleets.unwrap_or(0),
            trial: Box::new(move |seed| trial(case, &program, seed)),
        }
    };
    CASES.iter().map(row).collect()
}

/// Measures one fleet, and judges it.
fn trial(case: &'static Case, program: &Path, seed: u64) -> Answer {
    let Case { world, hosts, leaf, slow, .. } = *case;
    let chosen = fleet::two(hosts, &mut Random(seed));
    let directory = Path::new(DIRECTORIES).join(format!("{seed:016x}"));
    let fleet = Fleet { world, hosts, leaf, slow, chosen };
    let answer = match fleet.measure(program, &directory) {
        Err(why) => Answer::NotMeasured(why),
        Ok(ended) => match examined(&ended.record) {
            Ok(examined) => judge(case.culprit.as_ref(), (chosen, leaf), &examined, ended.status.code()),
            Err(why) => Answer::Wrong(format!("{}: {}: {why}", ended.status, ended.last_line)),
        },
    };
    if let Answer::Wrong(text) = answer {
        let text = format!("{}: {text}", directory.display());
        // The row shows the first one alone.
        eprintln!("verdicts: {text}");
        return Answer::Wrong(text);
    }
    // A directory that stays does no harm.
    let _ = fs::remove_dir_all(&directory);
    answer
}
