//! Components, homes and events over the wire: their equivalent interfaces are served and called like any
//! interface.

#![deny(warnings, missing_docs)]

use std::sync::{Arc, Mutex};

use test_support::transport;
use zorb::{Orb, Reference, SystemException, Value};

zorb::idl! {
    default_bodies;

    #pragma prefix "acme.com"
    module Shop {
        /// Something happened to a price.
        eventtype Priced { public string ware; public long cents; };
        eventtype Reduced : truncatable Priced { public long before; };

        interface Till { long total(); };
        interface Display { void show(in string text); };

        porttype Desk { provides Till drawer; uses Display sign; attribute long number; };

        exception Closed { };

        /// A counter.
        component Counter supports Till {
            /// The till.
            provides Till front;
            provides Object anything;
            uses Display screen;
            uses multiple Display screens;
            emits Priced news;
            publishes Reduced offers;
            consumes Priced prices;
            attribute string label getraises (Closed) setraises (Closed);
            port Desk left;
            mirrorport Desk right;
        };

        component BigCounter : Counter { readonly attribute long size; };

        connector Wire { port Desk one; mirrorport Desk two; };

        valuetype Place : Components::PrimaryKeyBase { public long number; };

        home Counters manages Counter {
            factory labelled(in string label) raises (Closed);
            finder first(in string label);
            readonly attribute long made;
        };

        home Places manages Counter primarykey Place { };
    };
}

use components::*;
use shop::*;

type Reply<T> = Result<T, SystemException>;

/// A till, a display and an event consumer that records what it receives.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<String>>>);

impl Memory {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl TillServant for Memory {
    async fn total(&self) -> Reply<i32> {
        Ok(7)
    }
}

impl DisplayServant for Memory {
    async fn show(&self, text: &str) -> Reply<()> {
        self.note(text.to_owned());
        Ok(())
    }
}

impl EventConsumerBaseServant for Memory {
    async fn push_event(
        &self,
        event: Option<Value<EventBase>>,
    ) -> Result<(), event_consumer_base::PushEventError> {
        let Some(priced) = event.and_then(|event| event.downcast::<Priced>()) else {
            let expected_event_type = "IDL:acme.com/Shop/Priced:1.0".to_owned();
            return Err(BadEventType { expected_event_type }.into());
        };
        self.note(format!("event {}", priced.get().ware));
        Ok(())
    }
}

impl PricedConsumerServant for Memory {
    async fn push_priced(&self, priced: Option<Value<Priced>>) -> Reply<()> {
        let priced = priced.unwrap();
        let reduced = priced.downcast::<Reduced>().map(|reduced| reduced.get().before);
        self.note(format!("{} {} {reduced:?}", priced.get().ware, priced.get().cents));
        Ok(())
    }
}

impl ReducedConsumerServant for Memory {
    async fn push_reduced(&self, reduced: Option<Value<Reduced>>) -> Reply<()> {
        self.note(format!("reduced from {}", reduced.unwrap().get().before));
        Ok(())
    }
}

/// The connections of a counter.
#[derive(Default)]
struct Connected {
    screen: Option<DisplayRef>,
    screens: Vec<DisplayRef>,
    news: Option<PricedConsumerRef>,
    offers: Vec<ReducedConsumerRef>,
    label: String,
    left: i32,
    right: Option<TillRef>,
}

struct CounterPart {
    orb: Orb,
    memory: Memory,
    home: Mutex<Option<CcmHomeRef>>,
    connected: Mutex<Connected>,
}

fn cookie(number: usize) -> Option<Value<Cookie>> {
    Some(Value::new(Cookie { cookie_value: vec![number as u8].into() }))
}

fn number(cookie: Option<Value<Cookie>>) -> Option<usize> {
    cookie.and_then(|cookie| cookie.get().cookie_value.first().map(|octet| usize::from(*octet)))
}

impl NavigationServant for CounterPart {
    async fn provide_facet(
        &self,
        name: &str,
    ) -> Result<Option<zorb::ObjectRef>, navigation::ProvideFacetError> {
        match name {
            "front" => Ok(self.provide_front().await?.map(|front| front.as_object().clone())),
            _ => Err(InvalidName.into()),
        }
    }
}

impl ReceptaclesServant for CounterPart {}

impl EventsServant for CounterPart {}

impl CcmObjectServant for CounterPart {
    async fn get_ccm_home(&self) -> Reply<Option<CcmHomeRef>> {
        Ok(self.home.lock().unwrap().clone())
    }
}

impl TillServant for CounterPart {
    async fn total(&self) -> Reply<i32> {
        Ok(3)
    }
}

impl CounterServant for CounterPart {
    async fn provide_front(&self) -> Reply<Option<TillRef>> {
        Ok(Some(self.orb.activate(self.memory.clone()).unwrap()))
    }

