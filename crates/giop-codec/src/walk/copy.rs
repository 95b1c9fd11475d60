//! Copies of values to another stream, whose byte order, version, code sets and alignment may differ.

use super::MAX_NESTED_ANYS;
use super::custom::canonical_encoder;
use super::graph::GraphState;
use super::run::{StepActions, check_fits, read_length, run_steps};
use super::skip::read_exception_id;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, check_bound};
use crate::ior::Ior;
use crate::program::{EMPTY_VALUE_CHARGE_BYTES, Index, LabelEncoding, Plan, read_decimal};
use crate::typecode::{Nodes, TypeCode};
use crate::value::write;
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

#[derive(Debug)]
pub(crate) enum CopyError {
    Decode(DecodeError),
    Encode(EncodeError),
}

/// What a copied value contains; see [`Contents`](crate::program::Contents).
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) has_references: bool,
    pub(crate) has_value_types: bool,
}

/// Copies one value of this type. The size of the output is deducted from the decoder's memory limit.
pub(crate) fn copy(code: &TypeCode, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Findings, CopyError> {
    Copier::new(e).copy_whole(code, d)
}

/// Skips a value that may contain values of value types, by copying it and discarding the copy.
pub(crate) fn skip_by_copying(code: &TypeCode, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let start = d.position();
    let mut unused = canonical_encoder();
    let mut copier = Copier::new(&mut unused);
    copier.discards_output = true;
    match copier.copy_whole(code, d) {
        Ok(_) => Ok(()),
        Err(CopyError::Decode(error)) => Err(error),
        Err(CopyError::Encode(_)) => Err(DecodeError::new(DecodeErrorKind::Malformed, start)),
    }
}

/// Copies one value like [`copy`], but writes the ids of all known bases into headers of value types.
pub(crate) fn copy_with_ids(
    code: &TypeCode,
    d: &mut Decoder<'_>,
    e: &mut Encoder,
) -> Result<Findings, CopyError> {
    let mut copier = Copier::new(e);
    copier.graph.writes_all_ids = true;
    copier.copy_whole(code, d)
}

pub(super) struct Copier<'a> {
    pub(super) e: &'a mut Encoder,
    /// The length of the encoder's data for which the decoder's memory limit has been reduced.
    charged_len: usize,
    pub(super) nested_anys: usize,
    /// The error of the encoder. While it is set, a decode error that stands for it is propagated.
    encode_error: Option<EncodeError>,
    pub(super) findings: Findings,
    pub(super) graph: GraphState,
    /// Whether the whole output is discarded.
    pub(super) discards_output: bool,
}

pub(super) type CopyResult = Result<(), DecodeError>;

impl<'a> Copier<'a> {
    pub(super) fn new(e: &'a mut Encoder) -> Copier<'a> {
        let charged_len = e.len();
        Copier {
            e,
            charged_len,
            nested_anys: 0,
            encode_error: None,
            findings: Findings::default(),
            graph: GraphState::default(),
            discards_output: false,
        }
    }

    fn copy_whole(mut self, code: &TypeCode, d: &mut Decoder<'_>) -> Result<Findings, CopyError> {
        let Err(error) = self.any_value(d, code) else { return Ok(self.findings) };
        // The output is incomplete, so no later indirection may refer to anything in it.
        write::forget_values(self.e);
        Err(self.encode_error.map_or(CopyError::Decode(error), CopyError::Encode))
    }

    /// Calls `f` with the encoder. Stores its error, and returns a decode error that stands for it.
    pub(super) fn put<R>(
        &mut self,
        d: &Decoder<'_>,
        f: impl FnOnce(&mut Encoder) -> Result<R, EncodeError>,
    ) -> Result<R, DecodeError> {
        f(self.e).map_err(|error| {
            self.encode_error = Some(error);
            d.error(DecodeErrorKind::Malformed)
        })
    }

    /// Copies a value of this type. A value without bytes is charged to the decoder's memory limit.
    fn any_value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> CopyResult {
        let start = d.position();
        self.value(d, &code.nodes, code.root)?;
        if d.position() == start { d.charge(EMPTY_VALUE_CHARGE_BYTES) } else { Ok(()) }
    }

    pub(super) fn value(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> CopyResult {
        let steps = nodes.steps();
        run_steps(steps, nodes, self, d, steps.entry(index))
    }
}

impl StepActions for Copier<'_> {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> CopyResult {
        plan.copy(d, self.e, 1)
    }

