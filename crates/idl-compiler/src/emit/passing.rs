//! Parameters in Rust: their types for clients and servants, and the encoding of arguments.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::Cx;
use super::forms::{Form, Passing, SeqForm, Side, Use};
use crate::model::{DefId, Type};

pub(super) struct ResultStream {
    /// The type that a servant returns.
    pub(super) source: TokenStream,
    /// The type that a client receives.
    pub(super) stream: TokenStream,
}

impl Cx<'_> {
    pub(super) fn in_type(&self, depth: usize, u: Use, side: Side) -> TokenStream {
        let Passing { form, bound } = self.mapping.passing(u);
        let lifetime = (side == Side::Local).then(|| quote!('l));
        let (stripped, non_nil) = self.mapping.strip(u);
        match (form, self.model.ty(stripped)) {
            (Form::Value, _) => self.ty(depth, u),
            (Form::Str, _) => quote!(&#lifetime ::core::primitive::str),
            (Form::WStr, _) => {
                let v1 = &self.v1;
                let lifetime = match side {
                    Side::Client => quote!('w),
                    Side::Local => quote!('l),
                    Side::Call | Side::Servant => quote!('_),
                };
                into(quote!(#v1::WStr<#lifetime>), side)
            }
            (Form::Shared, Type::Sequence { element, .. }) if bound.is_some() => {
                into(self.sequence(depth, Use::of(*element, non_nil)), side)
            }
            (Form::Slice, Type::Sequence { element, .. }) => {
                let item = self.ty(depth, Use::of(*element, non_nil));
                quote!(&#lifetime [#item])
            }
            (Form::Boxed, Type::Array { element, dims }) => {
                let array = self.array(depth, Use::of(*element, non_nil), dims);
                quote!(&#lifetime #array)
            }
            (Form::Shared | Form::Reference, _) => into(self.ty(depth, u), side),
            _ => {
                let ty = self.ty(depth, u);
                quote!(&#lifetime #ty)
            }
        }
    }

    pub(super) fn stream_type(&self, depth: usize, u: Use, side: Side) -> TokenStream {
        let v1 = &self.v1;
        let item = self.streamed_element(depth, u);
        match (side, item) {
            (Side::Client | Side::Call, None) => into(quote!(#v1::ByteSource), side),
            (Side::Client | Side::Call, Some(item)) => into(quote!(#v1::SeqSource<#item>), side),
            (Side::Servant | Side::Local, None) => quote!(#v1::ByteStream),
            (Side::Servant | Side::Local, Some(item)) => quote!(#v1::SeqStream<#item>),
        }
    }

    pub(super) fn result_stream(&self, depth: usize, u: Use) -> ResultStream {
        let v1 = &self.v1;
        let (stripped, non_nil) = self.mapping.strip(u);
        let Type::Sequence { element, .. } = self.model.ty(stripped) else {
            let whole = self.ty(depth, u);
            return ResultStream { source: whole.clone(), stream: whole };
        };
        let item = self.ty(depth, Use::of(*element, non_nil));
        let (source, stream) = match self.mapping.seq_form(*element) {
            SeqForm::Bytes => (quote!(#v1::ByteSource), quote!(#v1::ByteStream)),
            SeqForm::Seq if matches!(self.model.stripped(*element), Type::Primitive(_)) => {
                (quote!(#v1::SeqSource<#item>), quote!(#v1::SeqStream<#item>))
            }
            SeqForm::Seq | SeqForm::Vec => (quote!(#v1::ItemSource<#item>), quote!(#v1::ItemStream<#item>)),
        };
        ResultStream { source, stream }
    }

    /// Returns the type of the elements of a `@stream` parameter; `None` for bytes.
    pub(super) fn streamed_element(&self, depth: usize, u: Use) -> Option<TokenStream> {
        match self.model.stripped(u.ty) {
            Type::Sequence { element, .. } if self.mapping.seq_form(*element) != SeqForm::Bytes => {
                Some(self.ty(depth, Use::of(*element, false)))
            }
            _ => None,
        }
    }

    /// Returns the type of an `inout` parameter, which is owned.
    pub(super) fn inout_type(&self, depth: usize, u: Use, side: Side) -> TokenStream {
        let ty = self.ty(depth, u);
        let Passing { form, bound } = self.mapping.passing(u);
        match form {
            Form::Shared | Form::Reference if bound.is_none() => into(ty, side),
            _ => ty,
        }
    }

    /// Returns a `Result` that is an error if an `in` parameter is too long; `idl` is its name in messages.
    pub(super) fn bound_check(&self, u: Use, name: &TokenStream, idl: &str) -> Option<TokenStream> {
        let v1 = &self.v1;
        let Passing { form, bound } = self.mapping.passing(u);
        let bound = Literal::u32_unsuffixed(bound?);
        let content = match form {
            Form::WStr | Form::Shared => quote!(&#name),
            _ => quote!(#name),
        };
        Some(quote!(#v1::check_argument(#content, #bound, #idl)))
    }

    /// Returns the statement that encodes an `in` parameter, or an `inout` one, which is owned.
    pub(super) fn encode_argument(
        &self,
        depth: usize,
        owner: DefId,
        u: Use,
        inout: bool,
        name: &TokenStream,
    ) -> TokenStream {
        let v1 = &self.v1;
        if self.is_interpreted(owner, u) {
            let desc = self.desc(depth, u.ty);
            return quote!(#v1::interpret(&#name, #desc, __zorb_e)?;);
        }
        if self.mapping.is_native(u) {
            return quote!(#v1::CdrEncode::encode(&#v1::Native(&#name), __zorb_e)?;);
        }
        match self.mapping.passing(u).form {
            Form::Str | Form::Slice | Form::Borrow | Form::Boxed if !inout => {
                quote!(#v1::CdrEncode::encode(#name, __zorb_e)?;)
            }
            _ => quote!(#v1::CdrEncode::encode(&#name, __zorb_e)?;),
        }
    }

    pub(super) fn decoded_type(&self, depth: usize, owner: DefId, u: Use, inout: bool) -> TokenStream {
        let v1 = &self.v1;
        let Passing { form, bound } = self.mapping.passing(u);
        let (stripped, non_nil) = self.mapping.strip(u);
        if self.mapping.is_native(u) {
            let ty = self.ty(depth, u);
            return quote!(#v1::Native<#ty>);
        }
        if form == Form::Slice
            && bound.is_none()
            && !inout
            && let Type::Sequence { element, .. } = self.model.ty(stripped)
            && let Type::Named(def) = self.model.stripped(*element)
            && self.mapping.view_layout(*def).is_some()
            && self.hybrid.mode(*def).is_none()
            && !self.hybrid.calls(owner)
        {
            let item = self.ty(depth, Use::of(*element, non_nil));
            return quote!(#v1::Elements<#item>);
        }
        self.ty(depth, u)
    }

    pub(super) fn to_servant(&self, u: Use, name: &TokenStream) -> TokenStream {
        let Passing { form, bound } = self.mapping.passing(u);
        match form {
            _ if self.mapping.is_native(u) => quote!(#name.0),
            Form::Value | Form::Reference => quote!(#name),
            Form::Shared if bound.is_some() => quote!(#name.into_inner()),
            Form::Shared => quote!(#name),
            // The value may be wrapped in `Bounded`.
            Form::WStr => quote!(#name.as_wstr()),
            // `Bounded` dereferences to `String` and then to `str`, or to `Vec` and then to a slice.
            Form::Str | Form::Slice if bound.is_some() => quote!(&**#name),
            Form::Str | Form::Slice | Form::Boxed => quote!(&*#name),
            Form::Borrow => quote!(&#name),
        }
    }
}

/// Returns the type of a parameter for which a client's method takes anything that converts to `ty`.
fn into(ty: TokenStream, side: Side) -> TokenStream {
    match side {
        Side::Client => quote!(impl ::core::convert::Into<#ty> + ::core::marker::Send),
        Side::Call | Side::Servant | Side::Local => ty,
    }
}
