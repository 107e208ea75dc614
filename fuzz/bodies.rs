//! The bodies of the fuzz targets: one function for each parser of untrusted bytes.
//!
//! `fuzz_targets/` drives these functions with libFuzzer. In every run of the tests,
//! `crates/rdmascope/tests/program/fuzz.rs` drives them with a small corpus and pseudo-random
//! mutations. No input may make a function panic; each function documents what it asserts.
#![allow(dead_code, reason = "each target uses only one function")]

#[path = "manager/mod.rs"]
pub(crate) mod manager;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bench::PATTERNS;
use bench::application::{Application, metrics_of};
use bench::plan::{Options, Plan, bundled, resolve};
use bench::point::{Carrier, Service};
use bench::process::frame::{Decoder, Frame, Greeting};
use bench::process::key::Key;
use bench::process::message::{Reply, Request};
use bench::process::secure::{Channel, Initiator, Record, Responder};
use bench::transfer::receive_foreign;
use cm::wire::{IpHeader, Mad, Message};
use measure::figure::Unit;
use measure::store::RunReader;
use measure::{units, villas};
use report::Points;
use serde_json::json;

/// Parses the text of a plan. It is refused with an error of one line, or resolved to valid points.
pub(crate) fn plan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = Plan::parse(text, "fuzz.toml", Path::new("/nonexistent"));
    let plan = match parsed {
        Ok(plan) => plan,
        Err(error) => return sentence(&error.to_string()),
    };
    for quick in [false, true] {
        if let Err(error) = resolved(&plan, &Options { quick, set: Vec::new() }) {
            sentence(&error);
        }
    }
}

/// Receives files from an untrusted sender. Nothing outside of the target directory is created,
/// changed or removed.
pub(crate) fn transfer(data: &[u8]) {
    thread_local! {
        static PLACE: tempfile::TempDir = tempfile::tempdir().unwrap();
    }
    PLACE.with(|place| {
        let to = place.path().join("to");
        let canary = place.path().join("canary");
        plant(&to, &canary).expect("the temporary directory is writable");
        let before = state(place.path(), &to);
        let _ = receive_foreign(data, &to);
        assert_eq!(state(place.path(), &to), before);
        fs::remove_dir_all(&to).unwrap();
    });
}

/// Creates a target directory with links that lead out of it, and the files outside of it that must
/// not change.
fn plant(to: &Path, canary: &Path) -> std::io::Result<()> {
    if !canary.exists() {
        fs::create_dir_all(canary.join("deep"))?;
        fs::write(canary.join("a"), "alive")?;
        fs::write(canary.join("deep/b"), "alive")?;
    }
    fs::create_dir_all(to.join("a"))?;
    symlink("../canary", to.join("out"))?;
    symlink("../../canary/a", to.join("a/b"))?;
    symlink("../canary/a", to.join(".b.rdmascope-0123456789abcdef"))?;
    fs::hard_link(canary.join("a"), to.join(".hard.rdmascope-0123456789abcdef"))
}

/// Returns the entries of a directory except `but`: path, mode, modification time and contents.
fn state(at: &Path, but: &Path) -> Vec<(PathBuf, u32, i64, i64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries.into_iter().filter(|path| path != but) {
        let found = fs::symlink_metadata(&path).unwrap();
        let contents = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        all.push((path.clone(), found.mode(), found.mtime(), found.mtime_nsec(), contents));
        if found.is_dir() {
            all.extend(state(&path, but));
        }
    }
    all
}

/// Resolves a bundled plan with `--set` options. Errors may quote the text unchanged.
pub(crate) fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    static PLAN: LazyLock<Plan> = LazyLock::new(|| bundled()[0].plan().unwrap());
    let set = text.lines().map(str::to_owned).collect();
    let _ = resolved(&PLAN, &Options { quick: true, set });
}

/// Resolves a plan and checks that its points are valid, or returns the error.
fn resolved(plan: &Plan, options: &Options) -> Result<(), String> {
    let resolved = resolve(plan, options).map_err(|error| error.to_string())?;
    assert!(!resolved.points.is_empty() && resolved.points.len() <= 100_000);
    for (point, id) in resolved.points.iter().zip(0..) {
        assert_eq!(point.id, id);
        let may_be_empty = matches!(point.message.endpoint, Carrier::Mpi | Carrier::Verbs);
        assert!(point.message.size_bytes > 0 || may_be_empty);
        assert!(point.message.tx_depth > 0 && point.message.rx_depth > 0);
        assert!(point.timeout_s > 0.0 && point.timeout_s.is_finite());
        let datagram_bytes_max = match (point.message.endpoint, point.message.service) {
            (Carrier::Verbs, Service::Ud) => u64::from(point.message.mtu_bytes.unwrap_or(4096)),
            (Carrier::Udp, _) => 65_527,
            _ => u64::MAX,
        };
        assert!(point.message.size_bytes <= datagram_bytes_max);
    }
    let text = serde_json::to_string(&resolved.plan).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), resolved.plan);
    Ok(())
}

