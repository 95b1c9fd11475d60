//! One interface, served and called in both ways.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use zorb::dynamic::{
    AttributeInfo, DynServant, DynamicException, Interface, Mode, OperationInfo, ParamInfo, ServerRequest,
};
use zorb::prelude::*;
use zorb::{Context, TcKind};

zorb::idl! {
    module Metering {
        struct Reading { long sensor; double value; string name; };
        typedef sequence<Reading> Readings;
        typedef sequence<octet> Octets;
        exception Refused { string why; long code; };
        exception Other { };
        interface Base { readonly attribute string title; };
        interface Meter : Base {
            double mean(in long a, in unsigned long long b, in double c);
            double divide(in double a, in double b, out string remark, inout long count) raises (Refused);
            Readings sorted(in Readings given);
            attribute long level;
            oneway void note(in string text);
            Object other(in Object given);
            any kept(in any given);
            string who(in string greeting) context ("user", "net.*");
            Octets bulk(in Octets data);
            string notes();
        };
    };
}

pub(crate) use metering::{MeterRef, MeterServant, Other, Reading, Refused, meter::DivideError};

/// The state of both kinds of servants.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) level: AtomicI32,
    pub(crate) notes: Mutex<String>,
}

impl Kept {
    fn divide(&self, a: f64, b: f64, count: i32) -> Result<(f64, String, i32), Refused> {
        if b == 0.0 {
            return Err(Refused { why: "zero".to_owned(), code: count });
        }
        Ok((a / b, format!("{a}/{b}"), count + 1))
    }
}

fn shown(greeting: &str, context: &Context) -> String {
    let properties: String = context.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    format!("{greeting}{properties}")
}

fn sorted(mut given: Vec<Reading>) -> Vec<Reading> {
    given.sort_by_key(|reading| reading.sensor);
    given
}

/// The servant of the compiled interface.
pub(crate) struct Compiled(pub(crate) Arc<Kept>);

impl metering::BaseServant for Compiled {
    async fn title(&self) -> Result<String, SystemException> {
        Ok("meter".to_owned())
    }
}

impl MeterServant for Compiled {
    async fn mean(&self, a: i32, b: u64, c: f64) -> Result<f64, SystemException> {
        Ok((f64::from(a) + b as f64 + c) / 3.0)
    }
    async fn divide(&self, a: f64, b: f64, count: i32) -> Result<(f64, String, i32), DivideError> {
        Ok(self.0.divide(a, b, count)?)
    }
    async fn sorted(&self, given: &[Reading]) -> Result<Vec<Reading>, SystemException> {
        Ok(sorted(given.to_vec()))
    }
    async fn level(&self) -> Result<i32, SystemException> {
        Ok(self.0.level.load(Ordering::SeqCst))
    }
    async fn set_level(&self, level: i32) -> Result<(), SystemException> {
        self.0.level.store(level, Ordering::SeqCst);
        Ok(())
    }
    async fn note(&self, text: &str) -> Result<(), SystemException> {
        self.0.notes.lock().unwrap().push_str(text);
        Ok(())
    }
    async fn other(&self, given: Option<ObjectRef>) -> Result<Option<ObjectRef>, SystemException> {
        Ok(given)
    }
    async fn kept(&self, given: &Any) -> Result<Any, SystemException> {
        Ok(given.clone())
    }
    async fn who(&self, greeting: &str, context: &Context) -> Result<String, SystemException> {
        Ok(shown(greeting, context))
    }
    async fn bulk(&self, data: Bytes) -> Result<Bytes, SystemException> {
        Ok(data)
    }
    async fn notes(&self) -> Result<String, SystemException> {
        Ok(self.0.notes.lock().unwrap().clone())
    }
}

/// The dynamic servant of the same interface.
pub(crate) struct ByName(pub(crate) Arc<Kept>);

