//! [`Any`]: a value of whatever type, with its type code ("Any", in "CDR Transfer Syntax").

mod custom;
mod places;
mod received;
mod values;
mod walk;

use custom::Stream;
pub(crate) use places::Places;
use received::Received;
pub(crate) use values::pass_state;
pub(crate) use walk::{Fault, copy as copy_value};

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::cdr::{
    CdrDecode, CdrEncode, CharSet, CodeSets, Context, DecodeLimits, Decoder, Encoder, WCharSet,
};
use crate::dynamic::program::{Program, locate_kept, read_except_id};
use crate::dynamic::{DynError, DynErrorKind, Dynamic};
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use crate::typecode::{Labels, Node, TcKind, TypeCode, TypeCodeError, Typed};
use crate::value::Made;
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, OneLine, Version};

/// Anys in each other that are decoded.
pub const MAX_ANYS: usize = 32;

/// Code sets that hold every text.
const CODE_SETS: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };

/// A value of whatever type of the IDL, with its [`TypeCode`].
///
/// The value is kept encoded, so a program needs no Rust type for what it just passes on; it may be sent on to peers of other byte orders,
/// versions and code sets. One that is made here is in the byte order of this machine, text as UTF-8 and UTF-16. One that is received keeps the
/// octets that came, until somebody asks for more: a value of 4 KiB and more is a view of its message, whose memory it keeps alive, less is
/// copied once. Receiving looks at counts and lengths alone, sending on to a like peer at nothing: what is wrong with a received
/// value beyond that, such as text that is none, is found by whoever takes it out. What [`get`](Any::get) takes out may be a
/// view of the any's memory. A clone counts references.
///
/// Graphs of values are kept with what is shared in them; what an any shares with the rest of its message, it has a copy of. A value
/// of a type that neither the any's type code nor the program knows is truncated to the type that it is said to be of, if it may be.
///
/// Of a value of a `custom` type only the author knows what is in it. It is kept as it came, and can be taken out where the program knows the type;
/// it is sent on in the byte order, version and code sets that it came in, and refused in others: the ORB chooses the byte order of a
/// message by the first of them. Values of local interfaces and `native` types, and
/// sequences of elements that take no bytes can not be in an any.
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
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// Made here, or with values of value types.
    Kept(Kept),
    Received(Arc<Received>),
}

impl Default for Form {
    fn default() -> Form {
        Form::Kept(Kept::default())
    }
}

/// A value that was looked at.
#[derive(Clone, Default)]
struct Kept {
    /// From offset 0 on.
    value: Bytes,
    /// How, if there are values of custom types in it: as they came. All others are kept in the one default form.
    stream: Stream,
    /// What references and values in it need when they are decoded.
    context: Option<Arc<dyn Context>>,
    /// The types of its values, where they were made here.
    made: Option<Arc<Made>>,
    /// There is a place for a value in it.
    values: bool,
}

impl Any {
    /// An any with this value; a reference serves as well as the value itself. Allocates the encoding.
    ///
    /// # Errors
    /// The value has no encoding: see [`EncodeErrorKind`].
    pub fn new<T: Typed + CdrEncode>(value: T) -> Result<Any, EncodeError> {
        Any::encoded(T::type_code(), &value)
    }

