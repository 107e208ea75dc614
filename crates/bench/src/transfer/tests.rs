//! Tests that send trees between a source and a sink in one process, over TCP and over softdev.

mod hostile;
mod locked;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use measure::clock::{Clock, Deadline};
use tempfile::TempDir;
use verbs::Provider;

use super::digest::Checksum;
use super::link::renewed::Renewed;
use super::link::tcp::{TcpInlet, TcpOutlet};
use super::link::verbs::{Another, Unconnected, VerbsInlet, VerbsOutlet, Wanted};
use super::link::{Inlet, Kind, Outlet, Patience};
use super::sink::{Receipt, Target, receive};
use super::source::{Sending, What, send};
use super::told::EndTold;
use super::watch::{Telling, Watch};
use crate::Error;
use crate::verbs_endpoint::{PortOptions, RankDevice};

/// The link of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Over {
    Tcp {
        streams: usize,
    },
    /// TCP with sendfile(2).
    Sendfile {
        streams: usize,
    },
    Verbs {
        pairs: usize,
    },
}

const ALL: [Over; 5] = [
    Over::Tcp { streams: 1 },
    Over::Tcp { streams: 3 },
    Over::Sendfile { streams: 2 },
    Over::Verbs { pairs: 1 },
    Over::Verbs { pairs: 2 },
];

/// A small block, so that files need many.
const BLOCK: usize = 64 << 10;

fn patience(peer: &'static str) -> Patience {
    Patience { deadline: Deadline::after(Duration::from_secs(60)), peer }
}

/// Returns connected TCP streams: those of the source and those of the sink.
fn streams(count: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (0..count).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).unzip()
}

/// Returns both sides of a link.
fn link(over: Over, depth: usize) -> (Box<dyn Outlet + Send>, Box<dyn Inlet + Send>) {
    match over {
        Over::Tcp { streams: count } | Over::Sendfile { streams: count } => {
            let (source, sink) = streams(count);
            let splices = matches!(over, Over::Sendfile { .. });
            let outlet = TcpOutlet::new(source, BLOCK, splices, patience("the sink")).unwrap();
            let inlet = TcpInlet::new(sink, BLOCK, depth, patience("the source")).unwrap();
            (Box::new(outlet), Box::new(inlet))
        }
        Over::Verbs { pairs } => {
            static PROVIDERS: &[&Provider] = &[&softdev::PROVIDER];
            let mut device = RankDevice::new(PROVIDERS, None, PortOptions::default());
            let open = device.open().unwrap();
            let wanted =
                |is_source| Wanted { is_source, pairs, block_bytes: BLOCK, depth, keeps_registrations: true };
            let ends = [true, false].map(|end| {
                Unconnected::new(&open.context, &open.port, wanted(end), Clock::monotonic()).unwrap()
            });
            let addresses = [ends[0].address().unwrap(), ends[1].address().unwrap()];
            let [source, sink] = ends;
            let outlet = source.connect(&open.port, &addresses[1], patience("the sink")).unwrap();
            let inlet = sink.connect(&open.port, &addresses[0], patience("the source")).unwrap();
            (Box::new(VerbsOutlet::new(outlet)), Box::new(VerbsInlet(inlet)))
        }
    }
}

