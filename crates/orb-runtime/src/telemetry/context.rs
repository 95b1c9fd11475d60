//! The trace context of a call, as defined by W3C Trace Context.

use std::fmt;
use std::sync::Arc;

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{ContextId, ServiceContext, ServiceContexts};
use giop_codec::{DecodeError, EncodeError};

/// The maximum length of an accepted `tracestate`, in bytes. W3C Trace Context requires support for no more.
const MAX_STATE_LEN: usize = 512;
const TRACEPARENT_LEN: usize = 55;

/// The trace of a call, and the caller's span in it: the `traceparent` and `tracestate` of W3C Trace Context.
///
/// It is sent in the service context [`ContextId::ZORB_TRACE`]. Cloning does not allocate.
///
/// ```
/// # use orb_runtime::telemetry::TraceContext;
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context = TraceContext::parse(text, "vendor=1").unwrap();
/// assert!(context.is_sampled());
/// assert_eq!(context.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    flags: u8,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// Creates the context of a span. Returns `None` if an id is zero, which is invalid.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], sampled: bool) -> Option<Self> {
        let (trace, span) = (u128::from_be_bytes(trace_id), u64::from_be_bytes(span_id));
        (trace != 0 && span != 0).then_some(Self { trace, span, flags: sampled.into(), state: None })
    }

    /// Parses a `traceparent` and a `tracestate`. Returns `None` if the `traceparent` is malformed. An
    /// invalid `tracestate` is ignored: see [`with_state`](Self::with_state).
    ///
    /// For versions after 00, only the fields of version 00 are read, as W3C Trace Context requires.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: &str) -> Option<Self> {
        let (parent, rest) = traceparent.as_bytes().split_at_checked(TRACEPARENT_LEN)?;
        let version = parse_hex(parent.get(..2)?)?;
        let next = rest.first();
        let is_rest_valid = next.is_none() || version > 0 && next == Some(&b'-');
        let has_dashes = [2, 35, 52].iter().all(|at| parent.get(*at) == Some(&b'-'));
        if version == 0xff || !is_rest_valid || !has_dashes {
            return None;
        }
        let (trace, span) = (parse_hex(parent.get(3..35)?)?, parse_hex(parent.get(36..52)?)?);
        let flags = parse_hex(parent.get(53..55)?)?;
        // Flags other than "sampled" are removed.
        let context =
            Self::new(trace.to_be_bytes(), u64::try_from(span).ok()?.to_be_bytes(), flags & 1 != 0)?;
        Some(context.with_state(tracestate))
    }

    /// Replaces the `tracestate`. Removes it if the new one is empty, is longer than 512 bytes, or contains
    /// characters other than visible ASCII characters and spaces. Does not check its syntax.
    #[must_use]
    pub fn with_state(mut self, tracestate: &str) -> Self {
        let is_visible = tracestate.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let is_valid = is_visible && !tracestate.is_empty() && tracestate.len() <= MAX_STATE_LEN;
        self.state = is_valid.then(|| tracestate.into());
        self
    }

    /// Returns the id of the trace.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace.to_be_bytes()
    }

    /// Returns the id of the caller's span.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        self.span.to_be_bytes()
    }

    /// Returns whether the caller records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Returns the vendor-specific data of the trace, which may be empty.
    #[must_use]
    pub fn tracestate(&self) -> &str {
        self.state.as_deref().unwrap_or_default()
    }

    /// Returns a service context that contains this trace context, for
    /// [`Reference::with_context`](crate::Reference::with_context).
    ///
    /// # Errors
    /// The context cannot be encoded. No case in which this happens is known.
    pub fn to_service_context(&self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::ZORB_TRACE, self)
    }

    /// Returns the trace context in the service contexts of a request, or `None` if it is missing or invalid.
    #[must_use]
    pub fn from_contexts(contexts: &ServiceContexts<'_>) -> Option<Self> {
        if contexts.is_empty() {
            return None;
        }
        Self::read(contexts).ok().flatten()
    }

    #[cold]
    fn read(contexts: &ServiceContexts<'_>) -> Result<Option<Self>, DecodeError> {
        let Some(context) = contexts.find(ContextId::ZORB_TRACE) else { return Ok(None) };
        let mut d = context.open()?;
        let parent = d.read_unconverted_str()?;
        Ok(Self::parse(parent, d.read_unconverted_str().unwrap_or_default()))
    }

    pub(crate) fn begin_trace() -> Self {
        Self { trace: fastrand::u128(1..), span: fastrand::u64(1..), flags: 1, state: None }
    }

    pub(crate) fn child_span(&self) -> Self {
        Self { span: fastrand::u64(1..), ..self.clone() }
    }
}

/// Writes the `traceparent` of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl CdrEncode for TraceContext {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_unconverted_str(&self.to_string())?;
        e.put_unconverted_str(self.tracestate())
    }
}

fn parse_hex(digits: &[u8]) -> Option<u128> {
    let digit = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    digits.iter().try_fold(0, |number: u128, next| Some(number << 4 | u128::from(digit(next)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn malformed_traceparent_is_rejected() {
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-011",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(wrong, ""), None, "{wrong}");
        }
        for cut in 0..TEXT.len() {
            assert_eq!(TraceContext::parse(&TEXT[..cut], ""), None);
        }
    }

    #[test]
    fn later_versions_are_read_like_version_00() {
        let later = TraceContext::parse(&format!("cc{}-what", &TEXT[2..]), "").unwrap();
        assert_eq!(later.to_string(), TEXT);
        let flags = TraceContext::parse(&format!("{}fe", &TEXT[..53]), "").unwrap();
        assert_eq!((flags.is_sampled(), flags.to_string()), (false, format!("{}00", &TEXT[..53])));
    }

    #[test]
    fn tracestate_is_limited_in_length_and_characters() {
        let state = |state: &str| TraceContext::parse(TEXT, state).unwrap().tracestate().to_owned();
        let longest = "a=".to_owned() + &"x".repeat(510);
        assert_eq!(state(&longest), longest);
        assert_eq!(state(&format!("{longest}x")), "");
        assert_eq!(state("a=1\r\nb: 2"), "");
        assert_eq!(state("a=1,b=2"), "a=1,b=2");
    }

    #[test]
    fn truncated_service_context_has_no_other_trace_id() {
        let context = TraceContext::parse(TEXT, "a=1").unwrap();
        let whole = context.to_service_context().unwrap();
        assert_eq!(
            TraceContext::from_contexts(&ServiceContexts::from(&[whole.clone()][..])),
            Some(context.clone())
        );
        for cut in 0..whole.data.len() {
            let cut = ServiceContext { data: whole.data.slice(..cut), ..whole.clone() };
            let found = TraceContext::from_contexts(&ServiceContexts::from(&[cut][..]));
            assert!(found.is_none_or(|found| found.trace_id() == context.trace_id()));
        }
    }

    #[test]
    fn a_child_is_another_span_of_the_same_trace() {
        let (begun, other) = (TraceContext::begin_trace(), TraceContext::begin_trace());
        assert!(begun.trace_id() != other.trace_id() && begun.is_sampled());
        let child = begun.child_span();
        assert!(child.trace_id() == begun.trace_id() && child.span_id() != begun.span_id());
    }
}
