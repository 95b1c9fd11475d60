//! What the compiler has to say: one message each, with what is wrong, where, and how to get on.
//!
//! Rendering for people is left to `annotate-snippets`: it is the renderer rustc itself uses, kept by the same team,
//! licensed as this crate is, with nothing below it but terminal styling.

use std::rc::Rc;

use crate::source::{Sources, Span};

mod kinds;
mod render;
mod to_rust;

pub use kinds::{Kind, Stage};
pub use render::printable;

/// How bad a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing can be generated.
    Error,
    /// Legal, but likely not meant or not portable.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The [`Kind`] of finding, in kebab case, for machines (`not-found`, `redefinition`).
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// Where; the first is the place itself, the others what it has to do with (an earlier definition).
    pub labels: Vec<Label>,
    /// Facts that explain the message.
    pub notes: Vec<String>,
    /// Ways out.
    pub helps: Vec<String>,
}

/// A marked place of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What to say about it, possibly nothing.
    pub text: String,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        debug_assert!(Kind::of(code).is_some(), "`{code}` is not listed");
        let labels = vec![Label { span, text: String::new() }];
        let (notes, helps) = (Vec::new(), Vec::new());
        Diagnostic { severity: Severity::Error, code, message: message.into(), labels, notes, helps }
    }

    /// An error that is nowhere in a text.
    pub(crate) fn without_place(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { labels: Vec::new(), ..Diagnostic::error(code, Span::START, message) }
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Says something at the place itself.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.text = text.into();
        }
        self
    }

    /// Adds another place.
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds a way out.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.helps.push(text.into());
        self
    }

    /// The place itself.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// All findings of one compilation, in the order of their places, with the texts they point into.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    sources: Rc<Sources>,
}

/// Errors beyond this number are counted, not kept, and so are warnings: a broken megabyte must not give a megabyte of
/// messages, and many warnings hide no error.
const MAX_KEPT: usize = 200;

impl Diagnostics {
    /// Puts the findings in order of their places.
    pub(crate) fn new(mut items: Vec<Diagnostic>, sources: Rc<Sources>) -> Self {
        items.sort_by_key(Diagnostic::span);
        Diagnostics { items, sources }
    }

    /// The findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// The errors alone.
    pub fn without_warnings(mut self) -> Self {
        self.items.retain(|item| item.severity == Severity::Error);
        self
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The texts the spans point into.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }
}

impl std::fmt::Display for Diagnostics {
    /// All findings with excerpts of the source, without colour.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Collects findings while the compiler runs. It can only be ended by [`Collector::finish`], which says whether there
/// was an error, so that none can be forgotten.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    items: Vec<Diagnostic>,
    errors: usize,
    /// How many of the items are errors.
    kept_errors: usize,
    /// Errors beyond those that are kept.
    dropped_errors: usize,
}

impl Collector {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let is_error = diagnostic.severity == Severity::Error;
        self.errors += usize::from(is_error);
        let kept = if is_error { self.kept_errors } else { self.items.len() - self.kept_errors };
        if self.items.contains(&diagnostic) {
            return;
        }
        if kept < MAX_KEPT {
            self.items.push(diagnostic);
            self.kept_errors += usize::from(is_error);
        } else {
            self.dropped_errors += usize::from(is_error);
        }
    }

    /// Adds a fact to the first error of a kind.
    pub(crate) fn note(&mut self, code: &str, text: String) {
        if let Some(error) = self.items.iter_mut().find(|item| item.code == code) {
            error.notes.push(text);
        }
    }

    /// Takes over what another one has.
    pub(crate) fn absorb(&mut self, other: Collector) {
        self.errors += other.errors.saturating_sub(other.kept_errors);
        self.dropped_errors += other.dropped_errors;
        other.items.into_iter().for_each(|item| self.push(item));
    }

    /// No further error will be kept, so none is worth much work.
    pub(crate) fn is_full(&self) -> bool {
        self.kept_errors >= MAX_KEPT
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// `Ok` holds warnings only, `Err` at least one error. Where more errors were found than are kept, the last item says
    /// how many.
    pub(crate) fn finish(self, sources: Rc<Sources>) -> Result<Diagnostics, Diagnostics> {
        let mut all = Diagnostics::new(self.items, sources);
        if self.errors == 0 {
            return Ok(all);
        }
        if self.dropped_errors > 0 {
            let message = format!("and {} errors more, which are not shown", self.dropped_errors);
            all.items.push(Diagnostic::without_place("more-errors", message));
        }
        Err(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_warnings_hide_no_error() {
        let mut out = Collector::default();
        for n in 0..3 * MAX_KEPT {
            out.push(Diagnostic::warning("not-found", Span::START, n.to_string()));
        }
        for n in 0..2 * MAX_KEPT {
            out.push(Diagnostic::error("not-found", Span::START, n.to_string()));
        }
        let mut all = Collector::default();
        all.absorb(out);
        assert_eq!(all.errors(), 2 * MAX_KEPT);
        let found = all.finish(Rc::default()).unwrap_err();
        let errors = found.iter().filter(|item| item.severity == Severity::Error).count();
        // The last says what is missing.
        assert_eq!((errors, found.len()), (MAX_KEPT + 1, 2 * MAX_KEPT + 1));
        let last = found.iter().last().map(|last| last.message.as_str());
        assert_eq!(last, Some("and 200 errors more, which are not shown"));
    }
}
