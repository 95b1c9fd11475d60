//! Types.

use super::{Parse, Parser, Reported};
use crate::ast::{Case, Declarator, Enumerator, Expr, Head, Member, MemberKind, TypeKind, TypeSpec, Union};
use crate::diagnostic::Diagnostic;
use crate::model::Primitive;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// Any type, constructed ones declared in place included.
    pub(super) fn type_spec(&mut self, what: &str) -> Parse<TypeSpec> {
        self.nested(|parser| {
            let start = parser.span();
            let kind = match parser.kind() {
                TokenKind::Keyword("struct") => parser.structure()?,
                TokenKind::Keyword("union") => parser.union()?,
                TokenKind::Keyword("enum") => parser.enumeration()?,
                _ => return parser.simple_type(what),
            };
            Ok(TypeSpec { kind, span: start.to(parser.last_span()) })
        })
    }

    /// A type that declares nothing.
    pub(super) fn simple_type(&mut self, what: &str) -> Parse<TypeSpec> {
        let start = self.span();
        let kind = match *self.kind() {
            TokenKind::Keyword("sequence") => self.sequence()?,
            TokenKind::Keyword("string") => {
                self.advance();
                TypeKind::String(self.bound("a bound")?)
            }
            TokenKind::Keyword("wstring") => {
                self.advance();
                TypeKind::WString(self.bound("a bound")?)
            }
            TokenKind::Keyword("Object") => {
                self.advance();
                TypeKind::Object
            }
            TokenKind::Keyword("any") => {
                self.advance();
                TypeKind::Any
            }
            TokenKind::Keyword("ValueBase") => {
                self.advance();
                TypeKind::ValueBase
            }
            TokenKind::Keyword("fixed") => self.fixed()?,
            TokenKind::Keyword("void") => {
                let error = Diagnostic::error(
                    "not-a-type",
                    start,
                    "`void` is not a type; it stands only before an operation",
                );
                self.report(error);
                self.advance();
                TypeKind::Bad
            }
            TokenKind::Keyword(_) => match self.primitive()? {
                Some(primitive) => TypeKind::Primitive(primitive),
                None => return self.expected(what),
            },
            TokenKind::Ident { .. }
                if self.at_new_word("map") && self.kind_at(1) == &TokenKind::Punct(Punct::Less) =>
            {
                self.map()?
            }
            TokenKind::Ident { .. } if self.new_primitive().is_some() => {
                let primitive = self.new_primitive();
                self.advance();
                primitive.map_or(TypeKind::Bad, TypeKind::Primitive)
            }
            TokenKind::Ident { .. } | TokenKind::Punct(Punct::Scope) => TypeKind::Name(self.name(what)?),
            _ => return self.expected(what),
        };
        Ok(TypeSpec { kind, span: start.to(self.last_span()) })
    }

    /// A basic type made of keywords; `None`, and nothing taken, if there is none here.
    fn primitive(&mut self) -> Parse<Option<Primitive>> {
        let TokenKind::Keyword(word) = *self.kind() else { return Ok(None) };
        let primitive = match word {
            "boolean" => Primitive::Boolean,
            "octet" => Primitive::Octet,
            "char" => Primitive::Char,
            "wchar" => Primitive::WChar,
            "short" => Primitive::Short,
            "float" => Primitive::Float,
            "double" => Primitive::Double,
            "long" => {
                self.advance();
                return Ok(Some(match () {
                    () if self.take_keyword("long") => Primitive::LongLong,
                    () if self.take_keyword("double") => Primitive::LongDouble,
                    () => Primitive::Long,
                }));
            }
            "unsigned" => {
                self.advance();
                return match () {
                    () if self.take_keyword("short") => Ok(Some(Primitive::UShort)),
                    () if self.take_keyword("long") && self.take_keyword("long") => {
                        Ok(Some(Primitive::ULongLong))
                    }
                    () if matches!(self.last_kind(), TokenKind::Keyword("long")) => {
                        Ok(Some(Primitive::ULong))
                    }
                    () => self.expected("`short` or `long` after `unsigned`"),
                };
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(primitive))
    }

    fn last_kind(&self) -> &TokenKind {
        self.tokens.get(self.at.saturating_sub(1)).map_or(&TokenKind::End, |token| &token.kind)
    }

    /// The integer types of IDL 4.
    fn new_primitive(&self) -> Option<Primitive> {
        Some(match self.new_word()? {
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

    fn sequence(&mut self) -> Parse<TypeKind> {
        self.advance();
        let open = self.expect_punct(Punct::Less)?;
        let (element, bound) = self.with_angle(true, |parser| {
            let element =
                parser.nested(|parser| parser.element_type("a sequence", "the type of the elements"))?;
            let bound = if parser.take_punct(Punct::Comma) { Some(parser.expr("a bound")?) } else { None };
            Ok((Box::new(element), bound))
        })?;
        if !self.take_punct(Punct::Greater) {
            let wanted = if bound.is_some() { "`>`" } else { "`,` or `>`" };
            let message = format!("expected {wanted}, found {}", self.kind().describe());
            let error = Diagnostic::error("syntax", self.span(), message);
            self.unexpected(error.and(open, "to close this `<`"));
            return Err(Reported);
        }
        Ok(TypeKind::Sequence { element, bound })
    }

    pub(super) fn element_type(&mut self, container: &str, what: &str) -> Parse<TypeSpec> {
        if matches!(self.kind(), TokenKind::Keyword("struct" | "union" | "enum")) {
            let message = format!("{} cannot be declared inside {container} type", self.kind().describe());
            let error = Diagnostic::error("syntax", self.span(), message);
            self.report(error.help("declare it before and use the name"));
            return Err(Reported);
        }
        self.simple_type(what)
    }

    /// `fixed<digits, scale>`, or `fixed` alone.
    fn fixed(&mut self) -> Parse<TypeKind> {
        self.advance();
        if !self.take_punct(Punct::Less) {
            return Ok(TypeKind::Fixed(None));
        }
        let parts = self.with_angle(true, |parser| {
            let digits = parser.expr("the number of digits")?;
            parser.expect_punct(Punct::Comma)?;
            Ok((digits, parser.expr("the number of digits behind the point")?))
        })?;
        self.expect_punct(Punct::Greater)?;
        Ok(TypeKind::Fixed(Some(Box::new(parts))))
    }

    /// `<n>`, if it is here.
    fn bound(&mut self, what: &str) -> Parse<Option<Expr>> {
        if !self.take_punct(Punct::Less) {
            return Ok(None);
        }
        let bound = self.with_angle(true, |parser| parser.expr(what))?;
        self.expect_punct(Punct::Greater)?;
        Ok(Some(bound))
    }

    pub(super) fn declarators(&mut self) -> Parse<Vec<Declarator>> {
        let mut declarators = vec![self.declarator()?];
        while self.take_punct(Punct::Comma) {
            declarators.push(self.declarator()?);
        }
        Ok(declarators)
    }

    fn declarator(&mut self) -> Parse<Declarator> {
        let name = self.new_ident("a name")?;
        let mut dims = Vec::new();
        while self.take_punct(Punct::BracketOpen) {
            dims.push(self.with_angle(false, |parser| parser.expr("the size of the array"))?);
            self.expect_punct(Punct::BracketClose)?;
        }
        Ok(Declarator { name, dims })
    }

    fn structure(&mut self) -> Parse<TypeKind> {
        self.advance();
        let name = self.new_ident("the name of the struct")?;
        let base = if self.take_punct(Punct::Colon) { Some(self.name("the base struct")?) } else { None };
        let open = self.expect_punct(Punct::BraceOpen)?;
        let members = self.with_angle(false, Self::members)?;
        self.close(open)?;
        Ok(TypeKind::Struct { name, base, members })
    }

    /// Members up to the `}`, which is left. A broken member is reported and left out.
    pub(super) fn members(&mut self) -> Parse<Vec<Member>> {
        let mut members = Vec::new();
        while !matches!(self.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End) {
            if *self.kind() == TokenKind::Pragma {
                let kind = self.pragma().map(MemberKind::Pragma);
                members.extend(kind.map(|kind| Member { head: Head::default(), kind }));
                continue;
            }
            let before = self.at;
            match self.member() {
                Ok(member) => members.push(member),
                Err(Reported) if self.gave_up => return Err(Reported),
                Err(Reported) => self.recover_from(before),
            }
        }
        Ok(members)
    }

    fn member(&mut self) -> Parse<Member> {
        let head = self.head()?;
        let ty = self.type_spec("the type of a member")?;
        let declarators = self.declarators()?;
        self.semicolon("this member")?;
        Ok(Member { head, kind: MemberKind::Data { ty, declarators } })
    }

    fn enumeration(&mut self) -> Parse<TypeKind> {
        self.advance();
        let name = self.new_ident("the name of the enum")?;
        let open = self.expect_punct(Punct::BraceOpen)?;
        let mut enumerators = Vec::new();
        if self.at_punct(Punct::BraceClose) {
            let message = format!("enum `{}` has no enumerators", name.text);
            self.report(Diagnostic::error("empty", name.span, message));
        } else {
            loop {
                let head = self.head()?;
                enumerators.push(Enumerator { head, name: self.new_ident("an enumerator")? });
                if !self.take_punct(Punct::Comma) {
                    break;
                }
                if self.at_punct(Punct::BraceClose) {
                    let error =
                        Diagnostic::error("syntax", self.last_span(), "a comma after the last enumerator");
                    self.report(error.help("remove it"));
                    break;
                }
            }
        }
        self.close(open)?;
        Ok(TypeKind::Enum { name, enumerators })
    }

    fn union(&mut self) -> Parse<TypeKind> {
        self.advance();
        let name = self.new_ident("the name of the union")?;
        if !self.take_keyword("switch") {
            return self.expected("`switch`");
        }
        self.expect_punct(Punct::ParenOpen)?;
        let head = self.head()?;
        let discriminator = self.type_spec("the type of the discriminator")?;
        self.expect_punct(Punct::ParenClose)?;
        let open = self.expect_punct(Punct::BraceOpen)?;
        let errors = self.out.errors();
        let mut cases = Vec::new();
        while !matches!(self.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End) {
            if *self.kind() == TokenKind::Pragma {
                let span = self.span();
                self.report(Diagnostic::error(
                    "bad-pragma",
                    span,
                    "a pragma cannot stand between the cases of a union",
                ));
                self.pragma();
                continue;
            }
            let before = self.at;
            match self.with_angle(false, Self::case) {
                Ok(case) => cases.push(case),
                Err(Reported) if self.gave_up => return Err(Reported),
                Err(Reported) => self.recover_from(before),
            }
        }
        self.close(open)?;
        if cases.is_empty() && self.out.errors() == errors {
            let message = format!("union `{}` has no members", name.text);
            self.report(Diagnostic::error("empty", name.span, message));
        }
        Ok(TypeKind::Union(Box::new(Union { name, head, discriminator, cases })))
    }

    /// Labels, then one member.
    fn case(&mut self) -> Parse<Case> {
        let before = self.head()?;
        let mut labels = Vec::new();
        loop {
            let start = self.span();
            if self.take_keyword("case") {
                let value = self.expr("the value of the label")?;
                labels.push((Some(value), start.to(self.last_span())));
            } else if self.take_keyword("default") {
                labels.push((None, start));
            } else {
                break;
            }
            self.expect_punct(Punct::Colon)?;
        }
        if labels.is_empty() {
            return self.expected("`case` or `default`");
        }
        let mut head = self.head()?;
        head.docs.lines.splice(0..0, before.docs.lines);
        head.annotations.splice(0..0, before.annotations);
        let ty = self.type_spec("the type of the member")?;
        let declarator = self.declarator()?;
        if self.at_punct(Punct::Comma) {
            let error = Diagnostic::error("syntax", self.span(), "a case of a union has one member");
            self.report(error.help("give each member labels of its own"));
            return Err(Reported);
        }
        self.semicolon("this member")?;
        Ok(Case { labels, head, ty, declarator })
    }
}
