//! Diagnostics for people.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Diagnostics, Severity};

/// Lines longer than this are shown only around the place.
const MAX_EXCERPT: usize = 2000;

impl Diagnostics {
    /// All findings with excerpts of the source, `colour` by terminal escapes.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for diagnostic in &self.items {
            text.push_str(&renderer.render(&[self.report(diagnostic)]));
            text.push_str("\n\n");
        }
        text
    }

    /// One finding with excerpts, without colour.
    pub(super) fn render_one(&self, diagnostic: &Diagnostic) -> String {
        Renderer::plain().render(&[self.report(diagnostic)])
    }

    fn report<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code)
            .elements(std::iter::empty::<annotate_snippets::Message<'a>>());
        let mut files: Vec<u32> = diagnostic.labels.iter().map(|label| label.span.file).collect();
        files.dedup();
        for number in files {
            let Some(file) = self.sources.file(number) else { continue };
            let labels = diagnostic.labels.iter().enumerate().filter(|(_, label)| label.span.file == number);
            let window = Window::around(&file.text, labels.clone().map(|(_, label)| label.span.range()));
            let mut snippet = Snippet::source(window.text)
                .line_start(file.first_line + window.lines_before)
                .path(file.name.as_str());
            for (index, label) in labels {
                let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let mut mark = kind.span(window.place(label.span.range()));
                if !label.text.is_empty() {
                    mark = mark.label(label.text.as_str());
                }
                snippet = snippet.annotation(mark);
            }
            group = group.element(snippet);
        }
        for note in &diagnostic.notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        for help in &diagnostic.helps {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        group
    }
}

/// The part of a text that the labels of a finding need.
struct Window<'a> {
    text: &'a str,
    start: usize,
    lines_before: usize,
}

impl<'a> Window<'a> {
    /// Whole lines around all places; in a text of one endless line, some characters to both sides.
    fn around(text: &'a str, places: impl Iterator<Item = std::ops::Range<usize>>) -> Self {
        let (mut from, mut to) = (usize::MAX, 0);
        for place in places {
            from = from.min(place.start);
            to = to.max(place.end.min(place.start.saturating_add(MAX_EXCERPT)));
        }
        let (from, to) = (from.min(text.len()), to.min(text.len()));
        let line_start =
            text.as_bytes()[..from].iter().rposition(|octet| *octet == b'\n').map_or(0, |at| at + 1);
        let line_end =
            text.as_bytes()[to..].iter().position(|octet| *octet == b'\n').map_or(text.len(), |at| to + at);
        let start = boundary(text, line_start.max(from.saturating_sub(MAX_EXCERPT)));
        let end = boundary(text, line_end.min(to + MAX_EXCERPT));
        let lines_before = text.as_bytes()[..start].iter().filter(|octet| **octet == b'\n').count();
        Window { text: text.get(start..end).unwrap_or(""), start, lines_before }
    }

    fn place(&self, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        // A place that is cut ends where the excerpt does.
        let at = |offset: usize| boundary(self.text, offset.saturating_sub(self.start));
        at(range.start)..at(range.end)
    }
}

/// The last place not after this one where a character starts or the text ends.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
