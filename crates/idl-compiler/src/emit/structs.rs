//! The code for `struct` and `exception`.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::{Traits, TypeUse};
use super::ident::RustName;
use super::{docs, interpreted};
use crate::diagnostic::Diagnostic;
use crate::model::{Def, DefId, DefKind, Member, Model, ZeroCopyLayout};

const MAX_ZERO_COPY_BYTES: usize = 64 * 1024;

struct Field {
    name: TokenStream,
    ty: TokenStream,
    default: TokenStream,
    docs: TokenStream,
    optional: bool,
    /// The offset in a `@zero_copy` struct; `None` for padding, and in other structs.
    offset: Option<usize>,
}

/// Emits a struct or exception, `depth` modules below the hidden root.
pub(super) fn structure(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let zero_copy = cx.mapping.is_zero_copy(def.id);
    let layout = if zero_copy { cx.model.zero_copy_layout(def.id).ok() } else { None };
    let mut fields = fields(cx, depth, def);
    if let Some(layout) = &layout {
        fields = with_padding(cx, def, fields, layout);
    }
    let viewed = cx.mapping.view_layout(def.id);
    let declaration = struct_declaration(cx, depth, def, &fields, zero_copy, viewed.is_some());
    let default = struct_default(cx, depth, def, &fields);
    let members = cx.model.all_struct_members(def.id);
    let fixed =
        zero_copy || !members.is_empty() && members.iter().all(|member| cx.mapping.is_fixed_member(member));
    let own = cx.marshalling_traits(def.id);
    let cdr = match own {
        _ if fixed => Some(fixed_struct(cx, depth, def, &fields, viewed)),
        Some(traits) => Some(struct_cdr(cx, depth, def, &fields, &traits)),
        None => None,
    };
    let min_size = if fixed { fixed_min_size(cx) } else { struct_min_size(cx, &fields) };
    let interpreted = interpreted::impls(cx, depth, def, &min_size);
    let element = layout.map(|layout| element(cx, depth, def, &fields, layout.size));
    let exception = matches!(def.kind, DefKind::Exception(_)).then(|| exception(cx, depth, def));
    let bases = base_conversions(cx, depth, def);
    quote!(#declaration #default #cdr #interpreted #element #exception #bases)
}

impl Cx<'_> {
    /// Returns the members with their structs and Rust names, those of base structs first.
    pub(super) fn named_members(&self, id: DefId) -> impl Iterator<Item = (DefId, &Member, &RustName)> {
        self.model.struct_lineage(id).into_iter().flat_map(|owner| {
            let members = self.model.structure(owner).map_or(&[][..], |body| &body.members);
            let names = &self.paths.names[owner].members;
            members.iter().zip(names).map(move |(member, name)| (owner, member, name))
        })
    }
}

