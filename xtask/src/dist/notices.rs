//! The texts that must travel with the parts of the program that other authors wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::parts::Parts;

/// The file `copyright` of packages: the project's licence, each part with its own, and the texts
/// of the licences, each once. A Debian package names the terms of Apache-2.0 only by their file.
pub(super) fn copyright(checkout: &Path, is_debian: bool) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut out = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: rdmascope\n\
         \n\
         Files: *\n\
         Copyright: the rdmascope developers\n\
         License: MIT or Apache-2.0\n \
         The texts are below.\n\
         \n\
         Comment: The program contains these parts of other authors. Each is under the licence\n \
         beside its name; where there is a choice, the program takes MIT or Apache-2.0. The texts,\n \
         with the notices of their authors, follow.\n",
    );
    for part in Parts::of(checkout)?.all {
        out += &format!(" .\n {} {}: {}\n", part.name, part.version, part.license);
        for text in licence_texts(&part.directory)? {
            texts.entry(text).or_default().push(format!("{} {}", part.name, part.version));
        }
    }
    for text in licence_texts(checkout)? {
        texts.entry(text).or_default().insert(0, "rdmascope".to_owned());
    }
    for (text, of) in texts {
        let text = if is_debian { without_apache(&text) } else { text };
        out += &format!("\n{}\n{}\n\n{}\n", "-".repeat(80), of.join(", "), text.trim_end());
    }
    Ok(out)
}

/// Replaces the terms of Apache-2.0 by the name of their file in Debian. What stands before and
/// after them, such as a notice of copyright, stays.
fn without_apache(text: &str) -> String {
    const FIRST: &str = "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION";
    const LAST: &str = "END OF TERMS AND CONDITIONS";
    let Some((head, terms)) = text.split_once(FIRST) else { return text.to_owned() };
    let Some((_, rest)) = terms.split_once(LAST) else { return text.to_owned() };
    let head = head.rsplit_once("Apache License").map_or(head, |(before, _)| before).trim_end();
    format!("{head}\nApache License, Version 2.0: /usr/share/common-licenses/Apache-2.0\n{rest}")
}

/// The texts of licences and notices in the directory of a part or of this project.
fn licence_texts(directory: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(directory)?.collect::<std::io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
        let is_licence = is_licence.iter().any(|start| name.starts_with(start)) || name.ends_with(".LICENSE");
        if is_licence && entry.file_type()?.is_file() {
            let text = fs::read(entry.path())?;
            texts.push(String::from_utf8_lossy(&text).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}
