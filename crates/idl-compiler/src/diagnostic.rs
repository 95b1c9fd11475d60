//! The compiler's messages. Each says what is wrong and where it is, and many say how to fix it.
//!
//! The crate `annotate-snippets` renders them in the format of rustc.

use std::rc::Rc;

use crate::source::{Sources, Span};

mod kinds;
mod render;
mod to_rust;

pub use kinds::{Kind, Stage};
pub use render::printable;

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// An error: no code can be generated.
    Error,
    /// A warning: the IDL is legal, but probably not intended or not portable.
    Warning,
}

/// An error or a warning about an IDL text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The code of the finding's [`Kind`], such as `not-found`, for programs.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// The locations. The first one is that of the finding itself. The others are related to it, such as an
    /// earlier definition. Empty if the finding has no location.
    pub labels: Vec<Label>,
    /// Facts that explain the message.
    pub notes: Vec<String>,
    /// Possible fixes.
    pub helps: Vec<String>,
}

/// A marked location of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub span: Span,
    /// The text that is shown at the location, possibly empty.
    pub text: String,
}

impl Diagnostic {
    /// Creates an error at a location.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        debug_assert!(Kind::of(code).is_some(), "`{code}` is not listed");
        let labels = vec![Label { span, text: String::new() }];
        let (notes, helps) = (Vec::new(), Vec::new());
        Diagnostic { severity: Severity::Error, code, message: message.into(), labels, notes, helps }
    }

    pub(crate) fn without_location(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { labels: Vec::new(), ..Diagnostic::error(code, Span::START, message) }
    }

    /// Creates a warning at a location.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Sets the text at the main location.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.text = text.into();
        }
        self
    }

    /// Adds another location.
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds a possible fix.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.helps.push(text.into());
        self
    }

    pub(crate) fn and_if(self, span: Option<Span>, text: impl Into<String>) -> Self {
        match span {
            Some(span) => self.and(span, text),
            None => self,
        }
    }

    pub(crate) fn help_if(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// Returns the main location.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// All findings of one compilation, ordered by location, with the texts that they refer to.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    sources: Rc<Sources>,
}

/// Maximum number of errors of one compilation, and also of warnings. Further errors are only counted, and
/// warnings dropped: a broken text of a megabyte must not produce a megabyte of messages. Many warnings must
/// not hide errors.
const MAX_PER_SEVERITY: usize = 200;

impl Diagnostics {
    /// Sorts the findings by location.
    pub(crate) fn new(mut items: Vec<Diagnostic>, sources: Rc<Sources>) -> Self {
        items.sort_by_key(Diagnostic::span);
        Diagnostics { items, sources }
    }

    /// Returns the findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// Removes all warnings.
    pub fn without_warnings(mut self) -> Self {
        self.items.retain(|item| item.severity == Severity::Error);
        self
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of findings.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the texts that the spans refer to.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }
}

impl std::fmt::Display for Diagnostics {
    /// Formats all findings with excerpts of the source, without colour.
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

/// Collects findings. Only [`Collector::finish`] yields them, so that no error can be missed.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    items: Vec<Diagnostic>,
    error_count: usize,
    /// Number of errors in `items`.
    collected_errors: usize,
    /// Number of errors beyond the limit, which are not in `items`.
    dropped_errors: usize,
}

impl Collector {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let is_error = diagnostic.severity == Severity::Error;
        self.error_count += usize::from(is_error);
        let collected =
            if is_error { self.collected_errors } else { self.items.len() - self.collected_errors };
        if self.items.contains(&diagnostic) {
            return;
        }
        if collected < MAX_PER_SEVERITY {
            self.items.push(diagnostic);
            self.collected_errors += usize::from(is_error);
        } else {
            self.dropped_errors += usize::from(is_error);
        }
    }

    /// Adds a note to the first finding with this code.
    pub(crate) fn note(&mut self, code: &str, text: String) {
        if let Some(finding) = self.items.iter_mut().find(|item| item.code == code) {
            finding.notes.push(text);
        }
    }

    pub(crate) fn absorb(&mut self, other: Collector) {
        self.error_count += other.error_count.saturating_sub(other.collected_errors);
        self.dropped_errors += other.dropped_errors;
        other.items.into_iter().for_each(|item| self.push(item));
    }

    /// Returns whether further errors are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.collected_errors >= MAX_PER_SEVERITY
    }

    /// Returns the number of errors, including repeated and dropped ones.
    pub(crate) fn error_count(&self) -> usize {
        self.error_count
    }

    /// Returns the findings. If the limit dropped errors, the last item gives their number.
    pub(crate) fn finish(self, sources: Rc<Sources>) -> Result<Diagnostics, Diagnostics> {
        let mut all = Diagnostics::new(self.items, sources);
        if self.error_count == 0 {
            return Ok(all);
        }
        if self.dropped_errors > 0 {
            let message = format!("{} more errors are not shown", self.dropped_errors);
            all.items.push(Diagnostic::without_location("more-errors", message));
        }
        Err(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_collected_up_to_the_limit_after_many_warnings() {
        let mut out = Collector::default();
        for n in 0..3 * MAX_PER_SEVERITY {
            out.push(Diagnostic::warning("not-found", Span::START, n.to_string()));
        }
        for n in 0..2 * MAX_PER_SEVERITY {
            out.push(Diagnostic::error("not-found", Span::START, n.to_string()));
        }
        let mut all = Collector::default();
        all.absorb(out);
        assert_eq!(all.error_count(), 2 * MAX_PER_SEVERITY);
        let found = all.finish(Rc::default()).unwrap_err();
        let errors = found.iter().filter(|item| item.severity == Severity::Error).count();
        // The last error gives the number of those that were dropped.
        assert_eq!((errors, found.len()), (MAX_PER_SEVERITY + 1, 2 * MAX_PER_SEVERITY + 1));
        let last = found.iter().last().map(|last| last.message.as_str());
        assert_eq!(last, Some("200 more errors are not shown"));
    }
}
