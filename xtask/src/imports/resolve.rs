//! Finds the file that defines the item of a path.

use super::module::{Module, Segments, Tree};

/// The longest chain of imports that is followed; a longer one is a ring.
const LONGEST_CHAIN: usize = 16;

#[derive(Clone, Copy, PartialEq)]
enum Found {
    Module(usize),
    /// An item that a file defines.
    Item(usize),
}

/// All arrows: from file, to file, name. A file has no arrow to itself.
pub(super) fn arrows(tree: &Tree) -> Vec<(usize, usize, String)> {
    let mut arrows = Vec::new();
    for (at, module) in tree.modules.iter().enumerate() {
        let (globs, imports): (Vec<_>, Vec<_>) = module.imports.iter().partition(|import| import.name == "*");
        for glob in globs.iter().filter(|glob| glob.is_public) {
            if let Some((Found::Module(source), _)) = resolve(tree, at, &glob.path, 0) {
                arrows.push((module.file, tree.modules[source].file, "*".to_owned()));
            }
        }
        let named = imports.into_iter().map(|import| &import.path).chain(&module.used);
        for path in named {
            if let Some((file, name)) = definition(tree, at, path) {
                arrows.push((module.file, file, name));
            }
        }
        for name in module.called.iter().filter(|name| lookup(tree, at, name, true, 0).is_none()) {
            if let Some(file) = tree.macros.get(name) {
                arrows.push((module.file, *file, format!("{name}!")));
            }
        }
    }
    arrows.retain(|(from, to, _)| from != to);
    arrows
}

/// The file that defines the item of a path, and the item's name. `None` if the path is a module.
fn definition(tree: &Tree, at: usize, path: &Segments) -> Option<(usize, String)> {
    let (found, used) = resolve(tree, at, path, 0)?;
    let Found::Item(file) = found else { return None };
    Some((file, path.get(used - 1).cloned().unwrap_or_default()))
}

/// The target of a path, and how many of its segments name the target: `Kind::First` names `Kind`
/// by one segment.
fn resolve(tree: &Tree, at: usize, path: &Segments, chain: usize) -> Option<(Found, usize)> {
    let first = path.first()?;
    let last = path.len() - 1;
    let mut found = match first.as_str() {
        "crate" => Found::Module(0),
        "self" => Found::Module(at),
        "super" => Found::Module(tree.modules[at].parent?),
        name => lookup(tree, at, name, last == 0, chain)?,
    };
    for (n, name) in path.iter().enumerate().skip(1) {
        let Found::Module(module) = found else { return Some((found, n)) };
        found = if name == "super" {
            Found::Module(tree.modules[module].parent?)
        } else {
            // An item that a macro defines is not seen: it is taken to be in the module of the
            // path.
            let file = tree.modules[module].file;
            lookup(tree, module, name, n == last, chain).unwrap_or(Found::Item(file))
        };
    }
    Some((found, path.len()))
}

/// The meaning of a name in a module. An item and a module may have the same name; only the last
/// segment of a path can be an item.
fn lookup(tree: &Tree, at: usize, name: &str, is_last: bool, chain: usize) -> Option<Found> {
    if chain > LONGEST_CHAIN {
        return None;
    }
    let module: &Module = &tree.modules[at];
    let child = module.children.get(name).map(|child| Found::Module(*child));
    let item = module.items.contains(name).then_some(Found::Item(module.file));
    let own = if is_last { item.or(child) } else { child.or(item) };
    let follow = |path| resolve(tree, at, path, chain + 1).map(|(found, _)| found);
    let imported = || {
        let import = module.imports.iter().find(|import| import.name == name)?;
        follow(&import.path)
    };
    let globbed = || {
        module.imports.iter().filter(|import| import.name == "*").find_map(|glob| match follow(&glob.path)? {
            Found::Module(source) if source != at => lookup(tree, source, name, is_last, chain + 1),
            _ => None,
        })
    };
    own.or_else(imported).or_else(globbed)
}
