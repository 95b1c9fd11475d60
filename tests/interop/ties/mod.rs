//! State that lasts for a connection and beyond (`idl/ties.idl`): forwards, objects of clients that are
//! called over the connections that these clients opened, objects that outlive their server.

mod bidirectional;
mod forwards;
mod restarts;

use std::process::Command;
use std::sync::Mutex;

use ::zorb::prelude::*;

use crate::START;
use test_support::peers::Foreign;
use test_support::peers::talk::Talk;

mod types {
    zorb::idl!("tests/interop/idl/ties.idl");
}

use types::interop_ties::*;

/// Text that no single-byte code set can represent.
const GREETING: &str = "Grüß dich €";

/// An object of a client.
#[derive(Default)]
struct Bell(Mutex<i32>);

impl BellServant for Bell {
    async fn ring(&self, number: i32) -> Result<i32, SystemException> {
        Ok(10 * number)
    }

    async fn echo(&self, data: Bytes) -> Result<Bytes, SystemException> {
        Ok(data)
    }

    async fn hint(&self, number: i32) -> Result<(), SystemException> {
        *self.0.lock().unwrap() += number;
        Ok(())
    }

    async fn hinted(&self) -> Result<i32, SystemException> {
        Ok(std::mem::take(&mut self.0.lock().unwrap()))
    }

    async fn speak(
        &self,
        text: String,
        wide: zorb::WString,
    ) -> Result<(String, zorb::WString), SystemException> {
        Ok((text + "!", format!("{wide}!").into()))
    }
}

/// An object that calls the bell; its caller keeps the bell too.
#[derive(Default)]
struct Tower(std::sync::Arc<Mutex<Option<BellRef>>>);

/// Returns the object, which must not be nil.
fn there(target: Option<BellRef>) -> Result<BellRef, SystemException> {
    let nil = SystemException::bad_param();
    target.ok_or(nil)
}

impl TowerServant for Tower {
    async fn ring(&self, target: Option<BellRef>, times: i32) -> Result<i32, SystemException> {
        let target = there(target)?;
        let mut sum = 0;
        for number in 0..times {
            sum += target.ring(number).await?;
        }
        Ok(sum)
    }

    async fn pass(&self, target: Option<BellRef>, data: Bytes) -> Result<Bytes, SystemException> {
        there(target)?.echo(data).await
    }

    async fn hint(&self, target: Option<BellRef>, times: i32) -> Result<i32, SystemException> {
        let target = there(target)?;
        for _ in 0..times {
            target.hint(1).await?;
        }
        let mut sum = 0;
        while sum < times {
            sum += target.hinted().await?;
        }
        Ok(sum)
    }

    async fn speak(&self, target: Option<BellRef>) -> Result<bool, SystemException> {
        let answer = there(target)?.speak(GREETING.to_owned(), GREETING.into()).await?;
        let wanted = format!("{GREETING}!");
        Ok(answer == (wanted.clone(), wanted.into()))
    }

    async fn keep(&self, target: Option<BellRef>) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = target;
        Ok(())
    }

    async fn ring_kept(&self, number: i32) -> Result<String, SystemException> {
        let target = there(self.0.lock().unwrap().clone())?;
        Ok(match target.ring(number).await {
            Ok(number) => number.to_string(),
            Err(error) => raised(&error),
        })
    }
}

/// An object that exists again after its server's restart.
struct Lasting;

impl LastingServant for Lasting {
    async fn next(&self, number: i32) -> Result<i32, SystemException> {
        Ok(number + 1)
    }

    async fn stay(&self) -> Result<(), SystemException> {
        // On a line of its own, because the test harness may have begun a line.
        println!("\nSTAYS");
        std::future::pending().await
    }
}

/// Formats an exception like the peers.
fn raised(error: &SystemException) -> String {
    format!("{} {}", error.kind.name(), error.completed.name())
}

/// Starts a client of the other ORB that receives commands. `None` if it is missing.
fn their_client(orb: Foreign, arguments: &[&str], set: impl FnOnce(&mut Command)) -> Option<Talk> {
    let mut command = Command::new(orb.program("ties-peer")?);
    command.arg("client").args(arguments).args(["--seconds", "120"]);
    set(&mut command);
    Some(Talk::start(command, START))
}
