//! The server side of an interface: the servant trait, and the skeleton that calls servants.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};

use super::cx::{Cx, ModuleDepth};
use super::docs::line_and_doc;
use super::forms::EmittedFn;
use super::method::Method;
use super::{client, errors};
use crate::model::{Def, DefId};

/// The number of operations in a group, which has a future of its own. An interface with at most twice as
/// many operations has one future for all.
const GROUP_SIZE: usize = 32;

pub(super) struct Signature {
    /// `name: Type` for each parameter.
    pub(super) parameters: Vec<TokenStream>,
    /// The output type of the method's future.
    pub(super) output: TokenStream,
}

pub(super) fn servant_signature(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> Signature {
    let parameters = cx.parameters(depth, method, EmittedFn::ServantMethod);
    Signature { parameters, output: cx.servant_output(depth, method) }
}

pub(super) fn servant_trait(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let names = &cx.paths.names[def.id];
    let item = names.servant.at(cx.model.rust_span(def.span));
    let path = cx.paths.servant(depth, def.id);
    let reference = cx.paths.reference(depth, def.id);
    let hidden = cx.paths.hidden_path(depth, def.id);
    let first =
        format!("The methods that servants of interface `{}` implement.", cx.model.scoped_name(def.id));
    let docs = line_and_doc(&first, &def.docs);
    let supers = client::super_traits(cx, def, |base| cx.paths.servant(depth, base));
    let methods = &cx.methods[&def.id];
    let signatures = methods.iter().map(|method| {
        let (docs, name) = (method.docs(), method.ident());
        let Signature { parameters, output } = servant_signature(cx, depth, method);
        let future = cx.servant_future(&output);
        // The whole signature has the span of the name, which rustc shows for missing and wrong methods.
        let body = match cx.has_default_body(method) {
            true => default_body(cx, method),
            false => quote_spanned!(name.span()=> ;),
        };
        quote_spanned!(name.span()=> #docs fn #name(&self, #(#parameters),*) -> #future #body)
    });
    let forwards = methods.iter().map(|method| {
        let name = &method.name;
        let Signature { parameters, output } = servant_signature(cx, depth, method);
        let future = cx.servant_future(&output);
        let arguments = method.arguments();
        quote! {
            fn #name(&self, #(#parameters),*) -> #future {
                <S as #path>::#name(&**self, #(#arguments),*)
            }
        }
    });
    let skeleton = quote!(::std::sync::Arc::new(#hidden::Skeleton { servant: __zorb_servant }));
    let constructor = match cx.model.is_local_interface(def.id) {
        // No servant is activated as an abstract interface, but only as an interface derived from it.
        false if cx.model.is_abstract_interface(def.id) => TokenStream::new(),
        false => quote! {
            impl<S: #path> #rt::Serves<S> for #reference {
                fn skeleton(__zorb_servant: S) -> ::std::sync::Arc<dyn #rt::Skeleton> {
                    #skeleton
                }
            }
        },
        true => quote! {
            impl<S: #path> #rt::ServesLocally<S> for #reference {
                fn serve(__zorb_servant: S) -> Self {
                    <Self as #rt::LocalReference>::from_local(#skeleton)
                }
            }
        },
    };
    let missing = missing_servant(cx, def);
    quote! {
        #docs
        #missing
        pub trait #item: #supers ::core::marker::Send + ::core::marker::Sync + 'static {
            #(#signatures)*
        }

        impl<S: #path> #path for ::std::sync::Arc<S> {
            #(#forwards)*
        }

        #constructor
    }
}