    async fn connect_screen(
        &self,
        connection: Option<DisplayRef>,
    ) -> Result<(), counter::ConnectScreenError> {
        let Some(connection) = connection else { return Err(InvalidConnection.into()) };
        let mut connected = self.connected.lock().unwrap();
        if connected.screen.is_some() {
            return Err(AlreadyConnected.into());
        }
        connected.screen = Some(connection);
        Ok(())
    }

    async fn disconnect_screen(&self) -> Result<Option<DisplayRef>, counter::DisconnectScreenError> {
        let screen = self.connected.lock().unwrap().screen.take();
        screen.map(Some).ok_or(NoConnection.into())
    }

    async fn get_connection_screen(&self) -> Reply<Option<DisplayRef>> {
        Ok(self.connected.lock().unwrap().screen.clone())
    }

    async fn connect_screens(
        &self,
        connection: Option<DisplayRef>,
    ) -> Result<Option<Value<Cookie>>, counter::ConnectScreensError> {
        let mut connected = self.connected.lock().unwrap();
        if connected.screens.len() == 2 {
            return Err(ExceededConnectionLimit.into());
        }
        connected.screens.push(connection.unwrap());
        Ok(cookie(connected.screens.len() - 1))
    }

    async fn disconnect_screens(
        &self,
        ck: Option<Value<Cookie>>,
    ) -> Result<Option<DisplayRef>, counter::DisconnectScreensError> {
        let mut connected = self.connected.lock().unwrap();
        match number(ck).filter(|number| *number < connected.screens.len()) {
            Some(number) => Ok(Some(connected.screens.remove(number))),
            None => Err(InvalidConnection.into()),
        }
    }

    async fn get_connections_screens(&self) -> Reply<counter::ScreensConnections> {
        let screens = self.connected.lock().unwrap().screens.clone();
        let connections = screens.into_iter().enumerate();
        Ok(connections
            .map(|(index, screen)| counter::ScreensConnection { objref: Some(screen), ck: cookie(index) })
            .collect())
    }

    async fn connect_news(
        &self,
        consumer: Option<PricedConsumerRef>,
    ) -> Result<(), counter::ConnectNewsError> {
        self.connected.lock().unwrap().news = consumer;
        Ok(())
    }

    async fn subscribe_offers(
        &self,
        consumer: Option<ReducedConsumerRef>,
    ) -> Result<Option<Value<Cookie>>, counter::SubscribeOffersError> {
        self.connected.lock().unwrap().offers.extend(consumer);
        Ok(cookie(0))
    }

    async fn get_consumer_prices(&self) -> Reply<Option<PricedConsumerRef>> {
        Ok(Some(self.orb.activate(self.memory.clone()).unwrap()))
    }

    async fn label(&self) -> Result<String, counter::LabelError> {
        Ok(self.connected.lock().unwrap().label.clone())
    }

    async fn set_label(&self, value: &str) -> Result<(), counter::SetLabelError> {
        match value {
            "" => Err(Closed.into()),
            _ => {
                self.connected.lock().unwrap().label = value.to_owned();
                Ok(())
            }
        }
    }

    async fn left_number(&self) -> Reply<i32> {
        Ok(self.connected.lock().unwrap().left)
    }

