//! The paths in source code.

use proc_macro2::{TokenStream, TokenTree};
use syn::UseTree;

/// Returns all paths in a `use` tree, each with the name that it introduces, which is `*` for a glob.
pub(crate) fn use_paths(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(path) => use_paths(&path.tree)
            .into_iter()
            .map(|(rest, name)| {
                let first = path.ident.to_string();
                match rest.as_slice() {
                    [only] if only == "self" => {
                        (vec![first.clone()], if name == "self" { first } else { name })
                    }
                    rest => ([&[first], rest].concat(), name),
                }
            })
            .collect(),
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(rename) => vec![(vec![rename.ident.to_string()], rename.rename.to_string())],
        UseTree::Glob(_) => vec![(vec!["*".to_owned()], "*".to_owned())],
        UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
    }
}

/// Calls `on_path` for each path in the tokens of a macro, with the line of its first segment.
pub(crate) fn macro_paths(tokens: TokenStream, on_path: &mut impl FnMut(Vec<String>, usize)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        match token {
            TokenTree::Group(group) => macro_paths(group.stream(), on_path),
            TokenTree::Ident(ident) => {
                let (line, mut path) = (ident.span().start().line, vec![ident.to_string()]);
                while let [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(next), ..] =
                    tokens.get(index + 1..).unwrap_or_default()
                    && a.as_char() == ':'
                    && b.as_char() == ':'
                {
                    path.push(next.to_string());
                    index += 3;
                }
                on_path(path, line);
            }
            _ => {}
        }
        index += 1;
    }
}
