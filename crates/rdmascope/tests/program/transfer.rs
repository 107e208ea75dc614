//! Files and trees from one directory to another, as users send them: what arrives, what is
//! reported about files that do not, and what processes leave that are killed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::hands::Server;
use crate::support::moments::Moments;
use crate::support::processes::{agents, signal};
use crate::support::{Ended, Scratch, collect, finish, skip};

/// Both carriers.
const CARRIERS: [&str; 2] = ["verbs", "tcp"];

/// Bytes of a file that are made or compared at a time.
const PIECE: usize = 1 << 20;

/// Returns bytes that differ from file to file.
fn contents(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut all = vec![0; bytes.next_multiple_of(8)];
    for word in all.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    all.truncate(bytes);
    all
}

/// Makes a tree of small files, a long file, and entries of other kinds.
fn tree(at: &Path, small: usize, long: usize) {
    for number in 0..small {
        let directory = at.join(format!("d{}/e{}", number % 7, number % 3));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("f{number}")), contents(number * 37 % 9000, number as u64)).unwrap();
    }
    fs::create_dir_all(at.join("empty/deeper")).unwrap();
    let mut file = fs::File::create(at.join("long")).unwrap();
    for start in (0..long).step_by(PIECE) {
        file.write_all(&contents(PIECE.min(long - start), 1 + start as u64)).unwrap();
    }
    fs::write(at.join("nothing"), "").unwrap();
    symlink("long", at.join("link")).unwrap();
    fs::set_permissions(at.join("nothing"), fs::Permissions::from_mode(0o600)).unwrap();
}

/// Whether a file has the same bytes, permissions and time as another.
fn is_same(one: &Path, other: &Path) -> bool {
    let [was, is] = [one, other].map(|path| fs::symlink_metadata(path).unwrap());
    let of = |found: &fs::Metadata| (found.mode(), found.size(), found.mtime(), found.mtime_nsec());
    let [mut one, mut other] = [one, other].map(|path| fs::File::open(path).unwrap());
    let mut pieces = [(); 2].map(|()| vec![0; PIECE.min(was.size() as usize)]);
    let mut is_same_piece = |start: usize| {
        let [piece, another] =
            pieces.each_mut().map(|piece| &mut piece[..PIECE.min(was.size() as usize - start)]);
        one.read_exact(piece).unwrap();
        other.read_exact(another).unwrap();
        piece == another
    };
    of(&was) == of(&is) && (0..was.size() as usize).step_by(PIECE).all(&mut is_same_piece)
}

/// Walks a tree that has arrived, completely or in part. Returns the number of files and of
/// unfinished files; asserts that each file is as it was sent.
fn arrived(from: &Path, to: &Path) -> (usize, usize) {
    let mut files = 0;
    let mut unfinished = 0;
    for entry in fs::read_dir(to).into_iter().flatten() {
        let entry = entry.unwrap();
        let other = from.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if entry.file_name().to_string_lossy().contains(".rdmascope-") {
            unfinished += 1;
        } else if kind.is_dir() {
            let below = arrived(&other, &entry.path());
            files += below.0;
            unfinished += below.1;
        } else if kind.is_symlink() {
            assert_eq!(fs::read_link(entry.path()).unwrap(), fs::read_link(other).unwrap());
        } else {
            assert!(is_same(&other, &entry.path()), "{} is torn", entry.path().display());
            files += 1;
        }
    }
    (files, unfinished)
}

/// Asserts that a tree is complete.
fn assert_arrived(from: &Path, to: &Path) {
    let (files, unfinished) = arrived(from, to);
    let (all, _) = arrived(from, from);
    assert_eq!((files, unfinished), (all, 0), "{}", to.display());
}

fn send(scratch: &Scratch, more: &[&str]) -> Ended {
    let ended = scratch.run(&[&["transfer"], more].concat());
    scratch.assert_nothing_left();
    ended
}

/// Returns the number of small files of a tree, and the bytes of its long file. `cargo xtask ci
/// --full` sets more of both.
fn extent() -> (usize, usize) {
    let asked = |name, usual| std::env::var(name).map_or(usual, |asked| asked.parse().unwrap());
    (asked("RDMASCOPE_TREE_FILES", 500), asked("RDMASCOPE_TREE_BYTES", 3 << 20))
}

