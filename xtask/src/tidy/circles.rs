//! Circles of files: files of a crate that need each other, so that none of them can be read,
//! tested or moved alone.

use anyhow::Result;

use crate::imports::circles::{self, Circle};
use crate::imports::{self, Graph};
use crate::shell;

/// The largest number of files of a circle that may stay with a reason.
const SMALL: usize = 3;
/// How many cuts of a circle are printed.
const CUTS: usize = 5;

/// A circle of two or three files that stays, and why it does no harm.
struct Kept {
    files: &'static [&'static str],
    reason: &'static str,
}

const KEPT: [Kept; 0] = [];

/// The files and imports of all crates.
pub(super) fn graphs() -> Result<Vec<Graph>> {
    let manifests = shell::output(&["git", "ls-files", "crates/*/Cargo.toml", "xtask/Cargo.toml"])?;
    let folders = manifests.lines().filter_map(|path| path.strip_suffix("/Cargo.toml"));
    let crates = folders.filter(|folder| shell::root().join(folder).join("src").exists());
    crates.map(|folder| imports::of_crate(&shell::root(), folder)).collect()
}

/// Reports circles that are not in the table, and lines of the table without a circle.
pub(super) fn check(graphs: &[Graph], wrong: &mut Vec<String>) {
    let found: Vec<Circle> = graphs.iter().flat_map(circles::find).collect();
    compare(&found, &KEPT, wrong);
}

fn compare(found: &[Circle], kept: &[Kept], wrong: &mut Vec<String>) {
    for circle in found {
        if !kept.iter().any(|kept| kept.files == circle) {
            wrong.push(new(circle));
        }
    }
    for kept in kept {
        let files = kept.files.join(", ");
        if !found.iter().any(|circle| kept.files == circle) {
            wrong.push(format!(
                "{files}: these files are no circle now: remove their line from xtask/src/tidy/circles.rs"
            ));
        }
        if kept.files.len() > SMALL || kept.reason.is_empty() {
            wrong.push(format!("{files}: a circle stays only if it has at most {SMALL} files and a reason"));
        }
    }
}

fn new(circle: &Circle) -> String {
    let advice = if circle.len() > SMALL {
        "cut it (cargo xtask tidy --circles prints its imports)"
    } else {
        "cut it, or add it to xtask/src/tidy/circles.rs with the reason why it stays"
    };
    format!("{}: {} files need each other: {}: {advice}", circle[0], circle.len(), circle.join(", "))
}

pub(super) fn summary() -> Result<String> {
    let sizes: Vec<usize> = graphs()?.iter().flat_map(circles::find).map(|circle| circle.len()).collect();
    let large = sizes.iter().filter(|files| **files > SMALL).count();
    let largest = sizes.iter().max().unwrap_or(&0);
    Ok(format!(
        "circles of files: {}, of more than {SMALL} files: {large}, the largest has {largest}",
        sizes.len()
    ))
}

/// Prints all circles with their imports and the best places to cut them.
pub(super) fn print() -> Result<()> {
    for graph in graphs()? {
        for circle in circles::find(&graph) {
            let arrows = circles::arrows_within(&graph, &circle);
            println!("{} files, {} arrows: {}", circle.len(), arrows.len(), circle.join(" "));
            for (from, to, names) in &arrows {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                println!("  {from} -> {to}: {}", names.join(", "));
            }
            for (left, from, to) in circles::cuts(&arrows).into_iter().take(CUTS) {
                println!("  without {from} -> {to} the largest circle has {left} files");
            }
            println!();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(names: &str) -> Circle {
        names.split(' ').map(str::to_owned).collect()
    }

    fn said(found: &[Circle], kept: &[Kept]) -> String {
        let mut wrong = Vec::new();
        compare(found, kept, &mut wrong);
        wrong.join("\n")
    }

    #[test]
    fn a_new_circle_is_refused_whatever_its_size() {
        assert_eq!(said(&[], &[]), "");
        assert!(
            said(&[circle("a b c d")], &[]).starts_with("a: 4 files need each other: a, b, c, d: cut it (")
        );
        assert!(said(&[circle("a b")], &[]).ends_with("why it stays"));
    }

    #[test]
    fn a_small_circle_stays_with_a_reason() {
        let kept = |files, reason| [Kept { files, reason }];
        assert_eq!(said(&[circle("a b")], &kept(&["a", "b"], "one state")), "");
        assert!(said(&[circle("a b")], &kept(&["a", "b"], "")).contains("and a reason"));
        assert!(said(&[circle("a b c")], &kept(&["a", "b"], "one state")).contains("are no circle now"));
        let four = kept(&["a", "b", "c", "d"], "large");
        assert!(said(&[circle("a b c d")], &four).contains("at most 3 files"));
    }
}
