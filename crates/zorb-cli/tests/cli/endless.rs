//! `zorb names list` and `tree` at naming services that never come to an end, or do not answer.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use zorb::cos_naming::{Binding, BindingIteratorRef, BindingType, NameComponent, NamingContextRef};
use zorb::dynamic::{DynServant, DynamicException, Interface, ServerRequest};
use zorb::prelude::*;
use zorb::{Any, ObjectRef, Servant};

use super::{Run, zorb};

/// What a naming service does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// Its iterator has a thousand further bindings, for ever.
    Endless,
    /// Its iterator has more, for ever, but no binding.
    Empty,
    /// Each of its contexts has three further ones, which are made when they are asked for.
    Maze,
    /// It has twenty contexts, of a server that takes requests and does not answer.
    Silent,
}

#[derive(Clone)]
struct Service {
    orb: Arc<Mutex<Option<Orb>>>,
    wrong: Wrong,
    /// Further contexts, and bindings, that were made.
    made: Arc<AtomicU64>,
    /// Iterators that were given up.
    destroyed: Arc<AtomicU64>,
    silent: Arc<str>,
}

fn bindings(names: impl Iterator<Item = String>, kind: BindingType) -> Vec<Binding> {
    names
        .map(|name| Binding { binding_name: vec![NameComponent::new(name, "")], binding_type: kind })
        .collect()
}

impl Service {
    fn orb(&self) -> Orb {
        self.orb.lock().unwrap().clone().unwrap()
    }

    fn activate(&self, interface: Arc<Interface>) -> ObjectRef {
        self.orb().activation().activate_erased(Servant::dynamic(interface, self.clone())).unwrap()
    }

    fn page(&self) -> Vec<Binding> {
        let first = self.made.fetch_add(1000, Ordering::Relaxed);
        match self.wrong {
            Wrong::Empty => Vec::new(),
            _ => bindings((first..first + 1000).map(|at| format!("n{at}")), BindingType::Nobject),
        }
    }
}

impl DynServant for Service {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let operation = request.info().name.to_string();
        match (&*operation, self.wrong) {
            ("list", Wrong::Maze | Wrong::Silent) => {
                let count = if self.wrong == Wrong::Maze { 3 } else { 20 };
                let contexts = bindings((0..count).map(|at| format!("c{at}")), BindingType::Ncontext);
                request.set("bl", Any::new(contexts)?)?;
                request.set("bi", Any::new(None::<BindingIteratorRef>)?)?;
            }
            ("list", _) => {
                let iterator = self.activate(Interface::of::<BindingIteratorRef>());
                request.set("bl", Any::new(self.page())?)?;
                request.set("bi", Any::new(Some(BindingIteratorRef::from_object(iterator)))?)?;
            }
            ("next_n", _) => {
                request.set("bl", Any::new(self.page())?)?;
                request.set_result(Any::new(true)?);
            }
            ("resolve", Wrong::Silent) => {
                let object: ObjectRef = self.orb().resolve_unchecked(&self.silent).await.unwrap();
                request.set_result(Any::new(Some(object))?);
            }
            ("resolve", _) => {
                self.made.fetch_add(1, Ordering::Relaxed);
                let context = self.activate(Interface::of::<NamingContextRef>());
                request.set_result(Any::new(Some(context))?);
            }
            ("destroy", _) => {
                self.destroyed.fetch_add(1, Ordering::Relaxed);
            }
            _ => panic!("{operation}"),
        }
        Ok(request)
    }
}

/// Runs `work` beside such a service, with its reference.
fn beside(wrong: Wrong, silent: &str, work: impl FnOnce(&str, &Service) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let silent = silent.into();
    runtime.block_on(async {
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let service =
            Service { orb: Arc::default(), wrong, made: Arc::default(), destroyed: Arc::default(), silent };
        *service.orb.lock().unwrap() = Some(orb.clone());
        let root = service.activate(Interface::of::<NamingContextRef>()).to_string();
        let told = service.clone();
        tokio::task::spawn_blocking(move || work(&root, &told)).await.unwrap();
        *service.orb.lock().unwrap() = None;
        orb.shutdown().await;
    });
}

fn names(root: &str, args: &[&str]) -> Run {
    zorb(&[&["names", "--timeout", "1000s", "--service", root][..], args].concat(), "")
}

/// A program that is ended when the test is over.
struct Running(Child);

