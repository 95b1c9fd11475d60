//! Abstract interfaces: a handle that holds an object reference or a value, and calls either of them.
//!
//! The handle replaces the reference type that other interfaces have. An abstract interface has the same
//! traits as other interfaces, because interfaces can derive from it. It also has a trait of its operations,
//! which values that support it implement. No object is activated as an abstract interface.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::cx::{Cx, ModuleDepth};
use super::docs::line_and_doc;
use super::forms::EmittedFn;
use super::method::Method;
use super::{client, reference, servant, value_ops};
use crate::model::{Def, DefId};

impl Cx<'_> {
    /// Returns the path of the type `Values`, which stands for the values that support an abstract interface.
    pub(super) fn values_type(&self, depth: ModuleDepth, id: DefId) -> TokenStream {
        let hidden = self.paths.hidden_path(depth, id);
        quote!(#hidden::Values)
    }
}

pub(super) fn abstract_reference(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = &cx.paths.names[def.id].reference;
    let item = name.at(cx.model.rust_span(def.span));
    let path = cx.paths.reference(depth, def.id);
    let (text, id) = (name.as_str(), &def.repository_id);
    let default = format!(
        "Handle to an object that has the abstract interface `{}`, or a value that supports it.",
        cx.model.scoped_name(def.id)
    );
    let docs = line_and_doc(&default, &def.docs);
    let values = cx.values_type(depth, def.id);
    let held = quote!(#rt::Abstract<#values>);
    let conversions = abstract_conversions(cx, depth, def);
    let encoded = quote!(::core::result::Result<(), #rt::EncodeError>);
    let decoded = |ty: TokenStream| quote!(::core::result::Result<#ty, #rt::DecodeError>);
    let (decoded, nilable) = (decoded(quote!(Self)), decoded(quote!(::core::option::Option<Self>)));
    quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::cmp::PartialEq, ::core::cmp::Eq)]
        pub struct #item {
            held: #held,
        }

        impl ::core::fmt::Debug for #path {
            fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                __zorb_f.debug_tuple(#text).field(&self.held).finish()
            }
        }

        impl #rt::AbstractReference for #path {
            const REPOSITORY_ID: &'static ::core::primitive::str = #id;

            fn from_abstract(__zorb_held: #held) -> Self {
                Self { held: __zorb_held }
            }

            fn as_abstract(&self) -> &#held {
                &self.held
            }
        }

        impl #rt::AbstractForm for #path {
            type Values = #values;

            fn of_value(__zorb_value: #rt::Value<#values>) -> Self {
                Self { held: #rt::Abstract::Value(__zorb_value) }
            }

            fn held_value(&self) -> ::core::option::Option<&#rt::Value<#values>> {
                #rt::AbstractForm::held_value(&self.held)
            }

            fn encode_object(&self, __zorb_e: &mut #rt::Encoder) -> #encoded {
                #rt::AbstractForm::encode_object(&self.held, __zorb_e)
            }

            fn decode_object(__zorb_d: &mut #rt::Decoder<'_>) -> #nilable {
                let __zorb_held = <#held as #rt::AbstractForm>::decode_object(__zorb_d)?;
                ::core::result::Result::Ok(__zorb_held.map(|__zorb_held| Self { held: __zorb_held }))
            }
        }

        impl #rt::Nilable for #path {
            const MIN_SIZE: ::core::primitive::usize = <#held as #rt::Nilable>::MIN_SIZE;

            fn encode_some(&self, __zorb_e: &mut #rt::Encoder) -> #encoded {
                #rt::CdrEncode::encode(&self.held, __zorb_e)
            }

            fn encode_nil(__zorb_e: &mut #rt::Encoder) -> #encoded {
                <#held as #rt::Nilable>::encode_nil(__zorb_e)
            }

            fn decode_nilable(__zorb_d: &mut #rt::Decoder<'_>) -> #nilable {
                let __zorb_held = <#held as #rt::Nilable>::decode_nilable(__zorb_d)?;
                ::core::result::Result::Ok(__zorb_held.map(|__zorb_held| Self { held: __zorb_held }))
            }
        }

        impl #rt::CdrEncode for #path {
            fn encode(&self, __zorb_e: &mut #rt::Encoder) -> #encoded {
                #rt::CdrEncode::encode(&self.held, __zorb_e)
            }
        }

        impl #rt::CdrDecode for #path {
            const MIN_SIZE: ::core::primitive::usize = <#held as #rt::CdrDecode>::MIN_SIZE;

            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> #decoded {
                let __zorb_held = <#held as #rt::CdrDecode>::decode(__zorb_d)?;
                ::core::result::Result::Ok(Self { held: __zorb_held })
            }
        }

        #conversions
    }
}

