//! Skeletons in the sense of `idlc skeleton`: servants for the user to complete, in which every method raises
//! `NO_IMPLEMENT`. The skeletons of CORBA, which call servants, are in [`servant`].
//!
//! The signatures are those of the traits: [`servant::servant_signature`] creates both.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::cx::Cx;
use super::ident::{Case, RustName};
use super::method::Method;
use super::options::{Options, matches_name};
use super::servant::Signature;
use super::shorten::{Shortener, prelude};
use super::{context, servant};
use crate::diagnostic::Diagnostics;
use crate::model::{Def, DefId, Flavour, Interface, Model};

/// The options for the servants to generate.
#[derive(Clone, Debug, Default)]
pub struct SkeletonOptions {
    /// The module of the Rust code that is generated from the IDL, such as `crate::idl`. By default, the
    /// skeleton is in the same module.
    pub module: Option<TokenStream>,
    /// The interfaces that get a servant: scoped names, or prefixes followed by `*`. If empty, these are all
    /// interfaces that the input files declare themselves, without those of included files.
    pub interfaces: Vec<String>,
}

/// Generates a servant of each interface: its type, and the implementations of the servant traits of the
/// interface and its bases. Every method raises `NO_IMPLEMENT`. The code compiles as it is.
///
/// # Errors
/// The errors of [`emit`](super::emit), because the skeleton implements traits in the output of `emit`.
pub fn skeleton(
    model: &Model,
    options: &Options,
    skeleton: &SkeletonOptions,
) -> Result<TokenStream, Diagnostics> {
    let mut cx = context(model, options)?;
    // Code for users must not name a private module.
    cx.runtime_path = options.runtime.clone();
    cx.paths.output_module = Some(skeleton.module.clone().unwrap_or_else(|| quote!(self)));
    Ok(servants(&cx, skeleton))
}

/// The names of an interface's servant and reference type in a skeleton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServantNames {
    /// The scoped name of the interface.
    pub interface: String,
    /// The repository id of the interface.
    pub repository_id: String,
    /// The path of the reference type, beginning with [`SkeletonOptions::module`], such as
    /// `crate::idl::bank::AccountRef`.
    pub reference: String,
    /// The type of the servant (`AccountImpl`).
    pub servant: String,
    /// True if the interface is local, so that its objects are not activated.
    pub is_local: bool,
}

/// Returns the names of the servants in a skeleton, in order.
///
/// # Errors
/// The errors of [`skeleton`].
pub fn servant_names(
    model: &Model,
    options: &Options,
    skeleton: &SkeletonOptions,
) -> Result<Vec<ServantNames>, Diagnostics> {
    let mut cx = context(model, options)?;
    cx.paths.output_module = Some(skeleton.module.clone().unwrap_or_else(|| quote!(self)));
    let interfaces = served_interfaces(model, &skeleton.interfaces);
    let names = type_names(&cx, &interfaces);
    let names = interfaces.iter().zip(names).map(|(def, servant)| ServantNames {
        interface: model.scoped_name(def.id),
        repository_id: def.repository_id.clone(),
        reference: cx.paths.reference(0, def.id).to_string().replace(' ', ""),
        servant: servant.to_string(),
        is_local: cx.model.is_local_interface(def.id),
    });
    Ok(names.collect())
}

/// Returns the interfaces of a model that can have servants and that match the patterns, in order.
pub fn served_interfaces<'m>(model: &'m Model, patterns: &[String]) -> Vec<&'m Def> {
    let is_selected = |def: &&Def| match patterns {
        [] => !model.is_included(def.id) && !model.sources().is_predeclared(def.span),
        patterns => patterns.iter().any(|pattern| matches_name(pattern, &model.scoped_name(def.id))),
    };
    // Abstract interfaces need no servant: each object that supports one has a derived interface, whose
    // servant is generated.
    let is_served =
        |interface: &Interface| interface.flavour != Flavour::Abstract && !interface.only_declared;
    let served = model.defs().iter().filter(|def| model.interface(def.id).is_some_and(is_served));
    served.filter(is_selected).collect()
}

