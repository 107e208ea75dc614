//! No function of libibverbs that takes an object of the device is missing: a missing one would
//! crash its caller.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rdmascope_preload::{LEFT, LIBRARY, LOOKUPS, NEVER_MADE, SYMBOLS};
use support::library;

/// Functions of newer versions than Debian's: rdma-core 64, `libibverbs/libibverbs.map.in`,
/// `IBVERBS_1.15` to `1.18`.
const NEWER: [&str; 19] = [
    "_ibv_query_comp_cntr_caps",
    "ibv_alloc_buf",
    "ibv_alloc_dmah",
    "ibv_create_comp_cntr",
    "ibv_dealloc_dmah",
    "ibv_destroy_comp_cntr",
    "ibv_dm_export_dmabuf_fd",
    "ibv_export_buf_dmabuf_fd",
    "ibv_free_buf",
    "ibv_inc_comp_cntr",
    "ibv_inc_err_comp_cntr",
    "ibv_qp_attach_comp_cntr",
    "ibv_query_port_speed",
    "ibv_read_comp_cntr",
    "ibv_read_err_comp_cntr",
    "ibv_reg_buf_mr",
    "ibv_reg_mr_ex",
    "ibv_set_comp_cntr",
    "ibv_set_err_comp_cntr",
];

/// The paths of libibverbs on Debian and other distributions.
const SYSTEM: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/libibverbs.so.1",
    "/usr/lib/aarch64-linux-gnu/libibverbs.so.1",
    "/usr/lib64/libibverbs.so.1",
];

/// Returns the definitions of a library: names with their versions, `ibv_open_device@@IBVERBS_1.1`.
fn defined(library: &Path) -> Vec<String> {
    let nm = Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library).output();
    let output = nm.expect("nm comes with the linker");
    assert!(output.status.success(), "{}: {}", library.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let of_kind = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        (words.next()? != "A").then(|| name.to_owned())
    };
    text.lines().filter_map(of_kind).collect()
}

#[test]
fn the_library_defines_the_table_and_nothing_else() {
    let found: BTreeSet<_> = defined(&library()).into_iter().collect();
    let table: BTreeSet<_> = SYMBOLS.iter().chain(LOOKUPS).map(|name| (*name).to_owned()).collect();
    assert_eq!(found, table, "an unversioned symbol for each entry of the table");
    assert_eq!(table.len(), SYMBOLS.len() + LOOKUPS.len(), "no entry is there twice");
}

#[test]
fn every_public_function_is_there_or_left_with_a_reason() {
    let Some(system) = SYSTEM.iter().map(Path::new).find(|path| path.exists()) else {
        let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
        assert!(!required.contains("header"), "libibverbs is not installed");
        return eprintln!("SKIPPED: libibverbs is not installed");
    };
    let symbols = defined(system);
    let public = symbols.iter().filter(|symbol| !symbol.contains("PRIVATE"));
    let public: BTreeSet<_> = public.filter_map(|symbol| symbol.split('@').next()).collect();
    assert!(public.len() > 70, "{public:?}");
    let covered = |name: &&str| SYMBOLS.contains(name) || LEFT.contains(name);
    let missed: Vec<_> = public.iter().copied().filter(|name| !covered(name)).collect();
    assert!(missed.is_empty(), "neither defined nor left: {missed:?}");
    let gone: Vec<_> = LEFT.iter().filter(|name| !public.contains(*name)).collect();
    assert!(gone.is_empty(), "left to a library that does not have them: {gone:?}");
    // The only private function that programs outside of rdma-core use.
    assert!(symbols.iter().any(|symbol| symbol.starts_with("ibv_query_gid_type@")));
    assert!(SYMBOLS.contains(&"ibv_query_gid_type"));
}

#[test]
fn newer_functions_are_refused_or_cannot_be_reached() {
    for name in &NEWER {
        assert!(SYMBOLS.contains(name) != NEVER_MADE.contains(name), "{name}");
    }
    for name in NEVER_MADE {
        assert!(NEWER.contains(name), "{name} is of no version");
    }
    let both: Vec<_> = LEFT.iter().filter(|name| SYMBOLS.contains(name)).collect();
    assert!(both.is_empty(), "{both:?}");
}

/// A library that is preloaded into every program must cost nothing if it is not used.
#[test]
fn loading_the_library_opens_nothing() {
    let list = |preload: Option<PathBuf>| {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "ls -l /proc/self/fd | sed 's/.* //' | grep -c -v proc; exec grep -c . /proc/self/task/*/comm",
        ]);
        if let Some(library) = preload {
            shell.env("LD_PRELOAD", library);
        }
        let output = shell.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let with = list(Some(library()));
    assert_eq!(with, list(None), "descriptors and threads");
    let maps = Command::new("grep").arg(LIBRARY).arg("/proc/self/maps").env("LD_PRELOAD", library()).output();
    assert!(!maps.unwrap().stdout.is_empty(), "the library was not loaded at all");
}
