//! [`Any`]: a value of an arbitrary type, with its type code ("Any", in "CDR Transfer Syntax").

mod received;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use self::received::ReceivedValue;
use crate::cdr::{CdrDecode, CdrEncode, CharSet, Context, DecodeLimits, Decoder, Encoder};
use crate::exception::{CompletionStatus, SystemException};
use crate::program::Labels;
use crate::typecode::{Node, TcKind, TypeCode, TypeCodeError, TypeDesc, Typed};
use crate::value::{LocalTypes, ValueBase, ValueForm, custom, formal, has_base_with_id, untyped, write};
pub use crate::walk::MAX_ANYS;
use crate::walk::{
    CopyError, Program, StreamProperties, UNICODE_CODE_SETS, canonical_encoder, copy_value, copy_with_ids,
    read_except_id,
};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, OneLine, Version};

/// A value of an arbitrary IDL type, with its [`TypeCode`].
///
/// The value is stored encoded, so that a program needs no Rust type for a value that it only forwards. The
/// peer that receives it may have another byte order, version and code sets.
///
/// A value that is created locally is encoded in the byte order of this machine, with text as UTF-8 and
/// UTF-16. A received value is stored as received until another form is requested. A received value of at
/// least 4 KiB is a view of its message, whose memory it keeps alive; a smaller one is copied once.
///
/// On receipt, only counts and lengths are checked. Forwarding to a peer with the same byte order, version
/// and code sets checks nothing. Other faults of a received value, such as invalid text, are reported when it
/// is extracted. The result of [`get`](Any::get) may be a view of the any's memory. Cloning increments
/// reference counts.
///
/// Sharing within a graph of values is preserved. Values that the any shares with the rest of its message are
/// copied into it. If neither the any's type code nor the program knows the type of a value, it is truncated
/// to its declared type, if it is truncatable.
///
/// Only the program that defines a `custom` type knows the structure of its state. A value of such a type is
/// stored as received, and can be extracted if the program knows the type. It can be forwarded only in its
/// received byte order, version and code sets. The ORB therefore sends a message in the byte order of the
/// first custom value in it.
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
    /// Created locally, or with values of value types.
    Checked(CheckedValue),
    Received(Arc<ReceivedValue>),
}

impl Default for Form {
    fn default() -> Form {
        Form::Checked(CheckedValue::default())
    }
}

/// A value that was checked completely.
#[derive(Clone, Default)]
struct CheckedValue {
    /// The encoding, from offset 0 on.
    bytes: Bytes,
    /// The properties of the received stream for a value that contains custom values, otherwise the default.
    stream: StreamProperties,
    /// The context that its references and values need when they are decoded.
    context: Option<Arc<dyn Context>>,
    /// The types of its values of value types that were created locally.
    local_types: Option<Arc<LocalTypes>>,
    /// Whether it has a part of a value type, which may be null.
    has_graphs: bool,
}

impl Any {
    /// Creates an any of this value, or of a reference to it. Allocates the encoding.
    ///
    /// # Errors
    /// The value has no encoding: see [`EncodeErrorKind`].
    pub fn new<T: Typed + CdrEncode>(value: T) -> Result<Any, EncodeError> {
        Any::from_value(T::type_code(), &value)
    }

