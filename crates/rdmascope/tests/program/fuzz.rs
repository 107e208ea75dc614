//! Runs the bodies of the fuzz targets over seeds, kept inputs, and pseudo-random mutations of
//! both, the same in every run.

#[path = "../../../../fuzz/bodies.rs"]
mod bodies;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bench::plan::{Options, bundled, resolve};
use bench::process::frame::Greeting;
use bench::process::key::Key;
use bench::process::message::{CalibrationStep, Neighbour, Prepared, Reply, Request};
use bench::process::secure::{Initiator, Record};

use serde_json::Value;

use crate::support::{SMALL, Scratch};

/// Mutations of each corpus, unless the time ends earlier.
const ROUNDS: usize = 3000;
/// Time for the mutations of each corpus: a slow machine tries fewer.
const TIME: Duration = Duration::from_secs(4);

/// Directory of the fuzz targets, and of the inputs that are kept for them.
const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

/// Returns the inputs that fuzzing has found for a target: inputs with different paths through its
/// body, and inputs that once made it panic.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let files = |folder: &str| {
        let entries = fs::read_dir(Path::new(PLACE).join(folder).join(target)).into_iter().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    let corpus = files("corpus");
    assert!(!corpus.is_empty(), "fuzz/corpus/{target} has no files (cargo xtask fuzz {target} --keep)");
    [corpus, files("regressions")].concat()
}

/// Runs the body of a target over seeds and kept inputs, then over mutations of both, on a CPU that
/// no test measures on.
fn drive(target: &str, seeds: &[Vec<u8>], words: &[&str], body: impl Fn(&[u8])) {
    let _cpu = Scratch::on_one_cpu();
    let corpus = [seeds, &kept(target)].concat();
    corpus.iter().for_each(|input| body(input));
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, &corpus, words, &mut random);
        }
        body(&input);
        if start.elapsed() > TIME {
            return;
        }
    }
}

/// Changes an input in one place.
fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], random: &mut Random) {
    let from = random.below(input.len() + 1);
    let to = (from + random.below(16)).min(input.len());
    let replacement: Vec<u8> = match random.below(6) {
        0 => Vec::new(),
        1 => (0..random.below(8)).map(|_| random.next() as u8).collect(),
        2 => input[from..to].repeat(2),
        3 | 4 => words[random.below(words.len())].into(),
        _ => {
            let other = &corpus[random.below(corpus.len())];
            let start = random.below(other.len() + 1);
            other[start..(start + random.below(64)).min(other.len())].into()
        }
    };
    input.splice(from..to, replacement);
}

/// xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-1e308",
    "0.5",
    "NaN",
    "inf",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
];

