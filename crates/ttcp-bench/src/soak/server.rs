//! `ttcp soak-server`: the process that is called, killed, suspended and started again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::sync::mpsc;
use zorb::dynamic::{Interface, Mode, OperationInfo, ParamInfo};
use zorb::poa::ForwardRequest;
use zorb::{Limits, ObjectId, Orb, Poa, Reference, Servant, TcKind, TypeCode};

use super::contract::{DYNAMIC, MOVED, OBJECTS, SLIM, SlimRef, TARGET, TargetRef};
use super::record_file::RecordFile;
use super::servant::{Activator, MADE, PANIC, Sabotage, ServerState, Slim, Target};
use super::state::State;
use super::{Order, receive_orders, send_report};
use crate::cli::Transport;

/// Maximum number of connections, which may all come from one address.
const CONNECTIONS: usize = 4096;
/// Timeout of idle connections.
const IDLE: Duration = Duration::from_secs(2);
/// Lifetime of each of the objects that are activated and deactivated.
const CHANGE: Duration = Duration::from_millis(20);

/// Options of `ttcp soak-server`.
#[derive(Debug, Clone, Args)]
pub struct SoakServerArgs {
    /// Where it listens
    #[arg(long)]
    pub port: u16,
    /// How connections are read and written
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Where executions are noted
    #[arg(long)]
    pub notes: PathBuf,
    /// How it errs
    #[arg(long, value_enum)]
    pub sabotage: Option<Sabotage>,
}

/// Serves until its orders end.
///
/// # Errors
/// The port is in use, or the record file does not exist.
pub fn soak_server(args: &SoakServerArgs) -> anyhow::Result<()> {
    quiet_panics();
    let orders = receive_orders()?;
    super::runtime(args.transport)?.block_on(async {
        // Runs as a task of the runtime rather than as its root future, as servers usually do.
        tokio::spawn(serve(args.clone(), orders)).await?
    })
}

/// Suppresses the messages of intended panics.
fn quiet_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&PANIC)
            && info.payload().downcast_ref::<String>().is_none_or(|said| said != PANIC)
        {
            others(info);
        }
    }));
}

async fn serve(args: SoakServerArgs, mut orders: mpsc::UnboundedReceiver<Order>) -> anyhow::Result<()> {
    let mut limits = Limits::default();
    limits.linger_timeout = Duration::from_secs(10);
    // A servant whose object has been deactivated calls it by messages to its own ORB. A quiet server would
    // keep that connection for minutes.
    limits.idle_timeout = Some(IDLE);
    let orb = Orb::builder()
        .transport(args.transport.into())
        .listen(format!("iiop://127.0.0.1:{}", args.port))
        .limits(limits)
        .max_connections(CONNECTIONS, CONNECTIONS)
        .start_paused()
        .build()
        .await?;
    let shared = Arc::new(ServerState::new(RecordFile::open(&args.notes)?, args.sabotage));
    let target = Target(Arc::clone(&shared));
    let root = orb.root_poa();
    let there: TargetRef = orb.activate_named(TARGET, target.clone())?;
    orb.forward_named(MOVED, ForwardRequest::to(&there))?;
    let slim: SlimRef = orb.activate_named(SLIM, Slim(Arc::clone(&shared)))?;
    let dynamic = Servant::dynamic(interface(), Slim(Arc::clone(&shared)));
    let dynamic = orb.activation().named(DYNAMIC).activate_erased(dynamic)?;
    let coming = root.child("coming").user_ids().persistent().own_manager().create()?;
    let incarnated = root
        .child("incarnated")
        .user_ids()
        .persistent()
        .servant_activator(Activator(target.clone()))
        .create()?;
    let made = root.child(MADE).user_ids().persistent().create()?;
    let mut references = vec![
        (TARGET.to_owned(), there.to_string()),
        (SLIM.to_owned(), slim.to_string()),
        (DYNAMIC.to_owned(), dynamic.to_string()),
        // Its reference is valid in this process only: a restarted server does not know it.
        ("passing".to_owned(), orb.activate::<TargetRef, _>(target.clone())?.to_string()),
    ];
    let address = orb.endpoints().into_iter().next().context("it listens nowhere")?;
    references.push((MOVED.to_owned(), format!("corbaloc::{address}/{MOVED}")));
    for number in 0..OBJECTS {
        let id = format!("object {number}");
        let one: TargetRef = coming.activate_with_id(id.as_str(), target.clone())?;
        let other: TargetRef = incarnated.create_reference_with_id(id.as_str())?;
        references.push((format!("coming {number}"), one.to_string()));
        references.push((format!("incarnated {number}"), other.to_string()));
    }
    orb.resume();
    let changing = tokio::spawn(change(coming, incarnated, target.clone()));
    send_report("READY", &references)?;
    while let Some(order) = orders.recv().await {
        match order {
            Order::Sweep => {
                shared.sweep(&made).await;
            }
            Order::State => {
                let mut state = State::of_this_process()?.with(&orb);
                state.busy = shared.busy();
                send_report("STATE", &state)?;
            }
            Order::End => break,
            Order::Go | Order::Quiet => {}
        }
    }
    changing.abort();
    let report = orb.shutdown().await;
    send_report("ENDED", &(report.connections, report.cut))
}

/// Returns the interface of the object that is served by operation name.
fn interface() -> Arc<Interface> {
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

/// Forever deactivates and reactivates objects, and holds requests for short times.
async fn change(coming: Poa, incarnated: Poa, target: Target) -> anyhow::Result<()> {
    for turn in 0_usize.. {
        let id = ObjectId::from(format!("object {}", turn % OBJECTS));
        tokio::time::sleep(CHANGE).await;
        // It does not exist if it was not called since.
        let _ = incarnated.deactivate_object(&id);
        if turn.is_multiple_of(5) {
            let _held = coming.manager().hold_requests()?;
            tokio::time::sleep(CHANGE / 4).await;
            coming.manager().activate()?;
        }
        coming.deactivate_object(&id)?.completed().await;
        tokio::time::sleep(CHANGE / 4).await;
        coming.activate_object_with_id(&id, Servant::of::<TargetRef, _>(target.clone()))?;
    }
    Ok(())
}
