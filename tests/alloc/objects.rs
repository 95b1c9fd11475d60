//! The memory of an object: a million of them, measured.

use allocation_counter::{AllocationInfo, measure};
use zorb::{Orb, Poa, Servant};

zorb::idl! {
    interface Nothing {};
}

/// A servant of eight bytes.
struct Small(#[expect(dead_code, reason = "it is there to be counted")] u64);

impl NothingServant for Small {}

const OBJECTS: u64 = 250_000;

fn servant(number: u64) -> Servant {
    Servant::of::<NothingRef, _>(Small(number))
}

/// Returns bytes and allocations per object: its counters and its entries, without the servant's own box.
fn cost(counted: AllocationInfo) -> (f64, f64) {
    let each = |sum: i64| sum as f64 / OBJECTS as f64;
    (each(counted.bytes_current) - 24.0, each(counted.count_current))
}

fn orb() -> (tokio::runtime::Runtime, Orb) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let orb = runtime.block_on(Orb::builder().build()).unwrap();
    (runtime, orb)
}

#[test]
fn an_object_found_by_index_takes_130_octets() {
    let (_runtime, orb) = orb();
    let root = orb.root_poa();
    let counted = measure(|| {
        for number in 0..OBJECTS {
            root.activate_object(servant(number)).unwrap();
        }
    });
    assert_eq!(orb.active_objects() as u64, OBJECTS);
    let (octets, allocations) = cost(counted);
    println!("by index: {octets:.1} octets, {allocations:.2} allocations");
    // An entry of 80 bytes with its counters, and slots of 24, of which the table has twice as many: the next
    // half is allocated early.
    assert!((104.0..=136.0).contains(&octets), "{octets}");
    assert!(allocations < 2.01, "{allocations}");
    // The slots are reused.
    let again = measure(|| {
        let ids: Vec<_> = (0..1000).map(|number| root.activate_object(servant(number)).unwrap()).collect();
        for id in &ids {
            root.deactivate_object(id).unwrap();
        }
    });
    assert!(again.bytes_current < 200_000, "{again:?}");
}

#[test]
fn an_object_found_by_its_id_takes_126_octets() {
    let (_runtime, orb) = orb();
    let poa = orb.root_poa().child("p").user_ids().persistent().create().unwrap();
    let counted = measure(|| {
        for number in 0..OBJECTS {
            poa.activate_object_with_id(&number.to_be_bytes().into(), servant(number)).unwrap();
        }
    });
    let (octets, allocations) = cost(counted);
    println!("by id: {octets:.1} octets, {allocations:.2} allocations");
    // An entry of 80 bytes with its counters, a map node of 16, its part of the table.
    assert!((96.0..=136.0).contains(&octets), "{octets}");
    assert!(allocations < 3.01, "{allocations}");
}

#[test]
fn an_object_of_a_default_servant_takes_nothing() {
    let (_runtime, orb) = orb();
    let poa: Poa =
        orb.root_poa().child("p").user_ids().default_servant(servant(0)).without_map().create().unwrap();
    let counted = measure(|| {
        for number in 0..OBJECTS {
            let object: NothingRef = poa.create_reference_with_id(number.to_be_bytes()).unwrap();
            drop(object);
        }
    });
    assert!(counted.bytes_current < 1000, "{counted:?}");
}
