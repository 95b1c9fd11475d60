//! Parameters in Rust: their types for clients and servants, and the encoding of arguments.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::{EmittedFn, Form, Passing, SeqForm, TypeUse};
use crate::model::{DefId, Type};

/// The types of a `@stream` result.
pub(super) struct ResultStream {
    /// The type that a servant returns.
    pub(super) source: TokenStream,
    /// The type that a client receives.
    pub(super) stream: TokenStream,
}

impl Cx<'_> {
    pub(super) fn in_type(&self, depth: ModuleDepth, u: TypeUse, function: EmittedFn) -> TokenStream {
        let Passing { form, bound } = self.mapping.passing(u);
        let lifetime = (function == EmittedFn::LocalMethod).then(|| quote!('l));
        let (stripped, non_nil) = self.mapping.strip(u);
        match (form, self.model.ty(stripped)) {
            (Form::Value, _) => self.ty(depth, u),
            (Form::Str, _) => quote!(&#lifetime ::core::primitive::str),
            (Form::WStr, _) => {
                let rt = &self.runtime_path;
                let lifetime = match function {
                    EmittedFn::ClientMethod => quote!('w),
                    EmittedFn::LocalMethod => quote!('l),
                    EmittedFn::CallFunction | EmittedFn::ServantMethod => quote!('_),
                };
                convertible_type(quote!(#rt::WStr<#lifetime>), function)
            }
            (Form::Shared, Type::Sequence { element, .. }) if bound.is_some() => {
                convertible_type(self.sequence(depth, TypeUse::of(*element, non_nil)), function)
            }
            (Form::Slice, Type::Sequence { element, .. }) => {
                let item = self.ty(depth, TypeUse::of(*element, non_nil));
                quote!(&#lifetime [#item])
            }
            (Form::ArrayRef, Type::Array { element, dims }) => {
                let array = self.array(depth, TypeUse::of(*element, non_nil), dims);
                quote!(&#lifetime #array)
            }
            (Form::Shared | Form::Reference, _) => convertible_type(self.ty(depth, u), function),
            _ => {
                let ty = self.ty(depth, u);
                quote!(&#lifetime #ty)
            }
        }
    }

    pub(super) fn stream_type(&self, depth: ModuleDepth, u: TypeUse, function: EmittedFn) -> TokenStream {
        let rt = &self.runtime_path;
        let item = self.streamed_element(depth, u);
        let is_sent = matches!(function, EmittedFn::ClientMethod | EmittedFn::CallFunction);
        match item {
            None if is_sent => convertible_type(quote!(#rt::ByteSource), function),
            Some(item) if is_sent => convertible_type(quote!(#rt::SeqSource<#item>), function),
            None => quote!(#rt::ByteStream),
            Some(item) => quote!(#rt::SeqStream<#item>),
        }
    }

    pub(super) fn result_stream(&self, depth: ModuleDepth, u: TypeUse) -> ResultStream {
        let rt = &self.runtime_path;
        let (stripped, non_nil) = self.mapping.strip(u);
        let Type::Sequence { element, .. } = self.model.ty(stripped) else {
            let whole = self.ty(depth, u);
            return ResultStream { source: whole.clone(), stream: whole };
        };
        let item = self.ty(depth, TypeUse::of(*element, non_nil));
        let (source, stream) = match self.mapping.seq_form(*element) {
            SeqForm::Bytes => (quote!(#rt::ByteSource), quote!(#rt::ByteStream)),
            SeqForm::Seq if matches!(self.model.stripped(*element), Type::Primitive(_)) => {
                (quote!(#rt::SeqSource<#item>), quote!(#rt::SeqStream<#item>))
            }
            SeqForm::Seq | SeqForm::Vec => (quote!(#rt::ItemSource<#item>), quote!(#rt::ItemStream<#item>)),
        };
        ResultStream { source, stream }
    }

    /// Returns the type of the elements of a `@stream` parameter, or `None` if they are bytes.
    pub(super) fn streamed_element(&self, depth: ModuleDepth, u: TypeUse) -> Option<TokenStream> {
        match self.model.stripped(u.ty) {
            Type::Sequence { element, .. } if self.mapping.seq_form(*element) != SeqForm::Bytes => {
                Some(self.ty(depth, TypeUse::of(*element, false)))
            }
            _ => None,
        }
    }

    /// Returns the type of an `inout` parameter, which is owned.
    pub(super) fn inout_type(&self, depth: ModuleDepth, u: TypeUse, function: EmittedFn) -> TokenStream {
        let ty = self.ty(depth, u);
        let Passing { form, bound } = self.mapping.passing(u);
        match form {
            Form::Shared | Form::Reference if bound.is_none() => convertible_type(ty, function),
            _ => ty,
        }
    }

    /// Returns an expression that checks an `in` parameter with a bound. Its error contains `idl_name`.
    pub(super) fn bound_check(&self, u: TypeUse, name: &TokenStream, idl_name: &str) -> Option<TokenStream> {
        let rt = &self.runtime_path;
        let Passing { form, bound } = self.mapping.passing(u);
        let bound = Literal::u32_unsuffixed(bound?);
        let content = match form {
            Form::WStr | Form::Shared => quote!(&#name),
            _ => quote!(#name),
        };
        Some(quote!(#rt::check_argument(#content, #bound, #idl_name)))
    }

    /// Returns the statement that encodes an `in` parameter, or an `inout` one, which is owned.
    pub(super) fn encode_argument(
        &self,
        depth: ModuleDepth,
        owner: DefId,
        u: TypeUse,
        inout: bool,
        name: &TokenStream,
    ) -> TokenStream {
        let rt = &self.runtime_path;
        if self.is_interpreted(owner, u) {
            let desc = self.desc(depth, u.ty);
            return quote!(#rt::write_interpreted(&#name, #desc, __zorb_e)?;);
        }
        if self.mapping.is_native(u) {
            return quote!(#rt::CdrEncode::encode(&#rt::Native(&#name), __zorb_e)?;);
        }
        match self.mapping.passing(u).form {
            Form::Str | Form::Slice | Form::Borrow | Form::ArrayRef if !inout => {
                quote!(#rt::CdrEncode::encode(#name, __zorb_e)?;)
            }
            _ => quote!(#rt::CdrEncode::encode(&#name, __zorb_e)?;),
        }
    }

    pub(super) fn decoded_type(
        &self,
        depth: ModuleDepth,
        owner: DefId,
        u: TypeUse,
        inout: bool,
    ) -> TokenStream {
        let rt = &self.runtime_path;
        let Passing { form, bound } = self.mapping.passing(u);
        let (stripped, non_nil) = self.mapping.strip(u);
        if self.mapping.is_native(u) {
            let ty = self.ty(depth, u);
            return quote!(#rt::Native<#ty>);
        }
        if form == Form::Slice
            && bound.is_none()
            && !inout
            && let Type::Sequence { element, .. } = self.model.ty(stripped)
            && let Type::Named(def) = self.model.stripped(*element)
            && self.mapping.view_layout(*def).is_some()
            && self.marshalling.mode(*def).is_none()
            && !self.marshalling.interprets_calls(owner)
        {
            let item = self.ty(depth, TypeUse::of(*element, non_nil));
            return quote!(#rt::Elements<#item>);
        }
        self.ty(depth, u)
    }

    /// Returns the expression that passes a decoded argument to the servant.
    pub(super) fn to_servant(&self, u: TypeUse, name: &TokenStream) -> TokenStream {
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
            Form::Str | Form::Slice | Form::ArrayRef => quote!(&*#name),
            Form::Borrow => quote!(&#name),
        }
    }
}

/// Returns the type of a parameter for which a client's method takes anything that converts to `ty`.
fn convertible_type(ty: TokenStream, function: EmittedFn) -> TokenStream {
    match function {
        EmittedFn::ClientMethod => quote!(impl ::core::convert::Into<#ty> + ::core::marker::Send),
        EmittedFn::CallFunction | EmittedFn::ServantMethod | EmittedFn::LocalMethod => ty,
    }
}
