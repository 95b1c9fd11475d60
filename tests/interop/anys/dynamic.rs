//! The same exchange by dynamic invocations and dynamic skeletons: zorb's dynamic requests to compiled
//! servants of the other ORBs, and requests of theirs to a dynamic servant of zorb.

use std::sync::{Arc, OnceLock};

use zorb::dynamic::{
    DynServant, DynamicException, Interface, Mode, OperationInfo, ParamInfo, Request, ServerRequest,
};
use zorb::{Servant, TcKind};

use super::*;

/// Returns `Anys::Peer`, built at run time without generated code.
fn interface() -> Arc<Interface> {
    let list = anys::any_seq_type_code;
    let echo = |code: &TypeCode| {
        [(Mode::In, "a"), (Mode::InOut, "b"), (Mode::Out, "c")].map(|(mode, name)| (name, mode, code.clone()))
    };
    let operation = |name: &str, result: TypeCode, params: &[(&str, Mode, TypeCode)], raises| OperationInfo {
        id: format!("IDL:Anys/Peer/{name}:1.0").into(),
        name: name.into(),
        oneway: false,
        result,
        params: params
            .iter()
            .map(|(name, mode, code)| ParamInfo { name: (*name).into(), mode: *mode, code: code.clone() })
            .collect(),
        raises,
        contexts: Vec::new(),
    };
    let operations = vec![
        operation("samples", list(), &[], vec![]),
        operation("check", TypeCode::STRING, &[("values", Mode::In, list())], vec![]),
        operation("echo", TypeCode::ANY, &echo(&TypeCode::ANY), vec![]),
        operation("type_of", TypeCode::TYPE_CODE, &[("a", Mode::In, TypeCode::ANY)], vec![]),
        operation("echo_type", TypeCode::TYPE_CODE, &echo(&TypeCode::TYPE_CODE), vec![]),
        operation("fail", TypeCode::VOID, &[("detail", Mode::In, TypeCode::ANY)], vec![Bad::type_code()]),
    ];
    let named = (TcKind::ObjRef, PeerRef::REPOSITORY_ID, "Peer");
    Arc::new(Interface::new(named, vec![], operations, vec![]))
}

#[derive(Default)]
struct ByName {
    own: OnceLock<PeerRef>,
    /// Its samples have a number in place of the box.
    without_boxes: bool,
}

impl ByName {
    fn samples(&self) -> Vec<Any> {
        let mut all = samples(self.own.get().unwrap());
        if self.without_boxes {
            let boxed = all.iter_mut().filter(|sample| sample.is::<Value<Label>>());
            boxed.for_each(|sample| *sample = any(5_i32));
        }
        all
    }
}

impl DynServant for ByName {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        Ok(match request.operation() {
            "samples" => request.returning(self.samples())?,
            "check" => {
                let wrong = wrong_with(&request.get::<Vec<Any>>("values")?).await;
                request.returning(wrong)?
            }
            "echo" => {
                let (a, b): (Any, Any) = (request.get("a")?, request.get("b")?);
                request.returning(a)?.with("b", Any::new(&b)?)?.with("c", b)?
            }
            "type_of" => {
                let a: Any = request.get("a")?;
                request.returning(a.type_code().clone())?
            }
            "echo_type" => {
                let (a, b): (TypeCode, TypeCode) = (request.get("a")?, request.get("b")?);
                request.returning(a.clone())?.with("b", a)?.with("c", b)?
            }
            "fail" => return Err(Bad { why: "asked for".into(), detail: request.get("detail")? }.into()),
            other => panic!("{other} is not in the interface"),
        })
    }
}

/// Returns a listening ORB with a dynamic servant.
async fn server_by_name(without_boxes: bool) -> (Orb, PeerRef) {
    let orb =
        Orb::builder().listen("iiop://127.0.0.1:0").register_value_type::<Spot>().build().await.unwrap();
    let servant = Arc::new(ByName { without_boxes, ..ByName::default() });
    let erased = Servant::dynamic(interface(), Arc::clone(&servant));
    let object = orb.activation().activate_erased(erased).unwrap();
    let reference: PeerRef = object.narrow().await.unwrap();
    servant.own.set(reference.clone()).unwrap();
    (orb, reference)
}

