//! The parser: hand-written recursive descent, one function for each production.
//!
//! After an error the parser continues at the next `;` or `}`, and finds further errors in the same run. It
//! never backtracks, so that it parses each token once even in broken text.

use std::collections::BTreeSet;

use crate::ast::Item;
use crate::diagnostic::Collector;
use crate::model::Docs;
use crate::token::Token;

use input::Input;
use parser::Parser;

mod ccm;
mod expr;
mod idl4;
mod input;
mod interface;
mod item;
mod parser;
mod pragma;
mod template;
mod types;
mod value;

/// The declarations of a text, with names not yet bound.
pub(crate) struct Parsed {
    pub(crate) items: Vec<Item>,
    /// `//!` comments at file level.
    pub(crate) docs: Docs,
    /// Names of definitions in the module `Components` that the text's component constructs need.
    pub(crate) needed_component_names: BTreeSet<&'static str>,
    /// Names that follow `Components::` in the text.
    pub(crate) components_names: BTreeSet<String>,
    /// Whether the text declares something named `Components`, in any scope.
    pub(crate) declares_components: bool,
}

/// Parses the tokens. Errors go to the collector; the result contains the declarations that have no syntax
/// error.
///
/// A name that differs from a keyword only in case is an error with `strict_names`, and by default a warning.
pub(crate) fn parse(tokens: Vec<Token>, strict_names: bool, out: &mut Collector) -> Parsed {
    let (tokens, pragmas) = pragma::separate(tokens);
    let mut parser = Parser {
        input: Input::new(tokens, strict_names, out),
        pragmas,
        depth: 0,
        deepest: 0,
        template_depth: 0,
        in_angle: false,
        needed_component_names: BTreeSet::new(),
    };
    let mut docs = Docs::default();
    let items = parser.items(item::ScopeKind::File, &mut docs);
    let Parser { needed_component_names, input: Input { components_names, declared_names, .. }, .. } = parser;
    let declares_components = declared_names.contains("Components");
    Parsed { items, docs, needed_component_names, components_names, declares_components }
}
