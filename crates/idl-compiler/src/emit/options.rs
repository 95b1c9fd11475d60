//! Options of the user, their check against a model, and their effect on one definition.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::is_interpretable;
use super::method::Method;
use super::{external, ident, names};
use crate::model::{Def, DefId, DefKind, Flavour, Model, ValueModifier};

/// Options of the output.
///
/// Rust paths are absolute (`::common::money`, `crate::money`, `serde::Serialize`), or start with `self` or
/// `super`, relative to the module that contains the output. A *pattern* is a scoped name, or a prefix of
/// such names followed by `*`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the runtime crate, by default `::zorb`. It must not start with `self` or `super`.
    pub runtime: TokenStream,
    /// Rust names that replace the converted ones: pairs of a scoped IDL name and a Rust name. The scoped
    /// name of a member, enumerator or parameter starts with that of its owner, such as `M::S::member`.
    pub rename: Vec<(String, String)>,
    /// References that are never nil: patterns of members, parameters, operations, attributes and typedefs.
    pub non_nil: Vec<String>,
    /// The Rust paths of included definitions: pairs of a scoped name and a Rust path. The name is that of a
    /// module or definition, or `::` for all. For a module or `::`, the path is that of a Rust module. For a
    /// definition, the path ends with its Rust name. No code is emitted for included definitions with a path,
    /// regardless of [`Options::include_policy`]. An entry for a native type gives its Rust type.
    pub external: Vec<(String, TokenStream)>,
    /// The treatment of other included definitions.
    pub include_policy: IncludePolicy,
    /// Traits that types derive in addition to the default ones: pairs of a pattern of types (`*` for all)
    /// and the path of a derive macro. Traits that a type already implements are not derived again.
    pub derive: Vec<(String, TokenStream)>,
    /// Methods that servants need not implement: patterns of interfaces, operations and attributes (`*` for
    /// all). Their default bodies raise `NO_IMPLEMENT` (completion No), so that servers still compile after
    /// an operation was added.
    pub default_bodies: Vec<String>,
    /// Interfaces whose references get `sendc_` methods, and for which a trait of reply handlers is emitted:
    /// patterns of interfaces (`*` for all).
    pub ami: Vec<String>,
    /// Types that the interpreter of the runtime marshals, as with `@interpretive`: patterns of structs,
    /// exceptions, unions and enums (`*` for all). A pattern of an interface applies to the types of the
    /// parameters and results in its calls. Types that cannot be interpreted are ignored.
    pub interpretive: Vec<String>,
    /// Types that the interpreter marshals for a number of uses, and generated code afterwards, as with
    /// `@adaptive`: pairs of a pattern and the number of uses, which is at least 1.
    pub adaptive: Vec<(String, u32)>,
    /// Name of a function that returns the use counts of all adaptive types.
    pub use_counts_fn: Option<String>,
}

/// The treatment of definitions in included files that are not input files of the compiler. No code is
/// emitted for definitions of standard files that the runtime contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludePolicy {
    /// They are emitted like all others.
    #[default]
    Compile,
    /// No code is emitted for them. If they are used, they need an entry of [`Options::external`].
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
            use_counts_fn: None,
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
    /// The entry of [`Options::external`] at this index names no included definition and no native type.
    UnmatchedExternal(usize),
    /// The pattern of [`Options::derive`] at this index matches no type that can derive traits.
    UnmatchedDerive(usize),
    /// The pattern of [`Options::default_bodies`] at this index matches no operation or attribute.
    UnmatchedDefaultBody(usize),
    /// The pattern of [`Options::ami`] at this index matches no interface that can have handlers.
    UnmatchedAmi(usize),
    /// The pattern of [`Options::interpretive`] at this index matches no type or interface.
    UnmatchedInterpretive(usize),
    /// The pattern of [`Options::adaptive`] at this index matches no struct, exception, union or enum.
    UnmatchedAdaptive(usize),
    /// The number of the entry of [`Options::adaptive`] at this index is 0.
    ZeroUses(usize),
    /// [`Options::use_counts_fn`] is not an identifier.
    InvalidUseCountsFn,
    /// [`Options::runtime`] starts with `self` or `super`, whose meaning differs between modules.
    RelativeRuntime,
}