impl Running {
    fn start(root: &str, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zorb"));
        command.args(["names", "--timeout", "1000s", "--service", root]).args(args).stdin(Stdio::null());
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_list_without_an_end_stops_at_its_bound_and_says_how_to_go_on() {
    beside(Wrong::Endless, "", |root, service| {
        let listed = names(root, &["list", "--most", "2500"]);
        assert_eq!((listed.code, listed.out.lines().count()), (1, 2500), "{}", listed.err);
        assert!(listed.err.contains("more than 2500 bindings; --most 25000 lists more"), "{}", listed.err);
        assert_eq!(service.destroyed.load(Ordering::Relaxed), 1, "its iterator is given up");
        let json = names(root, &["list", "--most", "2500", "--json"]);
        assert_eq!((json.code, json.json().as_array().unwrap().len()), (1, 2500));
        assert!(
            serde_json::from_str::<Value>(&json.err).unwrap()["error"].as_str().unwrap().contains("--most")
        );
        let tree = names(root, &["tree", "--most", "2500"]);
        assert_eq!(tree.code, 1);
        let last = tree.out.lines().last().unwrap();
        assert!(last.starts_with("...") && last.contains("--most 25000"), "{last}");
        assert_eq!(tree.out.lines().count(), 2501);
        let long = names(root, &["list", "--most", "3", "-l"]);
        assert_eq!((long.code, long.out.lines().count()), (1, 3), "{}", long.out);
        assert!(long.out.contains("IDL:omg.org/CosNaming/NamingContext:1.0"), "{}", long.out);
    });
}

#[test]
fn a_list_without_an_end_stops_when_its_time_is_over() {
    beside(Wrong::Endless, "", |root, _| {
        for verb in ["list", "tree"] {
            let stopped = names(root, &[verb, "--most", "1000000000", "--within", "300ms"]);
            assert_eq!(stopped.code, 1, "{verb}: {}", stopped.err);
            let said = if verb == "list" { &stopped.err } else { &stopped.out };
            assert!(
                said.contains("the list was not complete within 300ms; --within 3s waits longer"),
                "{verb}: {said}"
            );
        }
    });
}

#[test]
fn an_iterator_without_bindings_is_not_asked_for_ever() {
    beside(Wrong::Empty, "", |root, service| {
        for verb in ["list", "tree"] {
            let stopped = names(root, &[verb, "--within", "1000s"]);
            assert_eq!(stopped.code, 1, "{verb}");
            let said = format!("{}{}", stopped.out, stopped.err);
            assert!(said.contains("returned 100 consecutive pages without bindings"), "{verb}: {said}");
        }
        assert!(service.made.load(Ordering::Relaxed) <= 200 * 1000);
    });
}

#[test]
fn names_are_printed_as_they_come() {
    for (wrong, verb, lines) in
        [(Wrong::Endless, "list", 2500), (Wrong::Endless, "tree", 2500), (Wrong::Maze, "tree", 100)]
    {
        beside(wrong, "", move |root, _| {
            let args = [verb, "--most", "1000000000", "--within", "1000s"];
            let mut running = Running::start(root, &args);
            let mut out = BufReader::new(running.0.stdout.take().unwrap());
            let mut line = String::new();
            for _ in 0..lines {
                line.clear();
                assert!(out.read_line(&mut line).unwrap() > 0, "{verb} goes on");
            }
            // The reader is gone: that ends it, and it is no error.
            drop(out);
            assert_eq!(running.0.wait().unwrap().code(), Some(0), "{verb}");
        });
    }
}

#[test]
fn contexts_that_are_made_up_end_at_the_bound() {
    beside(Wrong::Maze, "", |root, service| {
        let tree = names(root, &["tree", "--most", "200"]);
        assert_eq!(tree.code, 1, "{}", tree.err);
        assert_eq!(tree.out.lines().filter(|line| !line.trim().starts_with("...")).count(), 200);
        assert!(tree.out.contains("--most 2000 lists more"), "{}", tree.out);
        // Some contexts are asked for ahead.
        assert!(service.made.load(Ordering::Relaxed) < 1000);
        let json = names(root, &["tree", "--most", "200", "--json"]).json();
        assert!(json["missing"].as_str().unwrap().contains("--most 2000"), "{json}");
        assert_eq!(json["bindings"][0]["name"], "c0");
        let shallow = names(root, &["tree", "--depth", "2"]);
        assert!(
            shallow.code == 1 && shallow.out.contains("only 2 levels are listed (--depth)"),
            "{}",
            shallow.out
        );
        assert_eq!(shallow.out.lines().filter(|line| line.trim().starts_with('c')).count(), 12);
    });
}

/// The server of the contexts accepts a request for each of the twenty, and then closes the connection. A
/// program that waited for one context after the other would exceed its time.
#[test]
fn contexts_that_do_not_answer_are_waited_for_together() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut asked = Vec::new();
        while let Ok((mut socket, _)) = listener.accept() {
            let mut octets = [0; 4096];
            while asked.windows(5).filter(|part| part == b"list\0").count() < 20
                && let Ok(count @ 1..) = socket.read(&mut octets)
            {
                asked.extend_from_slice(&octets[..count]);
            }
        }
    });
    let args =
        ["ior", "make", "--type", "IDL:omg.org/CosNaming/NamingContext:1.0", "--key", "silent", "--at"];
    let silent = zorb(&[&args[..], &[&format!("127.0.0.1:{port}")]].concat(), "").out;
    beside(Wrong::Silent, silent.trim(), |root, _| {
        let args = ["--timeout", "1000s", "--service", root, "tree", "--within", "60s"];
        let tree = zorb(&[&["names"][..], &args].concat(), "");
        assert_eq!(tree.code, 1, "{}", tree.out);
        assert_eq!(tree.out.lines().filter(|line| line.starts_with('c')).count(), 20, "{}", tree.out);
        assert!(!tree.out.contains("the list was not complete"), "{}", tree.out);
        assert!(tree.out.contains("COMM_FAILURE") || tree.out.contains("already listed"), "{}", tree.out);
    });
    // It is over where nothing answers at all, too.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc::{}/NameService", mute.local_addr().unwrap());
    let stopped = zorb(&["names", "--timeout", "300ms", "--service", &url, "tree"], "");
    assert!(stopped.code == 3 && stopped.err.contains("TIMEOUT"), "{}", stopped.err);
}