    async fn set_left_number(&self, value: i32) -> Reply<()> {
        self.connected.lock().unwrap().left = value;
        Ok(())
    }

    async fn connect_right_drawer(
        &self,
        connection: Option<TillRef>,
    ) -> Result<(), counter::ConnectRightDrawerError> {
        self.connected.lock().unwrap().right = connection;
        Ok(())
    }

    async fn get_connection_right_drawer(&self) -> Reply<Option<TillRef>> {
        Ok(self.connected.lock().unwrap().right.clone())
    }
}

/// Both homes.
#[derive(Clone)]
struct Homes {
    orb: Orb,
    memory: Memory,
    made: Arc<Mutex<Vec<(i32, CounterRef)>>>,
    home: Arc<Mutex<Option<CcmHomeRef>>>,
}

impl Homes {
    fn make(&self, key: i32, label: &str) -> Reply<Option<CounterRef>> {
        let connected = Mutex::new(Connected { label: label.to_owned(), ..Connected::default() });
        let home = Mutex::new(self.home.lock().unwrap().clone());
        let part = CounterPart { orb: self.orb.clone(), memory: self.memory.clone(), home, connected };
        let counter: CounterRef = self.orb.activate(part).unwrap();
        self.made.lock().unwrap().push((key, counter.clone()));
        Ok(Some(counter))
    }

    fn made_for(&self, key: Option<&Value<Place>>) -> Option<CounterRef> {
        let key = key?.get().number;
        let made = self.made.lock().unwrap();
        made.iter().find(|(of, _)| *of == key).map(|(_, counter)| counter.clone())
    }
}

impl CcmHomeServant for Homes {}

impl KeylessCcmHomeServant for Homes {
    async fn create_component(&self) -> Result<Option<CcmObjectRef>, keyless_ccm_home::CreateComponentError> {
        Err(CreateFailure { reason: 5 }.into())
    }
}

impl CountersExplicitServant for Homes {
    async fn labelled(&self, label: &str) -> Result<Option<CounterRef>, counters_explicit::LabelledError> {
        match label {
            "" => Err(Closed.into()),
            "?" => Err(CreateFailure { reason: 4 }.into()),
            _ => Ok(self.make(-1, label)?),
        }
    }

    async fn first(&self, _: &str) -> Result<Option<CounterRef>, counters_explicit::FirstError> {
        let first = self.made.lock().unwrap().first().map(|(_, counter)| counter.clone());
        first.map(Some).ok_or(FinderFailure { reason: 2 }.into())
    }

    async fn made(&self) -> Reply<i32> {
        Ok(self.made.lock().unwrap().len() as i32)
    }
}

impl CountersImplicitServant for Homes {
    async fn create(&self) -> Result<Option<CounterRef>, counters_implicit::CreateError> {
        Ok(self.make(-1, "new")?)
    }
}

impl CountersServant for Homes {}

impl PlacesExplicitServant for Homes {}

impl PlacesImplicitServant for Homes {
    async fn create(
        &self,
        key: Option<Value<Place>>,
    ) -> Result<Option<CounterRef>, places_implicit::CreateError> {
        if self.made_for(key.as_ref()).is_some() {
            return Err(DuplicateKeyValue.into());
        }
        match key {
            Some(key) => Ok(self.make(key.get().number, "placed")?),
            None => Err(InvalidKey.into()),
        }
    }

