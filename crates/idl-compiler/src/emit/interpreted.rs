//! Types that the runtime's interpreter marshals (`@interpretive` and `@adaptive`). They give the interpreter
//! access to their parts, instead of or in addition to marshalling code of their own.

use std::collections::HashSet;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::{ArrayForm, MarshallingModes, Mode, SeqForm, Traits, TypeUse, is_interpretable};
use super::options::matches_name;
use super::typed::label_bits;
use crate::diagnostic::Diagnostic;
use crate::model::{
    Annotation, AnnotationValue, ConstValue, Def, DefId, DefKind, Flavour, Primitive, Type, TypeId, Union,
};

impl MarshallingModes {
    pub(super) fn new(cx: &Cx<'_>, problems: &mut Vec<Diagnostic>) -> MarshallingModes {
        let mut found = MarshallingModes::default();
        for def in cx.model.defs().iter().filter(|def| cx.paths.external.is_emitted(def.id)) {
            if let DefKind::Interface(interface) = &def.kind {
                if let Some(annotation) = def.annotations.get("interpretive")
                    && interface.flavour == Flavour::Local
                {
                    problems.push(
                        unsupported(annotation, "`@interpretive` cannot be applied to a local interface")
                            .note("calls of local objects never become messages"),
                    );
                } else if interface.flavour != Flavour::Local && is_interpretive(cx, def) {
                    found.interpreted_calls.insert(def.id);
                }
                continue;
            }
            let Some(mode) = requested_mode(cx, def, problems) else { continue };
            let annotation = ["interpretive", "adaptive"].iter().find_map(|name| def.annotations.get(name));
            match (obstacle(cx, def), annotation) {
                (None, _) => {
                    found.modes.insert(def.id, mode);
                }
                (Some(why), Some(annotation)) => {
                    let message = format!("`@{}` cannot be applied to a {why}", annotation.name);
                    problems.push(unsupported(annotation, &message).and(def.span, "this type"));
                }
                // A pattern applies only to types that can be interpreted.
                (Some(_), None) => {}
            }
        }
        found.exposed_types = found.modes.keys().copied().collect();
        let mut pending: Vec<TypeId> = Vec::new();
        for id in &found.interpreted_calls {
            for method in cx.methods.get(id).into_iter().flatten() {
                pending.extend(method.params.iter().map(|param| param.ty.ty));
                pending.extend(method.results.iter().map(|result| result.ty.ty));
            }
        }
        // Follow typedefs, sequences and members, visiting each type once.
        let mut seen = HashSet::new();
        while let Some(ty) = pending.pop() {
            if !seen.insert(ty) {
                continue;
            }
            pending.extend(cx.model.parts(cx.model.ty(ty)));
            if let Type::Named(id) = cx.model.ty(ty) {
                let def = cx.model.def(*id);
                if is_interpretable(&def.kind)
                    && cx.paths.external.is_emitted(*id)
                    && obstacle(cx, def).is_none()
                {
                    found.exposed_types.insert(*id);
                }
            }
        }
        found
    }
}

fn unsupported(annotation: &Annotation, message: &str) -> Diagnostic {
    Diagnostic::error("unsupported", annotation.span, message)
}

