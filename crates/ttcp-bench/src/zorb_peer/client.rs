//! The tests of the zorb client, with calls through the stubs that are generated from the IDL.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use zorb::prelude::*;
use zorb::wire::Version;

use super::idl::{BinStruct, TtcpRef, WideRef, zero_copy};
use super::integrity::elements;
use super::{NAME, dii, many, series, wide};
use crate::cli::{ClientArgs, GiopVersion, Invocation};
use crate::reference::Object;
use crate::report::{Line, Report};
use crate::test_loops;
use crate::work::{Element, Test, Work};

/// Runs the test against the server that `args.ior` names.
pub fn client(args: &ClientArgs) -> anyhow::Result<Report> {
    args.work.check()?;
    if args.work.test == Test::Clients {
        return many::clients(args);
    }
    let args = args.clone();
    super::block_on(args.orb.runtime, async move {
        let mut orbs = Vec::new();
        for _ in 0..args.connections {
            orbs.push(create_orb(&args).await?);
        }
        if args.work.test == Test::Objects {
            let [orb] = orbs.as_slice() else {
                anyhow::bail!("the test 'objects' supports no --connections")
            };
            return many::objects(orb, &args).await;
        }
        let url = args.ior.url(args.work.object())?;
        let report = match (orbs.as_slice(), args.invocation) {
            ([orb], Invocation::Sii) if args.work.test == Test::Series => {
                series::run(orb, args.orb.runtime, &args.work, &url)
                    .await
                    .map(|line| Report(Line::Series(line)))
            }
            ([orb], Invocation::Sii) if args.work.test == Test::Last => {
                wide::last(orb, &args.work, &args.ior).await
            }
            ([orb], Invocation::Sii) => run(orb, &args.work, &url).await,
            ([orb], Invocation::Dii) => dii::run(orb, &args.work, &url).await,
            (orbs, Invocation::Sii) => run_on_all(orbs, &args.work, &url).await,
            (_, Invocation::Dii) => anyhow::bail!("--invocation dii supports only one connection"),
        };
        let report = report.with_context(|| format!("calling {url}"))?;
        for orb in &orbs {
            super::report_fallback(orb);
            orb.shutdown().await;
        }
        Ok(report)
    })
}

pub(super) async fn create_orb(args: &ClientArgs) -> anyhow::Result<Orb> {
    let mut builder = args.orb.builder().limits(super::limits()).max_giop_version(version(args.giop));
    if let Some(size) = args.work.sockbuf {
        builder = builder.socket_buffer(usize::try_from(size)?);
    }
    Ok(builder.build().await?)
}

/// Runs a test with `octet` sequences or pings, whose calls use the connections of all ORBs in turn.
async fn run_on_all(orbs: &[Orb], work: &Work, url: &str) -> anyhow::Result<Report> {
    let mut all: Vec<TtcpRef> = Vec::new();
    for orb in orbs {
        let ttcp: TtcpRef = orb.resolve(url).await?;
        ttcp.ping().await?;
        all.push(ttcp);
    }
    let call_count = AtomicUsize::new(0);
    let next = || all.get(call_count.fetch_add(1, Ordering::Relaxed) % all.len()).context("no connection");
    match (work.test, work.element) {
        (Test::Ttcp, Element::Octet) => {
            let bytes: Bytes = elements(work.elements());
            let send = || async { anyhow::Ok(next()?.send_octet_seq(bytes.clone()).await?) };
            // Requests of a connection are served in order. So after these pings, all bytes are counted.
            let sync = || async {
                try_join_all(all.iter().map(TtcpRef::ping)).await?;
                anyhow::Ok(next()?.sync().await?)
            };
            test_loops::ttcp(NAME, work, send, sync).await
        }
        (Test::Ping, _) => {
            test_loops::latency(NAME, work, || async { anyhow::Ok(next()?.ping().await?) }).await
        }
        (Test::Pipeline, _) => {
            test_loops::pipeline(NAME, work, || async { anyhow::Ok(next()?.ping().await?) }).await
        }
        _ => anyhow::bail!("--connections supports only ping, pipeline, and ttcp with octets"),
    }
}

