//! Text with peers that name no code sets, or only unknown ones.

use giop_codec::Version;
use giop_codec::cdr::{CharSet, CodeSets, WCharSet};
use giop_codec::code_set::{CodeSetComponent, CodeSetComponentInfo, CodeSetContext, CodeSetId};
use giop_codec::giop::{ContextId, ReplyStatus};
use giop_codec::ior::TaggedComponent;
use zorb::minor;
use zorb::prelude::*;

use crate::wire::peer::{Answer, Fake, Raw, reference};
use crate::wire::server::Desk;
use crate::wire::wire::DeskRef;

const WIDE: CodeSets = CodeSets { char: CharSet::Latin1, wchar: Some(WCharSet::Utf16) };

// clause: giop.code_sets.nothing
#[tokio::test]
async fn a_server_with_nothing_in_common_is_called_without_text() {
    for native in [0, 0x7777_7777] {
        let server = Fake::new(|asked| match asked.request().operation() {
            "euro" => {
                Answer::Reply(ReplyStatus::NoException, Box::new(|e| e.put_unconverted_str("text").unwrap()))
            }
            _ => Answer::value(3_i32),
        })
        .await;
        let sets = CodeSetComponentInfo {
            for_char: CodeSetComponent::new(CodeSetId(native), &[]),
            for_wchar: CodeSetComponent::new(CodeSetId::UTF_16, &[]),
        };
        let component = TaggedComponent::code_sets(&sets).unwrap();
        let ior = reference(&[server.profile().with_component(component)]);
        let orb = Orb::builder().build().await.unwrap();
        let desk: DeskRef = orb.resolve_unchecked(&ior.to_string()).await.unwrap();
        assert_eq!(desk.add(1, 2).await.unwrap(), 3);
        server.last(|asked| {
            let request = asked.request();
            let context = request.contexts().find(ContextId::CODE_SETS).unwrap();
            let context: CodeSetContext = context.value().unwrap();
            assert_eq!((context.char_data.0, context.wchar_data), (native, CodeSetId::UTF_16));
        });
        let (kind, code) =
            (SystemExceptionKind::CodesetIncompatible, minor::CODESET_INCOMPATIBLE_NEGOTIATION);
        let error = desk.same("text").await.unwrap_err();
        assert_eq!((error.kind, error.minor, error.completed), (kind, code, CompletionStatus::No));
        assert!(error.to_string().contains("OrbBuilder::char_code_sets"), "{error}");
        assert_eq!(server.asked(), ["add"]);
        let error = desk.euro().await.unwrap_err();
        assert_eq!((error.kind, error.minor, error.completed), (kind, code, CompletionStatus::Yes));
        assert_eq!(desk.add(1, 2).await.unwrap(), 3, "the connection goes on");
    }
}

// clause: giop.code_sets.wide_without
#[tokio::test]
async fn a_server_that_names_no_sets_gets_wide_text_where_one_is_assumed() {
    let server = Fake::new(|asked| {
        let request = asked.request();
        let mut body = request.body();
        body.set_code_sets(WIDE);
        let text = body.read_wstring().unwrap();
        Answer::Reply(
            ReplyStatus::NoException,
            Box::new(move |e| {
                e.set_code_sets(WIDE);
                e.put_wstr(&text).unwrap();
            }),
        )
    })
    .await;
    for version in [Version::V1_1, Version::V1_2] {
        let orb = Orb::builder().assume_wchar_set(CodeSetId::UTF_16).build().await.unwrap();
        let ior = reference(&[server.profile().with_version(version)]);
        let desk: DeskRef = orb.resolve_unchecked(&ior.to_string()).await.unwrap();
        let text = WString::from("w\u{20ac}");
        assert_eq!(desk.wide_same(&text).await.unwrap(), text);
        server.last(|asked| assert!(asked.request().contexts().find(ContextId::CODE_SETS).is_none()));
    }
    let orb = Orb::builder().assume_wchar_set(CodeSetId::UTF_16).build().await.unwrap();
    let ior = reference(&[server.profile().with_version(Version::V1_0)]);
    let desk: DeskRef = orb.resolve_unchecked(&ior.to_string()).await.unwrap();
    let error = desk.wide_same(&WString::from("w")).await.unwrap_err();
    assert_eq!((error.kind, error.minor), (SystemExceptionKind::Marshal, minor::MARSHAL_WCHAR_SENT_1_0));
}

#[tokio::test]
async fn a_client_that_announces_none_sends_and_gets_wide_text_where_one_is_assumed() {
    for (assumed, goes) in [(CodeSetId::UTF_16, true), (CodeSetId::NONE, false)] {
        let orb =
            Orb::builder().listen("iiop://127.0.0.1:0").assume_wchar_set(assumed).build().await.unwrap();
        let _desk: DeskRef = orb.activate_named("desk", Desk::default()).unwrap();
        let mut raw = Raw::connect(&orb, b"desk").await;
        let reply = raw
            .call("wide_same", &[], |e| {
                e.set_code_sets(WIDE);
                e.put_wstr("w\u{20ac}").unwrap();
            })
            .await;
        assert_eq!(reply.status() == ReplyStatus::NoException, goes);
        if goes {
            let mut body = reply.body();
            body.set_code_sets(WIDE);
            assert_eq!(body.read_wstring().unwrap(), WString::from("w\u{20ac}"));
        }
    }
}

/// Text that a Java or C++ peer cut within a surrogate pair passes through stubs, servants, anys and JSON
/// with all its units.
#[tokio::test]
async fn wide_text_with_half_a_surrogate_pair_goes_whole() {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let near: DeskRef = server.activate_named("desk", Desk::default()).unwrap();
    let orb = Orb::builder().build().await.unwrap();
    let far: DeskRef = orb.resolve(&near.ior().to_string()).await.unwrap();
    for units in [&[0x61, 0xD83D][..], &[0xDE00, 0x62], &[0xD83D, 0xD83D, 0xDE00]] {
        let text = WString::from_units(units.iter().copied());
        for desk in [&near, &far] {
            let back = desk.wide_same(&text).await.unwrap();
            assert_eq!(back, text);
            assert_eq!(desk.wide_same(back.as_wstr()).await.unwrap(), text);
        }
        let any = Any::new(&text).unwrap();
        assert_eq!(any.get::<WString>().unwrap(), text);
        let json = any.to_json().unwrap();
        let numbers: Vec<String> = units.iter().map(u16::to_string).collect();
        assert!(json.contains(&format!("[{}]", numbers.join(","))), "{json}");
        assert_eq!(Any::from_json(&json).unwrap(), any);
    }
}
