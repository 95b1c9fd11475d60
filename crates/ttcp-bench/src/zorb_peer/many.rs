//! The tests `objects` and `clients`, with many objects and many clients.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use zorb::prelude::*;
use zorb::{ObjectId, Servant};

use super::NAME;
use super::client::create_orb;
use super::idl::{BinStruct, TtcpRef, TtcpServant};
use super::integrity::elements;
use super::server::counting_servant;
use crate::cli::{ClientArgs, Invocation, ServerArgs};
use crate::many_clients;
use crate::many_objects::{self, RandomSequence, Serving, identifying_byte_count};
use crate::reference::{self, Address};
use crate::report::Report;
use crate::test_loops;

/// Adds the objects of `--objects` in a POA of their own, and publishes references to the called ones.
pub(super) fn activate(orb: &Orb, args: &ServerArgs, servant: impl Fn() -> Servant) -> anyhow::Result<()> {
    let objects = args.additional.objects;
    if objects == 0 {
        return Ok(());
    }
    let mut called = many_objects::called_objects(objects).into_iter().peekable();
    let mut references = Vec::new();
    let poa = orb.root_poa().child("objects");
    let poa = match args.additional.serving {
        Serving::SystemIds => poa.create()?,
        Serving::UserIds => poa.user_ids().create()?,
        Serving::Default => {
            let servant = Servant::of::<TtcpRef, _>(DefaultServant::default());
            poa.user_ids().default_servant(servant).without_map().create()?
        }
    };
    for object in 0..objects {
        let id = match args.additional.serving {
            Serving::SystemIds => poa.activate_object(servant())?,
            Serving::UserIds | Serving::Default => ObjectId::from(object.to_string().into_bytes()),
        };
        if args.additional.serving == Serving::UserIds {
            poa.activate_object_with_id(&id, servant())?;
        }
        if called.next_if_eq(&object).is_some() {
            references.push(match args.additional.serving {
                Serving::Default => poa.create_reference_with_id::<TtcpRef>(id)?.to_string(),
                Serving::SystemIds | Serving::UserIds => poa.id_to_reference(&id)?.to_string(),
            });
        }
    }
    reference::publish_references(&args.ior, &references)
}

/// Runs the test `objects`. Before the calls, each called object receives a certain number of bytes, and must
/// confirm this number. This check shows that the references lead to different objects.
pub(super) async fn objects(orb: &Orb, args: &ClientArgs) -> anyhow::Result<Report> {
    ensure!(args.invocation == Invocation::Sii, "the test 'objects' supports only --invocation sii");
    let Address::File(ior) = &args.ior else {
        bail!("the test 'objects' requires --ior PATH, because it reads PATH.objects")
    };
    let mut all: Vec<TtcpRef> = Vec::new();
    for url in reference::read_references(ior)? {
        all.push(orb.resolve(&url).await.with_context(|| format!("calling {url}"))?);
    }
    for (index, object) in all.iter().enumerate() {
        let bytes: Bytes = elements(identifying_byte_count(index) as usize);
        object.send_octet_seq(bytes).await?;
    }
    for (index, object) in all.iter().enumerate() {
        let (confirmed, sent) = (object.sync().await?, identifying_byte_count(index));
        ensure!(
            confirmed == sent,
            "the object of reference {index} confirms {confirmed} bytes, but {sent} were sent to it: references do not lead to different objects"
        );
    }
    let mut random = RandomSequence::default();
    let count = all.len() as u64;
    let mut next = || all.get(random.next_below(count) as usize).context("there are no objects");
    let call = || {
        let object = next();
        async { anyhow::Ok(object?.ping().await?) }
    };
    let report = test_loops::latency(NAME, &args.work, call).await?.with_objects(all.len());
    super::report_fallback(orb);
    orb.shutdown().await;
    Ok(report)
}

/// Runs the test `clients`, in which each client has a thread, a runtime and an ORB of its own.
pub(super) fn clients(args: &ClientArgs) -> anyhow::Result<Report> {
    ensure!(
        args.invocation == Invocation::Sii && args.connections == 1,
        "the test 'clients' supports neither --connections (use --depth) nor --invocation dii"
    );
    let url = args.ior.url(args.work.object())?;
    let shared = args.clone();
    many_clients::clients(NAME, &args.work, move |slot| {
        let (args, url) = (shared.clone(), url.clone());
        super::block_on(args.orb.runtime, async move {
            let orb = create_orb(&args).await?;
            let ttcp: TtcpRef = orb.resolve(&url).await.with_context(|| format!("calling {url}"))?;
            let echo = |bytes: Vec<u8>| ttcp.echo_octets(Bytes::from(bytes));
            let samples = slot.run(echo, || ttcp.ping()).await?;
            orb.shutdown().await;
            Ok(samples)
        })
    })
}

/// One servant for all objects, which counts the received bytes of each object.
#[derive(Debug, Default)]
struct DefaultServant {
    byte_counts: Mutex<HashMap<ObjectId, u64>>,
}

impl DefaultServant {
    fn add<T>(&self, items: &[T], item_bytes: usize) -> Result<(), SystemException> {
        let mut counts = self.byte_counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(zorb::request().object_id().into()).or_default() += (items.len() * item_bytes) as u64;
        Ok(())
    }

    fn take(&self) -> u64 {
        let mut counts = self.byte_counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.remove(&ObjectId::from(zorb::request().object_id())).unwrap_or_default()
    }
}

counting_servant!(DefaultServant);