async fn run(orb: &Orb, work: &Work, url: &str) -> anyhow::Result<Report> {
    match work.object() {
        Object::ZeroCopy => return run_zero_copy(&orb.resolve(url).await?, work).await,
        Object::Wide => {
            let wide: WideRef = orb.resolve(url).await?;
            return test_loops::latency(NAME, work, || wide.m099()).await;
        }
        _ => {}
    }
    let ttcp: TtcpRef = orb.resolve(url).await?;
    match work.test {
        Test::Ttcp => flood(&ttcp, work).await,
        Test::Ping | Test::Demux | Test::Last => test_loops::latency(NAME, work, || ttcp.ping()).await,
        Test::Echo => echo(&ttcp, work).await,
        Test::Pipeline => test_loops::pipeline(NAME, work, || ttcp.ping()).await,
        Test::Series | Test::Objects | Test::Clients => {
            anyhow::bail!("the test '{}' cannot run with one object and one connection", work.test)
        }
    }
}

async fn flood(ttcp: &TtcpRef, work: &Work) -> anyhow::Result<Report> {
    let n = work.elements();
    macro_rules! flood {
        ($send:ident, $seq:ty) => {{
            let seq: $seq = elements(n);
            test_loops::ttcp(NAME, work, || ttcp.$send(seq.clone()), || ttcp.sync()).await
        }};
    }
    match work.element {
        Element::Octet => flood!(send_octet_seq, Bytes),
        Element::Char => flood!(send_char_seq, Seq<Char>),
        Element::Short => flood!(send_short_seq, Seq<i16>),
        Element::Long => flood!(send_long_seq, Seq<i32>),
        Element::Double => flood!(send_double_seq, Seq<f64>),
        Element::Struct32 => anyhow::bail!("only plain sockets support --type struct32"),
        // `run` sends zero-copy structs to another object.
        Element::Struct | Element::Zstruct => {
            let structs: Vec<BinStruct> = elements(n);
            test_loops::ttcp(NAME, work, || ttcp.send_struct_seq(&structs), || ttcp.sync()).await
        }
    }
}

async fn echo(ttcp: &TtcpRef, work: &Work) -> anyhow::Result<Report> {
    let n = work.elements();
    if work.element == Element::Struct {
        let structs: Vec<BinStruct> = elements(n);
        ensure!(ttcp.echo_structs(&structs).await? == structs, "the echo differs from what was sent");
        return test_loops::latency(NAME, work, || ttcp.echo_structs(&structs)).await;
    }
    let bytes: Bytes = (0..n).map(|i| i as u8).collect();
    ensure!(ttcp.echo_octets(bytes.clone()).await? == bytes, "the echo differs from what was sent");
    test_loops::latency(NAME, work, || ttcp.echo_octets(bytes.clone())).await
}

/// Runs the flood or the echo with structs that are sent in their memory representation.
async fn run_zero_copy(ttcp: &zero_copy::TtcpRef, work: &Work) -> anyhow::Result<Report> {
    let structs: Seq<zero_copy::BinStruct> = elements(work.elements());
    if work.test == Test::Ttcp {
        return test_loops::ttcp(NAME, work, || ttcp.send_struct_seq(structs.clone()), || ttcp.sync()).await;
    }
    ensure!(ttcp.echo_structs(structs.clone()).await? == structs, "the echo differs from what was sent");
    test_loops::latency(NAME, work, || ttcp.echo_structs(structs.clone())).await
}

fn version(giop: GiopVersion) -> Version {
    match giop {
        GiopVersion::V1_0 => Version::V1_0,
        GiopVersion::V1_1 => Version::V1_1,
        GiopVersion::V1_2 => Version::V1_2,
    }
}