/// Checks that the text of an error is one line without control characters.
fn sentence(text: &str) {
    assert!(!text.is_empty());
    assert!(!text.chars().any(|c| c.is_control()), "{text:?}");
}

/// Decodes a greeting and frames. The result does not depend on how the stream is cut into pieces.
/// A decoded message is the same after it is encoded and decoded again.
pub(crate) fn frames(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let whole = decode(bytes, bytes.len().max(1));
    let pieces = decode(bytes, usize::from(piece).max(1));
    assert_eq!(whole, pieces);
    for frame in whole.1 {
        if let Ok(request) = Request::from_frame(&frame) {
            assert_eq!(Request::from_frame(&request.to_frame()).unwrap(), request);
        }
        if let Ok(reply) = Reply::from_frame(frame) {
            let _ = reply.to_frame();
        }
    }
}

/// Returns the greeting, the frames, and the error that ended the stream.
fn decode(bytes: &[u8], piece: usize) -> (Option<String>, Vec<Frame>, Option<String>) {
    let mut decoder = Decoder::default();
    let mut greeting = None;
    let mut frames = Vec::new();
    for chunk in bytes.chunks(piece) {
        decoder.push(chunk);
        if greeting.is_none() {
            match decoder.greeting() {
                Ok(found) => greeting = found.map(|greeting| greeting.to_line()),
                Err(_) => return (None, frames, Some("no greeting".to_owned())),
            }
        }
        while greeting.is_some() {
            match decoder.frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (greeting, frames, Some("a broken frame".to_owned())),
            }
        }
    }
    assert!(decoder.unread_bytes() <= bytes.len());
    (greeting, frames, None)
}

/// Passes bytes of an unauthenticated peer to a server, to a client, and into a channel between the
/// two. The result does not depend on how they are cut into pieces. They never authenticate, a
/// server sends nothing before a greeting, and a channel never returns them as a record.
pub(crate) fn channel(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let key: Key = "abcdefghijklmnopqrstuvwxyz".parse().unwrap();
    let received = [bytes.len().max(1), usize::from(piece).max(1)].map(|piece| {
        let mut responder = Responder::new(&key);
        let (open, at_server) =
            take(bytes, piece, |bytes| responder.take(bytes).map(|channel| channel.is_some()));
        assert!(!open, "the server accepts an unauthenticated client");
        let answer = responder.outgoing();
        let greeting = Greeting::ours().to_line();
        assert!(answer.is_empty() || answer.starts_with(greeting.as_bytes()));
        assert!(answer.is_empty() || bytes.trim_ascii_start().starts_with(b"rdmascope "));
        let mut initiator = Initiator::new(&key);
        let (open, at_client) =
            take(bytes, piece, |bytes| initiator.take(bytes).map(|channel| channel.is_some()));
        assert!(!open, "the client accepts an unauthenticated server");
        (at_server, answer.len(), at_client, initiator.outgoing().len())
    });
    assert_eq!(received[0], received[1]);
    let (mut client, mut server) = met(&key);
    let mut wire = Vec::new();
    client.sealer.seal(&Record::Stream(bytes.to_vec()), &mut wire);
    server.opener.push(&wire);
    let mut opened = Vec::new();
    while let Some(Record::Stream(piece)) = server.opener.next().unwrap() {
        opened.extend(piece);
    }
    assert_eq!(opened, bytes);
    for channel in [&mut client, &mut server] {
        channel.opener.push(bytes);
        assert!(!matches!(channel.opener.next(), Ok(Some(_))), "the channel accepts unauthenticated bytes");
    }
}

/// Passes bytes in pieces of this size. Returns whether the channel was opened, and whether the
/// bytes were refused.
fn take<E>(bytes: &[u8], piece: usize, mut take: impl FnMut(&[u8]) -> Result<bool, E>) -> (bool, bool) {
    for bytes in bytes.chunks(piece) {
        match take(bytes) {
            Ok(false) => {}
            Ok(true) => return (true, false),
            Err(_) => return (false, true),
        }
    }
    (false, false)
}

/// Returns the channels of a client and a server after their handshake.
pub(crate) fn met(key: &Key) -> (Channel, Channel) {
    let mut initiator = Initiator::new(key);
    let mut responder = Responder::new(key);
    responder.take(&initiator.outgoing()).unwrap();
    initiator.take(&responder.outgoing()).unwrap();
    responder.take(&initiator.outgoing()).unwrap();
    let client = initiator.take(&responder.outgoing()).unwrap().unwrap();
    (client, responder.take(&initiator.outgoing()).unwrap().unwrap())
}

