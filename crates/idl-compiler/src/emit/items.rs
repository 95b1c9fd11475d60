//! The structure of the output: the hidden module, modules of scopes, typedefs, constants, re-exports.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::cx::{Cx, ModuleDepth};
use super::docs::{doc, line_and_doc};
use super::forms::TypeUse;
use super::names::aliased_interface;
use super::{
    abstracts, ami, bits, client, described, enums, errors, interpreted, local, reference, servant, structs,
    typed, unions, value, value_ops,
};
use crate::model::{Const, Def, DefId, DefKind, Docs, Flavour, Type};
use crate::work;

impl Cx<'_> {
    /// Returns the public names that a definition adds to its scope, including hidden modules.
    pub(super) fn exported_names(&self, id: DefId) -> Vec<Ident> {
        let names = &self.paths.names[id];
        let def = self.model.def(id);
        let at = self.model.rust_span(def.span);
        let mut exported = Vec::new();
        match &def.kind {
            DefKind::Operation(_) | DefKind::Attribute(_) => return exported,
            DefKind::Interface(_) => {
                exported.extend([names.item.at(at), names.reference.at(at), names.servant.at(at)]);
                exported.extend(self.model.is_abstract_interface(id).then(|| names.operations_trait.at(at)));
                exported.extend(self.has_handler(id).then(|| names.handler.at(at)));
                exported.push(self.paths.hidden_name(id).ident());
            }
            DefKind::Typedef(_) => {
                exported.extend([names.type_code.ident(), self.paths.alias_constant(id).ident()]);
                exported.push(names.item.at(at));
                if let Some(interface) = aliased_interface(self.model, id) {
                    exported.extend([names.reference.at(at), names.servant.at(at)]);
                    let is_abstract = self.model.is_abstract_interface(interface);
                    exported.extend(is_abstract.then(|| names.operations_trait.at(at)));
                    exported.extend(self.has_module(interface).then(|| names.module.at(at)));
                    return exported;
                }
            }
            DefKind::Value(value) => {
                exported.push(names.item.at(at));
                if self.has_operations(id) {
                    exported.extend([names.operations_trait.at(at), self.paths.hidden_name(id).ident()]);
                }
                exported.extend((!value.factories.is_empty()).then(|| names.factory_trait.at(at)));
            }
            DefKind::Module(_) => return vec![names.module.at(at)],
            _ => exported.push(names.item.at(at)),
        }
        exported.extend(self.has_module(id).then(|| names.module.ident()));
        exported
    }

    fn has_module(&self, id: DefId) -> bool {
        self.has_module_content.get_or_compute(id, || self.compute_has_module(id))
    }

    fn compute_has_module(&self, id: DefId) -> bool {
        // Operations and attributes are not items, but the types of their errors and results are.
        let has_items = || {
            let is_item = |id: &DefId| {
                !matches!(self.model.def(*id).kind, DefKind::Operation(_) | DefKind::Attribute(_))
            };
            self.model.children(id).iter().any(is_item)
                || self.methods[&id]
                    .iter()
                    .any(|method| method.error_enum.is_some() || method.result_struct.is_some())
        };
        match &self.model.def(id).kind {
            DefKind::Module(_) => true,
            DefKind::Interface(interface) => {
                has_items() || interface.bases.iter().any(|base| self.has_module(*base))
            }
            DefKind::Value(value) => {
                has_items() || value.factories.iter().any(|factory| !factory.raises.is_empty())
            }
            DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) => {
                !self.model.children(id).is_empty()
            }
            _ => false,
        }
    }

    /// Returns the documentation of an item: the comment in the IDL, or a default text. A module gets both.
    pub(super) fn item_docs(&self, def: &Def, kind: &str) -> TokenStream {
        let scoped = self.model.scoped_name(def.id);
        if let (DefKind::Module(_), true) = (&def.kind, !def.docs.is_empty()) {
            return line_and_doc(&format!("IDL module `{scoped}`."), &def.docs);
        }
        doc(&def.docs, &format!("IDL {kind} `{scoped}` (`{}`).", def.repository_id))
    }
}

