//! Cache files that are kept, damaged, foreign or not accessible.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use measure::conditions::Wanted;
use measure::placement::Pair;
use tempfile::TempDir;

use super::super::known::Key;
use super::*;

fn best(best_ns: f64) -> Vec<Best> {
    let pair =
        Pair { host: "a".to_owned(), model: "m".to_owned(), within: String::new(), cpus: Some([0, 1]) };
    vec![Best { key: Key { pair, conditions: Wanted::default() }, best_ns, near_s: 7 }]
}

/// Returns a directory with a cache below it.
fn scratch() -> (TempDir, Cache) {
    let dir = tempfile::tempdir().unwrap();
    let cache = at(&dir.path().join("cache"));
    (dir, cache)
}

fn at(base: &Path) -> Cache {
    Cache::of(Some(base.into()), None).unwrap()
}

#[test]
fn the_directory_is_the_users() {
    let of = |cache_home: Option<&str>, home: Option<&str>| {
        Cache::of(cache_home.map(Into::into), home.map(Into::into)).map(|cache| cache.path)
    };
    let path = |path: &str| Some(PathBuf::from(path));
    assert_eq!(of(Some("/c"), Some("/h")), path("/c/rdmascope/core-to-core.json"));
    assert_eq!(of(None, Some("/h")), path("/h/.cache/rdmascope/core-to-core.json"));
    assert_eq!(of(Some(""), Some("/h")), path("/h/.cache/rdmascope/core-to-core.json"));
    assert_eq!(of(Some("relative"), Some("/h")), path("/h/.cache/rdmascope/core-to-core.json"));
    assert_eq!(of(None, Some("")), None);
    assert_eq!(of(None, None), None);
}

#[test]
fn what_is_written_is_read_back_and_nobody_elses() {
    let (dir, cache) = scratch();
    assert_eq!(cache.read(), Some(Vec::new()));
    assert!(!dir.path().join("cache").exists(), "reading makes nothing");
    for ns in [28.3, 27.0] {
        cache.write(&best(ns)).unwrap();
        assert_eq!(cache.read(), Some(best(ns)));
    }
    let files: Vec<_> = fs::read_dir(cache.path().parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(fs::metadata(cache.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_is_damaged_is_replaced() {
    let (_dir, cache) = scratch();
    cache.write(&best(28.3)).unwrap();
    let whole = fs::read(cache.path()).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"\xff\xfe", b"[]", b"{\"version\":\"1\"}"] {
        fs::write(cache.path(), damaged).unwrap();
        assert_eq!(cache.read(), Some(Vec::new()), "{damaged:?}");
    }
    let text = String::from_utf8(whole).unwrap();
    fs::write(cache.path(), text.replacen("[{", "[7,{\"pair\":7},{", 1)).unwrap();
    assert_eq!(cache.read(), Some(best(28.3)), "one of several");
    fs::write(cache.path(), vec![b' '; 2 << 20]).unwrap();
    assert_eq!(cache.read(), Some(Vec::new()));
    cache.write(&best(27.0)).unwrap();
    assert_eq!(cache.read(), Some(best(27.0)));
}

#[test]
fn what_another_version_wrote_is_left_alone() {
    let (_dir, cache) = scratch();
    cache.write(&best(28.3)).unwrap();
    let text = fs::read_to_string(cache.path()).unwrap();
    fs::write(cache.path(), text.replace("\"version\":1", "\"version\":2")).unwrap();
    assert_eq!(cache.read(), None);
}

#[test]
fn links_are_not_followed() {
    let (dir, cache) = scratch();
    cache.write(&best(28.3)).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(cache.path(), &elsewhere).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    symlink(&elsewhere, cache.path()).unwrap();
    assert_eq!(cache.read(), None);
    cache.write(&best(27.0)).unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), before, "a write does not follow it, either");

    // A link to the directory is not followed, either.
    let own = dir.path().join("cache/rdmascope");
    fs::rename(&own, dir.path().join("other")).unwrap();
    symlink(dir.path().join("other"), &own).unwrap();
    assert_eq!(cache.read(), Some(Vec::new()));
    assert!(cache.write(&best(26.0)).is_err());
    assert!(fs::read_dir(dir.path().join("other")).unwrap().count() == 1);
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let (_dir, cache) = scratch();
    cache.write(&best(28.3)).unwrap();
    fs::remove_file(cache.path()).unwrap();
    rustix::fs::mknodat(CWD, cache.path(), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(cache.read(), None);
    fs::remove_file(cache.path()).unwrap();
    fs::create_dir(cache.path()).unwrap();
    assert_eq!(cache.read(), None);
    assert!(cache.write(&best(28.3)).is_err());
    assert_eq!(fs::read_dir(cache.path().parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn without_a_place_there_is_nothing_and_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    for base in ["/dev/null", "/proc", "/nowhere/at/all"].map(PathBuf::from) {
        let cache = at(&base);
        assert_eq!(cache.read(), Some(Vec::new()), "{base:?}");
        assert!(cache.write(&best(28.3)).is_err(), "{base:?}");
    }
    // A missing parent directory is not made.
    assert!(at(&dir.path().join("a/b")).write(&best(28.3)).is_err());
    assert!(!dir.path().join("a").exists());
}

/// With `sudo`, `HOME` may belong to another user.
#[test]
fn the_directory_of_another_user_is_not_used() {
    let (dir, cache) = scratch();
    cache.write(&best(28.3)).unwrap();
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED (root): a file cannot be given away");
        return;
    }
    let nobody = Some(65534);
    std::os::unix::fs::chown(cache.path(), nobody, nobody).unwrap();
    assert_eq!(cache.read(), None, "the file of another user");
    std::os::unix::fs::chown(dir.path().join("cache"), nobody, nobody).unwrap();
    assert_eq!(cache.read(), Some(Vec::new()));
    assert!(cache.write(&best(27.0)).is_err());
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, nobody, nobody).unwrap();
    let cache = Cache::of(None, Some(home.clone().into())).unwrap();
    assert!(cache.write(&best(28.3)).is_err());
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}
