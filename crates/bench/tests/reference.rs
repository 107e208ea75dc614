//! docs/axes.md and docs/plan-reference.md agree with the definitions that read plans.

use std::path::Path;

use bench::reference;

#[test]
fn the_reference_of_plans_is_made_of_what_reads_them() {
    is_fresh("plan-reference.md", &reference::plans());
}

#[test]
fn the_reference_of_axes_is_made_of_their_rows() {
    is_fresh("axes.md", &reference::axes());
}

/// Checks that a page equals the generated text, or writes the page if `UPDATE_REFERENCE` is set.
fn is_fresh(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let how = "is stale; rewrite it with: UPDATE_REFERENCE=1 cargo test -p bench --test reference";
    assert!(found == text, "docs/{page} {how}");
}
