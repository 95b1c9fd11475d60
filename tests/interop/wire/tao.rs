//! TAO, which reads derived values in a form of its own.

use giop_codec::giop::ReplyStatus;
use giop_codec::ior::{OrbType, TaggedComponent};
use zorb::Value;
use zorb::prelude::*;

use crate::wire::peer::{Answer, Fake, reference};

zorb::idl! {
    module Field {
        valuetype B { public long first; };
        valuetype M : truncatable B { public long second; };
        valuetype T : truncatable M { public long third; };
        interface Keeper { void keep(in B b); };
    };
}

use field::{B, KeeperRef, M, T};

/// Returns the words of the last argument, without those of the header.
async fn argument(orb_type: OrbType, value: Value<B>) -> Vec<u32> {
    let server = Fake::new(|_| Answer::Reply(ReplyStatus::NoException, Box::new(|_| ()))).await;
    let profile = server.profile().with_component(TaggedComponent::orb_type(orb_type));
    let orb = Orb::builder().build().await.unwrap();
    let keeper: KeeperRef = orb.resolve_unchecked(&reference(&[profile]).to_string()).await.unwrap();
    keeper.keep(Some(value)).await.unwrap();
    server.last(|asked| {
        let request = asked.request();
        let mut body = request.body();
        assert_eq!(body.read_u32().unwrap(), 0x7fff_ff0e, "in chunks, with a list of ids");
        for _ in 0..body.read_u32().unwrap() {
            body.read_string().unwrap();
        }
        let mut words = Vec::new();
        while body.remaining() > 0 {
            words.push(body.read_u32().unwrap());
        }
        words
    })
}

#[tokio::test]
async fn derived_values_go_to_tao_with_an_end_for_each_base() {
    const END: u32 = (-1_i32).cast_unsigned();
    const BASE: u32 = (-2_i32).cast_unsigned();
    let value = || {
        let base = M { base: B { first: 9 }, second: 63 };
        Value::new(T { base, third: 7 }).upcast()
    };
    let words = argument(OrbType::TAO, value()).await;
    assert_eq!(words, [4, 9, BASE, 4, 63, BASE, 4, 7, BASE, END]);
    assert_eq!(argument(OrbType::OMNIORB, value()).await, [12, 9, 63, 7, END]);
}
