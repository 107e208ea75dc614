//! The names that a module defines, imports and uses.

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use super::module::{Import, Module, Segments};
use super::tokens;

/// Collects the imports and paths of code in its module.
pub(super) struct Collector<'a> {
    pub(super) module: &'a mut Module,
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, Visibility::Inherited);
        import(&mut Vec::new(), &item.tree, is_public, &mut self.module.imports);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.module.used.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// The content of a macro call cannot be parsed without the macro, but its paths can be found.
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if let Some(name) = called.path.get_ident() {
            self.module.called.insert(name.to_string());
        }
        self.visit_path(&called.path);
        self.module.used.extend(tokens::paths(called.tokens.clone()));
    }

    /// Only the paths in the strings of an attribute count, as in `#[serde(with = "super::hex")]`.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.module.used.extend(tokens::quoted_paths(list.tokens.clone()));
        }
    }

    /// `pub(in path)` restricts visibility and uses nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// Flattens the tree of a `use`.
fn import(prefix: &mut Segments, tree: &UseTree, is_public: bool, imports: &mut Vec<Import>) {
    let mut add = |name: &syn::Ident, source: &syn::Ident| {
        let mut path = prefix.clone();
        if source != "self" || path.is_empty() {
            path.push(source.to_string());
        }
        let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name.to_string() };
        imports.push(Import { name, path, is_public });
    };
    match tree {
        UseTree::Name(leaf) => add(&leaf.ident, &leaf.ident),
        UseTree::Rename(leaf) => add(&leaf.rename, &leaf.ident),
        UseTree::Glob(_) => imports.push(Import { name: "*".to_owned(), path: prefix.clone(), is_public }),
        UseTree::Path(part) => {
            prefix.push(part.ident.to_string());
            import(prefix, &part.tree, is_public, imports);
            prefix.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                import(prefix, tree, is_public, imports);
            }
        }
    }
}

/// The names that an item defines in its module.
pub(super) fn defined(item: &Item) -> Vec<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => match &item.ident {
            Some(name) => name,
            None => return tokens::defined(item.mac.tokens.clone()),
        },
        _ => return Vec::new(),
    };
    vec![name.to_string()]
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item exists only in tests or documentation: `#[test]`, `#[cfg(test)]`,
/// `#[cfg(all(test, ...))]` and `#[cfg(doc)]`.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => tokens::requires_test(list.tokens.clone()),
        _ => false,
    })
}
