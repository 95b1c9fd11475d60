//! The contract's tests, called by the names of the operations (the Dynamic Invocation Interface).

use anyhow::{bail, ensure};
use zorb::dynamic::{Mode, NamedValue, Request};
use zorb::prelude::*;

use super::NAME;
use super::client::{structs, structs_in_memory};
use crate::report::Report;
use crate::test_loops::{self, pattern};
use crate::work::{Element, Test, Work};

/// Runs the test on the object that `url` names.
///
/// # Errors
/// The server cannot be reached, a call fails, or an echo differs.
pub(super) async fn run(orb: &Orb, work: &Work, url: &str) -> anyhow::Result<Report> {
    let object: ObjectRef = orb.resolve_unchecked(url).await?;
    let call = |operation| Request::new(&object, operation);
    match work.test {
        Test::Ttcp => {
            let (operation, value) = flood(work.element, work.elements())?;
            let send = call(operation).arg(NamedValue::new("s", Mode::In, value));
            let sync = call("sync").returns(u64::type_code());
            let send = || async { anyhow::Ok(send.send_oneway().await?) };
            let sync = || async { anyhow::Ok(sync.invoke().await?.get()?) };
            test_loops::ttcp(NAME, work, send, sync).await
        }
        Test::Echo => {
            let (operation, value) = match work.element {
                Element::Octet => {
                    ("echoOctets", Any::new((0..work.elements()).map(|i| i as u8).collect::<Bytes>())?)
                }
                element => ("echoStructs", flood(element, work.elements())?.1),
            };
            let argument = NamedValue::new("s", Mode::In, value.clone());
            let echo = call(operation).arg(argument).returns(value.type_code().clone());
            ensure!(echo.invoke().await?.result == value, "the echo differs from what was sent");
            test_loops::latency(NAME, work, || echo.invoke()).await
        }
        Test::Ping | Test::Demux => {
            let ping = call(if work.test == Test::Ping { "ping" } else { "m099" });
            test_loops::latency(NAME, work, || ping.invoke()).await
        }
        Test::Pipeline => {
            let ping = call("ping");
            test_loops::pipeline(NAME, work, || async { ping.invoke().await.map(drop) }).await
        }
        Test::Last | Test::Series | Test::Objects | Test::Clients => {
            bail!("the test '{}' supports only --invocation sii", work.test)
        }
    }
}

/// Returns the oneway operation for sequences of that type, and a sequence.
fn flood(element: Element, n: usize) -> anyhow::Result<(&'static str, Any)> {
    Ok(match element {
        Element::Octet => ("sendOctetSeq", Any::new((0..n).map(pattern).collect::<Bytes>())?),
        Element::Char => ("sendCharSeq", Any::new((0..n).map(|i| Char(pattern(i))).collect::<Seq<_>>())?),
        Element::Short => {
            ("sendShortSeq", Any::new((0..n).map(|i| i16::from(pattern(i))).collect::<Seq<_>>())?)
        }
        Element::Long => {
            ("sendLongSeq", Any::new((0..n).map(|i| i32::from(pattern(i))).collect::<Seq<_>>())?)
        }
        Element::Double => {
            ("sendDoubleSeq", Any::new((0..n).map(|i| f64::from(pattern(i))).collect::<Seq<_>>())?)
        }
        Element::Struct => ("sendStructSeq", Any::new(structs(n))?),
        Element::Zstruct => ("sendStructSeq", Any::new(structs_in_memory(n))?),
        Element::Struct32 => bail!("only plain sockets support --type struct32"),
    })
}
