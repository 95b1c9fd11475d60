//! Calls whose replies are passed to handlers: sent immediately, answered in a task.
#![allow(clippy::too_many_arguments, reason = "helpers of tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use zorb::prelude::*;
use zorb::testing::{Pair, local, pair};

zorb::idl! {
    ami("Desk::*");
    module Desk {
        typedef sequence<string> Names;
        typedef sequence<octet> Octets;
        typedef sequence<double> Numbers;
        typedef double Grid[80][80];
        typedef string Lines[300];
        struct Card { string name; long number; };
        exception Closed { string why; };
        exception Lost { };

        interface Base {
            readonly attribute string label;
            attribute long level;
            oneway void ring();
            string plain(in string text);
            string call(in long type, in string handler) context ("user");
        };
        interface Counter : Base {
            Card swap(in Card card, inout string name, out long number) raises (Closed, Lost);
            unsigned long all(in Names names, in Octets octets, in Numbers numbers, in Grid grid, in Lines lines, in Base other,
                in wstring<8> wide, in boolean flag, in any value, @stream in Octets data);
            void nap(in unsigned long milliseconds);
            /// Names that the handler and the methods give way to.
            void plain_excep();
            void sendc_plain();
            long get_label();
        };
    };
    module Other {
        interface Quiet { void plain(); };
    };
}

use desk::{
    AmiBaseHandler, AmiCounterHandler, BaseRef, BaseServant, Card, Closed, CounterRef, CounterServant, Lost,
    counter,
};
use zorb::{ByteStream, Context, FixedSeq};

#[derive(Default)]
struct Office {
    rings: AtomicUsize,
    cancelled: AtomicUsize,
}

impl BaseServant for Office {
    async fn label(&self) -> Result<String, SystemException> {
        Ok("front".to_owned())
    }

