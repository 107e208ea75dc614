//! Names that established terms have replaced: no identifier in code may use them again.

use proc_macro2::{TokenStream, TokenTree};

/// Retired names and the names to use instead. The commit that renames an identifier adds it here.
const RETIRED: [(&str, &str); 34] = [
    ("Alternation", "StopAndWait"),
    ("alternation", "stop_and_wait"),
    ("Anchor", "ClockReference"),
    ("clear_landing", "clear_places"),
    ("Company", "Placement"),
    ("company", "placement"),
    ("Course", "Schedule"),
    ("Crew", "RankSet"),
    ("crew", "rank_set"),
    ("fetching_hub", "fetching_root"),
    ("fetching_spoke", "fetching_leaf"),
    ("give_way", "yield_cpu"),
    ("gives_way", "yields_cpu"),
    ("greet_as", "send_sync_as"),
    ("Guest", "ClientSession"),
    ("hail", "start_message"),
    ("hailed", "started"),
    ("has_landed", "is_placed"),
    ("hub", "root"),
    ("Lasted", "StreamSpan"),
    ("Lent", "ZeroCopyBuffers"),
    ("Manner", "DatagramMode"),
    ("Presence", "RankInfo"),
    ("presence", "info"),
    ("Settled", "RefusedFlags"),
    ("Signs", "PolledFlags"),
    ("spoke", "leaf"),
    ("spokes", "leaves"),
    ("Sunk", "SinkReport"),
    ("sunk", "sink_report"),
    ("Timepiece", "RankClock"),
    ("timepiece", "rank_clock"),
    ("try_greet", "try_send_sync"),
    ("try_greet_as", "try_send_sync_as"),
];

/// Reports retired names among the identifiers of a crate's source file and in its path.
pub(super) fn check(path: &str, text: &str, wrong: &mut Vec<String>) {
    let parts: Vec<_> = path.split('/').collect();
    if parts.first() == Some(&"crates") && parts.get(2) == Some(&"src") {
        find(path, text, &RETIRED, wrong);
    }
}

fn find(path: &str, text: &str, retired: &[(&str, &str)], wrong: &mut Vec<String>) {
    let new = |word: &str| retired.iter().find(|(old, _)| *old == word).map(|(_, new)| *new);
    for part in path.split(['/', '.']) {
        if let Some(new) = new(part) {
            wrong.push(format!("{path}: {part} is a retired name; use {new}"));
        }
    }
    if !retired.iter().any(|(old, _)| text.contains(old)) {
        return;
    }
    match text.parse::<TokenStream>() {
        Ok(stream) => identifiers(stream, &mut |line, word| {
            if let Some(new) = new(word) {
                wrong.push(format!("{path}:{line}: {word} is a retired name; use {new}"));
            }
        }),
        Err(error) => wrong.push(format!("{path}: cannot be parsed: {error}")),
    }
}

fn identifiers(stream: TokenStream, look: &mut impl FnMut(usize, &str)) {
    for tree in stream {
        match tree {
            TokenTree::Ident(word) => look(word.span().start().line, &word.to_string()),
            TokenTree::Group(group) => identifiers(group.stream(), look),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_word_is_refused_as_a_whole_name() {
        let retired = [("Crew", "RankSet"), ("lent", "zero_copy")];
        let said = |path: &str, text: &str| {
            let mut wrong = Vec::new();
            find(path, text, &retired, &mut wrong);
            wrong
        };
        let path = "crates/bench/src/ranks.rs";
        let text = "//! A Crew.\n\nstruct Crews { silent: u8 } // lent\nconst S: &str = \"Crew lent\";\n";
        assert_eq!(said(path, text), [""; 0]);
        let text = "fn f() {\n    println!(\"{}\", Crew::new());\n}\nmod lent;\n";
        assert_eq!(
            said(path, text),
            [
                format!("{path}:2: Crew is a retired name; use RankSet"),
                format!("{path}:4: lent is a retired name; use zero_copy")
            ]
        );
        assert_eq!(said("crates/bench/src/lent/a.rs", "").len(), 1);
        assert_eq!(said("crates/bench/src/silent.rs", "").len(), 0);
    }
}
