//! Errors of encoding and decoding. [`EncodeError`] reports a fault in the caller's value, [`DecodeError`] a
//! fault in the peer's bytes. Both are small and `Copy`, so that hot paths need no code to drop them.

/// The reason why a value cannot be encoded. Each kind names the system exception to which it is converted;
/// "minor OMG n" is its minor code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// A character is not in the negotiated transmission code set (`DATA_CONVERSION` minor OMG 1).
    CharNotInCodeSet,
    /// A string contains U+0000, which ends IDL strings (`BAD_PARAM`).
    EmbeddedNul,
    /// A length does not fit the `unsigned long` in which it is sent (`MARSHAL`).
    TooLong,
    /// A bounded string or sequence is longer than its bound (`BAD_PARAM`).
    BoundExceeded,
    /// A union's discriminator does not select the member that is set (`BAD_PARAM` minor OMG 20).
    IllegalDiscriminator,
    /// Wide text cannot be sent in GIOP 1.0 (`MARSHAL`, request: minor OMG 5, reply: minor OMG 6).
    WideInGiop10,
    /// There is no wide code set (request: `INV_OBJREF` minor OMG 1, reply: `BAD_PARAM` minor OMG 23).
    NoWideCodeSet,
    /// Client and server have no code set in common for this text (`CODESET_INCOMPATIBLE` minor OMG 1).
    NoCodeSet,
    /// A local object or a value of a native type cannot leave its process (`MARSHAL` minor OMG 4).
    LocalObject,
    /// Peers cannot call the object, because its ORB does not listen (`BAD_PARAM`).
    NoEndpoint,
    /// Values are nested more than 64 levels deep (`MARSHAL`).
    DepthLimit,
    /// A type code contains a placeholder for a type that was never completed (`BAD_TYPECODE` minor OMG 1).
    IncompleteTypeCode,
    /// A value of a `custom` type was received in another byte order, version, code set or alignment than the
    /// one to write. Only the implementation of its type could convert it (`MARSHAL`).
    UnconvertibleCustomState,
    /// The value has no encoding for another reason (`MARSHAL`).
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
            Self::IllegalDiscriminator => "union discriminator does not select the member that is set",
            Self::WideInGiop10 => "wchar and wstring cannot be sent over GIOP 1.0",
            Self::NoWideCodeSet => "no code set for wchar and wstring was negotiated with the peer",
            Self::NoCodeSet => NO_CODE_SET,
            Self::LocalObject => "local object cannot be marshalled",
            Self::NoEndpoint => {
                "peers cannot call an object of an ORB that does not listen: add .listen(..) to the ORB's builder"
            }
            Self::DepthLimit => "values are nested more than 64 levels deep",
            Self::IncompleteTypeCode => "type code contains a placeholder that was never completed",
            Self::UnconvertibleCustomState => {
                "value of a custom type must be sent in the byte order, version, code sets and alignment in which it was received"
            }
            Self::Unrepresentable => "value has no CDR representation",
        }
    }
}

/// The error of a failed encoding. It leaves an incomplete value, so the encoder must be rewound or reset.
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

