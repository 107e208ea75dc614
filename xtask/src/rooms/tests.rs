use std::path::PathBuf;

use super::*;

/// A repository whose program prints the word in `src/word.rs`, with a patch in xtask/rooms/.
struct Planted(tempfile::TempDir);

const ROOM: Room = Room { name: "pattern", files_max: 2 };

impl Planted {
    /// The patch changes the word to `nop`, makes a new file, and has a heading.
    fn new(heading: &str) -> Self {
        let planted = Self(tempfile::tempdir().unwrap());
        planted.write(
            "Cargo.toml",
            "[package]\nname = \"rdmascope\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        );
        planted.write("Cargo.lock", "version = 4\n[[package]]\nname = \"rdmascope\"\nversion = \"0.1.0\"\n");
        planted.write(".gitignore", "/target\n");
        planted.write(
            "src/main.rs",
            "mod word;\nfn main() {\n    println!(\"{} {:?}\", word::WORD, std::env::args());\n}\n",
        );
        planted.write("src/word.rs", "pub const WORD: &str = \"old\";\n");
        planted.git(&["init", "--quiet"]);
        planted.git(&["add", "."]);
        planted.write("src/word.rs", "mod nop;\npub const WORD: &str = nop::NAME;\n");
        planted.write("src/word/nop.rs", "pub const NAME: &str = \"nop\";\n");
        planted.git(&["add", "--intent-to-add", "."]);
        let patch = planted.git(&["diff"]);
        planted.git(&["rm", "--quiet", "--cached", "src/word/nop.rs"]);
        planted.write("src/word.rs", "pub const WORD: &str = \"old\";\n");
        fs::remove_file(planted.path("src/word/nop.rs")).unwrap();
        planted.write("xtask/rooms/pattern.patch", &format!("{heading}{patch}"));
        planted
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        let output = Command::new("git").args(words).current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn measured(&self, room: &Room) -> String {
        match measure(self.0.path(), &self.path("target/rooms"), room, true) {
            Ok(said) => said,
            Err(error) => format!("{error:#}"),
        }
    }
}

const HEADING: &str = "A pattern.\n$ rdmascope nop --help\n> nop Args\n> \"--help\"\n\n";

#[test]
fn a_patch_is_built_tried_and_counted() {
    let planted = Planted::new(HEADING);
    let said = "2 files touched, at most 2: src/word.rs, src/word/nop.rs";
    assert_eq!(planted.measured(&ROOM), said);
    // From the scratch copy that the patch has changed.
    assert_eq!(planted.measured(&ROOM), said);
    assert!(
        planted
            .measured(&Room { files_max: 1, ..ROOM })
            .starts_with("2 files touched, more than 1: src/word.rs")
    );
    assert_eq!(fs::read_to_string(planted.path("src/word.rs")).unwrap(), "pub const WORD: &str = \"old\";\n");
}

#[test]
fn what_a_patch_changed_is_taken_back_in_what_is_built() {
    let planted = Planted::new(HEADING);
    planted.measured(&ROOM);
    let scratch = Scratch::new(&planted.path(""), &planted.path("target/rooms")).unwrap();
    scratch.build().unwrap();
    let step = |expected: &str| patch::Step { command: "rdmascope".into(), expected: vec![expected.into()] };
    scratch.attempt(&step("old Args")).unwrap();
    assert!(
        format!("{:#}", scratch.attempt(&step("nop Args")).unwrap_err())
            .contains("does not print `nop Args`; it prints")
    );
    assert!(!planted.path("target/rooms/checkout/src/word/nop.rs").exists());
}

#[test]
fn a_patch_that_does_not_do_what_it_says_fails() {
    let said = Planted::new("$ rdmascope\n> another\n").measured(&ROOM);
    assert!(said.contains("applies, but does not work: `rdmascope` does not print `another`"), "{said}");
    let said = Planted::new("$ rm -r x\n> another\n").measured(&ROOM);
    assert!(said.contains("does not begin with rdmascope"), "{said}");
    let said = Planted::new("$ rdmascope\n").measured(&ROOM);
    assert!(said.contains("its heading tries nothing"), "{said}");
}

#[test]
fn a_patch_that_does_not_build_fails() {
    let planted = Planted::new(HEADING);
    planted.write("src/main.rs", "mod word;\nfn main() -> u8 { word::WORD }\n");
    let said = planted.measured(&ROOM);
    assert!(said.contains("cargo build: ") && said.contains("error"), "{said}");
}

#[test]
fn a_patch_that_no_longer_applies_says_how_to_mend_it() {
    let planted = Planted::new(HEADING);
    planted.write("src/word.rs", "pub const WORD: &str = \"newer\";\n");
    let said = planted.measured(&ROOM);
    assert!(said.starts_with("xtask/rooms/pattern.patch no longer applies: run `git apply --3way"), "{said}");
    assert!(said.contains("src/word.rs"), "{said}");
}

#[test]
fn changes_are_kept_below_the_heading() {
    let planted = Planted::new(HEADING);
    planted.git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "--quiet",
        "--all",
        "--message",
        "a",
    ]);
    assert_eq!(
        keep(planted.0.path(), "pattern").unwrap_err().to_string(),
        "the checkout has no changes to keep"
    );
    planted.write("src/word.rs", "mod other;\npub const WORD: &str = other::NAME;\n");
    planted.write("src/word/other.rs", "pub const NAME: &str = \"nop\";\n");
    let staged = planted.git(&["diff", "--cached"]);
    keep(planted.0.path(), "pattern").unwrap();
    assert_eq!(planted.git(&["diff", "--cached"]), staged);
    planted.git(&["apply", "--reverse", "xtask/rooms/pattern.patch"]);
    assert!(!planted.path("src/word/other.rs").exists());
    assert_eq!(planted.measured(&ROOM), "2 files touched, at most 2: src/word.rs, src/word/other.rs");
}

#[test]
fn a_missing_patch_is_an_error() {
    let said = Planted::new(HEADING).measured(&Room { name: "axis", files_max: 3 });
    assert_eq!(said, "xtask/rooms/axis.patch: No such file or directory (os error 2)");
}
