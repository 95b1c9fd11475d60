//! Generated code on the real ORB: every kind of type in every position, marshalled between two ORBs and
//! within one.

use std::future::Future;
use std::sync::{Arc, Mutex};

use test_support::transport;
use zorb::prelude::*;

zorb::idl! {
    module Fleet {
        enum Kind { CAR, VAN, TRUCK };
        struct Place { double lat; double lon; };
        struct Vehicle {
            string plate; wstring driver; Kind kind; Place place; sequence<Place> route; sequence<octet> picture;
            sequence<long> odometer; long grid[2][2]; sequence<Vehicle> trailers;
        };
        typedef sequence<octet> Data;
        typedef sequence<Vehicle> Vehicles;
        union Load switch (Kind) { case CAR: short persons; case VAN: case TRUCK: string goods; };
        union Tag switch (boolean) { case TRUE: long long number; };
        exception NotFound { string plate; };
        exception Busy { };

        interface Listener { void moved(in string plate, in Place place); };

        interface Depot {
            readonly attribute long size;
            attribute wstring title;
            void add(in Vehicle v, inout Load load, out Tag tag) raises (Busy);
            Vehicle find(in string plate) raises (NotFound);
            void watch(in Listener l);
            Listener watcher();
            long move(in string plate, in Place place) raises (NotFound, Busy);
            oneway void ping(in long n);
            Data echo(in Data d);
            long many(in string<8> a, out boolean b, out char c, inout wchar d, out long double e);
        };

        interface Garage : Depot { Vehicles all(); };
    };
}

use fleet::*;

#[derive(Default)]
struct Servant {
    vehicles: Mutex<Vec<Vehicle>>,
    title: Mutex<WString>,
    listener: Mutex<Option<ListenerRef>>,
    pings: Arc<Mutex<Vec<i32>>>,
}

impl DepotServant for Servant {
    async fn size(&self) -> Result<i32, SystemException> {
        Ok(self.vehicles.lock().unwrap().len() as i32)
    }

    async fn title(&self) -> Result<WString, SystemException> {
        Ok(self.title.lock().unwrap().clone())
    }

    async fn set_title(&self, value: WStr<'_>) -> Result<(), SystemException> {
        *self.title.lock().unwrap() = value.into();
        Ok(())
    }

    async fn add(&self, v: &Vehicle, load: Load) -> Result<(Load, Tag), depot::AddError> {
        if v.plate.is_empty() {
            return Err(Busy.into());
        }
        self.vehicles.lock().unwrap().push(v.clone());
        let load = match load {
            Load::Persons(n) => Load::Persons(n + 1),
            Load::Goods(kind, goods) => Load::Goods(kind, goods + "!"),
        };
        Ok((load, if v.kind == Kind::Car { Tag::Other(false) } else { Tag::Number(7) }))
    }

    async fn find(&self, plate: &str) -> Result<Vehicle, depot::FindError> {
        let vehicles = self.vehicles.lock().unwrap();
        let found = vehicles.iter().find(|vehicle| vehicle.plate == plate);
        found.cloned().ok_or_else(|| NotFound { plate: plate.to_owned() }.into())
    }

    async fn watch(&self, l: Option<ListenerRef>) -> Result<(), SystemException> {
        *self.listener.lock().unwrap() = l;
        Ok(())
    }

    async fn watcher(&self) -> Result<Option<ListenerRef>, SystemException> {
        Ok(self.listener.lock().unwrap().clone())
    }

    async fn r#move(&self, plate: &str, place: &Place) -> Result<i32, depot::MoveError> {
        self.find(plate).await.map_err(|error| match error {
            depot::FindError::NotFound(error) => depot::MoveError::NotFound(error),
            depot::FindError::System(error) => error.into(),
        })?;
        let listener = self.listener.lock().unwrap().clone();
        match listener {
            Some(listener) => listener.moved(plate, place).await?,
            None => return Err(Busy.into()),
        }
        Ok(1)
    }

    async fn ping(&self, n: i32) -> Result<(), SystemException> {
        self.pings.lock().unwrap().push(n);
        Ok(())
    }

    async fn echo(&self, d: Bytes) -> Result<Bytes, SystemException> {
        Ok(d)
    }

    async fn many(&self, a: &str, d: WChar) -> Result<depot::ManyReply, SystemException> {
        let c = Char::try_from('x').unwrap();
        Ok(depot::ManyReply { result: a.len() as i32, b: true, c, d, e: LongDouble::from(0.25) })
    }
}

