//! An Interface Repository of IDL files, for programs and tools without IDL; and a listing of the contents of
//! such a repository.
//!
//! ```text
//! cargo run --features dynamic --example repository -- bank.idl
//! cargo run --features dynamic --example repository -- \
//!     --show corbaloc:iiop:127.0.0.1:2809/InterfaceRepository
//! ```

use std::error::Error;

use zorb::dynamic::{
    DefinitionDetails, Idl, InterfaceRepository, describe_contents, look_up, look_up_interface,
};
use zorb::prelude::*;
use zorb::{ObjectRef, TypeCode};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [show, reference] if show == "--show" => {
            let orb = Orb::builder().build().await?;
            let repository: ObjectRef = orb.resolve_unchecked(reference).await?;
            tell(&repository).await
        }
        [] => Err("which IDL files? Or `--show REFERENCE`".into()),
        files => serve(files).await,
    }
}

async fn serve(files: &[String]) -> Result<(), Box<dyn Error>> {
    let idl = Idl::options().files(files)?;
    let orb = Orb::builder().listen("iiop://127.0.0.1:2809").start_paused().build().await?;
    println!("{}", InterfaceRepository::new().idl(&idl).serve(&orb)?);
    orb.run_until(zorb::signal::shutdown()).await?;
    Ok(())
}

/// Prints the contents of the repository, scope by scope.
async fn tell(repository: &ObjectRef) -> Result<(), Box<dyn Error>> {
    let mut scopes = vec![repository.clone()];
    while let Some(scope) = scopes.pop() {
        for definition in describe_contents(&scope, 10_000).await? {
            let id = &definition.id;
            match definition.details {
                DefinitionDetails::Module => scopes.extend(look_up(repository, id).await?),
                DefinitionDetails::Interface(..) => {
                    println!("{id}");
                    let interface = look_up_interface(repository, id).await?;
                    for operation in interface.operations() {
                        let params = operation.params.iter();
                        let params: Vec<_> =
                            params.map(|one| format!("{} {}", type_name(&one.code), one.name)).collect();
                        let (result, params) = (type_name(&operation.result), params.join(", "));
                        println!("    {result} {}({params})", operation.name);
                    }
                }
                DefinitionDetails::Exception(code) | DefinitionDetails::Type(code) => println!("{id} {code}"),
                DefinitionDetails::Constant(constant) => println!("{id} {}", constant.code),
                _ => println!("{id}"),
            }
        }
    }
    Ok(())
}

fn type_name(code: &TypeCode) -> String {
    code.name().map_or_else(|_| code.to_string(), str::to_owned)
}
