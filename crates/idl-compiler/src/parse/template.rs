//! Template modules, their instances, and aliases of instances inside other template modules. The tokens
//! after `<` distinguish a declaration from an instance: parameters start with a kind, such as `typename`.

use std::rc::Rc;

use super::input::Input;
use super::item::ScopeKind;
use super::parser::{Parse, Parser};
use super::types;
use crate::ast::{
    Expr, ExprKind, Instance, Item, ItemKind, Name, Preamble, Template, TemplateArg, TemplateParam,
    TemplateParamKind,
};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind};

/// The kinds of parameters, for messages.
const KINDS: &str = "`typename`, `interface`, `valuetype`, `eventtype`, `struct`, `union`, `exception`, `enum`, `sequence` or `const`";

impl Parser<'_> {
    /// Parses a template module or an instance of one, starting at the name after `module`.
    pub(super) fn template(&mut self, preamble: Preamble) -> Parse<Item> {
        let start = self.input.span();
        let has_arguments = *self.input.kind_at(1) == TokenKind::Punct(Punct::Less);
        if has_arguments && at_formal(&self.input, 2) {
            return self.template_module(preamble);
        }
        let template = self.input.name("the name of a template module")?;
        let open = self.input.expect_punct(Punct::Less)?;
        if at_formal(&self.input, 0) {
            let message = format!("`{}` cannot be the name of a new template module", template.text());
            let error = Diagnostic::error("syntax", start, message);
            return self.input.fail(error.help("declare it inside that module, by a name without `::`"));
        }
        let args = self.inside_angles(|parser| parser.list(Self::actual))?;
        self.input.close_angle(open, "`,` or `>`")?;
        if self.input.at_punct(Punct::BraceOpen) {
            let message = "the parameters of a template module must have kinds";
            let error = Diagnostic::error("syntax", open, message);
            let help = "write the kind before each name, such as `typename T` or `const long N`";
            return self.input.fail(error.help(help));
        }
        let name = self.input.new_ident("the name of the instance")?;
        self.semicolon("this instance of a template module")?;
        let instance = Instance { template, args, name, is_alias: false };
        Ok(Item { preamble, kind: ItemKind::Instance(Box::new(instance)) })
    }

    fn template_module(&mut self, mut preamble: Preamble) -> Parse<Item> {
        let name = self.input.new_ident("the name of the template module")?;
        let open = self.input.expect_punct(Punct::Less)?;
        let params = self.inside_angles(|parser| parser.list(Self::formal))?;
        self.input.close_angle(open, "`,` or `>`")?;
        let (error_count, start, deepest) = (self.input.findings.error_count(), self.input.at, self.deepest);
        self.deepest = self.depth;
        self.template_depth += 1;
        let items = self.scope(ScopeKind::Module, &mut preamble, &name.text, "template module");
        self.template_depth -= 1;
        let height = self.deepest - self.depth;
        self.deepest = self.deepest.max(deepest);
        let items = items?;
        if items.is_empty() && self.input.findings.error_count() == error_count {
            let message = format!("template module `{}` contains no definition", name.text);
            self.input.report(Diagnostic::error("empty", name.span, message));
        }
        let token_count = self.input.at - start;
        let template = Template { name, params, items, token_count, height };
        Ok(Item { preamble, kind: ItemKind::Template(Rc::new(template)) })
    }

    fn formal(&mut self) -> Parse<TemplateParam> {
        let start = self.input.span();
        let kind = match self.input.kind() {
            TokenKind::Keyword("interface") => TemplateParamKind::Interface,
            TokenKind::Keyword("valuetype") => TemplateParamKind::Value,
            TokenKind::Keyword("struct") => TemplateParamKind::Struct,
            TokenKind::Keyword("union") => TemplateParamKind::Union,
            TokenKind::Keyword("exception") => TemplateParamKind::Exception,
            TokenKind::Keyword("enum") => TemplateParamKind::Enum,
            TokenKind::Ident { text, escaped: false } if text == "typename" => TemplateParamKind::Type,
            TokenKind::Ident { text, escaped: false } if text == "eventtype" => TemplateParamKind::Event,
            TokenKind::Keyword("sequence") if *self.input.kind_at(1) != TokenKind::Punct(Punct::Less) => {
                TemplateParamKind::AnySequence
            }
            TokenKind::Keyword("sequence") => {
                let ty = self.simple_type("a sequence")?;
                let name = self.input.new_ident("the name of the parameter")?;
                return Ok(TemplateParam {
                    kind: TemplateParamKind::Sequence(ty),
                    span: start.to(name.span),
                    name,
                });
            }
            TokenKind::Keyword("const") => {
                self.input.advance();
                let ty = self.simple_type("the type of the constant")?;
                let name = self.input.new_ident("the name of the parameter")?;
                return Ok(TemplateParam {
                    kind: TemplateParamKind::Const(ty),
                    span: start.to(name.span),
                    name,
                });
            }
            _ => return self.input.expected(KINDS),
        };
        self.input.advance();
        let name = self.input.new_ident("the name of the parameter")?;
        Ok(TemplateParam { kind, span: start.to(name.span), name })
    }

    /// Parses an argument, which is a type or a value. A name may be either, and is parsed as a value.
    fn actual(&mut self) -> Parse<TemplateArg> {
        match self.input.kind() {
            TokenKind::Keyword("TRUE" | "FALSE") => {}
            TokenKind::Keyword(_) => return self.simple_type("a type or a value").map(TemplateArg::Type),
            TokenKind::Ident { .. } if types::at_idl4_type(&self.input) => {
                return self.simple_type("a type or a value").map(TemplateArg::Type);
            }
            _ => {}
        }
        self.expr("a type or a value").map(TemplateArg::Expr)
    }

    pub(super) fn alias(&mut self, preamble: Preamble) -> Parse<Item> {
        let span = self.input.span();
        self.input.advance();
        let template = self.input.name("the name of a template module")?;
        let open = self.input.expect_punct(Punct::Less)?;
        let args = self.list(|parser| parameter_name(&mut parser.input))?;
        self.input.close_angle(open, "`,` or `>`")?;
        let name = self.input.new_ident("the name of the instance")?;
        self.semicolon("this alias")?;
        if self.template_depth == 0 {
            let error = Diagnostic::error("syntax", span, "`alias` is allowed only in a template module");
            self.input.report(error.help(format!("write `module {}<...> {};`", template.text(), name.text)));
        }
        let instance = Instance { template, args, name, is_alias: true };
        Ok(Item { preamble, kind: ItemKind::Instance(Box::new(instance)) })
    }
}