/// Returns both sides of a link that is made anew for each file.
fn renewed(over: Over, depth: usize) -> (Box<dyn Outlet + Send>, Box<dyn Inlet + Send>) {
    let clock = Clock::monotonic();
    match over {
        Over::Tcp { streams: count } | Over::Sendfile { streams: count } => {
            let splices = matches!(over, Over::Sendfile { .. });
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let reach = move || {
                let streams = (0..count).map(|_| TcpStream::connect(address).unwrap()).collect();
                TcpOutlet::new(streams, BLOCK, splices, patience("the sink"))
            };
            let first = reach().unwrap();
            let accept = move || {
                let streams = (0..count).map(|_| listener.accept().unwrap().0).collect();
                TcpInlet::new(streams, BLOCK, depth, patience("the source"))
            };
            let inlet: Box<dyn Inlet + Send> = Box::new(accept().unwrap());
            let outlet: Box<dyn Outlet + Send> = Box::new(first);
            let inlet = Renewed::new(inlet, Box::new(move |_| Ok(Box::new(accept()?))), clock);
            (
                Box::new(Renewed::new(outlet, Box::new(move |_| Ok(Box::new(reach()?))), clock)),
                Box::new(inlet),
            )
        }
        Over::Verbs { pairs } => {
            static PROVIDERS: &[&Provider] = &[&softdev::PROVIDER];
            let (outlet, inlet) = link(over, depth);
            let mut device = RankDevice::new(PROVIDERS, None, PortOptions::default());
            let open = device.open().unwrap();
            let another = |is_source, patience| Another {
                context: open.context.clone(),
                port: Arc::clone(&open.port),
                wanted: Wanted { is_source, pairs, block_bytes: BLOCK, depth, keeps_registrations: true },
                clock,
                patience,
            };
            let outlet = Renewed::new(outlet, another(true, patience("the sink")).of_source(), clock);
            let inlet = Renewed::new(inlet, another(false, patience("the source")).of_sink(), clock);
            (Box::new(outlet), Box::new(inlet))
        }
    }
}

/// The settings of a transfer.
#[derive(Clone, Copy)]
struct Asked {
    over: Over,
    depth: usize,
    checksum: Checksum,
    resumes: bool,
    compares: bool,
    syncs: bool,
    is_direct: bool,
}

impl Asked {
    fn over(over: Over) -> Self {
        Self {
            over,
            depth: 4,
            checksum: Checksum::Xxh3,
            resumes: false,
            compares: false,
            syncs: false,
            is_direct: false,
        }
    }
}

/// Sends paths to a directory. Returns the reports of the source and of the sink.
fn transfer(asked: Asked, paths: &[PathBuf], to: &Path) -> (EndTold, EndTold) {
    let Asked { over, depth, checksum, resumes, compares, syncs, is_direct } = asked;
    let (mut outlet, mut inlet) = link(over, depth);
    let sending = Sending { what: What::Paths(paths.to_vec()), checksum, is_direct, resumes };
    let target = Some(Target::open(to, rand()).unwrap());
    let mut receipt = Receipt { target, checksum, is_direct, compares, syncs };
    std::thread::scope(|scope| {
        let source = scope.spawn(move || send(&mut *outlet, &sending, watch(), Clock::monotonic()).unwrap());
        let sink = receive(&mut *inlet, &mut receipt, Clock::monotonic()).unwrap();
        (source.join().unwrap(), sink)
    })
}

/// Returns a watch that reports nothing.
fn watch() -> Watch {
    Watch::new(Telling::default(), |_| {}, Clock::monotonic(), &[])
}

/// Returns a random session.
fn rand() -> u64 {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    u64::from_le_bytes(bytes)
}

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Returns pseudo-random bytes.
fn contents(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(next).collect()
}