/// Emits conversions from values that support the interface, and to the handles of all bases.
fn abstract_conversions(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.reference(depth, def.id);
    let values = cx.values_type(depth, def.id);
    let bases = cx.model.all_bases(def.id);
    let targets: Vec<_> = bases.iter().map(|base| cx.paths.reference(depth, *base)).collect();
    let argument = format_ident!("__zorb_handle");
    let clones = reference::clone_conversions(&path, &argument);
    let derived = targets.iter().map(|target| reference::further_conversions(&path, target, &argument));
    quote! {
        impl<S: #rt::Extends<#values>> ::core::convert::From<#rt::Value<S>> for #path {
            fn from(__zorb_value: #rt::Value<S>) -> Self {
                Self { held: #rt::Abstract::Value(__zorb_value.upcast()) }
            }
        }

        impl<S: #rt::Extends<#values>> ::core::convert::From<&#rt::Value<S>> for #path {
            fn from(__zorb_value: &#rt::Value<S>) -> Self {
                Self { held: #rt::Abstract::Value(__zorb_value.upcast()) }
            }
        }

        #clones

        #(
            impl ::core::convert::From<#path> for #targets {
                fn from(__zorb_handle: #path) -> Self {
                    <#targets as #rt::AbstractReference>::from_abstract(__zorb_handle.held.upcast())
                }
            }

            #derived
        )*
    }
}

/// Emits conversions from a value's state to the handles of the abstract interfaces it supports.
pub(super) fn state_conversions(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.item(depth, def.id);
    let bases = cx.mapping.abstract_bases(def.id);
    let targets: Vec<_> = bases.iter().map(|base| cx.paths.reference(depth, *base)).collect();
    quote! {
        #(
            impl ::core::convert::From<#path> for #targets {
                fn from(__zorb_state: #path) -> Self {
                    ::core::convert::From::from(#rt::Value::new(__zorb_state))
                }
            }

            impl ::core::convert::From<#path> for ::core::option::Option<#targets> {
                fn from(__zorb_state: #path) -> Self {
                    ::core::option::Option::Some(::core::convert::From::from(__zorb_state))
                }
            }
        )*
    }
}

/// Emits the hidden module of an abstract interface. It contains call functions, the type `Values`, and the
/// object-safe trait, which is a supertrait of the object-safe traits of derived interfaces. `depth` is the
/// nesting depth of code in this module.
pub(super) fn hidden_abstract_module(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = cx.paths.hidden_name(def.id);
    let id = &def.repository_id;
    let methods = &cx.methods[&def.id];
    let calls = methods.iter().enumerate().map(|(n, method)| client::call_function(cx, depth, n, method));
    let interface = client::interface_static(cx, def);
    let abstract_calls = methods.iter().map(|method| abstract_call_function(cx, depth, def, method));
    let local_trait = servant::local_trait(cx, depth, def);
    let probe = value_ops::probe(cx, def.id);
    let bases = cx.model.all_bases(def.id);
    let bases = bases.iter().map(|base| cx.values_type(depth, *base));
    quote! {
        #[doc(hidden)]
        pub mod #name {
            #interface
            #(#calls)*
            #(#abstract_calls)*

            #local_trait

            /// Stands for the values that support the interface.
            #[derive(
                ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::default::Default,
                ::core::cmp::PartialEq, ::core::cmp::Eq
            )]
            pub struct Values;

            impl #rt::ValueForm for self::Values {
                const REPOSITORY_ID: &'static ::core::primitive::str = #id;
            }

            #(impl #rt::Extends<#bases> for self::Values {})*

            #probe
        }
    }
}

/// Emits the function that a handle's method calls. The function calls the object or value in the handle.
fn abstract_call_function(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let (function, call) = (method.abstract_call_name(), method.call_name());
    let parameters = cx.parameters(depth, method, EmittedFn::CallFunction);
    let output = cx.output(depth, method);
    let sent = method.arguments();
    let checks = client::bound_checks(cx, method);
    let named = client::named_properties(cx, method);
    let arguments = client::local_arguments(method);
    let operations = cx.paths.operations_path(depth, def.id);
    let name = &method.name;
    let missing = value_ops::not_implemented(cx, method);
    quote! {
        pub async fn #function<S: #rt::ValueForm>(
            __zorb_target: &#rt::Abstract<S>,
            #(#parameters),*
        ) -> #output {
            let __zorb_value = match __zorb_target {
                #rt::Abstract::Object(__zorb_object) => return #call(__zorb_object, #(#sent),*).await,
                #rt::Abstract::Value(__zorb_value) => __zorb_value.get(),
            };
            #checks
            #named
            match __zorb_value.operations::<dyn #operations>() {
                ::core::option::Option::Some(__zorb_value) => {
                    #operations::#name(__zorb_value, #(#arguments),*)
                }
                ::core::option::Option::None => #missing,
            }
        }
    }
}
