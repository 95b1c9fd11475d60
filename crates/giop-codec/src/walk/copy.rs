//! Copying of values by their type codes, from one stream to another. Byte order, phase, version and code
//! sets of the two may differ. The steps are those of the type's program.

use super::MAX_ANYS;
use super::custom::canonical;
use super::graph::GraphWalk;
use super::run::{StepActions, length, run};
use super::skip::read_except_id;
use crate::cdr::{BoundedContent, CdrDecode, CdrEncode, Decoder, Encoder, check_bound};
use crate::ior::Ior;
use crate::program::{EMPTY_VALUE, Index, Labels, Plan, read_decimal};
use crate::typecode::{Nodes, TypeCode};
use crate::value::write;
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The reason why a value was not copied, by the stream at fault.
#[derive(Debug)]
pub(crate) enum CopyError {
    Decode(DecodeError),
    Encode(EncodeError),
}

/// The findings of a copy.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The value contains an object reference.
    pub(crate) references: bool,
    /// The value contains a place for a value, which may be null.
    pub(crate) values: bool,
}

/// Copies one value of this type. Copies runs of numbers and bytes whole, and charges the decoder for the
/// output.
pub(crate) fn copy(code: &TypeCode, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Findings, CopyError> {
    Walker::new(e).whole(code, d)
}

/// Copies one value like [`copy`], to an encoder whose output is discarded.
fn pass(code: &TypeCode, d: &mut Decoder<'_>, unused: &mut Encoder) -> Result<Findings, CopyError> {
    let mut walker = Walker::new(unused);
    walker.discards = true;
    walker.whole(code, d)
}

/// Skips a value that [`Any::decode_value`](crate::any::Any::decode_value) would read.
pub(crate) fn pass_over(code: &TypeCode, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let start = d.position();
    let mut unused = canonical();
    match pass(code, d, &mut unused) {
        Ok(_) => Ok(()),
        Err(CopyError::Decode(error)) => Err(error),
        Err(CopyError::Encode(_)) => Err(DecodeError::new(DecodeErrorKind::Malformed, start)),
    }
}

/// Copies one value like [`copy`], with all known types of values in their headers.
pub(crate) fn spell(code: &TypeCode, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Findings, CopyError> {
    let mut walker = Walker::new(e);
    walker.graph.spells = true;
    walker.whole(code, d)
}

pub(super) struct Walker<'a> {
    pub(super) e: &'a mut Encoder,
    /// Length of the output that was charged to the decoder.
    charged: usize,
    /// Number of enclosing anys.
    pub(super) anys: usize,
    /// The encode error, while an unspecific decode error is propagated.
    fault: Option<EncodeError>,
    pub(super) seen: Findings,
    pub(super) graph: GraphWalk,
    /// Whether the output is discarded.
    pub(super) discards: bool,
}

pub(super) type CopyResult = Result<(), DecodeError>;

impl<'a> Walker<'a> {
    pub(super) fn new(e: &'a mut Encoder) -> Walker<'a> {
        let charged = e.len();
        Walker {
            e,
            charged,
            anys: 0,
            fault: None,
            seen: Findings::default(),
            graph: GraphWalk::default(),
            discards: false,
        }
    }

    /// Copies one value.
    fn whole(mut self, code: &TypeCode, d: &mut Decoder<'_>) -> Result<Findings, CopyError> {
        let start = d.position();
        let copied = self.value(d, &code.nodes, code.root).and_then(|()| match d.position() == start {
            true => d.charge(EMPTY_VALUE),
            false => Ok(()),
        });
        let Err(error) = copied else { return Ok(self.seen) };
        // The output is incomplete, so that nothing in it may be referred to.
        write::forget_values(self.e);
        Err(match self.fault {
            Some(fault) => CopyError::Encode(fault),
            None => CopyError::Decode(error),
        })
    }

    pub(super) fn put(
        &mut self,
        d: &Decoder<'_>,
        f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) -> CopyResult {
        f(self.e).map_err(|error| {
            self.fault = Some(error);
            d.error(DecodeErrorKind::Malformed)
        })
    }

    /// Copies a value of a type.
    pub(super) fn value(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> CopyResult {
        let body = nodes.compiled();
        run(body, nodes, self, d, body.entry(index))
    }

    /// Copies the count of a sequence.
    pub(super) fn counted(
        &mut self,
        d: &mut Decoder<'_>,
        least: usize,
        bound: u32,
    ) -> Result<usize, DecodeError> {
        let count = length(d, least)?;
        if bound != 0 && count > bound as usize {
            return Err(DecodeError::new(DecodeErrorKind::BoundExceeded, d.position() - 4));
        }
        self.count(d, count)?;
        Ok(count)
    }

    pub(super) fn reference(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        self.seen.references = true;
        let ior = Ior::decode(d)?;
        self.put(d, |e| ior.encode(e))
    }
}

impl StepActions for Walker<'_> {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> CopyResult {
        plan.copy(d, self.e, 1)
    }

    fn run(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> CopyResult {
        plan.copy(d, self.e, count)
    }

    fn count(&mut self, d: &mut Decoder<'_>, count: usize) -> CopyResult {
        self.put(d, |e| e.put_len(count))
    }

    /// Returns an error. An any cannot store sequences of zero-size elements, because their count cannot be
    /// validated against the remaining bytes.
    #[cold]
    fn nothing(&mut self, _: &mut Decoder<'_>, first: usize) -> CopyResult {
        Err(DecodeError::new(DecodeErrorKind::NotInAny, first))
    }

    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> CopyResult {
        if wide {
            let text = d.read_wstring()?;
            within(d, &text, bound)?;
            return self.put(d, |e| e.put_wstr(&text));
        }
        let text = d.read_string_ref()?;
        within(d, &*text, bound)?;
        self.put(d, |e| e.put_str(&text))
    }

    fn wchar(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let unit = d.read_wchar()?;
        self.put(d, |e| e.put_wchar(unit))
    }

    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> CopyResult {
        let (octets, width) = read_decimal(d, digits)?;
        self.e.put_raw(octets.get(octets.len() - width..).unwrap_or_default());
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
        d.nested(|d| {
            let start = d.position();
            self.value(d, &code.nodes, code.root)?;
            if d.position() == start { d.charge(EMPTY_VALUE) } else { Ok(()) }
        })?;
        self.anys -= 1;
        Ok(())
    }

    fn type_code(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let code = TypeCode::decode(d)?;
        self.put(d, |e| code.encode(e))
    }

    fn object(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        self.reference(d)
    }

    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> CopyResult {
        self.graph_at(d, nodes, place)
    }

    fn principal(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let count = length(d, 1)?;
        self.count(d, count)?;
        let octets = d.take_shared(count)?;
        self.e.put_shared_ref(&octets);
        Ok(())
    }

    fn except_id(&mut self, d: &mut Decoder<'_>, id: &str) -> CopyResult {
        read_except_id(d, id)?;
        self.put(d, |e| e.put_ascii(id))
    }

    /// Charges the decoder for the output since the last call.
    #[inline]
    fn settle(&mut self, d: &mut Decoder<'_>) -> CopyResult {
        let written = self.e.len().saturating_sub(self.charged);
        self.charged += written;
        d.charge(written)
    }
}

fn within<S: BoundedContent + ?Sized>(d: &Decoder<'_>, text: &S, bound: u32) -> CopyResult {
    if bound == 0 {
        return Ok(());
    }
    check_bound(text, bound as usize).map_err(|_| d.error(DecodeErrorKind::BoundExceeded))
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
