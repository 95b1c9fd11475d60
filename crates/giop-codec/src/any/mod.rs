//! [`Any`]: a value of an arbitrary type, with its type code ("Any", in "CDR Transfer Syntax").

mod received;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use self::received::ReceivedValue;
use crate::cdr::{CdrDecode, CdrEncode, CharSet, Context, DecodeLimits, Decoder, Encoder};
use crate::exception::{CompletionStatus, SystemException};
use crate::program::LabelEncoding;
use crate::typecode::{Node, TcKind, TypeCode, TypeCodeError, TypeDesc, Typed};
use crate::value::{LocalTypes, ValueBase, ValueForm, custom, declared_id, has_base_with_id, untyped, write};
pub use crate::walk::MAX_NESTED_ANYS;
use crate::walk::{
    CopyError, Program, StreamProperties, UNICODE_CODE_SETS, canonical_encoder, copy_value, copy_with_ids,
    read_exception_id,
};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, OneLine, Version};

/// A value of an arbitrary IDL type, with its [`TypeCode`].
///
/// The value is stored encoded, so that a program needs no Rust type for a value that it only forwards. It
/// can be sent to peers with another byte order, version and code sets.
///
/// A value that is created locally is encoded in the byte order of this machine, with text as UTF-8 and
/// UTF-16. A received value is stored as received. If it has at least 4 KiB, it is a view of its message,
/// whose memory it keeps alive. Smaller values are copied.
///
/// On receipt, text, its bounds and the ordinals of enums are not checked. Faults in them are reported when
/// the value is extracted, or when it must be converted for a peer with another byte order, version or code
/// set. Values that contain value types, or that a fragment or chunk boundary divides, are an exception: they
/// are copied and checked completely on receipt.
/// The result of [`get`](Any::get) may be a view of the any's memory. Cloning an any copies no value.
///
/// A graph of value types keeps its structure: references to one value remain references to one value. Values
/// that the any shares with the rest of its message are copied into it. A value whose type neither the type
/// code nor the program defines is truncated to its declared type, if its own type permits truncation.
///
/// Only the program that defines a `custom` type knows the structure of its state. A value of such a type is
/// stored as received, and can be extracted if the program knows the type. It can be forwarded only in its
/// received byte order, version and code sets. The ORB therefore sends a message in the byte order of the
/// custom values in it. It cannot send values of both orders in one message.
///
/// An any cannot hold values of local interfaces and `native` types, or sequences of elements that take no
/// bytes.
///
/// Anys are equal if their types are [`equal`](TypeCode::equal) and their values have the same bytes. A NaN
/// is therefore equal to itself.
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
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// A value that was created locally, or that had to be copied on receipt.
    Checked(CheckedValue),
    Received(Arc<ReceivedValue>),
}

impl Default for Form {
    fn default() -> Form {
        Form::Checked(CheckedValue::default())
    }
}

/// A value that was created locally, or that was copied from a message and checked completely.
#[derive(Clone, Default)]
struct CheckedValue {
    /// The encoding, from offset 0 on.
    bytes: Bytes,
    /// The byte order, version and code sets of `bytes`. They are those of the received message if the value
    /// contains custom values, and the default otherwise.
    stream: StreamProperties,
    /// The context that is needed to decode the references and value types in the value.
    context: Option<Arc<dyn Context>>,
    /// The types of locally created instances of value types, which `bytes` may omit.
    local_types: Option<Arc<LocalTypes>>,
    /// Whether a part of the value has a value type, even if that part is null.
    has_value_types: bool,
}

impl Any {
    /// Creates an any of this value, which may also be a Rust reference. Allocates memory for the encoding.
    ///
    /// # Errors
    /// The value has no encoding; see [`EncodeErrorKind`] for the reasons.
    pub fn new<T: Typed + CdrEncode>(value: T) -> Result<Any, EncodeError> {
        Any::from_value(T::type_code(), &value)
    }

