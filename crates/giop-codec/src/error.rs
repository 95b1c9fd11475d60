//! Errors of encoding and decoding. [`EncodeError`] reports a fault of the caller's value, [`DecodeError`] a
//! fault of the peer's bytes. Both are small and `Copy`, so that the hot paths carry no drop glue.

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
    /// A union's discriminator does not select the member that is set (`BAD_PARAM` minor OMG 20).
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
    /// No peer could call the object, because its ORB does not listen (`BAD_PARAM`).
    NoEndpoint,
    /// Values are nested more than 64 deep, which no receiver accepts (`MARSHAL`).
    DepthLimit,
    /// A type code contains a placeholder for a type that was never completed (`BAD_TYPECODE` minor OMG 1).
    IncompleteTypeCode,
    /// A value of a custom type was received in another byte order, version, code set or alignment. Only the
    /// implementation of its type could marshal it again (`MARSHAL`).
    CustomState,
    /// The value has no representation on the wire for another reason (`MARSHAL`).
    Unrepresentable,
}

impl EncodeErrorKind {
    /// Returns a one-line description of the error.
    pub const fn message(self) -> &'static str {
        match self {
            Self::CharNotInCodeSet => "character is not in the negotiated transmission code set",
            Self::EmbeddedNul => "string contains a NUL character",
            Self::TooLong => "length exceeds 4294967295",
            Self::BoundExceeded => "value is longer than the bound of its IDL type",
            Self::IllegalDiscriminator => "union discriminator belongs to another member",
            Self::WideInGiop10 => "wchar and wstring cannot be sent over GIOP 1.0",
            Self::NoWideCodeSet => "no code set for wchar and wstring was negotiated with the peer",
            Self::NoCodeSet => NO_CODE_SET,
            Self::LocalObject => "local object cannot be marshalled",
            Self::NoEndpoint => {
                "object of an ORB that does not listen cannot be called by peers: add .listen(..) to the ORB's builder"
            }
            Self::DepthLimit => "values are nested more than 64 deep, which no receiver accepts",
            Self::IncompleteTypeCode => "type code contains a placeholder that was never completed",
            Self::CustomState => {
                "value of a custom type can only be sent in the byte order, version, code sets and alignment in which it was received"
            }
            Self::Unrepresentable => "value has no CDR representation",
        }
    }
}

/// Error of encoding a value. The encoder's contents are then incomplete: rewind or reset it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", .kind.message())]
pub struct EncodeError {
    /// The reason.
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
            Self::EndOfData => "data ends inside a value",
            Self::LengthBeyondData => "length is greater than the data left",
            Self::AllocLimit => "decoded values exceed their memory limit: raise it by `Limits::max_decoded`",
            Self::DepthLimit => "values are nested too deep: raise the limit by `Limits::max_depth`",
            Self::StringNotTerminated => "string does not end with NUL",
            Self::EmbeddedNul => "string contains a NUL character",
            Self::InvalidText => "text is not valid in its code set",
            Self::InvalidIdentifier => "identifier is not valid UTF-8",
            Self::InvalidWideText => "wide text is not valid UTF-16",
            Self::CharNotInCodeSet => "character cannot be represented by the receiving type",
            Self::InvalidEnum => "enum ordinal is out of range",
            Self::InvalidDiscriminator => "union discriminator matches no member",
            Self::BoundExceeded => "value is longer than the bound of its IDL type",
            Self::InvalidFixed => "bytes are not a fixed-point number of the expected IDL type",
            Self::DuplicateKey => "map contains a key twice",
            Self::OutOfRange => "number is out of the range of its IDL type",
            Self::WideInGiop10 => "wchar and wstring do not exist in GIOP 1.0",
            Self::NoWideCodeSet => "wide text was received, but no code set for it was negotiated",
            Self::NoCodeSet => NO_CODE_SET,
            Self::NilReference => "object reference is nil where nil is not allowed",
            Self::LimitExceeded => {
                "more profiles, components, contexts or bytes of a name than an endpoint accepts"
            }
            Self::NoOrb => "an object reference can only be decoded by an ORB",
            Self::InvalidTypeCode => {
                "type code has an unknown kind, a wrong indirection or an impossible type"
            }
            Self::NotInAny => "an any cannot hold a value of this type",
            Self::NoValueFactory => "neither the type of the value nor a base of it has a registered factory",
            Self::LocalObject => "a message cannot contain a local object",
            Self::Malformed => "malformed data",
        }
    }
}

/// Error of decoding bytes as the expected type. The peer that sent the bytes is at fault, never the local
/// user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{} (at octet {offset})", .kind.message())]
pub struct DecodeError {
    /// The reason.
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

const NO_CODE_SET: &str = "client and server have no code set for char and string in common: the object reference lists \
                           those of the server, `OrbBuilder::char_code_sets` configures those of the client";
