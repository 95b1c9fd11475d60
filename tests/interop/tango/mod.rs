//! Tango, whose devices are CORBA objects reached by `corbaloc:` and therefore by GIOP 1.0: zorb calls a
//! PyTango device, and PyTango calls a device that zorb serves.

use std::sync::Mutex;
use std::time::Duration;

use zorb::prelude::*;
use zorb::wire::{Ior, Version};

use crate::dotted;
use test_support::peers::matrix::{Outcome, Role, cell};
use test_support::peers::{Foreign, tell};
use test_support::transport::builder;

zorb::idl!("tests/interop/tango/device.idl");

use tango::device::{CommandInoutError, CommandListQueryError};
use tango::{
    AttrDataFormat, AttrQuality, AttrWriteType, AttributeConfig, AttributeValue, DevCmdInfo, DevError,
    DevFailed, DevInfo, DevState, DeviceRef, DeviceServant, ErrSeverity, TimeVal,
};

/// Timeout of a Python program.
const LIMIT: Duration = Duration::from_secs(60);

const NAME: &str = "test/probe/1";

/// Tango's numbers of types.
const DEV_VOID: i32 = 0;
const DEV_DOUBLE: i32 = 5;
const DEV_STRING: i32 = 8;
const DEV_VAR_DOUBLE_ARRAY: i32 = 13;
const DEV_VAR_STRING_ARRAY: i32 = 16;
const DEV_LONG64: i32 = 23;

fn any<T: Typed + giop_codec::cdr::CdrEncode>(value: T) -> Any {
    Any::new(value).expect("it encodes")
}

fn doubles(values: impl IntoIterator<Item = f64>) -> Any {
    let values: Seq<f64> = values.into_iter().collect();
    Any::with_type(&tango::dev_var_double_array_type_code(), values).expect("it encodes")
}

fn strings(values: &[&str]) -> Any {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    Any::with_type(&tango::dev_var_string_array_type_code(), values).expect("it encodes")
}

// ------------------------------------------------------------ zorb calls

/// Makes all requests of the tests to a PyTango device.
async fn drive(device: &DeviceRef) {
    device.ping().await.unwrap();
    assert_eq!(device.name().await.unwrap(), NAME);
    assert_eq!(device.state().await.unwrap(), DevState::Running);
    assert_eq!(device.status().await.unwrap(), "all is well");
    let info = device.info().await.unwrap();
    assert_eq!((&*info.dev_class, &*info.server_id), ("Probe", "probe/test"));
    let commands = device.command_list_query().await.unwrap();
    assert!(
        commands.iter().any(|command| command.cmd_name == "Sum" && command.in_type == DEV_VAR_DOUBLE_ARRAY)
    );

    for number in [0_i64, 21, -7] {
        let twice = device.command_inout("Twice", &any(number)).await.unwrap();
        assert_eq!(twice.get::<i64>().unwrap(), 2 * number);
    }
    for text in ["abc", "", &"x".repeat(100_000)] {
        let upper = device.command_inout("Upper", &any(text.to_owned())).await.unwrap();
        assert_eq!(upper.get::<String>().unwrap(), text.to_uppercase());
    }
    let sum = device.command_inout("Sum", &doubles([1.0, 2.0, 3.5])).await.unwrap();
    assert_eq!(sum.get::<f64>().unwrap(), 6.5);
    let reversed = device.command_inout("Reverse", &strings(&["a", "b", ""])).await.unwrap();
    assert_eq!(reversed.get::<Vec<String>>().unwrap(), ["", "b", "a"]);

    let names = ["level", "numbers"].map(str::to_owned);
    let read = device.read_attributes(&names).await.unwrap();
    assert_eq!(read.iter().map(|value| &*value.name).collect::<Vec<_>>(), ["level", "numbers"]);
    let numbers = read[1].value.get::<Seq<f64>>().unwrap();
    assert_eq!((numbers.len(), numbers[4999], read[1].dim_x), (5000, 2499.5, 5000));
    for level in [-2.25, 1.5] {
        let value =
            AttributeValue { value: doubles([level]), name: "level".to_owned(), dim_x: 1, ..written() };
        device.write_attributes(&[value]).await.unwrap();
        let read = device.read_attributes(&names[..1]).await.unwrap();
        assert_eq!(read[0].value.get::<Seq<f64>>().unwrap()[0], level);
    }
    // The exception of all operations, which contains a list of structs.
    let failed = device.command_inout("Fail", &Any::default()).await.unwrap_err();
    let CommandInoutError::DevFailed(DevFailed { errors }) = failed else { panic!("{failed}") };
    assert_eq!((&*errors[0].reason, &*errors[0].desc), ("PROBE_Fails", "it always fails"));
    assert_eq!(errors[0].severity, ErrSeverity::Err);

    assert!(device.is_a("IDL:Tango/Device:1.0").await.unwrap());
    assert!(device.is_a("IDL:Tango/Device_5:1.0").await.unwrap());
    assert!(!device.is_a("IDL:Tango/Other:1.0").await.unwrap());
    assert!(!device.non_existent().await.unwrap());
    assert!(device.locate().await.unwrap());
}