    async fn find_by_primary_key(
        &self,
        key: Option<Value<Place>>,
    ) -> Result<Option<CounterRef>, places_implicit::FindByPrimaryKeyError> {
        self.made_for(key.as_ref()).map(Some).ok_or(UnknownKeyValue.into())
    }
}

impl PlacesServant for Homes {}

/// Returns both homes as seen by a client ORB, the record of events, and the server and client ORBs.
async fn homes() -> (CountersRef, PlacesRef, Memory, [Orb; 2]) {
    let known = || {
        transport::builder()
            .register_value_type::<Priced>()
            .register_value_type::<Reduced>()
            .register_value_type::<Cookie>()
            .register_value_type::<Place>()
    };
    let server = known().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = known().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let memory = Memory::default();
    let (made, home) = (Arc::default(), Arc::default());
    let homes = Homes { orb: server.clone(), memory: memory.clone(), made, home };
    let counters: CountersRef = server.activate(homes.clone()).unwrap();
    let places: PlacesRef = server.activate(homes.clone()).unwrap();
    *homes.home.lock().unwrap() = Some(counters.clone().into());
    let counters = client.resolve(&counters.to_string()).await.unwrap();
    let places = client.resolve(&places.to_string()).await.unwrap();
    (counters, places, memory, [server, client])
}

#[tokio::test]
async fn homes_make_and_find_components() {
    let (counters, places, _, orbs) = homes().await;
    assert!(
        matches!(counters.first("x").await, Err(counters_explicit::FirstError::FinderFailure(f)) if f.reason == 2)
    );
    let counter = counters.create().await.unwrap().unwrap();
    assert_eq!(counter.label().await.unwrap(), "new");
    // A component has the interfaces that it supports.
    let till: TillRef = counter.clone().into();
    assert_eq!(till.total().await.unwrap(), 3);
    let labelled = counters.labelled("bread").await.unwrap().unwrap();
    assert_eq!(labelled.label().await.unwrap(), "bread");
    assert!(matches!(counters.labelled("").await, Err(counters_explicit::LabelledError::Closed(_))));
    let failed = counters.labelled("?").await;
    assert!(matches!(failed, Err(counters_explicit::LabelledError::CreateFailure(f)) if f.reason == 4));
    assert_eq!(counters.made().await.unwrap(), 2);
    assert!(counters.first("x").await.unwrap().unwrap().is_equivalent(&counter));
    // A client that only knows the base interfaces of homes and components.
    let keyless: KeylessCcmHomeRef = counters.clone().into();
    let failed = keyless.create_component().await;
    assert!(matches!(failed, Err(keyless_ccm_home::CreateComponentError::CreateFailure(f)) if f.reason == 5));
    let object: CcmObjectRef = counter.clone().into();
    let home = object.get_ccm_home().await.unwrap().unwrap();
    assert_eq!(home.narrow::<CountersRef>().await.unwrap().made().await.unwrap(), 2);
    let unserved = home.get_component_def().await;
    assert_eq!(unserved.unwrap_err().kind, zorb::SystemExceptionKind::NoImplement);

    let place = |number| Some(Value::new(Place { number }));
    let placed = places.create(place(1)).await.unwrap().unwrap();
    assert!(matches!(places.create(place(1)).await, Err(places_implicit::CreateError::DuplicateKeyValue(_))));
    assert!(matches!(
        places.create(None::<Value<Place>>).await,
        Err(places_implicit::CreateError::InvalidKey(_))
    ));
    assert!(places.find_by_primary_key(place(1)).await.unwrap().unwrap().is_equivalent(&placed));
    let unknown = places.find_by_primary_key(place(2)).await;
    assert!(matches!(unknown, Err(places_implicit::FindByPrimaryKeyError::UnknownKeyValue(_))));
    for orb in orbs {
        orb.shutdown().await;
    }
}

#[tokio::test]
async fn ports_are_connected_and_used() {
    let (counters, _, served, orbs) = homes().await;
    let counter = counters.create().await.unwrap().unwrap();
    let memory = Memory::default();
    let display: DisplayRef = orbs[1].activate(memory.clone()).unwrap();

    assert_eq!(counter.provide_front().await.unwrap().unwrap().total().await.unwrap(), 7);
    let facet = counter.provide_facet("front").await.unwrap().unwrap();
    assert_eq!(facet.narrow::<TillRef>().await.unwrap().total().await.unwrap(), 7);
    let wrong = counter.provide_facet("back").await;
    assert!(matches!(wrong, Err(navigation::ProvideFacetError::InvalidName(_))));

    assert!(matches!(
        counter.disconnect_screen().await,
        Err(counter::DisconnectScreenError::NoConnection(_))
    ));
    counter.connect_screen(&display).await.unwrap();
    let again = counter.connect_screen(&display).await;
    assert!(matches!(again, Err(counter::ConnectScreenError::AlreadyConnected(_))));
    counter.get_connection_screen().await.unwrap().unwrap().show("seen").await.unwrap();
    assert_eq!(memory.take(), ["seen"]);
    assert!(counter.disconnect_screen().await.unwrap().unwrap().is_equivalent(&display));

    let first = counter.connect_screens(&display).await.unwrap();
    let second = counter.connect_screens(&display).await.unwrap();
    let third = counter.connect_screens(&display).await;
    assert!(matches!(third, Err(counter::ConnectScreensError::ExceededConnectionLimit(_))));
    let connections = counter.get_connections_screens().await.unwrap();
    assert_eq!(connections.len(), 2);
    assert_eq!(number(connections[1].ck.clone()), number(second.clone()));
    assert!(connections[0].objref.as_ref().unwrap().is_equivalent(&display));
    counter.disconnect_screens(second.clone()).await.unwrap();
    let gone = counter.disconnect_screens(second).await;
    assert!(matches!(gone, Err(counter::DisconnectScreensError::InvalidConnection(_))));
    counter.disconnect_screens(first).await.unwrap();

    counter.set_label("cheese").await.unwrap();
    assert_eq!(counter.label().await.unwrap(), "cheese");
    assert!(matches!(counter.set_label("").await, Err(counter::SetLabelError::Closed(_))));

    // A port of a port type, and its mirror.
    counter.set_left_number(4).await.unwrap();
    assert_eq!(counter.left_number().await.unwrap(), 4);
    let till: TillRef = orbs[1].activate(memory.clone()).unwrap();
    counter.connect_right_drawer(&till).await.unwrap();
    let right = counter.get_connection_right_drawer().await.unwrap().unwrap();
    assert_eq!(right.total().await.unwrap(), 7);
    assert!(served.take().is_empty());
    for orb in orbs {
        orb.shutdown().await;
    }
}

#[tokio::test]
async fn events_reach_their_consumers() {
    let (counters, _, served, orbs) = homes().await;
    let counter = counters.create().await.unwrap().unwrap();
    let prices = counter.get_consumer_prices().await.unwrap().unwrap();
    let priced = Priced { ware: "ink".to_owned(), cents: 120 };
    let reduced = Value::new(Reduced { base: priced.clone(), before: 150 });
    prices.push_priced(Some(Value::new(priced))).await.unwrap();
    prices.push_priced(reduced.upcast::<Priced>()).await.unwrap();
    // A client that only knows that it is a consumer.
    let base: EventConsumerBaseRef = prices.into();
    base.push_event(reduced.upcast::<EventBase>()).await.unwrap();
    let wrong = base.push_event(None::<Value<EventBase>>).await;
    let Err(event_consumer_base::PushEventError::BadEventType(wrong)) = wrong else {
        unreachable!("{wrong:?}");
    };
    assert_eq!(wrong.expected_event_type, "IDL:acme.com/Shop/Priced:1.0");
    assert_eq!(served.take(), ["ink 120 None", "ink 120 Some(150)", "event ink"]);

    // A consumer of derived events accepts those of the base as well.
    let memory = Memory::default();
    let consumer: ReducedConsumerRef = orbs[1].activate(memory.clone()).unwrap();
    counter.connect_news(PricedConsumerRef::from(consumer.clone())).await.unwrap();
    assert_eq!(number(counter.subscribe_offers(&consumer).await.unwrap()), Some(0));
    consumer.push_reduced(reduced.clone()).await.unwrap();
    consumer.push_priced(reduced.upcast::<Priced>()).await.unwrap();
    assert_eq!(memory.take(), ["reduced from 150", "ink 120 Some(150)"]);
    for orb in orbs {
        orb.shutdown().await;
    }
}
