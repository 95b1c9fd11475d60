//! Additions of IDL 4: bitsets, bitmasks, maps and declarations of annotations. Elsewhere, their keywords are
//! ordinary names.

use super::input::Input;
use super::item::ScopeKind;
use super::parser::{Parse, Parser, Reported};
use crate::ast::{AnnotationDef, AnnotationMember, BitField, Bitmask, Bitset, ItemKind, TypeKind};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// Parses a definition that IDL 4 adds, without the `;` after it; `None` if no such definition starts
    /// here. Also returns a description for messages.
    pub(super) fn idl4_item(&mut self) -> Option<Parse<(ItemKind, &'static str)>> {
        match self.input.kind() {
            TokenKind::Punct(Punct::At) => {
                self.input.advance();
                Some(self.annotation_def().map(|def| (ItemKind::AnnotationDef(def), "this annotation")))
            }
            TokenKind::Ident { .. } if at_definition(&self.input, "bitset", true) => {
                Some(self.bitset().map(|bitset| (ItemKind::Bitset(bitset), "this bitset")))
            }
            TokenKind::Ident { .. } if at_definition(&self.input, "bitmask", false) => {
                Some(self.bitmask().map(|bitmask| (ItemKind::Bitmask(bitmask), "this bitmask")))
            }
            _ => None,
        }
    }

    fn bitset(&mut self) -> Parse<Bitset> {
        self.input.advance();
        let name = self.input.new_ident("the name of the bitset")?;
        let base = self.base("the base bitset")?;
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let mut fields = Vec::new();
        while !matches!(self.input.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End) {
            let before = self.input.at;
            match self.with_angle(false, Self::bit_field) {
                Ok(field) => fields.push(field),
                Err(Reported) if self.input.silenced => return Err(Reported),
                Err(Reported) => self.recover_from(before),
            }
        }
        self.input.close_brace(open)?;
        Ok(Bitset { name, base, fields })
    }

    /// Parses `bitfield<3> a, b;`, `bitfield<12, short> c;` or `bitfield<4>;`.
    fn bit_field(&mut self) -> Parse<BitField> {
        let head = self.head()?;
        let span = self.input.span();
        match self.input.kind() {
            TokenKind::Ident { text, escaped: false } if text == "bitfield" => self.input.advance(),
            _ => return self.input.expected("`bitfield`"),
        }
        self.input.expect_punct(Punct::Less)?;
        let (width, ty) = self.with_angle(true, |parser| {
            let width = parser.expr("the number of bits")?;
            let ty = match parser.input.take_punct(Punct::Comma) {
                true => Some(parser.simple_type("the type of the field")?),
                false => None,
            };
            Ok((width, ty))
        })?;
        self.input.expect_punct(Punct::Greater)?;
        let mut names = Vec::new();
        if matches!(self.input.kind(), TokenKind::Ident { .. } | TokenKind::Keyword(_)) {
            names.push(self.input.new_ident("the name of the field")?);
            // The grammar separates names by blanks, but existing texts use commas.
            while self.input.take_punct(Punct::Comma) || matches!(self.input.kind(), TokenKind::Ident { .. })
            {
                names.push(self.input.new_ident("the name of a field")?);
            }
        }
        self.semicolon("this field")?;
        Ok(BitField { head, width, ty, names, span })
    }

    fn bitmask(&mut self) -> Parse<Bitmask> {
        self.input.advance();
        let name = self.input.new_ident("the name of the bitmask")?;
        let flags = self.enumerators(&name, "bitmask", "a flag")?;
        Ok(Bitmask { name, flags })
    }

    /// Parses `map<K, V>` or `map<K, V, N>`. The keyword is the current token.
    pub(super) fn map(&mut self) -> Parse<TypeKind> {
        self.input.advance();
        self.input.expect_punct(Punct::Less)?;
        let outer = std::mem::replace(&mut self.in_angle, true);
        let key = self.nested_element("a map", "the type of the keys");
        let key = key.and_then(|key| self.input.expect_punct(Punct::Comma).map(|_| key));
        let value = match &key {
            Ok(_) => self.nested_element("a map", "the type of the values"),
            Err(Reported) => Err(Reported),
        };
        let value = value.and_then(|value| Ok((value, self.comma_bound()?)));
        self.in_angle = outer;
        let (key, (value, bound)) = (key?, value?);
        self.input.expect_punct(Punct::Greater)?;
        Ok(TypeKind::Map { key, value, bound })
    }

    /// Parses `@annotation name { ... }`, starting after the `@`.
    fn annotation_def(&mut self) -> Parse<AnnotationDef> {
        self.input.advance();
        let name = self.input.new_ident("the name of the annotation")?;
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let (mut members, mut items) = (Vec::new(), Vec::new());
        while !matches!(self.input.kind(), TokenKind::Punct(Punct::BraceClose) | TokenKind::End) {
            let before = self.input.at;
            let result = match self.input.kind() {
                TokenKind::Keyword("enum" | "const" | "typedef") => {
                    self.nested(|parser| parser.module_or_item(ScopeKind::File)).map(|item| items.push(item))
                }
                _ => self.annotation_member().map(|member| members.push(member)),
            };
            match result {
                Ok(()) => {}
                Err(Reported) if self.input.silenced => return Err(Reported),
                Err(Reported) => self.recover_from(before),
            }
        }
        self.input.close_brace(open)?;
        Ok(AnnotationDef { name, members, items })
    }

    /// Parses `long value default 5;`.
    fn annotation_member(&mut self) -> Parse<AnnotationMember> {
        let ty = self.simple_type("the type of a member")?;
        let name = self.input.new_ident("the name of the member")?;
        let default = match self.input.take_keyword("default") {
            true => Some(self.expr("the default value")?),
            false => None,
        };
        self.semicolon("this member")?;
        Ok(AnnotationMember { ty, name, default })
    }
}

/// Returns whether a definition starts here with the keyword `word`: `bitset B {` or, if it can have a base,
/// `bitset B : A {`.
fn at_definition(input: &Input<'_>, word: &str, can_have_base: bool) -> bool {
    let starts_body = match input.kind_at(2) {
        TokenKind::Punct(Punct::BraceOpen) => true,
        TokenKind::Punct(Punct::Colon) => can_have_base,
        _ => false,
    };
    input.at_contextual_keyword(word) && matches!(input.kind_at(1), TokenKind::Ident { .. }) && starts_body
}
