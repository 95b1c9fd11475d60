//! Errors of encoding and decoding. [`EncodeError`] reports a fault of the caller's value, [`DecodeError`] a
//! fault of the peer's bytes. Both are small and `Copy`, so that the hot paths carry no drop glue.

use core::fmt;

/// The reason why a value cannot be encoded in the given context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// A character is not in the negotiated transmission code set (`DATA_CONVERSION` minor OMG 1).
    CharNotInCodeSet,
    /// A string contains U+0000, which ends IDL strings (`BAD_PARAM`).
    EmbeddedNul,
    /// A length does not fit the `unsigned long` that carries it (`MARSHAL`).
    TooLong,
    /// A bounded string or sequence is longer than its bound (`BAD_PARAM`).
    BoundExceeded,
    /// A union's discriminator selects another member, or none is to be selected (`BAD_PARAM` minor OMG 20).
    IllegalDiscriminator,
    /// Wide text over GIOP 1.0, which has none (`MARSHAL` minor OMG 5 in a request, 6 in a reply).
    WideInGiop10,
    /// Wide text without a negotiated wide code set (`INV_OBJREF` minor OMG 1 in a request, `BAD_PARAM`
    /// minor OMG 23 in a reply).
    NoWideCodeSet,
    /// Client and server have no code set in common for this text (`CODESET_INCOMPATIBLE` minor OMG 1).
    NoCodeSet,
    /// A local object, interface or value cannot leave its process (`MARSHAL` minor OMG 4).
    LocalObject,
    /// An object of an ORB that does not listen, so that no peer could call it (`BAD_PARAM`).
    NoEndpoint,
    /// Values nested in members of values more than 64 deep, which no receiver accepts (`MARSHAL`).
    DepthLimit,
    /// A type code contains a placeholder for a type that was never completed (`BAD_TYPECODE` minor OMG 1).
    IncompleteTypeCode,
    /// A value of a custom type that was received in another byte order, version, code set or alignment. Only
    /// the implementation of its type could marshal it again (`MARSHAL`).
    CustomState,
    /// A value that has no representation on the wire for another reason (`MARSHAL`).
    Unrepresentable,
}

impl EncodeErrorKind {
    /// Returns a one-line description of the error.
    pub const fn message(self) -> &'static str {
        match self {
            EncodeErrorKind::CharNotInCodeSet => "character is not in the negotiated transmission code set",
            EncodeErrorKind::EmbeddedNul => "string contains a NUL character",
            EncodeErrorKind::TooLong => "length exceeds 4294967295",
            EncodeErrorKind::BoundExceeded => "value is longer than the bound of its IDL type",
            EncodeErrorKind::IllegalDiscriminator => "union discriminator belongs to another member",
            EncodeErrorKind::WideInGiop10 => "wchar and wstring cannot be sent over GIOP 1.0",
            EncodeErrorKind::NoWideCodeSet => {
                "no code set for wchar and wstring was negotiated with the peer"
            }
            EncodeErrorKind::NoCodeSet => NO_CODE_SET,
            EncodeErrorKind::LocalObject => "local object cannot be marshalled",
            EncodeErrorKind::NoEndpoint => {
                "object of an ORB that does not listen, so nobody could call it: add .listen(..) to the ORB's builder"
            }
            EncodeErrorKind::DepthLimit => "values are nested deeper than a receiver takes",
            EncodeErrorKind::IncompleteTypeCode => "type code has a type in it that was not made",
            EncodeErrorKind::CustomState => {
                "value of a custom type can only be sent in the byte order, version and code sets that it came in: those of this message are others"
            }
            EncodeErrorKind::Unrepresentable => "value has no CDR representation",
        }
    }
}

/// Error of encoding a value. The encoder's contents are then incomplete: rewind or reset it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncodeError {
    /// The fault of the value.
    pub kind: EncodeErrorKind,
}

impl EncodeError {
    /// Creates an error of this kind.
    #[cold]
    pub const fn new(kind: EncodeErrorKind) -> EncodeError {
        EncodeError { kind }
    }
}

impl From<EncodeErrorKind> for EncodeError {
    fn from(kind: EncodeErrorKind) -> EncodeError {
        EncodeError { kind }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.message())
    }
}

impl std::error::Error for EncodeError {}