#[test]
fn a_bound_that_a_transfer_does_not_keep_ends_with_3() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("file", contents(100_000, 1));
    let sent = |bound: &str, more: &[&str]| {
        scratch.run(
            &[&["transfer", "file", "--to", "to", "--over", "tcp", "--expect", bound][..], more].concat(),
        )
    };
    let met = sent("throughput > 1 B/s", &[]);
    assert_eq!(met.status, Some(2), "no unit of records is B/s: {met:?}");
    let met = sent("throughput > 0.000001 MB/s", &[]);
    assert!(met.status == Some(0) && met.stdout.contains(" expectations: 1 met\n"), "{met:?}");
    let not_met = sent("transfer.wall_ns < 1 ns", &["--json"]);
    assert_eq!(not_met.status, Some(3), "{not_met:?}");
    assert!(not_met.stderr.contains("1. transfer.wall_ns < 1 ns\n    transfer  not met; "), "{not_met:?}");
    let said: serde_json::Value = serde_json::from_str(&not_met.stdout).unwrap();
    assert_eq!(said["status"], "complete");
    // What has not arrived outweighs the bound.
    let broken = scratch.run(&[
        "transfer",
        "none",
        "--to",
        "to",
        "--over",
        "tcp",
        "--expect",
        "transfer.wall_ns < 1 ns",
    ]);
    assert_eq!(broken.status, Some(1), "{broken:?}");
}

#[test]
fn a_tree_arrives_over_both_and_what_is_there_is_not_sent_again() {
    let scratch = Scratch::on_all_cpus();
    let from = scratch.at("from");
    let (small, long) = extent();
    tree(&from, small, long);
    let files = small + 2;
    for over in CARRIERS {
        let to = scratch.at(over);
        let said = scratch.succeed(&["transfer", "from", "--to", over, "--over", over]);
        assert!(said.starts_with(&format!("{files} files, 31 directories, 1 link: ")), "{said}");
        let carrier = if over == "tcp" { "TCP" } else { "verbs" };
        assert!(said.contains(&format!(" over {carrier}, ")) && said.contains("\nCPU time: "), "{said}");
        assert_arrived(&from, &to.join("from"));
        fs::write(to.join("from/nothing"), "something").unwrap();
        let there = format!("\n{} files were there already\n", files - 1);
        let said = scratch.succeed(&["transfer", "from", "--to", over, "--over", over, "--resume"]);
        assert!(said.starts_with("1 file, ") && said.contains(&there), "{said}");
        assert_arrived(&from, &to.join("from"));
        let more = ["--resume", "--json", "--checksum", "blake3", "--sync", "--direct", "--streams", "2"];
        let said =
            scratch.succeed(&[&["transfer", "from/.", "--to", over, "--over", over][..], &more].concat());
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["status"], "complete");
        assert_eq!(said["sink"]["counts"]["files"], files);
        assert_eq!(said["source"]["counts"]["bytes"], said["sink"]["counts"]["bytes"]);
        assert_arrived(&from.join("d1"), &to.join("d1"));
    }
    let handed_over = ["--over", "tcp", "--sendfile", "--checksum", "none", "--json"];
    let said = scratch.succeed(&[&["transfer", "from", "--to", "sendfile"][..], &handed_over].concat());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["source"]["link"]["sendfile_blocks"].as_u64() > Some(0), "{said}");
    assert_arrived(&from, &scratch.at("sendfile/from"));
    scratch.assert_nothing_left();
}

