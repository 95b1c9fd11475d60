//! Descriptions of interfaces at run time: their operations, attributes and bases as constant data.

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use crate::model::{Attribute, Def, DefId, DefKind, Direction, Flavour, Interface, Operation};

/// Emits the description of an interface. It is accessed through a function, as descriptions of types are.
pub(super) fn interface_desc(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let DefKind::Interface(body) = &def.kind else { return TokenStream::new() };
    let rt = &cx.runtime_path;
    let path = cx.paths.reference(depth, def.id);
    let (id, name) = (&def.repository_id, &def.name);
    let kind = interface_kind(cx, body);
    let bases = body.bases.iter().map(|base| cx.paths.reference(depth, *base));
    let members = || body.members.iter().map(|member| cx.model.def(*member));
    let operations = members().filter_map(|member| match &member.kind {
        DefKind::Operation(operation) => Some(operation_desc(cx, depth, member, operation)),
        _ => None,
    });
    let attributes = members().filter_map(|member| match &member.kind {
        DefKind::Attribute(attribute) => Some(attribute_desc(cx, depth, member, attribute)),
        _ => None,
    });
    quote! {
        impl #rt::Described for #path {
            const INTERFACE: fn() -> &'static #rt::InterfaceDesc = || {
                static __ZORB_INTERFACE: #rt::InterfaceDesc = #rt::InterfaceDesc {
                    id: #id,
                    name: #name,
                    kind: #kind,
                    bases: &[#(<#bases as #rt::Described>::INTERFACE),*],
                    operations: &[#(#operations),*],
                    attributes: &[#(#attributes),*],
                };
                &__ZORB_INTERFACE
            };
        }
    }
}

/// Returns the kind of the type codes of references to an interface.
pub(super) fn interface_kind(cx: &Cx<'_>, interface: &Interface) -> TokenStream {
    let rt = &cx.runtime_path;
    match interface.flavour {
        Flavour::Plain => quote!(#rt::TcKind::ObjRef),
        Flavour::Abstract => quote!(#rt::TcKind::AbstractInterface),
        Flavour::Local => quote!(#rt::TcKind::LocalInterface),
    }
}

fn operation_desc(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, operation: &Operation) -> TokenStream {
    let rt = &cx.runtime_path;
    let (id, name, oneway) = (&def.repository_id, &def.name, operation.oneway);
    let result = match operation.result {
        Some(result) => cx.desc(depth, result),
        None => quote!(#rt::TypeDesc::VOID),
    };
    let params = operation.params.iter().map(|param| {
        let (name, desc) = (&param.name, cx.desc(depth, param.ty));
        let mode = match param.direction {
            Direction::In => quote!(In),
            Direction::Out => quote!(Out),
            Direction::InOut => quote!(InOut),
        };
        quote!((#name, #rt::Mode::#mode, #desc))
    });
    let raises = exceptions_desc(cx, depth, &operation.raises);
    let contexts = &operation.context;
    quote! {
        #rt::OperationDesc {
            id: #id,
            name: #name,
            oneway: #oneway,
            result: #result,
            params: &[#(#params),*],
            raises: #raises,
            contexts: &[#(#contexts),*],
        }
    }
}

fn attribute_desc(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, attribute: &Attribute) -> TokenStream {
    let rt = &cx.runtime_path;
    let (id, name, readonly) = (&def.repository_id, &def.name, attribute.readonly);
    let desc = cx.desc(depth, attribute.ty);
    let get_raises = exceptions_desc(cx, depth, &attribute.get_raises);
    let set_raises = exceptions_desc(cx, depth, &attribute.set_raises);
    quote! {
        #rt::AttributeDesc {
            id: #id,
            name: #name,
            readonly: #readonly,
            desc: #desc,
            get_raises: #get_raises,
            set_raises: #set_raises,
        }
    }
}

fn exceptions_desc(cx: &Cx<'_>, depth: ModuleDepth, raises: &[DefId]) -> TokenStream {
    let rt = &cx.runtime_path;
    let exceptions = raises.iter().map(|exception| cx.paths.item(depth, *exception));
    quote!(&[#(<#exceptions as #rt::Typed>::DESC),*])
}