fn written() -> AttributeValue {
    AttributeValue {
        value: Any::default(),
        quality: AttrQuality::AttrValid,
        time: TimeVal { tv_sec: 0, tv_usec: 0, tv_nsec: 0 },
        name: String::new(),
        dim_x: 0,
        dim_y: 0,
    }
}

// clause: giop.version.client, giop.version.reply, ior.corbaloc.plain_key, exc.user.body
#[tokio::test(flavor = "multi_thread")]
async fn zorb_calls_tango() {
    let start = || Foreign::Tango.serve("device", &[], LIMIT);
    let Some(server) = tokio::task::spawn_blocking(start).await.expect("it was started") else { return };
    let ior: Ior = server.ior.parse().expect("an IOR");
    let address = ior.iiop_profile().map(|profile| format!("{}:{}", profile.host, profile.port)).unwrap();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let corbaloc = format!("corbaloc:iiop:{}@{address}/{NAME}", dotted(version));
        for (by, url) in [("ior", &server.ior), ("corbaloc", &corbaloc)] {
            let orb = builder().max_giop_version(version).build().await.unwrap();
            let device: DeviceRef = orb.resolve_unchecked(url).await.unwrap();
            drive(&device).await;
            tell(&format!("zorb -> Tango, {by} {}: all of it", dotted(version)));
            for feature in [by, "types", "exceptions", "anys"] {
                cell("Tango", Role::Client, &dotted(version), feature, Outcome::Good);
            }
        }
    }
}

// ------------------------------------------------------------ zorb serves

/// A device like that of `device.py`.
struct Probe {
    level: Mutex<f64>,
}

fn failure(reason: &str, text: &str, origin: &str) -> DevFailed {
    let error = DevError {
        reason: reason.to_owned(),
        severity: ErrSeverity::Err,
        desc: text.to_owned(),
        origin: origin.to_owned(),
    };
    DevFailed { errors: vec![error] }
}

fn no_such(what: &str, name: &str) -> DevFailed {
    failure(&format!("API_{what}NotFound"), &format!("there is no {name}"), "zorb")
}

fn command(name: &str, in_type: i32, out_type: i32) -> DevCmdInfo {
    DevCmdInfo {
        cmd_name: name.to_owned(),
        cmd_tag: 0,
        in_type,
        out_type,
        in_type_desc: "Uninitialised".to_owned(),
        out_type_desc: "Uninitialised".to_owned(),
    }
}

fn commands() -> Vec<DevCmdInfo> {
    vec![
        command("Twice", DEV_LONG64, DEV_LONG64),
        command("Upper", DEV_STRING, DEV_STRING),
        command("Sum", DEV_VAR_DOUBLE_ARRAY, DEV_DOUBLE),
        command("Reverse", DEV_VAR_STRING_ARRAY, DEV_VAR_STRING_ARRAY),
        command("Fail", DEV_VOID, DEV_VOID),
    ]
}

impl Probe {
    fn read(&self, name: &str) -> Result<AttributeValue, DevFailed> {
        let numbers: Vec<f64> = match name {
            "level" => vec![*self.level.lock().unwrap()],
            "numbers" => (0..5000).map(|i| 0.5 * f64::from(i)).collect(),
            _ => return Err(no_such("Attr", name)),
        };
        let dim_x = numbers.len() as i32;
        Ok(AttributeValue { value: doubles(numbers), name: name.to_owned(), dim_x, ..written() })
    }
}

impl DeviceServant for Probe {
    async fn name(&self) -> Result<String, SystemException> {
        Ok(NAME.to_owned())
    }

    async fn description(&self) -> Result<String, SystemException> {
        Ok("A TANGO device".to_owned())
    }

    async fn state(&self) -> Result<DevState, SystemException> {
        Ok(DevState::Running)
    }

    async fn status(&self) -> Result<String, SystemException> {
        Ok("all is well".to_owned())
    }