#[test]
fn each_file_is_said_to_whoever_asks() {
    let scratch = Scratch::on_one_cpu();
    tree(&scratch.at("from"), 3, 10);
    let ended = send(&scratch, &["from", "--to", "to", "-v", "--cpus", "none"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let mut lines: Vec<_> = ended.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["from/d0/e0/f0", "from/d1/e1/f1", "from/d2/e2/f2", "from/long", "from/nothing"]);
    // A different file with the same size and time is only found by comparing contents.
    let long = scratch.at("to/from/long");
    let time = fs::metadata(&long).unwrap().modified().unwrap();
    fs::write(&long, "0123456789").unwrap();
    fs::File::open(&long).unwrap().set_modified(time).unwrap();
    let again =
        |more: &[&str]| send(&scratch, &[&["from", "--to", "to", "-v", "--resume"], more].concat()).stderr;
    assert_eq!(again(&["--cpus", "none"]), "");
    assert_eq!(again(&["--cpus", "none", "--checksum-all"]), "from/long\n");
    assert_arrived(&scratch.at("from"), &scratch.at("to/from"));
}

#[test]
fn what_cannot_be_sent_or_written_is_a_sentence() {
    let scratch = Scratch::on_one_cpu();
    let scattered = ["--cpus", "none"];
    let refused = |words: &[&str], status: i32, sentence: &str| {
        scratch.refused(&[&["transfer"], words, &scattered].concat(), status, &[sentence]);
    };
    tree(&scratch.at("from"), 3, 10);
    scratch.write("file", "x");
    refused(&["from"], 2, "name the directory for the files: --to DIR");
    refused(&["from", "--to", "file"], 1, "cannot write files to file: it is not a directory");
    refused(&["from", "--to", "no/where"], 1, "its parent directory does not exist");
    refused(&["from", "--to", "to", "--peer", "h", "--key", "x"], 2, "the key has 1");
    refused(&["from/d0", "from/d1/../d0", "--to", "to"], 2, "two sources are called \"d0\"");
    refused(&["from", "--to", "to", "--over", "tcp", "--depth", "2"], 2, "--depth has no effect");
    refused(
        &["from", "--to", "to", "--sendfile", "--checksum", "none"],
        2,
        "--sendfile is for a transfer over TCP",
    );
    refused(&["from", "--to", "to", "--sendfile", "--over", "tcp"], 2, "only the kernel reads the files");
    for over in CARRIERS {
        // The others arrive.
        fs::create_dir_all(scratch.at("to/from/long")).unwrap();
        let ended = send(&scratch, &["from", "absent", "--to", "to", "--over", over, "--cpus", "none"]);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
        assert!(ended.stderr.contains("rdmascope: absent: not sent: there is no such file\n"), "{ended:?}");
        assert!(ended.stderr.contains("rdmascope: from/long: not written: Is a directory"), "{ended:?}");
        assert!(ended.stdout.starts_with("4 files, "), "{ended:?}");
        fs::remove_dir_all(scratch.at("to")).unwrap();
    }
}

#[test]
fn a_file_system_that_is_full_or_read_only_ends_a_transfer_with_a_sentence() {
    let scratch = Scratch::on_one_cpu();
    let from = scratch.at("from");
    tree(&from, 200, 12 << 20);
    fs::create_dir(scratch.at("small")).unwrap();
    let own = "unshare --map-root-user --mount sh -c";
    if finish(scratch.shell(&format!("{own} 'mount -t tmpfs none small'"))).status != Some(0) {
        return skip("mount", "mount namespaces may not be made here");
    }
    for over in CARRIERS {
        let mounted = |options: &str, then: &str| {
            let script = format!(
                "{own} 'mount -t tmpfs -o {options} none small && \"$0\" transfer from --to small --cpus none \
                 --over {over}; code=$?; {then}; exit $code' \"$0\""
            );
            finish(scratch.shell(&script))
        };
        let ended = mounted(
            "size=4m",
            "find small -name \".*rdmascope-*\" | wc -l; test -e small/from/long && echo torn",
        );
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("not written: No space left on device"), "{ended:?}");
        assert!(
            ended.stdout.ends_with("\n0\n"),
            "nothing is torn, and nothing unfinished is left: {ended:?}"
        );
        let ended = mounted("ro", "true");
        assert_eq!((ended.status, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
        assert!(ended.stderr.contains("Read-only file system"), "{ended:?}");
    }
    scratch.assert_nothing_left();
}

#[test]
fn few_descriptors_are_enough() {
    let scratch = Scratch::on_one_cpu();
    let from = scratch.at("from");
    tree(&from, 300, 1 << 20);
    let deep = (0..100).fold(from.clone(), |at, _| at.join("d"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("bottom"), "x").unwrap();
    for over in CARRIERS {
        let script = format!("ulimit -n 64; exec \"$0\" transfer from --to {over} --over {over} --cpus none");
        let ended = finish(scratch.shell(&script));
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert_arrived(&from, &scratch.at(over).join("from"));
        // A connection for each file ends with the file.
        let each = format!("{over}-each");
        let script = format!(
            "ulimit -n 64; exec \"$0\" transfer from --to {each} --over {over} --no-persistent-session --cpus none"
        );
        let ended = finish(scratch.shell(&script));
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert_arrived(&from, &scratch.at(&each).join("from"));
    }
}

#[test]
fn a_file_that_shrinks_meanwhile_kills_nobody() {
    let scratch = Scratch::on_one_cpu();
    let from = scratch.at("from");
    tree(&from, 20, 64 << 20);
    // The transfer takes half a second, and the file is cut in the middle of it.
    let arguments = ["transfer", "from", "--to", "to", "--link", "1Gb/s", "--cpus", "none"];
    let child = scratch.program(arguments).spawn().unwrap();
    let has_begun = || {
        fs::read_dir(scratch.at("to/from")).is_ok_and(|mut found| {
            found.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(".long.rdmascope-"))
        })
    };
    while !has_begun() {
        std::thread::sleep(Duration::from_millis(1));
    }
    fs::File::options().write(true).open(from.join("long")).unwrap().set_len(1000).unwrap();
    let ended = collect(child);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let sentence = "rdmascope: from/long: not sent: it shrank from 67108864 to ";
    assert!(ended.stderr.starts_with(sentence) && ended.stderr.lines().count() == 1, "{ended:?}");
    assert!(!scratch.at("to/from/long").exists());
    assert_eq!(arrived(&from, &scratch.at("to/from")), (21, 0), "the others arrive");
    scratch.assert_nothing_left();
}

#[test]
fn ends_that_were_started_by_hand_agree_on_the_directory_of_the_one_that_waits() {
    let scratch = Scratch::on_one_cpu();
    let from = scratch.at("from");
    tree(&from, 50, 1 << 20);
    for over in CARRIERS {
        let server = Server::start(&scratch, &["transfer", "--listen", "--to", over]);
        let port = server.port().to_string();
        let key = server.key();
        let peer = ["transfer", "from", "--peer", "127.0.0.1", "-p", &port, "--key", &key, "--over", over];
        let elsewhere = [&peer[..], &["--to", "elsewhere"]].concat();
        scratch.refused(&elsewhere, 2, &["leave --to out"]);
        let said = scratch.succeed(&peer);
        assert!(said.starts_with("52 files, "), "{said}");
        let ended = server.end();
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert_arrived(&from, &scratch.at(over).join("from"));
    }
    // Both hosts report what has not arrived.
    fs::create_dir_all(scratch.at("taken/from/long")).unwrap();
    let server = Server::start(&scratch, &["transfer", "--listen", "--to", "taken"]);
    let ended = send_to(&scratch, &server.port().to_string(), &server.key());
    let received = server.end();
    for ended in [&ended, &received] {
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.matches("from/long: not written: Is a directory").count(), 1, "{ended:?}");
    }
    // A server of a benchmark receives no files.
    let server = Server::start(&scratch, &["lat", "send"]);
    let port = server.port().to_string();
    let key = server.key();
    let ended = send_to(&scratch, &port, &key);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the server was not started to receive files"), "{ended:?}");
    assert_eq!(server.end().status, Some(0));
}

fn send_to(scratch: &Scratch, port: &str, key: &str) -> Ended {
    scratch.run(&["transfer", "from", "--peer", "127.0.0.1", "-p", port, "--key", key])
}

/// Number of agents that are killed. `cargo xtask ci --full` sets more.
const KILLS: usize = 8;

#[test]
fn an_end_that_is_killed_leaves_whole_files_and_a_second_transfer_the_rest() {
    let scratch = Scratch::on_all_cpus();
    let from = scratch.at("from");
    tree(&from, 600, 80 << 20);
    let kills = std::env::var("RDMASCOPE_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills: usize = kills.map_or(KILLS, |kills: usize| kills.min(200));
    let mut moments = Moments(0x2545_F491_4F6C_DD1D);
    let to = scratch.at("to");
    let start = Instant::now();
    scratch.succeed(&["transfer", "from", "--to", "to"]);
    let usual = start.elapsed();
    let mut interrupted = 0;
    for kill in 0..kills {
        fs::remove_dir_all(&to).unwrap();
        let over = CARRIERS[kill % 2];
        let mut child = scratch.program(["transfer", "from", "--to", "to", "--over", over]).spawn().unwrap();
        let both = loop {
            let agents = agents(&scratch.token());
            if agents.len() == 2 || child.try_wait().unwrap().is_some() {
                break agents;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        std::thread::sleep(moments.next(usual));
        // Rank 0 or rank 1; an agent that has ended was not interrupted.
        if let Some(victim) = both.get(kill / 2 % 2) {
            signal(victim.pid, Signal::KILL);
        }
        let ended = collect(child);
        let (files, _) = arrived(&from, &to.join("from"));
        match ended.status {
            Some(0) => assert_eq!(files, 602, "{ended:?}"),
            Some(1) => interrupted += 1,
            _ => panic!("{ended:?}"),
        }
        let said = scratch.succeed(&["transfer", "from", "--to", "to", "--over", over, "--resume"]);
        assert_arrived(&from, &to.join("from"));
        let there = if files > 0 {
            format!("\n{files} file{} there already\n", if files == 1 { " was" } else { "s were" })
        } else {
            String::new()
        };
        assert!(said.contains(&there), "{said}");
    }
    eprintln!("transfers: {interrupted} of {kills} were interrupted");
    assert!(interrupted > 0, "none was interrupted");
    scratch.assert_nothing_left();
}
