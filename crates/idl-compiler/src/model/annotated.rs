//! What annotations ask for that are acted on.

use super::{
    Annotation, AnnotationValue, Annotations, ConstValue, DefId, Enum, Member, Model, Primitive, Type, TypeId,
};

impl Annotations {
    /// There is such an annotation, and it does not say `FALSE`.
    pub fn is_on(&self, name: &str) -> bool {
        let off = |annotation: &Annotation| constant(annotation, None) == Some(&ConstValue::Bool(false));
        self.get(name).is_some_and(|annotation| !off(annotation))
    }

    /// The member may be missing: `@optional`.
    pub fn is_optional(&self) -> bool {
        self.is_on("optional")
    }

    /// The value that the member has where nothing gives it another: `@default`, in the type of the member.
    pub fn default_value(&self) -> Option<&ConstValue> {
        constant(self.get("default")?, None)
    }

    /// There is a least or a greatest number: `@range`, `@min` or `@max`.
    pub fn has_range(&self) -> bool {
        ["range", "min", "max"].into_iter().any(|name| self.has(name))
    }
}

/// The constant of an annotation's only argument, or of one by its name.
fn constant<'a>(annotation: &'a Annotation, name: Option<&str>) -> Option<&'a ConstValue> {
    let arg = annotation.args.iter().find(|arg| name.is_none() || arg.name.as_deref() == name)?;
    match &arg.value {
        AnnotationValue::Const(value) => Some(value),
        AnnotationValue::Name(_) => None,
    }
}

impl Enum {
    /// Which enumerator is the default: the first, or the one that `@default_literal` stands on.
    pub fn default_ordinal(&self) -> usize {
        let marked = self.enumerators.iter().position(|e| e.annotations.has("default_literal"));
        marked.unwrap_or(0)
    }

    /// The numbers of the enumerators where `@value` gives any: one without it has that of the one before and one more, the first 0. The
    /// wire has their positions all the same.
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

/// The numbers between which others are, which belong to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The least.
    pub min: ConstValue,
    /// The greatest.
    pub max: ConstValue,
}

impl Model {
    /// The least and greatest number that annotations give to what has this type; those of the type, of floating types
    /// the infinities, where only one is said. `None` where they say none, or the type has no such numbers.
    pub fn bounds(&self, annotations: &Annotations, ty: TypeId) -> Option<Bounds> {
        if !annotations.has_range() {
            return None;
        }
        let (least, most) = self.extremes(ty)?;
        let end = |name: &str| {
            let in_range = annotations.get("range").and_then(|range| constant(range, Some(name)));
            in_range.or_else(|| constant(annotations.get(name)?, None)).cloned()
        };
        Some(Bounds { min: end("min").unwrap_or(least), max: end("max").unwrap_or(most) })
    }

    /// The least and the greatest number of a numeric type.
    pub(crate) fn extremes(&self, ty: TypeId) -> Option<(ConstValue, ConstValue)> {
        match self.stripped(ty) {
            Type::Primitive(Primitive::Float | Primitive::Double) => {
                Some((ConstValue::Float(f64::NEG_INFINITY), ConstValue::Float(f64::INFINITY)))
            }
            Type::Primitive(primitive) => {
                let (least, most) = primitive.integer_range()?;
                Some((ConstValue::Integer(least), ConstValue::Integer(most)))
            }
            Type::Fixed { digits, scale } => {
                let nines = 10_i128.pow(u32::from(*digits)) - 1;
                let fixed = |unscaled| ConstValue::Fixed { unscaled, scale: *scale };
                Some((fixed(-nines), fixed(nines)))
            }
            _ => None,
        }
    }

    /// The typedef under which the type has bounds: the type itself, or one that it is another name of.
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

    /// The member's encoding and its values are those of its type and of nothing else: it is not optional and has no
    /// bounds.
    pub fn is_plain(&self, member: &Member) -> bool {
        !member.annotations.is_optional()
            && !member.annotations.has_range()
            && self.ranged_typedef(member.ty).is_none()
    }

    /// The number is not less than the other; both are of this type.
    pub(crate) fn at_least(&self, ty: TypeId, value: &ConstValue, least: &ConstValue) -> bool {
        match (value, least) {
            (ConstValue::Integer(value), ConstValue::Integer(least)) => value >= least,
            (ConstValue::Float(value), ConstValue::Float(least)) => value >= least,
            _ => match (self.unscaled(ty, value), self.unscaled(ty, least)) {
                (Some(value), Some(least)) => value >= least,
                _ => false,
            },
        }
    }

    /// The digits of a decimal number in the type `fixed` that it was checked against, without the point.
    pub(crate) fn unscaled(&self, ty: TypeId, value: &ConstValue) -> Option<i128> {
        match (value, self.stripped(ty)) {
            (ConstValue::Fixed { unscaled, scale }, Type::Fixed { scale: places, .. }) => {
                Some(unscaled.saturating_mul(10_i128.pow(u32::from(places.saturating_sub(*scale)))))
            }
            _ => None,
        }
    }
}
