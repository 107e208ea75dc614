//! Tests with a hostile source: whatever it sends, nothing outside of the target changes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use measure::clock::Clock;
use proptest::prelude::*;

use super::{patience, streams};
use crate::transfer::digest::{Checksum, DIGEST_BYTES};
use crate::transfer::link::tcp::TcpInlet;
use crate::transfer::sink::{Receipt, Target, receive};

/// A record with arbitrary, perhaps invalid, contents.
#[derive(Clone, Debug)]
struct Said {
    kind: u8,
    parent: u32,
    name: Vec<u8>,
    /// The text of a link, or the bytes of a file.
    text: Vec<u8>,
    from: u64,
}

impl Said {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(self.kind);
        match self.kind {
            1..=4 => {
                to.extend(self.parent.to_le_bytes());
                to.extend(0o777_u16.to_le_bytes());
                to.extend(7_i64.to_le_bytes());
                to.extend(7_u32.to_le_bytes());
                to.extend((self.name.len() as u16).to_le_bytes());
                to.extend(&self.name);
                match self.kind {
                    2 => {
                        to.extend((self.text.len() as u64).to_le_bytes());
                        to.extend(self.from.to_le_bytes());
                        if self.from == 0 {
                            to.push(5);
                            to.extend((self.text.len() as u32).to_le_bytes());
                            to.extend(&self.text);
                            to.push(7);
                            to.push(1);
                            to.extend([0; DIGEST_BYTES]);
                        }
                    }
                    3 => to.extend((self.text.len() as u64).to_le_bytes()),
                    4 => {
                        to.extend((self.text.len() as u16).to_le_bytes());
                        to.extend(&self.text);
                    }
                    _ => {}
                }
            }
            _ => to.extend(&self.text),
        }
    }
}

/// Planted names, names outside of the target, and ordinary names.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        &b"a"[..],
        b"b",
        b"out",
        b"deep",
        b"hard",
        b".",
        b"..",
        b"../canary",
        b"/etc",
        b"canary",
        b"a/b",
        b"",
        b"a\0",
        b".hard.rdmascope-0123456789abcdef",
        b".b.rdmascope-0123456789abcdef",
    ];
    prop_oneof![
        8 => prop::sample::select(known.map(<[u8]>::to_vec).to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    let text = prop_oneof![
        prop::sample::select([&b"../canary"[..], b"..", b"/", b"canary", b"."].map(<[u8]>::to_vec).to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    let kind = prop_oneof![20 => 1u8..=4, 1 => any::<u8>()];
    (kind, 0u32..4, name(), text, prop_oneof![5 => Just(0u64), 1 => 1u64..9])
        .prop_map(|(kind, parent, name, text, from)| Said { kind, parent, name, text, from })
}

/// Appends the state of all entries below a directory: names, types, contents and times.
fn state(at: &Path, into: &mut Vec<String>) {
    use std::os::unix::fs::MetadataExt;
    let mut entries: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let found = fs::symlink_metadata(&path).unwrap();
        let contents = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        into.push(format!(
            "{path:?} {:o} {} {} {} {contents:?}",
            found.mode(),
            found.size(),
            found.mtime(),
            found.mtime_nsec()
        ));
        if found.is_dir() {
            state(&path, into);
        }
    }
}

/// Lets a sink receive these bytes as packed blocks, into a target with planted links, and asserts
/// that nothing outside of the target changes.
fn suffer(blocks: &[Vec<u8>]) {
    let scratch = tempfile::tempdir().unwrap();
    let to = scratch.path().join("to");
    let canary = scratch.path().join("canary");
    for made in [&to, &canary, &canary.join("deep"), &to.join("a")] {
        fs::create_dir(made).unwrap();
    }
    fs::write(canary.join("a"), "alive").unwrap();
    fs::write(canary.join("deep/b"), "alive").unwrap();
    symlink("../canary", to.join("out")).unwrap();
    symlink("../../canary/a", to.join("a/b")).unwrap();
    // Links to files outside of the target, with the names of unfinished files.
    fs::hard_link(canary.join("a"), to.join(".hard.rdmascope-0123456789abcdef")).unwrap();
    symlink("../canary/a", to.join(".b.rdmascope-0123456789abcdef")).unwrap();
    let mut before = Vec::new();
    state(&canary, &mut before);

    let (mut source, sink) = streams(1);
    let said = blocks.to_vec();
    let speaker = std::thread::spawn(move || {
        for block in said {
            let header = [&[0; 4][..], &(block.len() as u32).to_le_bytes()].concat();
            // The sink may have closed the connection.
            if source[0].write_all(&header).and_then(|()| source[0].write_all(&block)).is_err() {
                break;
            }
        }
        let _ = source[0].shutdown(std::net::Shutdown::Write);
        // All answers are read and ignored.
        let _ = std::io::copy(&mut source[0], &mut std::io::sink());
    });
    let mut inlet = TcpInlet::new(sink, 64 << 10, 2, patience("the source")).unwrap();
    let target = Some(Target::open(&to, 0xabcd).unwrap());
    let mut receipt = Receipt { compares: true, ..Receipt::new(target, Checksum::None) };
    // It may succeed or fail.
    let _ = receive(&mut inlet, &mut receipt, Clock::monotonic());
    drop(inlet);
    speaker.join().unwrap();
    let mut after = Vec::new();
    state(&canary, &mut after);
    assert_eq!(before, after, "nothing outside of the target has changed");
    let mut beside: Vec<_> =
        fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["canary", "to"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_names_lead_out_of_the_target(records in prop::collection::vec(said(), 1..12)) {
        let mut block = Vec::new();
        records.iter().for_each(|said| said.write(&mut block));
        block.push(8);
        suffer(&[block]);
    }

    #[test]
    fn each_by_itself_is_harmless(records in prop::collection::vec(said(), 1..12)) {
        let blocks: Vec<_> = records.iter().map(|said| {
            let mut block = Vec::new();
            said.write(&mut block);
            block
        }).collect();
        suffer(&blocks);
    }
}

#[test]
fn links_that_were_sent_are_not_followed_either() {
    let link = Said { kind: 4, parent: 0, name: b"x".to_vec(), text: b"../canary".to_vec(), from: 0 };
    let directory = Said { kind: 1, name: b"x".to_vec(), ..link.clone() };
    let file = Said { kind: 2, parent: 1, name: b"a".to_vec(), text: b"dead".to_vec(), from: 0 };
    let mut block = Vec::new();
    [link, directory, file].iter().for_each(|said| said.write(&mut block));
    block.push(8);
    suffer(&[block]);
}

#[test]
fn names_that_are_paths_are_refused() {
    for name in ["../canary", "../fresh", "..", "a/../../canary", "/tmp"] {
        let directory = Said { kind: 1, parent: 0, name: name.into(), text: Vec::new(), from: 0 };
        let file = Said { kind: 2, parent: 1, name: b"new".to_vec(), text: b"dead".to_vec(), from: 0 };
        let link = Said { kind: 4, text: b"a".to_vec(), ..directory.clone() };
        for records in [vec![directory, file], vec![link]] {
            let mut block = Vec::new();
            records.iter().for_each(|said| said.write(&mut block));
            block.push(8);
            suffer(&[block]);
        }
    }
}
