//! Abstract interfaces: a handle that holds an object reference or a value, and the calls of both.
//!
//! An abstract interface has the traits of any other interface, for interfaces that derive from it, and a
//! trait of operations, for values that support it. The handle takes the place of the reference type of other
//! interfaces. No object is activated as an abstract interface.

use proc_macro2::TokenStream;
use quote::quote;

use super::Cx;
use super::docs::doc_after;
use super::method::Method;
use super::passing::Side;
use crate::model::{Def, DefId, Flavour};

impl Cx<'_> {
    /// Returns whether the definition is an abstract interface.
    pub(super) fn is_abstract(&self, id: DefId) -> bool {
        self.model.interface(id).is_some_and(|interface| interface.flavour == Flavour::Abstract)
    }

    /// Returns the path of the type that represents the values that support an abstract interface.
    pub(super) fn supporters(&self, depth: usize, id: DefId) -> TokenStream {
        let hidden = self.hidden_path(depth, id);
        quote!(#hidden::Values)
    }

    /// Returns the abstract interfaces that an interface derives from, or a value type supports.
    pub(super) fn abstract_bases(&self, id: DefId) -> Vec<DefId> {
        self.model.all_bases(id).into_iter().filter(|base| self.is_abstract(*base)).collect()
    }

    /// Emits the handle with its conversions. Its methods are emitted separately.
    pub(super) fn abstract_reference(&self, depth: usize, def: &Def) -> TokenStream {
        let v1 = &self.v1;
        let name = &self.names[def.id].reference;
        let item = name.at(self.model.rust_span(def.span));
        let path = self.reference(depth, def.id);
        let (text, id) = (name.as_str(), &def.repository_id);
        let default = format!(
            "Handle to an object that has the abstract interface `{}`, or a value that supports it.",
            self.model.scoped_name(def.id)
        );
        let docs = doc_after(&default, &def.docs);
        let values = self.supporters(depth, def.id);
        let held = quote!(#v1::Abstract<#values>);
        let conversions = self.abstract_conversions(depth, def);
        let encoded = quote!(::core::result::Result<(), #v1::EncodeError>);
        let decoded = |ty: TokenStream| quote!(::core::result::Result<#ty, #v1::DecodeError>);
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

            impl #v1::AbstractReference for #path {
                const REPOSITORY_ID: &'static ::core::primitive::str = #id;

                fn from_abstract(__zorb_held: #held) -> Self {
                    Self { held: __zorb_held }
                }

                fn as_abstract(&self) -> &#held {
                    &self.held
                }
            }

            impl #v1::AbstractForm for #path {
                type Values = #values;

                fn of_value(__zorb_value: #v1::Value<#values>) -> Self {
                    Self { held: #v1::Abstract::Value(__zorb_value) }
                }

                fn held_value(&self) -> ::core::option::Option<&#v1::Value<#values>> {
                    #v1::AbstractForm::held_value(&self.held)
                }

                fn encode_object(&self, __zorb_e: &mut #v1::Encoder) -> #encoded {
                    #v1::AbstractForm::encode_object(&self.held, __zorb_e)
                }

                fn decode_object(__zorb_d: &mut #v1::Decoder<'_>) -> #nilable {
                    let __zorb_held = <#held as #v1::AbstractForm>::decode_object(__zorb_d)?;
                    ::core::result::Result::Ok(__zorb_held.map(|__zorb_held| Self { held: __zorb_held }))
                }
            }

            impl #v1::Nilable for #path {
                const MIN_SIZE: ::core::primitive::usize = <#held as #v1::Nilable>::MIN_SIZE;

                fn encode_some(&self, __zorb_e: &mut #v1::Encoder) -> #encoded {
                    #v1::CdrEncode::encode(&self.held, __zorb_e)
                }

                fn encode_nil(__zorb_e: &mut #v1::Encoder) -> #encoded {
                    <#held as #v1::Nilable>::encode_nil(__zorb_e)
                }

                fn decode_nilable(__zorb_d: &mut #v1::Decoder<'_>) -> #nilable {
                    let __zorb_held = <#held as #v1::Nilable>::decode_nilable(__zorb_d)?;
                    ::core::result::Result::Ok(__zorb_held.map(|__zorb_held| Self { held: __zorb_held }))
                }
            }

            impl #v1::CdrEncode for #path {
                fn encode(&self, __zorb_e: &mut #v1::Encoder) -> #encoded {
                    #v1::CdrEncode::encode(&self.held, __zorb_e)
                }
            }

            impl #v1::CdrDecode for #path {
                const MIN_SIZE: ::core::primitive::usize = <#held as #v1::CdrDecode>::MIN_SIZE;

                fn decode(__zorb_d: &mut #v1::Decoder<'_>) -> #decoded {
                    let __zorb_held = <#held as #v1::CdrDecode>::decode(__zorb_d)?;
                    ::core::result::Result::Ok(Self { held: __zorb_held })
                }
            }

            #conversions
        }
    }

    /// Emits conversions from values that support the interface, and `Into` each base with the optional forms
    /// that parameters take.
    fn abstract_conversions(&self, depth: usize, def: &Def) -> TokenStream {
        let v1 = &self.v1;
        let path = self.reference(depth, def.id);
        let values = self.supporters(depth, def.id);
        let bases = self.model.all_bases(def.id);
        let targets: Vec<_> = bases.iter().map(|base| self.reference(depth, *base)).collect();
        quote! {
            impl<S: #v1::Extends<#values>> ::core::convert::From<#v1::Value<S>> for #path {
                fn from(__zorb_value: #v1::Value<S>) -> Self {
                    Self { held: #v1::Abstract::Value(__zorb_value.upcast()) }
                }
            }

            impl<S: #v1::Extends<#values>> ::core::convert::From<&#v1::Value<S>> for #path {
                fn from(__zorb_value: &#v1::Value<S>) -> Self {
                    Self { held: #v1::Abstract::Value(__zorb_value.upcast()) }
                }
            }

            impl ::core::convert::From<&#path> for #path {
                fn from(__zorb_handle: &#path) -> Self {
                    ::core::clone::Clone::clone(__zorb_handle)
                }
            }

            impl ::core::convert::From<&#path> for ::core::option::Option<#path> {
                fn from(__zorb_handle: &#path) -> Self {
                    ::core::option::Option::Some(::core::clone::Clone::clone(__zorb_handle))
                }
            }

            #(
                impl ::core::convert::From<#path> for #targets {
                    fn from(__zorb_handle: #path) -> Self {
                        <#targets as #v1::AbstractReference>::from_abstract(__zorb_handle.held.upcast())
                    }
                }

                impl ::core::convert::From<&#path> for #targets {
                    fn from(__zorb_handle: &#path) -> Self {
                        ::core::convert::From::from(::core::clone::Clone::clone(__zorb_handle))
                    }
                }

                impl ::core::convert::From<#path> for ::core::option::Option<#targets> {
                    fn from(__zorb_handle: #path) -> Self {
                        ::core::option::Option::Some(::core::convert::From::from(__zorb_handle))
                    }
                }

                impl ::core::convert::From<&#path> for ::core::option::Option<#targets> {
                    fn from(__zorb_handle: &#path) -> Self {
                        ::core::option::Option::Some(::core::convert::From::from(__zorb_handle))
                    }
                }
            )*
        }
    }

    /// Emits the conversions of a state to a value, to handles of the abstract interfaces that it supports.
    pub(super) fn state_conversions(&self, depth: usize, def: &Def) -> TokenStream {
        let v1 = &self.v1;
        let path = self.item(depth, def.id);
        let bases = self.abstract_bases(def.id);
        let targets: Vec<_> = bases.iter().map(|base| self.reference(depth, *base)).collect();
        quote! {
            #(
                impl ::core::convert::From<#path> for #targets {
                    fn from(__zorb_state: #path) -> Self {
                        ::core::convert::From::from(#v1::Value::new(__zorb_state))
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

    /// Emits the hidden module of an abstract interface: calls, the object-safe trait that those of derived
    /// interfaces include, and the type that represents values. `depth` is that of the module's inside.
    pub(super) fn hidden_abstract_module(&self, depth: usize, def: &Def) -> TokenStream {
        let v1 = &self.v1;
        let name = self.hidden(def.id);
        let id = &def.repository_id;
        let methods = &self.methods[&def.id];
        let calls = methods.iter().enumerate().map(|(n, method)| self.call_function(depth, n, method));
        let interface = self.interface_static(def);
        let either = methods.iter().map(|method| self.either(depth, def, method));
        let local_trait = self.local_trait(depth, def);
        let probe = self.probe(def.id);
        let bases = self.model.all_bases(def.id);
        let bases = bases.iter().map(|base| self.supporters(depth, *base));
        quote! {
            #[doc(hidden)]
            pub mod #name {
                #interface
                #(#calls)*
                #(#either)*

                #local_trait

                /// Stands for the values that support the interface.
                #[derive(
                    ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::default::Default,
                    ::core::cmp::PartialEq, ::core::cmp::Eq
                )]
                pub struct Values;

                impl #v1::ValueForm for self::Values {
                    const REPOSITORY_ID: &'static ::core::primitive::str = #id;
                }

                #(impl #v1::Extends<#bases> for self::Values {})*

                #probe
            }
        }
    }

    /// Returns the name of the function that calls the object or value that a handle holds.
    pub(super) fn either_name(method: &Method) -> super::ident::RustName {
        super::ident::RustName::verbatim(&format!("either_{}", method.name))
    }

    /// Emits the function that a method of a handle calls: a call of the object, or of the value's own
    /// operation.
    fn either(&self, depth: usize, def: &Def, method: &Method) -> TokenStream {
        let v1 = &self.v1;
        let (function, call) = (Self::either_name(method), method.call_name());
        let parameters = self.parameters(depth, method, Side::Call);
        let output = self.output(depth, method);
        let sent = method.arguments();
        let checks = self.bound_checks(method);
        let named = self.named_properties(method);
        let arguments = self.local_arguments(method);
        let operations = self.operations_path(depth, def.id);
        let name = &method.name;
        let missing = self.no_operation(method);
        quote! {
            pub async fn #function<S: #v1::ValueForm>(
                __zorb_target: &#v1::Abstract<S>,
                #(#parameters),*
            ) -> #output {
                let __zorb_value = match __zorb_target {
                    #v1::Abstract::Object(__zorb_object) => return #call(__zorb_object, #(#sent),*).await,
                    #v1::Abstract::Value(__zorb_value) => __zorb_value.get(),
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
}
