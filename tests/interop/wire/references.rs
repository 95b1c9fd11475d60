//! References: their profiles and addresses, queries of objects, initial references and names.

use giop_codec::ior::{IiopProfile, Ior, ProfileTag, TaggedComponent, TaggedProfile};
use zorb::prelude::*;
use zorb::{NarrowError, ResolveError, minor};

use crate::wire::peer::{Answer, Fake, code_sets, dead_port, reference};
use crate::wire::server::serving;
use crate::wire::wire::{BigRef, DeskRef};

async fn client() -> Orb {
    Orb::builder().build().await.unwrap()
}

fn at(port: u16, like: &IiopProfile) -> IiopProfile {
    IiopProfile { port, ..like.clone() }
}

// clause: ior.profile.order, ior.component.alternate_address
#[tokio::test]
async fn profiles_and_addresses_are_tried_in_their_order() {
    let server = Fake::new(|_| Answer::value(3_i32)).await;
    let other = Fake::new(|_| Answer::value(4_i32)).await;
    let (good, second) = (server.profile(), other.profile());
    let dead = || at(dead_port(), &good);
    let alternate = |profile: IiopProfile, port| {
        profile.with_component(TaggedComponent::alternate_address("127.0.0.1", port).unwrap())
    };
    for (profiles, sum) in [
        (vec![good.clone(), second.clone()], 3),
        (vec![second.clone(), good.clone()], 4),
        (vec![dead(), good.clone(), second.clone()], 3),
        (vec![alternate(dead(), server.port), second.clone()], 3),
        (vec![alternate(alternate(dead(), other.port), server.port)], 4),
    ] {
        let orb = client().await;
        let desk: DeskRef = orb.resolve_unchecked(&reference(&profiles).to_string()).await.unwrap();
        assert_eq!(desk.add(1, 2).await.unwrap(), sum);
    }
}

// clause: ior.profile.none_usable, ior.profile.vendor, exc.when.profiles_exhausted, exc.minor.transient.2
#[tokio::test]
async fn without_a_profile_that_can_be_used_a_call_is_transient_2() {
    let unknown = TaggedProfile { tag: ProfileTag(0x4a41_4300), data: Bytes::from_static(b"\0\x01") };
    let dead = reference(&[at(dead_port(), &IiopProfile::new("127.0.0.1", 1, b"desk".to_vec().into()))]);
    for ior in [Ior { profiles: vec![unknown], ..reference(&[]) }, dead] {
        let orb = client().await;
        let desk: DeskRef = orb.resolve_unchecked(&ior.to_string()).await.unwrap();
        let error = desk.add(1, 2).await.unwrap_err();
        assert_eq!(
            (error.kind, error.minor, error.completed),
            (SystemExceptionKind::Transient, minor::TRANSIENT_NO_USABLE_PROFILE, CompletionStatus::No)
        );
    }
}

// clause: giop.code_sets.published, ior.iiop.published_version, ior.key.form
#[tokio::test]
async fn what_is_published() {
    let (orb, desk) = serving().await;
    let profile = desk.as_object().ior().iiop_profile().unwrap();
    assert_eq!(profile.version, giop_codec::Version::V1_2);
    assert!(profile.components.contains(&code_sets()));
    let other: DeskRef = orb.activate(crate::wire::server::Desk::default()).unwrap();
    let key = other.as_object().ior().iiop_profile().unwrap().object_key;
    assert!(std::str::from_utf8(&key.as_slice()[..1]).is_err(), "no text begins so: {key:?}");
}

// clause: ior.type_id.empty, ior.type_id.hint, ior.object.is_a
#[tokio::test]
async fn what_the_type_id_does_not_say_is_asked() {
    let server = Fake::new(|asked| {
        Answer::value(asked.request().body().read_unconverted_str().unwrap().contains("Big"))
    })
    .await;
    let client = client().await;
    let nameless = Ior { type_id: String::new(), ..server.ior() };
    let desk: DeskRef = client.resolve_unchecked(&nameless.to_string()).await.unwrap();
    assert!(server.asked().is_empty());
    let big: BigRef = desk.narrow().await.unwrap();
    assert_eq!(server.asked(), ["_is_a"]);
    assert!(big.is_a("IDL:omg.org/CORBA/Object:1.0").await.unwrap());
    assert_eq!(server.asked().len(), 1, "every object is one");
    // The type id names a base.
    let desk: DeskRef = client.resolve(&server.ior().to_string()).await.unwrap();
    assert_eq!(server.asked().len(), 1);
    desk.narrow::<BigRef>().await.unwrap();
    let no: Result<DeskRef, ResolveError> = client.resolve(&nameless.to_string()).await;
    assert!(matches!(no, Err(ResolveError::Narrow(NarrowError::WrongInterface { .. }))), "{no:?}");
}

