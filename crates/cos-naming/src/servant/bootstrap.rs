//! The servant of Sun's bootstrap protocol, which resolves initial references by name.

use zorb::{ObjectRef, SystemException, SystemExceptionKind};

use super::fault::system;
use crate::stubs::bootstrap::InitialReferencesServant;

/// The object key that the protocol defines.
pub(crate) const BOOTSTRAP_KEY: &str = "INIT";

pub(crate) struct BootstrapServant {
    /// The name of the root context, which is also its object key.
    pub(crate) name: String,
    pub(crate) root: ObjectRef,
}

impl InitialReferencesServant for BootstrapServant {
    async fn get(&self, name: &str) -> Result<Option<ObjectRef>, SystemException> {
        if name == self.name {
            return Ok(Some(self.root.clone()));
        }
        let orb = zorb::request().orb();
        if !orb.initial_names().iter().any(|known| known == name) {
            return Ok(None);
        }
        orb.initial(name).await.map(Some).map_err(|error| {
            let text = "cannot resolve an initial reference of the server";
            tracing::warn!(name, %error, "{text}");
            system(SystemExceptionKind::Transient, text)
        })
    }

    async fn list(&self) -> Result<Vec<String>, SystemException> {
        let mut names = zorb::request().orb().initial_names();
        if !names.contains(&self.name) {
            names.push(self.name.clone());
        }
        names.sort();
        Ok(names)
    }
}
