//! The annotations of declarations, and the checks of the annotations that this compiler uses.

use std::collections::HashMap;

use super::bits;
use super::known::AnnotatedKind;
use super::scope::ScopeId;
use super::symbols::{Resolver, Symbols};
use crate::ast::Preamble;
use crate::diagnostic::Diagnostic;
use crate::model::{
    Annotation, Annotations, DefId, DefKind, Direction, Enumerator, Flavour, Model, Param, Primitive, Type,
    TypeId, ZeroCopyProblem,
};
use crate::source::Span;

impl Resolver<'_> {
    /// Resolves the annotations of a declaration. Invalid arguments are reported and left out.
    pub(super) fn annotations(
        &mut self,
        preamble: &Preamble,
        scope: ScopeId,
        place: AnnotatedKind,
    ) -> Annotations {
        self.check_allowed(preamble, place, scope);
        let resolved = |annotation: &crate::ast::Annotation| {
            let args = self.annotation_args(annotation, scope);
            Annotation { name: annotation.name.clone(), args, span: annotation.span }
        };
        Annotations(preamble.annotations.iter().map(resolved).collect())
    }
}

/// Checks that `@non_nil` is on references, or on sequences or arrays of them. An invalid type is `None`.
pub(super) fn check_non_nil(symbols: &mut Symbols<'_>, annotations: &Annotations, ty: Option<TypeId>) {
    let (Some(annotation), Some(ty)) = (annotations.get("non_nil"), ty) else { return };
    let mut innermost = ty;
    while let Type::Sequence { element, .. } | Type::Array { element, .. } = symbols.model.stripped(innermost)
    {
        innermost = *element;
    }
    if !symbols.model.is_reference(innermost) {
        let message =
            format!("`@non_nil` is not allowed on a value of type `{}`", symbols.model.describe(ty));
        let error = Diagnostic::error("bad-annotation", annotation.span, message);
        symbols.report(error.note("only object references can be nil"));
    }
}

/// Checks `@stream` on parameters: only the last argument can be received incrementally.
pub(super) fn check_streams(symbols: &mut Symbols<'_>, params: &[Param]) {
    let last = params.iter().rposition(|param| param.direction != Direction::Out);
    for (index, param) in params.iter().enumerate() {
        let Some(annotation) = param.annotations.get("stream") else { continue };
        let is_streamable = match symbols.model.stripped(param.ty) {
            Type::Sequence { element, bound: None } => can_be_streamed(&symbols.model, *element),
            _ => false,
        };
        let name = &param.name;
        let (message, note) = if !is_streamable {
            let ty = symbols.model.describe(param.ty);
            let note = "a stream must be a sequence without a bound, of `octet`, `char`, integers, `float`, `double` or `long double` without a range";
            (format!("`@stream` is not allowed on a parameter of type `{ty}`"), note)
        } else if param.direction != Direction::In {
            let note = "a stream cannot be both an argument and a result";
            (format!("`@stream` is not allowed on `{name}`, which is not an `in` parameter"), note)
        } else if last != Some(index) {
            let note = "arguments after a stream could be read only after the whole stream";
            (format!("`@stream` is not allowed on `{name}`, which is not the last argument"), note)
        } else {
            continue;
        };
        let error = Diagnostic::error("bad-annotation", annotation.span, message);
        symbols.report(error.note(note));
    }
}

/// Checks `@stream` on an operation, whose result is then sent while it is produced.
fn check_stream_result(symbols: &mut Symbols<'_>, id: DefId) {
    let def = symbols.model.def(id);
    let (DefKind::Operation(operation), Some(annotation)) = (&def.kind, def.annotations.get("stream")) else {
        return;
    };
    let name = &def.name;
    let owner = def.parent.and_then(|parent| symbols.model.interface(parent));
    let returned = operation.params.iter().find(|param| param.direction != Direction::In);
    let (message, note) = if owner.is_none_or(|interface| interface.flavour != Flavour::Plain) {
        let what = match owner.map(|interface| interface.flavour) {
            Some(Flavour::Local) => "a local interface",
            Some(Flavour::Abstract) => "an abstract interface",
            _ => "a value type",
        };
        (
            format!("`@stream` is not allowed in operation `{name}` of {what}"),
            "its calls may be calls inside the process, which send no messages",
        )
    } else if let Some(ty) = operation.result {
        if !matches!(symbols.model.stripped(ty), Type::Sequence { bound: None, .. }) {
            let ty = symbols.model.describe(ty);
            let note = "only a sequence without a bound can be sent while it is produced";
            (format!("`@stream` is not allowed on a result of type `{ty}`"), note)
        } else if let Some(param) = returned {
            let note = "results after a stream could be sent only after the whole stream";
            let other = &param.name;
            (format!("`@stream` is not allowed on `{name}`, which also returns `{other}`"), note)
        } else {
            return;
        }
    } else {
        let note = "`@stream` before an operation applies to its result; to stream an argument, write it before the parameter";
        (format!("`@stream` is not allowed on `{name}`, which has no result"), note)
    };
    let error = Diagnostic::error("bad-annotation", annotation.span, message);
    symbols.report(error.note(note));
}

/// Returns whether elements are encoded alike at every position, and every bit pattern is valid.
fn can_be_streamed(model: &Model, element: TypeId) -> bool {
    match model.stripped(element) {
        Type::Primitive(Primitive::Boolean | Primitive::WChar) => false,
        Type::Primitive(_) => model.ranged_typedef(element).is_none(),
        _ => false,
    }
}

