//! Object references: objects created on demand, a diamond of interfaces, calls back to the client.

use std::sync::Mutex;

use zorb::prelude::*;

use super::servant::PeerServer;
use super::transform::{Transform, transformed};
use super::types::interop::*;

/// A node: its label and its sum.
pub struct NodeServer {
    label: String,
    sum: Mutex<i32>,
}

impl NodeServer {
    /// Returns a node with that label and the sum 0.
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), sum: Mutex::new(0) }
    }
}

/// Activates a new node in the ORB that serves this request.
fn node(label: &str) -> Result<NodeRef, SystemException> {
    zorb::request()
        .orb()
        .activate(NodeServer::new(label))
        .or_system_exception(SystemExceptionKind::ObjAdapter)
}

impl NodeServant for NodeServer {
    async fn label(&self) -> Result<String, SystemException> {
        Ok(self.label.clone())
    }

    async fn add(&self, amount: i32) -> Result<i32, SystemException> {
        let mut sum = self.sum.lock().unwrap();
        *sum += amount;
        Ok(*sum)
    }

    async fn twin(&self) -> Result<Option<NodeRef>, SystemException> {
        Ok(Some(node(&format!("{}'", self.label))?))
    }

    async fn retire(&self) -> Result<(), SystemException> {
        let request = zorb::request();
        request.orb().deactivate(&request.target::<NodeRef>());
        Ok(())
    }
}

/// A plain `Base`.
pub struct BaseServer;

impl BaseServant for BaseServer {
    async fn rank(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    async fn base_name(&self) -> Result<String, SystemException> {
        Ok("base".to_owned())
    }
}

/// The bottom of the diamond: its motto.
pub struct BottomServer(Mutex<String>);

impl BaseServant for BottomServer {
    async fn rank(&self) -> Result<i32, SystemException> {
        Ok(4)
    }

    async fn base_name(&self) -> Result<String, SystemException> {
        Ok("base of bottom".to_owned())
    }
}

impl LeftServant for BottomServer {
    async fn left_name(&self) -> Result<String, SystemException> {
        Ok("left of bottom".to_owned())
    }
}

impl RightServant for BottomServer {
    async fn right_name(&self, times: i32) -> Result<String, SystemException> {
        Ok(vec!["right"; times.max(0) as usize].join(" "))
    }
}

impl BottomServant for BottomServer {
    async fn motto(&self) -> Result<String, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn set_motto(&self, value: &str) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = value.to_owned();
        Ok(())
    }

    async fn bottom_name(&self) -> Result<String, SystemException> {
        Ok("bottom".to_owned())
    }
}

type References<T> = Result<(T, T, T), SystemException>;

impl ReferencesServant for PeerServer {
    async fn echo_node(&self, a: Option<NodeRef>, b: Option<NodeRef>) -> References<Option<NodeRef>> {
        let b = if b.is_none() { Some(node("fresh")?) } else { None };
        Ok((a.clone(), b, a))
    }

    async fn echo_object(&self, a: Option<ObjectRef>, b: Option<ObjectRef>) -> References<Option<ObjectRef>> {
        let b = if b.is_none() { Some(node("fresh")?.into()) } else { None };
        Ok((a.clone(), b, a))
    }

    async fn echo_base(&self, a: Option<BaseRef>, b: Option<BaseRef>) -> References<Option<BaseRef>> {
        let b = if b.is_none() { self.make_base().await? } else { None };
        Ok((a.clone(), b, a))
    }

    async fn echo_node_seq(&self, a: &[Option<NodeRef>], mut b: NodeSeq) -> References<NodeSeq> {
        b.transform();
        Ok((a.to_vec(), b, a.to_vec()))
    }

    async fn echo_node_pair(&self, a: &NodePair, b: NodePair) -> References<NodePair> {
        Ok((a.clone(), transformed(&b), a.clone()))
    }

    async fn echo_node_or_text(&self, a: &NodeOrText, b: NodeOrText) -> References<NodeOrText> {
        Ok((a.clone(), transformed(&b), a.clone()))
    }

    async fn make_node(&self, name: &str) -> Result<Option<NodeRef>, SystemException> {
        Ok(Some(node(name)?))
    }

    async fn make_nodes(&self, names: &[String]) -> Result<NodeSeq, SystemException> {
        names.iter().map(|name| node(name).map(Some)).collect()
    }

    async fn label_of(&self, target: Option<NodeRef>) -> Result<String, SystemException> {
        match target {
            Some(target) => target.label().await,
            None => Ok("nil".to_owned()),
        }
    }

    async fn make_bottom(&self) -> Result<Option<BottomRef>, SystemException> {
        let servant = BottomServer(Mutex::new("to the bottom".to_owned()));
        zorb::request().orb().activate(servant).map(Some).or_system_exception(SystemExceptionKind::ObjAdapter)
    }

    async fn make_base(&self) -> Result<Option<BaseRef>, SystemException> {
        zorb::request()
            .orb()
            .activate(BaseServer)
            .map(Some)
            .or_system_exception(SystemExceptionKind::ObjAdapter)
    }

    async fn describe(&self, target: Option<BaseRef>) -> Result<String, SystemException> {
        match target {
            Some(target) => Ok(format!("{} of rank {}", target.base_name().await?, target.rank().await?)),
            None => Ok("nil".to_owned()),
        }
    }

    async fn ring_back(
        &self,
        target: Option<ListenerRef>,
        message: &str,
        times: i32,
    ) -> Result<i32, references::RingBackError> {
        let target = target.ok_or(nil())?;
        let mut sum = 0;
        for number in 0..times {
            sum += target.ring(message, number).await.map_err(|error| match error {
                listener::RingError::Detailed(detailed) => detailed.into(),
                listener::RingError::System(system) => references::RingBackError::from(system),
            })?;
        }
        Ok(sum)
    }

    async fn hint_back(&self, target: Option<ListenerRef>, message: &str) -> Result<(), SystemException> {
        target.ok_or(nil())?.hint(message).await
    }
}

fn nil() -> SystemException {
    SystemException::inv_objref()
}
