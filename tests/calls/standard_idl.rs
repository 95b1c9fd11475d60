//! IDL that includes the standard's own: its types are those of the facade in every including file, and are
//! encoded as the standard requires.

use std::sync::{Arc, Mutex};

use zorb::corba::{PolicyServant, StringValue, TcKind};
use zorb::cos_naming::{Name, NameComponent};
use zorb::cos_notification::{EventType, StructuredEvent};
use zorb::prelude::*;
use zorb::time_base::UtcT;

use audit::audit::{LogRef, LogServant, Seen};
use catalog::catalog::{AgePolicyRef, AgePolicyServant, Entry, ShelfRef, ShelfServant};

mod catalog {
    zorb::idl!(
        r#"
        #include <orb.idl>
        #include "COS/CosNaming.idl"
        #include <omg/TimeBase.idl>
        module Catalog {
            struct Entry {
                CosNaming::Name name; TimeBase::UtcT changed; CORBA::StringSeq words; CORBA::OctetSeq data;
                CORBA::TCKind kind; CORBA::StringValue note;
            };
            interface Shelf {
                Entry find(in CosNaming::Name name, in TimeBase::UtcT before, inout CORBA::StringSeq words);
                CORBA::AnySeq all(in CORBA::WStringSeq titles, in CORBA::LongDoubleSeq weights);
            };
            local interface AgePolicy : CORBA::Policy { readonly attribute TimeBase::TimeT limit; };
        };
        "#
    );
}

mod audit {
    zorb::idl!(
        r#"
        #include <tao/orb.idl>
        #include <CosNaming.idl>
        #include "TimeBase.idl"
        #include <CosNotifyComm.idl>
        #include <PortableServer.idl>
        #include <Messaging.idl>
        #include <RTCORBA.idl>
        #include <GIOP.idl>
        module Audit {
            typedef sequence<TimeBase::IntervalT> Gaps;
            struct Seen { CosNaming::Name name; TimeBase::UtcT at; CORBA::StringSeq words; PortableServer::ObjectId id; GIOP::Version version; };
            interface Log : CosNotifyComm::StructuredPushConsumer {
                void note(in Seen what);
                Gaps gaps(in Messaging::PriorityRange range, in RTCORBA::PriorityBand band);
            };
        };
        "#
    );
}

fn name() -> Name {
    vec![NameComponent::new("bank", "context"), NameComponent::new("account", "")]
}

fn noon() -> UtcT {
    UtcT { time: 0x0102_0304_0506_0708, inacclo: 9, inacchi: 10, tdf: -60 }
}

struct Shelf;

impl ShelfServant for Shelf {
    async fn find(
        &self,
        name: &[NameComponent],
        before: &UtcT,
        mut words: zorb::corba::StringSeq,
    ) -> Result<(Entry, Vec<String>), SystemException> {
        let entry = Entry {
            name: name.to_vec(),
            changed: before.clone(),
            words: words.clone(),
            data: Bytes::from_static(&[1, 2, 3]),
            kind: TcKind::ULongLong,
            note: Some(Value::new(StringValue("kept".to_owned()))),
        };
        words.push("found".to_owned());
        Ok((entry, words))
    }

    async fn all(&self, titles: &[WString], weights: Seq<LongDouble>) -> Result<Vec<Any>, SystemException> {
        Ok(vec![Any::new(titles.len() as i32).unwrap(), Any::new(weights.len() as i32).unwrap()])
    }
}

#[derive(Clone, Default)]
struct Log {
    seen: Arc<Mutex<Vec<String>>>,
}

impl Log {
    fn add(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }
}

