//! Bitsets, bitmasks, maps and annotation declarations. Elsewhere, their keywords may be used as names.

use super::input::Input;
use super::item::ScopeKind;
use super::parser::{Parse, Parser};
use crate::ast::{AnnotationDef, AnnotationMember, BitField, Bitmask, Bitset, ItemKind, TypeKind};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// Parses a definition of IDL 4 up to its `;`, if one starts here. Returns it and its description.
    pub(super) fn idl4_item(&mut self) -> Option<Parse<(ItemKind, &'static str)>> {
        match self.input.kind() {
            TokenKind::Punct(Punct::At) => {
                self.input.advance();
                Some(self.annotation_def().map(|def| (ItemKind::AnnotationDef(def), "this annotation")))
            }
            TokenKind::Ident { .. }
                if at_definition(&self.input, "bitset", &[Punct::Colon, Punct::BraceOpen]) =>
            {
                Some(self.bitset().map(|bitset| (ItemKind::Bitset(bitset), "this bitset")))
            }
            TokenKind::Ident { .. } if at_definition(&self.input, "bitmask", &[Punct::BraceOpen]) => {
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
        let fields = self.until_brace(|parser| parser.outside_angles(Self::bit_field))?;
        self.input.close_brace(open)?;
        Ok(Bitset { name, base, fields })
    }

    fn bit_field(&mut self) -> Parse<BitField> {
        let preamble = self.preamble()?;
        let span = self.input.span();
        match self.input.kind() {
            TokenKind::Ident { text, escaped: false } if text == "bitfield" => self.input.advance(),
            _ => return self.input.expected("`bitfield`"),
        }
        self.input.expect_punct(Punct::Less)?;
        let (width, ty) = self.inside_angles(|parser| {
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
        Ok(BitField { preamble, width, ty, names, span })
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
        let (key, value, bound) = self.inside_angles(|parser| {
            let key = parser.nested_element("a map", "the type of the keys")?;
            parser.input.expect_punct(Punct::Comma)?;
            let value = parser.nested_element("a map", "the type of the values")?;
            Ok((key, value, parser.comma_bound()?))
        })?;
        self.input.expect_punct(Punct::Greater)?;
        Ok(TypeKind::Map { key, value, bound })
    }

    /// Parses `@annotation name { ... }`, starting after the `@`.
    fn annotation_def(&mut self) -> Parse<AnnotationDef> {
        self.input.advance();
        let name = self.input.new_ident("the name of the annotation")?;
        let open = self.input.expect_punct(Punct::BraceOpen)?;
        let (mut members, mut items) = (Vec::new(), Vec::new());
        self.until_brace(|parser| {
            match parser.input.kind() {
                TokenKind::Keyword("enum" | "const" | "typedef") => {
                    items.push(parser.nested(|parser| parser.module_or_item(ScopeKind::File))?);
                }
                _ => members.push(parser.annotation_member()?),
            }
            Ok(())
        })?;
        self.input.close_brace(open)?;
        Ok(AnnotationDef { name, members, items })
    }

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

/// Returns whether the keyword `word`, a name and one of the punctuation marks `after_name` start here.
fn at_definition(input: &Input<'_>, word: &str, after_name: &[Punct]) -> bool {
    input.at_contextual_keyword(word)
        && matches!(input.kind_at(1), TokenKind::Ident { .. })
        && matches!(input.kind_at(2), TokenKind::Punct(punct) if after_name.contains(punct))
}