pub(super) fn output(cx: &Cx<'_>) -> TokenStream {
    let roots: Vec<DefId> =
        cx.model.roots().iter().copied().filter(|id| cx.paths.external.is_emitted(*id)).collect();
    if roots.is_empty() {
        return TokenStream::new();
    }
    if cx.options.use_counts_fn.is_none()
        && roots.iter().all(|root| cx.model.is_module(*root))
        && let Some(modules) = cx.paths.emit_direct(&roots, |root| items(cx, 0, &[root]))
    {
        return modules;
    }
    let hidden = hidden_name(cx, &roots);
    let items = items(cx, 0, &roots);
    let use_counts_fn = interpreted::use_counts_function(cx);
    let use_counts_name = cx.options.use_counts_fn.as_ref().map(|name| format_ident!("{name}"));
    let names = roots.iter().flat_map(|id| cx.exported_names(*id));
    let (private, public): (Vec<Ident>, Vec<Ident>) =
        names.partition(|name| name.to_string().to_lowercase().starts_with("__zorb_"));
    let private = (!private.is_empty()).then(|| {
        quote! {
            #[doc(hidden)]
            pub use #hidden::{#(#private),*};
        }
    });
    quote! {
        #[doc(hidden)]
        mod #hidden {
            #(#items)*
            #use_counts_fn
        }

        #[doc(inline)]
        pub use #hidden::{#(#public,)* #use_counts_name};
        #private
    }
}

/// Returns the name of the hidden module. It contains a hash of the file-level names of the IDL, so that the
/// hidden modules of several outputs differ.
fn hidden_name(cx: &Cx<'_>, roots: &[DefId]) -> Ident {
    // FNV-1a gives the same names on every host and in every version of Rust.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for id in roots {
        for byte in cx.model.def(*id).name.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format_ident!("__zorb_idl_{hash:016x}")
}

/// Emits the items of definitions in one scope, whose module is `depth` levels below the hidden root.
pub(super) fn items(cx: &Cx<'_>, depth: ModuleDepth, ids: &[DefId]) -> Vec<TokenStream> {
    let emitted = ids.iter().filter(|id| cx.paths.external.is_emitted(**id));
    emitted.map(|id| definition(cx, depth, cx.model.def(*id))).collect()
}

