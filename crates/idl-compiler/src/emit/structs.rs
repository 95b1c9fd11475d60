//! `struct` and `exception`.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Cx;
use super::hybrid::Traits;
use super::ident::RustName;
use super::types::Use;
use crate::diagnostic::Diagnostic;
use crate::model::{Def, DefKind, Model, ZeroCopyLayout};

/// Maximum size of a `@zero_copy` struct in bytes.
const MAX_ZERO_COPY: usize = 64 * 1024;

/// A member, with the parts that are emitted several times.
struct Field {
    name: TokenStream,
    ty: TokenStream,
    default: TokenStream,
    docs: TokenStream,
    /// The member is optional.
    optional: bool,
    /// The offset in a `@zero_copy` struct; `None` for padding.
    offset: Option<usize>,
}

impl Cx<'_> {
    /// Emits a struct or exception with all its implementations, in a module `depth` levels below the hidden
    /// root.
    pub(super) fn structure(&self, depth: usize, def: &Def) -> TokenStream {
        let zero_copy = self.is_zero_copy(def.id);
        let layout = if zero_copy { self.model.zero_copy_layout(def.id).ok() } else { None };
        let mut fields = self.fields(depth, def);
        if let Some(layout) = &layout {
            fields = self.with_padding(def, fields, layout);
        }
        let viewed = self.viewed(def.id);
        let declaration = self.struct_declaration(depth, def, &fields, zero_copy, viewed.is_some());
        let default = self.struct_default(depth, def, &fields);
        let members = self.model.all_struct_members(def.id);
        let fixed =
            zero_copy || !members.is_empty() && members.iter().all(|member| self.is_fixed_member(member));
        let own = self.own_code(def.id);
        let cdr = match own {
            _ if fixed => Some(self.fixed_struct(depth, def, &fields, viewed)),
            Some(traits) => Some(self.struct_cdr(depth, def, &fields, &traits)),
            None => None,
        };
        let least = if fixed { self.fixed_least() } else { self.struct_least(&fields) };
        let hybrid = self.hybrid(depth, def, &least);
        let element = layout.map(|layout| self.element(depth, def, &fields, layout.size));
        let exception = matches!(def.kind, DefKind::Exception(_)).then(|| self.exception(depth, def));
        let bases = self.to_bases(depth, def);
        quote!(#declaration #default #cdr #hybrid #element #exception #bases)
    }

    /// Returns the members, those of base structs first.
    fn fields(&self, depth: usize, def: &Def) -> Vec<Field> {
        let mut owners = self.model.struct_bases(def.id);
        owners.push(def.id);
        let zero_copy = self.is_zero_copy(def.id);
        let mut fields = Vec::new();
        for owner in owners {
            let members = self.model.structure(owner).map_or(&[][..], |body| &body.members);
            for (member, name) in members.iter().zip(&self.names[owner].members) {
                let u: Use = self.member(owner, member);
                let name = name.at(self.model.rust_span(member.span));
                let has_default = self.has_default(u);
                fields.push(Field {
                    name: quote!(#name),
                    ty: if zero_copy { self.in_place(depth, u) } else { self.ty(depth, u) },
                    default: match has_default {
                        true if zero_copy && !member.annotations.has("default") => self.default_in_place(u),
                        true => self.member_default(depth, u, member),
                        false => TokenStream::new(),
                    },
                    docs: self.member_docs("Member", member),
                    optional: u.optional,
                    offset: None,
                });
            }
        }
        fields
    }

    /// Emits the conversions of a derived struct to each of its bases.
    fn to_bases(&self, depth: usize, def: &Def) -> TokenStream {
        let path = self.item(depth, def.id);
        let mut members = Vec::new();
        let to_base = self.model.struct_bases(def.id).into_iter().map(|base| {
            let of = self.item(depth, base);
            members.extend(self.names[base].members.iter());
            if self.is_zero_copy(base) != self.is_zero_copy(def.id) {
                // The types of large arrays differ between the two.
                return TokenStream::new();
            }
            let layout = self.model.zero_copy_layout(base).ok().filter(|_| self.is_zero_copy(base));
            let padded = layout.is_some_and(|layout| layout.fields.iter().any(|field| field.padding > 0));
            let padding = padded.then(|| quote!(..::core::default::Default::default()));
            let unused = members.is_empty().then(|| quote!(let _ = __zorb_derived;));
            quote! {
                impl ::core::convert::From<#path> for #of {
                    /// The members of the base.
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
    fn with_padding(&self, def: &Def, fields: Vec<Field>, layout: &ZeroCopyLayout) -> Vec<Field> {
        let v1 = &self.v1;
        let owners = self.model.struct_bases(def.id).into_iter().chain([def.id]);
        let taken: Vec<&RustName> = owners.flat_map(|owner| &self.names[owner].members).collect();
        // No converted name begins with an underscore, but a name from `@rust_name` can.
        let mut names =
            (0..).map(|n| RustName::verbatim(&format!("_pad{n}"))).filter(|name| !taken.contains(&name));
        let mut all = Vec::with_capacity(2 * fields.len());
        for (field, place) in fields.into_iter().zip(&layout.fields) {
            if place.padding > 0
                && let Some(name) = names.next()
            {
                let octets = Literal::usize_unsuffixed(place.padding);
                let text = format!(" Padding before `{}`.", field.name);
                all.push(Field {
                    name: quote!(#name),
                    ty: quote!(#v1::Pad<#octets>),
                    default: quote!(::core::default::Default::default()),
                    docs: quote!(#[doc = #text]),
                    optional: false,
                    offset: None,
                });
            }
            all.push(Field { offset: Some(place.offset), ..field });
        }
        all
    }

    fn struct_declaration(
        &self,
        depth: usize,
        def: &Def,
        fields: &[Field],
        zero_copy: bool,
        viewed: bool,
    ) -> TokenStream {
        let v1 = &self.v1;
        let item = self.names[def.id].item.at(self.model.rust_span(def.span));
        let kind = if matches!(def.kind, DefKind::Exception(_)) { "exception" } else { "struct" };
        let docs = self.item_docs(def, kind);
        let hash = self
            .model
            .is_hashable_def(def.id)
            .then(|| quote!(#[derive(::core::cmp::Eq, ::core::hash::Hash)]));
        let derives = self.derives(depth, def, self.derived(def.id));
        let memory = (zero_copy || viewed).then(|| {
            let path = format!("{}::zerocopy", v1.to_string().replace(' ', ""));
            let sent = zero_copy.then(|| quote!(#[derive(#v1::zerocopy::IntoBytes)]));
            quote! {
                #[derive(#v1::zerocopy::FromBytes, #v1::zerocopy::Immutable, #v1::zerocopy::KnownLayout)]
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

    fn struct_default(&self, depth: usize, def: &Def, fields: &[Field]) -> TokenStream {
        if !self.def_has_default(def.id) {
            return TokenStream::new();
        }
        let path = self.item(depth, def.id);
        let values = fields.iter().map(|Field { name, default, .. }| quote!(#name: #default,));
        quote! {
            impl ::core::default::Default for #path {
                fn default() -> Self {
                    Self { #(#values)* }
                }
            }
        }
    }

    /// Emits the encoding member by member.
    fn struct_cdr(&self, depth: usize, def: &Def, fields: &[Field], traits: &Traits) -> TokenStream {
        let v1 = &self.v1;
        let Traits { encode: encodes, decode: decodes } = traits;
        let path = self.item(depth, def.id);
        let encode = fields.iter().map(|Field { name, optional, .. }| match optional {
            true => quote!(#v1::encode_optional(&self.#name, __zorb_e)?;),
            false => quote!(#v1::CdrEncode::encode(&self.#name, __zorb_e)?;),
        });
        let least = self.struct_least(fields);
        let decode = fields.iter().map(|Field { name, ty, optional, .. }| match optional {
            true => quote!(#name: #v1::decode_optional(__zorb_d)?,),
            false => quote!(#name: <#ty as #v1::CdrDecode>::decode(__zorb_d)?,),
        });
        let unused = fields.is_empty().then(|| quote!(let _ = __zorb_e;));
        let unused_decoder = fields.is_empty().then(|| quote!(let _ = __zorb_d;));
        quote! {
            impl #encodes for #path {
                fn encode(&self, __zorb_e: &mut #v1::Encoder) -> ::core::result::Result<(), #v1::EncodeError> {
                    #unused
                    #(#encode)*
                    ::core::result::Result::Ok(())
                }
            }

            impl #decodes for #path {
                const MIN_SIZE: ::core::primitive::usize = #least;

                fn decode(__zorb_d: &mut #v1::Decoder<'_>) -> ::core::result::Result<Self, #v1::DecodeError> {
                    #unused_decoder
                    ::core::result::Result::Ok(Self { #(#decode)* })
                }
            }
        }
    }

    /// Returns the minimum number of bytes, as a sum over the members.
    fn struct_least(&self, fields: &[Field]) -> TokenStream {
        let v1 = &self.v1;
        let sizes = fields.iter().map(|Field { ty, optional, .. }| match optional {
            true => quote!(#v1::OPTIONAL_MIN_SIZE),
            false => quote!(<#ty as #v1::CdrDecode>::MIN_SIZE),
        });
        quote!(0 #(+ #sizes)*)
    }

    /// Returns the minimum number of bytes of a type that has `FixedLayout`.
    pub(super) fn fixed_least(&self) -> TokenStream {
        let v1 = &self.v1;
        quote!(<Self as #v1::FixedLayout>::LAYOUT.min_size())
    }

    /// Emits the encoding in one pass, by a layout known at compile time.
    fn fixed_struct(
        &self,
        depth: usize,
        def: &Def,
        fields: &[Field],
        viewed: Option<ZeroCopyLayout>,
    ) -> TokenStream {
        let v1 = &self.v1;
        let path = self.item(depth, def.id);
        let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
        let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
        let memory = self.is_zero_copy(def.id).then(|| self.memory_octets());
        // True if the target aligns numbers as CDR does.
        let viewed = viewed.map(|layout| {
            let size = Literal::usize_unsuffixed(layout.size);
            let offsets = layout.fields.iter().map(|place| Literal::usize_unsuffixed(place.offset));
            quote! {
                const VIEWED: ::core::primitive::bool = ::core::mem::size_of::<Self>() == #size
                    #(&& ::core::mem::offset_of!(Self, #names) == #offsets)*;
            }
        });
        let cdr = self.own_code(def.id).map(|traits| self.cdr_by_layout(&path, &traits));
        quote! {
            impl #v1::FixedLayout for #path {
                const LAYOUT: #v1::Layout = #v1::Layout::EMPTY #(.then(<#types as #v1::FixedLayout>::LAYOUT))*;
                #viewed

                #[inline(always)]
                fn put(&self, __zorb_w: &mut #v1::FixedWriter<'_>) {
                    #(#v1::FixedLayout::put(&self.#names, __zorb_w);)*
                }

                #[inline(always)]
                fn get(__zorb_r: &mut #v1::FixedReader<'_>) -> Self {
                    Self {
                        #(#names: <#types as #v1::FixedLayout>::get(__zorb_r),)*
                    }
                }

                #memory
            }

            #cdr
        }
    }

    /// Emits `CdrEncode` and `CdrDecode`, or the equivalent traits, of a type that has `FixedLayout`.
    pub(super) fn cdr_by_layout(&self, path: &TokenStream, traits: &Traits) -> TokenStream {
        let v1 = &self.v1;
        let Traits { encode: encodes, decode: decodes } = traits;
        let least = self.fixed_least();
        let decoded = |ty: TokenStream| quote!(::core::result::Result<#ty, #v1::DecodeError>);
        let (one, many, array) =
            (decoded(quote!(Self)), decoded(quote!(::std::vec::Vec<Self>)), decoded(quote!([Self; N])));
        quote! {
            impl #encodes for #path {
                #[inline]
                fn encode(&self, __zorb_e: &mut #v1::Encoder) -> ::core::result::Result<(), #v1::EncodeError> {
                    __zorb_e.put_fixed(self);
                    ::core::result::Result::Ok(())
                }

                #[inline]
                fn encode_slice(
                    __zorb_items: &[Self],
                    __zorb_e: &mut #v1::Encoder,
                ) -> ::core::result::Result<(), #v1::EncodeError> {
                    __zorb_e.put_fixed_slice(__zorb_items);
                    ::core::result::Result::Ok(())
                }
            }

            impl #decodes for #path {
                const MIN_SIZE: ::core::primitive::usize = #least;

                #[inline]
                fn decode(__zorb_d: &mut #v1::Decoder<'_>) -> #one {
                    __zorb_d.read_fixed()
                }

                #[inline]
                fn decode_vec(__zorb_d: &mut #v1::Decoder<'_>, __zorb_n: ::core::primitive::usize) -> #many {
                    __zorb_d.read_fixed_vec(__zorb_n)
                }

                #[inline]
                fn decode_array<const N: ::core::primitive::usize>(__zorb_d: &mut #v1::Decoder<'_>) -> #array {
                    __zorb_d.read_fixed()
                }
            }
        }
    }

    /// Emits the part of `impl FixedLayout` for a struct whose memory is its encoding, so that whole runs are
    /// copied.
    fn memory_octets(&self) -> TokenStream {
        let v1 = &self.v1;
        quote! {
            #[inline(always)]
            fn as_octets(__zorb_items: &[Self]) -> ::core::option::Option<&[::core::primitive::u8]> {
                ::core::option::Option::Some(#v1::zerocopy::IntoBytes::as_bytes(__zorb_items))
            }

            #[inline(always)]
            fn extend_from_octets(
                __zorb_out: &mut ::std::vec::Vec<Self>,
                __zorb_octets: &[::core::primitive::u8],
            ) -> ::core::primitive::bool {
                match <[Self] as #v1::zerocopy::FromBytes>::ref_from_bytes(__zorb_octets) {
                    ::core::result::Result::Ok(__zorb_items) => {
                        __zorb_out.extend_from_slice(__zorb_items);
                        true
                    }
                    ::core::result::Result::Err(_) => false,
                }
            }

            #[inline(always)]
            fn array_from_octets<const N: ::core::primitive::usize>(
                __zorb_octets: &[::core::primitive::u8],
            ) -> ::core::option::Option<[Self; N]> {
                <[Self; N] as #v1::zerocopy::FromBytes>::read_from_bytes(__zorb_octets).ok()
            }
        }
    }

    /// Emits the implementation that makes a `@zero_copy` struct an element of `Seq`, with a compile-time
    /// proof that its memory layout is that of CDR.
    fn element(&self, depth: usize, def: &Def, fields: &[Field], size: usize) -> TokenStream {
        let v1 = &self.v1;
        let path = self.item(depth, def.id);
        let size = Literal::usize_unsuffixed(size);
        let (names, offsets): (Vec<_>, Vec<_>) = fields
            .iter()
            .filter_map(|field| field.offset.map(|at| (&field.name, Literal::usize_unsuffixed(at))))
            .unzip();
        quote! {
            impl #v1::Element for #path {}

            const _: () = {
                ::core::assert!(::core::mem::size_of::<#path>() == #size);
                #(::core::assert!(::core::mem::offset_of!(#path, #names) == #offsets);)*
            };
        }
    }

    /// Emits the implementations that make a struct an exception.
    fn exception(&self, depth: usize, def: &Def) -> TokenStream {
        let v1 = &self.v1;
        let path = self.item(depth, def.id);
        let id = &def.repository_id;
        let display = self.exception_display(def);
        quote! {
            impl ::core::fmt::Display for #path {
                fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    #display
                }
            }

            impl ::std::error::Error for #path {}

            impl #v1::UserException for #path {
                const REPOSITORY_ID: &'static ::core::primitive::str = #id;
            }
        }
    }

    /// Emits the display of an exception as a sentence: the IDL name, and each member with its value
    /// (`Bank::Broke: missing 3.5, owner "ann"`).
    fn exception_display(&self, def: &Def) -> TokenStream {
        let v1 = &self.v1;
        let name = self.model.scoped_name(def.id);
        let members = self.model.structure(def.id).map_or(&[][..], |body| &body.members);
        let fields =
            members.iter().zip(&self.names[def.id].members).enumerate().map(|(index, (member, field))| {
                let before = format!("{} {} ", if index == 0 { ":" } else { "," }, member.name);
                quote! {
                    __zorb_f.write_str(#before)?;
                    // Strings in it may come from a peer, and have any length.
                    ::core::fmt::Display::fmt(
                        &#v1::OneLine::new(&::core::format_args!("{:?}", self.#field)),
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
}

/// Rejects large `@zero_copy` structs, because outside of sequences their values are passed on the stack.
pub(super) fn refuse_large(model: &Model, problems: &mut Vec<Diagnostic>) {
    for def in model.defs() {
        let Some(annotation) = def.annotations.get("zero_copy") else { continue };
        let Ok(layout) = model.zero_copy_layout(def.id) else { continue };
        if layout.size > MAX_ZERO_COPY {
            let message = "a `@zero_copy` struct of more than 64 KiB is not supported";
            problems.push(
                Diagnostic::error("unsupported", annotation.span, message)
                    .and(def.span, format!("{} octets", layout.size))
                    .help("give large arrays a place beside the struct, where they are shared as well"),
            );
        }
    }
}