impl OptionProblem {
    /// Returns the name of the invalid field of [`Options`] (`uses` for `use_counts_fn`), and the message.
    pub fn describe(self, options: &Options) -> (&'static str, String) {
        fn not_a_name<'o>(list: impl IntoIterator<Item = &'o String>, index: usize, kinds: &str) -> String {
            let name = list.into_iter().nth(index).map_or("", String::as_str);
            format!("`{name}` is not the name of {kinds}")
        }
        const TYPES: &str = "a struct, exception, union or enum";
        match self {
            OptionProblem::UnknownName(index) => {
                let names = options.rename.iter().map(|(idl, _)| idl);
                let kinds = "a definition, member, enumerator or parameter in this IDL";
                ("rename", not_a_name(names, index, kinds))
            }
            OptionProblem::NotAnIdentifier(index) => {
                let rust = options.rename.get(index).map_or("", |(_, rust)| rust);
                ("rename", format!("`{rust}` is not an identifier"))
            }
            OptionProblem::UnmatchedExternal(index) => {
                let idl = options.external.get(index).map_or("", |(idl, _)| idl);
                ("external", format!("no included file defines `{idl}`"))
            }
            OptionProblem::UnmatchedDerive(index) => {
                let kinds = "a type that can derive traits";
                ("derive", not_a_name(options.derive.iter().map(|(idl, _)| idl), index, kinds))
            }
            OptionProblem::UnmatchedDefaultBody(index) => {
                let kinds = "an interface, operation or attribute";
                ("default_bodies", not_a_name(&options.default_bodies, index, kinds))
            }
            OptionProblem::UnmatchedAmi(index) => {
                ("ami", not_a_name(&options.ami, index, "an interface for remote objects"))
            }
            OptionProblem::UnmatchedInterpretive(index) => {
                let kinds = "a struct, exception, union, enum or interface";
                ("interpretive", not_a_name(&options.interpretive, index, kinds))
            }
            OptionProblem::UnmatchedAdaptive(index) => {
                ("adaptive", not_a_name(options.adaptive.iter().map(|(idl, _)| idl), index, TYPES))
            }
            OptionProblem::ZeroUses(_) => ("adaptive", "the number of uses must be at least 1".to_owned()),
            OptionProblem::InvalidUseCountsFn => (
                "uses",
                format!("`{}` is not an identifier", options.use_counts_fn.as_deref().unwrap_or_default()),
            ),
            OptionProblem::RelativeRuntime => (
                "runtime",
                "the path of the crate must not start with `self` or `super`: use `::` or `crate`".to_owned(),
            ),
        }
    }
}

impl Options {
    /// Returns the invalid options for this model, in the order of the entries.
    pub fn check(&self, model: &Model) -> Vec<OptionProblem> {
        let known = names::renamable_names(model);
        let check = |(index, (idl, rust)): (usize, &(String, String))| {
            if !known.contains(idl.trim_start_matches("::")) {
                return Some(OptionProblem::UnknownName(index));
            }
            (!ident::is_identifier(rust)).then_some(OptionProblem::NotAnIdentifier(index))
        };
        let external = (0..self.external.len()).filter_map(|index| external::problem(model, self, index));
        // `*` is valid even if it matches nothing.
        let matches_any = |pattern: &str, has_kind: fn(&DefKind) -> bool| {
            let mut defs = model.defs().iter().filter(|def| has_kind(&def.kind));
            pattern == "*" || defs.any(|def| covers(model, pattern, def.id))
        };
        let derive = self.derive.iter().enumerate().filter_map(|(index, (pattern, _))| {
            (!matches_any(pattern, can_derive)).then_some(OptionProblem::UnmatchedDerive(index))
        });
        let bodies = self.default_bodies.iter().enumerate().filter_map(|(index, pattern)| {
            let has_body = |kind: &DefKind| matches!(kind, DefKind::Operation(_) | DefKind::Attribute(_));
            (!matches_any(pattern, has_body)).then_some(OptionProblem::UnmatchedDefaultBody(index))
        });
        let ami = self.ami.iter().enumerate().filter_map(|(index, pattern)| {
            let is_plain = |kind: &DefKind| {
                matches!(kind, DefKind::Interface(interface) if interface.flavour == Flavour::Plain)
            };
            (!matches_any(pattern, is_plain)).then_some(OptionProblem::UnmatchedAmi(index))
        });
        let interpretive = self.interpretive.iter().enumerate().filter_map(|(index, pattern)| {
            let has_kind = |kind: &DefKind| is_interpretable(kind) || matches!(kind, DefKind::Interface(_));
            (!matches_any(pattern, has_kind)).then_some(OptionProblem::UnmatchedInterpretive(index))
        });
        let adaptive = self.adaptive.iter().enumerate().filter_map(|(index, (pattern, uses))| match uses {
            0 => Some(OptionProblem::ZeroUses(index)),
            _ => (!matches_any(pattern, is_interpretable)).then_some(OptionProblem::UnmatchedAdaptive(index)),
        });
        let invalid_name = self.use_counts_fn.as_ref().filter(|name| !ident::is_identifier(name));
        let modes =
            interpretive.chain(adaptive).chain(invalid_name.map(|_| OptionProblem::InvalidUseCountsFn));
        let relative = is_relative(&self.runtime).then_some(OptionProblem::RelativeRuntime);
        let renamed = self.rename.iter().enumerate().filter_map(check);
        renamed.chain(external).chain(derive).chain(bodies).chain(ami).chain(modes).chain(relative).collect()
    }

