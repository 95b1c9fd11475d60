//! What users can choose, and what it means for one definition.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use super::hybrid::is_type;
use super::method::Method;
use super::types::matches_name;
use super::{Cx, external, ident, names};
use crate::model::{Def, DefId, DefKind, Flavour, Model, ValueModifier};

/// What can be chosen about the output.
///
/// Rust paths are absolute (`::common::money`, `crate::money`, `serde::Serialize`), or start with `self` or `super` for
/// the module in which the output stands. A *pattern* is a scoped name, or a beginning of such names followed by `*`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the runtime crate, `::zorb` by default; not one that starts with `self` or `super`.
    pub runtime: TokenStream,
    /// Rust names in place of the converted ones: scoped IDL name, Rust name. Members, enumerators and parameters are
    /// named through what they belong to (`M::S::member`, `M::I::op::parameter`).
    pub rename: Vec<(String, String)>,
    /// Where references are never nil: patterns of members, parameters, operations, attributes and typedefs.
    pub non_nil: Vec<String>,
    /// Where the Rust of included definitions is: scoped name of a module or definition (`::` for all), and its Rust path.
    /// They are not written again, whatever [`Options::include_policy`] says. The last part of a definition's path is its
    /// Rust name.
    pub external: Vec<(String, TokenStream)>,
    /// What becomes of other included definitions.
    pub include_policy: IncludePolicy,
    /// Traits that structs, exceptions, unions and enums derive beside those that all have: patterns of types (`*` for
    /// all), and the paths of the derive macros. What a type has anyway is not derived again.
    pub derive: Vec<(String, TokenStream)>,
    /// What servants need not implement: patterns of interfaces, operations and attributes (`*` for all). These answer
    /// `NO_IMPLEMENT` (completion No) then, so that a new operation breaks no server.
    pub default_bodies: Vec<String>,
    /// Interfaces whose references get `sendc_` methods, and a trait for the handlers of the replies: patterns of interfaces (`*` for
    /// all).
    pub ami: Vec<String>,
    /// What the interpreter marshals, in place of code of its own, as behind `@interpretive`: patterns of structs, exceptions,
    /// unions, enums, and of interfaces for what their calls send (`*` for all). Types that cannot be interpreted are left out.
    pub interpretive: Vec<String>,
    /// Types that are interpreted so many times and compiled then, as behind `@adaptive`: patterns, and numbers of uses from 1 on.
    pub adaptive: Vec<(String, u32)>,
    /// Name of a function that gives the use counts of all adaptive types.
    pub uses: Option<String>,
}

/// What becomes of definitions in files that are included and not among those that the compiler was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludePolicy {
    /// They are written like all others.
    #[default]
    Compile,
    /// They are not written. Those that others use need an entry of [`Options::external`].
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

/// Why an option cannot be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionProblem {
    /// The entry of [`Options::rename`] at this position names nothing in the IDL.
    UnknownName(usize),
    /// The Rust name of the entry at this position is no identifier.
    NotAnIdentifier(usize),
    /// The entry of [`Options::external`] at this position covers no included definition.
    NothingExternal(usize),
    /// The pattern of the entry of [`Options::derive`] at this position covers no struct, exception, union, enum or state
    /// of a value.
    NothingDerives(usize),
    /// The entry of [`Options::default_bodies`] at this position covers no operation or attribute.
    NoBodies(usize),
    /// The pattern of the entry of [`Options::ami`] at this position covers no interface that can have handlers.
    NoHandler(usize),
    /// The pattern of the entry of [`Options::interpretive`] at this position covers no struct, exception, union, enum or interface.
    NothingInterpreted(usize),
    /// The pattern of the entry of [`Options::adaptive`] at this position covers no struct, exception, union or enum.
    NothingAdapts(usize),
    /// The number of the entry of [`Options::adaptive`] at this position is 0.
    NoUses(usize),
    /// [`Options::uses`] is no identifier.
    UsesName,
    /// [`Options::runtime`] starts with `self` or `super`, which mean another module in each module of the output.
    RelativeRuntime,
}

impl Options {
    /// What is wrong with these options for this model, in the order of the entries.
    pub fn check(&self, model: &Model) -> Vec<OptionProblem> {
        let known = names::renamable(model);
        let check = |(index, (idl, rust)): (usize, &(String, String))| {
            if !known.contains(idl.trim_start_matches("::")) {
                return Some(OptionProblem::UnknownName(index));
            }
            (!ident::is_identifier(rust)).then_some(OptionProblem::NotAnIdentifier(index))
        };
        let external = (0..self.external.len()).filter_map(|index| external::problem(model, self, index));
        // That all of nothing derive something is no mistake.
        let covered = |pattern: &str, is_one: fn(&DefKind) -> bool| {
            let mut defs = model.defs().iter().filter(|def| is_one(&def.kind));
            pattern == "*" || defs.any(|def| covers(model, pattern, def.id))
        };
        let derive = self.derive.iter().enumerate().filter_map(|(index, (pattern, _))| {
            (!covered(pattern, derives)).then_some(OptionProblem::NothingDerives(index))
        });
        let bodies = self.default_bodies.iter().enumerate().filter_map(|(index, pattern)| {
            let has_body = |kind: &DefKind| matches!(kind, DefKind::Operation(_) | DefKind::Attribute(_));
            (!covered(pattern, has_body)).then_some(OptionProblem::NoBodies(index))
        });
        let ami = self.ami.iter().enumerate().filter_map(|(index, pattern)| {
            let is_plain = |kind: &DefKind| {
                matches!(kind, DefKind::Interface(interface) if interface.flavour == Flavour::Plain)
            };
            (!covered(pattern, is_plain)).then_some(OptionProblem::NoHandler(index))
        });
        let interpretive = self.interpretive.iter().enumerate().filter_map(|(index, pattern)| {
            let is_one = |kind: &DefKind| is_type(kind) || matches!(kind, DefKind::Interface(_));
            (!covered(pattern, is_one)).then_some(OptionProblem::NothingInterpreted(index))
        });
        let adaptive = self.adaptive.iter().enumerate().filter_map(|(index, (pattern, uses))| match uses {
            0 => Some(OptionProblem::NoUses(index)),
            _ => (!covered(pattern, is_type)).then_some(OptionProblem::NothingAdapts(index)),
        });
        let named = self.uses.as_ref().filter(|name| !ident::is_identifier(name));
        let hybrid = interpretive.chain(adaptive).chain(named.map(|_| OptionProblem::UsesName));
        let relative = starts_with(&self.runtime).then_some(OptionProblem::RelativeRuntime);
        let renamed = self.rename.iter().enumerate().filter_map(check);
        renamed.chain(external).chain(derive).chain(bodies).chain(ami).chain(hybrid).chain(relative).collect()
    }
}

