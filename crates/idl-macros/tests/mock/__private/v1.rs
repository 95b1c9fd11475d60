//! The private runtime API, in memory.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};

pub use bytes::Bytes;
pub use giop_codec::__zerocopy as zerocopy;
pub use giop_codec::any::Any;
pub use giop_codec::cdr::*;
pub use giop_codec::dynamic::reflect::{
    Adaptive, Blank, CompiledDecode, CompiledEncode, Filled, Optional, OptionalMut, Plain, PlainMut, Reading,
    Uses, Writing, Written, interpret, interpret_slice, interpreted, interpreted_array, interpreted_vec,
    of_ordinal,
};
pub use giop_codec::dynamic::{AttributeDesc, Described, InterfaceDesc, Mode, OperationDesc};
pub use giop_codec::exception::{
    CompletionStatus, MinorCode, SystemException, SystemExceptionKind, check_argument,
};
use giop_codec::ior::{Ior, ProfileTag, TaggedProfile};
pub use giop_codec::typecode::{
    Definition, Shape, TcKind, TypeCode, TypeDesc, Typed, ValueModifier, Visibility,
};
use giop_codec::value::Factories;
pub use giop_codec::value::{
    AbstractForm, Casts, CustomMarshal, Extends, Flow, Progress, Value, ValueBase, ValueForm, ValuePart,
    ValueRef, ValueType,
};
pub use giop_codec::{
    ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, OneLine, Version,
};

pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

type Objects = Mutex<HashMap<u64, Arc<dyn Skeleton>>>;

fn objects() -> &'static Objects {
    static OBJECTS: OnceLock<Objects> = OnceLock::new();
    OBJECTS.get_or_init(Objects::default)
}

/// The number of an object, and whether calls go straight to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    pub id: u64,
    pub collocated: bool,
}

impl ObjectRef {
    fn skeleton(&self) -> Arc<dyn Skeleton> {
        Arc::clone(&objects().lock().unwrap()[&self.id])
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.id)
    }
}

impl Typed for ObjectRef {
    const DESC: &'static TypeDesc = TypeDesc::OBJECT;
}

impl Nilable for ObjectRef {
    const MIN_SIZE: usize = 8;

    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let data = Bytes::copy_from_slice(&self.id.to_be_bytes());
        let profiles = vec![TaggedProfile { tag: ProfileTag::INTERNET_IOP, data }];
        Ior { type_id: String::new(), profiles }.encode(e)
    }

    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError> {
        Ior::nil().encode(e)
    }

    fn decode_nilable(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        let ior = Ior::decode(d)?;
        let Some(profile) = ior.profiles.first() else { return Ok(None) };
        let id = profile.data.first_chunk().ok_or_else(|| d.error(DecodeErrorKind::Malformed))?;
        Ok(Some(ObjectRef { id: u64::from_be_bytes(*id), collocated: false }))
    }
}

impl CdrEncode for ObjectRef {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.encode_some(e)
    }
}

impl CdrDecode for ObjectRef {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode_nilable(d)?.ok_or_else(|| d.error(DecodeErrorKind::NilReference))
    }
}

pub trait Reference: Clone + fmt::Debug + fmt::Display + Send + Sync + Sized + 'static {
    const REPOSITORY_ID: &'static str;
    fn from_object(object: ObjectRef) -> Self;
    fn as_object(&self) -> &ObjectRef;
}

impl Reference for ObjectRef {
    const REPOSITORY_ID: &'static str = "IDL:omg.org/CORBA/Object:1.0";

    fn from_object(object: ObjectRef) -> Self {
        object
    }

    fn as_object(&self) -> &ObjectRef {
        self
    }
}

/// What a handle to an abstract interface holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abstract<V> {
    Object(ObjectRef),
    Value(Value<V>),
}

impl<V: ValueForm> Abstract<V> {
    pub fn upcast<B: ValueForm>(self) -> Abstract<B>
    where
        V: Extends<B>,
    {
        match self {
            Abstract::Object(object) => Abstract::Object(object),
            Abstract::Value(value) => Abstract::Value(value.upcast()),
        }
    }
}

impl<V: ValueForm> AbstractForm for Abstract<V> {
    type Values = V;

    fn of_value(value: Value<V>) -> Self {
        Abstract::Value(value)
    }

    fn held_value(&self) -> Option<&Value<V>> {
        if let Abstract::Value(value) = self { Some(value) } else { None }
    }

    fn encode_object(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let Abstract::Object(object) = self else { panic!("no object") };
        object.encode(e)
    }

    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(ObjectRef::decode_nilable(d)?.map(Abstract::Object))
    }
}

impl<V: ValueForm> Nilable for Abstract<V> {
    const MIN_SIZE: usize = 5;

    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(self.held_value().is_none());
        match self {
            Abstract::Object(object) => object.encode(e),
            Abstract::Value(value) => value.encode_some(e),
        }
    }

    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(false);
        <Value<V> as Nilable>::encode_nil(e)
    }

    fn decode_nilable(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        if d.read_bool()? {
            return Self::decode_object(d);
        }
        Ok(<Value<V> as Nilable>::decode_nilable(d)?.map(Abstract::Value))
    }
}

