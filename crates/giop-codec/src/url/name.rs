//! Stringified names of the naming service: `a.kind/b`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::escape::is_unescaped;
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};

/// A name in the string form of `CosNaming`: at least one component.
///
/// `/` separates components, a dot separates id and kind, and a backslash escapes these and itself. A
/// component with an empty id and an empty kind is a single dot; no other component ends with a dot.
/// Source clause: "Naming Service / Stringified Names".
///
/// ```
/// use giop_codec::url::NameText;
///
/// let name: NameText = r"a\.b.kind/c".parse()?;
/// assert_eq!(name.components, [("a.b".to_owned(), "kind".to_owned()), ("c".to_owned(), String::new())]);
/// assert_eq!(name.to_string(), r"a\.b.kind/c");
/// # Ok::<(), giop_codec::url::NameTextError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameText {
    /// Id and kind of each component.
    pub components: Vec<(String, String)>,
}

impl NameText {
    /// Writes components from any representation; writes nothing if there are none.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write<'a>(
        out: &mut impl fmt::Write,
        components: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> fmt::Result {
        for (i, (id, kind)) in components.into_iter().enumerate() {
            if i > 0 {
                out.write_char('/')?;
            }
            write_part(out, id)?;
            // If the id is empty, the dot shows that the kind follows or that both are empty.
            if !kind.is_empty() || id.is_empty() {
                out.write_char('.')?;
            }
            write_part(out, kind)?;
        }
        Ok(())
    }

    /// Escapes a stringified name for a `corbaname:` URL: each byte of its UTF-8 that a URL cannot contain
    /// becomes `%HH`.
    ///
    /// Source clause: "Naming Service / corbaname URLs" (the escapes of RFC 2396).
    pub fn escape(name: &str) -> String {
        let mut escaped = String::with_capacity(name.len());
        for octet in name.bytes() {
            if is_unescaped(octet) {
                escaped.push(char::from(octet));
            } else {
                let digit =
                    |value: u8| char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase();
                escaped.extend(['%', digit(octet >> 4), digit(octet & 15)]);
            }
        }
        escaped
    }
}

fn write_part(out: &mut impl fmt::Write, part: &str) -> fmt::Result {
    part.chars().try_for_each(|c| {
        if matches!(c, '/' | '.' | '\\') {
            out.write_char('\\')?;
        }
        out.write_char(c)
    })
}

impl fmt::Display for NameText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::write(f, self.components.iter().map(|(id, kind)| (id.as_str(), kind.as_str())))
    }
}

impl FromStr for NameText {
    type Err = NameTextError;

    fn from_str(text: &str) -> Result<Self, NameTextError> {
        let mut components = Vec::new();
        let mut part = Part::default();
        let mut position = 0;
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            position += 1;
            match c {
                '/' => components.push(std::mem::take(&mut part).end(position)?),
                '.' if part.kind.is_some() => {
                    return Err(NameTextError { position, kind: NameTextErrorKind::SecondDot });
                }
                '.' => part.kind = Some(String::new()),
                '\\' => {
                    let escaped = chars.next().filter(|c| matches!(c, '/' | '.' | '\\'));
                    let kind = NameTextErrorKind::Escape;
                    part.push(escaped.ok_or(NameTextError { position, kind })?);
                    position += 1;
                }
                other => part.push(other),
            }
        }
        components.push(part.end(position + 1)?);
        Ok(Self { components })
    }
}

/// A component during parsing.
#[derive(Default)]
struct Part {
    id: String,
    /// `None` before the dot.
    kind: Option<String>,
}

impl Part {
    fn push(&mut self, c: char) {
        self.kind.as_mut().unwrap_or(&mut self.id).push(c);
    }

    /// Returns the component; `position` is that of the following character.
    fn end(self, position: usize) -> Result<(String, String), NameTextError> {
        let fail = |kind| Err(NameTextError { position, kind });
        match self.kind {
            None if self.id.is_empty() => fail(NameTextErrorKind::Empty),
            None => Ok((self.id, String::new())),
            Some(kind) if kind.is_empty() && !self.id.is_empty() => fail(NameTextErrorKind::TrailingDot),
            Some(kind) => Ok((self.id, kind)),
        }
    }
}

/// Error of parsing a stringified name (`CosNaming::NamingContext::InvalidName`), with the position of the
/// first invalid character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameTextError {
    position: usize,
    kind: NameTextErrorKind,
}

impl NameTextError {
    /// Returns the number of the invalid character, starting at 1.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> NameTextErrorKind {
        self.kind
    }
}