/// Emits the attribute with rustc's message for a servant that does not implement the trait.
fn missing_servant(cx: &Cx<'_>, def: &Def) -> TokenStream {
    let scoped = cx.model.scoped_name(def.id);
    let names = &cx.paths.names[def.id];
    let path: String = names.scope.iter().map(|module| format!("{module}::")).collect();
    let path = format!("{path}{}", names.servant);
    let message = format!("`{{Self}}` is not a servant of interface `{scoped}`");
    let label = format!("expected a servant of `{scoped}`");
    let note = format!(
        "implement `{path}` for `{{Self}}`, or choose the reference type of an interface that `{{Self}}` is a servant of"
    );
    quote!(#[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)])
}

fn default_body(cx: &Cx<'_>, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let arguments = method.arguments();
    let why = format!("this servant does not implement `{}`", method.wire_name);
    let minor = match cx.model.is_local_interface(method.owner) {
        true => quote!(.with_minor(#rt::MinorCode::omg(8))),
        false => TokenStream::new(),
    };
    quote! {
        {
            let _ = (#(#arguments,)*);
            ::core::future::ready(::core::result::Result::Err(::core::convert::From::from(
                #rt::SystemException::no_implement()#minor.with_reason(#why)
            )))
        }
    }
}

/// Emits the hidden module, which is `depth` modules deep: call functions, local trait and skeleton.
pub(super) fn hidden_module(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = cx.paths.hidden_name(def.id);
    let servant = cx.paths.servant(depth, def.id);
    let calls = cx.methods[&def.id].iter().enumerate();
    let calls = calls.map(|(n, method)| client::call_function(cx, depth, n, method));
    let interface = client::interface_static(cx, def);
    let local_trait = local_trait(cx, depth, def);
    let local_impls = local_impls(cx, depth, def, lineage);
    let ids = lineage.iter().rev().map(|id| &cx.model.def(*id).repository_id);
    let locals = lineage.iter().map(|id| cx.paths.local_path(depth, def, *id));
    let dispatch = dispatch(cx, depth, def, lineage);
    let local = downcast_method(locals);
    let streamed = streamed_method(cx, lineage);
    let operations = operations_method(cx, lineage);
    quote! {
        #[doc(hidden)]
        pub mod #name {
            #interface
            #(#calls)*

            #local_trait

            pub(super) struct Skeleton<S> {
                pub(super) servant: S,
            }

            #local_impls

            static IDS: &[&::core::primitive::str] = &[#(#ids),*];

            impl<S: #servant> #rt::Skeleton for Skeleton<S> {
                fn repository_ids(&self) -> &'static [&'static ::core::primitive::str] {
                    IDS
                }

                #streamed

                #operations

                fn dispatch(
                    self: ::std::sync::Arc<Self>,
                    __zorb_request: #rt::ServerRequest,
                    __zorb_slot: &mut #rt::DispatchSlot,
                ) {
                    __zorb_slot.set(dispatch(self, __zorb_request));
                }

                #local
            }

            #dispatch
        }
    }
}

/// Emits the method that returns the servant as a trait object of one of these local traits.
pub(super) fn downcast_method(locals: impl Iterator<Item = TokenStream>) -> TokenStream {
    quote! {
        fn downcast_into(self: ::std::sync::Arc<Self>, __zorb_out: &mut dyn ::core::any::Any) {
            #(
                if let ::core::option::Option::Some(__zorb_place) =
                    __zorb_out.downcast_mut::<::core::option::Option<::std::sync::Arc<dyn #locals>>>()
                {
                    *__zorb_place = ::core::option::Option::Some(self);
                    return;
                }
            )*
        }
    }
}

/// Emits the method that lists the operations with a `@stream` parameter, including inherited ones.
fn streamed_method(cx: &Cx<'_>, lineage: &[DefId]) -> TokenStream {
    let methods = lineage.iter().flat_map(|owner| &cx.methods[owner]);
    let streamed = methods.filter(|method| method.params.iter().any(|param| param.is_stream));
    let names: Vec<_> = streamed.map(|method| &method.wire_name).collect();
    if names.is_empty() {
        return TokenStream::new();
    }
    quote! {
        fn streamed_operations(&self) -> &'static [&'static ::core::primitive::str] {
            &[#(#names),*]
        }
    }
}

/// Emits the method that lists all operations, and how many of them each interface declares.
fn operations_method(cx: &Cx<'_>, lineage: &[DefId]) -> Option<TokenStream> {
    let rt = &cx.runtime_path;
    let counts: Vec<usize> = lineage.iter().map(|owner| cx.methods[owner].len()).collect();
    let any = counts.iter().any(|count| *count > 0);
    let counts = counts.into_iter().map(Literal::usize_unsuffixed);
    any.then(|| {
        quote! {
            fn operations(&self) -> #rt::Operations {
                #rt::Operations { names: OPERATIONS.names(), counts: &[#(#counts),*] }
            }
        }
    })
}

