//! `ttcp soak-server`: the server process, which `ttcp soak` kills, suspends and restarts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::sync::mpsc;
use zorb::dynamic::{Interface, Mode, OperationInfo, ParamInfo};
use zorb::poa::ForwardRequest;
use zorb::{Limits, ObjectId, Orb, Poa, Reference, Servant, TcKind, TypeCode};

use super::contract::{DYNAMIC, MOVED, OBJECT_COUNT, SLIM, SlimRef, TARGET, TargetRef};
use super::record_file::RecordFile;
use super::servant::{Activator, CREATED_POA, PANIC_MESSAGE, Sabotage, ServerState, Slim, Target};
use super::state::State;
use super::{Order, receive_orders, send_report};
use crate::cli::Transport;

const MAX_CONNECTIONS: usize = 4096;
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Lifetime of the objects that are repeatedly activated and deactivated.
const OBJECT_LIFETIME: Duration = Duration::from_millis(20);

/// Options of `ttcp soak-server`.
#[derive(Debug, Clone, Args)]
pub struct SoakServerArgs {
    /// Port to listen on
    #[arg(long)]
    pub port: u16,
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// File in which executions are recorded
    #[arg(long = "records")]
    pub record_file: PathBuf,
    /// Intended misbehaviour of this server
    #[arg(long, value_enum)]
    pub sabotage: Option<Sabotage>,
}

/// Serves until the order `end` arrives. The process exits when stdin is closed.
pub fn soak_server(args: &SoakServerArgs) -> anyhow::Result<()> {
    suppress_messages_of_intended_panics();
    let orders = receive_orders()?;
    super::runtime(args.transport)?.block_on(async {
        // The server runs in a spawned task, as servers usually do.
        tokio::spawn(serve(args.clone(), orders)).await?
    })
}

fn suppress_messages_of_intended_panics() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&PANIC_MESSAGE)
            && info.payload().downcast_ref::<String>().is_none_or(|message| message != PANIC_MESSAGE)
        {
            default_hook(info);
        }
    }));
}

async fn serve(args: SoakServerArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    let mut limits = Limits::default();
    limits.linger_timeout = Duration::from_secs(10);
    // `inward` calls the object of its own request. If this object has been deactivated since, the ORB sends
    // the call to its own endpoint. By default, this connection would stay open for minutes.
    limits.idle_timeout = Some(IDLE_TIMEOUT);
    let orb = Orb::builder()
        .transport(args.transport.into())
        .listen(format!("iiop://127.0.0.1:{}", args.port))
        .limits(limits)
        .max_connections(MAX_CONNECTIONS, MAX_CONNECTIONS)
        .start_paused()
        .build()
        .await?;
    let shared = Arc::new(ServerState::new(RecordFile::open(&args.record_file)?, args.sabotage));
    let target = Target(Arc::clone(&shared));
    let root = orb.root_poa();
    let target_ref: TargetRef = orb.activate_named(TARGET, target.clone())?;
    orb.forward_named(MOVED, ForwardRequest::to(&target_ref))?;
    let slim: SlimRef = orb.activate_named(SLIM, Slim(Arc::clone(&shared)))?;
    let dynamic = Servant::dynamic(slim_interface(), Slim(Arc::clone(&shared)));
    let dynamic = orb.activation().named(DYNAMIC).activate_erased(dynamic)?;
    let reactivated = root.child("reactivated").user_ids().persistent().own_manager().create()?;
    let incarnated = root
        .child("incarnated")
        .user_ids()
        .persistent()
        .servant_activator(Activator(target.clone()))
        .create()?;
    let created = root.child(CREATED_POA).user_ids().persistent().create()?;
    let mut references = vec![
        (TARGET.to_owned(), target_ref.to_string()),
        (SLIM.to_owned(), slim.to_string()),
        (DYNAMIC.to_owned(), dynamic.to_string()),
        // This reference is valid only in this process, because a restarted server does not know its object.
        ("transient".to_owned(), orb.activate::<TargetRef, _>(target.clone())?.to_string()),
    ];
    let address = orb.endpoints().into_iter().next().context("the server has no endpoint")?;
    references.push((MOVED.to_owned(), format!("corbaloc::{address}/{MOVED}")));
    for number in 0..OBJECT_COUNT {
        let id = format!("object {number}");
        let reference: TargetRef = reactivated.activate_with_id(id.as_str(), target.clone())?;
        references.push((format!("reactivated {number}"), reference.to_string()));
        let reference: TargetRef = incarnated.create_reference_with_id(id.as_str())?;
        references.push((format!("incarnated {number}"), reference.to_string()));
    }
    orb.resume();
    let changer = tokio::spawn(change_objects(reactivated, incarnated, target.clone()));
    send_report("READY", &references)?;
    while let Some(order) = orders.recv().await {
        match order {
            Order::Sweep => {
                shared.discard_remains(&created).await;
            }
            Order::State => {
                let mut state = State::of_this_process()?.with_orb(&orb);
                state.executing_calls = shared.executing_calls();
                send_report("STATE", &state)?;
            }
            Order::End => break,
            Order::Go | Order::Quiet => {}
        }
    }
    changer.abort();
    let report = orb.shutdown().await;
    send_report("ENDED", &(report.connections, report.aborted_connections))
}

/// Returns the interface of the object that is served by operation name.
fn slim_interface() -> Arc<Interface> {
    let bump = OperationInfo {
        id: "IDL:Soak/Slim/bump:1.0".into(),
        name: "bump".into(),
        oneway: false,
        result: TypeCode::ULONGLONG,
        params: vec![ParamInfo { name: "id".into(), mode: Mode::In, code: TypeCode::ULONGLONG }],
        raises: Vec::new(),
        contexts: Vec::new(),
    };
    let kind = (TcKind::ObjRef, SlimRef::REPOSITORY_ID, "Slim");
    Arc::new(Interface::new(kind, Vec::new(), vec![bump], Vec::new()))
}

/// Deactivates objects of both POAs in turn. Reactivates those of `reactivated`, and holds requests to them.
async fn change_objects(reactivated: Poa, incarnated: Poa, target: Target) -> anyhow::Result<()> {
    for turn in 0_usize.. {
        let id = ObjectId::from(format!("object {}", turn % OBJECT_COUNT));
        tokio::time::sleep(OBJECT_LIFETIME).await;
        // This fails if the object was not called since its last deactivation.
        let _ = incarnated.deactivate_object(&id);
        if turn.is_multiple_of(5) {
            let _hold = reactivated.manager().hold_requests()?;
            tokio::time::sleep(OBJECT_LIFETIME / 4).await;
            reactivated.manager().activate()?;
        }
        reactivated.deactivate_object(&id)?.completed().await;
        tokio::time::sleep(OBJECT_LIFETIME / 4).await;
        reactivated.activate_object_with_id(&id, Servant::of::<TargetRef, _>(target.clone()))?;
    }
    Ok(())
}