impl GarageServant for Servant {
    async fn all(&self) -> Result<Vec<Vehicle>, SystemException> {
        Ok(self.vehicles.lock().unwrap().clone())
    }
}

#[derive(Default)]
struct Watcher {
    seen: Arc<Mutex<Vec<String>>>,
}

impl ListenerServant for Watcher {
    async fn moved(&self, plate: &str, place: &Place) -> Result<(), SystemException> {
        self.seen.lock().unwrap().push(format!("{plate} {} {}", place.lat, place.lon));
        Ok(())
    }
}

fn vehicle(plate: &str) -> Vehicle {
    Vehicle {
        plate: plate.to_owned(),
        driver: WString::from("Zoë €"),
        kind: Kind::Truck,
        place: Place { lat: 1.5, lon: -2.5 },
        route: vec![Place::default(), Place { lat: 3.0, lon: 4.0 }],
        picture: Bytes::from(vec![7; 100_000]),
        odometer: Seq::from((0..10_000).collect::<Vec<i32>>()),
        grid: [[1, 2], [3, 4]],
        trailers: vec![Vehicle { plate: "trailer".to_owned(), ..Vehicle::default() }],
    }
}

/// Runs a test on a reference to another ORB, and on one whose calls are direct calls of the servant.
async fn both<F: Future<Output = ()>>(test: impl Fn(GarageRef, ListenerRef, Arc<Mutex<Vec<String>>>) -> F) {
    let pair = transport::pair().await;
    let garage: GarageRef = pair.server.activate(Servant::default()).unwrap();
    let remote: GarageRef = pair.client.resolve(&garage.to_string()).await.unwrap();
    for garage in [remote, garage] {
        let watcher = Watcher::default();
        let seen = Arc::clone(&watcher.seen);
        let listener: ListenerRef = pair.client.activate(watcher).unwrap();
        test(garage, listener, seen).await;
    }
}

#[tokio::test]
async fn values_of_all_types_arrive_unchanged() {
    both(|garage, _, _| async move {
        let van = vehicle("van");
        let load = Load::Goods(Kind::Van, "milk".to_owned());
        let (load, tag) = garage.add(&van, load).await.unwrap();
        assert_eq!((load, tag), (Load::Goods(Kind::Van, "milk!".to_owned()), Tag::Number(7)));
        assert_eq!(garage.find("van").await.unwrap(), van);
        assert!(garage.all().await.unwrap().contains(&van));
        assert!(garage.size().await.unwrap() > 0);
        garage.set_title("Größe €").await.unwrap();
        assert_eq!(garage.title().await.unwrap(), "Größe €");
        let data = vec![1_u8; 300_000];
        assert_eq!(garage.echo(data.clone()).await.unwrap(), data);
        let reply = garage.many("12345678", WChar::try_from('€').unwrap()).await.unwrap();
        assert_eq!((reply.result, reply.b, reply.e.to_f64()), (8, true, 0.25));
        assert_eq!((char::from(reply.c), char::from(reply.d)), ('x', '€'));
    })
    .await;
}

#[tokio::test]
async fn exceptions_and_refused_arguments_are_typed() {
    both(|garage, _, _| async move {
        let error = garage.find("none").await.unwrap_err();
        assert_eq!(error, depot::FindError::NotFound(NotFound { plate: "none".to_owned() }));
        assert_eq!(error.to_string(), "Fleet::NotFound: plate \"none\"");
        let error = garage.add(&Vehicle::default(), Load::Persons(1)).await;
        assert_eq!(error, Err(garage::AddError::Busy(Busy)));
        let error = garage.many("123456789", WChar::default()).await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::BadParam);
    })
    .await;
}

