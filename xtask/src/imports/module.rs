//! The modules of a crate: the file of each, its definitions, its imports and the paths in its
//! code.

use std::collections::{BTreeMap, BTreeSet};

/// The segments of a path as written; the first may be `crate`, `self` or `super`.
pub(super) type Segments = Vec<String>;

/// `use path as name`.
pub(super) struct Import {
    /// `*` for a glob.
    pub(super) name: String,
    pub(super) path: Segments,
    /// Whether other modules can import the name from this module.
    pub(super) is_public: bool,
}

#[derive(Default)]
pub(super) struct Module {
    /// Index into [`Tree::files`].
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    pub(super) used: BTreeSet<Segments>,
    /// Macros that the code calls by their name alone; any file above may define them.
    pub(super) called: BTreeSet<String>,
}

pub(super) struct Tree {
    pub(super) files: Vec<String>,
    /// The root is first.
    pub(super) modules: Vec<Module>,
    /// The file of each `macro_rules!`, by its name.
    pub(super) macros: BTreeMap<String, usize>,
}