/// Checks the numbers that `@value` gives enumerators. Warns if they are not the ordinals, which CORBA sends.
fn check_values(symbols: &mut Symbols<'_>, id: DefId) {
    let Some(body) = symbols.model.enumeration(id) else { return };
    let Some(values) = body.values() else { return };
    let spans: Vec<Span> = body
        .enumerators
        .iter()
        .map(|enumerator| enumerator.annotations.get("value").map_or(enumerator.span, |value| value.span))
        .collect();
    let mut seen: HashMap<i128, Span> = HashMap::new();
    let mut found = Vec::new();
    for (value, span) in values.iter().zip(&spans) {
        if i32::try_from(*value).is_err() {
            let error = Diagnostic::error("bad-annotation", *span, format!("{value} exceeds 32 bits"));
            found.push(error.note("the number of an enumerator must fit into 32 bits, including the sign"));
        } else if let Some(first) = seen.insert(*value, *span) {
            let message = format!("two enumerators have the number {value}");
            found.push(Diagnostic::error("bad-annotation", *span, message).and(first, "the first is here"));
        }
    }
    let differs = (0i128..).zip(&values).position(|(ordinal, value)| ordinal != *value);
    if let (true, Some(span)) = (found.is_empty(), differs.and_then(|at| spans.get(at))) {
        let message = "`@value` gives this enumerator a number other than the one that CORBA sends";
        let warning = Diagnostic::warning("bad-annotation", *span, message);
        found.push(warning.note(
            "an enumerator is sent as its position, counted from zero; in Rust, `value()` returns its number",
        ));
    }
    found.into_iter().for_each(|diagnostic| symbols.report(diagnostic));
}

/// Checks the annotations of an enum and its enumerators.
pub(super) fn check_enum(symbols: &mut Symbols<'_>, id: DefId) {
    check_values(symbols, id);
    let Some(body) = symbols.model.enumeration(id) else { return };
    let count = body.enumerators.len() as u64;
    let marked = |enumerator: &Enumerator| enumerator.annotations.get("default_literal").map(|a| a.span);
    let defaults: Vec<Span> = body.enumerators.iter().filter_map(marked).collect();
    if let [first, second, ..] = defaults.as_slice() {
        let error = Diagnostic::error("bad-annotation", *second, "duplicate `@default_literal`");
        symbols.report(error.and(*first, "the first is here"));
    }
    let annotations = symbols.model.def(id).annotations.clone();
    if let (Some(Some(bits)), Some(annotation)) =
        (bits::annotation_number(symbols, &annotations, "bit_bound", 1, 32), annotations.get("bit_bound"))
        && count > 1 << bits
    {
        let message = format!("`@bit_bound({bits})` has too few bits for {count} enumerators");
        symbols.report(Diagnostic::error("bad-annotation", annotation.span, message));
    }
}

/// Checks the annotations of a definition, after everything is resolved.
pub(super) fn check_definition(symbols: &mut Symbols<'_>, id: DefId) {
    let def = symbols.model.def(id);
    let annotations = def.annotations.clone();
    match &def.kind {
        DefKind::Operation(operation) => {
            let result = operation.result;
            check_stream_result(symbols, id);
            check_non_nil(symbols, &annotations, result);
        }
        DefKind::Attribute(attribute) => check_non_nil(symbols, &annotations, Some(attribute.ty)),
        DefKind::Typedef(alias) => check_non_nil(symbols, &annotations, Some(alias.ty)),
        DefKind::Struct(_) => check_zero_copy(symbols, id),
        _ => {}
    }
}

/// Reports `@stream` on a parameter of a factory.
pub(super) fn check_no_stream(symbols: &mut Symbols<'_>, annotations: &Annotations) {
    if let Some(annotation) = annotations.get("stream") {
        let message = "`@stream` is not allowed on a parameter of a factory";
        let error = Diagnostic::error("bad-annotation", annotation.span, message);
        symbols.report(error.note("only the last argument of an operation can be a stream"));
    }
}

fn check_zero_copy(symbols: &mut Symbols<'_>, id: DefId) {
    let def = symbols.model.def(id);
    let Some(annotation) = def.annotations.get("zero_copy") else { return };
    let Err(problem) = symbols.model.zero_copy_layout(id) else { return };
    let name = &def.name;
    let error = Diagnostic::error("zero-copy", annotation.span, format!("`{name}` cannot be `@zero_copy`"));
    let member = |index: usize| symbols.model.structure(id).and_then(|body| body.members.get(index));
    let error = match problem {
        ZeroCopyProblem::NotAStruct => error.note("only a struct with members can be `@zero_copy`"),
        ZeroCopyProblem::Member { index, span } => {
            let ty = member(index).map(|member| symbols.model.describe(member.ty)).unwrap_or_default();
            let error = error.and(span, format!("this member of type `{ty}` is not allowed"));
            error.note("a member must be an integer, `octet`, `char`, `float`, `double`, other `@zero_copy` struct, or an array of these, and must have neither `@optional` nor bounds")
        }
        ZeroCopyProblem::Misaligned { span, cdr, memory, .. } => {
            let label = format!("starts at byte {cdr} in CDR, but at byte {memory} in memory");
            error
                .and(span, label)
                .help("move the member to an offset that is the same in both, or put a member that fills the gap before it")
        }
        ZeroCopyProblem::TailPadding { missing } => {
            let last =
                symbols.model.structure(id).and_then(|body| body.members.last()).map(|member| member.span);
            let error = match last {
                Some(span) => {
                    error.and(span, format!("{missing} bytes of padding follow in memory, none in CDR"))
                }
                None => error,
            };
            error.help(format!("add a member of {missing} bytes at the end: `octet reserved[{missing}];`"))
        }
        ZeroCopyProblem::TooLarge => error.note("it has 2 GiB or more"),
    };
    symbols.report(error);
}