/// Reads a record: `run.json` and `points.jsonl` with a zero byte between them. It is refused, or
/// shown as tables and as a page.
pub(crate) fn record(directory: &Path, data: &[u8]) {
    let cut = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    fs::write(directory.join("run.json"), &data[..cut]).unwrap();
    fs::write(directory.join("points.jsonl"), data.get(cut + 1..).unwrap_or_default()).unwrap();
    let reader = match RunReader::open(directory) {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let run = reader.run();
    let points = reader.points();
    let shown = Points { points, devices: &run.devices, patterns: PATTERNS };
    let tables = report::terminal::tables(shown, Unit::GbPerS, None).unwrap();
    let narrow = report::terminal::tables(shown, Unit::GbPerS, Some(80)).unwrap();
    let _ = report::terminal::folded(&narrow, 80);
    let mut summary = report::terminal::Summary::new(PATTERNS, Unit::GbPerS, Some(80)).unwrap();
    points.iter().for_each(|point| summary.see(point));
    let tables = tables + &summary.finish(&run.devices);
    let is_harmless = |c: char| c == '\n' || !c.is_control();
    assert!(tables.chars().all(is_harmless), "a terminal would act on {tables:?}");
    let samples = |path: &str| reader.sample_file(path).map_err(|error| error.to_string());
    let mut page = Tail::default();
    report::html::write(run, points, PATTERNS, &samples, &mut page).unwrap();
    assert_eq!(page.0, b"</html>\n");
}

/// Keeps the last bytes of a page: keeping the megabytes of its scripts would take longer than
/// writing them.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        const KEPT: usize = b"</html>\n".len();
        self.0.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        self.0.drain(..self.0.len().saturating_sub(KEPT));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Decodes datagrams of communication management: first the bytes alone, then behind a valid
/// header, with the message type that the first byte chooses. A datagram is refused with an error,
/// or it is the same after it is encoded and decoded again. The same holds for the IP addresses at
/// the beginning of private data.
pub(crate) fn cm(data: &[u8]) {
    mad(data);
    addressed(data);
    let Some((&choice, message)) = data.split_first() else { return };
    // Of these eleven message types, nine are decoded.
    let attribute = 0x10 + choice % 11;
    let mut bytes = vec![1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, choice, 0, attribute];
    bytes.resize(24, 0);
    bytes.extend(message);
    bytes.resize(Mad::BYTES, 0);
    mad(&bytes);
}

fn mad(bytes: &[u8]) {
    let mad = match Mad::decode(bytes) {
        Ok(mad) => mad,
        Err(error) => return sentence(&error.to_string()),
    };
    let encoded = mad.encode();
    assert_eq!(encoded[8..18], bytes[8..18], "transaction and attribute");
    if let Message::Request(request) = &mad.message {
        addressed(&request.private_data.0);
    }
    assert_eq!(Mad::decode(&encoded), Ok(mad));
}

fn addressed(private_data: &[u8]) {
    match IpHeader::decode(private_data) {
        Ok(header) => assert_eq!(IpHeader::decode(&header.encode()), Ok(header)),
        Err(error) => sentence(&error.to_string()),
    }
}

/// Simulates two programs with a connection manager each: see [`manager::run`].
pub(crate) fn manager(data: &[u8]) {
    manager::run(data);
}

/// Reads a log of VILLASnode and the file name of a log. A log is refused with an error and its
/// line number.
pub(crate) fn villas(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.lines().count();
    match villas::read(text) {
        Ok(samples) => assert!(samples.len() <= lines),
        Err((line, why)) => {
            assert!((1..=lines).contains(&line), "{line} of {lines}");
            sentence(&why);
        }
    }
    if let Some(name) = text.lines().next().and_then(villas::LogName::of) {
        assert!(!name.id.is_empty() && !name.mode.is_empty());
    }
}

/// Reads the metric of a program's output. The first line of the input is the pattern of the
/// metric, the second one verifies the output. The result is a number or an error.
pub(crate) fn programs(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut part = || parts.next().unwrap_or_default();
    let [metric, verify, output] = [part(), part(), part()];
    let Some((metric, verify)) = str::from_utf8(metric).ok().zip(str::from_utf8(verify).ok()) else { return };
    let application = json!({
        "name": "a",
        "command": ["a"],
        "metric": [{ "name": "m", "pattern": metric }],
        "verify": [verify],
    });
    let application: Application = serde_json::from_value(application).unwrap();
    match metrics_of(&application, 2, output) {
        Ok(metrics) => assert!(metrics["m"].is_finite()),
        Err(error) => sentence(&error),
    }
}

/// Parses sizes, durations and units. A formatted value is parsed to the same value.
pub(crate) fn units(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(bytes) = units::parse_size(text) {
        assert_eq!(units::parse_size(&units::format_size(bytes)).unwrap(), bytes);
    }
    if let Ok(sizes) = units::parse_sizes(text) {
        assert!(!sizes.is_empty() && sizes.len() <= 64 && sizes.is_sorted());
    }
    if let Ok(duration) = units::parse_duration(text) {
        assert_eq!(units::parse_duration(&units::format_duration(duration)).unwrap(), duration);
    }
    if let Ok(unit) = text.parse::<Unit>() {
        assert_eq!(unit.to_string(), text);
    }
}
