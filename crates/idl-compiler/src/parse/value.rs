//! Value types: their bodies, forward declarations and boxes.

use super::input::Input;
use super::item::ScopeKind;
use super::parser::{Parse, Parser};
use crate::ast::{Factory, Ident, Item, ItemKind, Preamble, State, Value};
use crate::diagnostic::Diagnostic;
use crate::model::{Direction, ValueModifier, Visibility};
use crate::source::Span;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// Parses a value type, its forward declaration, or a value box, starting at the modifier or the keyword.
    /// The caller has checked that the keyword is `valuetype` or `eventtype`.
    pub(super) fn value(&mut self, mut preamble: Preamble) -> Parse<Item> {
        let modifier_span = self.input.span();
        let modifier = match self.input.kind() {
            TokenKind::Keyword("abstract") => ValueModifier::Abstract,
            TokenKind::Keyword("custom") => ValueModifier::Custom,
            _ => ValueModifier::Plain,
        };
        let modifier_span = (modifier != ValueModifier::Plain).then_some(modifier_span);
        if modifier_span.is_some() {
            self.input.advance();
        }
        let is_event = !self.input.at_keyword("valuetype");
        self.input.advance();
        if is_event {
            self.needed_component_names.extend(["EventBase", "EventConsumerBase"]);
        }
        let what = if is_event { "event type" } else { "value type" };
        let name = self.input.new_ident(&format!("the name of the {what}"))?;
        if self.input.take_punct(Punct::Semicolon) {
            let is_abstract = modifier == ValueModifier::Abstract;
            return Ok(Item { preamble, kind: ItemKind::ForwardValue { is_abstract, is_event, name } });
        }
        let inherits = matches!(self.input.kind(), TokenKind::Punct(Punct::Colon | Punct::BraceOpen))
            || self.input.at_keyword("supports");
        if !inherits && !is_event {
            return self.value_box(preamble, name, modifier_span);
        }
        let mut truncatable = None;
        let bases = if self.input.take_punct(Punct::Colon) {
            truncatable = self.input.take_keyword("truncatable").then(|| self.input.last_span());
            self.value_bases()?
        } else {
            Vec::new()
        };
        let supports = self.supports()?;
        if !self.input.at_punct(Punct::BraceOpen) {
            return self.input.expected(match (bases.is_empty(), supports.is_empty()) {
                (true, true) => "`:`, `supports`, `{` or `;`",
                (false, true) => "`,`, `supports` or `{`",
                (_, false) => "`,` or `{`",
            });
        }
        let items = self.scope(ScopeKind::Value, &mut preamble, &name.text, what)?;
        let value = Value { modifier, modifier_span, is_event, name, truncatable, bases, supports, items };
        Ok(Item { preamble, kind: ItemKind::Value(Box::new(value)) })
    }

    /// Parses the bases of a value type. `truncatable` is only allowed before the first.
    fn value_bases(&mut self) -> Parse<Vec<crate::ast::Name>> {
        let mut bases = vec![self.input.name("a base value type")?];
        while self.input.take_punct(Punct::Comma) {
            if self.input.take_keyword("truncatable") {
                let span = self.input.last_span();
                let message = "`truncatable` is allowed only before the first base";
                let error = Diagnostic::error("truncatable", span, message);
                let note = "a value can be truncated only to its base with state, which must be listed first";
                self.input.report(error.note(note));
            }
            bases.push(self.input.name("a base value type")?);
        }
        Ok(bases)
    }

    fn value_box(&mut self, preamble: Preamble, name: Ident, modifier: Option<Span>) -> Parse<Item> {
        let ty = self.type_spec("`:`, `supports`, `{`, `;` or the type in a value box")?;
        if let Some(span) = modifier {
            let message = format!("value box `{}` cannot be abstract or custom", name.text);
            self.input.report(Diagnostic::error("syntax", span, message).help("remove the word"));
        }
        if self.input.at_punct(Punct::BracketOpen) {
            let message = "a value box cannot be declared as an array";
            let error = Diagnostic::error("anonymous-type", self.input.span(), message);
            return self.input.fail(error.help("name the array type with a typedef, and use the name here"));
        }
        self.semicolon("this value box")?;
        Ok(Item { preamble, kind: ItemKind::ValueBox { name, ty } })
    }

    /// Parses a state member or factory; `None`, without consuming a token, for anything else.
    pub(super) fn value_element(&mut self) -> Parse<Option<(ItemKind, &'static str)>> {
        Ok(match self.input.kind() {
            TokenKind::Keyword("public" | "private") => {
                Some((ItemKind::State(self.state()?), "this state member"))
            }
            _ if at_factory_keyword(&self.input, "factory") => {
                Some((ItemKind::Factory(self.factory()?), "this factory"))
            }
            _ => None,
        })
    }

    fn state(&mut self) -> Parse<State> {
        let (visibility, word) = match self.input.at_keyword("public") {
            true => (Visibility::Public, "public"),
            false => (Visibility::Private, "private"),
        };
        let start = self.input.span();
        self.input.advance();
        let is_void = self.input.at_keyword("void");
        let ty = if is_void { None } else { Some(self.type_spec("the type of the state member")?) };
        let is_operation = *self.input.kind_at(1) == TokenKind::Punct(Punct::ParenOpen);
        match ty {
            Some(ty) if !is_operation => Ok(State { visibility, ty, declarators: self.declarators()? }),
            _ => {
                let error = Diagnostic::error("syntax", start, format!("an operation cannot be `{word}`"));
                let error = error.note("only state members have a visibility; all operations are public");
                self.input.fail(error.help("remove the word"))
            }
        }
    }

    /// Parses a factory or finder, starting at its keyword.
    pub(super) fn factory(&mut self) -> Parse<Factory> {
        self.input.advance();
        let is_finder = matches!(self.input.last_kind(), TokenKind::Ident { text, .. } if text == "finder");
        let word = if is_finder { "finder" } else { "factory" };
        let name = self.input.new_ident(&format!("the name of the {word}"))?;
        let params = self.params()?;
        for param in params.iter().filter(|param| param.direction != Direction::In) {
            let message = format!("parameter `{}` of a {word} must be `in`", param.name.text);
            let error = Diagnostic::error("syntax", param.direction_span, message);
            let found = if is_finder { "what it finds" } else { "the value that it creates" };
            self.input.report(error.note(format!("a {word} returns only {found}")));
        }
        let raises = if self.input.at_keyword("raises") { Some(self.raises()?) } else { None };
        Ok(Factory { name, params, raises })
    }
}

/// Returns whether a value type starts here: `valuetype`, or `abstract` or `custom` before it.
pub(super) fn at_value(input: &Input<'_>) -> bool {
    input.at_keyword("valuetype")
        || matches!(input.kind(), TokenKind::Keyword("abstract" | "custom"))
            && matches!(input.kind_at(1), TokenKind::Keyword("valuetype"))
}

/// Returns whether a factory or finder starts here, and not the name of a type (`factory::T`).
pub(super) fn at_factory_keyword(input: &Input<'_>, word: &str) -> bool {
    matches!(input.kind(), TokenKind::Ident { text, escaped: false } if text == word)
        && *input.kind_at(1) != TokenKind::Punct(Punct::Scope)
}
