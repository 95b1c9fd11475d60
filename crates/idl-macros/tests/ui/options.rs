// Options that do not exist or are malformed, each at its name.
idl_macros::idl! {
    colour = "red", include = ["x"], define = 5, include_policy = both, derive("A" Clone), default_bodies = 5, rename("A" = "B"), rename("C" = "D");
    struct A { long x; };
}

// Renamed what is not there, to what is no identifier.
idl_macros::idl!("struct E { long x; };", rename("E::y" = "z", "E::x" = "a b"));

// Two sources.
idl_macros::idl! { file = "some.idl"; struct F { long x; }; }

// A malformed option, and what is wrong after it.
idl_macros::idl!("struct G { long x; };", crate = 1, nonsense);

// Nothing is preprocessed among Rust tokens.
idl_macros::idl! { include = ["idl"]; struct H { long x; }; }

// Nothing that is included.
idl_macros::idl!("struct J { long x; };", extern("::J" = ::elsewhere));

// Nothing that derives, nothing with a body, a path that means something else in each module.
idl_macros::idl! {
    derive("K::*" = Clone, "L" = Clone, Clone), default_bodies("K", "L"), ami("K", "L"), crate = self::zorb;
    interface K { };
    struct M { long x; };
}

// Nothing that is interpreted, no uses, no name; then malformed ones.
idl_macros::idl! {
    interpretive("N", "O"), adaptive("N", "O", uses = 3), uses = "a b";
    interface N { };
}
idl_macros::idl!("struct P { long x; };", adaptive("P", uses = 0));
idl_macros::idl!("struct Q { long x; };", adaptive("Q"), interpretive = "Q", uses = all);
idl_macros::idl!("struct R { long x; };", adaptive("R", times = 3));

fn main() {}