    /// An any with this value as one of the given type: of an alias of its type, which an any from [`new`](Any::new) does
    /// not name.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch) unless the types are equivalent, [`Encode`](AnyError::Encode), also of a type
    /// that is not [complete](TypeCode::is_complete).
    pub fn with_type<T: Typed + CdrEncode>(code: &TypeCode, value: T) -> Result<Any, AnyError> {
        let of_value = T::type_code();
        if !code.equivalent(&of_value) {
            return Err(AnyError::TypeMismatch { wanted: code.clone(), found: of_value });
        }
        if !code.is_complete() {
            return Err(EncodeError::new(EncodeErrorKind::IncompleteTypeCode).into());
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
        let mut kept = Kept { value: e.into_bytes(), context, ..Kept::default() };
        if let Some(made) = made {
            // Values do not always say their types.
            kept.made = (!made.is_empty()).then(|| Arc::new(made));
            kept.values = true;
            let mut e = canonical();
            kept.copy_to(&code, &mut e)?;
            kept.value = e.into_bytes();
        } else if Program::of(&code).contents().anys {
            // Anys in it that were received are written as they came, and equal ones are to have the same octets. What is none of its
            // type is found by whoever takes it out.
            let mut e = canonical();
            if kept.copy_to(&code, &mut e).is_ok() {
                kept.value = e.into_bytes();
            }
        }
        Ok(Any { code, form: Form::Kept(kept) })
    }

    /// The type of the value, aliases included; [`TypeCode::NULL`] where there is none.
    pub fn type_code(&self) -> &TypeCode {
        &self.code
    }

    /// Whether the value can be taken as a `T`: the types are equivalent, or it is a reference and `T` one to any object, or it is a value
    /// of a value type and `T` one of a base or of `ValueBase`.
    pub fn is<T: Typed>(&self) -> bool {
        self.is_of(&T::type_code())
    }

    fn is_of(&self, wanted: &TypeCode) -> bool {
        let is_reference = |kind| matches!(kind, TcKind::ObjRef | TcKind::Component | TcKind::Home);
        self.code.equivalent(wanted)
            || wanted.kind() == TcKind::ObjRef
                && wanted.equivalent(&TypeCode::OBJECT)
                && is_reference(self.code.unaliased().kind())
            || values::has_base(&self.code, wanted)
    }

    /// The value, if its type is [`equivalent`](TypeCode::equivalent) to that of `T`; a reference of any interface as one to an object
    /// (`Any::to_object`), a value of a value type also as one of a base and as a [`ValueBase`](crate::value::ValueBase). A value of a type
    /// that the program does not know is then truncated, if its type code says that it may be. Sequences of octets and numbers in
    /// it are views of the any's memory.
    ///
    /// # Errors
    /// [`TypeMismatch`](AnyError::TypeMismatch); [`Decode`](AnyError::Decode) where a peer sent something else than the
    /// type that it named, or a bound or reference is not as `T` demands.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, AnyError> {
        let wanted = T::type_code();
        if !self.is_of(&wanted) {
            return Err(AnyError::TypeMismatch { wanted, found: self.code.clone() });
        }
        let mut d = self.decoder();
        if let Some(id) = exception_id(&self.code) {
            read_except_id(&mut d, id)?;
        }
        match T::decode(&mut d) {
            Ok(value) if d.remaining() == 0 => Ok(value),
            Ok(_) => Err(d.error(DecodeErrorKind::Malformed).into()),
            // Of an unknown type, but maybe one that may be truncated.
            Err(error) if error.kind == DecodeErrorKind::NoValueFactory && !self.code.equivalent(&wanted) => {
                self.get_truncated(error).map_err(AnyError::from)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the value without its type code: an argument or result of an operation whose type both sides know. Shares the octets of a
    /// large value where they are those that are written, else copies it once.
    ///
    /// # Errors
    /// The value has no encoding in this version and these code sets.
    pub fn encode_value(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match &self.form {
            Form::Kept(kept) => kept.encode(&self.code, e),
            Form::Received(received) => received.encode(&self.code, e),
        }
    }

    /// Reads a value of the type that stands in the stream without a type code. Keeps it as it is: a view from 4 KiB on, else a copy.
    ///
    /// # Errors
    /// The octets are not those of such a value, as far as its structure tells.
    pub fn decode_value(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DecodeError> {
        let form = match Received::take(code, d)? {
            Some(received) => Form::Received(Arc::new(received)),
            None => Form::Kept(d.nested(|d| Kept::read(code, d))?),
        };
        Ok(Any { code: code.clone(), form })
    }

    /// The same as [`decode_value`](Any::decode_value), and says where in the value something is wrong.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path.
    pub fn decode_value_with_path(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DynError> {
        let spot = d.spot();
        Any::decode_value(code, d).map_err(|error| locate_kept(&Program::of(code), d, spot, error))
    }

    /// The same as [`encode_value`](Any::encode_value), and says what in the value has no encoding.
    ///
    /// # Errors
    /// [`Encode`](crate::dynamic::DynErrorKind::Encode), with the path.
    pub fn encode_value_with_path(&self, e: &mut Encoder) -> Result<(), DynError> {
        self.encode_value(e).map_err(|error| {
            let mut again = Encoder::new(e.order(), e.version());
            again.set_code_sets(e.code_sets());
            let found =
                self.to_dynamic().and_then(|value| Program::of(&self.code).encode(&value, &mut again));
            let path = found.err().map(|found| found.path().clone()).unwrap_or_default();
            DynError::at(DynErrorKind::Encode(error), path)
        })
    }

    /// Bytes that the value takes as it is kept, without its type: about as many as it has in a message. What is made of it for a program, such as
    /// a tree or a text, takes several times as many.
    pub fn byte_len(&self) -> usize {
        match &self.form {
            Form::Kept(kept) => kept.value.len(),
            Form::Received(received) => received.octets.len(),
        }
    }

    fn kept(&self) -> Result<&Kept, DecodeError> {
        match &self.form {
            Form::Kept(kept) => Ok(kept),
            Form::Received(received) => received.kept(&self.code),
        }
    }

    /// The value as a tree. Numbers in long sequences are views of the any's memory.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path: the value has more parts than are granted to so many octets.
    pub fn to_dynamic(&self) -> Result<Dynamic, DynError> {
        Program::of(&self.code).decode(&mut self.decoder())
    }

    /// An any with what the tree says.
    ///
    /// # Errors
    /// The tree is none of its type, or a value has no encoding, as in [`Program::encode`]; or no any can hold it.
    pub fn from_dynamic(value: &Dynamic) -> Result<Any, DynError> {
        let program = Program::of(&value.code);
        let mut e = canonical();
        e.want_context();
        program.encode(value, &mut e)?;
        let context = e.take_context();
        let made = e.values.as_mut().map(|values| values.take_types()).filter(|made| !made.is_empty());
        let kept = Kept { context, made: made.map(Arc::new), value: e.into_bytes(), ..Kept::default() };
        let contents = program.contents();
        let code = value.code.clone();
        if !contents.anys && !contents.graphs && !program.body().may_have_empties() {
            return Ok(Any { code, form: Form::Kept(kept) });
        }
        // Whether there are values in it is known where it was read.
        let mut d = kept.decoder();
        d.set_limits(DecodeLimits { alloc: usize::MAX, ..d.limits() });
        let kept = Kept::read(&code, &mut d)?;
        Ok(Any { code, form: Form::Kept(kept) })
    }

    fn decoder(&self) -> Decoder<'_> {
        match &self.form {
            Form::Kept(kept) => kept.decoder(),
            Form::Received(received) => received.decoder(),
        }
    }
}

impl Kept {
    /// Copies a value once, and looks at all of it.
    fn read(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Kept, DecodeError> {
        let (start, spot, nesting, came) = (d.position(), d.spot(), d.nesting(), Stream::of(d));
        let kept = match Kept::read_into(Stream::default(), code, d) {
            Err(walk::Fault::Encode(EncodeError { kind: EncodeErrorKind::CustomState }))
                if came != Stream::default() =>
            {
                d.return_to(spot);
                d.return_to_nesting(nesting);
                Kept::read_into(came, code, d)
            }
            read => read,
        };
        kept.map_err(|fault| match fault {
            walk::Fault::Decode(error) => error,
            walk::Fault::Encode(EncodeError { kind: EncodeErrorKind::CustomState }) => {
                DecodeError::new(DecodeErrorKind::NotInAny, start)
            }
            // What can not be written in code sets that hold every text.
            walk::Fault::Encode(_) => DecodeError::new(DecodeErrorKind::Malformed, start),
        })
    }

    fn read_into(stream: Stream, code: &TypeCode, d: &mut Decoder<'_>) -> Result<Kept, Fault> {
        let mut e = stream.encoder();
        let seen = walk::copy(code, d, &mut e)?;
        let context = if seen.references || seen.values { d.keep_context() } else { None };
        let made = if seen.values { d.made_types().cloned() } else { None };
        Ok(Kept { value: e.into_bytes(), stream, context, made, values: seen.values })
    }

    fn decoder(&self) -> Decoder<'_> {
        self.decoder_of(&self.value)
    }

    /// Reads these bytes in place of the value.
    fn decoder_of<'v>(&'v self, value: &'v Bytes) -> Decoder<'v> {
        let d = self.stream.decoder(value);
        d.with_kept_context(self.context.as_ref()).with_made_types(self.made.as_ref())
    }

    fn encode(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        if let Some(context) = &self.context {
            e.note_kept_context(context);
        }
        if let Some(made) = &self.made {
            e.note_made_types(made);
        }
        if self.is_as_written_by(code, e) {
            e.put_shared_part(self.value.clone());
            return Ok(());
        }
        self.copy_to(code, e)
    }

    fn copy_to(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        let mut d = self.decoder();
        // The value kept limits when it was received, or is one's own.
        d.set_limits(DecodeLimits { alloc: usize::MAX, ..d.limits() });
        walk::copy(code, &mut d, e)?;
        Ok(())
    }

    /// Whether `e` would write the octets of the value as they are kept.
    fn is_as_written_by(&self, code: &TypeCode, e: &Encoder) -> bool {
        let sets = e.code_sets();
        !self.values
            && self.stream == Stream::default()
            && e.order() == ByteOrder::NATIVE
            && e.version() == Version::V1_2
            && sets.wchar == CODE_SETS.wchar
            && e.position().is_multiple_of(Program::of(code).contents().align.max(1).into())
            && (sets.char == CharSet::Utf8 || sets.char.has_ascii() && self.value.is_ascii())
    }
}

fn canonical() -> Encoder {
    Stream::default().encoder()
}

/// What stands before the members of an exception.
fn exception_id(code: &TypeCode) -> Option<&str> {
    match code.nodes.at(code.nodes.unaliased(code.root)) {
        Node::Named(named) if named.kind == TcKind::Except => Some(&named.id),
        _ => None,
    }
}

/// Goes over a value, as [`Any::decode_value`] would read it.
pub(crate) fn pass_over(code: &TypeCode, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    let start = d.position();
    let mut unused = canonical();
    match walk::pass(code, d, &mut unused) {
        Ok(_) => Ok(()),
        Err(walk::Fault::Decode(error)) => Err(error),
        Err(walk::Fault::Encode(_)) => Err(DecodeError::new(DecodeErrorKind::Malformed, start)),
    }
}

impl CdrEncode for Any {
    /// The type code, then the value. Octets and numbers of long sequences are shared, all else is copied once.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.code.encode(e)?;
        self.encode_value(e)
    }
}

impl CdrDecode for Any {
    /// That of a type code without parameters.
    const MIN_SIZE: usize = 4;

    /// Keeps the value as it came, see [`Any`]. At most [`MAX_ANYS`] anys are in each other.
    fn decode(d: &mut Decoder<'_>) -> Result<Any, DecodeError> {
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        Any::decode_value(&code, d)
    }
}

impl PartialEq for Any {
    fn eq(&self, other: &Any) -> bool {
        let same = match (&self.form, &other.form) {
            (Form::Received(one), Form::Received(other)) if one.same(other) => true,
            // What is no value of its type is equal to nothing else.
            _ => match (self.kept(), other.kept()) {
                (Ok(one), Ok(other)) => one.stream == other.stream && one.value == other.value,
                _ => false,
            },
        };
        same && self.code.equal(&other.code)
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Any({}, {} octets)", self.code, self.byte_len())
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
        Ok(Any { code, form: Form::Kept(Kept { value: e.into_bytes(), ..Kept::default() }) })
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
                write!(
                    f,
                    "a value of type `{}` is none of type `{}`",
                    OneLine::new(found),
                    OneLine::new(wanted)
                )
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
