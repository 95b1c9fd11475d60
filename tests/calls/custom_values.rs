//! Custom values received in the other byte order, as all of Java's are: they are forwarded unchanged.

use std::sync::Mutex;

use giop_codec::cdr::{CharSet, CodeSets, WCharSet};
use test_support::transport;
use zorb::prelude::*;
use zorb::values::{
    CdrDecode as _, CdrEncode as _, CustomMarshal, DecodeError, Decoder, EncodeError, Encoder,
};
use zorb::wire::{ByteOrder, Version};
use zorb::{CompletionStatus, SystemExceptionKind, Value};

zorb::idl! {
    module Passing {
        custom valuetype Stamp { public long long at; };
        exception Refused { any why; };
        typedef sequence<any> Anys;
        interface Relay {
            any pass(in any what, in string text, out double number) raises (Refused);
            void refuse(in any what) raises (Refused);
            Anys both(in any one, in any two);
            oneway void hint(in any what);
            any last();
        };
    };
}

use passing::{Anys, Refused, RelayRef, RelayServant, Stamp, relay};

impl CustomMarshal for Stamp {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.at.encode(e)
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.at = i64::decode(d)?;
        Ok(())
    }
}

#[derive(Default)]
struct Servant(Mutex<Option<Any>>);

impl RelayServant for Servant {
    async fn pass(&self, what: &Any, text: &str) -> Result<(Any, f64), relay::PassError> {
        Ok((what.clone(), text.len() as f64))
    }

    async fn refuse(&self, what: &Any) -> Result<(), relay::RefuseError> {
        Err(Refused { why: what.clone() }.into())
    }

    async fn both(&self, one: &Any, two: &Any) -> Result<Anys, SystemException> {
        Ok(vec![one.clone(), two.clone()])
    }

    async fn hint(&self, what: &Any) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = Some(what.clone());
        Ok(())
    }

    async fn last(&self) -> Result<Any, SystemException> {
        Ok(self.0.lock().unwrap().clone().unwrap_or_default())
    }
}

/// Returns an any with a custom value, as received in that byte order from a peer with zorb's code sets.
fn received(order: ByteOrder, at: i64) -> Any {
    let mut e = Encoder::new(order, Version::V1_2);
    Stamp::type_code().encode(&mut e).unwrap();
    Some(Value::new(Stamp { at })).encode(&mut e).unwrap();
    let bytes = e.into_bytes();
    let mut d = Decoder::from_bytes(&bytes, order, Version::V1_2);
    d.set_code_sets(CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) });
    Any::decode(&mut d).unwrap()
}

fn at(any: &Any) -> i64 {
    any.get::<Option<Value<Stamp>>>().unwrap().unwrap().get().at
}

async fn relay(local: bool) -> (Orb, Orb, RelayRef) {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let relay: RelayRef = server.activate(Servant::default()).unwrap();
    let client = transport::builder().build().await.unwrap();
    let relay = if local { relay } else { client.resolve(&relay.to_string()).await.unwrap() };
    (server, client, relay)
}

#[tokio::test]
async fn values_of_either_order_are_passed_on_both_ways() {
    for local in [false, true] {
        let (_server, _client, relay) = relay(local).await;
        for round in 0..3 {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let any = received(order, round);
                let (back, number) = relay.pass(&any, "né").await.unwrap();
                assert_eq!((at(&back), number), (round, 3.0), "{order:?}");
                let relay::RefuseError::Refused(refused) = relay.refuse(&any).await.unwrap_err() else {
                    panic!("another exception")
                };
                assert_eq!(at(&refused.why), round);
                assert_eq!(
                    relay.both(&any, &any).await.unwrap().iter().map(at).collect::<Vec<_>>(),
                    [round; 2]
                );
                relay.hint(&any).await.unwrap();
                assert_eq!(at(&relay.last().await.unwrap()), round);
                // The next value is encoded in native order again.
                let (back, _) = relay.pass(&Any::new(5_i32).unwrap(), "").await.unwrap();
                assert_eq!(back.get::<i32>().unwrap(), 5);
            }
        }
    }
}

#[tokio::test]
async fn two_orders_do_not_go_into_one_message() {
    let (_server, _client, relay) = relay(false).await;
    let (one, two) = (received(ByteOrder::Big, 1), received(ByteOrder::Little, 2));
    let error = relay.both(&one, &two).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::No));
    assert!(error.to_string().contains("byte order"), "{error}");
    assert_eq!(at(&relay.pass(&two, "").await.unwrap().0), 2);
}