impl Cx<'_> {
    /// Returns the traits that a type's own marshalling code implements; `None` if there is no such code.
    pub(super) fn marshalling_traits(&self, id: DefId) -> Option<Traits> {
        let rt = &self.runtime_path;
        match self.marshalling.mode(id) {
            None => Some(Traits { encode: quote!(#rt::CdrEncode), decode: quote!(#rt::CdrDecode) }),
            Some(Mode::Adaptive(_)) => {
                Some(Traits { encode: quote!(#rt::CompiledEncode), decode: quote!(#rt::CompiledDecode) })
            }
            Some(Mode::Interpretive) => None,
        }
    }

    /// Returns whether the interpreter can read and write the Rust type of a member or element.
    fn exposes_parts(&self, u: TypeUse) -> bool {
        let (ty, non_nil) = self.mapping.strip(u);
        match self.model.ty(ty) {
            _ if self.model.is_reference(ty) => !non_nil,
            Type::Sequence { element, .. } => {
                self.mapping.seq_form(*element) != SeqForm::Vec
                    || self.exposes_parts(TypeUse::of(*element, non_nil))
            }
            Type::Array { element, .. } => {
                self.mapping.array_form(ty) == ArrayForm::Shared
                    || self.exposes_parts(TypeUse::of(*element, non_nil))
            }
            Type::Named(id) => match &self.model.def(*id).kind {
                kind if is_interpretable(kind) => self.marshalling.exposed_types.contains(id),
                DefKind::Bitset(_) | DefKind::Bitmask(_) | DefKind::Native => false,
                _ => true,
            },
            _ => true,
        }
    }

    /// Returns whether the interpreter can replace the marshalling code of this type.
    fn is_replaceable(&self, u: TypeUse) -> bool {
        let (ty, _) = self.mapping.strip(u);
        match self.model.ty(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.is_replaceable(TypeUse::of(*element, u.non_nil))
            }
            Type::Named(id) => {
                self.marshalling.exposed_types.contains(id) && self.marshalling.mode(*id).is_none()
            }
            _ => false,
        }
    }

    /// Returns whether the calls of the interface interpret values of this type.
    pub(super) fn is_interpreted(&self, owner: DefId, u: TypeUse) -> bool {
        self.marshalling.interprets_calls(owner)
            && !u.optional
            && self.is_replaceable(u)
            && self.exposes_parts(u)
    }

    pub(super) fn decode_value(
        &self,
        depth: ModuleDepth,
        owner: DefId,
        u: TypeUse,
        ty: &TokenStream,
    ) -> TokenStream {
        let rt = &self.runtime_path;
        if self.is_interpreted(owner, u) {
            let desc = self.desc(depth, u.ty);
            return quote!(#rt::read_interpreted::<#ty>(#desc, __zorb_d));
        }
        quote!(<#ty as #rt::CdrDecode>::decode(__zorb_d))
    }
}

fn is_interpretive(cx: &Cx<'_>, def: &Def) -> bool {
    let scoped = cx.model.scoped_name(def.id);
    def.annotations.has("interpretive")
        || cx.options.interpretive.iter().any(|pattern| matches_name(pattern, &scoped))
}

/// Returns the requested mode. Annotations have priority over options, `adaptive` over `interpretive`.
fn requested_mode(cx: &Cx<'_>, def: &Def, problems: &mut Vec<Diagnostic>) -> Option<Mode> {
    if !is_interpretable(&def.kind) {
        return None;
    }
    let scoped = cx.model.scoped_name(def.id);
    let adaptive = def.annotations.get("adaptive");
    if let (Some(adaptive), Some(interpretive)) = (adaptive, def.annotations.get("interpretive")) {
        problems.push(
            unsupported(adaptive, "`@adaptive` cannot be combined with `@interpretive`")
                .and(interpretive.span, "this one means always interpreted"),
        );
    }
    if let Some(adaptive) = adaptive {
        let argument = adaptive.args.first();
        return match argument.map(|argument| &argument.value) {
            Some(AnnotationValue::Const(ConstValue::Integer(uses)))
                if (1..=i128::from(u32::MAX)).contains(uses) =>
            {
                Some(Mode::Adaptive(*uses as u32))
            }
            _ => {
                let span = argument.map_or(adaptive.span, |argument| argument.span);
                let message = "`uses` must be a number from 1 to 4294967295";
                problems.push(Diagnostic::error("unsupported", span, message));
                None
            }
        };
    }
    if def.annotations.has("interpretive") {
        return Some(Mode::Interpretive);
    }
    let mut adaptive = cx.options.adaptive.iter();
    match adaptive.find(|(pattern, _)| matches_name(pattern, &scoped)) {
        Some((_, uses)) => Some(Mode::Adaptive(*uses)),
        None => is_interpretive(cx, def).then_some(Mode::Interpretive),
    }
}

/// Returns the reason why the interpreter cannot marshal a type, if there is one. The interpreter starts with
/// the default value and fills it member by member.
fn obstacle(cx: &Cx<'_>, def: &Def) -> Option<&'static str> {
    let has_default = match &def.kind {
        DefKind::Union(body) => {
            body.cases.iter().all(|case| cx.mapping.has_default(cx.mapping.member(def.id, &case.member)))
        }
        _ => cx.mapping.def_has_default(def.id),
    };
    if cx.mapping.is_zero_copy(def.id) {
        Some("`@zero_copy` struct, whose memory is its encoding")
    } else if !has_default {
        Some("type without a default value, because a reference in it is never nil")
    } else {
        None
    }
}

/// Returns the expressions through which the interpreter writes and reads the part `value` of a type.
fn part(cx: &Cx<'_>, u: TypeUse, value: &TokenStream) -> (TokenStream, TokenStream) {
    let rt = &cx.runtime_path;
    if u.optional {
        (quote!(&#rt::Optional(&#value)), quote!(&mut #rt::OptionalMut(&mut #value)))
    } else if cx.exposes_parts(u) {
        (quote!(&#value), quote!(&mut #value))
    } else {
        (quote!(&#rt::CompiledRef(&#value)), quote!(&mut #rt::CompiledMut(&mut #value)))
    }
}

/// Emits a type's implementations for the interpreter. An encoded value has at least `min_size` bytes.
pub(super) fn impls(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    def: &Def,
    min_size: &TokenStream,
) -> Option<TokenStream> {
    if !cx.marshalling.exposed_types.contains(&def.id) {
        return None;
    }
    let path = cx.paths.item(depth, def.id);
    let parts = part_impls(cx, depth, def, &path);
    let uses = adaptive_impl(cx, def, &path);
    let cdr = interpreted_cdr(cx, def, &path, min_size);
    Some(quote!(#parts #uses #cdr))
}

fn part_impls(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, path: &TokenStream) -> TokenStream {
    let rt = &cx.runtime_path;
    let (write, read) = match &def.kind {
        DefKind::Enum(_) => (
            quote!(__zorb_w.ordinal(*self as ::core::primitive::u32)),
            quote! {
                *self = __zorb_r.enumerator()?;
                ::core::result::Result::Ok(())
            },
        ),
        DefKind::Union(body) => union_parts(cx, depth, def, body),
        _ => {
            // As in the type code, the members of the bases come first.
            let members = cx.named_members(def.id);
            let parts = members
                .map(|(owner, member, name)| part(cx, cx.mapping.member(owner, member), &quote!(self.#name)));
            let (write, read): (Vec<_>, Vec<_>) = parts.unzip();
            (quote!(__zorb_w.members(&[#(#write),*])), quote!(__zorb_r.members(&mut [#(#read),*])))
        }
    };
    let compiled = matches!(cx.marshalling.mode(def.id), Some(Mode::Adaptive(_))).then(|| {
        (
            quote! {
                if <Self as #rt::Adaptive>::uses().count_use() {
                    return #rt::CompiledEncode::encode(self, __zorb_w.encoder());
                }
            },
            quote! {
                if <Self as #rt::Adaptive>::uses().count_use() {
                    *self = <Self as #rt::CompiledDecode>::decode(__zorb_r.decoder())?;
                    return ::core::result::Result::Ok(());
                }
            },
        )
    });
    let (encode, decode) = compiled.unzip();
    quote! {
        impl #rt::ReflectWrite for #path {
            fn write(
                &self,
                __zorb_w: &mut #rt::ReflectWriter<'_>,
            ) -> ::core::result::Result<(), #rt::EncodeError> {
                #encode
                #write
            }
        }

        impl #rt::ReflectRead for #path {
            fn read(
                &mut self,
                __zorb_r: &mut #rt::ReflectReader<'_, '_>,
            ) -> ::core::result::Result<(), #rt::DecodeError> {
                #decode
                #read
            }
        }

        impl #rt::Blank for #path {
            fn blank() -> Self {
                ::core::default::Default::default()
            }
        }
    }
}

/// Returns the expressions that write and read a union, with an arm for each case. The number of a case is
/// the index of its first label in the type code.
fn union_parts(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> (TokenStream, TokenStream) {
    let (bits, of_bits) = label_casts(cx, depth, body.discriminator);
    let (mut writes, mut blanks, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    let mut row = 0;
    for (case, name) in body.cases.iter().zip(&cx.paths.names[def.id].members) {
        let u = cx.mapping.member(def.id, &case.member);
        let number = Literal::usize_unsuffixed(row);
        row += case.labels.len() + usize::from(case.is_default);
        let (write, read) = part(cx, u, &quote!(*__zorb_v));
        let default = cx.default(u);
        match (case.is_default, case.labels.as_slice()) {
            (false, [label]) => {
                let label = label_bits(&label.value);
                writes.push(quote! {
                    Self::#name(__zorb_v) => {
                        __zorb_w.union(#label, ::core::option::Option::Some(#number), #write)
                    }
                });
                blanks.push(quote!(#number => Self::#name(#default),));
                reads.push(quote!(Self::#name(__zorb_v) => __zorb_r.part(#read),));
            }
            _ => {
                writes.push(quote! {
                    Self::#name(__zorb_l, __zorb_v) => {
                        __zorb_w.union(#bits, ::core::option::Option::Some(#number), #write)
                    }
                });
                blanks.push(quote!(#number => Self::#name(#of_bits, #default),));
                reads.push(quote!(Self::#name(_, __zorb_v) => __zorb_r.part(#read),));
            }
        }
    }
    if body.implicit_default.is_some() {
        let other = &cx.paths.names[def.id].other_variant;
        writes.push(quote! {
            Self::#other(__zorb_l) => __zorb_w.union(#bits, ::core::option::Option::None, &false),
        });
        blanks.push(quote!(_ => Self::#other(#of_bits),));
        reads.push(quote!(Self::#other(_) => ::core::result::Result::Ok(()),));
    } else {
        // Every label belongs to a case.
        blanks.push(quote!(_ => return ::core::result::Result::Ok(()),));
    }
    let read = quote! {
        *self = match __zorb_r.union()? { #(#blanks)* };
        match self { #(#reads)* }
    };
    (quote!(match self { #(#writes)* }), read)
}

/// Returns two expressions: the one converts the discriminator `__zorb_l` to a label, which is an `i64`. The
/// other converts a label that was read to a discriminator.
fn label_casts(cx: &Cx<'_>, depth: ModuleDepth, ty: TypeId) -> (TokenStream, TokenStream) {
    let rt = &cx.runtime_path;
    let wide = quote!(::core::primitive::i64);
    match cx.model.stripped(ty) {
        Type::Primitive(Primitive::Boolean) => {
            (quote!(#wide::from(*__zorb_l)), quote!(__zorb_r.label() != 0))
        }
        Type::Primitive(Primitive::Char) => {
            (quote!(#wide::from(__zorb_l.0)), quote!(#rt::Char(__zorb_r.label() as ::core::primitive::u8)))
        }
        Type::Primitive(Primitive::WChar) => {
            (quote!(#wide::from(__zorb_l.0)), quote!(#rt::WChar(__zorb_r.label() as ::core::primitive::u16)))
        }
        Type::Primitive(primitive) => {
            let number = cx.primitive(*primitive);
            (quote!(*__zorb_l as #wide), quote!(__zorb_r.label() as #number))
        }
        _ => {
            let path = cx.ty(depth, TypeUse::plain(ty));
            let ordinal = quote!(*__zorb_l as ::core::primitive::u32 as #wide);
            (ordinal, quote!(#rt::enumerator_from_ordinal::<#path>(__zorb_r.label())))
        }
    }
}

fn adaptive_impl(cx: &Cx<'_>, def: &Def, path: &TokenStream) -> Option<TokenStream> {
    let Some(Mode::Adaptive(uses)) = cx.marshalling.mode(def.id) else { return None };
    let rt = &cx.runtime_path;
    let (scoped, uses) = (cx.model.scoped_name(def.id), Literal::u32_unsuffixed(uses));
    Some(quote! {
        impl #rt::Adaptive for #path {
            fn uses() -> &'static #rt::Uses {
                static __ZORB_USES: #rt::Uses = #rt::Uses::new(#scoped, #uses);
                &__ZORB_USES
            }
        }
    })
}

/// Emits implementations of `CdrEncode` and `CdrDecode` that use the interpreter. The implementations of an
/// adaptive type use generated code after a number of uses. A type without a mode gets none here.
fn interpreted_cdr(
    cx: &Cx<'_>,
    def: &Def,
    path: &TokenStream,
    min_size: &TokenStream,
) -> Option<TokenStream> {
    let rt = &cx.runtime_path;
    let mode = cx.marshalling.mode(def.id)?;
    let compiled = |call: TokenStream| {
        matches!(mode, Mode::Adaptive(_)).then(|| {
            quote! {
                if <Self as #rt::Adaptive>::uses().is_compiled() {
                    return #call;
                }
            }
        })
    };
    let one = compiled(quote!(#rt::CompiledEncode::encode(self, __zorb_e)));
    let slice = compiled(quote!(<Self as #rt::CompiledEncode>::encode_slice(__zorb_items, __zorb_e)));
    let decode = compiled(quote!(<Self as #rt::CompiledDecode>::decode(__zorb_d)));
    let vec = compiled(quote!(<Self as #rt::CompiledDecode>::decode_vec(__zorb_d, __zorb_n)));
    let array = compiled(quote!(<Self as #rt::CompiledDecode>::decode_array(__zorb_d)));
    let desc = quote!(<Self as #rt::Typed>::DESC);
    let decoded = |ty: TokenStream| quote!(::core::result::Result<#ty, #rt::DecodeError>);
    let (this, many, some) =
        (decoded(quote!(Self)), decoded(quote!(::std::vec::Vec<Self>)), decoded(quote!([Self; N])));
    Some(quote! {
        impl #rt::CdrEncode for #path {
            fn encode(&self, __zorb_e: &mut #rt::Encoder) -> ::core::result::Result<(), #rt::EncodeError> {
                #one
                #rt::write_interpreted(self, #desc, __zorb_e)
            }

            fn encode_slice(
                __zorb_items: &[Self],
                __zorb_e: &mut #rt::Encoder,
            ) -> ::core::result::Result<(), #rt::EncodeError> {
                #slice
                #rt::write_interpreted_slice(__zorb_items, #desc, __zorb_e)
            }
        }

        impl #rt::CdrDecode for #path {
            const MIN_SIZE: ::core::primitive::usize = #min_size;

            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> #this {
                #decode
                #rt::read_interpreted(#desc, __zorb_d)
            }

            fn decode_vec(__zorb_d: &mut #rt::Decoder<'_>, __zorb_n: ::core::primitive::usize) -> #many {
                #vec
                #rt::read_interpreted_vec(#desc, __zorb_d, __zorb_n)
            }

            fn decode_array<const N: ::core::primitive::usize>(__zorb_d: &mut #rt::Decoder<'_>) -> #some {
                #array
                #rt::read_interpreted_array(#desc, __zorb_d)
            }
        }
    })
}

/// Emits the function that [`Options::use_counts_fn`](super::Options) requests.
pub(super) fn use_counts_function(cx: &Cx<'_>) -> Option<TokenStream> {
    let name = cx.options.use_counts_fn.as_ref()?;
    let rt = &cx.runtime_path;
    let name = proc_macro2::Ident::new(name, proc_macro2::Span::call_site());
    let adaptive =
        cx.model.defs().iter().filter(|def| matches!(cx.marshalling.mode(def.id), Some(Mode::Adaptive(_))));
    let paths = adaptive.map(|def| cx.paths.item(0, def.id));
    Some(quote! {
        #[doc = " Returns the use counts of all adaptive types, in the order of the IDL."]
        pub fn #name() -> ::std::vec::Vec<&'static #rt::Uses> {
            ::std::vec::Vec::from([#(<#paths as #rt::Adaptive>::uses()),*])
        }
    })
}