    async fn level(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    async fn set_level(&self, value: i32) -> Result<(), SystemException> {
        if value < 0 {
            return Err("too low").or_system_exception(SystemExceptionKind::BadParam);
        }
        Ok(())
    }

    async fn ring(&self) -> Result<(), SystemException> {
        self.rings.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn plain(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_uppercase())
    }

    async fn call(&self, r#type: i32, handler: &str, context: &Context) -> Result<String, SystemException> {
        Ok(format!("{} {handler} {}", r#type, context.get("user").unwrap_or("nobody")))
    }
}

impl CounterServant for Office {
    async fn swap(&self, card: &Card, name: String) -> Result<(Card, String, i32), counter::SwapError> {
        match name.as_str() {
            "closed" => Err(Closed { why: "night".to_owned() }.into()),
            "lost" => Err(Lost {}.into()),
            _ => Ok((Card { name, number: card.number + 1 }, card.name.clone(), card.number)),
        }
    }

    async fn all(
        &self,
        names: &[String],
        octets: Bytes,
        numbers: Seq<f64>,
        grid: &FixedSeq<[f64; 80], 80>,
        lines: &[String; 300],
        other: Option<BaseRef>,
        wide: WStr<'_>,
        flag: bool,
        value: &Any,
        mut data: ByteStream,
    ) -> Result<u32, SystemException> {
        let mut length = 0;
        while let Some(chunk) = data.next().await {
            length += chunk?.len();
        }
        let known = [other.is_some(), flag, wide == "wide", value.get::<i32>().is_ok_and(|value| value == 5)];
        assert_eq!(known, [true; 4]);
        Ok((names.len() + octets.len() + numbers.len() + grid[79][79] as usize + lines[299].len() + length)
            as u32)
    }

    async fn nap(&self, milliseconds: u32) -> Result<(), SystemException> {
        let request = zorb::request();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(milliseconds.into())) => {}
            () = request.cancelled() => {
                self.cancelled.fetch_add(1, Ordering::SeqCst);
            }
        }
        Ok(())
    }

    async fn plain_excep(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn sendc_plain(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn get_label(&self) -> Result<i32, SystemException> {
        Ok(42)
    }
}

/// Forwards the replies that it receives.
struct Told(mpsc::UnboundedSender<String>);

impl Told {
    fn tell(&self, what: impl Into<String>) {
        let _ = self.0.send(what.into());
    }
}

impl AmiBaseHandler for Told {
    async fn get_label(&self, result: String) {
        self.tell(format!("label {result}"));
    }

    async fn get_label_excep(&self, exception: SystemException) {
        self.tell(exception.kind.to_string());
    }

    async fn get_level(&self, result: i32) {
        self.tell(format!("level {result}"));
    }

    async fn get_level_excep(&self, exception: SystemException) {
        self.tell(exception.kind.to_string());
    }

    async fn set_level(&self) {
        self.tell("set");
    }

    async fn set_level_excep(&self, exception: SystemException) {
        self.tell(format!("not set: {}", exception.kind));
    }

    async fn plain(&self, result: String) {
        self.tell(result);
    }

    async fn plain_excep(&self, exception: SystemException) {
        self.tell(format!("{} {:?}", exception.kind, exception.completed));
    }

    async fn call(&self, result: String) {
        self.tell(result);
    }

    async fn call_excep(&self, exception: SystemException) {
        self.tell(exception.kind.to_string());
    }
}

impl AmiCounterHandler for Told {
    async fn swap(&self, (card, name, number): (Card, String, i32)) {
        self.tell(format!("{} {} {name} {number}", card.name, card.number));
    }

    async fn swap_excep(&self, exception: counter::SwapError) {
        self.tell(match exception {
            counter::SwapError::Closed(closed) => format!("closed: {}", closed.why),
            counter::SwapError::Lost(_) => "lost".to_owned(),
            counter::SwapError::System(exception) => exception.kind.to_string(),
        });
    }

    async fn all(&self, result: u32) {
        self.tell(result.to_string());
    }

    async fn all_excep(&self, exception: SystemException) {
        self.tell(exception.to_string());
    }

    async fn nap(&self) {
        self.tell("slept");
    }

    async fn nap_excep(&self, exception: SystemException) {
        self.tell(format!("{} {:?}", exception.kind, exception.completed));
    }

    async fn plain_excep(&self) {
        self.tell("plain_excep");
    }

    async fn plain_excep_excep(&self, exception: SystemException) {
        self.tell(exception.kind.to_string());
    }

    async fn sendc_plain(&self) {
        self.tell("sendc_plain");
    }

    async fn sendc_plain_excep(&self, exception: SystemException) {
        self.tell(exception.kind.to_string());
    }

    async fn get_label(&self, result: i32) {
        self.tell(format!("get_label {result}"));
    }

    async fn get_label_excep(&self, exception: SystemException) {
        self.tell(exception.kind.to_string());
    }
}

async fn office() -> (Pair, Arc<Office>, CounterRef) {
    let orbs = pair();
    let office = Arc::new(Office::default());
    let here: CounterRef = orbs.server.activate(Arc::clone(&office)).unwrap();
    let there = orbs.client.resolve_unchecked(&here.to_string()).await.unwrap();
    (orbs, office, there)
}

fn told() -> (Arc<Told>, mpsc::UnboundedReceiver<String>) {
    let (tell, heard) = mpsc::unbounded_channel();
    (Arc::new(Told(tell)), heard)
}

// clause: poa.messaging.ami.sendc, poa.messaging.ami.attributes, poa.messaging.ami.ordinary
#[tokio::test(start_paused = true)]
async fn results_go_to_the_handler() {
    let (_orbs, _office, counter) = office().await;
    let (handler, mut heard) = told();
    let mut next = async || heard.recv().await.unwrap();
    counter.sendc_ami_plain(&handler, "text").unwrap();
    assert_eq!(next().await, "TEXT");
    counter.sendc_get_level(&handler).unwrap();
    assert_eq!(next().await, "level 7");
    counter.sendc_set_level(&handler, 1).unwrap();
    assert_eq!(next().await, "set");
    let context = Context::new().with("user", "ann").with("other", "x");
    counter.sendc_call(&handler, 3, "h", &context).unwrap();
    assert_eq!(next().await, "3 h ann");
    let card = Card { name: "a".to_owned(), number: 5 };
    counter.sendc_swap(&handler, &card, "b".to_owned()).unwrap();
    assert_eq!(next().await, "b 6 a 5");
    let grid = FixedSeq::from([[3.0; 80]; 80]);
    let lines = Box::new(std::array::from_fn(|_| "line".to_owned()));
    let value = Any::new(5_i32).unwrap();
    counter
        .sendc_all(
            &handler,
            &["x".to_owned(), "y".to_owned()],
            vec![1, 2, 3],
            [1.0, 2.0].as_slice(),
            &grid,
            &lines,
            BaseRef::from(&counter),
            "wide",
            true,
            &value,
            Bytes::from(vec![0; 100]),
        )
        .unwrap();
    assert_eq!(next().await, "114");
}

// clause: poa.messaging.ami.excep
#[tokio::test(start_paused = true)]
async fn exceptions_go_to_the_handler_as_they_were_raised() {
    let (orbs, _office, counter) = office().await;
    let (handler, mut heard) = told();
    let card = Card::default();
    for (name, expected) in [("closed", "closed: night"), ("lost", "lost")] {
        counter.sendc_swap(&handler, &card, name.to_owned()).unwrap();
        assert_eq!(heard.recv().await.unwrap(), expected);
    }
    counter.sendc_set_level(&handler, -1).unwrap();
    assert_eq!(heard.recv().await.unwrap(), "not set: BAD_PARAM");
    counter.with_timeout(Duration::from_millis(10)).sendc_nap(&handler, 1000).unwrap();
    assert_eq!(heard.recv().await.unwrap(), "TIMEOUT Maybe");
    orbs.set_refusing(true);
    orbs.server.shutdown().await;
    counter.sendc_ami_plain(&handler, "x").unwrap();
    assert_eq!(heard.recv().await.unwrap(), "TRANSIENT No");
}

// clause: poa.messaging.ami.names
#[tokio::test(start_paused = true)]
async fn derived_names_give_way_to_those_of_the_idl() {
    let (_orbs, _office, counter) = office().await;
    let (handler, mut heard) = told();
    // `sendc_plain` and `get_label` are operations of the interface.
    assert_eq!((counter.sendc_plain().await, counter.get_label().await), (Ok(()), Ok(42)));
    counter.sendc_sendc_plain(&handler).unwrap();
    assert_eq!(heard.recv().await.unwrap(), "sendc_plain");
    counter.sendc_plain_excep(&handler).unwrap();
    assert_eq!(heard.recv().await.unwrap(), "plain_excep");
    counter.sendc_get_label(&handler).unwrap();
    assert_eq!(heard.recv().await.unwrap(), "label front");
    counter.sendc_ami_get_label(&handler).unwrap();
    assert_eq!(heard.recv().await.unwrap(), "get_label 42");
    // The base has no such operations.
    BaseRef::from(&counter).sendc_plain(&handler, "base").unwrap();
    assert_eq!(heard.recv().await.unwrap(), "BASE");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_on_its_way_before_its_task_runs() {
    let (_orbs, office, counter) = office().await;
    counter.ring().await.unwrap();
    let (handler, mut heard) = told();
    let order = Arc::new(Mutex::new(Vec::new()));
    counter.sendc_nap(&handler, 50).unwrap();
    // Sent after it on the same connection, and answered before it.
    assert_eq!(counter.plain("b").await.unwrap(), "B");
    order.lock().unwrap().push("b");
    assert!(heard.try_recv().is_err());
    assert_eq!(heard.recv().await.unwrap(), "slept");
    assert_eq!((office.rings.load(Ordering::SeqCst), office.cancelled.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn handlers_of_objects_of_the_same_process_are_called_later_too() {
    let counter: CounterRef = local(Office::default());
    let (handler, mut heard) = told();
    counter.sendc_ami_plain(&handler, "here").unwrap();
    assert!(heard.try_recv().is_err(), "the handler runs in a task of its own");
    assert_eq!(heard.recv().await.unwrap(), "HERE");
}

#[test]
fn without_a_runtime_the_caller_is_told() {
    let counter: CounterRef = local(Office::default());
    let (handler, mut heard) = told();
    let error = counter.sendc_nap(&handler, 1).unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::Initialize);
    assert!(heard.try_recv().is_err());
}
