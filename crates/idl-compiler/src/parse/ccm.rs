//! The CORBA Component Model (CCM): event types, components, homes, port types, connectors and imports. Their
//! keywords are reserved only where such a definition can start.

use super::input::Input;
use super::item::ScopeKind;
use super::parser::{Parse, Parser};
use super::value;
use crate::ast::{
    Component, Home, Ident, Import, Item, ItemKind, Name, Port, PortKind, Preamble, TypeKind, TypeSpec,
};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind};

/// Keywords that start a definition in a file or module.
pub(super) const KEYWORDS: &[&str] = &["component", "home", "eventtype", "porttype", "connector", "import"];

const PORT_KEYWORDS: &[(&str, PortKind)] = &[
    ("provides", PortKind::Provides),
    ("uses", PortKind::Uses),
    ("emits", PortKind::Emits),
    ("publishes", PortKind::Publishes),
    ("consumes", PortKind::Consumes),
    ("port", PortKind::Port),
    ("mirrorport", PortKind::MirrorPort),
];

impl Parser<'_> {
    /// Parses a definition of the component model, starting at its keyword or the modifier before it.
    pub(super) fn ccm(&mut self, preamble: Preamble, word: &str, place: ScopeKind) -> Parse<Item> {
        match word {
            "eventtype" => self.value(preamble),
            "component" => self.component(preamble),
            "home" => self.home(preamble),
            "porttype" => self.port_type(preamble),
            "connector" => self.connector(preamble),
            _ => self.import(preamble, place),
        }
    }

    /// Parses `import ::M;` or `import "IDL:M:1.0";`.
    fn import(&mut self, preamble: Preamble, place: ScopeKind) -> Parse<Item> {
        let span = self.input.span();
        self.input.advance();
        let import = match self.input.kind() {
            TokenKind::Text { .. } => Import::Text(self.input.string_arg("a scope")?),
            _ => Import::Name(self.input.name("the name of a scope, or a repository id in quotes")?),
        };
        self.semicolon("this import")?;
        if place != ScopeKind::File {
            let error = Diagnostic::error("syntax", span, "`import` is not allowed inside a module");
            self.input.report(error.help("move it to the start of the file"));
        }
        Ok(Item { preamble, kind: ItemKind::Import(import) })
    }

    pub(super) fn base(&mut self, what: &str) -> Parse<Option<Name>> {
        if self.input.take_punct(Punct::Colon) { self.input.name(what).map(Some) } else { Ok(None) }
    }

    pub(super) fn supports(&mut self) -> Parse<Vec<Name>> {
        if self.input.take_keyword("supports") {
            self.input.names("a supported interface")
        } else {
            Ok(Vec::new())
        }
    }

    fn component(&mut self, mut preamble: Preamble) -> Parse<Item> {
        self.input.advance();
        let name = self.input.new_ident("the name of the component")?;
        self.needed_component_names.insert("CCMObject");
        if self.input.take_punct(Punct::Semicolon) {
            return Ok(Item { preamble, kind: ItemKind::ForwardComponent(name) });
        }
        let base = self.base("the base component")?;
        let supports = self.supports()?;
        if !self.input.at_punct(Punct::BraceOpen) {
            return self.input.expected(match (&base, supports.is_empty()) {
                (None, true) => "`:`, `supports`, `{` or `;`",
                (Some(_), true) => "`supports` or `{`",
                _ => "`,` or `{`",
            });
        }
        let items = self.scope(ScopeKind::Component, &mut preamble, &name.text, "component")?;
        Ok(Item { preamble, kind: ItemKind::Component(Component { name, base, supports, items }) })
    }

    fn connector(&mut self, mut preamble: Preamble) -> Parse<Item> {
        self.input.advance();
        let name = self.input.new_ident("the name of the connector")?;
        self.needed_component_names.insert("CCMObject");
        let base = self.base("the base connector")?;
        if !self.input.at_punct(Punct::BraceOpen) {
            return self.input.expected(if base.is_none() { "`:` or `{`" } else { "`{`" });
        }
        let items = self.scope(ScopeKind::PortType, &mut preamble, &name.text, "connector")?;
        Ok(Item { preamble, kind: ItemKind::Connector { name, base, items } })
    }

    fn port_type(&mut self, mut preamble: Preamble) -> Parse<Item> {
        self.input.advance();
        let name = self.input.new_ident("the name of the port type")?;
        if self.input.take_punct(Punct::Semicolon) {
            return Ok(Item { preamble, kind: ItemKind::ForwardPortType(name) });
        }
        if !self.input.at_punct(Punct::BraceOpen) {
            return self.input.expected("`{` or `;`");
        }
        let error_count = self.input.findings.error_count();
        let items = self.scope(ScopeKind::PortType, &mut preamble, &name.text, "port type")?;
        if items.is_empty() && self.input.findings.error_count() == error_count {
            let message = format!("port type `{}` contains no port", name.text);
            self.input.report(Diagnostic::error("empty", name.span, message));
        }
        Ok(Item { preamble, kind: ItemKind::PortType { name, items } })
    }

    fn home(&mut self, mut preamble: Preamble) -> Parse<Item> {
        self.input.advance();
        let name = self.input.new_ident("the name of the home")?;
        let base = self.base("the base home")?;
        let supports = self.supports()?;
        if !self.input.take_word("manages") {
            return self.input.expected(match (&base, supports.is_empty()) {
                (None, true) => "`:`, `supports` or `manages`",
                (Some(_), true) => "`supports` or `manages`",
                _ => "`,` or `manages`",
            });
        }
        let manages = self.input.name("the component that the home manages")?;
        let primary_key = match self.input.take_word("primarykey") {
            true => Some(self.input.name("the value type that is the primary key")?),
            false => None,
        };
        self.needed_component_names.extend(["CCMHome", "CreateFailure"]);
        match &primary_key {
            None => self.needed_component_names.extend(["KeylessCCMHome"]),
            Some(_) => self.needed_component_names.extend([
                "PrimaryKeyBase",
                "DuplicateKeyValue",
                "UnknownKeyValue",
                "InvalidKey",
                "FinderFailure",
                "RemoveFailure",
            ]),
        }
        if !self.input.at_punct(Punct::BraceOpen) {
            return self.input.expected(if primary_key.is_none() { "`primarykey` or `{`" } else { "`{`" });
        }
        let items = self.scope(ScopeKind::Home, &mut preamble, &name.text, "home")?;
        let home = Home { name, base, supports, manages, primary_key, items };
        Ok(Item { preamble, kind: ItemKind::Home(Box::new(home)) })
    }

    /// Parses a factory or finder of a home; `None`, without consuming a token, for anything else.
    pub(super) fn home_element(&mut self) -> Parse<Option<(ItemKind, &'static str)>> {
        if value::at_factory_keyword(&self.input, "finder") {
            self.needed_component_names.insert("FinderFailure");
            return Ok(Some((ItemKind::Finder(self.factory()?), "this finder")));
        }
        match value::at_factory_keyword(&self.input, "factory") {
            true => Ok(Some((ItemKind::Factory(self.factory()?), "this factory"))),
            false => Ok(None),
        }
    }

    pub(super) fn port(&mut self, preamble: Preamble, place: ScopeKind) -> Parse<Item> {
        if matches!(self.input.kind(), TokenKind::Keyword("readonly" | "attribute")) {
            let attribute = self.attribute()?;
            self.semicolon("this attribute")?;
            return Ok(Item { preamble, kind: ItemKind::Attribute(attribute) });
        }
        let found = match self.input.kind() {
            TokenKind::Ident { text, escaped: false } => PORT_KEYWORDS.iter().find(|(word, _)| word == text),
            _ => None,
        };
        let Some((word, mut kind)) = found.copied() else {
            return self.input.expected("a port or an attribute");
        };
        let is_event = matches!(kind, PortKind::Emits | PortKind::Publishes | PortKind::Consumes);
        if is_event && place == ScopeKind::PortType {
            let message = format!("`{word}` is not allowed in a port type or connector");
            let error = Diagnostic::error("syntax", self.input.span(), message);
            return self.input.fail(error.note("events are ports of components only; a port type or connector contains `provides`, `uses`, ports of other port types, and attributes"));
        }
        self.input.advance();
        // `uses multiple r;` uses an interface named `multiple`.
        if kind == PortKind::Uses
            && *self.input.kind_at(2) != TokenKind::Punct(Punct::Semicolon)
            && self.input.take_word("multiple")
        {
            kind = PortKind::UsesMultiple;
        }
        let span = self.input.span();
        let takes_interface = matches!(kind, PortKind::Provides | PortKind::Uses | PortKind::UsesMultiple);
        let ty = if takes_interface && self.input.take_keyword("Object") {
            TypeSpec { kind: TypeKind::Object, span }
        } else {
            let name = self.input.name(match takes_interface {
                true => "an interface",
                false if is_event => "an event type",
                false => "a port type",
            })?;
            TypeSpec { span: name.span, kind: TypeKind::Name(name) }
        };
        let name: Ident = self.input.new_ident("the name of the port")?;
        self.semicolon("this port")?;
        Ok(Item { preamble, kind: ItemKind::Port(Port { kind, ty, name }) })
    }
}

/// Returns the keyword of the definition of the component model that starts here, if one does. Texts may also
/// use the keywords as names, because in a file or module no other definition can start with a name.
pub(super) fn at_ccm(input: &Input<'_>) -> Option<&'static str> {
    let word_at = |ahead| match input.kind_at(ahead) {
        TokenKind::Ident { text, escaped: false } => KEYWORDS.iter().copied().find(|word| word == text),
        _ => None,
    };
    let is_name = |ahead| matches!(input.kind_at(ahead), TokenKind::Ident { .. } | TokenKind::Keyword(_));
    match (input.kind(), word_at(0)) {
        (TokenKind::Keyword("abstract" | "custom"), _) => word_at(1).filter(|word| *word == "eventtype"),
        (_, Some("import")) => Some("import"),
        (_, Some(word)) if is_name(1) => Some(word),
        _ => None,
    }
}
