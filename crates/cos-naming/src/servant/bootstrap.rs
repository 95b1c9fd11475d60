//! The servant for Sun's bootstrap protocol, by which clients resolve initial references by name.

use zorb::{ObjectRef, SystemException, SystemExceptionKind};

use super::fault::system_exception;
use crate::stubs::bootstrap::InitialReferencesServant;

/// The object key of the servant, which the protocol defines.
pub(crate) const BOOTSTRAP_KEY: &str = "INIT";

pub(crate) struct BootstrapServant {
    /// The name under which clients find the root context. It is also the object key of that context.
    pub(crate) root_name: String,
    pub(crate) root: ObjectRef,
}

impl InitialReferencesServant for BootstrapServant {
    async fn get(&self, name: &str) -> Result<Option<ObjectRef>, SystemException> {
        if name == self.root_name {
            return Ok(Some(self.root.clone()));
        }
        let orb = zorb::request().orb();
        if !orb.initial_names().iter().any(|known| known == name) {
            return Ok(None);
        }
        orb.initial(name).await.map(Some).map_err(|error| {
            let text = "the naming service cannot resolve this initial reference of its ORB";
            tracing::warn!(name, %error, "{text}");
            system_exception(SystemExceptionKind::Transient, text)
        })
    }

    async fn list(&self) -> Result<Vec<String>, SystemException> {
        let mut names = zorb::request().orb().initial_names();
        if !names.contains(&self.root_name) {
            names.push(self.root_name.clone());
        }
        names.sort();
        Ok(names)
    }
}
