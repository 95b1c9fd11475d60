//! System exceptions: kind, minor code, completion status and cause.

mod coding;
mod from;
mod kind;
mod minor_code;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

pub use coding::check_argument;
pub use kind::{CompletionStatus, SystemExceptionKind};
pub use minor_code::{MinorCode, minor};

use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::error::{DecodeError, EncodeError};
use crate::printable::{OneLine, Printable};

/// A standard exception of CORBA: its kind, a minor code, the completion status, and the cause if known.
///
/// It takes at most 24 bytes. Clones share the cause, and equality ignores it. `Display` writes one line with
/// all causes. [`Error::source`] returns the cause.
///
/// It is encoded as a string with the repository id, and two ulongs with minor code and completion status.
/// Source clause: "Standard Exceptions" and "GIOP Message Formats / Reply Body".
///
/// ```
/// use giop_codec::exception::{SystemException, minor};
///
/// let e = SystemException::transient()
///     .with_minor(minor::TRANSIENT_NO_USABLE_PROFILE)
///     .with_reason("connection refused by 127.0.0.1:2809");
/// assert_eq!(
///     e.to_string(),
///     "TRANSIENT (OMG minor 2: no usable profile), COMPLETED_NO: connection refused by 127.0.0.1:2809"
/// );
/// ```
#[derive(Clone)]
pub struct SystemException {
    /// The kind of the exception.
    pub kind: SystemExceptionKind,
    /// Whether the operation was carried out.
    pub completed: CompletionStatus,
    /// The minor code, which includes the vendor.
    pub minor: MinorCode,
    source: Option<Arc<dyn Error + Send + Sync + 'static>>,
}

impl SystemException {
    /// Creates an exception without a cause.
    pub const fn new(kind: SystemExceptionKind, minor: MinorCode, completed: CompletionStatus) -> Self {
        Self { kind, completed, minor, source: None }
    }

    /// Sets an error as the cause.
    #[must_use]
    #[cold]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync + 'static>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Sets a text as the cause.
    #[must_use]
    #[cold]
    pub fn with_reason(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.source = Some(Arc::new(Reason(text.into())));
        self
    }

    /// Sets the minor code.
    #[must_use]
    pub const fn with_minor(mut self, minor: MinorCode) -> Self {
        self.minor = minor;
        self
    }

    /// Sets the completion status.
    #[must_use]
    pub const fn completed(mut self, completed: CompletionStatus) -> Self {
        self.completed = completed;
        self
    }

    /// Returns the repository id of the kind.
    pub const fn repository_id(&self) -> &'static str {
        self.kind.repository_id()
    }
}

impl PartialEq for SystemException {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.minor == other.minor && self.completed == other.completed
    }
}

impl Eq for SystemException {}

impl fmt::Debug for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemException({self})")
    }
}

/// Formats as `KIND (minor code: meaning), COMPLETED_X: cause: cause of the cause` on one escaped line.
impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.minor.describe(self.kind) {
            Some(meaning) => write!(f, " ({}: {meaning})", self.minor)?,
            None if self.minor == MinorCode::NONE => {}
            None => write!(f, " ({})", self.minor)?,
        }
        write!(f, ", {}", self.completed)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            write!(f, ": {}", OneLine::new(text.trim_end()))?;
            // A system exception as the cause formats its own causes.
            cause = if error.is::<SystemException>() { None } else { error.source() };
        }
        Ok(())
    }
}

impl Error for SystemException {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl CdrEncode for SystemException {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_unconverted_str(self.kind.repository_id())?;
        e.put_u32(self.minor.0);
        e.put_u32(self.completed.to_wire());
        Ok(())
    }
}

