//! Dynamic calls with hostile bytes: arguments for a dynamic servant, and results for a dynamic caller.
//!
//! The input is a type code and bytes. They are sent as an array of `octet`, and decoded as a value of the
//! type at the other side. That succeeds if they are a valid encoding, and otherwise raises MARSHAL; the next
//! call must succeed.
#![no_main]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::{ByteOrder, Version};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;
use zorb::dynamic::{
    DynServant, DynamicException, DynamicReply, Interface, Mode, NamedValue, OperationInfo, ParamInfo,
    Request, ServerRequest,
};
use zorb::testing::{Pair, pair};
use zorb::{Any, CompletionStatus, ObjectRef, Servant, SystemExceptionKind, TcKind, TypeCode};

thread_local! {
    static WORLD: (Runtime, Pair) = {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let orbs = {
            let _inside = runtime.enter();
            pair()
        };
        (runtime, orbs)
    };
}

fuzz_target!(|data: &[u8]| {
    let mut d = Decoder::new(data, ByteOrder::Big, Version::V1_2);
    let Ok(code) = TypeCode::decode(&mut d) else { return };
    let octets = Bytes::copy_from_slice(data.get(d.position()..).unwrap_or_default());
    let Ok(length @ 1..) = u32::try_from(octets.len()) else { return };
    if nothing(&code) {
        return;
    }
    let raw = TypeCode::array(&TypeCode::OCTET, length);
    let mut d = Decoder::from_bytes(&octets, ByteOrder::NATIVE, Version::V1_2);
    let sent = Any::decode_value(&raw, &mut d).expect("octets are octets");
    // References need an ORB, and code sets are negotiated; these are the defaults.
    let valid = Any::decode_value(&code, &mut Decoder::from_bytes(&octets, ByteOrder::NATIVE, Version::V1_2));
    WORLD.with(|(runtime, orbs)| runtime.block_on(both(orbs, &code, &raw, &sent, valid.is_ok())));
});

/// The servant, which returns the bytes that it received.
struct Raw {
    taken: AtomicBool,
    given: Any,
}

impl DynServant for Raw {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        match request.operation() {
            "take" => self.taken.store(true, Ordering::Relaxed),
            _ => request.set_result(self.given.clone()),
        }
        Ok(request)
    }
}

async fn both(orbs: &Pair, code: &TypeCode, raw: &TypeCode, sent: &Any, valid: bool) {
    let operation = |name: &str, result: &TypeCode, params| OperationInfo {
        id: name.into(),
        name: name.into(),
        oneway: false,
        result: result.clone(),
        params,
        raises: Vec::new(),
        contexts: Vec::new(),
    };
    let v = ParamInfo { name: "v".into(), mode: Mode::In, code: code.clone() };
    let operations = vec![operation("take", &TypeCode::VOID, vec![v]), operation("give", raw, vec![])];
    let interface = Interface::new((TcKind::ObjRef, "IDL:Raw:1.0", "Raw"), vec![], operations, vec![]);
    let raw_servant = Arc::new(Raw { taken: AtomicBool::new(false), given: sent.clone() });
    let servant = Servant::dynamic(Arc::new(interface), Arc::clone(&raw_servant));
    let here = orbs.server.activation().activate_erased(servant).expect("the ORB is open");
    let there: ObjectRef = orbs.client.resolve_unchecked(&here.to_string()).await.expect("a reference");

    let take = Request::new(&there, "take").arg(NamedValue::new("v", Mode::In, sent.clone()));
    verdict(&take.invoke().await, valid, CompletionStatus::No);
    assert!(
        !raw_servant.taken.load(Ordering::Relaxed) || valid,
        "the servant got what is no value of {code}"
    );

    let give = Request::new(&there, "give");
    verdict(&give.clone().returns(code.clone()).invoke().await, valid, CompletionStatus::Yes);
    // With their actual type.
    let octets = give.returns(raw.clone()).invoke().await.expect("octets are octets");
    assert_eq!(&octets.result, sent);
    orbs.server.deactivate(&here);
}

fn verdict(answer: &Result<DynamicReply, DynamicException>, valid: bool, completed: CompletionStatus) {
    match answer {
        Ok(_) => assert!(valid),
        Err(DynamicException::System(exception)) => {
            assert_eq!(exception.completed, completed, "{exception:?}");
            let kind = exception.kind;
            let refused = matches!(
                kind,
                SystemExceptionKind::Marshal
                    | SystemExceptionKind::NoMemory
                    | SystemExceptionKind::ImpLimit
                    | SystemExceptionKind::DataConversion
                    | SystemExceptionKind::BadParam
                    | SystemExceptionKind::BadTypecode
            );
            assert!(refused && !valid, "{exception:?}");
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// Returns whether the type is one that an operation cannot return as a value.
fn nothing(code: &TypeCode) -> bool {
    matches!(code.unaliased().kind(), TcKind::Void | TcKind::Null)
}
