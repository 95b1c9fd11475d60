//! Copies of values from one stream to another, whose byte order, phase, version and code sets may differ.

use super::MAX_ANYS;
use super::custom::canonical_encoder;
use super::graph::GraphState;
use super::run::{StepActions, check_fits, read_length, run};
use super::skip::read_except_id;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, check_bound};
use crate::ior::Ior;
use crate::program::{EMPTY_VALUE_CHARGE, Index, Labels, Plan, read_decimal};
use crate::typecode::{Nodes, TypeCode};
use crate::value::write;
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The reason why a value was not copied, by the stream at fault.
#[derive(Debug)]
pub(crate) enum CopyError {
    Decode(DecodeError),
    Encode(EncodeError),
}

/// The contents that were found in a copied value, as in [`Contents`](crate::program::Contents).
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) references: bool,
    pub(crate) graphs: bool,
}

/// Copies one value of this type. Copies runs of numbers and bytes whole, and charges the decoder for the
/// output.
pub(crate) fn copy(code: &TypeCode, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Findings, CopyError> {
    Copier::new(e).copy_whole(code, d)
}

/// Skips a value that may contain values of value types.
pub(crate) fn skip_by_copying(code: &TypeCode, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let start = d.position();
    let mut unused = canonical_encoder();
    let mut copier = Copier::new(&mut unused);
    copier.discards_all = true;
    match copier.copy_whole(code, d) {
        Ok(_) => Ok(()),
        Err(CopyError::Decode(error)) => Err(error),
        Err(CopyError::Encode(_)) => Err(DecodeError::new(DecodeErrorKind::Malformed, start)),
    }
}

/// Copies one value like [`copy`], with the repository ids of all known bases in the headers of its values.
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
    /// The output in bytes that was charged to the decoder.
    charged: usize,
    pub(super) anys: usize,
    /// The encode error, while an unspecific decode error is propagated.
    encode_error: Option<EncodeError>,
    pub(super) findings: Findings,
    pub(super) graph: GraphState,
    /// Whether the whole output is discarded.
    pub(super) discards_all: bool,
}

pub(super) type CopyResult = Result<(), DecodeError>;

impl<'a> Copier<'a> {
    pub(super) fn new(e: &'a mut Encoder) -> Copier<'a> {
        let charged = e.len();
        Copier {
            e,
            charged,
            anys: 0,
            encode_error: None,
            findings: Findings::default(),
            graph: GraphState::default(),
            discards_all: false,
        }
    }

    fn copy_whole(mut self, code: &TypeCode, d: &mut Decoder<'_>) -> Result<Findings, CopyError> {
        let Err(error) = self.any_value(d, code) else { return Ok(self.findings) };
        // The output is incomplete, so that nothing in it may be referred to.
        write::forget_values(self.e);
        Err(self.encode_error.map_or(CopyError::Decode(error), CopyError::Encode))
    }

    /// Calls `f` with the encoder. Stores its error, and returns an unspecific one in place of it.
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

    /// Copies a value of this type, and charges for one that takes no bytes.
    fn any_value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> CopyResult {
        let start = d.position();
        self.value(d, &code.nodes, code.root)?;
        if d.position() == start { d.charge(EMPTY_VALUE_CHARGE) } else { Ok(()) }
    }

    pub(super) fn value(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> CopyResult {
        let steps = nodes.compiled();
        run(steps, nodes, self, d, steps.entry(index))
    }
}

impl StepActions for Copier<'_> {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> CopyResult {
        plan.copy(d, self.e, 1)
    }

    fn run(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> CopyResult {
        plan.copy(d, self.e, count)
    }

    fn on_count(&mut self, d: &mut Decoder<'_>, count: usize) -> CopyResult {
        self.put(d, |e| e.put_len(count))
    }

    /// Returns an error: the count of such elements could not be validated against the remaining bytes.
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
        let text = d.read_string_ref()?;
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

    fn label(&mut self, d: &mut Decoder<'_>, labels: Labels) -> Result<i64, DecodeError> {
        let label = labels.read(d, false)?;
        self.put(d, |e| labels.write(e, label))?;
        Ok(label)
    }

    fn any(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        if self.anys >= MAX_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit));
        }
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        self.put(d, |e| code.encode(e))?;
        self.anys += 1;
        d.nested(|d| self.any_value(d, &code))?;
        self.anys -= 1;
        Ok(())
    }

    fn type_code(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let code = TypeCode::decode(d)?;
        self.put(d, |e| code.encode(e))
    }

    fn object(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        self.findings.references = true;
        let ior = Ior::decode(d)?;
        self.put(d, |e| ior.encode(e))
    }

    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> CopyResult {
        self.copy_graph(d, nodes, place)
    }

    fn principal(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let count = read_length(d, 1)?;
        self.on_count(d, count)?;
        let bytes = d.take_shared(count)?;
        self.e.put_shared_ref(&bytes);
        Ok(())
    }

    fn except_id(&mut self, d: &mut Decoder<'_>, id: &str) -> CopyResult {
        read_except_id(d, id)?;
        self.put(d, |e| e.put_ascii(id))
    }

    #[inline]
    fn after_step(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let written = self.e.len().saturating_sub(self.charged);
        self.charged += written;
        d.charge(written)
    }
}

impl From<CopyError> for EncodeError {
    /// Converts the fault of a locally created value.
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
