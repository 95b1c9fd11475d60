//! The tests of the zorb client, with calls by operation names (the Dynamic Invocation Interface).

use anyhow::{bail, ensure};
use zorb::dynamic::{Mode, NamedValue, Request};
use zorb::prelude::*;

use super::NAME;
use super::idl::{BinStruct, zero_copy};
use super::integrity::elements;
use crate::report::Report;
use crate::test_loops;
use crate::work::{Element, Test, Work};

pub(super) async fn run(orb: &Orb, work: &Work, url: &str) -> anyhow::Result<Report> {
    let object: ObjectRef = orb.resolve_unchecked(url).await?;
    let call = |operation| Request::new(&object, operation);
    match work.test {
        Test::Ttcp => {
            let (operation, value) = flood_call(work.element, work.elements())?;
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
                element => ("echoStructs", flood_call(element, work.elements())?.1),
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

/// Returns the name of the oneway operation for sequences of `element`, and a sequence of `n` elements.
fn flood_call(element: Element, n: usize) -> anyhow::Result<(&'static str, Any)> {
    Ok(match element {
        Element::Octet => ("sendOctetSeq", Any::new(elements::<_, Bytes>(n))?),
        Element::Char => ("sendCharSeq", Any::new(elements::<_, Seq<Char>>(n))?),
        Element::Short => ("sendShortSeq", Any::new(elements::<_, Seq<i16>>(n))?),
        Element::Long => ("sendLongSeq", Any::new(elements::<_, Seq<i32>>(n))?),
        Element::Double => ("sendDoubleSeq", Any::new(elements::<_, Seq<f64>>(n))?),
        Element::Struct => ("sendStructSeq", Any::new(elements::<_, Vec<BinStruct>>(n))?),
        Element::Zstruct => ("sendStructSeq", Any::new(elements::<_, Seq<zero_copy::BinStruct>>(n))?),
        Element::Struct32 => bail!("only plain sockets support --type struct32"),
    })
}
