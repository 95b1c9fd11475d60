//! Object keys from strangers.
//!
//! A key that parses encodes to the same bytes and has its id at the stated position. Its POA names are
//! valid, or none is returned.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orb_runtime::inside::{Key, MAX_KEY_BYTES, PoaPath, PoaPathBuf, SlotId, SystemId, is_reserved};
use orb_runtime::poa::{LifespanPolicy, ObjectId};

fuzz_target!(|data: &[u8]| {
    let Ok(key) = Key::parse(data) else {
        assert!(is_reserved(data) || data.len() > MAX_KEY_BYTES, "whatever else is a plain key");
        return;
    };
    assert_eq!(key.encode().as_deref(), Ok(data), "{key:?}");
    let id = key.object_id();
    assert_eq!(Some(id.as_slice()), data.get(key.id_offset()..), "{key:?}");
    assert_eq!(id.to_text().ok().map(ObjectId::from).unwrap_or(id.clone()), id);
    for lifespan in LifespanPolicy::ALL {
        if let Some(chosen) = SystemId::parse(*lifespan, id.as_slice()) {
            assert_eq!(chosen.object_id(), id);
        }
    }
    match key {
        Key::Active { slot, .. } | Key::Transient { poa: slot, .. } => {
            assert_eq!(SlotId::from_bytes(slot.to_bytes()), slot);
        }
        Key::Persistent { path, .. } | Key::Layered { path, .. } => names(path),
        Key::Plain(_) => assert!(!is_reserved(data)),
    }
});

fn names(path: PoaPath<'_>) {
    let Ok(names) = path.names() else { return };
    let again = names.fold(PoaPathBuf::default(), |path, name| match path.child(name) {
        Ok(child) => child,
        Err(error) => panic!("{name:?} came in a path, but {error}"),
    });
    assert_eq!(again.as_path(), path);
}
