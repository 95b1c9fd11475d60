//! An interface that is defined at run time: a servant that serves it, and dynamic calls.
//!
//! ```text
//! cargo run --example dynamic
//! ```

use std::sync::{Arc, Mutex};

use zorb::dynamic::{
    DynServant, DynamicException, Interface, Mode, OperationInfo, ParamInfo, Request, ServerRequest,
};
use zorb::prelude::*;
use zorb::{Servant, TcKind};

/// Describes every request, and keeps the arguments.
#[derive(Default)]
struct Logger {
    put: Mutex<Vec<Any>>,
}

impl DynServant for Logger {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let arguments = request.arguments().iter().filter_map(|argument| argument.value.as_ref());
        let arguments: Vec<Any> = arguments.cloned().collect();
        println!("{} {arguments:?}", request.operation());
        let mut put = self.put.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        put.extend(arguments);
        match request.info().result.kind() {
            TcKind::ULong => Ok(request.returning(put.len() as u32)?),
            _ => Ok(request),
        }
    }
}

fn operation(name: &str, result: TypeCode, params: &[(&str, TypeCode)]) -> OperationInfo {
    let param = |(name, code): &(&str, TypeCode)| ParamInfo {
        name: (*name).into(),
        mode: Mode::In,
        code: code.clone(),
    };
    OperationInfo {
        id: format!("IDL:Shelf/{name}:1.0").into(),
        name: name.into(),
        oneway: false,
        result,
        params: params.iter().map(param).collect(),
        raises: Vec::new(),
        contexts: Vec::new(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let doubles = TypeCode::sequence(&TypeCode::DOUBLE, 0);
    let operations = vec![
        operation("put", TypeCode::ULONG, &[("name", TypeCode::string(0)), ("values", doubles)]),
        operation("clear", TypeCode::VOID, &[]),
    ];
    let shelf =
        Interface::new((TcKind::ObjRef, "IDL:Shelf:1.0", "Shelf"), Vec::new(), operations, Vec::new());
    let shelf = Arc::new(shelf);

    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let servant = Servant::dynamic(Arc::clone(&shelf), Logger::default());
    let here = server.activation().activate_erased(servant)?;

    let client = Orb::builder().build().await?;
    let there: ObjectRef = client.resolve_unchecked(&here.to_string()).await?;

    // With the interface: arguments by name, checked against their types.
    let put = Request::of(&there, &shelf, "put")?;
    let put = put.with("name", "temperatures".to_owned())?.with("values", vec![20.5, 21.0])?;
    println!("{} things are there", put.invoke().await?.get::<u32>()?);

    // Without the interface: arguments by position.
    let clear = Request::new(&there, "clear");
    let mut cleared = clear.invoke().deferred();
    cleared.sent().await;
    cleared.await?;

    // An argument of the wrong type is reported before anything is sent.
    if let Err(error) = Request::of(&there, &shelf, "put")?.with("values", 1_i32) {
        println!("{error}");
    }
    Ok(())
}
