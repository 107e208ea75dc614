use super::planted::Planted;
use super::*;

/// All arrows as `from -> to: names`, with paths below `src/` and without `.rs`.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let short =
        |path: &str| path.trim_start_matches("crates/planted/src/").trim_end_matches(".rs").to_owned();
    let shown = |((from, to), names): (&(String, String), &BTreeSet<String>)| {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        format!("{} -> {}: {}", short(from), short(to), names.join(", "))
    };
    Planted::new(files).graph().arrows.iter().map(shown).collect()
}

#[test]
fn an_import_is_an_arrow_in_every_form() {
    let b = ("b.rs", "pub struct One; pub struct Two; pub fn three() {} pub enum Four { Five }");
    for text in [
        "use crate::b::One;",
        "use super::b::One;",
        "use super::b::{One};",
        "use super::{b::{One as Other}};",
        "fn f() { use crate::b::One; }",
        "pub use crate::b::One;",
        "pub(super) use crate::b::{One as Other};",
        "fn f(_: crate::b::One) {}",
        "impl Trait for crate::b::One {}",
        "fn f() { let _: Vec<super::b::One> = vec![]; }",
        "use super::b; fn f() -> b::One {}",
        "use super::b as other; fn f() -> other::One {}",
        "use super::b::*; fn f() -> One {}",
        "fn f() { assert!(matches!(x, crate::b::One)) }",
        "fn f() { println!(\"{:?}\", [super::b::One, 1 + x.y]) }",
        "mod inner { use super::super::b::One; }",
        "struct S { #[serde(with = \"super::b::One\")] field: u8 }",
    ] {
        assert_eq!(arrows(&[("lib.rs", "mod a; mod b;"), ("a.rs", text), b]), ["a -> b: One"], "{text}");
    }
    let several = "use crate::b::{self, One, three}; fn f() { b::Four::Five; }";
    assert_eq!(arrows(&[("lib.rs", "mod a; mod b;"), ("a.rs", several), b]), ["a -> b: Four, One, three"]);
}

#[test]
fn what_is_no_import_is_no_arrow() {
    let b = ("b.rs", "pub struct One; pub mod c { pub fn run() {} }");
    for text in [
        "use std::One;",
        "//! `crate::b::One`\n",
        "/// [`crate::b::One`] \nfn f() { \"crate::b::One\"; }",
        "pub(in crate::b) fn f() {}",
        "#[cfg(test)] mod tests { use crate::b::One; }",
        "#[cfg(test)] use crate::b::One;",
        "#[cfg(doc)] use crate::b::One;",
        "#[cfg(all(loom, test))] use crate::b::One;",
        "#[test] fn f() { crate::b::One; }",
        "struct S; impl S { #[cfg(test)] fn f() { crate::b::One; } }",
        "use super::b;",
        "use super::b::*; fn f(x: X) { x.One; println!(\"{}\", x.One); }",
    ] {
        let none: [&str; 0] = [];
        assert_eq!(arrows(&[("lib.rs", "mod a; mod b;"), ("a.rs", text), b]), none, "{text}");
    }
    let not_test = "#[cfg(not(test))] use crate::b::One;";
    assert_eq!(arrows(&[("lib.rs", "mod a; mod b;"), ("a.rs", not_test), b]).len(), 1);
}

#[test]
fn a_reexport_leads_to_the_file_that_defines() {
    let files = [
        ("lib.rs", "mod a; mod parent;"),
        ("a.rs", "use crate::parent::{Child, Deep, Renamed, own};"),
        (
            "parent/mod.rs",
            "mod child; mod globbed; pub use child::Child; pub(crate) use self::globbed::*;
            pub use child::Other as Renamed; pub fn own() {}",
        ),
        ("parent/child.rs", "pub struct Child; pub struct Other;"),
        ("parent/globbed/mod.rs", "mod deep; pub use deep::Deep;"),
        ("parent/globbed/deep.rs", "pub struct Deep;"),
    ];
    let expected = [
        "a -> parent/child: Child, Renamed",
        "a -> parent/globbed/deep: Deep",
        "a -> parent/mod: own",
        "parent/globbed/mod -> parent/globbed/deep: Deep",
        "parent/mod -> parent/child: Child, Other",
        "parent/mod -> parent/globbed/mod: *",
    ];
    assert_eq!(arrows(&files), expected);
}

