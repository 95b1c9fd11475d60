//! Valid and invalid behaviour of a dynamic servant.

use zorb::dynamic::{DynServant, DynamicException, Request, ServerRequest};
use zorb::prelude::*;
use zorb::testing::pair;
use zorb::{CompletionStatus, MinorCode, Servant, minor};

use super::meter::{MeterRef, Other, Refused, interface};

/// Answers each operation in a wrong way, selected by its name.
struct Wrong;

impl DynServant for Wrong {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        match request.operation() {
            // No result.
            "notes" => Ok(request),
            // A result of another type.
            "mean" => Ok(request.returning("three".to_owned())?),
            // An `out` argument is missing.
            "divide" if request.get::<f64>("b")? == 1.0 => Ok(request.returning(1.0)?),
            // There is no such argument.
            "divide" if request.get::<f64>("b")? == 2.0 => Ok(request.with("quotient", 1.0)?),
            // An `in` argument cannot be set.
            "divide" if request.get::<f64>("b")? == 3.0 => Ok(request.with("a", 1.0)?),
            "divide" if request.get::<f64>("b")? == 4.0 => Err(Other {}.into()),
            "divide" => Err(DynamicException::User(Any::new(5_i32)?)),
            "sorted" => panic!("a servant's mistake"),
            "_get_level" => Err(SystemException::no_resources().with_minor(MinorCode::omg(1)).into()),
            "_get_title" => {
                let current = zorb::request();
                let target: ObjectRef = current.target();
                request.set_result(Any::new(format!("{} {}", current.operation(), target.ior().type_id))?);
                Ok(request)
            }
            _ => Err(Refused { why: "never listed".to_owned(), code: 0 }.into()),
        }
    }
}

// clause: exc.minor.bad_param.21
#[tokio::test]
async fn a_wrong_answer_is_a_system_exception() {
    let orbs = pair();
    let here = orbs.server.activation().activate_erased(Servant::dynamic(interface(), Wrong)).unwrap();
    let meter: MeterRef = orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    let bad_param = |error: &SystemException, word: &str| {
        assert_eq!((error.kind, error.minor), (SystemExceptionKind::BadParam, MinorCode::NONE), "{word}");
        error.completed
    };
    let error = meter.notes().await.unwrap_err();
    assert_eq!(bad_param(&error, "no result"), CompletionStatus::Yes);
    let error = meter.mean(1, 2, 3.0).await.unwrap_err();
    assert_eq!(bad_param(&error, "wrong result"), CompletionStatus::Yes);

    let divide = async |b: f64| {
        let divide = Request::of(&meter, &interface(), "divide").unwrap();
        let divide = divide.with("a", 1.0).unwrap().with("b", b).unwrap().with("count", 1).unwrap();
        match divide.invoke().await {
            Err(DynamicException::System(exception)) => exception,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(bad_param(&divide(1.0).await, "missing"), CompletionStatus::Yes);
    assert_eq!(bad_param(&divide(2.0).await, "unknown"), CompletionStatus::No);
    assert_eq!(bad_param(&divide(3.0).await, "in"), CompletionStatus::No);
    let unlisted = divide(4.0).await;
    assert_eq!(
        (unlisted.kind, unlisted.minor),
        (SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION)
    );
    let none = divide(5.0).await;
    assert_eq!((none.kind, none.minor), (SystemExceptionKind::BadParam, minor::BAD_PARAM_ANY_NO_EXCEPTION));

    let error = meter.sorted(&[]).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Unknown, CompletionStatus::Maybe));
    let error = meter.level().await.unwrap_err();
    assert_eq!((error.kind, error.minor), (SystemExceptionKind::NoResources, MinorCode::omg(1)));
    let error = meter.who("me", &zorb::Context::new()).await.unwrap_err();
    assert_eq!((error.kind, error.minor), (SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION));
    assert_eq!(meter.title().await.unwrap(), format!("_get_title {}", MeterRef::REPOSITORY_ID));
}
