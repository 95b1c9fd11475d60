//! [`Any`]: a value of whatever type, with its type code ("Any", in "CDR Transfer Syntax").

mod values;
mod walk;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::cdr::{
    CdrDecode, CdrEncode, CharSet, CodeSets, Context, DecodeLimits, Decoder, Encoder, WCharSet,
};
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use crate::typecode::{Labels, Node, TcKind, TypeCode, TypeCodeError, Typed};
use crate::value::Factories;
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};

/// Anys in each other that are decoded.
pub const MAX_ANYS: usize = 32;

/// Code sets that hold every text.
const CODE_SETS: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };

/// A value of whatever type of the IDL, with its [`TypeCode`].
///
/// The value is kept encoded, in memory of its own: in the byte order of this machine, text as UTF-8 and UTF-16. So an any
/// pins no message that it came in, it may be sent on to peers of other byte orders, versions and code sets, and a program
/// needs no Rust type for what it just passes on. Receiving copies the value once; what is taken out by [`get`](Any::get)
/// may be a view of the any's memory, which it keeps alive. A clone counts references.
///
/// Graphs of values are kept with what is shared in them; what an any shares with the rest of its message, it has a copy of. A value
/// of a type that neither the any's type code nor the program knows is truncated to the type that it is said to be of, if it may be.
///
/// Values of `custom` types, those of local interfaces and `native` types, and sequences of elements that take no octets can not
/// be in an any.
///
/// Equal are anys of [`equal`](TypeCode::equal) types whose values have the same octets, so a NaN is equal to itself.
///
/// ```
/// use giop_codec::any::Any;
/// use giop_codec::typecode::TypeCode;
///
/// let any = Any::new(vec!["hello".to_owned(), "world".to_owned()])?;
/// assert_eq!(any.type_code().to_string(), "sequence<string>");
/// assert_eq!(any.get::<Vec<String>>()?, ["hello", "world"]);
/// assert!(any.get::<Vec<i32>>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "CORBA::Any")]
#[derive(Clone, Default)]
pub struct Any {
    code: TypeCode,
    /// In native order from offset 0 on, as GIOP 1.2 has it, in `CODE_SETS`.
    value: Bytes,
    /// What references and values in it need when they are decoded.
    context: Option<Arc<dyn Context>>,
    /// The types of its values, where they were made here.
    made: Option<Arc<Factories>>,
    /// There is a place for a value in it.
    values: bool,
}

impl Any {
    /// An any with this value; a reference serves as well as the value itself. Allocates the encoding.
    ///
    /// # Errors
    /// The value has no encoding: see [`EncodeErrorKind`](crate::EncodeErrorKind).
    pub fn new<T: Typed + CdrEncode>(value: T) -> Result<Any, EncodeError> {
        Any::encoded(T::type_code(), &value)
    }

    /// An any with this value as one of the given type: of an alias of its type, which an any from [`new`](Any::new) does
    /// not name.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch) unless the types are equivalent, [`Encode`](AnyError::Encode).
    pub fn with_type<T: Typed + CdrEncode>(code: &TypeCode, value: T) -> Result<Any, AnyError> {
        let of_value = T::type_code();
        if !code.equivalent(&of_value) {
            return Err(AnyError::TypeMismatch { wanted: code.clone(), found: of_value });
        }
        Ok(Any::encoded(code.clone(), &value)?)
    }

    fn encoded<T: CdrEncode>(code: TypeCode, value: &T) -> Result<Any, EncodeError> {
        let mut e = canonical();
        e.want_context();
        if let Some(id) = exception_id(&code) {
            e.put_ascii(id)?;
        }
        value.encode(&mut e)?;
        let context = e.take_context();
        let made = e.values.as_mut().map(|values| values.take_types());
        let mut any = Any { code, value: e.into_bytes(), context, ..Any::default() };
        if let Some(made) = made {
            // Values do not always say their types.
            any.made = (!made.is_empty()).then(|| Arc::new(made));
            any.values = true;
            let mut e = canonical();
            any.copy_to(&mut e)?;
            any.value = e.into_bytes();
        }
        Ok(any)
    }

    /// The type of the value, aliases included; [`TypeCode::NULL`] where there is none.
    pub fn type_code(&self) -> &TypeCode {
        &self.code
    }

    /// Whether the value can be taken as a `T`: the types are equivalent.
    pub fn is<T: Typed>(&self) -> bool {
        self.code.equivalent(&T::type_code())
    }

    /// The value, if its type is [`equivalent`](TypeCode::equivalent) to that of `T`. Sequences of octets and numbers in
    /// it are views of the any's memory.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch); [`Decode`](AnyError::Decode) where a peer sent something else than the
    /// type that it named, or a bound or reference is not as `T` demands.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, AnyError> {
        let wanted = T::type_code();
        if !self.code.equivalent(&wanted) {
            return Err(AnyError::TypeMismatch { wanted, found: self.code.clone() });
        }
        let mut d = self.decoder();
        if exception_id(&wanted).is_some() {
            d.read_octet_str()?;
        }
        let value = T::decode(&mut d)?;
        match d.remaining() {
            0 => Ok(value),
            _ => Err(d.error(DecodeErrorKind::Malformed).into()),
        }
    }

    fn decoder(&self) -> Decoder<'_> {
        let mut d = Decoder::from_bytes(&self.value, ByteOrder::NATIVE, Version::V1_2);
        d.set_code_sets(CODE_SETS);
        d.with_kept_context(self.context.as_ref()).with_made_types(self.made.as_ref())
    }

    fn copy_to(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let mut d = self.decoder();
        // The value kept limits when it was received, or is one's own.
        d.set_limits(DecodeLimits { alloc: usize::MAX, ..d.limits() });
        walk::copy(&self.code, &mut d, e)?;
        Ok(())
    }

    /// Whether `e` would write the octets of the value as they are kept.
    fn is_kept_as_written_by(&self, e: &Encoder) -> bool {
        let sets = e.code_sets();
        !self.values
            && e.position().is_multiple_of(8)
            && e.order() == ByteOrder::NATIVE
            && e.version() == Version::V1_2
            && sets.wchar == CODE_SETS.wchar
            && (sets.char == CharSet::Utf8 || sets.char.has_ascii() && self.value.is_ascii())
    }
}