/// The reason why bytes are not the encoding of a value of the expected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The data ends inside the value.
    EndOfData,
    /// A count of elements or bytes that exceeds the remaining data.
    LengthBeyondData,
    /// The decoded values would take more memory than [`DecodeLimits::alloc`](crate::cdr::DecodeLimits).
    AllocLimit,
    /// Values are nested deeper than [`DecodeLimits::depth`](crate::cdr::DecodeLimits).
    DepthLimit,
    /// The last byte (or wide character, in GIOP 1.1) of a string is not NUL.
    StringNotTerminated,
    /// A NUL before the end of a string.
    EmbeddedNul,
    /// Text that is not UTF-8 where the transmission code set is UTF-8 (`DATA_CONVERSION` minor OMG 1).
    InvalidText,
    /// An identifier, such as a repository id, that is not UTF-8.
    InvalidIdentifier,
    /// Wide text that is not UTF-16: odd length, lone surrogate, or a length no `wchar` has
    /// (`DATA_CONVERSION` minor OMG 1).
    InvalidWideText,
    /// A character that the receiving type cannot hold (`DATA_CONVERSION` minor OMG 1).
    CharNotInCodeSet,
    /// An ordinal without an enumerator.
    InvalidEnum,
    /// A union discriminator without a member.
    InvalidDiscriminator,
    /// A bounded string or sequence is longer than its bound.
    BoundExceeded,
    /// A fixed-point number with an invalid digit, without a sign, or with more digits than its type has.
    InvalidFixed,
    /// A map with two entries of the same key.
    DuplicateKey,
    /// A number outside of the range that annotations give to its IDL type.
    OutOfRange,
    /// Wide text in GIOP 1.0 (`MARSHAL` minor OMG 5 in a request, 6 in a reply).
    WideInGiop10,
    /// Wide text without a negotiated wide code set (`BAD_PARAM` minor OMG 23 in a request, `INV_OBJREF`
    /// minor OMG 1 in a reply).
    NoWideCodeSet,
    /// Client and server have no code set in common for this text (`CODESET_INCOMPATIBLE` minor OMG 1).
    NoCodeSet,
    /// A nil object reference where the IDL requires one that is not nil (`INV_OBJREF`).
    NilReference,
    /// More profiles, components, contexts or bytes of a name than an endpoint accepts.
    LimitExceeded,
    /// An object reference where no ORB is available to create it (`INITIALIZE`).
    NoOrb,
    /// A type code of an unknown kind, with an indirection to no earlier type code, or of an impossible type.
    InvalidTypeCode,
    /// A value that an any cannot hold: a local or native type, or a sequence of elements that take no bytes.
    /// Also a custom value that refers to a value outside of the any.
    NotInAny,
    /// A value of a type for which there is no factory (`MARSHAL` minor OMG 1).
    NoValueFactory,
    /// A local object or a value of a native type, which cannot be sent (`MARSHAL` minor OMG 4).
    LocalObject,
    /// Bytes that violate another rule of the format being read.
    Malformed,
}

impl DecodeErrorKind {
    /// Returns a one-line description of the error.
    pub const fn message(self) -> &'static str {
        match self {
            DecodeErrorKind::EndOfData => "data ends inside a value",
            DecodeErrorKind::LengthBeyondData => "length is greater than the data left",
            DecodeErrorKind::AllocLimit => {
                "decoded values exceed the memory they may allocate: raise it by `Limits::max_decoded`"
            }
            DecodeErrorKind::DepthLimit => "values are nested too deep: raise it by `Limits::max_depth`",
            DecodeErrorKind::StringNotTerminated => "string does not end with NUL",
            DecodeErrorKind::EmbeddedNul => "string contains a NUL character",
            DecodeErrorKind::InvalidText => "text is not valid in its code set",
            DecodeErrorKind::InvalidIdentifier => "identifier is not valid UTF-8",
            DecodeErrorKind::InvalidWideText => "wide text is not valid UTF-16",
            DecodeErrorKind::CharNotInCodeSet => "character cannot be held by its type",
            DecodeErrorKind::InvalidEnum => "enum ordinal is out of range",
            DecodeErrorKind::InvalidDiscriminator => "union discriminator matches no member",
            DecodeErrorKind::BoundExceeded => "value is longer than the bound of its IDL type",
            DecodeErrorKind::InvalidFixed => "octets are not a fixed-point number of its IDL type",
            DecodeErrorKind::DuplicateKey => "a map has a key twice",
            DecodeErrorKind::OutOfRange => "number is out of the range of its IDL type",
            DecodeErrorKind::WideInGiop10 => "wchar and wstring do not exist in GIOP 1.0",
            DecodeErrorKind::NoWideCodeSet => "wide text arrived but no code set for it was negotiated",
            DecodeErrorKind::NoCodeSet => NO_CODE_SET,
            DecodeErrorKind::NilReference => "object reference is nil where nil is not allowed",
            DecodeErrorKind::LimitExceeded => "there is more of this than an endpoint takes",
            DecodeErrorKind::NoOrb => "an object reference can only be decoded by an ORB",
            DecodeErrorKind::InvalidTypeCode => "type code is of no type that there can be",
            DecodeErrorKind::NotInAny => "no any can hold a value of this type",
            DecodeErrorKind::NoValueFactory => "value of a type that is not registered, nor one of its bases",
            DecodeErrorKind::LocalObject => "a local object cannot come in a message",
            DecodeErrorKind::Malformed => "malformed data",
        }
    }
}

/// Error of decoding bytes as the expected type. The peer that sent the bytes is at fault, never the local
/// user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeError {
    /// The fault of the bytes.
    pub kind: DecodeErrorKind,
    /// Offset of the offending item in bytes, from the alignment origin of the message or encapsulation.
    pub offset: usize,
}

impl DecodeError {
    /// Creates an error of this kind at this offset in bytes from the alignment origin.
    #[cold]
    pub const fn new(kind: DecodeErrorKind, offset: usize) -> DecodeError {
        DecodeError { kind, offset }
    }
}

const NO_CODE_SET: &str = "no code set for char and string is common to client and server: its reference says what the server has, \
                           `OrbBuilder::char_code_sets` what the client has";

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at octet {})", self.kind.message(), self.offset)
    }
}

impl std::error::Error for DecodeError {}
