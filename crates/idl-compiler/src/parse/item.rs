//! Definitions in a file, a module, an interface or a value type, and the annotations before them.

use super::input::{DEFINITION_KEYWORDS, Input};
use super::parser::{Parse, Parser, Reported};
use super::{ccm, interface, template, value};
use crate::ast::{Annotation, Item, ItemKind, Preamble, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::model::Docs;
use crate::suggest::closest;
use crate::token::{Punct, TokenKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    File,
    Module,
    Interface,
    Value,
    Component,
    /// A port type or connector.
    PortType,
    Home,
}

impl Parser<'_> {
    /// Parses all definitions up to the end of the text or the `}` of this scope, which is not consumed.
    /// `//!` comments between them are added to the documentation of the scope.
    pub(super) fn items(&mut self, place: ScopeKind, docs: &mut Docs) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            docs.lines.extend(self.input.inner_docs());
            let pragmas = self.pragmas();
            items.extend(
                pragmas.map(|pragma| Item { preamble: Preamble::default(), kind: ItemKind::Pragma(pragma) }),
            );
            match self.input.kind() {
                TokenKind::End => return items,
                TokenKind::Punct(Punct::BraceClose) if place != ScopeKind::File => return items,
                TokenKind::Punct(Punct::BraceClose) => {
                    let error = Diagnostic::error("syntax", self.input.span(), "this `}` closes nothing");
                    self.input.report(error);
                    self.input.advance();
                    self.input.take_punct(Punct::Semicolon);
                }
                TokenKind::Punct(Punct::Semicolon) => {
                    let message = "a `;` without a definition before it";
                    let error = Diagnostic::error("syntax", self.input.span(), message);
                    self.input.report(error.help("remove it"));
                    self.input.advance();
                }
                _ => {
                    let before = self.input.at;
                    match self.module_or_item(place) {
                        Ok(item) => items.push(item),
                        Err(Reported) => self.recover_from(before),
                    }
                }
            }
        }
    }

    /// Parses a definition. Modules, which nest, are not parsed in `item`, because its stack frame is large.
    pub(super) fn module_or_item(&mut self, place: ScopeKind) -> Parse<Item> {
        let preamble = self.preamble()?;
        match place {
            ScopeKind::File | ScopeKind::Module if self.input.at_keyword("module") => self.module(preamble),
            ScopeKind::File | ScopeKind::Module if template::at_alias(&self.input) => self.alias(preamble),
            _ => self.item(preamble, place),
        }
    }

    fn item(&mut self, preamble: Preamble, place: ScopeKind) -> Parse<Item> {
        if matches!(place, ScopeKind::Component | ScopeKind::PortType) {
            return self.port(preamble, place);
        }
        if let Some(item) = self.idl4_item() {
            let (kind, what) = item?;
            self.semicolon(what)?;
            return Ok(Item { preamble, kind });
        }
        let in_body = matches!(place, ScopeKind::Interface | ScopeKind::Value | ScopeKind::Home);
        if !in_body && let Some(word) = ccm::at_ccm(&self.input) {
            return self.ccm(preamble, word, place);
        }
        let (kind, what) = match *self.input.kind() {
            TokenKind::Keyword("interface") if !in_body => return self.interface(preamble),
            _ if !in_body && interface::at_flavoured_interface(&self.input) => {
                return self.interface(preamble);
            }
            _ if !in_body && value::at_value(&self.input) => return self.value(preamble),
            TokenKind::Keyword("module" | "interface" | "valuetype" | "abstract" | "custom" | "local")
                if in_body =>
            {
                let scope = match place {
                    ScopeKind::Value => "a value type",
                    ScopeKind::Home => "a home",
                    _ => "an interface",
                };
                let message = format!("{} is not allowed inside {scope}", self.input.kind().describe());
                let error = Diagnostic::error("syntax", self.input.span(), message);
                return self.input.fail(error);
            }
            TokenKind::Keyword("local") => {
                self.input.advance();
                return self.input.expected("`interface` after `local`");
            }
            TokenKind::Keyword("native") => (self.native()?, "this native type"),
            TokenKind::Keyword("typedef") => (self.typedef()?, "this typedef"),
            TokenKind::Keyword("const") => (self.constant()?, "this constant"),
            TokenKind::Keyword("exception") => (self.exception()?, "this exception"),
            TokenKind::Keyword("struct" | "union" | "enum") => (self.constructed()?, "this type"),
            TokenKind::Ident { .. } if self.input.at_contextual_keyword("typeid") => {
                (self.type_id()?, "this repository id")
            }
            TokenKind::Ident { .. } if self.input.at_contextual_keyword("typeprefix") => {
                (self.type_prefix()?, "this prefix")
            }
            _ if place == ScopeKind::Value => match self.value_element()? {
                Some(element) => element,
                None => self.export()?,
            },
            _ if place == ScopeKind::Home => match self.home_element()? {
                Some(element) => element,
                None => self.export()?,
            },
            _ if place == ScopeKind::Interface => self.export()?,
            _ => return self.no_definition(),
        };
        self.semicolon(what)?;
        Ok(Item { preamble, kind })
    }

    /// Reports that no definition starts with the current token, and suggests a keyword if it resembles one.
    fn no_definition<T>(&mut self) -> Parse<T> {
        if let TokenKind::Ident { text, escaped: false } = self.input.kind()
            && let Some(word) = closest(text, DEFINITION_KEYWORDS.iter().chain(ccm::KEYWORDS).copied())
        {
            let message = format!("expected a definition, found `{text}`");
            let error = Diagnostic::error("syntax", self.input.span(), message);
            let help = format!("did you mean `{word}`?");
            self.input.unexpected(error.help(help));
            return Err(Reported);
        }
        self.input.expected("a definition")
    }

    fn module(&mut self, mut preamble: Preamble) -> Parse<Item> {
        self.input.advance();
        if template::at_template(&self.input) {
            return self.template(preamble);
        }
        let name = self.input.new_ident("the name of the module")?;
        let error_count = self.input.findings.error_count();
        let items = self.scope(ScopeKind::Module, &mut preamble, &name.text, "module")?;
        if items.is_empty() && self.input.findings.error_count() == error_count {
            let message = format!("module `{}` contains no definition", name.text);
            self.input.report(Diagnostic::error("empty", name.span, message));
        }
        Ok(Item { preamble, kind: ItemKind::Module { name, items } })
    }

    /// Parses `{ ... };` with definitions.
    pub(super) fn scope(
        &mut self,
        place: ScopeKind,
        preamble: &mut Preamble,
        name: &str,
        what: &str,
    ) -> Parse<Vec<Item>> {
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let items = self.nested(|parser| Ok(parser.items(place, &mut preamble.docs)))?;
        self.input.close_brace(open)?;
        self.semicolon(&format!("the body of {what} `{name}`"))?;
        Ok(items)
    }

    fn typedef(&mut self) -> Parse<ItemKind> {
        self.input.advance();
        let ty = self.type_spec("a type")?;
        let declarators = self.declarators()?;
        Ok(ItemKind::Typedef { ty, declarators })
    }

    fn constant(&mut self) -> Parse<ItemKind> {
        self.input.advance();
        let ty = self.simple_type("the type of the constant")?;
        let name = self.input.new_ident("the name of the constant")?;
        self.input.expect_punct(Punct::Equal)?;
        let value = self.expr("the value of the constant")?;
        Ok(ItemKind::Const { ty, name, value })
    }

    fn exception(&mut self) -> Parse<ItemKind> {
        self.input.advance();
        let name = self.input.new_ident("the name of the exception")?;
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let members = self.members()?;
        self.input.close_brace(open)?;
        Ok(ItemKind::Exception { name, members })
    }

    /// Parses a `struct`, `union` or `enum` on its own, or its forward declaration.
    fn constructed(&mut self) -> Parse<ItemKind> {
        if matches!(self.input.kind_at(2), TokenKind::Punct(Punct::Semicolon))
            && !self.input.at_keyword("enum")
        {
            let is_struct = self.input.at_keyword("struct");
            self.input.advance();
            let name = self.input.new_ident("the name of the type")?;
            return Ok(if is_struct { ItemKind::ForwardStruct(name) } else { ItemKind::ForwardUnion(name) });
        }
        let ty = self.type_spec("a type")?;
        debug_assert!(!matches!(ty.kind, TypeKind::Name(_)), "starts with a keyword");
        if matches!(self.input.kind(), TokenKind::Ident { .. }) {
            let error =
                Diagnostic::error("syntax", self.input.span(), "a name cannot follow the body of a type");
            let error = error.help("to declare another name for the type, write `typedef` before it");
            return self.input.fail(error);
        }
        Ok(ItemKind::Type(ty))
    }

    fn type_id(&mut self) -> Parse<ItemKind> {
        self.input.advance();
        let name = self.input.name("the name of a definition")?;
        Ok(ItemKind::TypeId { name, id: self.input.string_arg("the repository id in quotes")? })
    }

    fn type_prefix(&mut self) -> Parse<ItemKind> {
        self.input.advance();
        let name = self.input.name("the name of a scope")?;
        Ok(ItemKind::TypePrefix { name, prefix: self.input.string_arg("the prefix in quotes")? })
    }

    pub(super) fn preamble(&mut self) -> Parse<Preamble> {
        let mut docs = self.input.docs();
        let mut annotations = Vec::new();
        while self.input.at_punct(Punct::At) && !declares_annotation(&self.input) {
            annotations.push(self.annotation()?);
            docs.lines.extend(self.input.docs().lines);
        }
        Ok(Preamble { docs, annotations })
    }

    /// Parses `@name`, `@name(value)` or `@name(a = 1, b = 2)`.
    fn annotation(&mut self) -> Parse<Annotation> {
        let start = self.input.span();
        self.input.advance();
        // Names of annotations can be keywords: `@default(5)`.
        let name = match *self.input.kind() {
            TokenKind::Keyword(word) => {
                self.input.advance();
                word.to_owned()
            }
            _ => self.input.annotation_name()?,
        };
        let span = start.to(self.input.last_span());
        let mut args = Vec::new();
        if self.input.take_punct(Punct::ParenOpen) && !self.input.take_punct(Punct::ParenClose) {
            args = self.list(|parser| {
                let named = matches!(parser.input.kind(), TokenKind::Ident { .. } | TokenKind::Keyword(_))
                    && *parser.input.kind_at(1) == TokenKind::Punct(Punct::Equal);
                let name = if named { Some(parser.input.arg_name()?) } else { None };
                Ok((name, parser.expr("the value of an annotation")?))
            })?;
            self.input.expect_punct(Punct::ParenClose)?;
        }
        Ok(Annotation { name, args, span })
    }
}

fn declares_annotation(input: &Input<'_>) -> bool {
    matches!(input.kind_at(1), TokenKind::Ident { text, .. } if text == "annotation")
        && matches!(input.kind_at(2), TokenKind::Ident { .. })
}