/// Makes a tree with every type of entry that is sent.
fn tree(at: &Path) {
    fs::create_dir_all(at.join("deep/er/still")).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    for (name, bytes) in [
        (&b"zero"[..], 0),
        (b"one", 1),
        (b"almost a block", BLOCK - 1),
        (b"a block", BLOCK),
        (b"more", BLOCK + 1),
        (b"much more", 9 * BLOCK + 17),
        (b"\xff\xfe not UTF-8 \n\t", 77),
        (b"-rf", 3),
        (&[b'n'; 255], 4000),
    ] {
        fs::write(at.join(os(name)), contents(bytes, bytes as u64)).unwrap();
    }
    for number in 0..300 {
        fs::write(at.join(format!("deep/er/{number}")), contents(number * 7 % 5000, number as u64)).unwrap();
    }
    let sparse = File::create(at.join("deep/er/still/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    for place in [0, 5 << 30, (1 << 40) - 4096] {
        sparse.write_all_at(&contents(4096, place), place).unwrap();
    }
    File::create(at.join("deep/hole")).unwrap().set_len(1 << 20).unwrap();
    symlink("deep/er/7", at.join("link")).unwrap();
    symlink("/nowhere/at/all", at.join("deep/dangling")).unwrap();
    fs::set_permissions(at.join("one"), Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(at.join("deep/er"), Permissions::from_mode(0o511)).unwrap();
    let old = std::time::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for path in ["one", "deep/er/still", "empty"] {
        File::open(at.join(path)).unwrap().set_modified(old).unwrap();
    }
}

/// Asserts that two trees are the same in everything that is sent.
fn assert_same(one: &Path, other: &Path) {
    let names = |at: &Path| {
        let mut names: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other), "{}", one.display());
    for name in names(one) {
        let [one, other] = [one.join(&name), other.join(&name)];
        let [was, is] = [&one, &other].map(|path| fs::symlink_metadata(path).unwrap());
        assert_eq!(was.file_type(), is.file_type(), "{}", one.display());
        assert_eq!((was.mtime(), was.mtime_nsec()), (is.mtime(), is.mtime_nsec()), "{}", one.display());
        if was.is_symlink() {
            assert_eq!(fs::read_link(&one).unwrap(), fs::read_link(&other).unwrap());
            continue;
        }
        assert_eq!(was.mode(), is.mode(), "{}", one.display());
        if was.is_dir() {
            assert_same(&one, &other);
        } else {
            assert_eq!(was.len(), is.len(), "{}", one.display());
            if was.len() < 1 << 30 {
                assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{}", one.display());
            } else {
                assert!(is.blocks() * 512 <= 1 << 20, "it is sparse: {} blocks", is.blocks());
                let [one, other] = [one, other].map(|path| File::open(path).unwrap());
                for place in [0, 5 << 30, (1 << 40) - 4096] {
                    let mut read = [[0; 4096], [0; 4096]];
                    one.read_exact_at(&mut read[0], place).unwrap();
                    other.read_exact_at(&mut read[1], place).unwrap();
                    assert!(read[0] == read[1] && read[0] != [0; 4096]);
                }
            }
        }
    }
}

fn unfinished_left(at: &Path) -> usize {
    let mut left = 0;
    for entry in fs::read_dir(at).unwrap() {
        let entry = entry.unwrap();
        left += usize::from(super::name::is_unfinished(entry.file_name().as_bytes()));
        if entry.file_type().unwrap().is_dir() {
            left += unfinished_left(&entry.path());
        }
    }
    left
}

fn scratch() -> (TempDir, PathBuf, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("from");
    let to = scratch.path().join("to");
    fs::create_dir(&from).unwrap();
    (scratch, from, to)
}

#[test]
fn trees_arrive_as_they_are() {
    let (_scratch, from, to) = scratch();
    tree(&from);
    for over in ALL {
        for (depth, checksum, syncs) in
            [(1, Checksum::Xxh3, false), (8, Checksum::Blake3, true), (2, Checksum::None, false)]
        {
            let asked = Asked { depth, checksum, syncs, ..Asked::over(over) };
            let (source, sink) = transfer(asked, slice::from_ref(&from), &to);
            assert_same(&from, &to.join("from"));
            assert_eq!((source.counts.failed, sink.counts.failed), (0, 0), "{source:?} {sink:?}");
            for told in [&source, &sink] {
                let counts = &told.counts;
                assert_eq!((counts.files, counts.directories, counts.links), (311, 5, 2), "{told:?}");
            }
            assert_eq!(source.counts.bytes, sink.counts.bytes);
            assert_eq!(source.link.blocks, sink.link.blocks);
            // With a checksum, files are read and not sent by sendfile(2).
            let handed_over = source.link.sendfile_blocks.map(|blocks| blocks > 0);
            let is_sendfile = matches!(over, Over::Sendfile { .. });
            assert_eq!(handed_over, is_sendfile.then_some(checksum == Checksum::None));
            fs::set_permissions(to.join("from/deep/er"), Permissions::from_mode(0o700)).unwrap();
            fs::remove_dir_all(&to).unwrap();
        }
    }
}

#[test]
fn contents_of_a_directory_and_several_sources_go_side_by_side() {
    let (scratch, from, to) = scratch();
    let other = scratch.path().join("other/place");
    fs::create_dir_all(other.join("x/y")).unwrap();
    fs::create_dir_all(from.join("a/b")).unwrap();
    fs::write(other.join("x/y/z"), "z").unwrap();
    fs::write(from.join("a/b/c"), "c").unwrap();
    fs::write(from.join("d"), "d").unwrap();
    for resumes in [false, true] {
        for over in ALL {
            let sources = [from.join("."), other.join("x"), from.join("d"), from.join("absent")];
            let (source, sink) = transfer(Asked { resumes, ..Asked::over(over) }, &sources, &to);
            assert_same(&from.join("a"), &to.join("a"));
            assert_same(&other.join("x"), &to.join("x"));
            assert_eq!(fs::read(to.join("d")).unwrap(), b"d");
            assert_eq!((source.counts.failed, sink.counts.failed), (1, 0));
            assert_eq!(source.counts.failures, ["absent: not sent: there is no such file"]);
            fs::remove_dir_all(&to).unwrap();
        }
    }
}

#[test]
fn each_file_may_have_a_connection_of_its_own() {
    let (_scratch, from, to) = scratch();
    for number in 0..12 {
        fs::write(from.join(format!("{number}")), contents(number * 40_000, number as u64)).unwrap();
    }
    for over in ALL {
        let (mut outlet, mut inlet) = renewed(over, 4);
        let what = What::Paths(vec![from.clone()]);
        let sending = Sending { what, checksum: Checksum::Xxh3, is_direct: false, resumes: false };
        let mut receipt = Receipt::new(Some(Target::open(&to, rand()).unwrap()), Checksum::Xxh3);
        let [source, sink] = std::thread::scope(|scope| {
            let source =
                scope.spawn(move || send(&mut *outlet, &sending, watch(), Clock::monotonic()).unwrap());
            let sink = receive(&mut *inlet, &mut receipt, Clock::monotonic()).unwrap();
            [source.join().unwrap(), sink]
        });
        assert_same(&from, &to.join("from"));
        let others = Some(source.counts.files - 1);
        assert_eq!((source.link.renewals, sink.link.renewals), (others, others));
        assert!(source.link.renewing_ns > Some(0.0) && source.link.blocks == sink.link.blocks, "{source:?}");
        fs::remove_dir_all(&to).unwrap();
    }
    // A link with a single connection refuses another one.
    let (_outlet, mut inlet) = link(ALL[0], 4);
    assert!(inlet.renew().unwrap_err().to_string().contains("was not agreed on"));
}

#[test]
fn a_second_transfer_sends_what_is_missing() {
    let (_scratch, from, to) = scratch();
    tree(&from);
    for over in ALL {
        transfer(Asked::over(over), slice::from_ref(&from), &to);
        let arrived = to.join("from");
        fs::remove_file(arrived.join("one")).unwrap();
        fs::write(arrived.join("more"), "other").unwrap();
        fs::write(arrived.join("-rf"), "abc").unwrap();
        let (source, sink) =
            transfer(Asked { resumes: true, ..Asked::over(over) }, slice::from_ref(&from), &to);
        assert_same(&from, &arrived);
        assert_eq!((source.counts.present, source.counts.files), (308, 3), "{source:?}");
        assert_eq!((sink.counts.present, sink.counts.files), (308, 3), "{sink:?}");
        fs::set_permissions(arrived.join("deep/er"), Permissions::from_mode(0o700)).unwrap();
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn contents_are_compared_whatever_the_times_say() {
    let (_scratch, from, to) = scratch();
    tree(&from);
    for over in ALL {
        transfer(Asked::over(over), slice::from_ref(&from), &to);
        let arrived = to.join("from");
        let touch = |path: &Path, time| File::open(path).unwrap().set_modified(time).unwrap();
        // One file has the same contents with another time and permissions; another file has other
        // contents with the same size and time.
        let time = fs::metadata(from.join("-rf")).unwrap().modified().unwrap();
        touch(&arrived.join("one"), std::time::SystemTime::UNIX_EPOCH);
        fs::set_permissions(arrived.join("one"), Permissions::from_mode(0o600)).unwrap();
        let length = fs::metadata(from.join("-rf")).unwrap().len() as usize;
        fs::write(arrived.join("-rf"), vec![b'?'; length]).unwrap();
        touch(&arrived.join("-rf"), time);
        // A file with a second hard link, perhaps elsewhere, is replaced and not changed.
        let elsewhere = to.join("elsewhere");
        fs::hard_link(arrived.join("more"), &elsewhere).unwrap();
        touch(&elsewhere, std::time::SystemTime::UNIX_EPOCH);
        let asked = Asked { resumes: true, compares: true, ..Asked::over(over) };
        let (source, sink) = transfer(asked, slice::from_ref(&from), &to);
        assert_same(&from, &arrived);
        assert_eq!((source.counts.present, source.counts.files), (309, 2), "{source:?}");
        assert_eq!((sink.counts.present, sink.counts.files), (309, 2), "{sink:?}");
        assert_eq!(fs::metadata(&elsewhere).unwrap().modified().unwrap(), std::time::SystemTime::UNIX_EPOCH);
        fs::set_permissions(arrived.join("deep/er"), Permissions::from_mode(0o700)).unwrap();
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn a_part_of_a_long_file_is_not_sent_again_unless_it_differs() {
    const CHUNK: u64 = super::digest::CHUNK_BYTES;
    let (_scratch, from, to) = scratch();
    let long = from.join("long");
    let bytes = contents((2 * CHUNK + 1234) as usize, 5);
    fs::write(&long, &bytes).unwrap();
    fs::create_dir(&to).unwrap();
    let name = super::name::Name::new(b"long").unwrap();
    for (has, spoilt, expected) in
        [(2 * CHUNK + 7, None, 2), (2 * CHUNK, Some(CHUNK + 9), 1), (CHUNK - 1, None, 0)]
    {
        let part = to.join(&*name.unfinished(rand()));
        fs::write(&part, &bytes[..has as usize]).unwrap();
        if let Some(place) = spoilt {
            File::options()
                .write(true)
                .open(&part)
                .unwrap()
                .write_all_at(b"\0\0\0\0\0\0\0\0", place)
                .unwrap();
        }
        let asked = Asked { resumes: true, ..Asked::over(ALL[2]) };
        let (source, sink) = transfer(asked, slice::from_ref(&long), &to);
        assert!(fs::read(to.join("long")).unwrap() == bytes);
        let resumed = [&source, &sink].map(|told| told.counts.resumed_bytes / CHUNK);
        assert_eq!(resumed, [expected; 2], "{source:?}");
        assert_eq!(source.counts.bytes, bytes.len() as u64 - expected * CHUNK);
        assert_eq!(unfinished_left(&to), 0);
        fs::remove_file(to.join("long")).unwrap();
    }
}

#[test]
fn what_is_no_file_is_told() {
    let (_scratch, from, to) = scratch();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        from.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::write(from.join(".x.rdmascope-0123456789abcdef"), "x").unwrap();
    let (source, sink) = transfer(Asked::over(ALL[0]), slice::from_ref(&from), &to);
    assert_eq!((source.counts.files, sink.counts.files, source.counts.failed), (0, 0, 0));
    let remarks = source.counts.remarks.join("; ");
    assert!(remarks.contains("from/pipe: skipped: it is a pipe"), "{remarks}");
    assert!(remarks.contains("an interrupted transfer"), "{remarks}");
}

#[test]
fn files_are_read_and_written_past_the_page_cache_where_that_is_possible() {
    let (_scratch, from, to) = scratch();
    tree(&from);
    for over in [ALL[0], ALL[2]] {
        let (source, sink) =
            transfer(Asked { is_direct: true, ..Asked::over(over) }, slice::from_ref(&from), &to);
        assert_same(&from, &to.join("from"));
        assert_eq!((source.counts.failed, sink.counts.failed), (0, 0), "{source:?} {sink:?}");
        fs::set_permissions(to.join("from/deep/er"), Permissions::from_mode(0o700)).unwrap();
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn memory_goes_to_memory() {
    for over in ALL {
        for (files, bytes) in [(3, 0), (2, 100), (1, 10 * BLOCK as u64 + 5), (40, 3000)] {
            let (mut outlet, mut inlet) = link(over, 4);
            let checksum = Checksum::Xxh3;
            let sending =
                Sending { what: What::Memory { files, bytes }, checksum, is_direct: false, resumes: false };
            let mut receipt = Receipt::new(None, checksum);
            let (source, sink) = std::thread::scope(|scope| {
                let source =
                    scope.spawn(move || send(&mut *outlet, &sending, watch(), Clock::monotonic()).unwrap());
                let sink = receive(&mut *inlet, &mut receipt, Clock::monotonic()).unwrap();
                (source.join().unwrap(), sink)
            });
            for told in [source, sink] {
                let counts = told.counts;
                assert_eq!(
                    (counts.files, counts.bytes, counts.failed),
                    (files, files * bytes, 0),
                    "{over:?}"
                );
            }
        }
    }
}

#[test]
fn who_has_gone_is_not_waited_for() {
    for over in ALL {
        let (outlet, mut inlet) = link(over, 4);
        drop(outlet);
        let to = tempfile::tempdir().unwrap();
        let target = Some(Target::open(to.path(), 1).unwrap());
        let mut receipt = Receipt::new(target, Checksum::None);
        if matches!(over, Over::Tcp { .. }) {
            let error = receive(&mut *inlet, &mut receipt, Clock::monotonic()).unwrap_err();
            assert!(
                matches!(&error, Error::Transfer { words } if words.contains("the source is gone")),
                "{error}"
            );
        }
    }
}

/// The names of these files differ only beyond the part that unfinished files keep.
#[test]
fn files_of_long_and_like_names_are_not_taken_for_each_other() {
    let (_scratch, from, to) = scratch();
    let name = |last: char| format!("{}{last}", "n".repeat(240));
    for last in 'a'..'f' {
        fs::write(from.join(name(last)), last.to_string()).unwrap();
    }
    for syncs in [true, false] {
        let asked = Asked { syncs, ..Asked::over(ALL[0]) };
        let (source, sink) = transfer(asked, slice::from_ref(&from), &to);
        assert_eq!((source.counts.failed, sink.counts.failed, sink.counts.files), (0, 0, 5), "{sink:?}");
        for last in 'a'..'f' {
            assert_eq!(fs::read(to.join("from").join(name(last))).unwrap(), last.to_string().into_bytes());
        }
    }
}

/// Bytes that a file lacks arrive as zeros, so that the following blocks keep their place.
#[test]
fn a_file_that_shrinks_in_the_kernels_hands_is_filled_up() {
    let (_scratch, from, _) = scratch();
    let path = from.join("a");
    let whole = contents(BLOCK, 1);
    fs::write(&path, &whole[..BLOCK / 2]).unwrap();
    let (mut outlet, mut inlet) = link(Over::Sendfile { streams: 2 }, 4);
    let short = File::open(&path).unwrap();
    let directory = File::open(&from).unwrap();
    assert_eq!(outlet.post_file(short.as_fd(), 0, BLOCK).unwrap().unwrap().unwrap(), BLOCK / 2);
    assert!(outlet.post_file(directory.as_fd(), 0, 9).unwrap().unwrap().is_err());
    outlet.room().unwrap().put(0, b"behind").unwrap();
    outlet.post(Kind::Packed, 6).unwrap();
    let mut arrives = |kind, expected: &[u8]| {
        assert_eq!(inlet.take().unwrap(), (kind, expected.len()));
        let mut arrived = vec![1; expected.len()];
        inlet.block().get(0, &mut arrived).unwrap();
        inlet.release().unwrap();
        assert!(arrived == expected);
    };
    let filled = [&whole[..BLOCK / 2], &[0; BLOCK / 2]].concat();
    arrives(Kind::Raw, &filled);
    arrives(Kind::Raw, &[0; 9]);
    arrives(Kind::Packed, b"behind");
}

/// A file that changes while it is read is not sent.
#[test]
fn what_is_written_to_meanwhile_is_not_taken_for_whole() {
    use super::name::Name;
    use super::source::Opened;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let root = File::open(directory.path()).unwrap();
    let name = Name::new(b"a").unwrap();
    for (size, words) in [(10, "it shrank from 20 to 10 bytes"), (30, "it grew from 20 to 30 bytes")] {
        fs::write(&path, [0; 20]).unwrap();
        let opened = Opened::new(root.as_fd(), &name, false).unwrap();
        assert_eq!(opened.is_as_it_was(), Ok(()));
        File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
        assert!(opened.is_as_it_was().unwrap_err().starts_with(words));
    }
    fs::write(&path, [0; 20]).unwrap();
    let opened = Opened::new(root.as_fd(), &name, false).unwrap();
    File::open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(opened.is_as_it_was().unwrap_err(), "it was written to while it was read");
}