    /// Creates an any of this value with the given type code, such as an alias of its type. [`new`](Any::new)
    /// uses the type code without aliases.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch) unless the types are equivalent,
    /// [`Encode`](AnyError::Encode), also if the type is not [complete](TypeCode::is_complete).
    pub fn with_type<T: Typed + CdrEncode>(code: &TypeCode, value: T) -> Result<Any, AnyError> {
        let of_value = T::type_code();
        if !code.equivalent(&of_value) {
            return Err(AnyError::TypeMismatch { wanted: code.clone(), found: of_value });
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
            e.put_ascii(id)?;
        }
        value.encode(&mut e)?;
        let context = e.take_context();
        let local_types = write::take_value_types(&mut e);
        let mut checked = CheckedValue { bytes: e.into_bytes(), context, ..CheckedValue::default() };
        if let Some(local_types) = local_types {
            // The headers of values may omit their types.
            checked.local_types = (!local_types.is_empty()).then(|| Arc::new(local_types));
            checked.has_graphs = true;
            checked.bytes = checked.canonical_bytes(&code)?;
        } else if Program::of(&code).contents().anys
            && let Ok(bytes) = checked.canonical_bytes(&code)
        {
            // Nested anys that were received are written in their received form, but equal anys must have
            // equal bytes. A nested value that does not match its type is reported when it is extracted.
            checked.bytes = bytes;
        }
        Ok(Any { code, form: Form::Checked(checked) })
    }

    /// Returns the type of the value, aliases included; [`TypeCode::NULL`] if there is no value.
    pub fn type_code(&self) -> &TypeCode {
        &self.code
    }

    /// Returns whether the value can be extracted as a `T`: the types must be equivalent. In addition, a
    /// reference can be extracted as a reference to `Object`, and a value of a value type as one of a base or
    /// of `ValueBase`.
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

