//! Reads the files of a crate, module by module.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use syn::visit::Visit;

use super::module::{Module, Tree};
use super::names;

/// Reads a crate from its root file.
pub(super) fn read(repository: &Path, root: &Path) -> Result<Tree> {
    let mut reader =
        Reader { repository, tree: Tree { files: Vec::new(), modules: Vec::new(), macros: BTreeMap::new() } };
    let folder = root.parent().unwrap_or(root).to_owned();
    reader.file(root, &folder, None)?;
    Ok(reader.tree)
}

struct Reader<'a> {
    repository: &'a Path,
    tree: Tree,
}

impl Reader<'_> {
    /// Reads a file, which is a module. `children` is the folder of its child modules.
    fn file(&mut self, path: &Path, children: &Path, parent: Option<usize>) -> Result<usize> {
        let shown = path.strip_prefix(self.repository).unwrap_or(path).to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {shown}"))?;
        self.tree.files.push(shown);
        let file = self.tree.files.len() - 1;
        self.module(file, &parsed.items, children, parent)
    }

    fn module(
        &mut self,
        file: usize,
        items: &[syn::Item],
        children: &Path,
        parent: Option<usize>,
    ) -> Result<usize> {
        let at = self.tree.modules.len();
        self.tree.modules.push(Module { file, parent, ..Module::default() });
        for item in items.iter().filter(|item| !names::is_for_tests(names::attributes(item))) {
            if let syn::Item::Mod(child) = item {
                self.child(at, child, children)?;
                continue;
            }
            let module = &mut self.tree.modules[at];
            module.items.extend(names::defined(item));
            names::Collector { module }.visit_item(item);
            if let syn::Item::Macro(definition) = item
                && let Some(name) = &definition.ident
            {
                self.tree.macros.insert(name.to_string(), file);
            }
        }
        Ok(at)
    }

    /// `mod child;` or `mod child { ... }`.
    fn child(&mut self, parent: usize, child: &syn::ItemMod, folder: &Path) -> Result<()> {
        let name = child.ident.to_string();
        let own_folder = folder.join(&name);
        let at = if let Some((_, items)) = &child.content {
            self.module(self.tree.modules[parent].file, items, &own_folder, Some(parent))?
        } else {
            let path = file_of(folder, &name, child)?;
            self.file(&path, &own_folder, Some(parent))?
        };
        self.tree.modules[parent].children.insert(name, at);
        Ok(())
    }
}

/// The file of `mod name;` in the folder of its parent's modules.
fn file_of(folder: &Path, name: &str, child: &syn::ItemMod) -> Result<PathBuf> {
    let moved = child.attrs.iter().any(|attribute| attribute.path().is_ident("path"));
    ensure!(!moved, "mod {name} in {}: xtask cannot follow `#[path]`; move the file", folder.display());
    let beside = folder.join(format!("{name}.rs"));
    if beside.exists() { Ok(beside) } else { Ok(folder.join(name).join("mod.rs")) }
}
