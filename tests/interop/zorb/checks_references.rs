//! Object references in every position, inheritance, callbacks, deactivated objects.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use zorb::prelude::*;

use super::checks::{Check, Context, Failure, Outcome, expect, raised, same};
use super::servant_references::NodeServer;
use super::types::interop::*;

/// Returns these checks.
pub fn checks() -> Vec<Check> {
    vec![
        Check::new("nodes", nodes),
        Check::new("echo_references", echo_references),
        Check::new("inheritance", inheritance),
        Check::new("callbacks", callbacks),
        Check::new("gone", gone),
    ]
}

/// Returns the reference, which must not be nil.
fn there<R>(reference: Option<R>, what: &str) -> Result<R, Failure> {
    reference.ok_or_else(|| Failure::Wrong(format!("{what} is nil")))
}

async fn nodes(x: Context) -> Outcome {
    let node = there(x.peer.make_node("one").await?, "a new node")?;
    same(&node.label().await?, "one", "label")?;
    same(&node.add(5).await?, &5, "add(5)")?;
    same(&node.add(-7).await?, &-2, "add(-7)")?;
    let twin = there(node.twin().await?, "the twin")?;
    same(&twin.label().await?, "one'", "the twin's label")?;
    let names = ["x", "y", "z"].map(str::to_owned);
    let made = x.peer.make_nodes(&names).await?;
    same(&made.len(), &3, "the number of nodes")?;
    same(&there(made[2].clone(), "the last node")?.label().await?, "z", "the last label")?;
    same(&x.peer.label_of(made[1].clone()).await?, "y", "label_of")?;
    same(&x.peer.label_of(None).await?, "nil", "label_of nil")
}

/// Returns whether it is a reference to that node.
fn is<R: Reference>(found: &Option<R>, node: &NodeRef) -> bool {
    found.as_ref().is_some_and(|found| found.is_equivalent(node))
}

// clause: ior.object.is_equivalent, ior.nil
async fn echo_references(x: Context) -> Outcome {
    let wrong = |what: &'static str| move || what.to_owned();
    let a = there(x.peer.make_node("a").await?, "a")?;
    let b = there(x.peer.make_node("b").await?, "b")?;
    let (result, b, c) = x.peer.echo_node(&a, b).await?;
    expect(is(&result, &a) && is(&c, &a), wrong("the result or c is another object"))?;
    expect(b.is_none(), wrong("b is not nil"))?;
    let (result, b, c) = x.peer.echo_node(None, None).await?;
    expect(result.is_none() && c.is_none(), wrong("nil came back as an object"))?;
    same(&there(b, "b")?.label().await?, "fresh", "b's label")?;

    let (result, b, c) = x.peer.echo_object(a.to_object(), None).await?;
    expect(is(&result, &a) && is(&c, &a), wrong("the result or c of echo_object is another object"))?;
    let fresh: NodeRef = there(b, "b of echo_object")?.narrow().await?;

    let some = [Some(a.clone()), None, Some(fresh.clone())];
    let (result, b, c) = x.peer.echo_node_seq(&some, some.to_vec()).await?;
    expect(result.len() == 3 && b.len() == 3 && c.len() == 3, wrong("a sequence of another length"))?;
    expect(is(&result[0], &a) && result[1].is_none(), wrong("the sequence is wrong"))?;
    expect(is(&b[0], &fresh) && b[1].is_none() && is(&b[2], &a), wrong("b is not reversed"))?;

    let pair = NodePair { title: "Pair".to_owned(), first: Some(a.clone()), second: None };
    let (result, b, c) = x.peer.echo_node_pair(&pair, pair.clone()).await?;
    for pair in [&result, &c] {
        let good = pair.title == "Pair" && is(&pair.first, &a) && pair.second.is_none();
        expect(good, wrong("the pair is wrong"))?;
    }
    expect(b.title == "pAIR" && is(&b.first, &a) && b.second.is_none(), wrong("b of the pair is wrong"))?;

    let vertex = NodeOrText::Vertex(Some(a.clone()));
    let (result, b, c) = x.peer.echo_node_or_text(&vertex, NodeOrText::Words("Words".to_owned())).await?;
    for union in [&result, &c] {
        let good = matches!(union, NodeOrText::Vertex(found) if is(found, &a));
        expect(good, wrong("the union with a node is wrong"))?;
    }
    same(&b, &NodeOrText::Words("wORDS".to_owned()), "b of the union")
}

