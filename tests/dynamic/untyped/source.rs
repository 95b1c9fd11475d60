//! Sources of interface descriptions for clients.

use std::sync::Arc;

use zorb::dynamic::{InterfaceSource, Request};
use zorb::minor;
use zorb::prelude::*;
use zorb::testing::pair;
use zorb::wire::Ior;

use super::meter::MeterRef;
use super::pairs::served;
use super::requests::system;

/// Describes one interface by an object of its own.
struct Source(Ior);

impl InterfaceSource for Source {
    fn interface(&self, _: &Orb, repository_id: &str) -> Option<Ior> {
        (repository_id == MeterRef::REPOSITORY_ID).then(|| self.0.clone())
    }
    fn metadata(&self, _: &Orb, repository_id: &str) -> Option<Any> {
        Any::new(repository_id.to_owned()).ok().filter(|_| repository_id == MeterRef::REPOSITORY_ID)
    }
}

// clause: ior.object.get_interface
#[tokio::test]
async fn interface_and_metadata_come_from_the_interface_source() {
    let orbs = pair();
    for dynamic in [false, true] {
        let (meter, _) = served(&orbs, dynamic).await;
        let interface = Request::new(&meter, "_interface").returns(ObjectRef::type_code());
        let metadata = Request::new(&meter, "omg_get_ifr_metadata").returns(TypeCode::ANY);
        if !dynamic {
            let none = system(interface.invoke().await.unwrap_err());
            assert_eq!(
                (none.kind, none.minor),
                (SystemExceptionKind::IntfRepos, minor::INTF_REPOS_UNAVAILABLE)
            );
            let none = system(metadata.invoke().await.unwrap_err());
            assert_eq!(none.kind, SystemExceptionKind::BadOperation);
        }
        orbs.server.set_interface_source(Arc::new(Source(meter.ior().clone())));
        assert_eq!(interface.invoke().await.unwrap().get::<ObjectRef>().unwrap(), meter);
        let said: Any = metadata.invoke().await.unwrap().get().unwrap();
        assert_eq!(said.get::<String>().unwrap(), MeterRef::REPOSITORY_ID);
    }
}
