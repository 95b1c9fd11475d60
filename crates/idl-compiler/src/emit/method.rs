//! The common form of operations and attributes: name, arguments and results.

use proc_macro2::{Ident, Span, TokenStream};

use super::docs::doc_and_paragraph;
use super::forms::TypeUse;
use super::ident::RustName;
use crate::model::{DefId, Direction, Docs};

/// One method: an operation, or the get or set operation of an attribute.
pub(super) struct Method {
    pub(super) owner: DefId,
    /// The operation or attribute, or the value type of a factory.
    pub(super) def: DefId,
    /// The operation name in requests.
    pub(super) wire_name: String,
    pub(super) name: RustName,
    pub(super) span: Span,
    pub(super) oneway: bool,
    pub(super) params: Vec<Parameter>,
    pub(super) results: Vec<ResultValue>,
    /// True for `@stream`: the result is sent while it is produced.
    pub(super) streams_result: bool,
    /// The patterns of the context properties that are sent after the arguments.
    pub(super) context: Vec<String>,
    pub(super) raises: Vec<DefId>,
    /// True if any other user exception can be raised too.
    pub(super) raises_any: bool,
    /// The name of the error type in the owner's module, if there are exceptions.
    pub(super) error_enum: Option<RustName>,
    /// The name of the result struct in the owner's module, if the results are too many for a tuple.
    pub(super) result_struct: Option<RustName>,
    pub(super) docs: Docs,
    /// The declaration in IDL.
    pub(super) idl: String,
}

pub(super) struct Parameter {
    pub(super) name: RustName,
    pub(super) idl_name: String,
    pub(super) span: Span,
    pub(super) ty: TypeUse,
    pub(super) direction: Direction,
    /// True for `@stream`: the argument is received incrementally.
    pub(super) is_stream: bool,
}

pub(super) struct ResultValue {
    /// The name of the field in the result struct.
    pub(super) name: RustName,
    pub(super) ty: TypeUse,
    pub(super) description: String,
}

impl Parameter {
    pub(super) fn is_sent(&self) -> bool {
        self.direction != Direction::Out
    }

    pub(super) fn is_inout(&self) -> bool {
        self.direction == Direction::InOut
    }

    pub(super) fn ident(&self) -> Ident {
        self.name.at(self.span)
    }
}

impl Method {
    pub(super) fn ident(&self) -> Ident {
        self.name.at(self.span)
    }

    /// Returns the name of the call function, which methods of the reference types call.
    pub(super) fn call_name(&self) -> RustName {
        RustName::verbatim(&format!("call_{}", self.name))
    }

    /// Returns the name of the function that calls the object or value in a handle to an abstract interface.
    pub(super) fn abstract_call_name(&self) -> RustName {
        RustName::verbatim(&format!("either_{}", self.name))
    }

    pub(super) fn sent_params(&self) -> impl Iterator<Item = &Parameter> {
        self.params.iter().filter(|param| param.is_sent())
    }

    /// Returns the name of the additional last parameter, if a context is sent.
    pub(super) fn context_name(&self) -> Option<RustName> {
        let mut name = RustName::verbatim("context");
        while self.params.iter().any(|param| param.name == name) {
            name = name.underscored();
        }
        (!self.context.is_empty()).then_some(name)
    }

    pub(super) fn streamed_result(&self) -> Option<&ResultValue> {
        self.results.first().filter(|_| self.streams_result)
    }

    /// Returns the names of the parameters of a trait's method, in order.
    pub(super) fn arguments(&self) -> Vec<RustName> {
        self.sent_params().map(|param| param.name.clone()).chain(self.context_name()).collect()
    }

    pub(super) fn docs(&self) -> TokenStream {
        let default = format!("Operation `{}`.", self.wire_name);
        doc_and_paragraph(&self.docs, &default, &format!("IDL: `{}`", self.idl))
    }
}