    pub(super) fn has_handlers(&self, model: &Model, id: DefId) -> bool {
        self.ami.iter().any(|pattern| matches_name(pattern, &model.scoped_name(id)))
    }
}

/// Returns whether a pattern matches a definition, or the interface or value type that contains it.
pub(super) fn covers(model: &Model, pattern: &str, id: DefId) -> bool {
    let is_owner = |owner: &DefId| model.interface(*owner).is_some() || model.value(*owner).is_some();
    let owner = model.def(id).parent.filter(is_owner);
    [Some(id), owner].into_iter().flatten().any(|id| matches_name(pattern, &model.scoped_name(id)))
}

pub(super) fn is_relative(path: &TokenStream) -> bool {
    matches!(path.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "self" || word == "super")
}

/// Returns a path from the options for code that is `up` modules below the module that contains the output. A
/// path that starts with `self` or `super` is adjusted.
pub(super) fn relative_path(path: &TokenStream, up: usize) -> TokenStream {
    if up == 0 || !is_relative(path) {
        return path.clone();
    }
    let supers = std::iter::repeat_n(quote!(super), up);
    let mut rest = path.clone().into_iter().peekable();
    // `self` is the module that contains the output.
    if rest.next_if(|tree| matches!(tree, TokenTree::Ident(word) if word == "self")).is_some() {
        let rest: TokenStream = rest.collect();
        return quote!(#(#supers)::* #rest);
    }
    quote!(#(#supers)::* :: #path)
}

/// Returns whether a scoped name matches a pattern: a scoped name, or a prefix followed by `*`.
pub(super) fn matches_name(pattern: &str, scoped: &str) -> bool {
    let pattern = pattern.trim_start_matches("::");
    match pattern.strip_suffix('*') {
        Some(prefix) => scoped.starts_with(prefix),
        None => scoped == pattern,
    }
}

/// Returns whether [`Options::derive`] applies to definitions of this kind.
fn can_derive(kind: &DefKind) -> bool {
    match kind {
        DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_) => true,
        DefKind::Bitset(_) | DefKind::Bitmask(_) | DefKind::ValueBox(_) => true,
        DefKind::Value(value) => value.modifier != ValueModifier::Abstract,
        _ => false,
    }
}

/// Standard derive macros with the modules of their traits, because full paths are emitted.
const STANDARD_DERIVES: &[(&str, &str)] = &[
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
    /// Returns the requested `#[derive]` of a type, without the traits that it implements by default.
    pub(super) fn derives(&self, depth: ModuleDepth, def: &Def, default: &[&str]) -> TokenStream {
        let scoped = self.model.scoped_name(def.id);
        let mut seen = Vec::new();
        let mut paths = Vec::new();
        for (_, path) in self.options.derive.iter().filter(|(pattern, _)| matches_name(pattern, &scoped)) {
            let text = path.to_string().replace(' ', "");
            let standard = STANDARD_DERIVES.iter().find(|(name, module)| {
                let text = text.trim_start_matches("::");
                text == *name
                    || ["core", "std"].iter().any(|root| text == format!("{root}::{module}::{name}"))
            });
            let key = standard.map_or(text.clone(), |(name, _)| (*name).to_owned());
            if default.contains(&key.as_str()) || seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let span =
                path.clone().into_iter().next().map_or(proc_macro2::Span::call_site(), |tree| tree.span());
            paths.push(match standard {
                Some((name, module)) => {
                    let (name, module) =
                        (proc_macro2::Ident::new(name, span), proc_macro2::Ident::new(module, span));
                    quote!(::core::#module::#name)
                }
                None => relative_path(path, self.paths.enclosing_module_count(depth)),
            });
        }
        if paths.is_empty() { TokenStream::new() } else { quote!(#[derive(#(#paths),*)]) }
    }

    pub(super) fn has_default_body(&self, method: &Method) -> bool {
        self.options.default_bodies.iter().any(|pattern| covers(self.model, pattern, method.def))
    }
}