#[test]
fn every_target_has_inputs() {
    let names = |folder: &str| {
        let entries = fs::read_dir(Path::new(PLACE).join(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.iter().map(|path| path.file_stem().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let targets = names("fuzz_targets");
    assert_eq!(names("corpus"), targets);
    for target in targets {
        kept(target.to_str().unwrap());
    }
}

#[test]
fn logs_are_read_or_refused_with_their_lines() {
    let corpus = [
        "# secs,nsecs,offset,sequence,signal0\n1541,123456789,0.000002500,0,1.0\n1541,5,nan,2,-0.5\n",
        "# seconds.nanoseconds\n1438959964.162102394+1.5e-06(6)\t3.489760\t-1.882725\n1438959965 1\n",
        "0_RC-8-100000-250000_output.csv\n",
        "1\t2\t-0.5\t9\t1e300\nnan,nan,nan,1\n",
    ];
    let corpus: Vec<Vec<u8>> = corpus.iter().map(|text| text.as_bytes().to_vec()).collect();
    let words = [
        ",",
        "\t",
        "\n",
        "nan",
        "inf",
        "1e999",
        "-",
        "+",
        ".",
        "(",
        ")",
        "#",
        "_input.csv",
        "\u{1b}[31m",
        "\u{e9}",
    ];
    drive("villas", &corpus, &[&words[..], &NUMBERS].concat(), bodies::villas);
}

#[test]
fn outputs_of_programs() {
    let corpus = [
        "^t=(?<value>\\S+)$\n^well$\nt=1.5\nwell\n",
        "^Loop time of (?<value>\\S+) on (?<ranks>\\d+) procs\n\nLoop time of 0.07 on 2 procs for 100 steps\n",
        "(?<value>.*)\n(?<ranks>.)\n1\u{1b}[31m2\u{0}\r\n\u{e9}\n",
    ];
    let corpus: Vec<Vec<u8>> = corpus.iter().map(|text| text.as_bytes().to_vec()).collect();
    let words = [
        "(?<value>",
        "(?<ranks>",
        "\\S+",
        "\\d+",
        ")",
        ".*",
        "^",
        "$",
        "\n",
        "|",
        "[",
        "\u{1b}",
        "\u{0}",
        "\r",
    ];
    drive("programs", &corpus, &[&words[..], &NUMBERS].concat(), bodies::programs);
}

/// Records of a transfer, each in a block: they may try to write outside of the target directory.
#[test]
fn sources_of_files() {
    let named = |kind: u8, parent: u8, name: &str, more: &[u8]| {
        let of_name = (name.len() as u16).to_le_bytes();
        let attributes = [&0o755_u16.to_le_bytes()[..], &7_u64.to_le_bytes(), &7_u32.to_le_bytes()].concat();
        [&[kind, parent, 0, 0, 0][..], &attributes, &of_name, name.as_bytes(), more].concat()
    };
    let link =
        |name: &str, to: &str| named(4, 0, name, &[&(to.len() as u16).to_le_bytes(), to.as_bytes()].concat());
    let file = |parent: u8, name: &str| {
        let data = [&4_u64.to_le_bytes()[..], &[0; 8], &[5, 4, 0, 0, 0], b"dead", &[7, 1], &[0; 16]].concat();
        named(2, parent, name, &data)
    };
    let blocks = |records: &[Vec<u8>]| {
        let of = |record: &Vec<u8>| [&[0][..], &(record.len() as u16).to_le_bytes(), record].concat();
        records.iter().map(of).collect::<Vec<_>>().concat()
    };
    let bye = vec![8];
    let corpus = [
        blocks(&[named(1, 0, "a", &[]), file(1, "c"), bye.clone()]),
        blocks(&[link("x", "../canary"), named(1, 0, "x", &[]), file(1, "a"), bye.clone()]),
        blocks(&[named(1, 0, "out", &[]), file(1, "a"), bye.clone()]),
        blocks(&[named(3, 0, "hard", &[0, 0, 0, 8, 0, 0, 0, 0]), file(0, "hard"), bye.clone()]),
        blocks(&[named(1, 0, "../canary", &[]), file(1, "a"), bye.clone()]),
        blocks(&[file(0, "../canary/a"), file(0, ".."), bye]),
    ];
    let words = ["..", "../canary", "/", "canary", "out", "hard", "a", "b", "\u{0}", "\u{1}", "\u{8}"];
    drive("transfer", &corpus, &words, bodies::transfer);
}

#[test]
fn plans() {
    let corpus: Vec<Vec<u8>> =
        bundled().iter().map(|plan| plan.text).chain([SMALL]).map(Into::into).collect();
    let words = [
        "=",
        "[",
        "]",
        "\n",
        "[[experiment]]\n",
        "[experiment.axes]\n",
        "[experiment.quick]\n",
        "[[figure]]\n",
        "[[application]]\n",
        "[[application.metric]]\n",
        "[[mode]]\n",
        "{ranks}",
        "\"4..8MiB\"",
        "\"..\"",
        "size_bytes = ",
        "duration = ",
        "\"1e300s\"",
        "\"UD\"",
        "pattern = \"stream\"\n",
        "inline = [true]\n",
        "repetitions = ",
        "\u{1b}[31m",
        "\u{0}",
    ];
    drive("plan", &corpus, &[&words[..], &NUMBERS].concat(), bodies::plan);
}

#[test]
fn settings() {
    let corpus = [
        "iterations=100",
        "experiment.latency.size_bytes=64,4KiB",
        "duration=5s\nservice=RC,UD",
        "size_bytes=4..4KiB",
        "experiment.throughput.direction=bi",
        "share_above_ns=10,20",
    ]
    .map(Into::into);
    let words =
        ["=", ",", "..", "experiment.", ".", "UD", "MiB", "ms", "\u{1b}", "inline", "true", "mtu_bytes="];
    drive("settings", &corpus, &[&words[..], &NUMBERS].concat(), bodies::settings);
}

#[test]
fn frames() {
    let point = resolve(&bundled()[0].plan().unwrap(), &Options::default()).unwrap().points.remove(0);
    let requests = [
        Request::Hello { rank: 0, ranks: 2 },
        Request::Prepare(Box::new(point)),
        Request::Connect {
            ranks: vec![Neighbour { address: serde_json::json!({ "qp": 7 }), way: Value::Null }],
        },
        Request::Calibrate(CalibrationStep::Offer),
        Request::Quit,
    ];
    let replies = [
        Reply::Done(Box::default()),
        Reply::Failed { error: "out of luck".to_owned() },
        Reply::Prepared(Prepared { address: serde_json::json!([1, 2]), ways: vec![Value::Null] }),
    ];
    let frames = requests.iter().map(Request::to_frame).chain(replies.map(Reply::to_frame));
    let mut all = [&[3][..], Greeting::ours().to_line().as_bytes()].concat();
    let mut corpus = vec![all.clone()];
    for mut frame in frames {
        frame.samples = vec![1, u64::MAX];
        frame.write(&mut all).unwrap();
        corpus.push(all.clone());
    }
    let words = ["rdmascope ", " protocol ", "\n", "\u{5}", "\"", "{", "}", "[", ",", ":"];
    drive("frames", &corpus, &[&words[..], &NUMBERS].concat(), bodies::frames);
}

#[test]
fn channel() {
    let key = Key::generate().unwrap();
    let mut initiator = Initiator::new(&key);
    let greeting = initiator.outgoing();
    initiator.take(&greeting).unwrap();
    let message = initiator.outgoing();
    let mut sealed = Vec::new();
    let (_, mut sender) = bodies::met(&key);
    sender.sealer.seal(&Record::Words("stopped by SIGINT".to_owned()), &mut sealed);
    let corpus = [
        [&[7][..], &greeting].concat(),
        [&[1], &greeting[..], &message].concat(),
        [&[50], &greeting[..], &message, &sealed].concat(),
        [&[60], &greeting[..], &[0, 0]].concat(),
        [&[2], &sealed[..]].concat(),
    ];
    let words = ["rdmascope ", " protocol ", "1\n", "\n", "\u{0}", "\u{0}0", "0.1.0", "\r\n", "\u{1b}"];
    drive("channel", &corpus, &[&words[..], &NUMBERS].concat(), bodies::channel);
}

#[test]
fn datagrams_of_the_connection_manager() {
    let lines = include_str!("../../../cm/tests/golden/linux-6.1.txt").lines();
    let digits = lines.map(|line| line.split_once(' ').unwrap().1);
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mads: Vec<Vec<u8>> = digits.map(|digits| digits.as_bytes().chunks(2).map(octet).collect()).collect();
    // The message alone, after the byte that chooses it, and private data alone.
    let messages = mads.iter().map(|mad| [&[mad[17] - 0x10], &mad[24..]].concat());
    let corpus: Vec<_> = mads.iter().cloned().chain(messages).chain([mads[0][24 + 140..].to_vec()]).collect();
    let words =
        ["\u{1}\u{7}\u{2}\u{3}", "\u{0}", "\u{0}@", "\u{0}`", "\u{7f}", "\u{0}\u{0}\u{0}\u{0}", "\u{10}"];
    drive("cm", &corpus, &words, bodies::cm);
}

#[test]
fn programs_with_connection_managers() {
    let words = [
        "\u{0}",
        "\u{7}",
        "\u{7}\u{f}\u{1}\u{1f}\u{1}",
        "\u{0}\u{0}\u{0}\u{0}",
        "\u{10}\u{c}\u{0}",
        "\u{1f}\u{0}",
    ];
    drive("manager", &bodies::manager::seeds::all(), &words, bodies::manager);
}

#[test]
fn records() {
    let corpus = measured();
    let words = [
        "\"status\":\"not_measured\",\"reason\":\"x\"",
        "\"status\":\"failed\",\"error\":\"\u{1b}[2J\"",
        "\"unstable\":\"y\",",
        "\"samples\":\"../../x\"",
        "\"size_bytes\":",
        "\"p50_ns\":",
        ",",
        "{",
        "}",
        "\n",
        "\"",
        "\\u001b",
        "</script>",
    ];
    let scratch = Scratch::new();
    drive("record", &corpus, &[&words[..], &NUMBERS].concat(), |data| bodies::record(scratch.path(), data));
}

/// Records of a plan and of a command, as the target's body splits them.
fn measured() -> [Vec<u8>; 2] {
    let scratch = Scratch::alone();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    scratch.succeed(&["lat", "send", "--local", "-D", "0.05", "--out", "histogram"]);
    let read = |path: &str| fs::read(scratch.at(path)).unwrap();
    ["record", "histogram"].map(|name| {
        [read(&format!("{name}/run.json")), vec![0], read(&format!("{name}/points.jsonl"))].concat()
    })
}

#[test]
fn units() {
    let corpus = ["64", "4KiB", "8 MB", "4..8MiB", "1TiB", "200ms", "1h", "1.5s", "Gb/s", "5us", "2 min"]
        .map(Into::into);
    let words = [
        "..",
        ".",
        " ",
        "Ki",
        "B",
        "s",
        "m",
        "h",
        "d",
        "ns",
        "us",
        "µs",
        "e",
        "+",
        "_",
        "18446744073709551615",
    ];
    drive("units", &corpus, &words, bodies::units);
}
