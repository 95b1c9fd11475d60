//! `import` of undeclared names: the file whose name matches is read first.
//!
//! Names are not bound at this stage. Declarations are recognized by the keyword before a name, which is
//! enough to decide whether a file has to be searched.

use std::collections::HashMap;

use super::Output;
use crate::preprocess::{Imported, Preprocessor};
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

/// Maximum number of parts of an imported name.
const MAX_PARTS: usize = 64;

/// Keywords that are followed by the name of a scope.
const SCOPES: &[&str] = &[
    "module",
    "interface",
    "valuetype",
    "struct",
    "union",
    "exception",
    "eventtype",
    "component",
    "home",
    "enum",
];

/// The scopes declared so far, and the imports whose files are being read.
#[derive(Default)]
pub(super) struct Imports {
    /// The numbers of scopes, by that of the enclosing scope (0 is the file) and the name in lower case.
    declared: HashMap<(u32, String), u32>,
    /// For each open `{`, the enclosing scope.
    open: Vec<u32>,
    /// The current scope.
    scope: u32,
    /// The scope that the next `{` opens.
    next: Option<u32>,
    /// The keyword `import` occurred since the last `;` or brace.
    importing: bool,
    /// Statements whose files are being read, with the number of files that were open before.
    waiting: Vec<(usize, Vec<Token>)>,
}

impl Imports {
    /// Puts back the statements whose files have ended. `depth` is the number of open files.
    pub(super) fn give_back(&mut self, depth: usize, output: &mut Output<'_>) {
        while let Some((_, tokens)) = self.waiting.pop_if(|(outer, _)| depth <= *outer) {
            output.tokens.extend(tokens);
        }
    }

    /// Processes the token that was added last.
    pub(super) fn token(&mut self, preprocessor: &mut Preprocessor<'_>, output: &mut Output<'_>) {
        let [.., last] = output.tokens.as_slice() else { return };
        match &last.kind {
            TokenKind::Ident { text, escaped: false } if text == "import" => self.importing = true,
            TokenKind::Ident { text, .. } if names_scope(&output.tokens) => {
                let number = self.declared.len() as u32 + 1;
                let name = (self.scope, text.to_ascii_lowercase());
                self.next = Some(*self.declared.entry(name).or_insert(number));
            }
            TokenKind::Punct(Punct::BraceOpen) => {
                self.open.push(self.scope);
                self.scope = self.next.take().unwrap_or(self.scope);
                self.importing = false;
            }
            TokenKind::Punct(Punct::BraceClose) => {
                self.scope = self.open.pop().unwrap_or_default();
                self.importing = false;
            }
            TokenKind::Punct(Punct::Semicolon) => {
                self.next = None;
                if std::mem::take(&mut self.importing) {
                    self.import(preprocessor, output);
                }
            }
            _ => {}
        }
    }

    /// Returns whether the scope of this name at file level is declared.
    fn is_declared(&self, parts: &[&str]) -> bool {
        let inside =
            |scope: u32, part: &&str| self.declared.get(&(scope, part.to_ascii_lowercase())).copied();
        parts.iter().try_fold(0, inside).is_some()
    }

    /// Handles the end of a possible `import` statement: opens the file that it needs, and keeps the
    /// statement until the file has been read.
    fn import(&mut self, preprocessor: &mut Preprocessor<'_>, output: &mut Output<'_>) {
        let Some((start, files)) = self.wanted(&output.tokens) else { return };
        let span = output.tokens.get(start + 1).map_or(Span::START, |token| token.span);
        let depth = preprocessor.depth();
        match preprocessor.import(&files, span) {
            Imported::Opened => self.waiting.push((depth, output.tokens.split_off(start))),
            // For files that import each other, the declarations of this file follow later.
            Imported::Circle => output.tokens.truncate(start),
            Imported::Nothing => {}
        }
    }

    /// Returns the start of the statement and the files that may declare the imported name; `None` if it is
    /// declared.
    fn wanted(&self, tokens: &[Token]) -> Option<(usize, Vec<String>)> {
        let is_import =
            |token: &Token| matches!(&token.kind, TokenKind::Ident { text, .. } if text == "import");
        let earliest = tokens.len().saturating_sub(2 * MAX_PARTS + 2);
        let start = earliest + tokens.get(earliest..)?.iter().rposition(is_import)?;
        let begins = start.checked_sub(1).and_then(|before| tokens.get(before)).is_none_or(|before| {
            use Punct::{BraceClose, BraceOpen, Semicolon};
            matches!(before.kind, TokenKind::Punct(Semicolon | BraceOpen | BraceClose) | TokenKind::PragmaEnd)
        });
        let words = tokens.get(start + 1..tokens.len().saturating_sub(1)).filter(|_| begins)?;
        if let [Token { kind: TokenKind::Text { text, .. }, .. }] = words {
            return (!text.contains(':')).then(|| (start, vec![text.clone()]));
        }
        let mut parts = Vec::new();
        for word in words {
            match &word.kind {
                TokenKind::Ident { text, .. } => parts.push(text.as_str()),
                TokenKind::Punct(Punct::Scope) => {}
                _ => return None,
            }
        }
        let file = match (self.is_declared(&parts), parts.as_slice()) {
            (true, _) | (false, []) => return None,
            (false, [first, ..]) if !self.is_declared(&[first]) => first,
            (false, [.., last]) => last,
        };
        Some((start, vec![format!("{file}.idl"), format!("{}.idl", file.to_ascii_lowercase())]))
    }
}

/// Returns whether the last token is the name of a scope.
fn names_scope(tokens: &[Token]) -> bool {
    match tokens {
        [.., Token { kind: TokenKind::Keyword(word), .. }, _] => SCOPES.contains(word),
        [.., Token { kind: TokenKind::Ident { text, escaped: false }, .. }, _] => {
            SCOPES.contains(&text.as_str())
        }
        _ => false,
    }
}
