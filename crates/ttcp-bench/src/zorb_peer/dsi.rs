//! The servants of the tests, called by operation names through the Dynamic Skeleton Interface (DSI).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zorb::dynamic::{DynServant, DynamicException, Interface, Mode, OperationInfo, ParamInfo, ServerRequest};
use zorb::prelude::*;
use zorb::{Servant, TcKind};

use super::call_counts::CallCounts;
use super::idl::{BinStruct, TtcpRef, WideRef, zero_copy};
use super::integrity;
use crate::reference::Object;

/// Returns a dynamic servant for `object`; `None` for interfaces that this module does not implement.
pub(super) fn servant(object: Object, check: bool, calls: &Arc<CallCounts>) -> Option<Servant> {
    let (interface, count_struct_bytes): (_, CountStructBytes) = match object {
        Object::Ttcp => {
            (ttcp_interface(TtcpRef::REPOSITORY_ID, &Vec::<BinStruct>::type_code()), |servant, request| {
                Ok(servant.count_bytes(&request.get::<Vec<BinStruct>>("s")?, 24))
            })
        }
        Object::ZeroCopy => (
            ttcp_interface(zero_copy::TtcpRef::REPOSITORY_ID, &Seq::<zero_copy::BinStruct>::type_code()),
            |servant, request| Ok(servant.count_bytes(&request.get::<Seq<zero_copy::BinStruct>>("s")?, 24)),
        ),
        Object::Wide => (wide_interface(), |_, _| Ok(0)),
        _ => return None,
    };
    let servant = DynamicTtcp { bytes: AtomicU64::new(0), count_struct_bytes, check, calls: calls.clone() };
    Some(Servant::dynamic(Arc::new(interface), servant))
}

/// Extracts the structs of a request as the struct type of the interface, and returns their size in bytes.
type CountStructBytes = fn(&DynamicTtcp, &ServerRequest) -> Result<usize, SystemException>;

/// A servant that counts the bytes of received elements, and returns the arguments of echo operations.
struct DynamicTtcp {
    bytes: AtomicU64,
    count_struct_bytes: CountStructBytes,
    check: bool,
    calls: Arc<CallCounts>,
}

impl DynamicTtcp {
    /// Returns the size of all `items`, after comparing them with the test pattern if `--check` is set.
    fn count_bytes<T: integrity::TestElement>(&self, items: &[T], item_bytes: usize) -> usize {
        if self.check {
            integrity::exit_if_different(items);
        }
        items.len() * item_bytes
    }
}

impl DynServant for DynamicTtcp {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let bytes = match request.operation() {
            "sendOctetSeq" => self.count_bytes(&request.get::<Bytes>("s")?, 1),
            "sendCharSeq" => self.count_bytes(&request.get::<Seq<Char>>("s")?, 1),
            "sendShortSeq" => self.count_bytes(&request.get::<Seq<i16>>("s")?, 2),
            "sendLongSeq" => self.count_bytes(&request.get::<Seq<i32>>("s")?, 4),
            "sendDoubleSeq" => self.count_bytes(&request.get::<Seq<f64>>("s")?, 8),
            "sendStructSeq" => (self.count_struct_bytes)(self, &request)?,
            "sync" => return Ok(request.returning(self.bytes.swap(0, Ordering::Relaxed))?),
            "echoOctets" | "echoStructs" => {
                let argument = request.arguments_mut().named_mut("s");
                if let Some(value) = argument.and_then(|argument| argument.value.take()) {
                    request.set_result(value);
                }
                0
            }
            "ping" => 0,
            operation => {
                if operation == "m099" {
                    self.calls.count_last()
                } else {
                    self.calls.count_other()
                }
                0
            }
        };
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(request)
    }
}

/// Returns the definition of `Ttcp` or `ZeroCopy::Ttcp`, which have different struct types. Of the second
/// interface, clients call only `sync` and the operations with structs.
fn ttcp_interface(id: &str, structs: &TypeCode) -> Interface {
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

fn wide_interface() -> Interface {
    let id = WideRef::REPOSITORY_ID;
    let operations =
        (0..100).map(|i| operation(id, &format!("m{i:03}"), false, TypeCode::VOID, None)).collect();
    Interface::new((TcKind::ObjRef, id, "Wide"), Vec::new(), operations, Vec::new())
}

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