#[tokio::test]
async fn a_discriminator_of_another_member_is_bad_param_and_not_sent() {
    let pair = transport::pair().await;
    let garage: GarageRef = pair.server.activate(Servant::default()).unwrap();
    let garage: GarageRef = pair.client.resolve(&garage.to_string()).await.unwrap();
    let wrong = Load::Goods(Kind::Car, String::new());
    match garage.add(&vehicle("x"), wrong).await {
        Err(depot::AddError::System(error)) => assert_eq!(error.kind, SystemExceptionKind::BadParam),
        other => panic!("{other:?}"),
    }
    assert_eq!(garage.size().await.unwrap(), 0);
}

#[tokio::test]
async fn references_travel_and_are_called_back() {
    both(|garage, listener, seen| async move {
        garage.watch(None).await.unwrap();
        assert!(garage.watcher().await.unwrap().is_none());
        garage.add(&vehicle("cab"), Load::default()).await.unwrap();
        assert_eq!(garage.r#move("cab", &Place::default()).await, Err(depot::MoveError::Busy(Busy)));
        garage.watch(&listener).await.unwrap();
        assert!(garage.watcher().await.unwrap().unwrap().is_equivalent(&listener));
        assert_eq!(garage.r#move("cab", &Place { lat: 1.0, lon: 2.0 }).await.unwrap(), 1);
        assert_eq!(*seen.lock().unwrap(), ["cab 1 2"]);
    })
    .await;
}

#[tokio::test]
async fn oneways_arrive_in_order_and_before_the_next_call() {
    let pair = transport::pair().await;
    let pings = Arc::new(Mutex::new(Vec::new()));
    let servant = Servant { pings: Arc::clone(&pings), ..Servant::default() };
    let garage: GarageRef = pair.server.activate(servant).unwrap();
    let garage: DepotRef = pair.client.resolve(&garage.to_string()).await.unwrap();
    for n in 0..100 {
        garage.ping(n).await.unwrap();
    }
    garage.size().await.unwrap();
    assert_eq!(*pings.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn references_narrow_and_widen() {
    let pair = transport::pair().await;
    let garage: GarageRef = pair.server.activate(Servant::default()).unwrap();
    let depot: DepotRef = pair.client.resolve(&garage.to_string()).await.unwrap();
    let garage: GarageRef = depot.narrow().await.unwrap();
    assert_eq!(garage.all().await.unwrap().len(), 0);
    let widened: DepotRef = (&garage).into();
    assert_eq!(widened.size().await.unwrap(), 0);
    let error = depot.narrow::<ListenerRef>().await.unwrap_err().to_string();
    assert!(error.contains("IDL:Fleet/Listener:1.0") && error.contains("IDL:Fleet/Garage:1.0"), "{error}");
}

#[tokio::test]
async fn a_local_reference_needs_no_orb() {
    let garage: GarageRef = zorb::testing::local(Servant::default());
    garage.set_title("local").await.unwrap();
    assert_eq!(garage.title().await.unwrap(), "local");
    let error = SystemException::from(garage.find("x").await.unwrap_err());
    assert_eq!(error.kind, SystemExceptionKind::Unknown);
    assert!(error.to_string().contains("Fleet::NotFound"), "{error}");
}

/// Generic code over any interface names the bound of `activate`.
fn publish<R: zorb::Serves<S>, S>(orb: &Orb, name: &str, servant: S) -> R {
    orb.activate_named(name, servant).unwrap()
}

#[tokio::test]
async fn remote_exception_names_its_operation_and_peer() {
    let pair = transport::pair().await;
    let garage: GarageRef = publish(&pair.server, "garage", Servant::default());
    let remote: GarageRef = pair.client.resolve(&garage.to_string()).await.unwrap();
    assert!(pair.server.deactivate(&garage));
    let error = remote.size().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
    let who = format!("raised by `_get_size` at {}", pair.server_peer());
    assert!(error.to_string().ends_with(&who), "{error}");
}