impl<V: ValueForm> CdrEncode for Abstract<V> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.encode_some(e)
    }
}

impl<V: ValueForm> CdrDecode for Abstract<V> {
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode_nilable(d)?.ok_or_else(|| d.error(DecodeErrorKind::NilReference))
    }
}

pub trait AbstractReference: AbstractForm + Clone + fmt::Debug + Send + Sync + 'static {
    const REPOSITORY_ID: &'static str;

    fn from_abstract(held: Abstract<Self::Values>) -> Self;

    fn as_abstract(&self) -> &Abstract<Self::Values>;

    fn from_object(object: impl Reference) -> Self {
        Self::from_abstract(Abstract::Object(object.as_object().clone()))
    }

    fn as_object(&self) -> Option<&ObjectRef> {
        if let Abstract::Object(object) = self.as_abstract() { Some(object) } else { None }
    }

    fn as_value(&self) -> Option<&Value<Self::Values>> {
        self.as_abstract().held_value()
    }

    fn downcast<D: ValueForm>(&self) -> Option<Value<D>> {
        self.as_value()?.downcast()
    }
}

pub(super) fn activate_skeleton(skeleton: Arc<dyn Skeleton>) -> ObjectRef {
    let mut objects = objects().lock().unwrap();
    let id = objects.len() as u64 + 1;
    objects.insert(id, skeleton);
    ObjectRef { id, collocated: false }
}

pub fn activate<R: Serves<S>, S>(servant: S) -> R {
    R::from_object(activate_skeleton(R::skeleton(servant)))
}

pub struct Operation {
    name: &'static str,
    oneway: bool,
}

impl Operation {
    pub const fn twoway(name: &'static str) -> Self {
        Self { name, oneway: false }
    }

    pub const fn oneway(name: &'static str) -> Self {
        Self { name, oneway: true }
    }

    pub const fn of(self, _interface: &'static Interface, _index: u32) -> Self {
        self
    }
}

fn failed(kind: SystemExceptionKind, completed: CompletionStatus, why: impl fmt::Display) -> SystemException {
    SystemException::new(kind, MinorCode::NONE, completed).because(why.to_string())
}

async fn transact(
    target: &ObjectRef,
    operation: &'static Operation,
    encode: &(impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync),
) -> Result<Outcome, SystemException> {
    let body = encoded(|e| encode(e))?;
    let request = ServerRequest { operation: operation.name.to_owned(), body };
    let mut slot = DispatchSlot(None);
    target.skeleton().dispatch(request, &mut slot);
    Ok(slot.0.expect("a future was set").await)
}

pub async fn invoke<R, E>(
    target: &ObjectRef,
    operation: &'static Operation,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
    decode: impl Fn(&mut Decoder<'_>) -> Result<R, DecodeError> + Send + Sync,
    raised: impl Fn(&str, &mut Decoder<'_>) -> Option<Result<E, DecodeError>> + Send + Sync,
) -> Result<R, E>
where
    E: From<SystemException>,
{
    assert!(!operation.oneway);
    let bad =
        |error: DecodeError| E::from(failed(SystemExceptionKind::Marshal, CompletionStatus::Yes, error));
    match transact(target, operation, &encode).await?.0 {
        Answer::Results(body) => decode(&mut decoder(&body)).map_err(bad),
        Answer::Raised(id, body) => match raised(id, &mut decoder(&body)) {
            Some(exception) => Err(exception.unwrap_or_else(bad)),
            None => Err(failed(SystemExceptionKind::Unknown, CompletionStatus::Yes, id).into()),
        },
        Answer::Failed(exception) => Err(exception.into()),
    }
}

pub async fn send_oneway(
    target: &ObjectRef,
    operation: &'static Operation,
    encode: impl Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync,
) -> Result<(), SystemException> {
    assert!(operation.oneway);
    transact(target, operation, &encode).await.map(|_| ())
}

pub struct LocalServant<L: ?Sized>(Arc<L>);

pub fn local<L: ?Sized + Send + Sync + 'static>(target: &ObjectRef) -> Option<LocalServant<L>> {
    if !target.collocated {
        return None;
    }
    let mut out: Option<Arc<L>> = None;
    target.skeleton().local(&mut out);
    out.map(LocalServant)
}

impl<L: ?Sized + Send + Sync + 'static> LocalServant<L> {
    pub async fn call<'a, T, E: From<SystemException>>(
        &'a self,
        _target: &ObjectRef,
        _operation: &'static Operation,
        f: impl FnOnce(&'a L) -> LocalFuture<'a, Result<T, E>> + Send,
    ) -> Result<T, E> {
        f(&self.0).await
    }
}

