//! The types that belong to operations, in the module of their interface or value type: errors and results.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::docs::doc;
use super::ident::{Case, RustName};
use super::method::Method;
use crate::model::{DefId, Docs};

/// The variant for a system exception, which every error enum has.
const SYSTEM: &str = "System";

/// Returns the variants of a method's error enum, one for each exception in order. A variant has the name of
/// the exception. If another variant or a reserved name is the same, names of scopes that contain the
/// exception are put before it: first that of the innermost scope, and further ones if necessary.
pub(super) fn error_variants(cx: &Cx<'_>, method: &Method) -> Vec<RustName> {
    let scopes: Vec<Vec<String>> = method.raises.iter().map(|id| outer_names(cx, *id)).collect();
    // The number of scopes in the name of each variant.
    let mut levels = vec![0; scopes.len()];
    let name = |index: usize, level: usize| {
        let scope: &Vec<String> = &scopes[index];
        let stem = cx.paths.names[method.raises[index]].item.as_str().trim_end_matches('_');
        format!("{}{stem}", scope[scope.len() - level..].concat())
    };
    loop {
        let names: Vec<String> =
            levels.iter().enumerate().map(|(index, level)| name(index, *level)).collect();
        let mut count: HashMap<&str, usize> = HashMap::from([(SYSTEM, 1), ("Self", 1)]);
        for name in &names {
            *count.entry(name).or_default() += 1;
        }
        let mut has_changed = false;
        for (index, level) in levels.iter_mut().enumerate() {
            if count[names[index].as_str()] > 1 && *level < scopes[index].len() {
                (*level, has_changed) = (*level + 1, true);
            }
        }
        if has_changed {
            continue;
        }
        let mut variants: Vec<RustName> = Vec::with_capacity(names.len());
        for name in names {
            let is_taken = |name: &RustName| name.as_str() == SYSTEM || variants.contains(name);
            variants.push(RustName::verbatim(&name).until_free(is_taken));
        }
        return variants;
    }
}

/// Returns the variant for any user exception, if the method can raise arbitrary ones.
pub(super) fn any_variant(cx: &Cx<'_>, method: &Method) -> Option<RustName> {
    let others = error_variants(cx, method);
    method.raises_any.then(|| RustName::verbatim("User").until_free(|name| others.contains(name)))
}

/// Returns the names of the scopes that contain a definition, outermost first, in camel case.
fn outer_names(cx: &Cx<'_>, id: DefId) -> Vec<String> {
    let mut path = cx.model.path(id);
    path.pop();
    path.into_iter()
        .map(|name| RustName::convert(name, Case::Camel).as_str().trim_end_matches('_').to_owned())
        .collect()
}

pub(super) fn error_enum(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let Some(name) = &method.error_enum else { return TokenStream::new() };
    let rt = &cx.runtime_path;
    let item = name.at(method.span);
    let path = cx.paths.method_type(depth, method, name);
    let variants = error_variants(cx, method);
    let types: Vec<_> = method.raises.iter().map(|id| cx.paths.item(depth, *id)).collect();
    let scoped = cx.model.scoped_name(method.owner);
    let docs = doc(&Docs::default(), &format!("The errors of `{}` of `{scoped}`.", method.wire_name));
    let variant_docs = method
        .raises
        .iter()
        .map(|id| doc(&Docs::default(), &format!("The exception `{}`.", cx.model.scoped_name(*id))));
    let any: Vec<RustName> = any_variant(cx, method).into_iter().collect();
    let hashable = any.is_empty() && method.raises.iter().all(|id| cx.model.is_hashable_def(*id));
    let eq = hashable.then(|| quote!(#[derive(::core::cmp::Eq)]));
    quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        #eq
        pub enum #item {
            #(#variant_docs #variants(#types),)*
            #(#[doc = " Any other user exception."] #any(#rt::Any),)*
            #[doc = " A system exception from the servant, the server, the network or this ORB."]
            System(#rt::SystemException),
        }

        impl ::core::fmt::Display for #path {
            fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    #(Self::#variants(__zorb_x) => ::core::fmt::Display::fmt(__zorb_x, __zorb_f),)*
                    #(Self::#any(__zorb_x) => ::core::fmt::Display::fmt(__zorb_x.type_code(), __zorb_f),)*
                    Self::System(__zorb_x) => ::core::fmt::Display::fmt(__zorb_x, __zorb_f),
                }
            }
        }

        impl ::std::error::Error for #path {
            fn source(&self) -> ::core::option::Option<&(dyn ::std::error::Error + 'static)> {
                match self {
                    #(Self::#variants(__zorb_x) => ::std::error::Error::source(__zorb_x),)*
                    #(Self::#any(_) => ::core::option::Option::None,)*
                    Self::System(__zorb_x) => ::std::error::Error::source(__zorb_x),
                }
            }
        }

        #(
            impl ::core::convert::From<#types> for #path {
                fn from(__zorb_x: #types) -> Self {
                    Self::#variants(__zorb_x)
                }
            }
        )*

        impl ::core::convert::From<#rt::SystemException> for #path {
            fn from(__zorb_x: #rt::SystemException) -> Self {
                Self::System(__zorb_x)
            }
        }

        impl<E: #rt::OrbError<#path>> ::core::convert::From<E> for #path {
            fn from(__zorb_x: E) -> Self {
                Self::System(::core::convert::Into::into(__zorb_x))
            }
        }

        impl ::core::convert::From<#path> for #rt::SystemException {
            fn from(__zorb_x: #path) -> Self {
                match __zorb_x {
                    #path::System(__zorb_x) => __zorb_x,
                    __zorb_x => #rt::unknown_user_exception(__zorb_x),
                }
            }
        }
    }
}

pub(super) fn result_struct(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let Some(name) = &method.result_struct else { return TokenStream::new() };
    let item = name.at(method.span);
    let scoped = cx.model.scoped_name(method.owner);
    let docs = doc(&Docs::default(), &format!("The results of `{}` of `{scoped}`.", method.wire_name));
    let fields = method.results.iter().map(|result| {
        let (name, ty) = (&result.name, cx.ty(depth, result.ty));
        let docs = doc(&Docs::default(), &result.description);
        quote!(#docs pub #name: #ty,)
    });
    let hashable = method.results.iter().all(|result| cx.model.is_hashable(result.ty.ty));
    let hash = hashable.then(|| quote!(#[derive(::core::cmp::Eq, ::core::hash::Hash)]));
    quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        #hash
        pub struct #item { #(#fields)* }
    }
}
