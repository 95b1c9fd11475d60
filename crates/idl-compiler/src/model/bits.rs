//! Queries of bitsets and bitmasks.

use super::{BitField, DefId, DefKind, Model, Primitive};

impl Model {
    /// Returns all fields of a bitset, those of its bases first; empty for other definitions.
    pub fn all_bit_fields(&self, id: DefId) -> Vec<&BitField> {
        let base = |id: DefId| self.bitset(id).and_then(|body| body.base);
        // Terminates, because only a complete definition can be a base.
        let owners = std::iter::successors(Some(id), |at| base(*at));
        let mut owners: Vec<DefId> = owners.collect();
        owners.reverse();
        owners.into_iter().filter_map(|owner| self.bitset(owner)).flat_map(|body| &body.fields).collect()
    }

    /// Returns the integer type that holds a bitset or bitmask in memory and in CDR: the smallest unsigned
    /// one with enough bits. `uint8` for other definitions.
    pub fn holder_type(&self, id: DefId) -> Primitive {
        let bits = match &self.def(id).kind {
            DefKind::Bitset(_) => {
                self.all_bit_fields(id).into_iter().map(|field| u32::from(field.width)).sum()
            }
            DefKind::Bitmask(body) => u32::from(body.bit_bound),
            _ => 0,
        };
        match bits {
            0..=8 => Primitive::UInt8,
            9..=16 => Primitive::UShort,
            17..=32 => Primitive::ULong,
            _ => Primitive::ULongLong,
        }
    }
}
