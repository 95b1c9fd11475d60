//! The servant of `Interop::Peer`: state, exceptions, and its activation. The echoes and the references have
//! separate modules.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use zorb::poa::ForwardRequest;
use zorb::prelude::*;
use zorb::{BuildError, MinorCode, OrbBuilder};

use super::extras::interop::ExtrasRef;
use super::guard::interop as guard;
use super::servant_echo::ExtrasServer;
use super::types::interop::*;

/// The servant of `Interop::Peer`, with one state for all clients.
#[derive(Default)]
pub struct PeerServer {
    state: Mutex<PeerState>,
}

/// The state that `reset` sets to its default, except `word`.
pub struct PeerState {
    counter: i32,
    owner: Person,
    corners: LongArray,
    enabled: [bool; 2],
    lines: Vec<String>,
    total: i64,
    /// The attribute `impl`.
    pub word: i32,
}

impl Default for PeerState {
    fn default() -> Self {
        let owner = Person { name: "nobody".to_owned(), age: 0, favourite: Color::Red };
        Self { counter: 0, owner, corners: [0; 3], enabled: [false; 2], lines: Vec::new(), total: 0, word: 0 }
    }
}

impl PeerServer {
    /// Locks the state.
    pub fn state(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl PeerServant for PeerServer {}

impl FaultsServant for PeerServer {
    async fn risky(&self, choice: i32, remark: String) -> Result<(i32, String, i32), faults::RiskyError> {
        match choice {
            1 => Err(Plain.into()),
            2 => {
                let trail = [1, 2, 3].into();
                Err(Detailed { why: remark, code: -choice, shade: Color::Blue, trail }.into())
            }
            _ => Ok((choice, super::transform::transformed(&remark), 7)),
        }
    }

    async fn fail_nested(&self, group: &Team, selection: &ByLong) -> Result<(), faults::FailNestedError> {
        Err(Nested { group: group.clone(), selection: selection.clone() }.into())
    }

    async fn raise_system(
        &self,
        kind: &str,
        minor_code: u32,
        completion: u16,
    ) -> Result<(), SystemException> {
        let completed = match completion {
            0 => CompletionStatus::Yes,
            1 => CompletionStatus::No,
            _ => CompletionStatus::Maybe,
        };
        let id = format!("IDL:omg.org/CORBA/{kind}:1.0");
        Err(match SystemExceptionKind::from_repository_id(&id) {
            Some(kind) => SystemException::new(kind, MinorCode(minor_code), completed),
            None => SystemException::bad_param(),
        })
    }

    async fn raise_unlisted(&self) -> Result<(), SystemException> {
        panic!("raise_unlisted: this panic is part of the test")
    }
}

impl StateServant for PeerServer {
    async fn server_name(&self) -> Result<String, SystemException> {
        Ok("zorb".to_owned())
    }

    async fn counter(&self) -> Result<i32, SystemException> {
        Ok(self.state().counter)
    }

    async fn set_counter(&self, value: i32) -> Result<(), SystemException> {
        self.state().counter = value;
        Ok(())
    }

    async fn owner(&self) -> Result<Person, SystemException> {
        Ok(self.state().owner.clone())
    }

    async fn set_owner(&self, value: &Person) -> Result<(), SystemException> {
        self.state().owner = value.clone();
        Ok(())
    }

    async fn corners(&self) -> Result<LongArray, SystemException> {
        Ok(self.state().corners)
    }

    async fn set_corners(&self, value: &LongArray) -> Result<(), SystemException> {
        self.state().corners = *value;
        Ok(())
    }

    async fn enabled_first(&self) -> Result<bool, SystemException> {
        Ok(self.state().enabled[0])
    }

    async fn set_enabled_first(&self, value: bool) -> Result<(), SystemException> {
        self.state().enabled[0] = value;
        Ok(())
    }

    async fn enabled_second(&self) -> Result<bool, SystemException> {
        Ok(self.state().enabled[1])
    }

    async fn set_enabled_second(&self, value: bool) -> Result<(), SystemException> {
        self.state().enabled[1] = value;
        Ok(())
    }

    async fn reset(&self) -> Result<(), SystemException> {
        let mut state = self.state();
        *state = PeerState { word: state.word, ..PeerState::default() };
        Ok(())
    }

    async fn jot(&self, line: &str) -> Result<(), SystemException> {
        self.state().lines.push(line.to_owned());
        Ok(())
    }

    async fn count_up(&self, amounts: LongSeq) -> Result<(), SystemException> {
        self.state().total += amounts.iter().map(|&amount| i64::from(amount)).sum::<i64>();
        Ok(())
    }

    async fn take_lines(&self) -> Result<StringSeq, SystemException> {
        Ok(std::mem::take(&mut self.state().lines))
    }

    async fn take_total(&self) -> Result<i64, SystemException> {
        Ok(std::mem::take(&mut self.state().total))
    }
}

/// The servant of `guard.idl`: whether it is locked, and its text.
pub struct GuardServer(Mutex<(bool, String)>);

impl Default for GuardServer {
    fn default() -> Self {
        Self(Mutex::new((false, "open".to_owned())))
    }
}

impl guard::GuardServant for GuardServer {
    async fn guarded(&self) -> Result<String, guard::guard::GuardedError> {
        match &*self.0.lock().unwrap() {
            (true, _) => Err(guard::Locked.into()),
            (false, text) => Ok(text.clone()),
        }
    }

    async fn set_guarded(&self, value: &str) -> Result<(), guard::guard::SetGuardedError> {
        if value.len() > 8 {
            return Err(guard::Refused { why: "too long".to_owned(), length: value.len() as i32 }.into());
        }
        self.0.lock().unwrap().1 = value.to_owned();
        Ok(())
    }

    async fn fragile(&self) -> Result<i32, guard::guard::FragileError> {
        match &*self.0.lock().unwrap() {
            (true, _) => Err(guard::Locked.into()),
            (false, text) if text.is_empty() => {
                Err(guard::Refused { why: "empty".to_owned(), length: 0 }.into())
            }
            (false, text) => Ok(text.len() as i32),
        }
    }

    async fn lock(&self) -> Result<(), SystemException> {
        self.0.lock().unwrap().0 = true;
        Ok(())
    }

    async fn unlock(&self) -> Result<(), SystemException> {
        self.0.lock().unwrap().0 = false;
        Ok(())
    }
}

/// Starts a server on a free port, and returns the ORB and `host:port`. Its references are written to `path`,
/// `path.extras`, `path.guard`, `path.forward` and `path.moved`; the plain keys are `interop`, `extras`,
/// `guard`, `forward` and `moved`.
pub async fn serve(path: &Path, builder: OrbBuilder) -> Result<(Orb, String), BuildError> {
    serve_at(path, builder.listen("iiop://127.0.0.1:0")).await
}

/// Starts a server that listens as the builder is configured, and returns the ORB and `host:port`.
pub async fn serve_at(path: &Path, builder: OrbBuilder) -> Result<(Orb, String), BuildError> {
    let orb = builder.build().await?;
    let publish = |suffix: &str, reference: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::write(name, reference + "\n").expect("the test's directory can be written");
    };
    let peer: PeerRef = orb.activate_named("interop", PeerServer::default()).expect("a free key");
    let extras: ExtrasRef = orb.activate_named("extras", ExtrasServer).expect("a free key");
    let guard: guard::GuardRef = orb.activate_named("guard", GuardServer::default()).expect("a free key");
    let forward = orb.forward_named("forward", ForwardRequest::to(&peer)).expect("a free key");
    let moved = ForwardRequest::to(&peer).permanently();
    let moved = orb.forward_named("moved", moved).expect("a free key");
    publish(".forward", forward.to_string());
    publish(".moved", moved.to_string());
    publish(".extras", extras.to_string());
    publish(".guard", guard.to_string());
    publish("", peer.to_string());
    let profile = peer.ior().iiop_profile().expect("a server's reference has a profile");
    Ok((orb, format!("{}:{}", profile.host, profile.port)))
}
