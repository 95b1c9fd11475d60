//! Value types: structs with the state of values, and the implementations that marshal them.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::docs::doc;
use super::forms::TypeUse;
use super::ident::RustName;
use super::{abstracts, docs, value_ops};
use crate::diagnostic::Diagnostic;
use crate::model::{Def, DefId, DefKind, Docs, Member, Model, TypeId, Value, ValueModifier, Visibility};

const IMPLEMENTED_TRAITS: &[&str] = &["Clone", "Debug", "PartialEq", "Default"];

pub(super) struct Field {
    name: TokenStream,
    ty: TokenStream,
    /// True if the field is a value or a sequence of values, which are separate parts of the state.
    is_separate_part: bool,
}

pub(super) fn value_type(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, value: &Value) -> TokenStream {
    let operations = value_ops::operations(cx, depth, def);
    let factories = value_ops::factory_trait(cx, depth, def, value);
    let state = match value.modifier {
        ValueModifier::Abstract => abstract_value(cx, depth, def),
        _ => state(cx, depth, def, value),
    };
    let extends = extends(cx, depth, def.id);
    quote!(#state #extends #operations #factories)
}

fn abstract_value(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let path = cx.paths.item(depth, def.id);
    let docs = cx.item_docs(def, "abstract value type");
    let id = &def.repository_id;
    quote! {
        #docs
        #[derive(
            ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::default::Default,
            ::core::cmp::PartialEq, ::core::cmp::Eq
        )]
        pub struct #item;

        impl #rt::ValueForm for #path {
            const REPOSITORY_ID: &'static ::core::primitive::str = #id;
        }
    }
}

