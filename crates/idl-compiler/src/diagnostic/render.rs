//! Rendering of diagnostics for terminals.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, Title};

use super::{Diagnostic, Diagnostics, Label, Severity};
use crate::source::{File, Span};

/// Maximum number of bytes that an excerpt shows before or after a location in the same line.
const MAX_EXCERPT_BYTES: usize = 2000;

/// Maximum number of macros, and also of including files, that are named as the origin of a location.
const MAX_ORIGINS: usize = 8;

impl Diagnostics {
    /// Renders all findings with excerpts of the source. `colour` enables terminal escapes.
    pub fn render(&self, colour: bool) -> String {
        let mut text = String::new();
        for diagnostic in &self.items {
            text.push_str(&self.render_one(diagnostic, colour));
            text.push_str("\n\n");
        }
        text
    }

    /// Renders one of these findings as [`Diagnostics::render`] does, without the empty line after it.
    pub fn render_one(&self, diagnostic: &Diagnostic, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(printable(&diagnostic.message)).id(diagnostic.code);
        renderer.render(&[self.report(diagnostic, title)])
    }

    /// Renders one finding with excerpts, without colour, and without the severity, which rustc adds.
    pub(super) fn render_for_rustc(&self, diagnostic: &Diagnostic) -> String {
        let title = Level::ERROR.no_name().primary_title(printable(&diagnostic.message));
        Renderer::plain().render(&[self.report(diagnostic, title)])
    }

    fn report<'a>(&'a self, diagnostic: &'a Diagnostic, title: Title<'a>) -> Group<'a> {
        let mut group = Group::with_title(title);
        for labels in clusters(&diagnostic.labels) {
            let Some(file) = labels.first().and_then(|(_, label)| self.sources.file(label.span.file)) else {
                continue;
            };
            let visible_range = |label: &Label| {
                let range = label.span.range();
                file.visible_offset(range.start)..file.visible_offset(range.end)
            };
            let window = Window::around(&file.text, labels.iter().map(|(_, label)| visible_range(label)));
            let (name, line) =
                window.line(file, labels.first().map_or(0, |(_, label)| visible_range(label).start));
            let mut snippet = Snippet::source(window.text).line_start(line).path(printable(name));
            for (index, label) in labels {
                let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let mut annotation = kind.span(window.relative(visible_range(label)));
                if !label.text.is_empty() {
                    annotation = annotation.label(printable(&label.text));
                }
                snippet = snippet.annotation(annotation);
            }
            group = group.element(snippet);
        }
        if let Some(span) = diagnostic.span() {
            group = self.origins(group, span);
        }
        for note in &diagnostic.notes {
            group = group.element(Level::NOTE.message(printable(note)));
        }
        for help in &diagnostic.helps {
            group = group.element(Level::HELP.message(printable(help)));
        }
        group
    }

    /// Adds the macros that produced the token, and the files that include the location's file.
    fn origins<'a>(&'a self, mut group: Group<'a>, span: Span) -> Group<'a> {
        for (name, body) in self.sources.expanded_from(span).into_iter().take(MAX_ORIGINS) {
            let Some(file) = self.sources.file(body.file) else { continue };
            let window = Window::around(&file.text, std::iter::once(body.range()));
            let (path, line) = window.line(file, body.range().start);
            let annotation = AnnotationKind::Primary.span(window.relative(body.range()));
            let snippet = Snippet::source(window.text).line_start(line).path(path).annotation(annotation);
            group =
                group.element(Level::NOTE.message(format!("expanded from macro `{name}`"))).element(snippet);
        }
        let from = self.sources.included_from(span);
        for include in from.iter().take(MAX_ORIGINS) {
            let position = self.sources.position(*include);
            group = group.element(Level::NOTE.message(printable(&format!("included from {position}"))));
        }
        if let Some(more) = from.len().checked_sub(MAX_ORIGINS).filter(|more| *more > 0) {
            group = group.element(Level::NOTE.message(format!("included from {more} more files")));
        }
        group
    }
}

/// Returns the text of a message in a form that is safe for terminals, because file names in IDL can contain
/// any character. Line breaks are kept. Other control characters, bidirectional overrides and characters
/// without a glyph are escaped as `{:?}` escapes them.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | ' '..='~' => out.push(c),
            // The `a` preserves combining marks: `escape_debug` escapes them only at the start of a text.
            c => out.extend(format!("a{c}").escape_debug().skip(1)),
        }
    }
    out
}

/// Labels that are close to each other and share one excerpt, with their indices in the finding.
type Cluster<'a> = Vec<(usize, &'a Label)>;

/// Groups labels that are close to each other, so that no excerpt spans a whole text.
fn clusters(labels: &[Label]) -> Vec<Cluster<'_>> {
    let mut clusters: Vec<Cluster<'_>> = Vec::new();
    for (index, label) in labels.iter().enumerate() {
        let is_close = |other: &Label| {
            other.span.file == label.span.file
                && other.span.range().start.abs_diff(label.span.range().start) < MAX_EXCERPT_BYTES
        };
        match clusters.iter_mut().find(|cluster| cluster.iter().all(|(_, other)| is_close(other))) {
            Some(cluster) => cluster.push((index, label)),
            None => clusters.push(vec![(index, label)]),
        }
    }
    clusters
}

/// The part of a text that contains the labels of a finding.
struct Window<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Window<'a> {
    /// Creates the window of whole lines around all locations. Very long lines are cut.
    fn around(text: &'a str, ranges: impl Iterator<Item = std::ops::Range<usize>>) -> Self {
        let (mut from, mut to) = (usize::MAX, 0);
        for range in ranges {
            from = from.min(range.start);
            to = to.max(range.end.min(range.start.saturating_add(MAX_EXCERPT_BYTES)));
        }
        let (from, to) = (from.min(text.len()), to.min(text.len()));
        let line_start =
            text.as_bytes()[..from].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line_end =
            text.as_bytes()[to..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| to + at);
        let start = boundary(text, line_start.max(from.saturating_sub(MAX_EXCERPT_BYTES)));
        let end = boundary(text, line_end.min(to + MAX_EXCERPT_BYTES));
        Window { text: text.get(start..end).unwrap_or(""), start }
    }

    /// Returns the name of the file, and the number of the window's first line. The number is counted back
    /// from the line of `offset`, because a `#line` in the window may change the numbers.
    fn line(&self, file: &'a File, offset: usize) -> (&'a str, usize) {
        let (name, line) = file.name_and_line(offset);
        let before = file.text.as_bytes().get(self.start..offset).unwrap_or(&[]);
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        (name, line.saturating_sub(lines))
    }

    /// Converts a range of the text to a range of the window. A range that is cut off ends with the window.
    fn relative(&self, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let at = |offset: usize| boundary(self.text, offset.saturating_sub(self.start));
        at(range.start)..at(range.end)
    }
}

/// Returns the last character boundary that is not after this offset.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