fn fields(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> Vec<Field> {
    let zero_copy = cx.mapping.is_zero_copy(def.id);
    let field = |(owner, member, name): (DefId, &Member, &RustName)| {
        let u: TypeUse = cx.mapping.member(owner, member);
        let name = name.at(cx.model.rust_span(member.span));
        Field {
            name: quote!(#name),
            ty: if zero_copy { cx.inline_type(depth, u) } else { cx.ty(depth, u) },
            default: match cx.mapping.has_default(u) {
                true if zero_copy && !member.annotations.has("default") => cx.inline_default(u),
                true => cx.member_default(depth, u, member),
                false => TokenStream::new(),
            },
            docs: docs::member_docs(cx.model, "Member", member),
            optional: u.optional,
            offset: None,
        }
    };
    cx.named_members(def.id).map(field).collect()
}

fn base_conversions(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let path = cx.paths.item(depth, def.id);
    let mut members = Vec::new();
    let to_base = cx.model.struct_bases(def.id).into_iter().map(|base| {
        let base_path = cx.paths.item(depth, base);
        members.extend(cx.paths.names[base].members.iter());
        if cx.mapping.is_zero_copy(base) != cx.mapping.is_zero_copy(def.id) {
            // The types of large arrays differ between a `@zero_copy` struct and another one.
            return TokenStream::new();
        }
        let layout = cx.model.zero_copy_layout(base).ok().filter(|_| cx.mapping.is_zero_copy(base));
        let padded = layout.is_some_and(|layout| layout.fields.iter().any(|field| field.padding > 0));
        let padding = padded.then(|| quote!(..::core::default::Default::default()));
        let unused = members.is_empty().then(|| quote!(let _ = __zorb_derived;));
        quote! {
            impl ::core::convert::From<#path> for #base_path {
                /// Returns the members of the base.
                fn from(__zorb_derived: #path) -> Self {
                    #unused
                    Self { #(#members: __zorb_derived.#members,)* #padding }
                }
            }
        }
    });
    to_base.collect()
}

/// Returns the fields with explicit padding between them, so that the compiler adds none.
fn with_padding(cx: &Cx<'_>, def: &Def, fields: Vec<Field>, layout: &ZeroCopyLayout) -> Vec<Field> {
    let rt = &cx.runtime_path;
    let taken: Vec<&RustName> = cx.named_members(def.id).map(|(_, _, name)| name).collect();
    // No converted name begins with an underscore, but a name from `@rust_name` can.
    let mut names =
        (0..).map(|n| RustName::verbatim(&format!("_pad{n}"))).filter(|name| !taken.contains(&name));
    let mut all = Vec::with_capacity(2 * fields.len());
    for (field, field_layout) in fields.into_iter().zip(&layout.fields) {
        if field_layout.padding > 0
            && let Some(name) = names.next()
        {
            let bytes = Literal::usize_unsuffixed(field_layout.padding);
            let text = format!(" Padding before `{}`.", field.name);
            all.push(Field {
                name: quote!(#name),
                ty: quote!(#rt::Pad<#bytes>),
                default: quote!(::core::default::Default::default()),
                docs: quote!(#[doc = #text]),
                optional: false,
                offset: None,
            });
        }
        all.push(Field { offset: Some(field_layout.offset), ..field });
    }
    all
}

fn struct_declaration(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    def: &Def,
    fields: &[Field],
    zero_copy: bool,
    viewed: bool,
) -> TokenStream {
    let rt = &cx.runtime_path;
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let kind = if matches!(def.kind, DefKind::Exception(_)) { "exception" } else { "struct" };
    let docs = cx.item_docs(def, kind);
    let hash =
        cx.model.is_hashable_def(def.id).then(|| quote!(#[derive(::core::cmp::Eq, ::core::hash::Hash)]));
    let derives = cx.derives(depth, def, cx.mapping.default_derives(def.id));
    let memory = (zero_copy || viewed).then(|| {
        let path = format!("{}::zerocopy", rt.to_string().replace(' ', ""));
        let sent = zero_copy.then(|| quote!(#[derive(#rt::zerocopy::IntoBytes)]));
        quote! {
            #[derive(#rt::zerocopy::FromBytes, #rt::zerocopy::Immutable, #rt::zerocopy::KnownLayout)]
            #sent
            #[zerocopy(crate = #path)]
            #[repr(C)]
        }
    });
    let head = quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        #hash
        #derives
        #memory
    };
    if fields.is_empty() {
        return quote!(#head pub struct #item;);
    }
    let members = fields.iter().map(|Field { name, ty, docs, .. }| quote!(#docs pub #name: #ty,));
    quote!(#head pub struct #item { #(#members)* })
}

fn struct_default(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, fields: &[Field]) -> TokenStream {
    if !cx.mapping.def_has_default(def.id) {
        return TokenStream::new();
    }
    let path = cx.paths.item(depth, def.id);
    let values = fields.iter().map(|Field { name, default, .. }| quote!(#name: #default,));
    quote! {
        impl ::core::default::Default for #path {
            fn default() -> Self {
                Self { #(#values)* }
            }
        }
    }
}

/// Emits the implementation that encodes and decodes member by member.
fn struct_cdr(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, fields: &[Field], traits: &Traits) -> TokenStream {
    let rt = &cx.runtime_path;
    let Traits { encode: encodes, decode: decodes } = traits;
    let path = cx.paths.item(depth, def.id);
    let encode = fields.iter().map(|Field { name, optional, .. }| match optional {
        true => quote!(#rt::encode_optional(&self.#name, __zorb_e)?;),
        false => quote!(#rt::CdrEncode::encode(&self.#name, __zorb_e)?;),
    });
    let min_size = struct_min_size(cx, fields);
    let decode = fields.iter().map(|Field { name, ty, optional, .. }| match optional {
        true => quote!(#name: #rt::decode_optional(__zorb_d)?,),
        false => quote!(#name: <#ty as #rt::CdrDecode>::decode(__zorb_d)?,),
    });
    let unused = fields.is_empty().then(|| quote!(let _ = __zorb_e;));
    let unused_decoder = fields.is_empty().then(|| quote!(let _ = __zorb_d;));
    quote! {
        impl #encodes for #path {
            fn encode(&self, __zorb_e: &mut #rt::Encoder) -> ::core::result::Result<(), #rt::EncodeError> {
                #unused
                #(#encode)*
                ::core::result::Result::Ok(())
            }
        }

        impl #decodes for #path {
            const MIN_SIZE: ::core::primitive::usize = #min_size;

            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> ::core::result::Result<Self, #rt::DecodeError> {
                #unused_decoder
                ::core::result::Result::Ok(Self { #(#decode)* })
            }
        }
    }
}

fn struct_min_size(cx: &Cx<'_>, fields: &[Field]) -> TokenStream {
    let rt = &cx.runtime_path;
    let sizes = fields.iter().map(|Field { ty, optional, .. }| match optional {
        true => quote!(#rt::OPTIONAL_MIN_SIZE),
        false => quote!(<#ty as #rt::CdrDecode>::MIN_SIZE),
    });
    quote!(0 #(+ #sizes)*)
}

/// Returns the minimum number of bytes of an encoded value whose type implements `FixedLayout`.
pub(super) fn fixed_min_size(cx: &Cx<'_>) -> TokenStream {
    let rt = &cx.runtime_path;
    quote!(<Self as #rt::FixedLayout>::LAYOUT.min_size())
}

/// Emits the encoding and decoding of all members together, by a layout that is known at compile time.
fn fixed_struct(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    def: &Def,
    fields: &[Field],
    viewed: Option<ZeroCopyLayout>,
) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.item(depth, def.id);
    let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let memory = cx.mapping.is_zero_copy(def.id).then(|| memory_methods(cx));
    // `IS_VIEWABLE` is true on targets that align numbers as CDR does.
    let viewed = viewed.map(|layout| {
        let size = Literal::usize_unsuffixed(layout.size);
        let offsets = layout.fields.iter().map(|field| Literal::usize_unsuffixed(field.offset));
        quote! {
            const IS_VIEWABLE: ::core::primitive::bool = ::core::mem::size_of::<Self>() == #size
                #(&& ::core::mem::offset_of!(Self, #names) == #offsets)*;
        }
    });
    let cdr = cx.marshalling_traits(def.id).map(|traits| cdr_by_layout(cx, &path, &traits));
    quote! {
        impl #rt::FixedLayout for #path {
            const LAYOUT: #rt::Layout = #rt::Layout::EMPTY #(.then(<#types as #rt::FixedLayout>::LAYOUT))*;
            #viewed

            #[inline(always)]
            fn put(&self, __zorb_w: &mut #rt::FixedWriter<'_>) {
                #(#rt::FixedLayout::put(&self.#names, __zorb_w);)*
            }

            #[inline(always)]
            fn get(__zorb_r: &mut #rt::FixedReader<'_>) -> Self {
                Self {
                    #(#names: <#types as #rt::FixedLayout>::get(__zorb_r),)*
                }
            }

            #memory
        }

        #cdr
    }
}

/// Emits `CdrEncode` and `CdrDecode`, or the equivalent traits, for a type that implements `FixedLayout`.
pub(super) fn cdr_by_layout(cx: &Cx<'_>, path: &TokenStream, traits: &Traits) -> TokenStream {
    let rt = &cx.runtime_path;
    let Traits { encode: encodes, decode: decodes } = traits;
    let min_size = fixed_min_size(cx);
    let decoded = |ty: TokenStream| quote!(::core::result::Result<#ty, #rt::DecodeError>);
    let (one, many, array) =
        (decoded(quote!(Self)), decoded(quote!(::std::vec::Vec<Self>)), decoded(quote!([Self; N])));
    quote! {
        impl #encodes for #path {
            #[inline]
            fn encode(&self, __zorb_e: &mut #rt::Encoder) -> ::core::result::Result<(), #rt::EncodeError> {
                __zorb_e.put_fixed(self);
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn encode_slice(
                __zorb_items: &[Self],
                __zorb_e: &mut #rt::Encoder,
            ) -> ::core::result::Result<(), #rt::EncodeError> {
                __zorb_e.put_fixed_slice(__zorb_items);
                ::core::result::Result::Ok(())
            }
        }

        impl #decodes for #path {
            const MIN_SIZE: ::core::primitive::usize = #min_size;

            #[inline]
            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> #one {
                __zorb_d.read_fixed()
            }

            #[inline]
            fn decode_vec(__zorb_d: &mut #rt::Decoder<'_>, __zorb_n: ::core::primitive::usize) -> #many {
                __zorb_d.read_fixed_vec(__zorb_n)
            }

            #[inline]
            fn decode_array<const N: ::core::primitive::usize>(__zorb_d: &mut #rt::Decoder<'_>) -> #array {
                __zorb_d.read_fixed()
            }
        }
    }
}

/// Emits the methods of `FixedLayout` that copy all elements of a sequence at once.
fn memory_methods(cx: &Cx<'_>) -> TokenStream {
    let rt = &cx.runtime_path;
    quote! {
        #[inline(always)]
        fn run_as_bytes(__zorb_items: &[Self]) -> ::core::option::Option<&[::core::primitive::u8]> {
            ::core::option::Option::Some(#rt::zerocopy::IntoBytes::as_bytes(__zorb_items))
        }

        #[inline(always)]
        fn extend_from_bytes(
            __zorb_out: &mut ::std::vec::Vec<Self>,
            __zorb_octets: &[::core::primitive::u8],
        ) -> ::core::primitive::bool {
            match <[Self] as #rt::zerocopy::FromBytes>::ref_from_bytes(__zorb_octets) {
                ::core::result::Result::Ok(__zorb_items) => {
                    __zorb_out.extend_from_slice(__zorb_items);
                    true
                }
                ::core::result::Result::Err(_) => false,
            }
        }

        #[inline(always)]
        fn array_from_bytes<const N: ::core::primitive::usize>(
            __zorb_octets: &[::core::primitive::u8],
        ) -> ::core::option::Option<[Self; N]> {
            <[Self; N] as #rt::zerocopy::FromBytes>::read_from_bytes(__zorb_octets).ok()
        }
    }
}

/// Emits the implementation of `Element` for a `@zero_copy` struct, and assertions about its layout.
fn element(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, fields: &[Field], size: usize) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.item(depth, def.id);
    let size = Literal::usize_unsuffixed(size);
    let (names, offsets): (Vec<_>, Vec<_>) = fields
        .iter()
        .filter_map(|field| field.offset.map(|at| (&field.name, Literal::usize_unsuffixed(at))))
        .unzip();
    quote! {
        impl #rt::Element for #path {}

        const _: () = {
            ::core::assert!(::core::mem::size_of::<#path>() == #size);
            #(::core::assert!(::core::mem::offset_of!(#path, #names) == #offsets);)*
        };
    }
}

fn exception(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.item(depth, def.id);
    let id = &def.repository_id;
    let display = exception_display(cx, def);
    quote! {
        impl ::core::fmt::Display for #path {
            fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #display
            }
        }

        impl ::std::error::Error for #path {}

        impl #rt::UserException for #path {
            const REPOSITORY_ID: &'static ::core::primitive::str = #id;
        }
    }
}

/// Emits the display of an exception, such as `Bank::Broke: missing 3.5, owner "ann"`.
fn exception_display(cx: &Cx<'_>, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = cx.model.scoped_name(def.id);
    let members = cx.model.structure(def.id).map_or(&[][..], |body| &body.members);
    let fields =
        members.iter().zip(&cx.paths.names[def.id].members).enumerate().map(|(index, (member, field))| {
            let before = format!("{} {} ", if index == 0 { ":" } else { "," }, member.name);
            quote! {
                __zorb_f.write_str(#before)?;
                // Strings in it may come from a peer, and have any length.
                ::core::fmt::Display::fmt(
                    &#rt::OneLine::new(&::core::format_args!("{:?}", self.#field)),
                    __zorb_f,
                )?;
            }
        });
    quote! {
        __zorb_f.write_str(#name)?;
        #(#fields)*
        ::core::result::Result::Ok(())
    }
}

/// Reports large `@zero_copy` structs, because values that are not in sequences are passed on the stack.
pub(super) fn report_large(model: &Model, problems: &mut Vec<Diagnostic>) {
    for def in model.defs() {
        let Some(annotation) = def.annotations.get("zero_copy") else { continue };
        let Ok(layout) = model.zero_copy_layout(def.id) else { continue };
        if layout.size > MAX_ZERO_COPY_BYTES {
            let message = "a `@zero_copy` struct of more than 64 KiB is not supported";
            problems.push(
                Diagnostic::error("unsupported", annotation.span, message)
                    .and(def.span, format!("{} bytes", layout.size))
                    .help("remove `@zero_copy`, or move large arrays out of the struct"),
            );
        }
    }
}
