//! `import` of what is not declared: the file that has it by its name is read before.
//!
//! This is where names are spelled out but not bound, so what is declared is known by the words before names: enough to tell
//! whether a file has to be looked for.

use std::collections::HashMap;

use super::Output;
use crate::preprocess::{Imported, Preprocessor};
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

/// An import names no more parts.
const MAX_PARTS: usize = 64;

/// Words after which the name of a scope stands.
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

/// What the tokens so far declare, and imports whose files are being read.
#[derive(Default)]
pub(super) struct Imports {
    /// The numbers of scopes, by that of the scope around (0 is the file) and the name in lower case.
    declared: HashMap<(u32, String), u32>,
    /// Of each `{` that is open, the scope around it.
    open: Vec<u32>,
    /// The scope that is open.
    scope: u32,
    /// The scope that the next `{` opens.
    next: Option<u32>,
    /// There was a word `import` since the last `;` or brace.
    importing: bool,
    /// Statements whose files are being read, with how many files were open before.
    waiting: Vec<(usize, Vec<Token>)>,
}

impl Imports {
    /// Puts back the statements whose files have ended: so many are open.
    pub(super) fn give_back(&mut self, depth: usize, output: &mut Output<'_>) {
        while let Some((_, tokens)) = self.waiting.pop_if(|(outer, _)| depth <= *outer) {
            output.tokens.extend(tokens);
        }
    }

    /// Looks at the token that was added last.
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

    /// Whether the scope of this name at file level is declared.
    fn is_declared(&self, parts: &[&str]) -> bool {
        let inside =
            |scope: u32, part: &&str| self.declared.get(&(scope, part.to_ascii_lowercase())).copied();
        parts.iter().try_fold(0, inside).is_some()
    }

    /// The end of what may be an `import`: opens the file that it needs, and keeps the statement until that is read.
    fn import(&mut self, preprocessor: &mut Preprocessor<'_>, output: &mut Output<'_>) {
        let Some((start, files)) = self.wanted(&output.tokens) else { return };
        let span = output.tokens.get(start + 1).map_or(Span::START, |token| token.span);
        let depth = preprocessor.depth();
        match preprocessor.import(&files, span) {
            Imported::Opened => self.waiting.push((depth, output.tokens.split_off(start))),
            // Files that import each other: what this one declares comes later.
            Imported::Circle => output.tokens.truncate(start),
            Imported::Nothing => {}
        }
    }

    /// Where the statement begins, and the files that may have what it names, unless that is declared.
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

/// The last token is the name of a scope.
fn names_scope(tokens: &[Token]) -> bool {
    match tokens {
        [.., Token { kind: TokenKind::Keyword(word), .. }, _] => SCOPES.contains(word),
        [.., Token { kind: TokenKind::Ident { text, escaped: false }, .. }, _] => {
            SCOPES.contains(&text.as_str())
        }
        _ => false,
    }
}