    async fn adm_name(&self) -> Result<String, SystemException> {
        Ok("dserver/zorb/test".to_owned())
    }

    async fn command_inout(&self, command: &str, argin: &Any) -> Result<Any, CommandInoutError> {
        Ok(match command {
            "Twice" => any(2 * argin.get::<i64>().map_err(SystemException::from)?),
            "Upper" => any(argin.get::<String>().map_err(SystemException::from)?.to_uppercase()),
            "Sum" => any(argin.get::<Seq<f64>>().map_err(SystemException::from)?.iter().sum::<f64>()),
            "Reverse" => {
                let texts: Vec<String> = argin.get().map_err(SystemException::from)?;
                strings(&texts.iter().rev().map(|text| &**text).collect::<Vec<_>>())
            }
            "State" => any(DevState::Running),
            "Status" => any("all is well".to_owned()),
            "Fail" => return Err(failure("PROBE_Fails", "it always fails", "Probe::Fail").into()),
            _ => return Err(no_such("Command", command).into()),
        })
    }

    async fn command_list_query(&self) -> Result<Vec<DevCmdInfo>, CommandListQueryError> {
        Ok(commands())
    }

    async fn command_query(&self, command: &str) -> Result<DevCmdInfo, tango::device::CommandQueryError> {
        let found = commands().into_iter().find(|known| known.cmd_name == command);
        Ok(found.ok_or_else(|| no_such("Command", command))?)
    }

    async fn get_attribute_config(
        &self,
        names: &[String],
    ) -> Result<Vec<AttributeConfig>, tango::device::GetAttributeConfigError> {
        let none = || "Not specified".to_owned();
        let config = |name: &String| AttributeConfig {
            name: name.clone(),
            writable: if name == "level" { AttrWriteType::ReadWrite } else { AttrWriteType::Read },
            data_format: if name == "level" { AttrDataFormat::Scalar } else { AttrDataFormat::Spectrum },
            data_type: DEV_DOUBLE,
            max_dim_x: if name == "level" { 1 } else { 10_000 },
            max_dim_y: 0,
            description: none(),
            label: name.clone(),
            unit: String::new(),
            standard_unit: String::new(),
            display_unit: String::new(),
            format: "%6.2f".to_owned(),
            min_value: none(),
            max_value: none(),
            min_alarm: none(),
            max_alarm: none(),
            writable_attr_name: if name == "level" { "level" } else { "None" }.to_owned(),
            extensions: Vec::new(),
        };
        if let Some(other) = names.iter().find(|name| !["level", "numbers"].contains(&name.as_str())) {
            return Err(no_such("Attr", other).into());
        }
        Ok(names.iter().map(config).collect())
    }

    async fn read_attributes(
        &self,
        names: &[String],
    ) -> Result<Vec<AttributeValue>, tango::device::ReadAttributesError> {
        Ok(names.iter().map(|name| self.read(name)).collect::<Result<_, _>>()?)
    }

    async fn write_attributes(
        &self,
        values: &[AttributeValue],
    ) -> Result<(), tango::device::WriteAttributesError> {
        for value in values {
            if value.name != "level" {
                return Err(no_such("Attr", &value.name).into());
            }
            let numbers: Seq<f64> = value.value.get().map_err(SystemException::from)?;
            *self.level.lock().unwrap() = numbers.first().copied().unwrap_or_default();
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), tango::device::PingError> {
        Ok(())
    }

    async fn info(&self) -> Result<DevInfo, tango::device::InfoError> {
        Ok(DevInfo {
            dev_class: "Probe".to_owned(),
            server_id: "zorb/test".to_owned(),
            server_host: "localhost".to_owned(),
            server_version: 1,
            doc_url: String::new(),
        })
    }
}

// clause: giop.version.lower, giop.version.reply, ior.corbaloc.plain_key
#[tokio::test(flavor = "multi_thread")]
async fn tango_calls_zorb() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let _device: DeviceRef = server.activate_named(NAME, Probe { level: Mutex::new(1.5) }).unwrap();
    let url = format!("tango://{}/{NAME}#dbase=no", server.endpoints()[0]);
    let client = move || Foreign::Tango.drive("client", &[], &url, 10, LIMIT);
    if tokio::task::spawn_blocking(client).await.expect("the client was waited for") {
        tell("Tango -> zorb, corbaloc 1.0: 10 checks passed");
        for feature in ["corbaloc", "types", "exceptions", "anys"] {
            cell("Tango", Role::Server, "1.0", feature, Outcome::Good);
        }
    }
}
