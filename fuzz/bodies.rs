//! What is done with foreign bytes, one function for each parser of them, and what must hold
//! whatever they are.
//!
//! `fuzz_targets/` drives these with libFuzzer, `crates/rdmascope/tests/program/fuzz.rs` with a
//! small corpus and pseudo-random mutations in every run of the tests. None may panic; what they
//! assert is in their comments.
#![allow(dead_code, reason = "each target uses one of them")]

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

/// A plan's text: refused with one line that names its place, or resolved to points that can be.
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

/// What a source of files says: whatever it is, nothing outside of the directory that it sends to
/// is made, changed or removed.
pub(crate) fn transfer(data: &[u8]) {
    thread_local! {
        static PLACE: tempfile::TempDir = tempfile::tempdir().unwrap();
    }
    PLACE.with(|place| {
        let to = place.path().join("to");
        let canary = place.path().join("canary");
        plant(&to, &canary).expect("a directory of this target's own");
        let before = state(place.path(), &to);
        let _ = receive_foreign(data, &to);
        assert_eq!(state(place.path(), &to), before);
        fs::remove_dir_all(&to).unwrap();
    });
}

/// A target with links that lead out of it, and what must stay as it is beside it.
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

/// All that a directory has in it but one: names, contents, and what changes with any change.
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

/// The text of a `--set`, on a plan that comes with the program. Errors quote it as it is.
pub(crate) fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    static PLAN: LazyLock<Plan> = LazyLock::new(|| bundled()[0].plan().unwrap());
    let set = text.lines().map(str::to_owned).collect();
    let _ = resolved(&PLAN, &Options { quick: true, set });
}

/// Resolves a plan to points that can be, or gives the error.
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

/// An error of what was asked for is one line and harmless for a terminal.
fn sentence(text: &str) {
    assert!(!text.is_empty());
    assert!(!text.chars().any(|c| c.is_control()), "{text:?}");
}

/// A stream of greeting and frames. In pieces it gives what it gives at once; a message that is
/// understood is the same after another trip.
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

/// The greeting, the frames, and how the stream ended.
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

/// What a stranger sends: to a server that waits, to a client that calls, and into a channel
/// between the two. In pieces it is received as at once; it never gets in, never gets a word out of
/// a server that it has not greeted, and never comes out of a channel.
pub(crate) fn channel(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let key: Key = "abcdefghijklmnopqrstuvwxyz".parse().unwrap();
    let received = [bytes.len().max(1), usize::from(piece).max(1)].map(|piece| {
        let mut responder = Responder::new(&key);
        let (open, at_server) =
            take(bytes, piece, |bytes| responder.take(bytes).map(|channel| channel.is_some()));
        assert!(!open, "a stranger is in");
        let answer = responder.outgoing();
        let greeting = Greeting::ours().to_line();
        assert!(answer.is_empty() || answer.starts_with(greeting.as_bytes()));
        assert!(answer.is_empty() || bytes.trim_ascii_start().starts_with(b"rdmascope "));
        let mut initiator = Initiator::new(&key);
        let (open, at_client) =
            take(bytes, piece, |bytes| initiator.take(bytes).map(|channel| channel.is_some()));
        assert!(!open, "a stranger is a server");
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
        assert!(!matches!(channel.opener.next(), Ok(Some(_))), "a stranger's record is opened");
    }
}

/// Whether an end of the channel let in what came in pieces of this size, and whether it refused
/// it.
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

/// A client and a server that have met.
pub(crate) fn met(key: &Key) -> (Channel, Channel) {
    let mut initiator = Initiator::new(key);
    let mut responder = Responder::new(key);
    responder.take(&initiator.outgoing()).unwrap();
    initiator.take(&responder.outgoing()).unwrap();
    responder.take(&initiator.outgoing()).unwrap();
    let client = initiator.take(&responder.outgoing()).unwrap().unwrap();
    (client, responder.take(&initiator.outgoing()).unwrap().unwrap())
}

/// A record, `run.json` and `points.jsonl` with a zero byte between them: refused, or shown as
/// tables and as a page.
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
    let tables = report::terminal::tables(shown, Unit::GbPerS).unwrap();
    let is_harmless = |c: char| c == '\n' || !c.is_control();
    assert!(tables.chars().all(is_harmless), "a terminal would act on {tables:?}");
    let samples = |path: &str| reader.sample_file(path).map_err(|error| error.to_string());
    let mut page = Tail::default();
    report::html::write(run, points, PATTERNS, &samples, &mut page).unwrap();
    assert_eq!(page.0, b"</html>\n");
}

/// The last bytes of a page: to keep the megabytes of its scripts would take longer than to write
/// them.
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

/// Datagrams of communication management: the bytes as they are, and then as the message that the
/// first of them chooses, behind a header that is right. Refused with a sentence, or understood and
/// the same after another trip; so are IP addresses at the beginning of private data.
pub(crate) fn cm(data: &[u8]) {
    mad(data);
    addressed(data);
    let Some((&choice, message)) = data.split_first() else { return };
    // Two of the class that are not decoded among the nine that are.
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

/// Two programs with a connection manager each: see there.
pub(crate) fn manager(data: &[u8]) {
    manager::run(data);
}

/// A log of VILLASnode and the name of one: read, or refused with a sentence and its line.
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

/// What a program prints, behind a line that is the expression of its metric and one that verifies
/// it: refused with a sentence, or a number.
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

/// Sizes, durations and units as people write them; what is printed is read again as the same.
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
