//! Descriptions of interfaces at run time: their operations, attributes and bases as constant data.

use proc_macro2::TokenStream;
use quote::quote;

use super::Cx;
use crate::model::{Attribute, Def, DefId, DefKind, Direction, Flavour, Interface, Operation};

impl Cx<'_> {
    /// Emits the description of an interface. Like that of types, it is accessed by a function.
    pub(super) fn interface_desc(&self, depth: usize, def: &Def) -> TokenStream {
        let DefKind::Interface(body) = &def.kind else { return TokenStream::new() };
        let v1 = &self.v1;
        let path = self.reference(depth, def.id);
        let (id, name) = (&def.repository_id, &def.name);
        let kind = self.interface_kind(body);
        let bases = body.bases.iter().map(|base| self.reference(depth, *base));
        let members = || body.members.iter().map(|member| self.model.def(*member));
        let operations = members().filter_map(|member| match &member.kind {
            DefKind::Operation(operation) => Some(self.operation_desc(depth, member, operation)),
            _ => None,
        });
        let attributes = members().filter_map(|member| match &member.kind {
            DefKind::Attribute(attribute) => Some(self.attribute_desc(depth, member, attribute)),
            _ => None,
        });
        quote! {
            impl #v1::Described for #path {
                const INTERFACE: fn() -> &'static #v1::InterfaceDesc = || {
                    static __ZORB_INTERFACE: #v1::InterfaceDesc = #v1::InterfaceDesc {
                        id: #id,
                        name: #name,
                        kind: #kind,
                        bases: &[#(<#bases as #v1::Described>::INTERFACE),*],
                        operations: &[#(#operations),*],
                        attributes: &[#(#attributes),*],
                    };
                    &__ZORB_INTERFACE
                };
            }
        }
    }

    /// Returns the kind of the type codes of references to an interface.
    pub(super) fn interface_kind(&self, interface: &Interface) -> TokenStream {
        let v1 = &self.v1;
        match interface.flavour {
            Flavour::Plain => quote!(#v1::TcKind::ObjRef),
            Flavour::Abstract => quote!(#v1::TcKind::AbstractInterface),
            Flavour::Local => quote!(#v1::TcKind::LocalInterface),
        }
    }

    fn operation_desc(&self, depth: usize, def: &Def, operation: &Operation) -> TokenStream {
        let v1 = &self.v1;
        let (id, name, oneway) = (&def.repository_id, &def.name, operation.oneway);
        let result = match operation.result {
            Some(result) => self.desc(depth, result),
            None => quote!(#v1::TypeDesc::VOID),
        };
        let params = operation.params.iter().map(|param| {
            let (name, desc) = (&param.name, self.desc(depth, param.ty));
            let mode = match param.direction {
                Direction::In => quote!(In),
                Direction::Out => quote!(Out),
                Direction::InOut => quote!(InOut),
            };
            quote!((#name, #v1::Mode::#mode, #desc))
        });
        let raises = self.exceptions_desc(depth, &operation.raises);
        let contexts = &operation.context;
        quote! {
            #v1::OperationDesc {
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

    fn attribute_desc(&self, depth: usize, def: &Def, attribute: &Attribute) -> TokenStream {
        let v1 = &self.v1;
        let (id, name, readonly) = (&def.repository_id, &def.name, attribute.readonly);
        let desc = self.desc(depth, attribute.ty);
        let get_raises = self.exceptions_desc(depth, &attribute.get_raises);
        let set_raises = self.exceptions_desc(depth, &attribute.set_raises);
        quote! {
            #v1::AttributeDesc {
                id: #id,
                name: #name,
                readonly: #readonly,
                desc: #desc,
                get_raises: #get_raises,
                set_raises: #set_raises,
            }
        }
    }

    fn exceptions_desc(&self, depth: usize, raises: &[DefId]) -> TokenStream {
        let v1 = &self.v1;
        let exceptions = raises.iter().map(|exception| self.item(depth, *exception));
        quote!(&[#(<#exceptions as #v1::Typed>::DESC),*])
    }
}
