//! Stringified names of the naming service: `a.kind/b`.

use std::fmt;
use std::str::FromStr;

use nom::Parser as _;
use nom::bytes::complete::take_while;
use nom::character::complete::{char, one_of};
use nom::combinator::{opt, recognize};
use nom::multi::separated_list1;
use nom::sequence::preceded;

use super::escape::write_escaped;
use super::syntax::{ParseResult, apply, expect, syntax_error};
use crate::exception::SystemException;

/// A name in the string form of `CosNaming`, with at least one component.
///
/// `/` separates components, `.` separates id and kind, and a backslash escapes these two and itself. Only a
/// component with an empty id and an empty kind, which is a single dot, ends with a dot.
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
    /// The id and the kind of each component.
    pub components: Vec<(String, String)>,
}

impl NameText {
    /// Writes components in the string form. Writes nothing if there are none.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write<'a>(
        out: &mut impl fmt::Write,
        components: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> fmt::Result {
        for (i, (id, kind)) in components.into_iter().enumerate() {
            if i > 0 {
                out.write_char('/')?;
            }
            write_part(out, id)?;
            // After an empty id, the dot is written even if the kind is empty too.
            if !kind.is_empty() || id.is_empty() {
                out.write_char('.')?;
            }
            write_part(out, kind)?;
        }
        Ok(())
    }

    /// Escapes a stringified name for a `corbaname:` URL: bytes that a URL cannot contain become `%HH`.
    ///
    /// Source clause: "Naming Service / corbaname URLs" (the escapes of RFC 2396).
    pub fn escape(name: &str) -> String {
        let mut escaped = String::with_capacity(name.len());
        // Writing to a string cannot fail.
        let _ = write_escaped(&mut escaped, name.as_bytes());
        escaped
    }
}

fn write_part(out: &mut impl fmt::Write, part: &str) -> fmt::Result {
    part.chars().try_for_each(|c| {
        if is_special(c) {
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
        let name = separated_list1(char('/'), component).map(|components| Self { components });
        apply(text, text, name, |_| NameTextErrorKind::Empty)
            .map_err(|(position, kind)| NameTextError { position, kind })
    }
}

type Rule<'a, T> = ParseResult<'a, T, NameTextErrorKind>;

/// `id ["." kind]`, up to the next slash or the end of the input.
fn component(input: &str) -> Rule<'_, (String, String)> {
    let (rest, (id, kind)) = (part, opt(preceded(char('.'), part))).parse(input)?;
    let error = match &kind {
        Some(_) if rest.starts_with('.') => NameTextErrorKind::SecondDot,
        Some(kind) if kind.is_empty() && !id.is_empty() => NameTextErrorKind::TrailingDot,
        None if id.is_empty() => NameTextErrorKind::Empty,
        _ => return Ok((rest, (id, kind.unwrap_or_default()))),
    };
    Err(syntax_error(rest, error))
}

/// An id or a kind: `characters {"\" ("/" | "." | "\") characters}`.
fn part(input: &str) -> Rule<'_, String> {
    let characters = || take_while(|c| !is_special(c));
    let escaped = preceded(char('\\'), recognize(one_of(r"/.\")));
    let mut escape_and_text = (expect(escaped, |_| NameTextErrorKind::Escape), characters());
    let (mut rest, first) = characters().parse(input)?;
    let mut part = String::new() + first;
    while rest.starts_with('\\') {
        let (following, (escaped, text)) = escape_and_text.parse(rest)?;
        part = part + escaped + text;
        rest = following;
    }
    Ok((rest, part))
}

fn is_special(c: char) -> bool {
    matches!(c, '/' | '.' | '\\')
}

/// The error of parsing a stringified name (`CosNaming::NamingContext::InvalidName`), with the position of
/// the first invalid character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("name, character {position}: {kind}")]
pub struct NameTextError {
    position: usize,
    kind: NameTextErrorKind,
}

impl NameTextError {
    /// Returns the number of the invalid character, counted from 1.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> NameTextErrorKind {
        self.kind
    }
}

/// The reason why a text is not a stringified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameTextErrorKind {
    /// A component is empty.
    #[error("a component is empty; write `.` for a component with an empty id and an empty kind")]
    Empty,
    /// A component has more than one unescaped dot.
    #[error(r"a component has a second dot; write a dot in an id or kind as `\.`")]
    SecondDot,
    /// A component has an id and a dot, but no kind after it.
    #[error("a component ends with a dot; omit the dot if there is no kind")]
    TrailingDot,
    /// A backslash is at the end, or precedes a character that must not be escaped.
    #[error(r"a backslash must be followed by `/`, `.` or a backslash")]
    Escape,
}

/// Becomes `BAD_PARAM` with `COMPLETED_NO`.
impl From<NameTextError> for SystemException {
    #[cold]
    fn from(error: NameTextError) -> Self {
        Self::bad_param().with_source(error)
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
    fn names_are_split_into_components() {
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
            "name, character 1: a component is empty; write `.` for a component with an empty id and an empty kind"
        );
        assert_eq!(
            message("a.b."),
            r"name, character 4: a component has a second dot; write a dot in an id or kind as `\.`"
        );
        assert_eq!(
            message("a."),
            "name, character 3: a component ends with a dot; omit the dot if there is no kind"
        );
        assert_eq!(
            message(r"\a"),
            "name, character 1: a backslash must be followed by `/`, `.` or a backslash"
        );
    }

    // clause: poa.naming.to_url
    #[test]
    fn characters_that_a_url_cannot_contain_are_escaped() {
        assert_eq!(NameText::escape(r#"a\.b c%<>"#), "a%5C.b%20c%25%3C%3E");
        assert_eq!(NameText::escape("\"#ö;/:?@&=+$,-_.!~*'()"), "%22%23%C3%B6;/:?@&=+$,-_.!~*'()");
    }

    proptest! {
        #[test]
        fn every_name_round_trips(components in prop::collection::vec((any::<String>(), any::<String>()), 1..5)) {
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
