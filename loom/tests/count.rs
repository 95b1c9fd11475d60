//! Waiting for the requests of an object or of a POA, in every possible order of steps.

use loom::sync::Arc;
use loom::thread;
use zorb_loom::{Gate, Object, Request, Slots};

/// Three threads have too many orders: only those in which a thread is preempted up to three times are
/// explored.
fn bounded(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn no_request_runs_once_a_deactivation_has_completed() {
    bounded(|| {
        let object = Object::new(1, &Gate::open());
        let requests: Vec<_> = (0..2)
            .map(|_| {
                let object = Arc::clone(&object);
                thread::spawn(move || object.request())
            })
            .collect();
        assert!(object.retire());
        object.idle();
        object.finish();
        for request in requests {
            assert_ne!(request.join().unwrap(), Request::Refused);
        }
        assert_eq!(object.request(), Request::Gone);
        assert!(!object.is_busy());
    });
}

#[test]
fn a_request_calls_its_own_object_while_that_is_deactivated() {
    bounded(|| {
        let object = Object::new(1, &Gate::open());
        let requests: Vec<_> = (0..2)
            .map(|_| {
                let object = Arc::clone(&object);
                thread::spawn(move || object.request_again())
            })
            .collect();
        assert!(object.retire());
        object.idle();
        object.finish();
        for request in requests {
            assert_ne!(request.join().unwrap(), Request::Refused);
        }
        assert!(!object.is_busy());
    });
}

#[test]
fn no_request_runs_once_a_manager_that_closed_its_gate_has_waited() {
    bounded(|| {
        let gate = Gate::open();
        let object = Object::new(1, &gate);
        let requests: Vec<_> = (0..2)
            .map(|_| {
                let object = Arc::clone(&object);
                thread::spawn(move || object.request())
            })
            .collect();
        gate.close();
        object.idle();
        object.finish();
        for request in requests {
            assert_ne!(request.join().unwrap(), Request::Gone);
        }
        assert_eq!(object.request(), Request::Refused);
    });
}

#[test]
fn idle_count_after_the_gate_closes_means_no_running_request() {
    loom::model(|| {
        let gate = Gate::open();
        let object = Object::new(1, &gate);
        let request = {
            let object = Arc::clone(&object);
            thread::spawn(move || object.request())
        };
        gate.close();
        if object.is_busy() {
            object.idle();
        }
        object.finish();
        request.join().unwrap();
    });
}

/// Tests the models themselves: they detect an incorrect order of steps.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_request_that_looks_at_the_gate_before_it_enters_is_found_out() {
    loom::model(|| {
        let gate = Gate::open();
        let object = Object::new(1, &gate);
        let request = {
            let object = Arc::clone(&object);
            thread::spawn(move || object.hasty_request())
        };
        gate.close();
        object.idle();
        object.finish();
        request.join().unwrap();
    });
}

#[test]
fn last_request_notifies_once_and_wakes_the_waiter() {
    loom::model(|| {
        let gate = Gate::open();
        let object = Object::new(1, &gate);
        let requests: Vec<_> = (0..2)
            .map(|_| {
                assert!(object.enter());
                let object = Arc::clone(&object);
                thread::spawn(move || {
                    object.run();
                    object.leave();
                })
            })
            .collect();
        object.retire();
        // A missing notification is a deadlock, which loom reports.
        let waited = object.idle();
        object.finish();
        requests.into_iter().for_each(|request| request.join().unwrap());
        assert!(gate.told() <= 1 && (gate.told() == 1 || !waited), "{waited} {}", gate.told());
    });
}

#[test]
fn all_that_wait_are_reached_also_when_one_of_them_stops_watching() {
    bounded(|| {
        let gate = Gate::open();
        let object = Object::new(1, &gate);
        assert!(object.enter());
        let other = {
            let object = Arc::clone(&object);
            thread::spawn(move || object.idle())
        };
        let request = {
            let object = Arc::clone(&object);
            thread::spawn(move || {
                object.run();
                object.leave();
            })
        };
        object.idle();
        // At this point another request may enter before or after the other thread has waited.
        object.enter();
        object.leave();
        other.join().unwrap();
        request.join().unwrap();
        assert!(!object.is_busy());
    });
}

#[test]
fn a_request_that_is_set_aside_is_waited_for_as_well() {
    loom::model(|| {
        let object = Object::new(1, &Gate::open());
        assert!(object.enter());
        let request = {
            let object = Arc::clone(&object);
            thread::spawn(move || {
                // Counted again for the pending future; then the driver's visit ends.
                object.enter();
                object.leave();
                object.run();
                object.leave();
            })
        };
        object.retire();
        object.idle();
        object.finish();
        request.join().unwrap();
    });
}

#[test]
fn a_stale_key_leads_to_no_other_object_of_its_slot_and_to_none_that_is_finished() {
    loom::model(|| {
        let slots = Arc::new(Slots::new(1));
        let gate = Gate::open();
        let (index, first) = slots.activate(&gate).unwrap();
        let request = {
            let (slots, generation) = (Arc::clone(&slots), first.generation);
            thread::spawn(move || {
                let found = slots.find(index, generation)?;
                assert_eq!(found.generation, generation);
                Some(found.request())
            })
        };
        assert!(slots.deactivate(index, &first));
        let (again, second) = slots.activate(&gate).unwrap();
        assert_eq!(again, index, "the slot is used again");
        assert_ne!(second.generation, first.generation);
        first.idle();
        first.finish();
        assert!(slots.find(index, first.generation).is_none());
        assert_eq!(slots.find(index, second.generation).unwrap().request(), Request::Served);
        request.join().unwrap();
    });
}

#[test]
fn objects_that_come_and_go_at_once_have_keys_of_their_own() {
    bounded(|| {
        let slots = Arc::new(Slots::new(1));
        let gate = Gate::open();
        let (index, first) = slots.activate(&gate).unwrap();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (slots, gate) = (Arc::clone(&slots), Arc::clone(&gate));
                thread::spawn(move || {
                    let (index, object) = slots.activate(&gate)?;
                    let found = slots.find(index, object.generation);
                    assert!(found.is_some_and(|found| Arc::ptr_eq(&found, &object)));
                    Some(object.generation)
                })
            })
            .collect();
        let by_both = {
            let (slots, first) = (Arc::clone(&slots), Arc::clone(&first));
            thread::spawn(move || slots.deactivate(index, &first))
        };
        let mine = slots.deactivate(index, &first);
        assert!(mine != by_both.join().unwrap(), "one of two takes it out");
        let made: Vec<_> = others.into_iter().filter_map(|other| other.join().unwrap()).collect();
        assert!(made.len() <= 1 && !made.contains(&first.generation), "{made:?}");
    });
}