fn state(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, value: &Value) -> TokenStream {
    let names = &cx.paths.names[def.id];
    let base = cx.model.concrete_base(def.id);
    let item = names.item.at(cx.model.rust_span(def.span));
    let docs = cx.item_docs(def, "value type");
    let inherited = base.map(|base| {
        let (field, ty) = (&names.base_field, cx.paths.item(depth, base));
        let docs = doc(&Docs::default(), &format!("State of the base `{}`.", cx.model.scoped_name(base)));
        quote!(#docs pub #field: #ty,)
    });
    let fields: Vec<Field> = (value.state.iter().zip(&names.members))
        .map(|(state, name)| state_field(cx, depth, def.id, &state.member, name))
        .collect();
    let members = fields.iter().zip(&value.state).map(|(field, state)| {
        let visibility = match state.visibility {
            Visibility::Public => "State member",
            Visibility::Private => "Private state member",
        };
        let member = &state.member;
        let (docs, Field { name, ty, .. }) = (docs::member_docs(cx.model, visibility, member), field);
        quote!(#docs pub #name: #ty,)
    });
    let more_derives = cx.derives(depth, def, IMPLEMENTED_TRAITS);
    let derives = quote! {
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        #more_derives
    };
    let declaration = match base.is_none() && fields.is_empty() {
        true => quote!(#docs #derives pub struct #item;),
        false => quote!(#docs #derives pub struct #item { #inherited #(#members)* }),
    };
    let of_base = base.map(|_| {
        let field = &names.base_field;
        quote!(#field: ::core::default::Default::default(),)
    });
    let defaults = fields.iter().zip(&value.state).map(|(Field { name, .. }, state)| {
        let default = cx.member_default(depth, cx.mapping.member(def.id, &state.member), &state.member);
        quote!(#name: #default,)
    });
    let path = cx.paths.item(depth, def.id);
    let implementation = value_implementation(cx, depth, def, base, &fields);
    let conversions = abstracts::state_conversions(cx, depth, def);
    quote! {
        #declaration

        impl ::core::default::Default for #path {
            fn default() -> Self {
                Self { #of_base #(#defaults)* }
            }
        }

        #implementation
        #conversions
    }
}

fn state_field(cx: &Cx<'_>, depth: ModuleDepth, owner: DefId, member: &Member, name: &RustName) -> Field {
    let name = name.at(cx.model.rust_span(member.span));
    let ty = cx.ty(depth, cx.mapping.member(owner, member));
    Field { name: quote!(#name), ty, is_separate_part: cx.mapping.holds_values(member.ty) }
}

pub(super) fn value_box(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, ty: TypeId) -> TokenStream {
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let path = cx.paths.item(depth, def.id);
    let docs = cx.item_docs(def, "value box");
    let u = cx.mapping.box_content(def, ty);
    let content = cx.ty(depth, u);
    let default = cx.default(u);
    let inside = doc(&Docs::default(), &format!("The content of the box: IDL `{}`.", cx.model.describe(ty)));
    let field = Field { name: quote!(0), ty: content.clone(), is_separate_part: cx.mapping.holds_values(ty) };
    let implementation = value_implementation(cx, depth, def, None, &[field]);
    let more_derives = cx.derives(depth, def, IMPLEMENTED_TRAITS);
    quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        #more_derives
        pub struct #item(#inside pub #content);

        impl ::core::default::Default for #path {
            fn default() -> Self {
                Self(#default)
            }
        }

        impl ::core::convert::From<#content> for #path {
            fn from(__zorb_content: #content) -> Self {
                Self(__zorb_content)
            }
        }

        #implementation
    }
}

fn value_implementation(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    def: &Def,
    base: Option<DefId>,
    fields: &[Field],
) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.item(depth, def.id);
    let id = &def.repository_id;
    let custom = cx.model.is_custom(def.id);
    let truncatable = truncatable(cx.model, def.id);
    let truncatable = (!truncatable.is_empty()).then(
        || quote!(const TRUNCATABLE_BASES: &'static [&'static ::core::primitive::str] = &[#(#truncatable),*];),
    );
    let custom_mark = custom.then(|| {
        quote!(
            const IS_CUSTOM: ::core::primitive::bool = true;
        )
    });
    let base_parts = (!custom && base.is_some()).then(|| {
        let bases = std::iter::successors(base, |base| cx.model.concrete_base(*base));
        let mut bases: Vec<TokenStream> = bases.map(|base| cx.paths.item(depth, base)).collect();
        bases.reverse();
        quote! {
            const BASE_PART_COUNTS: &'static [::core::primitive::u32] = &[#(<#bases as #rt::ValueType>::PART_COUNT),*];
        }
    });
    let (parts, encode, decode) = match custom {
        true => (
            quote!(1),
            quote!(#rt::CustomMarshal::marshal(self, __zorb_e).map(|()| #rt::Flow::Next)),
            quote!(#rt::CustomMarshal::unmarshal(self, __zorb_d).map(|()| #rt::Flow::Next)),
        ),
        false => parts(cx, depth, def, base, fields),
    };
    let casts = casts(cx, depth, def);
    let flow = |error: TokenStream| quote!(::core::result::Result<#rt::Flow, #rt::#error>);
    let (encoded, decoded) = (flow(quote!(EncodeError)), flow(quote!(DecodeError)));
    quote! {
        impl #rt::ValueType for #path {
            const REPOSITORY_ID: &'static ::core::primitive::str = #id;
            const PART_COUNT: ::core::primitive::u32 = #parts;
            #base_parts
            const TYPE: ::core::option::Option<&'static #rt::TypeDesc> =
                ::core::option::Option::Some(<#path as #rt::Typed>::DESC);
            #truncatable
            #custom_mark

            fn casts(__zorb_to: &mut #rt::Casts<'_>) {
                #casts
            }

            fn encode_part(
                &self,
                __zorb_part: ::core::primitive::u32,
                __zorb_e: &mut #rt::Encoder,
                __zorb_at: &mut #rt::Progress,
            ) -> #encoded {
                #encode
            }

            fn decode_part(
                &mut self,
                __zorb_part: ::core::primitive::u32,
                __zorb_d: &mut #rt::Decoder<'_>,
                __zorb_at: &mut #rt::Progress,
            ) -> #decoded {
                #decode
            }
        }

        impl ::core::convert::From<#path> for ::core::option::Option<#rt::Value<#path>> {
            fn from(__zorb_state: #path) -> Self {
                ::core::option::Option::Some(#rt::Value::new(__zorb_state))
            }
        }
    }
}

/// Returns the number of parts of a state, the code that writes a part, and the code that reads one. The
/// parts of the base come first. Then each value is a part, and all members between two values are one part.
fn parts(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    def: &Def,
    base: Option<DefId>,
    fields: &[Field],
) -> (TokenStream, TokenStream, TokenStream) {
    let rt = &cx.runtime_path;
    let mut parts: Vec<&[Field]> = Vec::new();
    let mut rest = fields;
    while let Some(first) = rest.first() {
        let plain = rest.iter().take_while(|field| !field.is_separate_part).count();
        let (part, more) = rest.split_at(if first.is_separate_part { 1 } else { plain });
        parts.push(part);
        rest = more;
    }
    let count = Literal::usize_unsuffixed(parts.len());
    let of_base = base.map(|base| {
        let base = cx.paths.item(depth, base);
        quote!(<#base as #rt::ValueType>::PART_COUNT)
    });
    let field = &cx.paths.names[def.id].base_field;
    // The parts of the base have the lowest numbers.
    let with_base = |of_base_part: fn(&TokenStream, &RustName) -> TokenStream, arms: Vec<TokenStream>| {
        let part = match &of_base {
            Some(of_base) => quote!(__zorb_part - #of_base),
            None => quote!(__zorb_part),
        };
        let numbers = (0..arms.len().saturating_sub(1)).map(Literal::usize_unsuffixed);
        let own = match arms.split_last() {
            None => quote!(::core::result::Result::Ok(#rt::Flow::Next)),
            Some((last, [])) => quote!(#last),
            Some((last, arms)) => quote!(match #part { #(#numbers => { #arms })* _ => { #last } }),
        };
        match of_base.as_ref().map(|of_base| (of_base, of_base_part(rt, field))) {
            None => own,
            Some((_, base)) if arms.is_empty() => base,
            Some((of_base, base)) => quote! {
                if __zorb_part < #of_base {
                    return #base;
                }
                #own
            },
        }
    };
    let encode = parts.iter().map(|part| match part {
        [Field { name, is_separate_part: true, .. }] => {
            quote!(#rt::ValuePart::encode_part(&self.#name, __zorb_e, __zorb_at))
        }
        fields => {
            let names = fields.iter().map(|field| &field.name);
            quote! {
                #(#rt::CdrEncode::encode(&self.#names, __zorb_e)?;)*
                ::core::result::Result::Ok(#rt::Flow::Next)
            }
        }
    });
    let decode = parts.iter().map(|part| match part {
        [Field { name, is_separate_part: true, .. }] => {
            quote!(#rt::ValuePart::decode_part(&mut self.#name, __zorb_d, __zorb_at))
        }
        fields => {
            let (names, types): (Vec<_>, Vec<_>) =
                fields.iter().map(|field| (&field.name, &field.ty)).unzip();
            quote! {
                #(self.#names = <#types as #rt::CdrDecode>::decode(__zorb_d)?;)*
                ::core::result::Result::Ok(#rt::Flow::Next)
            }
        }
    });
    let encode = with_base(
        |rt, field| quote!(#rt::ValueType::encode_part(&self.#field, __zorb_part, __zorb_e, __zorb_at)),
        encode.collect(),
    );
    let decode = with_base(
        |rt, field| quote!(#rt::ValueType::decode_part(&mut self.#field, __zorb_part, __zorb_d, __zorb_at)),
        decode.collect(),
    );
    let count = match &of_base {
        Some(of_base) => quote!(#of_base + #count),
        None => quote!(#count),
    };
    (count, encode, decode)
}

/// Emits the casts from a state to the states of its bases and to its traits of operations.
fn casts(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let mut state = Vec::new();
    let (mut at, mut fields) = (def.id, Vec::new());
    while let Some(base) = cx.model.concrete_base(at) {
        fields.push(&cx.paths.names[at].base_field);
        let path = cx.paths.item(depth, base);
        state.push(quote! {
            __zorb_to.offer::<#path>(|__zorb_v| {
                __zorb_v.downcast_ref::<Self>().map(|__zorb_v| &__zorb_v #(.#fields)*)
            });
        });
        at = base;
    }
    let names = cx.mapping.value_bases(def.id).into_iter().filter(|base| cx.model.is_abstract_value(*base));
    let names = names.map(|base| cx.paths.item(depth, base));
    let supported = cx.mapping.abstract_bases(def.id).into_iter().map(|base| cx.values_type(depth, base));
    let units = names.chain(supported);
    let operations = value_ops::offers(cx, depth, def);
    quote! {
        __zorb_to.offer::<Self>(|__zorb_v| __zorb_v.downcast_ref());
        #(#state)*
        #(__zorb_to.offer::<#units>(|_| ::core::option::Option::Some(&#units));)*
        #operations
    }
}

fn extends(cx: &Cx<'_>, depth: ModuleDepth, id: DefId) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.item(depth, id);
    let bases = cx.mapping.value_bases(id).into_iter().map(|base| cx.paths.item(depth, base));
    let supported = cx.mapping.abstract_bases(id).into_iter().map(|base| cx.values_type(depth, base));
    let bases = bases.chain(supported);
    quote!(#(impl #rt::Extends<#bases> for #path {})*)
}

/// Reports members without a default value, because a value has default members before it is decoded.
pub(super) fn report_without_default(cx: &Cx<'_>, problems: &mut Vec<Diagnostic>) {
    let mut check = |u: TypeUse, span, description: &str| {
        if cx.mapping.has_default(u) {
            return;
        }
        let message = format!("{description} must not contain a reference that is never nil");
        let error = Diagnostic::error("unsupported", span, message);
        problems.push(error.note("the references in a value are nil until they are decoded"));
    };
    for def in cx.model.defs().iter().filter(|def| cx.paths.external.is_emitted(def.id)) {
        match &def.kind {
            DefKind::Value(value) => {
                for state in &value.state {
                    let description = format!("state member `{}`", state.member.name);
                    check(cx.mapping.member(def.id, &state.member), state.member.span, &description);
                }
            }
            DefKind::ValueBox(content) => {
                let u = cx.mapping.box_content(def, content.ty);
                check(u, def.span, &format!("value box `{}`", def.name));
            }
            _ => {}
        }
    }
}

/// Returns the repository ids of the bases to which a value can be truncated, nearest first. Receivers
/// truncate a value whose type they do not know.
fn truncatable(model: &Model, id: DefId) -> Vec<String> {
    let truncated = |id: &DefId| {
        model.value(*id).filter(|value| value.truncatable)?;
        model.concrete_base(*id)
    };
    let bases = std::iter::successors(truncated(&id), truncated);
    bases.map(|base| model.def(base).repository_id.clone()).collect()
}