/// Returns whether a template module is declared or instantiated here, after the keyword `module`.
pub(super) fn at_template(input: &Input<'_>) -> bool {
    match input.kind() {
        TokenKind::Punct(Punct::Scope) => true,
        TokenKind::Ident { .. } => matches!(input.kind_at(1), TokenKind::Punct(Punct::Less | Punct::Scope)),
        _ => false,
    }
}

/// Returns whether the token at the distance `ahead` starts a formal parameter of a template module.
fn at_formal(input: &Input<'_>, ahead: usize) -> bool {
    let is_name = |ahead| matches!(input.kind_at(ahead), TokenKind::Ident { .. });
    match input.kind_at(ahead) {
        TokenKind::Keyword(
            "interface" | "valuetype" | "struct" | "union" | "exception" | "enum" | "const",
        ) => true,
        TokenKind::Keyword("sequence") if is_name(ahead + 1) => true,
        TokenKind::Keyword("sequence") => after_angle(input, ahead + 1).is_some_and(is_name),
        TokenKind::Ident { text, escaped: false } => {
            matches!(text.as_str(), "typename" | "eventtype") && is_name(ahead + 1)
        }
        _ => false,
    }
}

/// Returns the distance of the token after the `>` that closes the `<` at distance `from`.
fn after_angle(input: &Input<'_>, from: usize) -> Option<usize> {
    let (mut open, mut parens, mut at) = (0usize, 0usize, from);
    loop {
        match input.kind_at(at) {
            TokenKind::Punct(Punct::ParenOpen) => parens += 1,
            TokenKind::Punct(Punct::ParenClose) => parens = parens.checked_sub(1)?,
            TokenKind::Punct(Punct::Less) if parens == 0 => open += 1,
            TokenKind::Punct(Punct::Greater) if parens == 0 => open = open.checked_sub(1)?,
            TokenKind::Punct(Punct::Semicolon | Punct::BraceOpen | Punct::BraceClose) | TokenKind::End => {
                return None;
            }
            _ => {}
        }
        at += 1;
        if open == 0 {
            return Some(at);
        }
    }
}

pub(super) fn at_alias(input: &Input<'_>) -> bool {
    input.at_contextual_keyword("alias")
        && matches!(input.kind_at(1), TokenKind::Ident { .. } | TokenKind::Punct(Punct::Scope))
}

fn parameter_name(input: &mut Input<'_>) -> Parse<TemplateArg> {
    let ident = input.ident("the name of a parameter")?;
    let span = ident.span;
    let name = Name { absolute: false, parts: vec![ident], span };
    Ok(TemplateArg::Expr(Expr { kind: ExprKind::Name(name), span }))
}
