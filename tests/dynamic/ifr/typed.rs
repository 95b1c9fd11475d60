//! The repository by typed calls, with the Rust code of its own IDL, to which other IDL refers.

use zorb::interface_repository::{
    ContainedRef, DefinitionKind, InterfaceDefRef, InterfaceDescription, OperationDescription, OperationMode,
    RepositoryRef,
};
use zorb::prelude::*;

use super::place;

mod directory {
    zorb::idl!(
        r#"
        #include <ir.idl>
        module Directory {
            interface Catalog { CORBA::InterfaceDef find(in CORBA::RepositoryId id, out CORBA::DefinitionKind kind); };
        };
        "#
    );
}

use directory::directory::{CatalogRef, CatalogServant};

struct Catalog(RepositoryRef);

impl CatalogServant for Catalog {
    async fn find(&self, id: &str) -> Result<(Option<InterfaceDefRef>, DefinitionKind), SystemException> {
        let Some(found) = self.0.lookup_id(id).await? else { return Ok((None, DefinitionKind::DkNone)) };
        let kind = found.def_kind().await?;
        let interface = if kind == DefinitionKind::DkInterface { Some(found.narrow().await?) } else { None };
        Ok((interface, kind))
    }
}

#[tokio::test]
async fn its_objects_are_called_by_the_rust_of_its_idl() {
    let place = place().await;
    let repository: RepositoryRef = place.repository.narrow().await.unwrap();
    let account = repository.lookup("Bank::Account").await.unwrap().unwrap();
    assert_eq!(account.id().await.unwrap(), "IDL:example.org/Bank/Account:1.0");
    let described = account.describe().await.unwrap();
    assert_eq!(described.kind, DefinitionKind::DkInterface);
    let interface: InterfaceDescription = described.value.get().unwrap();
    assert_eq!(interface.base_interfaces, ["IDL:example.org/Bank/Party:1.0"]);

    let catalog: CatalogRef = place.server.activate(Catalog(repository.clone())).unwrap();
    let catalog: CatalogRef = place.client.resolve(&catalog.to_string()).await.unwrap();
    let (found, kind) = catalog.find("IDL:example.org/Bank/Account:1.0").await.unwrap();
    assert_eq!(kind, DefinitionKind::DkInterface);
    let found: InterfaceDefRef = found.unwrap();
    assert!(found.is_a("IDL:example.org/Bank/Party:1.0").await.unwrap());
    let mut operations = Vec::new();
    for contained in found.contents(DefinitionKind::DkOperation, true).await.unwrap() {
        let contained: ContainedRef = contained.unwrap();
        let operation: OperationDescription = contained.describe().await.unwrap().value.get().unwrap();
        operations.push((operation.name, operation.mode));
    }
    assert_eq!(
        operations,
        [("deposit".to_owned(), OperationMode::OpNormal), ("note".to_owned(), OperationMode::OpOneway)]
    );
    let (none, kind) = catalog.find("IDL:example.org/Bank/Entry:1.0").await.unwrap();
    assert_eq!((none.is_none(), kind), (true, DefinitionKind::DkStruct));
    assert_eq!(catalog.find("IDL:none:1.0").await.unwrap().1, DefinitionKind::DkNone);
}