pub struct DispatchSlot(Option<LocalFuture<'static, Outcome>>);

impl DispatchSlot {
    pub fn set(&mut self, future: impl Future<Output = Outcome> + Send + 'static) {
        self.0 = Some(Box::pin(future));
    }
}

enum Answer {
    Results(Bytes),
    Raised(&'static str, Bytes),
    Failed(SystemException),
}

pub struct Outcome(Answer);

pub trait Skeleton: Send + Sync + 'static {
    fn repository_ids(&self) -> &'static [&'static str];
    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot);
    fn operations(&self) -> Operations {
        Operations { names: &[], counts: &[] }
    }
    fn local(self: Arc<Self>, out: &mut dyn std::any::Any);
}

pub struct Interface;

impl Interface {
    pub const fn new(_repository_id: &str, _operations: &[&str]) -> Self {
        Self
    }
}

pub struct Operations {
    pub names: &'static [&'static str],
    pub counts: &'static [usize],
}

#[diagnostic::on_unimplemented(
    message = "a method of a servant must be an `async fn`",
    label = "`{Self}` is not a future",
    note = "write `async fn` instead of `fn`"
)]
pub trait ServantFuture: Future {}

#[diagnostic::do_not_recommend]
impl<F: Future + ?Sized> ServantFuture for F {}

pub trait Serves<S>: Reference {
    fn skeleton(servant: S) -> Arc<dyn Skeleton>;
}

pub struct OpTable<const N: usize, const SLOTS: usize>([&'static str; N]);

impl<const N: usize, const SLOTS: usize> OpTable<N, SLOTS> {
    pub const fn new(names: [&'static str; N]) -> Self {
        assert!(SLOTS.is_power_of_two() && SLOTS >= 2 * N);
        Self(names)
    }

    pub fn find(&self, name: impl AsRef<[u8]>) -> Option<usize> {
        self.0.iter().position(|known| known.as_bytes() == name.as_ref())
    }

    pub const fn names(&'static self) -> &'static [&'static str] {
        &self.0
    }
}

pub struct ServerRequest {
    operation: String,
    body: Bytes,
}

impl ServerRequest {
    pub fn operation(&self) -> &str {
        &self.operation
    }

    pub fn find<const N: usize, const SLOTS: usize>(&self, table: &OpTable<N, SLOTS>) -> Option<usize> {
        table.find(&self.operation)
    }

    pub fn decode<R>(
        &mut self,
        f: impl Fn(&mut Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        f(&mut decoder(&self.body))
    }

    pub fn reply(self, encode: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Outcome {
        Outcome(encoded(encode).map_or_else(Answer::Failed, Answer::Results))
    }

    pub fn user_exception<X: UserException>(self, exception: &X) -> Outcome {
        let body = encoded(|e| exception.encode(e));
        Outcome(body.map_or_else(Answer::Failed, |body| Answer::Raised(X::REPOSITORY_ID, body)))
    }

    pub fn system_exception(self, exception: SystemException) -> Outcome {
        Outcome(Answer::Failed(exception))
    }

    pub fn bad_arguments(self, error: DecodeError) -> Outcome {
        self.system_exception(failed(SystemExceptionKind::Marshal, CompletionStatus::No, error))
    }

    pub fn other_operation(self, ids: &'static [&'static str]) -> Outcome {
        let why = format!("`{}` of {}", self.operation, ids.join(", "));
        self.system_exception(failed(SystemExceptionKind::BadOperation, CompletionStatus::No, why))
    }
}

pub trait UserException: CdrEncode + CdrDecode + std::error::Error + Send + Sync + 'static {
    const REPOSITORY_ID: &'static str;
}

/// Nothing is one here.
pub trait OrbError<E>: Into<SystemException> {}

pub fn unknown_user_exception(exception: impl std::error::Error + Send + Sync + 'static) -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::NONE, CompletionStatus::Maybe)
        .with_source(exception)
}

fn encoded(encode: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Result<Bytes, SystemException> {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    encode(&mut e)?;
    Ok(e.into_bytes())
}

thread_local! {
    /// What peers may send in place of a base, in a test that says so.
    pub static FACTORIES: Cell<Option<&'static Factories>> = const { Cell::new(None) };
}

fn decoder(body: &Bytes) -> Decoder<'_> {
    let decoder = Decoder::from_bytes(body, ByteOrder::NATIVE, Version::V1_2);
    match FACTORIES.get() {
        Some(factories) => decoder.with_context(factories),
        None => decoder,
    }
}

/// Calls an operation by name with arguments that no stub would send.
pub fn call_raw(target: &ObjectRef, operation: &str, body: Bytes) -> Result<Bytes, SystemException> {
    let request = ServerRequest { operation: operation.to_owned(), body };
    let mut slot = DispatchSlot(None);
    target.skeleton().dispatch(request, &mut slot);
    match super::super::run(slot.0.expect("a future was set")).0 {
        Answer::Results(body) => Ok(body),
        Answer::Raised(id, _) => Err(failed(SystemExceptionKind::Unknown, CompletionStatus::Yes, id)),
        Answer::Failed(exception) => Err(exception),
    }
}
