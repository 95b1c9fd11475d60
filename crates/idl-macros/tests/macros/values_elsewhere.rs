//! Value types and abstract interfaces whose Rust another `idl!` has made.

mod common {
    idl_macros::idl!("tests/idl/common/zoo.idl");
}

mod referring {
    idl_macros::idl!(
        "tests/idl/park.idl",
        include = "tests/idl/common",
        extern("::Zoo" = crate::values_elsewhere::common::zoo),
        include_policy = extern,
    );
}

use crate::orbs::{Orbs, run};
use common::zoo::{
    Animal, AnimalFactory, AnimalOps, Described, DescribedOps, DescribedRef, DescribedServant, KeeperServant,
    Named, NamedOps, Note, Pair, described,
};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::typecode::Typed;
use giop_codec::value::{Factories, Value, ValueForm, ValueType};
use giop_codec::{ByteOrder, Version};
use referring::park::{
    Bird, BirdOps, Crate, GateRef, GateServant, Jewel, JewelOps, RichOps, RichRef, RichServant,
};
use zorb::{AbstractReference, SystemException};

impl DescribedOps for Animal {
    fn describe(&self) -> Result<String, described::DescribeError> {
        Ok(format!("the animal {}", self.name))
    }
}

impl NamedOps for Animal {
    fn title(&self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }
}

impl AnimalOps for Animal {}

impl AnimalFactory for Animal {
    fn born(name: &str) -> Result<Animal, common::zoo::animal::BornError> {
        match name {
            "" => Err(described::Dumb { why: "no name".to_owned() }.into()),
            name => Ok(Animal { name: name.to_owned(), age: 0 }),
        }
    }
}

impl DescribedOps for Bird {
    fn describe(&self) -> Result<String, described::DescribeError> {
        Ok(format!("{} with wings", self.base.describe()?))
    }
}

impl NamedOps for Bird {
    fn title(&self) -> Result<String, SystemException> {
        self.base.title()
    }
}

impl AnimalOps for Bird {}

impl BirdOps for Bird {
    fn note(&self, of: Option<Value<Animal>>) -> Result<Option<Value<Note>>, SystemException> {
        Ok(of.map(|of| Value::new(Note(of.get().name.clone()))))
    }
}

impl DescribedOps for Jewel {
    fn describe(&self) -> Result<String, described::DescribeError> {
        Err(described::Dumb { why: "a stone".to_owned() }.into())
    }
}

impl RichOps for Jewel {
    fn worth(&self) -> Result<i32, SystemException> {
        Ok(1_000)
    }
}

impl JewelOps for Jewel {}

struct Gate;

impl KeeperServant for Gate {
    async fn echo(&self, a: Option<Value<Animal>>) -> Result<Option<Value<Animal>>, SystemException> {
        Ok(a)
    }
}

impl DescribedServant for Gate {
    async fn describe(&self) -> Result<String, described::DescribeError> {
        Ok("a gate".to_owned())
    }
}

impl RichServant for Gate {
    async fn worth(&self) -> Result<i32, SystemException> {
        Ok(3)
    }
}

impl GateServant for Gate {
    async fn find(
        &self,
        n: Option<Value<Named>>,
        d: Option<DescribedRef>,
    ) -> Result<Option<Value<Bird>>, SystemException> {
        let bird = n.and_then(|n| n.downcast::<Bird>());
        Ok(bird.or_else(|| d.and_then(|d| d.downcast())))
    }
}

/// What peers may send in place of a base.
fn factories() -> Factories {
    let mut factories = Factories::default();
    factories.register::<Bird>();
    factories.register::<Jewel>();
    factories.register::<Crate>();
    factories
}

fn bird(name: &str) -> Bird {
    Bird { base: Animal::born(name).unwrap(), span: 0.5, friend: Jewel::default().into() }
}

#[test]
fn a_value_derives_from_one_that_is_elsewhere() {
    let bird = Value::new(bird("wren"));
    let animal: Value<Animal> = bird.upcast();
    assert_eq!(animal.get().name, "wren");
    let named = animal.upcast::<Named>();
    assert_eq!(named.get().operations::<dyn NamedOps>().unwrap().title().unwrap(), "wren");
    let note = bird.get().note(Some(animal.clone())).unwrap().unwrap();
    assert_eq!(
        (note.get().0.as_str(), Bird::TRUNCATABLE_BASES),
        ("wren", &[<Animal as ValueForm>::REPOSITORY_ID][..])
    );
    assert_eq!(<Bird as ValueForm>::REPOSITORY_ID, "IDL:Park/Bird:1.0");
    assert_eq!(<Animal as ValueForm>::REPOSITORY_ID, "IDL:zoo.example.org/Zoo/Animal:1.0");
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut e = Encoder::new(order, Version::V1_2);
        Some(animal.clone()).encode(&mut e).unwrap();
        let octets = e.into_bytes();
        let factories = factories();
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).with_context(&factories);
        assert_eq!(
            Option::<Value<Animal>>::decode(&mut d).unwrap().unwrap().downcast::<Bird>().unwrap(),
            bird
        );
        // A receiver that knows only the base type.
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
        let cut = Option::<Value<Animal>>::decode(&mut d).unwrap().unwrap();
        assert_eq!(
            (cut.repository_id(), cut.get().name.as_str()),
            (<Animal as ValueForm>::REPOSITORY_ID, "wren")
        );
    }
    let failed = Animal::born("").unwrap_err();
    assert_eq!(failed.to_string(), "Zoo::Described::Dumb: why \"no name\"");
    let code = Bird::type_code().to_string();
    assert!(code.starts_with("valuetype Park::Bird : truncatable Zoo::Animal {"), "{code}");
    assert_eq!(Crate::from(Pair::default()).0.two, None);
}

#[test]
fn handles_convert_to_bases_that_are_elsewhere() {
    let orbs = Orbs::new(|builder| {
        builder.register_value_type::<Bird>().register_value_type::<Jewel>().register_value_type::<Crate>()
    });
    let rich = RichRef::from(Jewel::default());
    assert_eq!(run(rich.worth()).unwrap(), 1_000);
    let described: DescribedRef = rich.into();
    let dumb = described::Dumb { why: "a stone".to_owned() };
    assert_eq!(run(described.describe()).unwrap_err(), described::DescribeError::Dumb(dumb));
    let gate: GateRef = orbs.activate(Gate);
    for gate in [orbs.collocated(&gate), gate] {
        let rich = RichRef::from(&gate);
        assert_eq!((run(rich.worth()).unwrap(), run(rich.describe()).unwrap()), (3, "a gate".to_owned()));
        let described = DescribedRef::from(rich);
        assert!(described.as_object().is_some());
        assert_eq!(run(tell(&described)).unwrap(), "a gate");
        let wren = Value::new(bird("wren"));
        assert_eq!(run(tell(&DescribedRef::from(&wren))).unwrap(), "the animal wren with wings");
        let found = run(gate.find(wren.upcast::<Named>(), &described)).unwrap();
        assert_eq!(found, Some(wren.clone()));
        assert_eq!(run(gate.find(None::<Value<Named>>, &wren)).unwrap(), Some(wren.clone()));
        assert_eq!(run(gate.echo(wren.upcast::<Animal>())).unwrap().unwrap().downcast(), Some(wren));
    }
}

async fn tell(described: &impl Described) -> Result<String, described::DescribeError> {
    described.describe().await
}