#[test]
fn what_a_parent_names_of_a_child_is_an_arrow() {
    let files = [
        ("lib.rs", "mod child; use child::Child; pub fn f() -> Child { child::make() }"),
        ("child.rs", "pub struct Child; pub fn make() -> Child {}"),
    ];
    assert_eq!(arrows(&files), ["lib -> child: Child, make"]);
}

#[test]
fn macros_lead_to_their_file() {
    let files = [
        ("lib.rs", "#[macro_use] mod b; mod a; mod c;"),
        ("a.rs", "fn f() { textual!(); } fn g() { crate::b::imported!() }"),
        (
            "b.rs",
            "macro_rules! textual { () => { $crate::c::run() } } macro_rules! imported { () => {} }
            pub(crate) use imported;",
        ),
        ("c.rs", "made! { pub struct Made; } pub fn run() {}"),
    ];
    assert_eq!(arrows(&files), ["a -> b: imported, textual!", "b -> c: run"]);
}

#[test]
fn a_ring_of_imports_ends() {
    let ring = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use super::b::*;"),
        ("b.rs", "pub use super::a::*; fn f() { X }"),
    ];
    assert_eq!(arrows(&ring), ["a -> b: *", "b -> a: *"]);
}

#[test]
fn a_missing_file_is_named() {
    let planted = Planted::new(&[("lib.rs", "mod gone;")]);
    let error = planted.read().map(|_| ()).unwrap_err();
    assert!(format!("{error:#}").contains("crates/planted/src/gone/mod.rs"), "{error:#}");
}

#[test]
fn this_crate_can_be_read() {
    let graph = of_crate(&crate::shell::root(), "xtask").unwrap();
    let arrow = |from: &str, to: &str| (format!("xtask/src/{from}.rs"), format!("xtask/src/{to}.rs"));
    assert!(graph.arrows.contains_key(&arrow("check", "shell")));
    assert!(!graph.arrows.contains_key(&arrow("shell", "check")));
    assert!(!graph.files.iter().any(|file| file.contains("imports/tests.rs")));
}

mod circles_of_files {
    use super::*;

    /// Four files in a ring, two in another, one that only uses the first.
    fn planted() -> Graph {
        let uses = |name: &str| format!("pub struct S; use super::{name}::S as Other;");
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let next = ["b", "c", "d", "a", "f", "e", "a"];
        let mut files =
            vec![("lib.rs".to_owned(), "mod a; mod b; mod c; mod d; mod e; mod f; mod g;".to_owned())];
        files.extend(names.iter().zip(next).map(|(name, next)| (format!("{name}.rs"), uses(next))));
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Planted::new(&files).graph()
    }

    #[test]
    fn planted_ones_are_found() {
        let short = |file: &String| file["crates/planted/src/".len()..].trim_end_matches(".rs").to_owned();
        let found: Vec<Vec<_>> =
            circles::find(&planted()).iter().map(|x| x.iter().map(short).collect()).collect();
        assert_eq!(found, [vec!["a", "b", "c", "d"], vec!["e", "f"]]);
    }

    #[test]
    fn a_cut_says_what_is_left() {
        let graph = planted();
        let circles = circles::find(&graph);
        let arrows = circles::arrows_within(&graph, &circles[0]);
        assert_eq!(arrows.len(), 4);
        assert!(circles::cuts(&arrows).iter().all(|(left, ..)| *left == 0));
    }
}
