//! Parsing of types.

use super::input::Input;
use super::parser::{Parse, Parser, Reported};
use crate::ast::{
    Case, Declarator, Enumerator, Expr, Ident, Member, MemberKind, Preamble, TypeKind, TypeSpec, Union,
};
use crate::diagnostic::Diagnostic;
use crate::model::Primitive;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

/// Labels of a case with their spans; `None` is `default`.
type Labels = Vec<(Option<Expr>, Span)>;

impl Parser<'_> {
    /// Parses any type, including constructed types declared in place.
    pub(super) fn type_spec(&mut self, what: &str) -> Parse<TypeSpec> {
        self.nested(|parser| {
            let start = parser.input.span();
            let kind = match parser.input.kind() {
                TokenKind::Keyword("struct") => parser.structure()?,
                TokenKind::Keyword("union") => parser.union()?,
                TokenKind::Keyword("enum") => parser.enumeration()?,
                _ => return parser.simple_type(what),
            };
            Ok(TypeSpec { kind, span: start.to(parser.input.last_span()) })
        })
    }

    pub(super) fn simple_type(&mut self, what: &str) -> Parse<TypeSpec> {
        let start = self.input.span();
        // This function is recursive. To keep its stack frame small, `plain_type` parses all other types.
        let kind = match *self.input.kind() {
            TokenKind::Keyword("sequence") => self.sequence(),
            TokenKind::Ident { .. } if at_map(&self.input) => self.map(),
            _ => self.plain_type(what),
        };
        Ok(TypeSpec { kind: kind?, span: start.to(self.input.last_span()) })
    }

    /// Parses a type that does not contain other types.
    fn plain_type(&mut self, what: &str) -> Parse<TypeKind> {
        let start = self.input.span();
        Ok(match *self.input.kind() {
            TokenKind::Keyword("string") => {
                self.input.advance();
                TypeKind::String(self.bound("a bound")?)
            }
            TokenKind::Keyword("wstring") => {
                self.input.advance();
                TypeKind::WString(self.bound("a bound")?)
            }
            TokenKind::Keyword(word @ ("Object" | "any" | "ValueBase")) => {
                self.input.advance();
                match word {
                    "Object" => TypeKind::Object,
                    "any" => TypeKind::Any,
                    _ => TypeKind::ValueBase,
                }
            }
            TokenKind::Keyword("fixed") => self.fixed()?,
            TokenKind::Keyword("void") => {
                let message = "`void` is not a type; it is allowed only as the result of an operation";
                self.input.report(Diagnostic::error("not-a-type", start, message));
                self.input.advance();
                TypeKind::Bad
            }
            TokenKind::Keyword(_) => match self.primitive()? {
                Some(primitive) => TypeKind::Primitive(primitive),
                None => return self.input.expected(what),
            },
            TokenKind::Ident { .. } if let Some(primitive) = idl4_integer_type(&self.input) => {
                self.input.advance();
                TypeKind::Primitive(primitive)
            }
            TokenKind::Ident { .. } | TokenKind::Punct(Punct::Scope) => {
                TypeKind::Name(self.input.name(what)?)
            }
            _ => return self.input.expected(what),
        })
    }

    /// Parses a basic type; `None`, without consuming a token, if the current token does not start one.
    fn primitive(&mut self) -> Parse<Option<Primitive>> {
        let TokenKind::Keyword(word) = *self.input.kind() else { return Ok(None) };
        let primitive = match word {
            "boolean" => Primitive::Boolean,
            "octet" => Primitive::Octet,
            "char" => Primitive::Char,
            "wchar" => Primitive::WChar,
            "short" => Primitive::Short,
            "float" => Primitive::Float,
            "double" => Primitive::Double,
            "long" => {
                self.input.advance();
                return Ok(Some(match () {
                    () if self.input.take_keyword("long") => Primitive::LongLong,
                    () if self.input.take_keyword("double") => Primitive::LongDouble,
                    () => Primitive::Long,
                }));
            }
            "unsigned" => {
                self.input.advance();
                return match () {
                    () if self.input.take_keyword("short") => Ok(Some(Primitive::UShort)),
                    () if self.input.take_keyword("long") && self.input.take_keyword("long") => {
                        Ok(Some(Primitive::ULongLong))
                    }
                    () if matches!(self.input.last_kind(), TokenKind::Keyword("long")) => {
                        Ok(Some(Primitive::ULong))
                    }
                    () => self.input.expected("`short` or `long` after `unsigned`"),
                };
            }
            _ => return Ok(None),
        };
        self.input.advance();
        Ok(Some(primitive))
    }

    fn sequence(&mut self) -> Parse<TypeKind> {
        self.input.advance();
        let open = self.input.expect_punct(Punct::Less)?;
        let (element, bound) = self.inside_angles(|parser| {
            let element = parser.nested_element("a sequence", "the type of the elements")?;
            Ok((element, parser.comma_bound()?))
        })?;
        self.input.close_angle(open, if bound.is_some() { "`>`" } else { "`,` or `>`" })?;
        Ok(TypeKind::Sequence { element, bound })
    }

    pub(super) fn nested_element(&mut self, container: &str, what: &str) -> Parse<Box<TypeSpec>> {
        self.nested(|parser| match parser.input.kind() {
            TokenKind::Keyword("struct" | "union" | "enum") => parser.fail_declared_inside(container),
            _ => parser.simple_type(what).map(Box::new),
        })
    }

    pub(super) fn comma_bound(&mut self) -> Parse<Option<Expr>> {
        if self.input.take_punct(Punct::Comma) { self.expr("a bound").map(Some) } else { Ok(None) }
    }

    fn fail_declared_inside<T>(&mut self, container: &str) -> Parse<T> {
        let message = format!("{} cannot be declared inside {container} type", self.input.kind().describe());
        let error = Diagnostic::error("syntax", self.input.span(), message);
        self.input.fail(error.help("declare it separately, and use its name here"))
    }

    fn fixed(&mut self) -> Parse<TypeKind> {
        self.input.advance();
        if !self.input.take_punct(Punct::Less) {
            return Ok(TypeKind::Fixed(None));
        }
        let parts = self.inside_angles(|parser| {
            let digits = parser.expr("the number of digits")?;
            parser.input.expect_punct(Punct::Comma)?;
            Ok((digits, parser.expr("the number of digits after the point")?))
        })?;
        self.input.expect_punct(Punct::Greater)?;
        Ok(TypeKind::Fixed(Some(Box::new(parts))))
    }

    fn bound(&mut self, what: &str) -> Parse<Option<Expr>> {
        if !self.input.take_punct(Punct::Less) {
            return Ok(None);
        }
        let bound = self.inside_angles(|parser| parser.expr(what))?;
        self.input.expect_punct(Punct::Greater)?;
        Ok(Some(bound))
    }

    pub(super) fn declarators(&mut self) -> Parse<Vec<Declarator>> {
        self.list(Self::declarator)
    }

    fn declarator(&mut self) -> Parse<Declarator> {
        let name = self.input.new_ident("a name")?;
        let mut dims = Vec::new();
        while self.input.take_punct(Punct::BracketOpen) {
            dims.push(self.outside_angles(|parser| parser.expr("the size of the array"))?);
            self.input.expect_punct(Punct::BracketClose)?;
        }
        Ok(Declarator { name, dims })
    }

    fn structure(&mut self) -> Parse<TypeKind> {
        self.input.advance();
        let name = self.input.new_ident("the name of the struct")?;
        let base = self.base("the base struct")?;
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let members = self.outside_angles(Self::members)?;
        self.input.close_brace(open)?;
        Ok(TypeKind::Struct { name, base, members })
    }

    /// Parses members up to the `}`, which is not consumed. A malformed member is reported and left out.
    pub(super) fn members(&mut self) -> Parse<Vec<Member>> {
        let mut members = Vec::new();
        loop {
            let pragmas = self.pragmas().map(MemberKind::Pragma);
            members.extend(pragmas.map(|kind| Member { preamble: Preamble::default(), kind }));
            if matches!(self.input.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End) {
                return Ok(members);
            }
            let before = self.input.at;
            match self.member() {
                Ok(member) => members.push(member),
                Err(Reported) if self.input.silenced => return Err(Reported),
                Err(Reported) => self.recover_from(before),
            }
        }
    }

    fn member(&mut self) -> Parse<Member> {
        let preamble = self.preamble()?;
        let ty = self.type_spec("the type of a member")?;
        let declarators = self.declarators()?;
        self.semicolon("this member")?;
        Ok(Member { preamble, kind: MemberKind::Data { ty, declarators } })
    }

    fn enumeration(&mut self) -> Parse<TypeKind> {
        self.input.advance();
        let name = self.input.new_ident("the name of the enum")?;
        let enumerators = self.enumerators(&name, "enum", "an enumerator")?;
        Ok(TypeKind::Enum { name, enumerators })
    }

    /// Parses `{ a, b }` of an enum or bitmask. `item` describes one of the names, with an article: `a flag`.
    pub(super) fn enumerators(&mut self, name: &Ident, kind: &str, item: &str) -> Parse<Vec<Enumerator>> {
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let (_, noun) = item.split_once(' ').unwrap_or(("", item));
        let mut enumerators = Vec::new();
        if self.input.at_punct(Punct::BraceClose) {
            let message = format!("{kind} `{}` has no {noun}s", name.text);
            self.input.report(Diagnostic::error("empty", name.span, message));
        } else {
            loop {
                let preamble = self.preamble()?;
                enumerators.push(Enumerator { preamble, name: self.input.new_ident(item)? });
                if !self.input.take_punct(Punct::Comma) {
                    break;
                }
                if self.input.at_punct(Punct::BraceClose) {
                    let message = format!("a comma is not allowed after the last {noun}");
                    let error = Diagnostic::error("syntax", self.input.last_span(), message);
                    self.input.report(error.help("remove it"));
                    break;
                }
            }
        }
        self.input.close_brace(open)?;
        Ok(enumerators)
    }

    fn union(&mut self) -> Parse<TypeKind> {
        let (name, preamble, discriminator) = self.switch()?;
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let error_count = self.input.findings.error_count();
        let cases = self.until_brace(|parser| parser.outside_angles(Self::case))?;
        self.input.close_brace(open)?;
        if cases.is_empty() && self.input.findings.error_count() == error_count {
            let message = format!("union `{}` has no members", name.text);
            self.input.report(Diagnostic::error("empty", name.span, message));
        }
        Ok(TypeKind::Union(Box::new(Union { name, preamble, discriminator, cases })))
    }

    /// Parses a union up to its body. Returns its name, and the annotations and type of its discriminator.
    fn switch(&mut self) -> Parse<(Ident, Preamble, TypeSpec)> {
        self.input.advance();
        let name = self.input.new_ident("the name of the union")?;
        if !self.input.take_keyword("switch") {
            return self.input.expected("`switch`");
        }
        self.input.expect_punct(Punct::ParenOpen)?;
        let preamble = self.preamble()?;
        let discriminator = self.type_spec("the type of the discriminator")?;
        self.input.expect_punct(Punct::ParenClose)?;
        Ok((name, preamble, discriminator))
    }

    fn case(&mut self) -> Parse<Case> {
        let (labels, preamble) = self.labels()?;
        let ty = self.type_spec("the type of the member")?;
        let declarator = self.member_of_case()?;
        Ok(Case { labels, preamble, ty, declarator })
    }

    /// Parses labels. Also returns the documentation and annotations before the labels and before the member.
    fn labels(&mut self) -> Parse<(Labels, Preamble)> {
        let before = self.preamble()?;
        let mut labels = Vec::new();
        loop {
            let start = self.input.span();
            if self.input.take_keyword("case") {
                let value = self.expr("the value of the label")?;
                labels.push((Some(value), start.to(self.input.last_span())));
            } else if self.input.take_keyword("default") {
                labels.push((None, start));
            } else {
                break;
            }
            self.input.expect_punct(Punct::Colon)?;
        }
        if labels.is_empty() {
            return self.input.expected("`case` or `default`");
        }
        let mut preamble = self.preamble()?;
        preamble.docs.lines.splice(0..0, before.docs.lines);
        preamble.annotations.splice(0..0, before.annotations);
        Ok((labels, preamble))
    }

    /// Parses the name of the member after its type, and the `;`.
    fn member_of_case(&mut self) -> Parse<Declarator> {
        let declarator = self.declarator()?;
        if self.input.at_punct(Punct::Comma) {
            let error = Diagnostic::error("syntax", self.input.span(), "a union case must have one member");
            return self.input.fail(error.help("give each member labels of its own"));
        }
        self.semicolon("this member")?;
        Ok(declarator)
    }
}

/// Returns whether a type of IDL 4 starts here: a map, or an integer type such as `int8`.
pub(super) fn at_idl4_type(input: &Input<'_>) -> bool {
    at_map(input) || idl4_integer_type(input).is_some()
}

fn at_map(input: &Input<'_>) -> bool {
    input.at_contextual_keyword("map") && *input.kind_at(1) == TokenKind::Punct(Punct::Less)
}

/// Returns the integer type of IDL 4 that the current token names, if it names one.
fn idl4_integer_type(input: &Input<'_>) -> Option<Primitive> {
    Some(match input.contextual_keyword()? {
        "int8" => Primitive::Int8,
        "uint8" => Primitive::UInt8,
        "int16" => Primitive::Short,
        "uint16" => Primitive::UShort,
        "int32" => Primitive::Long,
        "uint32" => Primitive::ULong,
        "int64" => Primitive::LongLong,
        "uint64" => Primitive::ULongLong,
        _ => return None,
    })
}