/// An unknown repository id becomes `UNKNOWN` with OMG minor 2 and a cause that names the id. An invalid
/// completion status becomes `COMPLETED_MAYBE` with a cause that has its number. Neither is a decode error,
/// because that would hide the exception.
impl CdrDecode for SystemException {
    /// The length of an empty id, which some peers send without a NUL, and two `unsigned long`s.
    const MIN_SIZE: usize = 12;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let id = d.read_unconverted_str()?;
        let minor = MinorCode(d.read_u32()?);
        let status = d.read_u32()?;
        let known_status = CompletionStatus::from_wire(status);
        let completed = known_status.unwrap_or(CompletionStatus::Maybe);
        let Some(kind) = SystemExceptionKind::from_repository_id(id) else {
            return Ok(Self::unknown()
                .with_minor(minor::UNKNOWN_SYSTEM_EXCEPTION)
                .completed(completed)
                .with_reason(format!("the peer raised {:?}, {minor}", Printable::new(id))));
        };
        let exception = Self::new(kind, minor, completed);
        Ok(match known_status {
            Some(_) => exception,
            None => exception.with_reason(format!("the peer sent the invalid completion status {status}")),
        })
    }
}

/// A cause that consists of a text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Reason(Cow<'static, str>);

#[cfg(test)]
mod tests {
    use super::*;