    fn fixed_elements(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> CopyResult {
        plan.copy(d, self.e, count)
    }

    fn on_count(&mut self, d: &mut Decoder<'_>, count: usize) -> CopyResult {
        self.put(d, |e| e.put_len(count))
    }

    /// Returns an error, because a reader could not validate the count against the remaining bytes.
    #[cold]
    fn on_empty_elements(&mut self, _: &mut Decoder<'_>, first: usize) -> CopyResult {
        Err(DecodeError::new(DecodeErrorKind::NotInAny, first))
    }

    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> CopyResult {
        if wide {
            let text = d.read_wstring()?;
            check_fits(d, bound, || check_bound(&text, bound as usize).is_ok())?;
            return self.put(d, |e| e.put_wstr(&text));
        }
        let text = d.read_string_cow()?;
        check_fits(d, bound, || check_bound(&*text, bound as usize).is_ok())?;
        self.put(d, |e| e.put_str(&text))
    }

    fn wchar(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let unit = d.read_wchar()?;
        self.put(d, |e| e.put_wchar(unit))
    }

    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> CopyResult {
        let (bytes, width) = read_decimal(d, digits)?;
        self.e.put_raw(bytes.get(bytes.len() - width..).unwrap_or_default());
        Ok(())
    }

    fn label(&mut self, d: &mut Decoder<'_>, labels: LabelEncoding) -> Result<i64, DecodeError> {
        let label = labels.read(d)?;
        self.put(d, |e| labels.write(e, label))?;
        Ok(label)
    }

    fn any(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        if self.nested_anys >= MAX_NESTED_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit));
        }
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        self.put(d, |e| code.encode(e))?;
        self.nested_anys += 1;
        d.nested(|d| self.any_value(d, &code))?;
        self.nested_anys -= 1;
        Ok(())
    }

    fn type_code(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let code = TypeCode::decode(d)?;
        self.put(d, |e| code.encode(e))
    }

    fn object(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        self.findings.has_references = true;
        let ior = Ior::decode(d)?;
        self.put(d, |e| ior.encode(e))
    }

    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> CopyResult {
        self.copy_graph(d, nodes, declared)
    }

    fn principal(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let count = read_length(d, 1)?;
        self.on_count(d, count)?;
        let bytes = d.take_shared(count)?;
        self.e.put_shared_ref(&bytes);
        Ok(())
    }

    fn exception_id(&mut self, d: &mut Decoder<'_>, id: &str) -> CopyResult {
        read_exception_id(d, id)?;
        self.put(d, |e| e.put_unconverted_str(id))
    }

    #[inline]
    fn after_step(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let written = self.e.len().saturating_sub(self.charged_len);
        self.charged_len += written;
        d.charge(written)
    }
}

impl From<CopyError> for EncodeError {
    /// Converts an error in copying a local value. A decode error means that the value itself is invalid.
    fn from(fault: CopyError) -> EncodeError {
        match fault {
            CopyError::Encode(error) => error,
            CopyError::Decode(DecodeError {
                kind:
                    DecodeErrorKind::InvalidText
                    | DecodeErrorKind::InvalidWideText
                    | DecodeErrorKind::CharNotInCodeSet,
                ..
            }) => EncodeErrorKind::CharNotInCodeSet.into(),
            CopyError::Decode(_) => EncodeErrorKind::Unrepresentable.into(),
        }
    }
}