    /// Creates an any of this value with the given type code, such as an alias of its type. [`new`](Any::new)
    /// uses the type code without aliases.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch) if the types are not equivalent. [`Encode`](AnyError::Encode)
    /// if the type code is not [complete](TypeCode::is_complete), or if the value has no encoding.
    pub fn with_type<T: Typed + CdrEncode>(code: &TypeCode, value: T) -> Result<Any, AnyError> {
        let value_type = T::type_code();
        if !code.equivalent(&value_type) {
            return Err(AnyError::TypeMismatch { wanted: code.clone(), found: value_type });
        }
        if !code.is_complete() {
            return Err(EncodeError::new(EncodeErrorKind::IncompleteTypeCode).into());
        }
        Ok(Any::from_value(code.clone(), &value)?)
    }

    fn from_value<T: CdrEncode>(code: TypeCode, value: &T) -> Result<Any, EncodeError> {
        let mut e = canonical_encoder();
        e.record_next_context();
        if let Some(id) = exception_id(&code) {
            e.put_unconverted_str(id)?;
        }
        value.encode(&mut e)?;
        let context = e.take_context();
        let local_types = write::take_value_types(&mut e);
        let mut checked = CheckedValue { bytes: e.into_bytes(), context, ..CheckedValue::default() };
        if let Some(local_types) = local_types {
            // Value headers may omit types, so the types are kept beside the bytes.
            checked.local_types = (!local_types.is_empty()).then(|| Arc::new(local_types));
            checked.has_value_types = true;
            checked.bytes = checked.canonical_bytes(&code)?;
        } else if Program::of(&code).contents().has_anys
            && let Ok(bytes) = checked.canonical_bytes(&code)
        {
            // Received anys inside the value were written as received. Equal anys must have equal bytes, so
            // they are converted to the form of local values. If one does not match its type, it stays as
            // received, and the error is reported when it is extracted.
            checked.bytes = bytes;
        }
        Ok(Any { code, form: Form::Checked(checked) })
    }

    /// Returns the type code of the value with its aliases, or [`TypeCode::NULL`] if there is no value.
    pub fn type_code(&self) -> &TypeCode {
        &self.code
    }

    /// Returns whether the value can be extracted as a `T`. This is the case if the types are equivalent. In
    /// addition, every reference can be extracted as a reference to `Object`, and an instance of a value type
    /// as one of its bases or as `ValueBase`.
    pub fn is<T: Typed>(&self) -> bool {
        self.is_extractable_as(&T::type_code())
    }

    fn is_extractable_as(&self, wanted: &TypeCode) -> bool {
        let is_reference = |kind| matches!(kind, TcKind::ObjRef | TcKind::Component | TcKind::Home);
        self.code.equivalent(wanted)
            || wanted.kind() == TcKind::ObjRef
                && wanted.equivalent(&TypeCode::OBJECT)
                && is_reference(self.code.unaliased().kind())
            || has_base(&self.code, wanted)
    }

