//! Queries of the annotations that the compiler uses.

use super::{
    Annotation, AnnotationValue, Annotations, ConstValue, DefId, Enum, Member, Model, Primitive, Type, TypeId,
};

impl Annotations {
    /// Returns whether the annotation is present and its value is not `FALSE`.
    pub fn is_on(&self, name: &str) -> bool {
        let off = |annotation: &Annotation| constant(annotation, None) == Some(&ConstValue::Bool(false));
        self.get(name).is_some_and(|annotation| !off(annotation))
    }

    /// Returns whether the member is `@optional`.
    pub fn is_optional(&self) -> bool {
        self.is_on("optional")
    }

    /// Returns the value of `@default`, which has the type of the member.
    pub fn default_value(&self) -> Option<&ConstValue> {
        constant(self.get("default")?, None)
    }

    /// Returns whether there is a minimum or a maximum: `@range`, `@min` or `@max`.
    pub fn has_range(&self) -> bool {
        ["range", "min", "max"].into_iter().any(|name| self.has(name))
    }
}

/// Returns the constant of an annotation's only argument, or of the argument with this name.
fn constant<'a>(annotation: &'a Annotation, name: Option<&str>) -> Option<&'a ConstValue> {
    let arg = annotation.args.iter().find(|arg| name.is_none() || arg.name.as_deref() == name)?;
    match &arg.value {
        AnnotationValue::Const(value) => Some(value),
        AnnotationValue::Name(_) => None,
    }
}

impl Enum {
    /// Returns the ordinal of the default enumerator: the one with `@default_literal`, or else the first.
    pub fn default_ordinal(&self) -> usize {
        let marked = self.enumerators.iter().position(|e| e.annotations.has("default_literal"));
        marked.unwrap_or(0)
    }

    /// Returns the numbers of the enumerators; `None` if no enumerator has `@value`. An enumerator without
    /// `@value` has the number of the previous one plus one, the first has 0. Encodings always use the
    /// ordinals.
    pub fn values(&self) -> Option<Vec<i128>> {
        if !self.enumerators.iter().any(|enumerator| enumerator.annotations.has("value")) {
            return None;
        }
        let mut next = 0;
        let value = |enumerator: &super::Enumerator| {
            let given = enumerator.annotations.get("value").and_then(|annotation| constant(annotation, None));
            if let Some(ConstValue::Integer(given)) = given {
                next = *given;
            }
            next += 1;
            next - 1
        };
        Some(self.enumerators.iter().map(value).collect())
    }
}

/// The inclusive bounds of a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The minimum.
    pub min: ConstValue,
    /// The maximum.
    pub max: ConstValue,
}

impl Model {
    /// Returns the minimum and maximum that annotations set for a value of this type. If only one of them is
    /// set, the other one is the limit of the type, or an infinity for `float` and `double`. Returns `None`
    /// if neither is set, or if the type is not an integer, `octet`, `float`, `double` or `fixed` type.
    pub fn bounds(&self, annotations: &Annotations, ty: TypeId) -> Option<Bounds> {
        if !annotations.has_range() {
            return None;
        }
        let (min, max) = self.numeric_range(ty)?;
        let end = |name: &str| {
            let in_range = annotations.get("range").and_then(|range| constant(range, Some(name)));
            in_range.or_else(|| constant(annotations.get(name)?, None)).cloned()
        };
        Some(Bounds { min: end("min").unwrap_or(min), max: end("max").unwrap_or(max) })
    }

    pub(crate) fn numeric_range(&self, ty: TypeId) -> Option<(ConstValue, ConstValue)> {
        match self.stripped(ty) {
            Type::Primitive(Primitive::Float | Primitive::Double) => {
                Some((ConstValue::Float(f64::NEG_INFINITY), ConstValue::Float(f64::INFINITY)))
            }
            Type::Primitive(primitive) => {
                let (min, max) = primitive.integer_range()?;
                Some((ConstValue::Integer(min), ConstValue::Integer(max)))
            }
            Type::Fixed { digits, scale } => {
                let nines = 10_i128.pow(u32::from(*digits)) - 1;
                let fixed = |unscaled| ConstValue::Fixed { unscaled, scale: *scale };
                Some((fixed(-nines), fixed(nines)))
            }
            _ => None,
        }
    }

    /// Returns the typedef that gives the type its bounds: the type itself, or a typedef of which it is an
    /// alias.
    pub fn ranged_typedef(&self, ty: TypeId) -> Option<DefId> {
        let mut at = ty;
        while let Type::Named(def) = self.ty(at) {
            let alias = self.typedef(*def)?;
            if self.def(*def).annotations.has_range() {
                return Some(*def);
            }
            at = alias.ty;
        }
        None
    }

    /// Returns whether the member has no bounds and is not optional, so that it is encoded like its type.
    pub fn is_plain(&self, member: &Member) -> bool {
        !member.annotations.is_optional()
            && !member.annotations.has_range()
            && self.ranged_typedef(member.ty).is_none()
    }

    pub(crate) fn at_least(&self, ty: TypeId, value: &ConstValue, min: &ConstValue) -> bool {
        match (value, min) {
            (ConstValue::Integer(value), ConstValue::Integer(min)) => value >= min,
            (ConstValue::Float(value), ConstValue::Float(min)) => value >= min,
            _ => match (self.unscaled(ty, value), self.unscaled(ty, min)) {
                (Some(value), Some(min)) => value >= min,
                _ => false,
            },
        }
    }

    /// Returns a decimal number as an integer: its value multiplied by ten to the power of the scale of the
    /// `fixed` type `ty`. `None` for other values or types.
    pub(crate) fn unscaled(&self, ty: TypeId, value: &ConstValue) -> Option<i128> {
        match (value, self.stripped(ty)) {
            (ConstValue::Fixed { unscaled, scale }, Type::Fixed { scale: places, .. }) => {
                Some(unscaled.saturating_mul(10_i128.pow(u32::from(places.saturating_sub(*scale)))))
            }
            _ => None,
        }
    }
}