// clause: ior.object.not_existent, ior.object.non_existent
#[tokio::test]
async fn servers_of_old_are_asked_by_the_old_name() {
    let server = Fake::new(|asked| match asked.operation().as_str() {
        "_not_existent" => Answer::value(true),
        _ => Answer::raise(SystemException::bad_operation()),
    })
    .await;
    let orb = client().await;
    let desk: DeskRef = orb.resolve_unchecked(&server.ior().to_string()).await.unwrap();
    assert!(desk.non_existent().await.unwrap());
    assert_eq!(server.asked(), ["_non_existent", "_not_existent"]);
}

// clause: ior.initial.order, ior.args.default_init_ref
#[tokio::test]
async fn initial_references_have_their_own_url_or_stand_behind_the_default_one() {
    let server = Fake::new(|asked| Answer::value(asked.request().object_key().unwrap().len() as i32)).await;
    let url = |key: &str| format!("corbaloc:iiop:1.2@127.0.0.1:{}{key}", server.port);
    let arguments = [
        "-ORBInitRef".to_owned(),
        format!("Own={}", url("/12345")),
        "-ORBDefaultInitRef".to_owned(),
        url(""),
    ];
    let (builder, rest) = Orb::from_args(arguments).unwrap();
    assert!(rest.is_empty());
    let orb = builder.build().await.unwrap();
    for (name, length) in [("Own", 5), ("Other", 5), ("Another", 7)] {
        let desk: DeskRef = orb.resolve_unchecked(&format!("corbaloc:rir:/{name}")).await.unwrap();
        assert_eq!(desk.add(1, 2).await.unwrap(), length, "{name}");
    }
}

// clause: ior.args.listen_endpoints
#[tokio::test]
async fn endpoints_are_arguments() {
    let (builder, _) =
        Orb::from_args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"].map(str::to_owned)).unwrap();
    let orb = builder.build().await.unwrap();
    let [endpoint] = <[String; 1]>::try_from(orb.endpoints()).unwrap();
    assert!(endpoint.starts_with("127.0.0.1:"), "{endpoint}");
}

// clause: ior.corbaname.resolve, ior.corbaname.key
#[tokio::test]
async fn a_name_is_resolved_at_its_context() {
    let desk = Fake::new(|_| Answer::value(3_i32)).await;
    let to = desk.ior();
    let names = Fake::new(move |asked| {
        let request = asked.request();
        let mut d = request.body();
        let mut name = Vec::new();
        for _ in 0..d.read_u32().unwrap() {
            name.push((d.read_string().unwrap(), d.read_string().unwrap()));
        }
        let found = request.object_key() == Ok(b"NameService")
            && request.operation() == "resolve"
            && name == [("a.b".to_owned(), "kind".to_owned()), ("c".to_owned(), String::new())];
        Answer::value(if found { to.clone() } else { Ior::nil() })
    })
    .await;
    let client = client().await;
    let url = |name| format!("corbaname:iiop:1.2@127.0.0.1:{}#{name}", names.port);
    let desk: DeskRef = client.resolve(&url("a%5c.b.kind/c")).await.unwrap();
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    assert!(client.resolve::<DeskRef>(&url("other")).await.is_err());
}

// clause: ior.url.file
#[tokio::test]
async fn a_file_has_a_reference() {
    let server = Fake::new(|_| Answer::value(3_i32)).await;
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wire-{}.ior", server.port));
    std::fs::write(&path, format!("{}\n", server.ior())).unwrap();
    let orb = client().await;
    let desk: DeskRef = orb.resolve(&format!("file://{}", path.display())).await.unwrap();
    assert_eq!(desk.add(1, 2).await.unwrap(), 3);
    std::fs::remove_file(path).unwrap();
}