// clause: ior.object.is_a, ior.object.is_a_object, ior.type_id.hint, poa.request.operation
async fn inheritance(x: Context) -> Outcome {
    let bottom = there(x.peer.make_bottom().await?, "a new Bottom")?;
    same(&bottom.bottom_name().await?, "bottom", "bottom_name")?;
    same(&bottom.left_name().await?, "left of bottom", "left_name")?;
    same(&bottom.right_name(2).await?, "right right", "right_name")?;
    same(&bottom.base_name().await?, "base of bottom", "base_name")?;
    same(&bottom.rank().await?, &4, "rank")?;
    same(&bottom.motto().await?, "to the bottom", "motto")?;
    bottom.set_motto("Up").await?;
    same(&bottom.motto().await?, "Up", "motto")?;

    // By references of the bases, and narrowed again.
    let base: BaseRef = (&bottom).into();
    same(&base.base_name().await?, "base of bottom", "base_name by Base")?;
    let left: LeftRef = base.narrow().await?;
    let right: RightRef = left.narrow().await?;
    same(&right.right_name(1).await?, "right", "right_name by Right")?;
    same(&x.peer.describe(&left).await?, "base of bottom of rank 4", "describe(Left)")?;
    let (found, b, _) = x.peer.echo_base(&right, None).await?;
    let bottom: BottomRef = there(found, "the Bottom that came back")?.narrow().await?;
    let b = there(b, "b of echo_base")?;
    same(&x.peer.describe(&b).await?, "base of rank 1", "describe(b)")?;

    for id in ["Base", "Left", "Right", "Bottom"] {
        let id = format!("IDL:Interop/{id}:1.0");
        same(&bottom.is_a(&id).await?, &true, &format!("whether a Bottom is a {id}"))?;
    }
    same(&bottom.is_a("IDL:omg.org/CORBA/Object:1.0").await?, &true, "whether a Bottom is an Object")?;
    same(&bottom.is_a("IDL:Interop/Node:1.0").await?, &false, "whether a Bottom is a Node")?;
    same(&b.is_a("IDL:Interop/Left:1.0").await?, &false, "whether a Base is a Left")?;
    for id in ["Scalars", "Names/Keywords", "Peer"] {
        let id = format!("IDL:Interop/{id}:1.0");
        same(&x.peer.is_a(&id).await?, &true, &format!("whether the peer is a {id}"))?;
    }
    match bottom.narrow::<NodeRef>().await {
        Err(zorb::NarrowError::WrongInterface { .. }) => {}
        other => return Err(Failure::Wrong(format!("a Bottom narrowed to a Node gave {other:?}"))),
    }
    same(&x.peer.non_existent().await?, &false, "_non_existent")
}

/// The client's own object, which the server calls back.
#[derive(Default)]
struct ListenerServer {
    heard: Mutex<Vec<String>>,
    changed: Notify,
}

impl ListenerServant for ListenerServer {
    async fn ring(&self, message: &str, number: i32) -> Result<i32, listener::RingError> {
        if message == "refuse" {
            let why = "refused".to_owned();
            return Err(Detailed { why, code: number, shade: Color::Green, trail: Seq::default() }.into());
        }
        self.heard.lock().unwrap().push(message.to_owned());
        Ok(10 * number)
    }

    async fn hint(&self, message: &str) -> Result<(), SystemException> {
        self.heard.lock().unwrap().push(message.to_owned());
        self.changed.notify_one();
        Ok(())
    }
}

async fn callbacks(x: Context) -> Outcome {
    let activate = |error: zorb::ActivateError| Failure::Wrong(error.to_string());
    let listener = std::sync::Arc::new(ListenerServer::default());
    let heard = || std::mem::take(&mut *listener.heard.lock().unwrap());
    let reference: ListenerRef = x.orb.activate(listener.clone()).map_err(activate)?;
    same(&x.peer.ring_back(&reference, "hello", 3).await, &Ok::<_, ()>(30), "ring_back")?;
    same(&heard(), &["hello"; 3], "what the listener heard")?;
    let refused = Detailed { why: "refused".to_owned(), code: 0, shade: Color::Green, trail: Seq::default() };
    let wanted = Err::<(), _>(references::RingBackError::Detailed(refused));
    same(&x.peer.ring_back(&reference, "refuse", 1).await, &wanted, "the listener's exception")?;
    x.peer.hint_back(&reference, "psst").await?;
    let _ = tokio::time::timeout(Duration::from_secs(5), listener.changed.notified()).await;
    same(&heard(), &["psst"], "the hint")?;
    x.orb.deactivate(&reference);

    // An object of the client as an argument, and as a result.
    let mine: NodeRef = x.orb.activate(NodeServer::new("mine")).map_err(activate)?;
    same(&x.peer.label_of(&mine).await?, "mine", "label_of the client's node")?;
    let (back, ..) = x.peer.echo_node(&mine, None).await?;
    let back = there(back, "the client's node")?;
    same(&back.is_equivalent(&mine), &true, "whether the client's node came back")?;
    same(&back.label().await?, "mine", "the label of the client's node that came back")?;
    x.orb.deactivate(&mine);
    Ok(())
}

// clause: exc.when.object_not_active, ior.object.non_existent
async fn gone(x: Context) -> Outcome {
    let node = there(x.peer.make_node("short-lived").await?, "a new node")?;
    node.retire().await?;
    let got = raised(node.label()).await;
    let good = got.starts_with("OBJECT_NOT_EXIST ") && got.ends_with("COMPLETED_NO");
    expect(good, || format!("a retired node raised {got}"))?;
    same(&node.non_existent().await?, &true, "_non_existent of a retired node")
}