    // clause: exc.wire.id, exc.wire.completed
    #[test]
    fn all_forty_kinds_have_distinct_ids_that_lead_back() {
        assert_eq!(SystemExceptionKind::ALL.len(), 40);
        for &kind in SystemExceptionKind::ALL {
            assert_eq!(SystemExceptionKind::from_repository_id(kind.repository_id()), Some(kind));
            let old = format!("IDL:CORBA/{}:1.0", kind.name());
            assert_eq!(SystemExceptionKind::from_repository_id(&old), Some(kind));
            assert_eq!(SystemExceptionKind::from_name(&format!("CORBA::{}", kind.name())), Some(kind));
        }
        for status in [CompletionStatus::Yes, CompletionStatus::No, CompletionStatus::Maybe] {
            assert_eq!(CompletionStatus::from_wire(status.to_wire()), Some(status));
        }
        assert_eq!(CompletionStatus::from_wire(3), None);
        for foreign in [
            "IDL:Bank/TRANSIENT:1.0",
            "IDL:omg.org/CORBA/NOPE:1.0",
            "TRANSIENT",
            "",
            "IDL:XCORBA/MARSHAL:1.0",
        ] {
            assert_eq!(SystemExceptionKind::from_repository_id(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn is_small_and_shareable() {
        fn shareable<T: Clone + Send + Sync + 'static>() {}
        shareable::<SystemException>();
        assert!(size_of::<Result<(), SystemException>>() <= 24);
    }

    // clause: exc.wire.vendors, exc.wire.minor
    #[test]
    fn display_names_the_minor_code_of_omg_omniorb_and_strangers() {
        let show = |kind, minor| SystemException::new(kind, minor, CompletionStatus::Maybe).to_string();
        assert_eq!(
            show(SystemExceptionKind::CommFailure, MinorCode(0x4154_0007)),
            "COMM_FAILURE (omniORB minor 7: connection lost while waiting for the reply), COMPLETED_MAYBE"
        );
        assert_eq!(
            show(SystemExceptionKind::ObjectNotExist, minor::OBJECT_NOT_EXIST_NO_OBJECT),
            "OBJECT_NOT_EXIST (OMG minor 1: no such object is active), COMPLETED_MAYBE"
        );
        assert_eq!(show(SystemExceptionKind::Timeout, MinorCode::NONE), "TIMEOUT, COMPLETED_MAYBE");
        assert_eq!(show(SystemExceptionKind::Timeout, MinorCode(3)), "TIMEOUT (minor 3), COMPLETED_MAYBE");
        assert_eq!(
            show(SystemExceptionKind::Timeout, MinorCode(0x1234_5001)),
            "TIMEOUT (minor 0x12345001), COMPLETED_MAYBE"
        );
        assert_eq!(
            show(SystemExceptionKind::Transient, MinorCode(0x5441_0085)),
            "TRANSIENT (TAO minor 133 (location 1, errno class 5)), COMPLETED_MAYBE"
        );
        assert_eq!(
            show(SystemExceptionKind::Transient, MinorCode::omg(99)),
            "TRANSIENT (OMG minor 99), COMPLETED_MAYBE"
        );
    }

    #[test]
    fn display_chains_causes_once_and_on_one_line() {
        let io = std::io::Error::other("refused\nby peer");
        let inner = SystemException::transient().with_source(io);
        let outer = SystemException::unknown().completed(CompletionStatus::Maybe).with_source(inner);
        assert_eq!(outer.to_string(), "UNKNOWN, COMPLETED_MAYBE: TRANSIENT, COMPLETED_NO: refused\\nby peer");
        let cause = outer.source().and_then(|e| e.downcast_ref::<SystemException>()).map(|e| e.kind);
        assert_eq!(cause, Some(SystemExceptionKind::Transient));
    }

    #[test]
    fn display_escapes_and_shortens_causes() {
        let of = |text: String| SystemException::unknown().with_reason(text).to_string();
        assert_eq!(of("\u{1b}]0;x\u{7}\u{202e}".into()), r"UNKNOWN, COMPLETED_NO: \x1b]0;x\x07\u{202e}");
        assert!(of("x".repeat(200_000)).ends_with("x… and 195,904 more bytes"));
    }

    // clause: exc.wire.id, exc.wire.unknown_id, exc.wire.completed, exc.minor.unknown.2
    #[test]
    fn decoding_takes_foreign_ids_and_impossible_completion_statuses() {
        let decode = |id: &str, completed: u32| {
            let mut e = Encoder::new(crate::ByteOrder::Big, crate::Version::V1_2);
            e.put_unconverted_str(id).unwrap();
            e.put_u32(MinorCode::omg(1).0);
            e.put_u32(completed);
            let bytes = e.into_bytes();
            SystemException::decode(&mut Decoder::new(&bytes, crate::ByteOrder::Big, crate::Version::V1_2))
                .unwrap()
        };
        assert_eq!(
            decode("IDL:CORBA/MARSHAL:1.0", 1).to_string(),
            "MARSHAL (OMG minor 1: no factory for a value type), COMPLETED_NO"
        );
        let foreign = decode("IDL:acme.com/BROKEN:1.0", 0);
        assert_eq!(
            (foreign.kind, foreign.minor),
            (SystemExceptionKind::Unknown, minor::UNKNOWN_SYSTEM_EXCEPTION)
        );
        assert!(
            foreign
                .to_string()
                .ends_with(r#"COMPLETED_YES: the peer raised "IDL:acme.com/BROKEN:1.0", OMG minor 1"#)
        );
        let odd = decode("IDL:omg.org/CORBA/TIMEOUT:1.0", 3);
        assert_eq!(
            odd.to_string(),
            "TIMEOUT (OMG minor 1: poller's timeout passed), COMPLETED_MAYBE: \
             the peer sent the invalid completion status 3"
        );
    }

    // clause: exc.wire.all, exc.wire.minor, exc.wire.completed
    #[test]
    fn all_kinds_go_and_come_with_minor_code_and_completion_status() {
        use CompletionStatus::{Maybe, No, Yes};
        for order in [crate::ByteOrder::Big, crate::ByteOrder::Little] {
            for (&kind, completed) in
                SystemExceptionKind::ALL.iter().flat_map(|kind| [Yes, No, Maybe].map(|c| (kind, c)))
            {
                for minor in
                    [MinorCode::NONE, MinorCode::omg(44), MinorCode(0x4154_0007), MinorCode(u32::MAX)]
                {
                    let sent = SystemException::new(kind, minor, completed);
                    let mut e = Encoder::new(order, crate::Version::V1_2);
                    sent.encode(&mut e).unwrap();
                    let bytes = e.into_bytes();
                    let mut d = Decoder::new(&bytes, order, crate::Version::V1_2);
                    assert_eq!(SystemException::decode(&mut d), Ok(sent));
                }
            }
        }
    }

    #[test]
    fn equality_ignores_the_cause() {
        let plain = SystemException::marshal().completed(CompletionStatus::Yes);
        assert_eq!(plain, plain.clone().with_reason("a reason"));
        assert_ne!(plain, plain.clone().completed(CompletionStatus::No));
    }
}
