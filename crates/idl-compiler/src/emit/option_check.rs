//! The check of options against a model.

use super::hybrid_types::is_type;
use super::options::{OptionProblem, Options, covers, is_relative};
use super::{external, ident, names};
use crate::model::{DefKind, Flavour, Model, ValueModifier};

impl Options {
    /// Returns the invalid options for this model, in the order of the entries.
    pub fn check(&self, model: &Model) -> Vec<OptionProblem> {
        let known = names::renamable_names(model);
        let check = |(index, (idl, rust)): (usize, &(String, String))| {
            if !known.contains(idl.trim_start_matches("::")) {
                return Some(OptionProblem::UnknownName(index));
            }
            (!ident::is_identifier(rust)).then_some(OptionProblem::NotAnIdentifier(index))
        };
        let external = (0..self.external.len()).filter_map(|index| external::problem(model, self, index));
        // `*` is valid even if it matches nothing.
        let matches_any = |pattern: &str, has_kind: fn(&DefKind) -> bool| {
            let mut defs = model.defs().iter().filter(|def| has_kind(&def.kind));
            pattern == "*" || defs.any(|def| covers(model, pattern, def.id))
        };
        let derive = self.derive.iter().enumerate().filter_map(|(index, (pattern, _))| {
            (!matches_any(pattern, derives)).then_some(OptionProblem::UnmatchedDerive(index))
        });
        let bodies = self.default_bodies.iter().enumerate().filter_map(|(index, pattern)| {
            let has_body = |kind: &DefKind| matches!(kind, DefKind::Operation(_) | DefKind::Attribute(_));
            (!matches_any(pattern, has_body)).then_some(OptionProblem::UnmatchedDefaultBody(index))
        });
        let ami = self.ami.iter().enumerate().filter_map(|(index, pattern)| {
            let is_plain = |kind: &DefKind| {
                matches!(kind, DefKind::Interface(interface) if interface.flavour == Flavour::Plain)
            };
            (!matches_any(pattern, is_plain)).then_some(OptionProblem::UnmatchedAmi(index))
        });
        let interpretive = self.interpretive.iter().enumerate().filter_map(|(index, pattern)| {
            let has_kind = |kind: &DefKind| is_type(kind) || matches!(kind, DefKind::Interface(_));
            (!matches_any(pattern, has_kind)).then_some(OptionProblem::UnmatchedInterpretive(index))
        });
        let adaptive = self.adaptive.iter().enumerate().filter_map(|(index, (pattern, uses))| match uses {
            0 => Some(OptionProblem::ZeroUses(index)),
            _ => (!matches_any(pattern, is_type)).then_some(OptionProblem::UnmatchedAdaptive(index)),
        });
        let invalid_name = self.uses.as_ref().filter(|name| !ident::is_identifier(name));
        let hybrid = interpretive.chain(adaptive).chain(invalid_name.map(|_| OptionProblem::InvalidUsesName));
        let relative = is_relative(&self.runtime).then_some(OptionProblem::RelativeRuntime);
        let renamed = self.rename.iter().enumerate().filter_map(check);
        renamed.chain(external).chain(derive).chain(bodies).chain(ami).chain(hybrid).chain(relative).collect()
    }
}

/// Returns whether derives apply to definitions of this kind.
fn derives(kind: &DefKind) -> bool {
    match kind {
        DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_) => true,
        DefKind::Bitset(_) | DefKind::Bitmask(_) => true,
        DefKind::Value(value) => value.modifier != ValueModifier::Abstract,
        DefKind::ValueBox(_) => true,
        _ => false,
    }
}