fn canonical() -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    e.set_code_sets(CODE_SETS);
    e
}

/// What stands before the members of an exception.
fn exception_id(code: &TypeCode) -> Option<&str> {
    match code.nodes.at(code.nodes.unaliased(code.root)) {
        Node::Named(named) if named.kind == TcKind::Except => Some(&named.id),
        _ => None,
    }
}

impl CdrEncode for Any {
    /// The type code, then the value. Octets and numbers of long sequences are shared, all else is copied once.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.code.encode(e)?;
        if let Some(context) = &self.context {
            e.note_kept_context(context);
        }
        if let Some(made) = &self.made {
            e.note_made_types(made);
        }
        if self.is_kept_as_written_by(e) {
            e.put_shared_part(self.value.clone());
            return Ok(());
        }
        self.copy_to(e)
    }
}

impl CdrDecode for Any {
    /// That of a type code without parameters.
    const MIN_SIZE: usize = 4;

    /// Copies the value once. At most [`MAX_ANYS`] anys are in each other.
    fn decode(d: &mut Decoder<'_>) -> Result<Any, DecodeError> {
        let code = TypeCode::decode(d)?;
        let mut e = canonical();
        let start = d.position();
        let seen = d.nested(|d| {
            walk::copy(&code, d, &mut e).map_err(|fault| match fault {
                walk::Fault::Decode(error) => error,
                // What can not be written in code sets that hold every text.
                walk::Fault::Encode(_) => DecodeError::new(DecodeErrorKind::Malformed, start),
            })
        })?;
        let context = if seen.references || seen.values { d.keep_context() } else { None };
        let made = if seen.values { d.made_types().cloned() } else { None };
        Ok(Any { code, value: e.into_bytes(), context, made, values: seen.values })
    }
}

impl PartialEq for Any {
    fn eq(&self, other: &Any) -> bool {
        self.value == other.value && self.code.equal(&other.code)
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Any({}, {} octets)", self.code, self.value.len())
    }
}

impl TypeCode {
    /// The label of a union's member, as a value of the discriminator's type; an octet 0 for the default member.
    ///
    /// # Errors
    /// [`BadKind`](TypeCodeError::BadKind), [`Bounds`](TypeCodeError::Bounds).
    pub fn member_label(&self, index: usize) -> Result<Any, TypeCodeError> {
        let Some(label) = self.member_discriminator(index)? else {
            return Any::new(0_u8).map_err(|_| TypeCodeError::BadKind);
        };
        let code = self.discriminator_type()?;
        let labels = match code.unaliased().node() {
            Node::Basic(kind) => Labels::of_basic(*kind).ok_or(TypeCodeError::BadKind)?,
            _ => Labels::Enum(u32::MAX),
        };
        let mut e = canonical();
        labels.write(&mut e, label).map_err(|_| TypeCodeError::BadKind)?;
        Ok(Any { code, value: e.into_bytes(), ..Any::default() })
    }
}

/// Why a value did not go into an any, or not come out of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyError {
    /// The types are not equivalent.
    TypeMismatch {
        /// The type that was asked for.
        wanted: TypeCode,
        /// The type of the value.
        found: TypeCode,
    },
    /// The value has no encoding.
    Encode(EncodeError),
    /// The octets are not those of a value of the type.
    Decode(DecodeError),
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyError::TypeMismatch { wanted, found } => {
                write!(f, "a value of type `{found}` is none of type `{wanted}`")
            }
            AnyError::Encode(error) => error.fmt(f),
            AnyError::Decode(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AnyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AnyError::TypeMismatch { .. } => None,
            AnyError::Encode(error) => Some(error),
            AnyError::Decode(error) => Some(error),
        }
    }
}

impl From<EncodeError> for AnyError {
    fn from(error: EncodeError) -> AnyError {
        AnyError::Encode(error)
    }
}

impl From<DecodeError> for AnyError {
    fn from(error: DecodeError) -> AnyError {
        AnyError::Decode(error)
    }
}

impl From<AnyError> for SystemException {
    /// `BAD_OPERATION` where the types are not equivalent; else what the error of the encoding says. COMPLETED_NO.
    fn from(error: AnyError) -> SystemException {
        let completed = CompletionStatus::No;
        match error {
            AnyError::Encode(error) => error.system(completed),
            AnyError::Decode(error) => error.system(completed),
            AnyError::TypeMismatch { .. } => {
                SystemException::new(SystemExceptionKind::BadOperation, MinorCode::NONE, completed)
                    .with_source(error)
            }
        }
    }
}
