//! Support for `nom` grammars whose errors have a position and a kind.

use nom::error::{ErrorKind, ParseError};
use nom::{Err, IResult, Offset, Parser};

/// The result of a grammar rule: the rest of the input and the value.
pub(super) type ParseResult<'a, T, K> = IResult<&'a str, T, SyntaxError<'a, K>>;

/// The rest of the input at an error, and its kind; `None` if the next alternative must be tried.
pub(super) struct SyntaxError<'a, K>(Option<(&'a str, K)>);

impl<'a, K> ParseError<&'a str> for SyntaxError<'a, K> {
    fn from_error_kind(_: &'a str, _: ErrorKind) -> Self {
        Self(None)
    }

    fn append(_: &'a str, _: ErrorKind, other: Self) -> Self {
        other
    }
}

#[cold]
pub(super) fn syntax_error<K>(at: &str, kind: K) -> Err<SyntaxError<'_, K>> {
    Err::Failure(SyntaxError(Some((at, kind))))
}

/// Returns a rule that must match: if `rule` does not, that is an error, and no alternative is tried.
pub(super) fn expect<'a, T, K>(
    mut rule: impl Parser<&'a str, Output = T, Error = SyntaxError<'a, K>>,
    kind: impl Fn(&str) -> K,
) -> impl FnMut(&'a str) -> ParseResult<'a, T, K> {
    move |input| match rule.parse(input) {
        Err(Err::Error(_)) => Err(syntax_error(input, kind(input))),
        result => result,
    }
}

/// Applies a rule to `input`, which is a part of `text`. If the rule does not match, `kind` returns the kind
/// of the error. The position in the error is the number of a character in `text`, counted from 1.
pub(super) fn apply<'a, T, K>(
    text: &str,
    input: &'a str,
    mut rule: impl Parser<&'a str, Output = T, Error = SyntaxError<'a, K>>,
    kind: impl Fn(&str) -> K,
) -> Result<T, (usize, K)> {
    let (at, kind) = match rule.parse(input) {
        Ok((_, value)) => return Ok(value),
        Err(Err::Failure(SyntaxError(Some(error)))) => error,
        Err(_) => (input, kind(input)),
    };
    let offset = text.offset(at);
    Err((text.char_indices().take_while(|(before, _)| *before < offset).count() + 1, kind))
}