    /// Returns the value as a `T`. Fails unless [`is`](Any::is) returns true for this type. When a base of a
    /// value type is extracted and the program does not know the derived type, the value is truncated to the
    /// base, if its type code permits truncation.
    ///
    /// Sequences of bytes and numbers in the result may be views of the any's memory.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch) if the value is not a `T`. [`Decode`](AnyError::Decode) if a
    /// received value does not match its type code, or a bound or reference does not fit `T`.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, AnyError> {
        let wanted = T::type_code();
        if !self.is_extractable_as(&wanted) {
            return Err(AnyError::TypeMismatch { wanted, found: self.code.clone() });
        }
        let mut d = self.decoder();
        if let Some(id) = exception_id(&self.code) {
            read_exception_id(&mut d, id)?;
        }
        match T::decode(&mut d) {
            Ok(value) if d.remaining() == 0 => Ok(value),
            Ok(_) => Err(d.error(DecodeErrorKind::Malformed).into()),
            // The program does not know the value's own type, but the value may be truncatable to `T`.
            Err(error) if error.kind == DecodeErrorKind::NoValueFactory && !self.code.equivalent(&wanted) => {
                self.get_truncated(error).map_err(AnyError::from)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the value without its type code, for an argument or result whose type both sides know. The
    /// bytes of a large value that needs no conversion are shared; other values are copied.
    ///
    /// # Errors
    /// The value has no encoding in this version and these code sets.
    pub fn encode_value(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match &self.form {
            Form::Checked(checked) => checked.encode(&self.code, e),
            Form::Received(received) => received.encode(&self.code, e),
        }
    }

    /// Reads a value of this type, without a type code. It is stored as described at [`Any`].
    ///
    /// # Errors
    /// The bytes do not match the type. Text and ordinals are checked only if the value must be copied: if it
    /// contains value types, or if a fragment or chunk boundary divides it.
    pub fn decode_value(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DecodeError> {
        let form = match ReceivedValue::take(code, d)? {
            Some(received) => Form::Received(Arc::new(received)),
            None => Form::Checked(d.nested(|d| CheckedValue::read(code, d))?),
        };
        Ok(Any { code: code.clone(), form })
    }

    /// Returns the size in bytes of the encoded value without its type code. The size in a message is about
    /// the same. Decoded as a tree of values or as JSON text, the value takes several times as much memory.
    pub fn byte_len(&self) -> usize {
        match &self.form {
            Form::Checked(checked) => checked.bytes.len(),
            Form::Received(received) => received.bytes.len(),
        }
    }

    fn checked(&self) -> Result<&CheckedValue, DecodeError> {
        match &self.form {
            Form::Checked(checked) => Ok(checked),
            Form::Received(received) => received.checked(&self.code),
        }
    }

    /// Creates an any from a [`canonical_encoder`] that contains the value and has recorded its context.
    pub(crate) fn from_encoder(code: &TypeCode, mut e: Encoder) -> Result<Any, DecodeError> {
        let context = e.take_context();
        let local_types = write::take_value_types(&mut e).filter(|local_types| !local_types.is_empty());
        let local_types = local_types.map(Arc::new);
        let mut value =
            CheckedValue { context, local_types, bytes: e.into_bytes(), ..CheckedValue::default() };
        let program = Program::of(code);
        let contents = program.contents();
        if contents.has_anys || contents.has_value_types || program.steps().may_have_empty_elements {
            // Find out whether the value contains value types, and check that an any may hold it.
            let checked = CheckedValue::read(code, &mut without_alloc_limit(value.decoder()))?;
            value = checked;
        }
        Ok(Any { code: code.clone(), form: Form::Checked(value) })
    }

    /// Returns the value, truncated to a base type that the program knows, or `error` if that is impossible.
    #[cold]
    fn get_truncated<T: CdrDecode>(&self, error: DecodeError) -> Result<T, DecodeError> {
        let checked = self.checked()?;
        let mut e = checked.stream.encoder();
        copy_with_ids(&self.code, &mut without_alloc_limit(checked.decoder()), &mut e).map_err(|_| error)?;
        let bytes = e.into_bytes();
        let mut d = checked.decoder_of(&bytes);
        let value = T::decode(&mut d)?;
        if d.remaining() == 0 { Ok(value) } else { Err(d.error(DecodeErrorKind::Malformed)) }
    }

    pub(crate) fn decoder(&self) -> Decoder<'_> {
        match &self.form {
            Form::Checked(checked) => checked.decoder(),
            Form::Received(received) => received.decoder(),
        }
    }
}

impl CheckedValue {
    /// Copies a value and checks it completely.
    fn read(code: &TypeCode, d: &mut Decoder<'_>) -> Result<CheckedValue, DecodeError> {
        let (start, bookmark, nesting, received_stream) =
            (d.position(), d.bookmark(), custom::nesting(d), StreamProperties::of(d));
        let checked = match CheckedValue::read_into(StreamProperties::default(), code, d) {
            Err(CopyError::Encode(EncodeError { kind: EncodeErrorKind::UnconvertibleCustomState }))
                if received_stream != StreamProperties::default() =>
            {
                d.return_to(bookmark);
                custom::restore_nesting(d, nesting);
                CheckedValue::read_into(received_stream, code, d)
            }
            read => read,
        };
        checked.map_err(|fault| match fault {
            CopyError::Decode(error) => error,
            CopyError::Encode(EncodeError { kind: EncodeErrorKind::UnconvertibleCustomState }) => {
                DecodeError::new(DecodeErrorKind::NotInAny, start)
            }
            // The form of local values can hold every valid value.
            CopyError::Encode(_) => DecodeError::new(DecodeErrorKind::Malformed, start),
        })
    }

    fn read_into(
        stream: StreamProperties,
        code: &TypeCode,
        d: &mut Decoder<'_>,
    ) -> Result<CheckedValue, CopyError> {
        let mut e = stream.encoder();
        let found = copy_value(code, d, &mut e)?;
        let context = if found.has_references || found.has_value_types { d.shared_context() } else { None };
        let local_types = if found.has_value_types { untyped::local_types(d).cloned() } else { None };
        let has_value_types = found.has_value_types;
        Ok(CheckedValue { bytes: e.into_bytes(), stream, context, local_types, has_value_types })
    }

    fn decoder(&self) -> Decoder<'_> {
        self.decoder_of(&self.bytes)
    }

    /// Returns a decoder of `bytes` with the context and the types of this value.
    fn decoder_of<'v>(&'v self, bytes: &'v Bytes) -> Decoder<'v> {
        let d = self.stream.decoder(bytes);
        untyped::with_local_types(d.with_shared_context(self.context.as_ref()), self.local_types.as_ref())
    }

    fn encode(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        if let Some(context) = &self.context {
            e.record_shared_context(context);
        }
        if let Some(local_types) = &self.local_types {
            untyped::store_local_types(e, local_types);
        }
        if self.needs_no_conversion_for(code, e) {
            e.put_shared_part(self.bytes.clone());
            return Ok(());
        }
        self.copy_to(code, e)
    }

    fn canonical_bytes(&self, code: &TypeCode) -> Result<Bytes, EncodeError> {
        let mut e = canonical_encoder();
        self.copy_to(code, &mut e)?;
        Ok(e.into_bytes())
    }

    fn copy_to(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        copy_value(code, &mut without_alloc_limit(self.decoder()), e)?;
        Ok(())
    }

    fn needs_no_conversion_for(&self, code: &TypeCode, e: &Encoder) -> bool {
        let sets = e.code_sets();
        !self.has_value_types
            && self.stream == StreamProperties::default()
            && e.order() == ByteOrder::NATIVE
            && e.version() == Version::V1_2
            && sets.wchar == UNICODE_CODE_SETS.wchar
            && e.position().is_multiple_of(Program::of(code).contents().align.max(1).into())
            && (sets.char == CharSet::Utf8 || sets.char.has_ascii() && self.bytes.is_ascii())
    }
}

/// Removes the memory limit: the value was within the limits on receipt, or was created locally.
fn without_alloc_limit(mut d: Decoder<'_>) -> Decoder<'_> {
    d.set_limits(DecodeLimits { alloc: usize::MAX, ..d.limits() });
    d
}

/// Returns whether `base` is `ValueBase` or a base of the value type `code`.
fn has_base(code: &TypeCode, base: &TypeCode) -> bool {
    let (code, base) = (code.unaliased(), base.unaliased());
    let is_value_type = matches!(code.kind(), TcKind::Value | TcKind::Event);
    if base.kind() == TcKind::Value && base.id() == Ok(ValueBase::REPOSITORY_ID) {
        return is_value_type || code.kind() == TcKind::ValueBox;
    }
    is_value_type
        && declared_id(&base.nodes, base.root).is_some_and(|id| has_base_with_id(&code.nodes, code.root, id))
}

/// Returns the repository id that precedes the members of an exception.
fn exception_id(code: &TypeCode) -> Option<&str> {
    match code.nodes.at(code.nodes.unaliased(code.root)) {
        Node::Named(named) if named.kind == TcKind::Except => Some(&named.id),
        _ => None,
    }
}

impl Typed for Any {
    const DESC: &'static TypeDesc = &TypeDesc::Basic(TcKind::Any);
}

impl CdrEncode for Any {
    /// Writes the type code, then the value as [`encode_value`](Any::encode_value) does.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.code.encode(e)?;
        self.encode_value(e)
    }
}

impl CdrDecode for Any {
    /// The size of a type code without parameters.
    const MIN_SIZE: usize = 4;