/// Makes all requests of a client to a peer as dynamic calls.
async fn drive_by_name(peer: &ObjectRef, own: &PeerRef, all: bool) {
    let interface = interface();
    let of = |name| Request::of(peer, &interface, name).unwrap();
    let theirs: Vec<Any> = of("samples").invoke().await.unwrap().get().unwrap();
    assert_eq!(wrong_with(&theirs).await, "");
    let samples = samples(own);
    let check = of("check").with("values", samples.clone()).unwrap();
    assert_eq!(check.invoke().await.unwrap().get::<String>().unwrap(), "");
    let theirs = theirs.iter().map(|any| if any.is::<Bad>() { &samples[1] } else { any });
    for (index, (sample, other)) in samples.iter().zip(theirs).enumerate() {
        if !all && (sample.is::<Value<Label>>() || sample.is::<Bounded<String, 8>>()) {
            continue;
        }
        let echo = of("echo").with("a", sample.clone()).unwrap().with("b", other.clone()).unwrap();
        let echoed = echo.invoke().await.unwrap();
        let (a, c): (Any, Any) = (echoed.get().unwrap(), echoed.out("c").unwrap());
        assert!(a.type_code() == sample.type_code() && c.type_code() == other.type_code(), "{a:?} {c:?}");
        assert_eq!(echoed.out::<Any>("b").unwrap().get::<Any>().unwrap(), c);
        let mut again = samples.clone();
        again[index] = a;
        assert_eq!(wrong_with(&again).await, "");

        let code = sample.type_code().clone();
        let echo = of("echo_type").with("a", code.clone()).unwrap().with("b", Node::type_code()).unwrap();
        let echoed = echo.invoke().await.unwrap();
        assert_eq!(echoed.get::<TypeCode>().unwrap(), code);
        assert_eq!(echoed.out::<TypeCode>("b").unwrap(), code);
        assert_eq!(echoed.out::<TypeCode>("c").unwrap(), Node::type_code());
    }
    // Sent first, awaited in reverse order.
    let type_of = |at: usize| of("type_of").with("a", samples[at].clone()).unwrap();
    let (first, second) = (type_of(14), type_of(15));
    let (first, second) = (first.invoke().deferred(), second.invoke().deferred());
    assert_eq!(second.await.unwrap().get::<TypeCode>().unwrap(), Node::type_code());
    assert_eq!(first.await.unwrap().get::<TypeCode>().unwrap(), Figure::type_code());

    let error = of("fail").with("detail", samples[14].clone()).unwrap().invoke().await.unwrap_err();
    let bad: Bad = error.get().unwrap();
    assert_eq!((&*bad.why, bad.detail.get::<Figure>().unwrap()), ("asked for", figure()));
    let error = Request::new(peer, "nothing_of_it").invoke().await.unwrap_err();
    let DynamicException::System(error) = error else { panic!("{error:?}") };
    assert_eq!(error.kind, SystemExceptionKind::BadOperation);
}

#[tokio::test]
async fn zorb_with_itself_by_name() {
    let (server, reference) = server_by_name(false).await;
    let (client, own) = self::server().await;
    let peer: PeerRef = client.resolve(&reference.to_string()).await.unwrap();
    // Dynamic calls and stub calls to a dynamic servant; and dynamic calls to a compiled one.
    drive_by_name(peer.as_object(), &own, true).await;
    drive(&peer, &own, true).await;
    let compiled: PeerRef = server.resolve(&own.to_string()).await.unwrap();
    drive_by_name(compiled.as_object(), &reference, true).await;
}

async fn their_server_by_name(orb: Foreign) {
    let served = tokio::task::spawn_blocking(move || orb.serve("any-peer", &["server"], LIMIT));
    let Some(served) = served.await.unwrap() else { return };
    let (client, own) = server().await;
    let peer: ObjectRef = client.resolve_unchecked(&served.ior).await.unwrap();
    drive_by_name(&peer, &own, orb != Foreign::JacOrb).await;
    tell(&format!("dynamic: zorb -> {orb:?}: all as they should be"));
    cell(orb.name(), Role::Client, "1.2", "dynamic", Outcome::Good);
}

async fn their_client_by_name(orb: Foreign) {
    // JacORB copies a result by its type. It writes a box that it read as a Java value in a form that it
    // cannot read.
    let (server, reference) = server_by_name(orb == Foreign::JacOrb).await;
    let ior = reference.to_string();
    let driven = tokio::task::spawn_blocking(move || orb.drive("any-peer", &["dii-client"], &ior, 7, LIMIT));
    if driven.await.unwrap() {
        tell(&format!("dynamic: {orb:?} -> zorb: all as they should be"));
        cell(orb.name(), Role::Server, "1.2", "dynamic", Outcome::Good);
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_omniorb_by_name() {
    their_server_by_name(Foreign::OmniOrb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn omniorb_calls_zorb_by_name() {
    their_client_by_name(Foreign::OmniOrb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_jacorb_by_name() {
    their_server_by_name(Foreign::JacOrb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jacorb_calls_zorb_by_name() {
    their_client_by_name(Foreign::JacOrb).await;
}