fn servants(cx: &Cx<'_>, skeleton: &SkeletonOptions) -> TokenStream {
    let interfaces = served_interfaces(cx.model, &skeleton.interfaces);
    let names = type_names(cx, &interfaces);
    let servants = interfaces.iter().zip(&names).map(|(def, name)| servant_skeleton(cx, def, name));
    let rt = &cx.runtime_path;
    let code = quote! {
        #(#servants)*

        #[doc = " The error of operations that are not implemented yet."]
        fn not_implemented() -> #rt::SystemException {
            #rt::SystemException::no_implement()
        }
    };
    let code = if interfaces.is_empty() { TokenStream::new() } else { code };
    // In the module of the generated code, shortened paths must not start with a name of the IDL.
    let taken = match skeleton.module {
        None => {
            let exported = cx.model.roots().iter().flat_map(|id| cx.exported_names(*id));
            exported.map(|name| name.to_string()).collect()
        }
        Some(_) => Vec::new(),
    };
    let shortener = Shortener::new(&cx.options.runtime, taken);
    let code = shortener.shorten(code);
    if !shortener.uses_prelude() {
        return code;
    }
    let prelude = shortener.shorten(prelude(&cx.options.runtime));
    quote!(#prelude #code)
}

/// Returns distinct names of the servants' types, such as `NameImpl` or `ModuleNameImpl`.
fn type_names(cx: &Cx<'_>, interfaces: &[&Def]) -> Vec<Ident> {
    let camel = |name: &str| RustName::convert(name, Case::Camel).as_str().trim_end_matches('_').to_owned();
    let name = |def: &Def, whole: bool| {
        let path = cx.model.path(def.id);
        let skipped = if whole { 0 } else { path.len().saturating_sub(1) };
        path.into_iter().skip(skipped).map(&camel).collect::<String>()
    };
    let mut count: HashMap<String, usize> = HashMap::new();
    for def in interfaces {
        *count.entry(name(def, false)).or_default() += 1;
    }
    let mut taken: Vec<String> = Vec::new();
    let names = interfaces.iter().map(|def| {
        let whole = count.get(&name(def, false)).is_some_and(|count| *count > 1);
        let mut name = format!("{}Impl", name(def, whole));
        while taken.contains(&name) {
            name.push('_');
        }
        taken.push(name.clone());
        format_ident!("{name}")
    });
    names.collect()
}

fn servant_skeleton(cx: &Cx<'_>, def: &Def, name: &Ident) -> TokenStream {
    let docs = format!(" A servant of interface `{}`.", cx.model.scoped_name(def.id));
    let impls = cx.model.lineage(def.id).into_iter().map(|owner| servant_impl(cx, owner, name));
    quote! {
        #[doc = #docs]
        #[derive(Debug, Default)]
        pub struct #name;

        #(#impls)*
    }
}

fn servant_impl(cx: &Cx<'_>, owner: DefId, name: &Ident) -> TokenStream {
    let servant = cx.paths.servant(0, owner);
    let methods = cx.methods[&owner].iter().map(|method| method_skeleton(cx, method));
    quote!(impl #servant for #name { #(#methods)* })
}

fn method_skeleton(cx: &Cx<'_>, method: &Method) -> TokenStream {
    let Signature { parameters, output } = servant::servant_signature(cx, 0, method);
    let name = &method.name;
    let docs = format!(" IDL: `{}`", method.idl);
    let arguments = method.arguments();
    let unused = (!arguments.is_empty()).then(|| quote!(let _ = (#(#arguments,)*);));
    let error = match &method.error_enum {
        Some(_) => quote!(not_implemented().into()),
        None => quote!(not_implemented()),
    };
    quote! {
        #[doc = #docs]
        async fn #name(&self, #(#parameters),*) -> #output {
            #unused
            Err(#error)
        }
    }
}
