//! Template modules: their declarations, their instances, and references to other template modules inside
//! one. The token after `<` distinguishes a declaration from an instance: a parameter starts with its kind.

use std::rc::Rc;

use super::item::Place;
use super::{Parse, Parser, Reported};
use crate::ast::{
    Actual, Expr, ExprKind, Formal, FormalKind, Head, Ident, Instance, Item, ItemKind, Name, Template,
};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

/// The kinds of parameters, for messages.
const KINDS: &str = "`typename`, `interface`, `valuetype`, `eventtype`, `struct`, `union`, `exception`, `enum`, `sequence` or `const`";

impl Parser<'_> {
    /// Returns whether a module with parameters, or an instance of one, starts at its name.
    pub(super) fn at_template(&self) -> bool {
        match self.kind() {
            TokenKind::Punct(Punct::Scope) => true,
            TokenKind::Ident { .. } => {
                matches!(self.kind_at(1), TokenKind::Punct(Punct::Less | Punct::Scope))
            }
            _ => false,
        }
    }

    /// Parses the module or instance, starting at the name.
    pub(super) fn template(&mut self, head: Head) -> Parse<Item> {
        let (start, declared) = (self.span(), matches!(self.kind_at(1), TokenKind::Punct(Punct::Less)));
        if declared && self.at_formal(2) {
            return self.template_module(head);
        }
        let template = self.name("the name of a template module")?;
        let open = self.expect_punct(Punct::Less)?;
        if self.at_formal(0) {
            let message = format!("`{}` is not the name of a new template module", template.text());
            let error = Diagnostic::error("syntax", start, message);
            self.report(error.help("declare it in its own module, by a name without `::`"));
            return Err(Reported);
        }
        let args = self.with_angle(true, Self::actuals)?;
        self.close_angle(open, false)?;
        if self.at_punct(Punct::BraceOpen) {
            let error =
                Diagnostic::error("syntax", open, "parameters of a template module without their kinds");
            self.report(
                error.help("write the kind before each name, such as `typename T` or `const long N`"),
            );
            return Err(Reported);
        }
        let name = self.new_ident("the name of the instance")?;
        self.semicolon("this instance of a template module")?;
        let instance = Instance { template, args, name, is_alias: false };
        Ok(Item { head, kind: ItemKind::Instance(Box::new(instance)) })
    }

    /// Parses `module M<typename T> { ... };`, starting at its name.
    fn template_module(&mut self, mut head: Head) -> Parse<Item> {
        let name = self.new_ident("the name of the template module")?;
        let open = self.expect_punct(Punct::Less)?;
        let params = self.with_angle(true, Self::formals)?;
        self.close_angle(open, false)?;
        let (errors, start, deepest) = (self.out.errors(), self.at, self.deepest);
        self.deepest = self.depth;
        self.templates += 1;
        let items = self.scope(Place::Module, &mut head, &name.text, "template module");
        self.templates -= 1;
        let height = self.deepest - self.depth;
        self.deepest = self.deepest.max(deepest);
        let items = items?;
        if items.is_empty() && self.out.errors() == errors {
            let message = format!("template module `{}` contains no definition", name.text);
            self.report(Diagnostic::error("empty", name.span, message));
        }
        let size = self.at - start;
        let template = Template { name, params, items, size, height };
        Ok(Item { head, kind: ItemKind::Template(Rc::new(template)) })
    }

    /// Returns whether the token at this distance starts a parameter of a template module.
    fn at_formal(&self, ahead: usize) -> bool {
        let named = |ahead| matches!(self.kind_at(ahead), TokenKind::Ident { .. });
        match self.kind_at(ahead) {
            TokenKind::Keyword(
                "interface" | "valuetype" | "struct" | "union" | "exception" | "enum" | "const",
            ) => true,
            TokenKind::Keyword("sequence") if named(ahead + 1) => true,
            TokenKind::Keyword("sequence") => self.after_angle(ahead + 1).is_some_and(named),
            TokenKind::Ident { text, escaped: false } => {
                matches!(text.as_str(), "typename" | "eventtype") && named(ahead + 1)
            }
            _ => false,
        }
    }

    /// Returns the distance of the token after the `>` that closes this `<`.
    fn after_angle(&self, from: usize) -> Option<usize> {
        let (mut open, mut parens, mut at) = (0usize, 0usize, from);
        loop {
            match self.kind_at(at) {
                TokenKind::Punct(Punct::ParenOpen) => parens += 1,
                TokenKind::Punct(Punct::ParenClose) => parens = parens.checked_sub(1)?,
                TokenKind::Punct(Punct::Less) if parens == 0 => open += 1,
                TokenKind::Punct(Punct::Greater) if parens == 0 => open = open.checked_sub(1)?,
                TokenKind::Punct(Punct::Semicolon | Punct::BraceOpen | Punct::BraceClose)
                | TokenKind::End => return None,
                _ => {}
            }
            at += 1;
            if open == 0 {
                return Some(at);
            }
        }
    }

    fn formals(&mut self) -> Parse<Vec<Formal>> {
        let mut params = vec![self.formal()?];
        while self.take_punct(Punct::Comma) {
            params.push(self.formal()?);
        }
        Ok(params)
    }

    fn formal(&mut self) -> Parse<Formal> {
        let start = self.span();
        let kind = match self.kind() {
            TokenKind::Keyword("interface") => FormalKind::Interface,
            TokenKind::Keyword("valuetype") => FormalKind::Value,
            TokenKind::Keyword("struct") => FormalKind::Struct,
            TokenKind::Keyword("union") => FormalKind::Union,
            TokenKind::Keyword("exception") => FormalKind::Exception,
            TokenKind::Keyword("enum") => FormalKind::Enum,
            TokenKind::Ident { text, escaped: false } if text == "typename" => FormalKind::Type,
            TokenKind::Ident { text, escaped: false } if text == "eventtype" => FormalKind::Event,
            TokenKind::Keyword("sequence") if *self.kind_at(1) != TokenKind::Punct(Punct::Less) => {
                FormalKind::AnySequence
            }
            TokenKind::Keyword("sequence") => {
                let ty = self.simple_type("a sequence")?;
                let name = self.new_ident("the name of the parameter")?;
                return Ok(Formal { kind: FormalKind::Sequence(ty), span: start.to(name.span), name });
            }
            TokenKind::Keyword("const") => {
                self.advance();
                let ty = self.simple_type("the type of the constant")?;
                let name = self.new_ident("the name of the parameter")?;
                return Ok(Formal { kind: FormalKind::Const(ty), span: start.to(name.span), name });
            }
            _ => return self.expected(KINDS),
        };
        self.advance();
        let name = self.new_ident("the name of the parameter")?;
        Ok(Formal { kind, span: start.to(name.span), name })
    }

    fn actuals(&mut self) -> Parse<Vec<Actual>> {
        let mut args = vec![self.actual()?];
        while self.take_punct(Punct::Comma) {
            args.push(self.actual()?);
        }
        Ok(args)
    }

    /// Parses an argument, a type or a value. A name alone can be either.
    fn actual(&mut self) -> Parse<Actual> {
        match self.kind() {
            TokenKind::Keyword("TRUE" | "FALSE") => {}
            TokenKind::Keyword(_) => return self.simple_type("a type or a value").map(Actual::Type),
            TokenKind::Ident { .. } if self.at_idl4_type() => {
                return self.simple_type("a type or a value").map(Actual::Type);
            }
            _ => {}
        }
        self.expr("a type or a value").map(Actual::Value)
    }

    /// Returns whether `alias M<T> N;` starts here.
    pub(super) fn at_alias(&self) -> bool {
        self.at_new_word("alias")
            && matches!(self.kind_at(1), TokenKind::Ident { .. } | TokenKind::Punct(Punct::Scope))
    }

    pub(super) fn alias(&mut self, head: Head) -> Parse<Item> {
        let span = self.span();
        self.advance();
        let template = self.name("the name of a template module")?;
        let open = self.expect_punct(Punct::Less)?;
        let mut args = vec![self.parameter_name()?];
        while self.take_punct(Punct::Comma) {
            args.push(self.parameter_name()?);
        }
        self.close_angle(open, false)?;
        let name = self.new_ident("the name of the instance")?;
        self.semicolon("this alias")?;
        if self.templates == 0 {
            let error = Diagnostic::error("syntax", span, "`alias` stands only in a template module");
            self.report(error.help(format!("write `module {}<...> {};`", template.text(), name.text)));
        }
        let instance = Instance { template, args, name, is_alias: true };
        Ok(Item { head, kind: ItemKind::Instance(Box::new(instance)) })
    }

    fn parameter_name(&mut self) -> Parse<Actual> {
        let ident: Ident = self.ident("the name of a parameter")?;
        let span: Span = ident.span;
        let name = Name { absolute: false, parts: vec![ident], span };
        Ok(Actual::Value(Expr { kind: ExprKind::Name(name), span }))
    }
}