/// The reason why bytes cannot be decoded as a value of the expected type. Each kind names its system
/// exception unless that is `MARSHAL`; "minor OMG n" is the minor code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The data ends inside the value.
    EndOfData,
    /// A count of elements or bytes exceeds the remaining data.
    LengthBeyondData,
    /// The decoded values would take more memory than [`DecodeLimits::alloc`](crate::cdr::DecodeLimits).
    AllocLimit,
    /// Values are nested deeper than [`DecodeLimits::depth`](crate::cdr::DecodeLimits), or type codes or anys
    /// are nested deeper than a fixed limit.
    DepthLimit,
    /// The last byte (or wide character, in GIOP 1.1) of a string is not NUL.
    StringNotTerminated,
    /// A string contains a NUL before its end.
    EmbeddedNul,
    /// Text in the transmission code set UTF-8 is not valid UTF-8 (`DATA_CONVERSION` minor OMG 1).
    InvalidText,
    /// An identifier, such as a repository id, is not valid UTF-8.
    InvalidIdentifier,
    /// Wide text is invalid in its code set, or a `wchar` has a wrong length (`DATA_CONVERSION` minor OMG 1).
    InvalidWideText,
    /// A character is not in the code set, or does not fit its type (`DATA_CONVERSION` minor OMG 1).
    CharNotInCodeSet,
    /// There is no enumerator with the ordinal.
    InvalidEnum,
    /// A union discriminator selects no member.
    InvalidDiscriminator,
    /// A bounded string or sequence is longer than its bound.
    BoundExceeded,
    /// A fixed-point number has an invalid digit, no sign, or more digits than its type.
    InvalidFixed,
    /// A map has two entries with the same key.
    DuplicateKey,
    /// A number is outside of the range that annotations define for its IDL type.
    OutOfRange,
    /// Wide text cannot be received in GIOP 1.0 (`MARSHAL`, request: minor OMG 5, reply: minor OMG 6).
    WideInGiop10,
    /// There is no wide code set (request: `BAD_PARAM` minor OMG 23, reply: `INV_OBJREF` minor OMG 1).
    NoWideCodeSet,
    /// Client and server have no code set in common for this text (`CODESET_INCOMPATIBLE` minor OMG 1).
    NoCodeSet,
    /// An object reference is nil although it must not be (`INV_OBJREF`).
    NilReference,
    /// A list or name is longer than this implementation accepts.
    LimitExceeded,
    /// An object reference was decoded without an ORB, which is needed to create it (`INITIALIZE`).
    NoOrb,
    /// A type code has an unknown kind, an indirection to no earlier type code, or an impossible type.
    InvalidTypeCode,
    /// An any cannot hold the value. Examples are values of local or native types, sequences of elements that
    /// take no bytes, and custom values that refer to a value outside of the any.
    NotInAny,
    /// There is no factory for the type of a value (`MARSHAL` minor OMG 1).
    NoValueFactory,
    /// A local object or a value of a native type cannot be received (`MARSHAL` minor OMG 4).
    LocalObject,
    /// The bytes violate another rule of their format.
    Malformed,
}

impl DecodeErrorKind {
    /// Returns a one-line description of the error.
    pub const fn message(self) -> &'static str {
        match self {
            Self::EndOfData => "data ends inside a value",
            Self::LengthBeyondData => "a length exceeds the remaining data",
            Self::AllocLimit => "decoded values exceed the memory limit: raise it with `Limits::max_decoded`",
            Self::DepthLimit => "values are nested too deeply: raise the limit with `Limits::max_depth`",
            Self::StringNotTerminated => "string does not end with NUL",
            Self::EmbeddedNul => "string contains a NUL character",
            Self::InvalidText => "text is not valid in its code set",
            Self::InvalidIdentifier => "identifier is not valid UTF-8",
            Self::InvalidWideText => "wide text is not valid in its code set",
            Self::CharNotInCodeSet => "character is not in its code set, or does not fit the receiving type",
            Self::InvalidEnum => "enum ordinal is out of range",
            Self::InvalidDiscriminator => "union discriminator matches no member",
            Self::BoundExceeded => "value is longer than the bound of its IDL type",
            Self::InvalidFixed => "bytes are not a fixed-point number of the expected IDL type",
            Self::DuplicateKey => "map contains a key twice",
            Self::OutOfRange => "number is out of the range of its IDL type",
            Self::WideInGiop10 => "wchar and wstring do not exist in GIOP 1.0",
            Self::NoWideCodeSet => "wide text was received, but no code set for it was negotiated",
            Self::NoCodeSet => NO_CODE_SET,
            Self::NilReference => "object reference is nil although it must not be",
            Self::LimitExceeded => "a list or name is longer than this implementation accepts",
            Self::NoOrb => "an object reference can only be decoded by an ORB",
            Self::InvalidTypeCode => {
                "type code has an unknown kind, an invalid indirection or an impossible type"
            }
            Self::NotInAny => "an any cannot hold a value of this type",
            Self::NoValueFactory => "neither the type of a value nor a base of it has a registered factory",
            Self::LocalObject => "a local object or native value cannot be received",
            Self::Malformed => "malformed data",
        }
    }
}

/// The error of a failed decoding. The fault is in the peer's bytes, not in a value of the local program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{} (at byte {offset})", .kind.message())]
pub struct DecodeError {
    /// The reason.
    pub kind: DecodeErrorKind,
    /// The offset in bytes of the invalid part from the alignment origin of the message or encapsulation.
    pub offset: usize,
}

impl DecodeError {
    /// Creates an error of this kind. `offset` counts bytes from the alignment origin.
    #[cold]
    pub const fn new(kind: DecodeErrorKind, offset: usize) -> DecodeError {
        DecodeError { kind, offset }
    }
}

const NO_CODE_SET: &str = "client and server have no code set for char and string in common: the object reference lists \
                           those of the server, `OrbBuilder::char_code_sets` configures those of the client";