fn definition(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    work::count_step();
    let item = match &def.kind {
        DefKind::Module(_) => return module(cx, depth, def),
        DefKind::Interface(body) => return interface(cx, depth, def, body.flavour),
        // Operations and attributes are emitted with their interface.
        DefKind::Operation(_) | DefKind::Attribute(_) => return TokenStream::new(),
        DefKind::Struct(_) | DefKind::Exception(_) => structs::structure(cx, depth, def),
        DefKind::Union(body) => unions::union(cx, depth, def, body),
        DefKind::Enum(body) => enums::enumeration(cx, depth, def, body),
        DefKind::Typedef(_) => typedef(cx, depth, def),
        DefKind::Const(body) => constant(cx, depth, def, body),
        DefKind::Native => local::native(cx, depth, def),
        DefKind::Value(value) => value::value_type(cx, depth, def, value),
        DefKind::ValueBox(content) => value::value_box(cx, depth, def, content.ty),
        DefKind::Bitset(body) => bits::bitset(cx, depth, def, body),
        DefKind::Bitmask(body) => bits::bitmask(cx, depth, def, body),
    };
    let typed = typed::typed(cx, depth, def);
    let mut inside = items(cx, depth + 1, cx.model.children(def.id));
    if let DefKind::Value(value) = &def.kind {
        inside.extend(value_ops::operation_types(cx, depth + 1, def, value));
    }
    let scope = scope_module(cx, def, inside);
    quote!(#item #typed #scope)
}

fn scope_module(cx: &Cx<'_>, def: &Def, inside: Vec<TokenStream>) -> TokenStream {
    if !cx.has_module(def.id) {
        return TokenStream::new();
    }
    let name = &cx.paths.names[def.id].module;
    let docs = doc(&Docs::default(), &format!("The items that `{}` declares.", cx.model.scoped_name(def.id)));
    quote!(#docs pub mod #name { #(#inside)* })
}

fn module(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let name = cx.paths.names[def.id].module.at(cx.model.rust_span(def.span));
    let docs = cx.item_docs(def, "module");
    let items = items(cx, depth + 1, cx.model.children(def.id));
    quote!(#docs pub mod #name { #(#items)* })
}

fn interface(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, flavour: Flavour) -> TokenStream {
    let lineage = cx.model.lineage(def.id);
    let (reference, hidden) = match flavour {
        Flavour::Local => {
            (local::local_reference(cx, depth, def), local::hidden_local_module(cx, depth + 1, def, &lineage))
        }
        Flavour::Abstract => (
            abstracts::abstract_reference(cx, depth, def),
            abstracts::hidden_abstract_module(cx, depth + 1, def),
        ),
        Flavour::Plain => {
            (reference::reference_type(cx, depth, def), servant::hidden_module(cx, depth + 1, def, &lineage))
        }
    };
    let typed = typed::typed(cx, depth, def);
    let described = described::interface_desc(cx, depth, def);
    let inherent = client::inherent_methods(cx, depth, def, &lineage);
    let client_trait = client::client_trait(cx, depth, def);
    let client_impls = client::client_impls(cx, depth, def, &lineage);
    let servant = servant::servant_trait(cx, depth, def);
    let operations = value_ops::operations(cx, depth, def);
    let handlers = ami::handlers(cx, depth, def, &lineage);

    let mut inside = items(cx, depth + 1, cx.model.children(def.id));
    for method in &cx.methods[&def.id] {
        inside.push(errors::error_enum(cx, depth + 1, method));
        inside.push(errors::result_struct(cx, depth + 1, method));
    }
    inside.push(inherited_names(cx, depth + 1, def));
    let scope = scope_module(cx, def, inside);
    quote!(#reference #typed #described #inherent #client_trait #client_impls #servant #operations #handlers #scope #hidden)
}

/// Emits re-exports of names in the modules of the bases, because they are names of this interface too.
fn inherited_names(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let bases = cx.model.all_bases(def.id);
    let all: Vec<(DefId, Ident)> = bases.iter().flat_map(|base| module_names(cx, *base)).collect();
    if all.is_empty() {
        return TokenStream::new();
    }
    let own: HashSet<Ident> = module_names(cx, def.id).into_iter().map(|(_, name)| name).collect();
    let mut counts: HashMap<&Ident, usize> = HashMap::new();
    all.iter().for_each(|(_, name)| *counts.entry(name).or_default() += 1);
    let uses = all.iter().filter_map(|(id, name)| {
        work::count_step();
        // A name that two bases declare is ambiguous, so it is not re-exported.
        if own.contains(name) || counts.get(name).is_some_and(|count| *count > 1) {
            return None;
        }
        let path = cx.paths.scope_path(depth, *id);
        Some(quote!(#[doc(no_inline)] pub use #path::#name;))
    });
    quote!(#(#uses)*)
}

/// Returns every public name in an interface's module, with the definition it comes from.
fn module_names(cx: &Cx<'_>, interface: DefId) -> Vec<(DefId, Ident)> {
    let children = cx.model.children(interface).iter();
    let mut names: Vec<(DefId, Ident)> =
        children.flat_map(|id| cx.exported_names(*id).into_iter().map(|name| (*id, name))).collect();
    for method in &cx.methods[&interface] {
        let derived = method.error_enum.iter().chain(&method.result_struct);
        names.extend(derived.map(|name| (method.def, name.ident())));
    }
    names
}

fn typedef(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let names = &cx.paths.names[def.id];
    let span = cx.model.rust_span(def.span);
    let rt = &cx.runtime_path;
    let u: TypeUse = cx.mapping.alias(def.id);
    let docs = doc(&def.docs, &format!("IDL `{}`.", cx.model.describe(u.ty)));
    if let Some(interface) = aliased_interface(cx.model, def.id) {
        let scope = cx.paths.scope_path(depth, interface);
        let interface_names = &cx.paths.names[interface];
        let mut pairs = vec![
            (&interface_names.item, names.item.at(span)),
            (&interface_names.reference, names.reference.at(span)),
            (&interface_names.servant, names.servant.at(span)),
        ];
        if cx.model.is_abstract_interface(interface) {
            pairs.push((&interface_names.operations_trait, names.operations_trait.at(span)));
        }
        if cx.has_module(interface) {
            pairs.push((&interface_names.module, names.module.at(span)));
        }
        let uses =
            pairs.iter().map(|(from, to)| quote!(#docs #[doc(no_inline)] pub use #scope::#from as #to;));
        return quote!(#(#uses)*);
    }
    let item = names.item.at(span);
    let ty = match cx.model.ty(u.ty) {
        // Whether a reference can be nil depends on each use of the typedef.
        Type::Object => quote!(#rt::ObjectRef),
        Type::ValueBase => quote!(#rt::ValueBase),
        Type::Named(alias) if cx.model.is_reference(u.ty) || cx.model.is_value(u.ty) => {
            cx.paths.item(depth, *alias)
        }
        _ => cx.ty(depth, u),
    };
    quote!(#docs pub type #item = #ty;)
}

fn constant(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, constant: &Const) -> TokenStream {
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let ty = match cx.model.stripped(constant.ty) {
        Type::String(_) | Type::WString(_) => quote!(&'static ::core::primitive::str),
        _ => cx.ty(depth, TypeUse::plain(constant.ty)),
    };
    let value = cx.typed_value(depth, constant.ty, &constant.value);
    let docs = cx.item_docs(def, "constant");
    quote!(#docs pub const #item: #ty = #value;)
}