/// Emits the object-safe form of the servant trait, for calls within a process.
pub(super) fn local_trait(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let supers = client::super_traits(cx, def, |base| cx.paths.local_path(depth, def, base));
    let methods = cx.methods[&def.id].iter().map(|method| {
        let signature = local_signature(cx, depth, method);
        quote!(#signature;)
    });
    let object = cx.model.is_local_interface(def.id).then(|| quote!(#rt::LocalObject +));
    quote! {
        pub trait Local: #supers #object ::core::marker::Send + ::core::marker::Sync + 'static {
            #(#methods)*
        }
    }
}

fn local_signature(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = &method.name;
    let parameters = cx.parameters(depth, method, EmittedFn::LocalMethod);
    let output = cx.servant_output(depth, method);
    quote!(fn #name<'l>(&'l self, #(#parameters),*) -> #rt::BoxedFuture<'l, #output>)
}

pub(super) fn local_impls(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> TokenStream {
    let servant = cx.paths.servant(depth, def.id);
    let impls = lineage.iter().map(|owner| {
        let local = cx.paths.local_path(depth, def, *owner);
        let owner_servant = cx.paths.servant(depth, *owner);
        let methods = cx.methods[owner].iter().map(|method| {
            let signature = local_signature(cx, depth, method);
            let name = &method.name;
            let arguments = method.arguments();
            let call = quote!(<S as #owner_servant>::#name(&self.servant, #(#arguments),*));
            quote!(#signature { ::std::boxed::Box::pin(#call) })
        });
        quote!(impl<S: #servant> #local for Skeleton<S> { #(#methods)* })
    });
    quote!(#(#impls)*)
}

/// Emits the function whose future handles one request: a `match` over all operations, including inherited
/// ones. Many operations are divided into groups of `GROUP_SIZE`, each with its own future, because rustc's
/// work on a future grows with the square of the number of arms.
fn dispatch(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> TokenStream {
    let rt = &cx.runtime_path;
    let bound = cx.paths.servant(depth, def.id);
    let methods: Vec<&Method> = lineage.iter().flat_map(|owner| &cx.methods[owner]).collect();
    // The request is mutable only if arguments are decoded.
    let signature = |name: Ident, covered: &[&Method], servant: TokenStream, more: TokenStream| {
        let decodes = covered.iter().any(|method| !method.arguments().is_empty());
        let mutable = decodes.then(|| quote!(mut));
        quote! {
            async fn #name<S: #bound>(
                #servant,
                #mutable __zorb_request: #rt::ServerRequest,
                #more
            ) -> #rt::Outcome
        }
    };
    let is_grouped = methods.len() > 2 * GROUP_SIZE;
    let covered = if is_grouped { &[] } else { methods.as_slice() };
    // The future owns the skeleton. With another future around this one, the skeleton would be moved twice.
    let skeleton = quote!(__zorb_skeleton: ::std::sync::Arc<Skeleton<S>>);
    let dispatch = signature(format_ident!("dispatch"), covered, skeleton, TokenStream::new());
    if methods.is_empty() {
        return quote! {
            #dispatch {
                let _ = &__zorb_skeleton.servant;
                __zorb_request.other_operation(IDS)
            }
        };
    }
    let count = Literal::usize_unsuffixed(methods.len());
    let slots = Literal::usize_unsuffixed((2 * methods.len()).next_power_of_two());
    let wires = methods.iter().map(|method| &method.wire_name);
    let arms: Vec<_> = methods.iter().map(|method| handle_operation(cx, depth, method)).collect();
    let numbers: Vec<_> = (0..methods.len()).map(Literal::usize_unsuffixed).collect();
    let find = quote!(__zorb_request.operation_index(&OPERATIONS));
    let (matched, groups) = if !is_grouped {
        (quote!(#(::core::option::Option::Some(#numbers) => { #arms })*), TokenStream::new())
    } else {
        let names: Vec<_> =
            (0..methods.len().div_ceil(GROUP_SIZE)).map(|group| format_ident!("dispatch_{group}")).collect();
        let signatures = names.iter().zip(methods.chunks(GROUP_SIZE)).map(|(name, covered)| {
            let number = quote!(__zorb_n: ::core::primitive::usize);
            signature(name.clone(), covered, quote!(__zorb_servant: &S), number)
        });
        let arms = numbers.chunks(GROUP_SIZE).zip(arms.chunks(GROUP_SIZE)).map(|(numbers, arms)| {
            quote!(match __zorb_n {
                #(#numbers => { #arms })*
                _ => __zorb_request.other_operation(IDS),
            })
        });
        let groups = quote!(#(#signatures { #arms })*);
        // A division selects the group. Ranges would be compared one by one.
        let (size, indices) = (Literal::usize_unsuffixed(GROUP_SIZE), numbers.iter().take(names.len()));
        let matched = quote! {
            ::core::option::Option::Some(__zorb_n) => match __zorb_n / #size {
                #(#indices => #names(__zorb_servant, __zorb_request, __zorb_n).await,)*
                _ => __zorb_request.other_operation(IDS),
            },
        };
        (matched, groups)
    };
    quote! {
        static OPERATIONS: #rt::OpTable<#count, #slots> = #rt::OpTable::new([#(#wires),*]);

        #dispatch {
            let __zorb_servant = &__zorb_skeleton.servant;
            match #find {
                #matched
                _ => __zorb_request.other_operation(IDS),
            }
        }

        #groups
    }
}

fn handle_operation(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let servant = cx.paths.servant(depth, method.owner);
    let name = &method.name;
    let decode = decode_arguments(cx, depth, method);
    let arguments = method.sent_params().map(|param| {
        let name = &param.name;
        if param.is_stream {
            quote!(__zorb_stream)
        } else if param.is_inout() {
            quote!(#name)
        } else {
            cx.to_servant(param.ty, &quote!(#name))
        }
    });
    let arguments = arguments.chain(method.context_name().map(|context| quote!(&#context)));
    let reply = match method.streams_result {
        false => {
            let (values, encode) = encode_results(cx, depth, method);
            quote!(::core::result::Result::Ok(#values) => __zorb_request.reply(#encode),)
        }
        true => quote! {
            ::core::result::Result::Ok(__zorb_r) => __zorb_request.reply_streamed(__zorb_r).await,
        },
    };
    let failures = match &method.error_enum {
        None => quote! {
            ::core::result::Result::Err(__zorb_x) => __zorb_request.system_exception(__zorb_x),
        },
        Some(_) => {
            let error = cx.error_type(depth, method);
            let variants = errors::error_variants(cx, method);
            let any = errors::any_variant(cx, method).into_iter();
            quote! {
                #(
                    ::core::result::Result::Err(#error::#variants(__zorb_x)) => {
                        #rt::ServerRequest::user_exception(__zorb_request, &__zorb_x)
                    }
                )*
                #(
                    ::core::result::Result::Err(#error::#any(__zorb_x)) => __zorb_request.raise(&__zorb_x),
                )*
                ::core::result::Result::Err(#error::System(__zorb_x)) => {
                    __zorb_request.system_exception(__zorb_x)
                }
            }
        }
    };
    quote! {
        #decode
        match <S as #servant>::#name(__zorb_servant, #(#arguments),*).await {
            #reply
            #failures
        }
    }
}

fn decode_arguments(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let names = method.arguments();
    if names.is_empty() {
        return TokenStream::new();
    }
    let decode_as = |ty: TokenStream| quote!(<#ty as #rt::CdrDecode>::decode(__zorb_d));
    let values = method.sent_params().map(|param| match param.is_stream {
        true => match cx.streamed_element(depth, param.ty) {
            Some(item) => decode_as(quote!(#rt::SeqStart<#item>)),
            None => decode_as(quote!(#rt::StreamStart)),
        },
        false => {
            let ty = cx.decoded_type(depth, method.owner, param.ty, param.is_inout());
            cx.decode_value(depth, method.owner, param.ty, &ty)
        }
    });
    let values = values.chain(method.context_name().map(|_| decode_as(quote!(#rt::Context))));
    let streams = method.sent_params().filter(|param| param.is_stream).map(|param| {
        let name = &param.name;
        match cx.streamed_element(depth, param.ty) {
            Some(_) => quote!(seq_stream(#name)),
            None => quote!(byte_stream(#name)),
        }
    });
    quote! {
        let (#(#names,)*) = match __zorb_request.decode(|__zorb_d| {
            ::core::result::Result::Ok((#(#values?,)*))
        }) {
            ::core::result::Result::Ok(__zorb_arguments) => __zorb_arguments,
            ::core::result::Result::Err(__zorb_x) => return __zorb_request.bad_arguments(__zorb_x),
        };
        #(
            let __zorb_stream = match __zorb_request.#streams {
                ::core::result::Result::Ok(__zorb_s) => __zorb_s,
                ::core::result::Result::Err(__zorb_x) => return __zorb_request.bad_arguments(__zorb_x),
            };
        )*
    }
}

/// Returns the pattern that binds the results, and the closure that encodes them.
fn encode_results(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> (TokenStream, TokenStream) {
    let rt = &cx.runtime_path;
    if method.results.is_empty() {
        return (quote!(()), quote!(|_| ::core::result::Result::Ok(())));
    }
    let variables = method.results.iter().enumerate().map(|(index, result)| match method.result_struct {
        Some(_) => {
            let name = &result.name;
            quote!(__zorb_r.#name)
        }
        None => format_ident!("__zorb_r{index}").into_token_stream(),
    });
    let variables: Vec<_> = variables.collect();
    let values = variables.iter().zip(&method.results).map(|(value, result)| {
        if cx.is_interpreted(method.owner, result.ty) {
            let desc = cx.desc(depth, result.ty.ty);
            return quote!(#rt::write_interpreted(&#value, #desc, __zorb_e));
        }
        let native = cx.mapping.is_native(result.ty);
        let value = if native { quote!(&#rt::Native(&#value)) } else { quote!(&#value) };
        quote!(#rt::CdrEncode::encode(#value, __zorb_e))
    });
    let encode = quote! {
        |__zorb_e| {
            #(#values?;)*
            ::core::result::Result::Ok(())
        }
    };
    let pattern = match variables.as_slice() {
        _ if method.result_struct.is_some() => quote!(__zorb_r),
        [one] => one.clone(),
        _ => quote!((#(#variables),*)),
    };
    (pattern, encode)
}