impl Options {
    /// Replies of the interface can go to handlers.
    pub(super) fn handles(&self, model: &Model, id: DefId) -> bool {
        self.ami.iter().any(|pattern| matches_name(pattern, &model.scoped_name(id)))
    }
}

/// Types on which derives stand.
fn derives(kind: &DefKind) -> bool {
    match kind {
        DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_) => true,
        DefKind::Bitset(_) | DefKind::Bitmask(_) => true,
        DefKind::Value(value) => value.modifier != ValueModifier::Abstract,
        DefKind::ValueBox(_) => true,
        _ => false,
    }
}

/// A pattern names the definition or the one that it is a member of.
fn covers(model: &Model, pattern: &str, id: DefId) -> bool {
    let is_owner = |owner: &DefId| model.interface(*owner).is_some() || model.value(*owner).is_some();
    let owner = model.def(id).parent.filter(is_owner);
    [Some(id), owner].into_iter().flatten().any(|id| matches_name(pattern, &model.scoped_name(id)))
}

/// A path that starts with `self` or `super`.
fn starts_with(path: &TokenStream) -> bool {
    matches!(path.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "self" || word == "super")
}

/// A path of the user's as it is `up` modules below the module that the user sees: what starts with `self` or `super` starts
/// from there.
pub(super) fn placed(path: &TokenStream, up: usize) -> TokenStream {
    if up == 0 || !starts_with(path) {
        return path.clone();
    }
    let supers = std::iter::repeat_n(quote!(super), up);
    let mut rest = path.clone().into_iter().peekable();
    // `self` is where the way up leads.
    if rest.next_if(|tree| matches!(tree, TokenTree::Ident(word) if word == "self")).is_some() {
        let rest: TokenStream = rest.collect();
        return quote!(#(#supers)::* #rest);
    }
    quote!(#(#supers)::* :: #path)
}

/// Derive macros that every Rust knows, with the paths of their traits: paths, since IDL may use the names.
const KNOWN: &[(&str, &str)] = &[
    ("Clone", "clone"),
    ("Copy", "marker"),
    ("Debug", "fmt"),
    ("Default", "default"),
    ("Eq", "cmp"),
    ("Hash", "hash"),
    ("Ord", "cmp"),
    ("PartialEq", "cmp"),
    ("PartialOrd", "cmp"),
];

impl Cx<'_> {
    /// What the user wants a type to derive, `has` left out, which it has.
    pub(super) fn derives(&self, depth: usize, def: &Def, has: &[&str]) -> TokenStream {
        let scoped = self.model.scoped_name(def.id);
        let mut seen = Vec::new();
        let mut paths = Vec::new();
        for (_, path) in self.options.derive.iter().filter(|(pattern, _)| matches_name(pattern, &scoped)) {
            let text = path.to_string().replace(' ', "");
            let known = KNOWN.iter().find(|(name, module)| {
                let text = text.trim_start_matches("::");
                text == *name
                    || ["core", "std"].iter().any(|root| text == format!("{root}::{module}::{name}"))
            });
            let key = known.map_or(text.clone(), |(name, _)| (*name).to_owned());
            if has.contains(&key.as_str()) || seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let span =
                path.clone().into_iter().next().map_or(proc_macro2::Span::call_site(), |tree| tree.span());
            paths.push(match known {
                Some((name, module)) => {
                    let (name, module) =
                        (proc_macro2::Ident::new(name, span), proc_macro2::Ident::new(module, span));
                    quote!(::core::#module::#name)
                }
                None => placed(path, self.up(depth)),
            });
        }
        if paths.is_empty() { TokenStream::new() } else { quote!(#[derive(#(#paths),*)]) }
    }

    /// What a struct, exception or union has without being asked.
    pub(super) fn derived(&self, id: DefId) -> &'static [&'static str] {
        match (self.model.is_hashable_def(id), self.def_has_default(id)) {
            (true, true) => &["Clone", "Debug", "PartialEq", "Default", "Eq", "Hash"],
            (true, false) => &["Clone", "Debug", "PartialEq", "Eq", "Hash"],
            (false, true) => &["Clone", "Debug", "PartialEq", "Default"],
            (false, false) => &["Clone", "Debug", "PartialEq"],
        }
    }

    /// The servant need not implement the method.
    pub(super) fn has_default_body(&self, method: &Method) -> bool {
        self.options.default_bodies.iter().any(|pattern| covers(self.model, pattern, method.def))
    }
}