/// The reason why a text is not a stringified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameTextErrorKind {
    /// A component is empty.
    Empty,
    /// A component has two unescaped dots.
    SecondDot,
    /// A component has an id and a dot, but no kind after it.
    TrailingDot,
    /// A backslash precedes a character that must not be escaped.
    Escape,
}

impl fmt::Display for NameTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.kind {
            NameTextErrorKind::Empty => "a component is empty: one without id and kind is a single dot",
            NameTextErrorKind::SecondDot => r"a component has one dot: escape others as `\.`",
            NameTextErrorKind::TrailingDot => {
                "behind the dot stands a kind: leave out the dot where there is none"
            }
            NameTextErrorKind::Escape => r"a backslash stands before `/`, `.` or a backslash",
        };
        write!(f, "name, character {}: {text}", self.position)
    }
}

impl Error for NameTextError {}

/// `BAD_PARAM`, COMPLETED_NO.
impl From<NameTextError> for SystemException {
    #[cold]
    fn from(error: NameTextError) -> Self {
        Self::new(SystemExceptionKind::BadParam, MinorCode::NONE, CompletionStatus::No).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(list: &[(&str, &str)]) -> NameText {
        let owned = |(id, kind): &(&str, &str)| ((*id).to_owned(), (*kind).to_owned());
        NameText { components: list.iter().map(owned).collect() }
    }

    // clause: poa.naming.string_names, ior.corbaname.bad
    #[test]
    fn names_fall_into_components() {
        let good: [(&str, &[(&str, &str)]); 6] = [
            ("a/b.c", &[("a", ""), ("b", "c")]),
            (r"a\.b/c\/d.e\\f", &[("a.b", ""), ("c/d", r"e\f")]),
            (".k", &[("", "k")]),
            (".", &[("", "")]),
            ("./.", &[("", ""), ("", "")]),
            (r"\\", &[(r"\", "")]),
        ];
        for (text, components) in good {
            assert_eq!(text.parse::<NameText>().unwrap(), pairs(components), "{text}");
            assert_eq!(pairs(components).to_string(), text);
        }
    }

    // clause: poa.naming.string_names, ior.corbaname.bad
    #[test]
    fn malformed_names_are_refused_at_their_character() {
        use NameTextErrorKind::{Empty, Escape, SecondDot, TrailingDot};
        let bad = [
            ("", 1, Empty),
            ("a//b", 3, Empty),
            ("/a", 1, Empty),
            ("a/", 3, Empty),
            ("a.b.c", 4, SecondDot),
            ("a..b", 3, SecondDot),
            ("a.", 3, TrailingDot),
            ("a./b", 3, TrailingDot),
            (r"a\x", 2, Escape),
            (r"a\", 2, Escape),
            ("..", 2, SecondDot),
            (r"a.\x", 3, Escape),
            (r"a.b.\x", 4, SecondDot),
            (r"ö.ö/\ö", 5, Escape),
            ("ö/", 3, Empty),
            ("ö./.", 3, TrailingDot),
        ];
        for (text, position, kind) in bad {
            assert_eq!(text.parse::<NameText>(), Err(NameTextError { position, kind }), "{text}");
        }
        let message = |text: &str| text.parse::<NameText>().unwrap_err().to_string();
        assert_eq!(
            message("/"),
            "name, character 1: a component is empty: one without id and kind is a single dot"
        );
        assert_eq!(message("a.b."), r"name, character 4: a component has one dot: escape others as `\.`");
        assert_eq!(
            message("a."),
            "name, character 3: behind the dot stands a kind: leave out the dot where there is none"
        );
        assert_eq!(message(r"\a"), "name, character 1: a backslash stands before `/`, `.` or a backslash");
    }

    // clause: poa.naming.to_url
    #[test]
    fn what_a_url_can_not_hold_is_escaped() {
        assert_eq!(NameText::escape(r#"a\.b c%<>"#), "a%5C.b%20c%25%3C%3E");
        assert_eq!(NameText::escape("\"#ö;/:?@&=+$,-_.!~*'()"), "%22%23%C3%B6;/:?@&=+$,-_.!~*'()");
    }

    proptest! {
        #[test]
        fn every_name_comes_back(components in prop::collection::vec((any::<String>(), any::<String>()), 1..5)) {
            let name = NameText { components };
            prop_assert_eq!(name.to_string().parse::<NameText>(), Ok(name));
        }

        #[test]
        fn every_text_that_is_a_name_has_one_form(text in r"[ab./\\]{0,12}") {
            if let Ok(name) = text.parse::<NameText>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }
}