impl DynServant for ByName {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let kept = &self.0;
        Ok(match request.operation() {
            "_get_title" => request.returning("meter".to_owned())?,
            "mean" => {
                let sum = f64::from(request.get::<i32>("a")?) + request.get::<u64>("b")? as f64;
                let c: f64 = request.get("c")?;
                request.returning((sum + c) / 3.0)?
            }
            "divide" => {
                let (a, b) = (request.get("a")?, request.get("b")?);
                let (quotient, remark, count) = kept.divide(a, b, request.get("count")?)?;
                request.returning(quotient)?.with("remark", remark)?.with("count", count)?
            }
            "sorted" => {
                let given = sorted(request.get("given")?);
                request.returning(given)?
            }
            "_get_level" => request.returning(kept.level.load(Ordering::SeqCst))?,
            "_set_level" => {
                kept.level.store(request.get("value")?, Ordering::SeqCst);
                request
            }
            "note" => {
                kept.notes.lock().unwrap().push_str(&request.get::<String>("text")?);
                request
            }
            "other" | "kept" | "bulk" => {
                let mut request = request;
                let given = request.arguments()[0].value.clone().unwrap();
                request.set_result(given);
                request
            }
            "who" => {
                let text = shown(&request.get::<String>("greeting")?, request.context());
                request.returning(text)?
            }
            "notes" => request.returning(kept.notes.lock().unwrap().clone())?,
            name => panic!("{name} is not of the interface"),
        })
    }
}

fn operation(
    name: &str,
    result: TypeCode,
    params: &[(&str, Mode, TypeCode)],
    raises: &[TypeCode],
) -> OperationInfo {
    let param = |(name, mode, code): &(&str, Mode, TypeCode)| ParamInfo {
        name: (*name).into(),
        mode: *mode,
        code: code.clone(),
    };
    OperationInfo {
        id: format!("IDL:Metering/Meter/{name}:1.0").into(),
        name: name.into(),
        oneway: name == "note",
        result,
        params: params.iter().map(param).collect(),
        raises: raises.to_vec(),
        contexts: if name == "who" { vec!["user".into(), "net.*".into()] } else { Vec::new() },
    }
}

fn attribute(name: &str, readonly: bool, code: TypeCode) -> AttributeInfo {
    AttributeInfo {
        id: format!("IDL:Metering/{name}:1.0").into(),
        name: name.into(),
        readonly,
        code,
        get_raises: Vec::new(),
        set_raises: Vec::new(),
    }
}

/// The interface as data.
pub(crate) fn interface() -> Arc<Interface> {
    use Mode::{In, InOut, Out};
    let string = TypeCode::string(0);
    let readings = TypeCode::sequence(&Reading::type_code(), 0);
    let octets = TypeCode::sequence(&TypeCode::OCTET, 0);
    let object = ObjectRef::type_code();
    let base = Interface::new(
        (TcKind::ObjRef, "IDL:Metering/Base:1.0", "Base"),
        Vec::new(),
        Vec::new(),
        vec![attribute("title", true, string.clone())],
    );
    let (long, double) = (TypeCode::LONG, TypeCode::DOUBLE);
    let operations = vec![
        operation(
            "mean",
            double.clone(),
            &[("a", In, long.clone()), ("b", In, TypeCode::ULONGLONG), ("c", In, double.clone())],
            &[],
        ),
        operation(
            "divide",
            double.clone(),
            &[
                ("a", In, double.clone()),
                ("b", In, double),
                ("remark", Out, string.clone()),
                ("count", InOut, long.clone()),
            ],
            &[Refused::type_code()],
        ),
        operation("sorted", readings.clone(), &[("given", In, readings)], &[]),
        operation("note", TypeCode::VOID, &[("text", In, string.clone())], &[]),
        operation("other", object.clone(), &[("given", In, object)], &[]),
        operation("kept", TypeCode::ANY, &[("given", In, TypeCode::ANY)], &[]),
        operation("who", string.clone(), &[("greeting", In, string.clone())], &[]),
        operation("bulk", octets.clone(), &[("data", In, octets)], &[]),
        operation("notes", string, &[], &[]),
    ];
    Arc::new(Interface::new(
        (TcKind::ObjRef, MeterRef::REPOSITORY_ID, "Meter"),
        vec![Arc::new(base)],
        operations,
        vec![attribute("level", false, long)],
    ))
}

pub(crate) fn reading(sensor: i32) -> Reading {
    Reading { sensor, value: f64::from(sensor) / 4.0, name: format!("sensor {sensor}") }
}
