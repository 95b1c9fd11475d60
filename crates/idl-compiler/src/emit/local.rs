//! Local interfaces, whose objects are called without an ORB and never leave the process. Native types.
//!
//! A local interface has the same traits as any other, with the operations of its bases. The reference is an
//! `Arc` of the object-safe form of the servant trait. It does not convert to the reference of a base that is
//! not local, because such references can be sent.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::cx::{Cx, ModuleDepth};
use super::docs::{doc, line_and_doc};
use super::forms::EmittedFn;
use super::method::Method;
use super::{client, reference, servant};
use crate::model::{Def, DefId};

pub(super) fn native(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let up = cx.paths.enclosing_module_count(depth);
    let Some(path) = cx.paths.external.native(up, def.id) else { return TokenStream::new() };
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let docs = doc(&def.docs, &format!("IDL native type `{}`.", cx.model.scoped_name(def.id)));
    quote!(#docs pub type #item = #path;)
}

pub(super) fn local_reference(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = &cx.paths.names[def.id].reference;
    let item = name.at(cx.model.rust_span(def.span));
    let path = cx.paths.reference(depth, def.id);
    let hidden = cx.paths.hidden_path(depth, def.id);
    let (text, id) = (name.as_str(), &def.repository_id);
    let default = format!("Reference to an object of local interface `{}`.", cx.model.scoped_name(def.id));
    let docs = line_and_doc(&default, &def.docs);
    let bases = cx.model.all_bases(def.id).into_iter().filter(|base| cx.model.is_local_interface(*base));
    let bases: Vec<_> = bases.map(|base| cx.paths.reference(depth, base)).collect();
    let argument = format_ident!("__zorb_reference");
    let clones = reference::clone_conversions(&path, &argument);
    let derived = bases.iter().map(|base| reference::further_conversions(&path, base, &argument));
    let encoded = quote!(::core::result::Result<(), #rt::EncodeError>);
    quote! {
        #docs
        #[derive(::core::clone::Clone)]
        pub struct #item {
            object: ::std::sync::Arc<dyn #hidden::Local>,
        }

        impl ::core::fmt::Debug for #path {
            fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                __zorb_f.debug_tuple(#text).field(&::std::sync::Arc::as_ptr(&self.object).cast::<()>()).finish()
            }
        }

        impl ::core::cmp::PartialEq for #path {
            fn eq(&self, __zorb_other: &Self) -> ::core::primitive::bool {
                ::std::sync::Arc::ptr_eq(&self.object, &__zorb_other.object)
            }
        }

        impl ::core::cmp::Eq for #path {}

        impl ::core::hash::Hash for #path {
            fn hash<S: ::core::hash::Hasher>(&self, __zorb_h: &mut S) {
                ::core::hash::Hash::hash(&::std::sync::Arc::as_ptr(&self.object).cast::<()>(), __zorb_h)
            }
        }

        impl #rt::LocalReference for #path {
            const REPOSITORY_ID: &'static ::core::primitive::str = #id;

            type Local = dyn #hidden::Local;

            fn from_local(__zorb_local: ::std::sync::Arc<Self::Local>) -> Self {
                Self { object: __zorb_local }
            }

            fn as_local(&self) -> &::std::sync::Arc<Self::Local> {
                &self.object
            }
        }

        impl #rt::Nilable for #path {
            const MIN_SIZE: ::core::primitive::usize = 1;

            fn encode_some(&self, _: &mut #rt::Encoder) -> #encoded {
                #rt::not_sent()
            }

            fn encode_nil(_: &mut #rt::Encoder) -> #encoded {
                #rt::not_sent()
            }

            fn decode_nilable(
                __zorb_d: &mut #rt::Decoder<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, #rt::DecodeError> {
                #rt::not_received(__zorb_d)
            }
        }

        impl #rt::CdrEncode for #path {
            fn encode(&self, _: &mut #rt::Encoder) -> #encoded {
                #rt::not_sent()
            }
        }

        impl #rt::CdrDecode for #path {
            const MIN_SIZE: ::core::primitive::usize = 1;

            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> ::core::result::Result<Self, #rt::DecodeError> {
                #rt::not_received(__zorb_d)
            }
        }

        #clones

        #(
            impl ::core::convert::From<#path> for #bases {
                fn from(__zorb_reference: #path) -> Self {
                    <#bases as #rt::LocalReference>::from_local(__zorb_reference.object)
                }
            }

            #derived
        )*
    }
}

/// Emits the hidden module, which is `depth` modules deep: calls, the object-safe trait and the object.
pub(super) fn hidden_local_module(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    def: &Def,
    lineage: &[DefId],
) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = cx.paths.hidden_name(def.id);
    let servant = cx.paths.servant(depth, def.id);
    let methods = lineage.iter().flat_map(|owner| &cx.methods[owner]);
    let calls = methods.map(|method| local_call(cx, depth, def, method));
    let local_trait = servant::local_trait(cx, depth, def);
    let local_impls = servant::local_impls(cx, depth, def, lineage);
    let locals = lineage
        .iter()
        .filter(|id| cx.model.is_local_interface(**id))
        .map(|id| cx.paths.local_path(depth, def, *id));
    let local = servant::downcast_method(locals);
    quote! {
        #[doc(hidden)]
        pub mod #name {
            #(#calls)*

            #local_trait

            pub(super) struct Skeleton<S> {
                pub(super) servant: S,
            }

            #local_impls

            impl<S: #servant> #rt::LocalObject for Skeleton<S> {
                #local

                fn servant(&self) -> &dyn ::core::any::Any {
                    &self.servant
                }
            }
        }
    }
}

/// Emits the function that a reference's method calls. It checks the arguments and calls the object.
fn local_call(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, method: &Method) -> TokenStream {
    let function = method.call_name();
    let parameters = cx.parameters(depth, method, EmittedFn::CallFunction);
    let output = cx.output(depth, method);
    let checks = client::bound_checks(cx, method);
    let named = client::named_properties(cx, method);
    let local = cx.paths.local_path(depth, def, method.owner);
    let arguments = client::local_arguments(method);
    let name = &method.name;
    quote! {
        pub async fn #function(__zorb_target: &dyn Local, #(#parameters),*) -> #output {
            #checks
            #named
            #local::#name(__zorb_target, #(#arguments),*).await
        }
    }
}