    /// Reads the type code, then the value as [`decode_value`](Any::decode_value) does. Anys may nest
    /// [`MAX_NESTED_ANYS`] levels deep.
    fn decode(d: &mut Decoder<'_>) -> Result<Any, DecodeError> {
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        Any::decode_value(&code, d)
    }
}

impl PartialEq for Any {
    fn eq(&self, other: &Any) -> bool {
        let is_same_value = match (&self.form, &other.form) {
            (Form::Received(one), Form::Received(other)) if one.has_same_bytes(other) => true,
            // An any whose value does not match its type is equal only to one with the same received bytes.
            _ => match (self.checked(), other.checked()) {
                (Ok(one), Ok(other)) => one.stream == other.stream && one.bytes == other.bytes,
                _ => false,
            },
        };
        is_same_value && self.code.equal(&other.code)
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Any({}, {} bytes)", self.code, self.byte_len())
    }
}

impl TypeCode {
    /// Returns a union member's label in the discriminator's type, or an `octet` of 0 for the default member.
    ///
    /// # Errors
    /// [`BadKind`](TypeCodeError::BadKind) if the type is not a union, [`Bounds`](TypeCodeError::Bounds) if
    /// it has no member with this index.
    pub fn member_label(&self, index: usize) -> Result<Any, TypeCodeError> {
        let Some(label) = self.member_discriminator(index)? else {
            return Any::new(0_u8).map_err(|_| TypeCodeError::BadKind);
        };
        let code = self.discriminator_type()?;
        let labels = match code.unaliased().node() {
            Node::Basic(kind) => LabelEncoding::of_basic(*kind).ok_or(TypeCodeError::BadKind)?,
            _ => LabelEncoding::Enum(u32::MAX),
        };
        let mut e = canonical_encoder();
        labels.write(&mut e, label).map_err(|_| TypeCodeError::BadKind)?;
        Ok(Any {
            code,
            form: Form::Checked(CheckedValue { bytes: e.into_bytes(), ..CheckedValue::default() }),
        })
    }
}

/// The reason why a value could not be put into an any, or could not be extracted from it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnyError {
    /// The types are not equivalent.
    #[error("the type of the value is `{}`, not `{}`", OneLine::new(.found), OneLine::new(.wanted))]
    TypeMismatch {
        /// The requested type.
        wanted: TypeCode,
        /// The type of the value.
        found: TypeCode,
    },
    /// The value has no encoding.
    #[error("{0}")]
    Encode(#[from] EncodeError),
    /// The bytes are not a valid value of the type.
    #[error("{0}")]
    Decode(#[from] DecodeError),
}

impl From<AnyError> for SystemException {
    /// Converts a type mismatch to `BAD_OPERATION`, and an encoding or decoding error to its own exception.
    /// The completion status is `COMPLETED_NO`.
    fn from(error: AnyError) -> SystemException {
        let completed = CompletionStatus::No;
        match error {
            AnyError::Encode(error) => error.to_system_exception(completed),
            AnyError::Decode(error) => error.to_system_exception(completed),
            AnyError::TypeMismatch { .. } => {
                SystemException::bad_operation().completed(completed).with_source(error)
            }
        }
    }
}
