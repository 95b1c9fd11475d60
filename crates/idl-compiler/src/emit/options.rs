//! Options of the user, their paths and their patterns.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use crate::model::{DefId, Model};

/// Options of the output.
///
/// Rust paths are absolute (`::common::money`, `crate::money`, `serde::Serialize`), or start with `self` or
/// `super`, relative to the module that contains the output. A *pattern* is a scoped name, or a prefix of
/// such names followed by `*`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the runtime crate, by default `::zorb`. It must not start with `self` or `super`.
    pub runtime: TokenStream,
    /// Rust names that replace the converted ones: scoped IDL name, Rust name. Members, enumerators and
    /// parameters are named relative to their owner (`M::S::member`, `M::I::op::parameter`).
    pub rename: Vec<(String, String)>,
    /// References that are never nil: patterns of members, parameters, operations, attributes and typedefs.
    pub non_nil: Vec<String>,
    /// Locations of the Rust of included definitions: the scoped name of a module or definition (`::` for
    /// all), and its Rust path. These definitions are not emitted, regardless of
    /// [`Options::include_policy`]. The last segment of the path of a definition is its Rust name.
    pub external: Vec<(String, TokenStream)>,
    /// The treatment of other included definitions.
    pub include_policy: IncludePolicy,
    /// Traits that structs, exceptions, unions and enums derive in addition to the default ones: patterns of
    /// types (`*` for all), and the paths of the derive macros. Traits that a type has already are not
    /// derived again.
    pub derive: Vec<(String, TokenStream)>,
    /// Methods that servants need not implement: patterns of interfaces, operations and attributes (`*` for
    /// all). By default they raise `NO_IMPLEMENT` (completion No), so that servers still compile after an
    /// operation was added.
    pub default_bodies: Vec<String>,
    /// Interfaces whose references get `sendc_` methods, and for which a trait of reply handlers is emitted:
    /// patterns of interfaces (`*` for all).
    pub ami: Vec<String>,
    /// Types that the interpreter marshals, as with `@interpretive`: patterns of structs, exceptions, unions
    /// and enums (`*` for all). A pattern of an interface applies to the types of the parameters and results
    /// in its calls. Types that cannot be interpreted are ignored.
    pub interpretive: Vec<String>,
    /// Types that are interpreted for a number of uses and then compiled, as with `@adaptive`: patterns, and
    /// numbers of uses, at least 1.
    pub adaptive: Vec<(String, u32)>,
    /// Name of a function that returns the use counts of all adaptive types.
    pub uses: Option<String>,
}

/// The treatment of definitions in included files that are not input files of the compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludePolicy {
    /// They are emitted like all others.
    #[default]
    Compile,
    /// They are not emitted. Those that other definitions use need an entry of [`Options::external`].
    Extern,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            runtime: quote!(::zorb),
            rename: Vec::new(),
            non_nil: Vec::new(),
            external: Vec::new(),
            include_policy: IncludePolicy::Compile,
            derive: Vec::new(),
            default_bodies: Vec::new(),
            ami: Vec::new(),
            interpretive: Vec::new(),
            adaptive: Vec::new(),
            uses: None,
        }
    }
}

/// The reason why an option is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionProblem {
    /// The entry of [`Options::rename`] at this index names nothing in the IDL.
    UnknownName(usize),
    /// The Rust name of the entry at this index is not an identifier.
    NotAnIdentifier(usize),
    /// The entry of [`Options::external`] at this index names no included definition.
    UnmatchedExternal(usize),
    /// The pattern of the entry of [`Options::derive`] at this index matches no struct, exception, union,
    /// enum or state of a value.
    UnmatchedDerive(usize),
    /// The pattern of [`Options::default_bodies`] at this index matches no operation or attribute.
    UnmatchedDefaultBody(usize),
    /// The pattern of [`Options::ami`] at this index matches no interface that can have handlers.
    UnmatchedAmi(usize),
    /// The pattern of [`Options::interpretive`] at this index matches no struct, exception, union, enum or
    /// interface.
    UnmatchedInterpretive(usize),
    /// The pattern of the entry of [`Options::adaptive`] at this index matches no struct, exception, union or
    /// enum.
    UnmatchedAdaptive(usize),
    /// The number of the entry of [`Options::adaptive`] at this index is 0.
    ZeroUses(usize),
    /// [`Options::uses`] is not an identifier.
    InvalidUsesName,
    /// [`Options::runtime`] starts with `self` or `super`, which have another meaning in each module of the
    /// output.
    RelativeRuntime,
}

impl Options {
    /// Returns whether replies of the interface can be delivered to handlers.
    pub(super) fn has_handlers(&self, model: &Model, id: DefId) -> bool {
        self.ami.iter().any(|pattern| matches_name(pattern, &model.scoped_name(id)))
    }
}

/// Returns whether a pattern names the definition or the one that it is a member of.
pub(super) fn covers(model: &Model, pattern: &str, id: DefId) -> bool {
    let is_owner = |owner: &DefId| model.interface(*owner).is_some() || model.value(*owner).is_some();
    let owner = model.def(id).parent.filter(is_owner);
    [Some(id), owner].into_iter().flatten().any(|id| matches_name(pattern, &model.scoped_name(id)))
}

/// Returns whether a path starts with `self` or `super`.
pub(super) fn is_relative(path: &TokenStream) -> bool {
    matches!(path.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "self" || word == "super")
}

/// Returns a path of the user for code that is `up` modules below the user's module. Paths that start with
/// `self` or `super` are relative to the user's module.
pub(super) fn relative_path(path: &TokenStream, up: usize) -> TokenStream {
    if up == 0 || !is_relative(path) {
        return path.clone();
    }
    let supers = std::iter::repeat_n(quote!(super), up);
    let mut rest = path.clone().into_iter().peekable();
    // `self` is the user's module.
    if rest.next_if(|tree| matches!(tree, TokenTree::Ident(word) if word == "self")).is_some() {
        let rest: TokenStream = rest.collect();
        return quote!(#(#supers)::* #rest);
    }
    quote!(#(#supers)::* :: #path)
}

/// Returns whether a scoped name matches a pattern: a scoped name, or a prefix
/// followed by `*`.
pub(super) fn matches_name(pattern: &str, scoped: &str) -> bool {
    let pattern = pattern.trim_start_matches("::");
    match pattern.strip_suffix('*') {
        Some(prefix) => scoped.starts_with(prefix),
        None => scoped == pattern,
    }
}
