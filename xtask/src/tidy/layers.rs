//! The folders of a crate as layers: a file uses its own folder and lower layers.

use crate::imports::Graph;

/// The folders of a crate, the lowest layer first. Folders of one layer do not use each other. A
/// folder that does not exist is ignored. A file in none of the folders (the root of the crate, its
/// errors) may use every file, and every file may use it.
struct Layers {
    folder: &'static str,
    layers: &'static [&'static [&'static str]],
    /// How many imports still lead upwards. The number may only shrink.
    upward: usize,
}

const LAYERS: [Layers; 3] = [
    Layers {
        folder: "crates/softdev",
        layers: &[&["sys"], &["memory"], &["transport"], &["objects"], &["engine"], &["verbs"]],
        upward: 0,
    },
    Layers {
        folder: "crates/bench",
        layers: &[&["plan", "control"], &["worker"], &["coordinator"], &["agent"]],
        upward: 0,
    },
    Layers { folder: "crates/report", layers: &[&["cells"], &["table"], &["terminal", "html"]], upward: 0 },
];

/// Reports imports from a lower layer to a higher one, if they are more than the table allows.
pub(super) fn check(graphs: &[Graph], wrong: &mut Vec<String>) {
    compare(graphs, &LAYERS, wrong);
}

fn compare(graphs: &[Graph], table: &[Layers], wrong: &mut Vec<String>) {
    for layers in table {
        let arrows = graphs.iter().flat_map(|graph| &graph.arrows);
        let mut upward = Vec::new();
        for ((from, to), names) in arrows {
            let (Some(lower), Some(higher)) = (layer(layers, from), layer(layers, to)) else { continue };
            if lower.0 < higher.0 || (lower.0 == higher.0 && lower.1 != higher.1) {
                let lower = lower.1;
                let higher = higher.1;
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                upward.push(format!("{from}: {lower} must not use {higher}: {to}: {}", names.join(", ")));
            }
        }
        let found = upward.len();
        let most = layers.upward;
        if found > most {
            wrong.extend(upward);
        }
        if found < most {
            let folder = layers.folder;
            wrong.push(format!(
                "{folder}: {found} imports lead upwards, not {most}: lower `upward` in xtask/src/tidy/layers.rs"
            ));
        }
    }
}

/// The layer of a file and its folder: `src/sys.rs` and all below `src/sys/` are in `sys`.
fn layer(layers: &Layers, file: &str) -> Option<(usize, &'static str)> {
    let path = file.strip_prefix(layers.folder)?.strip_prefix("/src/")?;
    let is_in =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'));
    let folders = layers.layers.iter().enumerate();
    folders
        .flat_map(|(n, folders)| folders.iter().map(move |folder| (n, *folder)))
        .find(|(_, folder)| is_in(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::planted::Planted;

    fn table(upward: usize) -> [Layers; 1] {
        [Layers {
            folder: "crates/planted",
            layers: &[&["low"], &["missing"], &["middle", "beside"], &["high"]],
            upward,
        }]
    }

    fn said(low: &str, beside: &str, upward: usize) -> String {
        let planted = Planted::new(&[
            ("lib.rs", "mod low; mod middle; mod high; mod lowest; mod beside;"),
            ("low/mod.rs", "mod a; pub struct Low;"),
            ("low/a.rs", low),
            ("middle.rs", "pub struct Middle; use crate::low::Low;"),
            ("beside.rs", beside),
            ("high/mod.rs", "pub struct High; use crate::middle::Middle; use crate::lowest::Lowest;"),
            ("lowest.rs", "pub struct Lowest; use crate::high::High;"),
        ]);
        let mut wrong = Vec::new();
        compare(&[planted.graph()], &table(upward), &mut wrong);
        wrong.join("\n")
    }

    #[test]
    fn imports_lead_downwards() {
        assert_eq!(said("use super::Low; use crate::lowest::Lowest;", "use crate::low::Low;", 0), "");
        let upward = said("fn f(_: crate::high::High) { use crate::middle::Middle; }", "", 0);
        assert_eq!(upward.lines().count(), 2);
        assert_eq!(
            upward.lines().next().unwrap(),
            "crates/planted/src/low/a.rs: low must not use high: crates/planted/src/high/mod.rs: High"
        );
    }

    #[test]
    fn folders_of_one_layer_do_not_use_each_other() {
        assert!(said("", "use crate::middle::Middle;", 0).contains("beside must not use middle"));
    }

    #[test]
    fn what_leads_upwards_may_only_shrink() {
        let one = "use crate::high::High;";
        assert_eq!(said(one, "", 1), "");
        assert_eq!(said(one, "", 0).lines().count(), 1);
        assert!(said(one, "", 2).starts_with("crates/planted: 1 imports lead upwards"));
    }
}
