//! The servants of the contract, called by the names of the operations (the Dynamic Skeleton Interface).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zorb::dynamic::{DynServant, DynamicException, Interface, Mode, OperationInfo, ParamInfo, ServerRequest};
use zorb::prelude::*;
use zorb::{Servant, TcKind};

use super::call_counts::CallCounts;
use super::idl::{BinStruct, TtcpRef, WideRef, zero_copy};
use super::integrity;
use crate::reference::Object;

/// Returns a servant of the contract; `None` for objects of other interfaces.
pub(super) fn servant(object: Object, check: bool, calls: &Arc<CallCounts>) -> Option<Servant> {
    let (interface, structs): (_, Structs) = match object {
        Object::Ttcp => (ttcp(TtcpRef::REPOSITORY_ID, &Vec::<BinStruct>::type_code()), |named, request| {
            Ok(named.count(&request.get::<Vec<BinStruct>>("s")?, 24))
        }),
        Object::ZeroCopy => (
            ttcp(zero_copy::TtcpRef::REPOSITORY_ID, &Seq::<zero_copy::BinStruct>::type_code()),
            |named, request| Ok(named.count(&request.get::<Seq<zero_copy::BinStruct>>("s")?, 24)),
        ),
        Object::Wide => (wide(), |_, _| Ok(0)),
        _ => return None,
    };
    let named = DynamicTtcp { bytes: AtomicU64::new(0), structs, check, calls: calls.clone() };
    Some(Servant::dynamic(Arc::new(interface), named))
}

/// Extracts the structs of a request from their any, by their type, and returns the number of user bytes.
type Structs = fn(&DynamicTtcp, &ServerRequest) -> Result<usize, SystemException>;

/// Counts the user bytes that arrive, and returns echoes unchanged.
struct DynamicTtcp {
    bytes: AtomicU64,
    structs: Structs,
    /// Whether each element is compared with what clients send.
    check: bool,
    calls: Arc<CallCounts>,
}

impl DynamicTtcp {
    /// Returns the number of user bytes of elements of size `each`.
    fn count<T: integrity::Element>(&self, items: &[T], each: usize) -> usize {
        if self.check {
            integrity::demand(items);
        }
        items.len() * each
    }
}

impl DynServant for DynamicTtcp {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let bytes = match request.operation() {
            "sendOctetSeq" => self.count(&request.get::<Bytes>("s")?, 1),
            "sendCharSeq" => self.count(&request.get::<Seq<Char>>("s")?, 1),
            "sendShortSeq" => self.count(&request.get::<Seq<i16>>("s")?, 2),
            "sendLongSeq" => self.count(&request.get::<Seq<i32>>("s")?, 4),
            "sendDoubleSeq" => self.count(&request.get::<Seq<f64>>("s")?, 8),
            "sendStructSeq" => (self.structs)(self, &request)?,
            "sync" => return Ok(request.returning(self.bytes.swap(0, Ordering::Relaxed))?),
            "echoOctets" | "echoStructs" => {
                let argument = request.arguments_mut().named_mut("s");
                if let Some(value) = argument.and_then(|argument| argument.value.take()) {
                    request.set_result(value);
                }
                0
            }
            "ping" => 0,
            many => {
                self.calls.count(many == "m099");
                0
            }
        };
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(request)
    }
}

/// Returns an interface named `Ttcp`. There are two, with different structs, and one of them has only the
/// operations with structs.
fn ttcp(id: &str, structs: &TypeCode) -> Interface {
    let send = |name, code: &TypeCode| operation(id, name, true, TypeCode::VOID, Some(code));
    let echo = |name, code: &TypeCode| operation(id, name, false, code.clone(), Some(code));
    let octets = Bytes::type_code();
    let operations = vec![
        send("sendShortSeq", &Seq::<i16>::type_code()),
        send("sendLongSeq", &Seq::<i32>::type_code()),
        send("sendDoubleSeq", &Seq::<f64>::type_code()),
        send("sendCharSeq", &Seq::<Char>::type_code()),
        send("sendOctetSeq", &octets),
        send("sendStructSeq", structs),
        operation(id, "sync", false, u64::type_code(), None),
        operation(id, "ping", false, TypeCode::VOID, None),
        echo("echoOctets", &octets),
        echo("echoStructs", structs),
    ];
    Interface::new((TcKind::ObjRef, id, "Ttcp"), Vec::new(), operations, Vec::new())
}

fn wide() -> Interface {
    let id = WideRef::REPOSITORY_ID;
    let operations =
        (0..100).map(|i| operation(id, &format!("m{i:03}"), false, TypeCode::VOID, None)).collect();
    Interface::new((TcKind::ObjRef, id, "Wide"), Vec::new(), operations, Vec::new())
}

/// Returns an operation of an interface, with at most one argument.
fn operation(
    interface: &str,
    name: &str,
    oneway: bool,
    result: TypeCode,
    s: Option<&TypeCode>,
) -> OperationInfo {
    let parameter = |code: &TypeCode| ParamInfo { name: "s".into(), mode: Mode::In, code: code.clone() };
    OperationInfo {
        id: format!("{}/{name}:1.0", interface.trim_end_matches(":1.0")).into(),
        name: name.into(),
        oneway,
        result,
        params: s.map(parameter).into_iter().collect(),
        raises: Vec::new(),
        contexts: Vec::new(),
    }
}
