//! A service and a client of it, with TCP between them.

use cos_naming::store::{MemoryStore, Store};
use cos_naming::{Server, ServerBuilder};
use zorb::cos_naming::{Name, NamingContextExtRef, parse_name};
use zorb::prelude::*;

/// A service on a port of its own, and a client.
pub(crate) struct Site<S: Store = MemoryStore> {
    pub(crate) server: Server<S>,
    pub(crate) server_orb: Orb,
    pub(crate) orb: Orb,
    /// The root context, for the client.
    pub(crate) root: NamingContextExtRef,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::of(MemoryStore::new(), |builder| builder).await
    }
}

impl<S: Store> Site<S> {
    pub(crate) async fn of(store: S, with: impl FnOnce(ServerBuilder<S>) -> ServerBuilder<S>) -> Self {
        let server_orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let server = with(Server::builder(store)).serve(&server_orb).unwrap();
        let url = url(&server_orb);
        let orb = Orb::builder().init_ref("NameService", &url).build().await.unwrap();
        let root = orb.initial("NameService").await.unwrap();
        Self { server, server_orb, orb, root }
    }

    /// Returns a reference that is distinguished by its key. The object need not exist.
    pub(crate) async fn object(&self, key: &str) -> zorb::ObjectRef {
        object(&self.orb, key).await
    }
}

pub(crate) async fn object(orb: &Orb, key: &str) -> zorb::ObjectRef {
    orb.resolve_unchecked(&format!("corbaloc:iiop:1.2@192.0.2.1:1/{key}")).await.unwrap()
}

/// Returns the URL of the service of an ORB.
pub(crate) fn url(orb: &Orb) -> String {
    let endpoint = orb.endpoints().remove(0);
    let address = endpoint.rsplit("//").next().unwrap().to_owned();
    format!("corbaloc:iiop:1.2@{address}/NameService")
}

pub(crate) fn name(text: &str) -> Name {
    parse_name(text).unwrap()
}

/// Returns the key of a reference, as text.
pub(crate) fn key_of(object: &zorb::ObjectRef) -> String {
    let profile = object.ior().iiop_profile().unwrap();
    String::from_utf8_lossy(profile.object_key.as_slice()).into_owned()
}
