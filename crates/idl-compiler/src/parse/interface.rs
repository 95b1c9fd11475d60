//! Interfaces, operations and attributes.

use super::item::Place;
use super::{Parse, Parser, Reported};
use crate::ast::{Attribute, Head, Item, ItemKind, Operation, Param, Raises, StringArg, TypeKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{Direction, Flavour};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// Returns whether `abstract` or `local` precedes `interface` here.
    pub(super) fn at_flavoured_interface(&self) -> bool {
        matches!(self.kind(), TokenKind::Keyword("abstract" | "local"))
            && *self.kind_at(1) == TokenKind::Keyword("interface")
    }

    /// Parses an interface or its forward declaration.
    pub(super) fn interface(&mut self, mut head: Head) -> Parse<Item> {
        let flavour = match () {
            () if self.take_keyword("abstract") => Flavour::Abstract,
            () if self.take_keyword("local") => Flavour::Local,
            () => Flavour::Plain,
        };
        self.advance();
        let name = self.new_ident("the name of the interface")?;
        if self.take_punct(Punct::Semicolon) {
            return Ok(Item { head, kind: ItemKind::ForwardInterface { flavour, name } });
        }
        let bases = if self.take_punct(Punct::Colon) { self.names("a base interface")? } else { Vec::new() };
        if !self.at_punct(Punct::BraceOpen) {
            let wanted = if bases.is_empty() { "`:`, `{` or `;`" } else { "`,` or `{`" };
            return self.expected(wanted);
        }
        let items = self.scope(Place::Interface, &mut head, &name.text, "interface")?;
        Ok(Item { head, kind: ItemKind::Interface { flavour, name, bases, items } })
    }

    /// Parses `native Name`.
    pub(super) fn native(&mut self) -> Parse<ItemKind> {
        self.advance();
        Ok(ItemKind::Native(self.new_ident("the name of the native type")?))
    }

    /// Parses an operation or attribute.
    pub(super) fn export(&mut self) -> Parse<(ItemKind, &'static str)> {
        match self.kind() {
            TokenKind::Keyword("readonly" | "attribute") => {
                Ok((ItemKind::Attribute(self.attribute()?), "this attribute"))
            }
            _ => Ok((ItemKind::Operation(self.operation()?), "this operation")),
        }
    }

    pub(super) fn attribute(&mut self) -> Parse<Attribute> {
        let readonly = self.take_keyword("readonly");
        if !self.take_keyword("attribute") {
            return self.expected("`attribute`");
        }
        let ty = self.param_type("the type of the attribute")?;
        let mut names = vec![self.new_ident("the name of the attribute")?];
        while self.take_punct(Punct::Comma) {
            names.push(self.new_ident("the name of an attribute")?);
        }
        let (mut get_raises, mut set_raises) = (None, None);
        if self.at_keyword("raises") {
            let raises = self.raises()?;
            if !readonly {
                let message = "`raises` of an attribute that is not readonly does not say whether reading or writing raises";
                let error = Diagnostic::error("attribute-raises", raises.span, message);
                self.report(error.help("write `getraises (...)` and `setraises (...)`"));
            }
            get_raises = Some(raises);
        }
        if self.at_new_word("getraises") {
            let raises = self.raises()?;
            if readonly {
                let error =
                    Diagnostic::error("attribute-raises", raises.span, "`getraises` on a readonly attribute");
                self.report(error.help("write `raises (...)`"));
            }
            get_raises.get_or_insert(raises);
        }
        if self.at_new_word("setraises") {
            let raises = self.raises()?;
            if readonly {
                let message = "`setraises` on a readonly attribute, which is never set";
                self.report(Diagnostic::error("attribute-raises", raises.span, message));
            }
            set_raises = Some(raises);
        }
        let raises = get_raises.as_ref().or(set_raises.as_ref()).map(|raises: &Raises| raises.span);
        if let (Some(span), [_, second, ..]) = (raises, names.as_slice()) {
            let error = Diagnostic::error(
                "attribute-raises",
                span,
                "several attributes cannot share a raises clause",
            );
            self.report(
                error.and(second.span, "the second attribute").help("declare each attribute on its own"),
            );
        }
        Ok(Attribute { readonly, ty, names, get_raises, set_raises })
    }

    fn operation(&mut self) -> Parse<Operation> {
        let oneway = self.take_keyword("oneway").then(|| self.last_span());
        let span = self.span();
        let result = if self.take_keyword("void") {
            TypeSpec { kind: TypeKind::Void, span }
        } else {
            let what = if oneway.is_some() { "`void`" } else { "a definition, an operation or an attribute" };
            self.param_type(what)?
        };
        if self.at_punct(Punct::ParenOpen) {
            let error =
                Diagnostic::error("syntax", self.span(), "this operation has no name or no result type");
            self.report(error.help("write `void` before the name if it returns nothing"));
            return Err(Reported);
        }
        let name = self.new_ident("the name of the operation")?;
        self.expect_punct(Punct::ParenOpen)?;
        let mut params = Vec::new();
        if !self.at_punct(Punct::ParenClose) {
            loop {
                params.push(self.param()?);
                if !self.take_punct(Punct::Comma) {
                    break;
                }
            }
        }
        if !self.take_punct(Punct::ParenClose) {
            return self.expected("`,` or `)` after a parameter");
        }
        let raises = if self.at_keyword("raises") { Some(self.raises()?) } else { None };
        let context = if self.at_keyword("context") { self.context()? } else { Vec::new() };
        Ok(Operation { oneway, result, name, params, raises, context })
    }

    /// Parses `context ("name", "name.*")`.
    fn context(&mut self) -> Parse<Vec<StringArg>> {
        self.advance();
        self.expect_punct(Punct::ParenOpen)?;
        let mut patterns = vec![self.string_arg("the name of a property in quotes")?];
        while self.take_punct(Punct::Comma) {
            patterns.push(self.string_arg("the name of a property in quotes")?);
        }
        self.expect_punct(Punct::ParenClose)?;
        Ok(patterns)
    }

    pub(super) fn param(&mut self) -> Parse<Param> {
        let head = self.head()?;
        let direction_span = self.span();
        let direction = match self.kind() {
            TokenKind::Keyword("in") => Direction::In,
            TokenKind::Keyword("out") => Direction::Out,
            TokenKind::Keyword("inout") => Direction::InOut,
            _ => return self.expected("`in`, `out` or `inout`"),
        };
        self.advance();
        let ty = self.param_type("the type of the parameter")?;
        let name = self.new_ident("the name of the parameter")?;
        if self.at_punct(Punct::BracketOpen) {
            let error = Diagnostic::error(
                "anonymous-type",
                self.span(),
                "a parameter cannot be declared as an array",
            );
            self.report(error.help("name the array type with a typedef and use the name"));
            return Err(Reported);
        }
        Ok(Param { head, direction, direction_span, ty, name })
    }

    /// Parses the keyword, then names in parentheses.
    pub(super) fn raises(&mut self) -> Parse<Raises> {
        let span = self.span();
        self.advance();
        self.expect_punct(Punct::ParenOpen)?;
        let names = self.names("an exception")?;
        self.expect_punct(Punct::ParenClose)?;
        Ok(Raises { names, span })
    }

    /// Parses a type. Anonymous constructed types are reported, because IDL requires a name for them here.
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
        let error = Diagnostic::error(
            "anonymous-type",
            ty.span,
            format!("{anonymous} must have a name to be used here"),
        );
        let help = match ty.kind {
            TypeKind::Sequence { .. } | TypeKind::Map { .. } | TypeKind::Fixed(_) => {
                "declare it with a typedef before the interface and use the name"
            }
            _ => "declare it before and use the name",
        };
        self.report(error.help(help));
        Ok(TypeSpec { kind: TypeKind::Bad, span: ty.span })
    }
}
