//! `import` of undeclared names: the lexer first reads the file whose name matches.
//!
//! The lexer does not bind names. It recognizes declarations of scopes by the keyword before a name, which is
//! sufficient to decide whether a file must be read.

use std::collections::HashMap;

use super::Output;
use crate::preprocess::{Imported, Preprocessor};
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

/// The maximum number of parts of an imported name. No file is read for longer names.
const MAX_PARTS: usize = 64;

/// Keywords that are followed by the name of a scope.
const SCOPE_KEYWORDS: &[&str] = &[
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

/// The scopes declared so far, and the `import` statements whose files are being read.
#[derive(Default)]
pub(super) struct Imports {
    /// The number of each scope, by that of the enclosing scope (0 for the file) and the name in lower case.
    scope_numbers: HashMap<(u32, String), u32>,
    /// For each open `{`, the number of the enclosing scope.
    outer_scopes: Vec<u32>,
    scope: u32,
    /// The number of the scope that the next `{` opens.
    next_scope: Option<u32>,
    /// True if the keyword `import` occurred since the last `;` or brace.
    in_import: bool,
    /// `import` statements whose files are being read, each with the number of files that were open before.
    suspended_statements: Vec<(usize, Vec<Token>)>,
}

impl Imports {
    /// Outputs the `import` statements whose files have been read.
    pub(super) fn resume_statements(&mut self, open_files: usize, output: &mut Output<'_>) {
        while let Some((_, tokens)) = self.suspended_statements.pop_if(|(outer, _)| open_files <= *outer) {
            output.tokens.extend(tokens);
        }
    }

    /// Processes the last token of the output.
    pub(super) fn process_token(&mut self, preprocessor: &mut Preprocessor<'_>, output: &mut Output<'_>) {
        let [.., last] = output.tokens.as_slice() else { return };
        match &last.kind {
            TokenKind::Ident { text, escaped: false } if text == "import" => self.in_import = true,
            TokenKind::Ident { text, .. } if names_scope(&output.tokens) => {
                let number = self.scope_numbers.len() as u32 + 1;
                let name = (self.scope, text.to_ascii_lowercase());
                self.next_scope = Some(*self.scope_numbers.entry(name).or_insert(number));
            }
            TokenKind::Punct(Punct::BraceOpen) => {
                self.outer_scopes.push(self.scope);
                self.scope = self.next_scope.take().unwrap_or(self.scope);
                self.in_import = false;
            }
            TokenKind::Punct(Punct::BraceClose) => {
                self.scope = self.outer_scopes.pop().unwrap_or_default();
                self.in_import = false;
            }
            TokenKind::Punct(Punct::Semicolon) => {
                self.next_scope = None;
                if std::mem::take(&mut self.in_import) {
                    self.import(preprocessor, output);
                }
            }
            _ => {}
        }
    }

    /// Returns whether a scope with this name, relative to the file level, is declared.
    fn is_declared(&self, parts: &[&str]) -> bool {
        let inside =
            |scope: u32, part: &&str| self.scope_numbers.get(&(scope, part.to_ascii_lowercase())).copied();
        parts.iter().try_fold(0, inside).is_some()
    }

    /// Handles the end of an `import` statement, which is suspended until the needed file has been read.
    fn import(&mut self, preprocessor: &mut Preprocessor<'_>, output: &mut Output<'_>) {
        let Some((start, files)) = self.needed_files(&output.tokens) else { return };
        let span = output.tokens.get(start + 1).map_or(Span::START, |token| token.span);
        let open_files = preprocessor.open_file_count();
        match preprocessor.import(&files, span) {
            Imported::Opened => self.suspended_statements.push((open_files, output.tokens.split_off(start))),
            // The file is already being read, and imports this one. The statement is removed, because its
            // name may be declared only later.
            Imported::Cycle => output.tokens.truncate(start),
            Imported::NotOpened => {}
        }
    }

    /// Returns the index of the statement's first token, and the names of the files that may declare the
    /// imported name; `None` if the name is declared, or the tokens are no `import` statement.
    fn needed_files(&self, tokens: &[Token]) -> Option<(usize, Vec<String>)> {
        let is_import =
            |token: &Token| matches!(&token.kind, TokenKind::Ident { text, .. } if text == "import");
        let earliest = tokens.len().saturating_sub(2 * MAX_PARTS + 2);
        let start = earliest + tokens.get(earliest..)?.iter().rposition(is_import)?;
        let is_at_start = start.checked_sub(1).and_then(|before| tokens.get(before)).is_none_or(|before| {
            use Punct::{BraceClose, BraceOpen, Semicolon};
            matches!(before.kind, TokenKind::Punct(Semicolon | BraceOpen | BraceClose) | TokenKind::PragmaEnd)
        });
        let words = tokens.get(start + 1..tokens.len().saturating_sub(1)).filter(|_| is_at_start)?;
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
    let [.., before, _] = tokens else { return false };
    match &before.kind {
        TokenKind::Keyword(word) => SCOPE_KEYWORDS.contains(word),
        TokenKind::Ident { text, escaped: false } => SCOPE_KEYWORDS.contains(&text.as_str()),
        _ => false,
    }
}