impl zorb::cos_notify_comm::NotifyPublishServant for Log {
    async fn offer_change(
        &self,
        added: &[EventType],
        _removed: &[EventType],
    ) -> Result<(), zorb::cos_notify_comm::notify_publish::OfferChangeError> {
        let first = added.first().cloned().unwrap_or_default();
        Err(zorb::cos_notify_comm::InvalidEventType { r#type: first }.into())
    }
}

impl zorb::cos_notify_comm::StructuredPushConsumerServant for Log {
    async fn push_structured_event(
        &self,
        notification: &StructuredEvent,
    ) -> Result<(), zorb::cos_notify_comm::structured_push_consumer::PushStructuredEventError> {
        self.add(notification.header.fixed_header.event_name.clone());
        Ok(())
    }

    async fn disconnect_structured_push_consumer(&self) -> Result<(), SystemException> {
        self.add("end".to_owned());
        Ok(())
    }
}

impl LogServant for Log {
    async fn note(&self, what: &Seen) -> Result<(), SystemException> {
        self.add(zorb::cos_naming::print_name(&what.name));
        Ok(())
    }

    async fn gaps(
        &self,
        range: &zorb::messaging::PriorityRange,
        band: &zorb::rtcorba::PriorityBand,
    ) -> Result<audit::audit::Gaps, SystemException> {
        let (lower_bound, upper_bound) = (range.min as u64, band.high as u64);
        Ok(vec![zorb::time_base::IntervalT { lower_bound, upper_bound }])
    }
}

#[tokio::test]
async fn two_modules_share_the_types_of_the_standard() {
    let pair = zorb::testing::pair();
    let shelf: ShelfRef = pair.server.activate(Shelf).unwrap();
    let shelf: ShelfRef = pair.client.resolve(&shelf.to_string()).await.unwrap();
    let (entry, words) = shelf.find(&name(), &noon(), vec!["a".to_owned()]).await.unwrap();
    assert_eq!(words, ["a", "found"]);
    assert_eq!((entry.kind, &entry.data[..]), (TcKind::ULongLong, &[1, 2, 3][..]));
    assert_eq!(entry.note.unwrap().get().0, "kept");
    let counts = shelf.all(&["x".into(), "y".into()], vec![LongDouble::default(); 3]).await.unwrap();
    assert_eq!(counts.iter().map(|any| any.get::<i32>().unwrap()).collect::<Vec<_>>(), [2, 3]);

    // A value that one module received is accepted by the other.
    let seen = Seen {
        name: entry.name,
        at: entry.changed,
        words,
        id: entry.data,
        version: zorb::giop::Version { major: 1, minor: 2 },
    };
    assert_eq!((&seen.name, &seen.at), (&name(), &noon()));
    let log = Log::default();
    let told: LogRef = pair.server.activate(log.clone()).unwrap();
    let told: LogRef = pair.client.resolve(&told.to_string()).await.unwrap();
    told.note(&seen).await.unwrap();

    // Operations and exceptions of the standard's interfaces, by its own reference type.
    let consumer: zorb::cos_notify_comm::StructuredPushConsumerRef = told.clone().into();
    let mut event = StructuredEvent::default();
    event.header.fixed_header.event_name = "opened".to_owned();
    consumer.push_structured_event(&event).await.unwrap();
    let kind = EventType { domain_name: "bank".to_owned(), type_name: "audit".to_owned() };
    let refused = told.offer_change(std::slice::from_ref(&kind), &[]).await.unwrap_err();
    assert_eq!(refused, zorb::cos_notify_comm::InvalidEventType { r#type: kind }.into());
    let range = zorb::messaging::PriorityRange { min: 1, max: 2 };
    let gaps = told.gaps(&range, &zorb::rtcorba::PriorityBand { low: 3, high: 4 }).await.unwrap();
    assert_eq!((gaps[0].lower_bound, gaps[0].upper_bound), (1, 4));
    assert_eq!(*log.seen.lock().unwrap(), ["bank.context/account", "opened"]);
}

#[derive(Clone)]
struct Week;

impl PolicyServant for Week {
    async fn policy_type(&self) -> Result<zorb::corba::PolicyType, SystemException> {
        Ok(0x5a00_0001)
    }

    async fn copy(&self) -> Result<Option<zorb::corba::PolicyRef>, SystemException> {
        Ok(Some(AgePolicyRef::of(Week).into()))
    }

    async fn destroy(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl AgePolicyServant for Week {
    async fn limit(&self) -> Result<zorb::time_base::TimeT, SystemException> {
        Ok(6_048_000_000_000)
    }
}

#[tokio::test]
async fn a_policy_of_a_program_is_a_policy_of_corba() {
    let policy = AgePolicyRef::of(Week);
    assert_eq!(
        (policy.policy_type().await.unwrap(), policy.limit().await.unwrap()),
        (0x5a00_0001, 6_048_000_000_000)
    );
    let list: zorb::corba::PolicyList = vec![policy.copy().await.unwrap()];
    assert_eq!(list[0].as_ref().unwrap().policy_type().await.unwrap(), 0x5a00_0001);
}

#[test]
fn the_ids_are_those_of_the_standard() {
    for (code, id) in [
        (zorb::corba::string_seq_type_code(), "IDL:omg.org/CORBA/StringSeq:1.0"),
        (zorb::corba::octet_seq_type_code(), "IDL:omg.org/CORBA/OctetSeq:1.0"),
        (zorb::corba::policy_type_type_code(), "IDL:omg.org/CORBA/PolicyType:1.0"),
        (TcKind::type_code(), "IDL:omg.org/CORBA/TCKind:1.0"),
        (UtcT::type_code(), "IDL:omg.org/TimeBase/UtcT:1.0"),
        (zorb::cos_naming::name_type_code(), "IDL:omg.org/CosNaming/Name:1.0"),
        (EventType::type_code(), "IDL:omg.org/CosNotification/EventType:1.0"),
        (zorb::iop::TaggedComponent::type_code(), "IDL:omg.org/IOP/TaggedComponent:1.0"),
        (zorb::iiop::ListenPoint::type_code(), "IDL:omg.org/IIOP/ListenPoint:1.0"),
        (zorb::portable_server::object_id_type_code(), "IDL:omg.org/PortableServer/ObjectId:1.0"),
        (zorb::messaging::PolicyValue::type_code(), "IDL:omg.org/Messaging/PolicyValue:1.0"),
    ] {
        assert_eq!(code.id().unwrap(), id);
    }
    assert_eq!(zorb::iop::TAG_CSI_SEC_MECH_LIST, 33);
    assert_eq!(zorb::messaging::RELATIVE_RT_TIMEOUT_POLICY_TYPE, 32);
    assert_eq!(zorb::cos_notification::MAX_EVENTS_PER_CONSUMER, "MaxEventsPerConsumer");
}

#[test]
fn idl_that_is_read_at_run_time_has_the_standard_too() {
    let idl = "#include <orb.idl>\n#include <TimeBase.idl>\nstruct S { TimeBase::UtcT at; CORBA::WStringSeq words; };";
    let idl = zorb::dynamic::Idl::parse(idl).unwrap();
    assert_eq!(idl.type_code("TimeBase::UtcT").unwrap(), UtcT::type_code());
    assert_eq!(idl.type_code("CORBA::TCKind").unwrap(), TcKind::type_code());
    assert_eq!(idl.type_code("CORBA::StringSeq").unwrap(), zorb::corba::string_seq_type_code());
}
