//! Interfaces, operations and attributes.

use super::input::Input;
use super::item::ScopeKind;
use super::parser::{Parse, Parser};
use crate::ast::{
    Attribute, Item, ItemKind, Operation, Param, Preamble, Raises, StringArg, TypeKind, TypeSpec,
};
use crate::diagnostic::Diagnostic;
use crate::model::{Direction, Flavour};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    pub(super) fn interface(&mut self, mut preamble: Preamble) -> Parse<Item> {
        let flavour = match () {
            () if self.input.take_keyword("abstract") => Flavour::Abstract,
            () if self.input.take_keyword("local") => Flavour::Local,
            () => Flavour::Plain,
        };
        self.input.advance();
        let name = self.input.new_ident("the name of the interface")?;
        if self.input.take_punct(Punct::Semicolon) {
            return Ok(Item { preamble, kind: ItemKind::ForwardInterface { flavour, name } });
        }
        let bases = if self.input.take_punct(Punct::Colon) {
            self.input.names("a base interface")?
        } else {
            Vec::new()
        };
        if !self.input.at_punct(Punct::BraceOpen) {
            let wanted = if bases.is_empty() { "`:`, `{` or `;`" } else { "`,` or `{`" };
            return self.input.expected(wanted);
        }
        let items = self.scope(ScopeKind::Interface, &mut preamble, &name.text, "interface")?;
        Ok(Item { preamble, kind: ItemKind::Interface { flavour, name, bases, items } })
    }

    pub(super) fn native(&mut self) -> Parse<ItemKind> {
        self.input.advance();
        Ok(ItemKind::Native(self.input.new_ident("the name of the native type")?))
    }

    pub(super) fn export(&mut self) -> Parse<(ItemKind, &'static str)> {
        match self.input.kind() {
            TokenKind::Keyword("readonly" | "attribute") => {
                Ok((ItemKind::Attribute(self.attribute()?), "this attribute"))
            }
            _ => Ok((ItemKind::Operation(self.operation()?), "this operation")),
        }
    }

    pub(super) fn attribute(&mut self) -> Parse<Attribute> {
        let readonly = self.input.take_keyword("readonly");
        if !self.input.take_keyword("attribute") {
            return self.input.expected("`attribute`");
        }
        let ty = self.param_type("the type of the attribute")?;
        let mut names = vec![self.input.new_ident("the name of the attribute")?];
        while self.input.take_punct(Punct::Comma) {
            names.push(self.input.new_ident("the name of an attribute")?);
        }
        let (mut get_raises, mut set_raises) = (None, None);
        if self.input.at_keyword("raises") {
            let raises = self.raises()?;
            if !readonly {
                let message = "`raises` is allowed only on a readonly attribute: it does not tell whether getting or setting the attribute raises the exceptions";
                let error = Diagnostic::error("attribute-raises", raises.span, message);
                self.input.report(error.help("write `getraises (...)` and `setraises (...)`"));
            }
            get_raises = Some(raises);
        }
        if self.input.at_contextual_keyword("getraises") {
            let raises = self.raises()?;
            if readonly {
                let message = "a readonly attribute cannot have `getraises`";
                let error = Diagnostic::error("attribute-raises", raises.span, message);
                self.input.report(error.help("write `raises (...)`"));
            }
            get_raises.get_or_insert(raises);
        }
        if self.input.at_contextual_keyword("setraises") {
            let raises = self.raises()?;
            if readonly {
                let message = "a readonly attribute cannot have `setraises`, because it is never set";
                self.input.report(Diagnostic::error("attribute-raises", raises.span, message));
            }
            set_raises = Some(raises);
        }
        let raises = get_raises.as_ref().or(set_raises.as_ref()).map(|raises: &Raises| raises.span);
        if let (Some(span), [_, second, ..]) = (raises, names.as_slice()) {
            let message = "several attributes cannot share a raises clause";
            let error = Diagnostic::error("attribute-raises", span, message);
            self.input.report(
                error.and(second.span, "the second attribute").help("declare each attribute on its own"),
            );
        }
        Ok(Attribute { readonly, ty, names, get_raises, set_raises })
    }

    fn operation(&mut self) -> Parse<Operation> {
        let oneway = self.input.take_keyword("oneway").then(|| self.input.last_span());
        let span = self.input.span();
        let result = if self.input.take_keyword("void") {
            TypeSpec { kind: TypeKind::Void, span }
        } else {
            let what = if oneway.is_some() { "`void`" } else { "a definition, an operation or an attribute" };
            self.param_type(what)?
        };
        if self.input.at_punct(Punct::ParenOpen) {
            let message = "this operation has no name or no result type";
            let error = Diagnostic::error("syntax", self.input.span(), message);
            return self.input.fail(error.help("write `void` before the name if it returns nothing"));
        }
        let name = self.input.new_ident("the name of the operation")?;
        let params = self.params()?;
        let raises = if self.input.at_keyword("raises") { Some(self.raises()?) } else { None };
        let context = if self.input.at_keyword("context") { self.context()? } else { Vec::new() };
        Ok(Operation { oneway, result, name, params, raises, context })
    }

    fn context(&mut self) -> Parse<Vec<StringArg>> {
        self.input.advance();
        self.input.expect_punct(Punct::ParenOpen)?;
        let patterns = self.list(|parser| parser.input.string_arg("the name of a property in quotes"))?;
        self.input.expect_punct(Punct::ParenClose)?;
        Ok(patterns)
    }

    pub(super) fn params(&mut self) -> Parse<Vec<Param>> {
        self.input.expect_punct(Punct::ParenOpen)?;
        let is_empty = self.input.at_punct(Punct::ParenClose);
        let params = if is_empty { Vec::new() } else { self.list(Self::param)? };
        if !self.input.take_punct(Punct::ParenClose) {
            return self.input.expected("`,` or `)` after a parameter");
        }
        Ok(params)
    }

    fn param(&mut self) -> Parse<Param> {
        let preamble = self.preamble()?;
        let direction_span = self.input.span();
        let direction = match self.input.kind() {
            TokenKind::Keyword("in") => Direction::In,
            TokenKind::Keyword("out") => Direction::Out,
            TokenKind::Keyword("inout") => Direction::InOut,
            _ => return self.input.expected("`in`, `out` or `inout`"),
        };
        self.input.advance();
        let ty = self.param_type("the type of the parameter")?;
        let name = self.input.new_ident("the name of the parameter")?;
        if self.input.at_punct(Punct::BracketOpen) {
            let message = "a parameter cannot be declared as an array";
            let error = Diagnostic::error("anonymous-type", self.input.span(), message);
            return self.input.fail(error.help("name the array type with a typedef, and use the name here"));
        }
        Ok(Param { preamble, direction, direction_span, ty, name })
    }

    /// Parses `raises (A, B)`, or the same with `getraises` or `setraises`.
    pub(super) fn raises(&mut self) -> Parse<Raises> {
        let span = self.input.span();
        self.input.advance();
        self.input.expect_punct(Punct::ParenOpen)?;
        let names = self.input.names("an exception")?;
        self.input.expect_punct(Punct::ParenClose)?;
        Ok(Raises { names, span })
    }

    /// Parses the type of a parameter, result or attribute, and reports a type that is declared in place.
    fn param_type(&mut self, what: &str) -> Parse<TypeSpec> {
        let ty = self.type_spec(what)?;
        let anonymous = match ty.kind {
            TypeKind::Sequence { .. } => "a sequence type",
            TypeKind::Map { .. } => "a map type",
            TypeKind::Fixed(Some(_)) => "a fixed-point type",
            TypeKind::Struct { .. } => "a struct",
            TypeKind::Union(_) => "a union",
            TypeKind::Enum { .. } => "an enum",
            _ => return Ok(ty),
        };
        let error =
            Diagnostic::error("anonymous-type", ty.span, format!("{anonymous} cannot be declared here"));
        let help = match ty.kind {
            TypeKind::Sequence { .. } | TypeKind::Map { .. } | TypeKind::Fixed(_) => {
                "declare it with a typedef, and use the name here"
            }
            _ => "declare it separately, and use its name here",
        };
        self.input.report(error.help(help));
        Ok(TypeSpec { kind: TypeKind::Bad, span: ty.span })
    }
}

pub(super) fn at_flavoured_interface(input: &Input<'_>) -> bool {
    matches!(input.kind(), TokenKind::Keyword("abstract" | "local"))
        && *input.kind_at(1) == TokenKind::Keyword("interface")
}