    /// Returns the value, if it [`is`](Any::is) a `T`. If the program does not know the value type that is
    /// returned as a base, the value is truncated, if its type code permits that.
    ///
    /// Sequences of bytes and numbers in the result are views of the any's memory.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch); [`Decode`](AnyError::Decode) if a peer sent a value that
    /// does not match its type code, or if a bound or reference does not match `T`.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, AnyError> {
        let wanted = T::type_code();
        if !self.is_extractable_as(&wanted) {
            return Err(AnyError::TypeMismatch { wanted, found: self.code.clone() });
        }
        let mut d = self.decoder();
        if let Some(id) = exception_id(&self.code) {
            read_except_id(&mut d, id)?;
        }
        match T::decode(&mut d) {
            Ok(value) if d.remaining() == 0 => Ok(value),
            Ok(_) => Err(d.error(DecodeErrorKind::Malformed).into()),
            // The type is unknown, but the value may be truncatable.
            Err(error) if error.kind == DecodeErrorKind::NoValueFactory && !self.code.equivalent(&wanted) => {
                self.get_truncated(error).map_err(AnyError::from)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the value without its type code, as an argument or result of an operation whose type both sides
    /// know. Shares the bytes of a large value if they need no conversion, otherwise copies it once.
    ///
    /// # Errors
    /// The value has no encoding in this version and these code sets.
    pub fn encode_value(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match &self.form {
            Form::Checked(checked) => checked.encode(&self.code, e),
            Form::Received(received) => received.encode(&self.code, e),
        }
    }

    /// Reads a value of this type, without a type code. Stores it as received: a view if it has at least
    /// 4 KiB, otherwise a copy.
    ///
    /// # Errors
    /// The bytes are not those of such a value, as far as its structure tells.
    pub fn decode_value(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DecodeError> {
        let form = match ReceivedValue::take(code, d)? {
            Some(received) => Form::Received(Arc::new(received)),
            None => Form::Checked(d.nested(|d| CheckedValue::read(code, d))?),
        };
        Ok(Any { code: code.clone(), form })
    }

    /// Returns the size in bytes of the encoded value, without its type: about as many as in a message. Forms
    /// for programs, such as a tree or text, take several times as much memory.
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

    /// Creates an any of a value that was written to a [`canonical_encoder`] that collects its context.
    pub(crate) fn from_encoder(code: &TypeCode, mut e: Encoder) -> Result<Any, DecodeError> {
        let context = e.take_context();
        let local_types = write::take_value_types(&mut e).filter(|local_types| !local_types.is_empty());
        let local_types = local_types.map(Arc::new);
        let mut value =
            CheckedValue { context, local_types, bytes: e.into_bytes(), ..CheckedValue::default() };
        let program = Program::of(code);
        let contents = program.contents();
        if contents.anys || contents.graphs || program.steps().empties {
            // Finds out whether there are values of value types, and checks that an any may hold the value.
            let checked = CheckedValue::read(code, &mut without_alloc_limit(value.decoder()))?;
            value = checked;
        }
        Ok(Any { code: code.clone(), form: Form::Checked(value) })
    }

    /// Returns the value as one of a base of its type, which the program knows.
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
    /// Copies a value once, and checks all of it.
    fn read(code: &TypeCode, d: &mut Decoder<'_>) -> Result<CheckedValue, DecodeError> {
        let (start, bookmark, nesting, received_stream) =
            (d.position(), d.bookmark(), custom::nesting(d), StreamProperties::of(d));
        let checked = match CheckedValue::read_into(StreamProperties::default(), code, d) {
            Err(CopyError::Encode(EncodeError { kind: EncodeErrorKind::CustomState }))
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
            CopyError::Encode(EncodeError { kind: EncodeErrorKind::CustomState }) => {
                DecodeError::new(DecodeErrorKind::NotInAny, start)
            }
            // The value cannot be written even in code sets that hold every text.
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
        let context = if found.references || found.graphs { d.keep_context() } else { None };
        let local_types = if found.graphs { untyped::local_types(d).cloned() } else { None };
        Ok(CheckedValue { bytes: e.into_bytes(), stream, context, local_types, has_graphs: found.graphs })
    }

    fn decoder(&self) -> Decoder<'_> {
        self.decoder_of(&self.bytes)
    }

    /// Returns a decoder of these bytes in place of the value.
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
        if self.is_as_written_by(code, e) {
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

    fn is_as_written_by(&self, code: &TypeCode, e: &Encoder) -> bool {
        let sets = e.code_sets();
        !self.has_graphs
            && self.stream == StreamProperties::default()
            && e.order() == ByteOrder::NATIVE
            && e.version() == Version::V1_2
            && sets.wchar == UNICODE_CODE_SETS.wchar
            && e.position().is_multiple_of(Program::of(code).contents().align.max(1).into())
            && (sets.char == CharSet::Utf8 || sets.char.has_ascii() && self.bytes.is_ascii())
    }
}

/// Lifts the limit of memory: the value was within the limits on receipt, or was created locally.
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
        && formal(&base.nodes, base.root).is_some_and(|id| has_base_with_id(&code.nodes, code.root, id))
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
    /// Writes the type code, then the value. Bytes and numbers of long sequences are shared, everything else
    /// is copied once.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.code.encode(e)?;
        self.encode_value(e)
    }
}

impl CdrDecode for Any {
    /// The size of a type code without parameters.
    const MIN_SIZE: usize = 4;

    /// Stores the value as received, see [`Any`]. Anys nest at most [`MAX_ANYS`] levels.
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
            // A value that does not match its type is equal to no other one.
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
    /// Returns the label of a union's member, as a value of the discriminator's type, or an `octet` of 0 for
    /// the default member.
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
        let mut e = canonical_encoder();
        labels.write(&mut e, label).map_err(|_| TypeCodeError::BadKind)?;
        Ok(Any {
            code,
            form: Form::Checked(CheckedValue { bytes: e.into_bytes(), ..CheckedValue::default() }),
        })
    }
}

/// The reason why a value could not be put into an any, or not be extracted from it.
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
    /// The bytes are not those of a value of the type.
    #[error("{0}")]
    Decode(#[from] DecodeError),
}

impl From<AnyError> for SystemException {
    /// Converts to `BAD_OPERATION` if the types are not equivalent, otherwise to the exception of the
    /// encoding error. COMPLETED_NO.
    fn from(error: AnyError) -> SystemException {
        let completed = CompletionStatus::No;
        match error {
            AnyError::Encode(error) => error.system(completed),
            AnyError::Decode(error) => error.system(completed),
            AnyError::TypeMismatch { .. } => {
                SystemException::bad_operation().completed(completed).with_source(error)
            }
        }
    }
}
