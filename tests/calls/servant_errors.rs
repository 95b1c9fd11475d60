//! Errors of the ORB's own operations in servants: `?` converts them to system exceptions.

use zorb::dynamic::{DynServant, DynamicException, Interface, ServerRequest};
use zorb::poa::{Poa, Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::testing::pair;
use zorb::{ActivateError, ObjectId, Servant};

zorb::idl! {
    module Shop {
        typedef string<4> Label;
        exception Closed { string until; };
        interface Till { void close(); };
        interface Counter {
            Till open(in string name) raises (Closed);
            Till open_plain(in string name);
            Label label(in string text) raises (Closed);
            string look_up(in string name) raises (Closed);
            void refuse(in unsigned long why) raises (Closed);
            void pass_on() raises (Closed);
        };
    };
}

use shop::{Closed, CounterRef, CounterServant, Label, TillRef, TillServant, counter as operations};

struct Till;

impl TillServant for Till {
    async fn close(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A servant whose methods have the error types of operations with and without exceptions.
struct Counter;

impl CounterServant for Counter {
    async fn open(&self, name: &str) -> Result<Option<TillRef>, operations::OpenError> {
        if name.is_empty() {
            Err(Closed { until: "noon".to_owned() })?;
        }
        Ok(Some(request().orb().activate_named(name, Till)?))
    }

    async fn open_plain(&self, name: &str) -> Result<Option<TillRef>, SystemException> {
        let poa = request().poa().unwrap();
        let till: TillRef = poa.activate_with_id(name, Till)?;
        Ok(Some(till))
    }

    async fn label(&self, text: &str) -> Result<Label, operations::LabelError> {
        Ok(Label::new(text.to_owned())?)
    }

    async fn look_up(&self, name: &str) -> Result<String, operations::LookUpError> {
        let orb = request().orb();
        let found: ObjectRef = orb.naming().await?.resolve(name).await?;
        let typed: TillRef = found.narrow().await?;
        Ok(typed.to_string())
    }

    async fn refuse(&self, why: u32) -> Result<(), operations::RefuseError> {
        Err(match why {
            0 => SystemExceptionKind::NoPermission.into(),
            1 => SystemException::bad_param().with_minor(minor::BAD_PARAM_OBJECT_ID).into(),
            _ => SystemException::internal().completed(CompletionStatus::Yes).into(),
        })
    }

    async fn pass_on(&self) -> Result<(), operations::PassOnError> {
        Err(std::io::Error::other("the disk is full"))
            .or_system_exception(SystemExceptionKind::PersistStore)?;
        Ok(())
    }
}

/// Returns the exception that the client receives: without the reason, which is not transmitted.
fn raised<T: std::fmt::Debug, E: Into<SystemException>>(result: Result<T, E>) -> SystemException {
    result.unwrap_err().into()
}

#[tokio::test]
async fn errors_of_the_orb_reach_the_client_as_system_exceptions() {
    let pair = pair();
    let local: CounterRef = pair.server.activate(Counter).unwrap();
    let counter: CounterRef = pair.client.resolve_unchecked(&local.to_string()).await.unwrap();
    let is = |raised: SystemException, kind, minor, completed| {
        assert_eq!(raised, SystemException::new(kind, minor, completed), "{raised}");
    };
    use CompletionStatus::{Maybe, No, Yes};
    use SystemExceptionKind as Kind;

    counter.open("till").await.unwrap();
    is(raised(counter.open("till").await), Kind::ObjAdapter, MinorCode::NONE, No);
    let closed = counter.open("").await.unwrap_err();
    assert_eq!(closed, operations::OpenError::Closed(Closed { until: "noon".to_owned() }));
    // The root POA assigns its ids.
    is(raised(counter.open_plain("till").await), Kind::BadParam, minor::BAD_PARAM_OBJECT_ID, No);
    is(raised(counter.label("longer").await), Kind::BadParam, MinorCode::NONE, No);
    assert_eq!(counter.label("four").await.unwrap().as_str(), "four");
    // No naming service is configured.
    is(raised(counter.look_up("tills/1").await), Kind::BadParam, MinorCode::NONE, No);
    is(raised(counter.refuse(0).await), Kind::NoPermission, MinorCode::NONE, No);
    is(raised(counter.refuse(1).await), Kind::BadParam, minor::BAD_PARAM_OBJECT_ID, No);
    is(raised(counter.refuse(2).await), Kind::Internal, MinorCode::NONE, Yes);
    is(raised(counter.pass_on().await), Kind::PersistStore, MinorCode::NONE, Maybe);
}

#[tokio::test]
async fn reason_is_kept_in_the_servers_own_calls() {
    let orb = Orb::builder().build().await.unwrap();
    let counter: CounterRef = orb.activate(Counter).unwrap();
    counter.open("till").await.unwrap();
    let raised = raised(counter.open("till").await);
    let cause = std::error::Error::source(&raised).and_then(|cause| cause.downcast_ref());
    assert_eq!(cause, Some(&ActivateError::KeyInUse("till".to_owned())));
}

struct Activator;

impl ServantActivator for Activator {
    async fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Servant, Refusal> {
        // It has no such child.
        poa.find("none")?;
        unreachable!("{id:?}")
    }
}

struct Dynamic;

impl DynServant for Dynamic {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        zorb::request().orb().activate_named::<TillRef, _>("taken", Till)?;
        Ok(request)
    }
}

#[tokio::test]
async fn servant_managers_and_dynamic_servants_use_the_question_mark_too() {
    let orb = Orb::builder().build().await.unwrap();
    let poa = orb.root_poa().child("lazy").user_ids().servant_activator(Activator).create().unwrap();
    let till: TillRef = poa.create_reference_with_id("1").unwrap();
    assert_eq!(raised(till.close().await), SystemException::obj_adapter());

    let _taken: TillRef = orb.activate_named("taken", Till).unwrap();
    let interface = Interface::of::<TillRef>();
    let dynamic = orb.activation().activate_erased(Servant::dynamic(interface, Dynamic)).unwrap();
    let till: TillRef = dynamic.narrow().await.unwrap();
    assert_eq!(raised(till.close().await), SystemException::obj_adapter());
}
