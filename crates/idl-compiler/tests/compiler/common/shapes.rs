//! Texts of `n` parts of some kind, each of which might make the others dearer.

/// What it is called, and the text of a size.
pub(crate) type Shape = (&'static str, fn(usize) -> String);

fn each(n: usize, part: impl Fn(usize) -> String) -> String {
    (0..n).map(part).collect()
}

/// So many levels of definitions that are built of each other are allowed, with some to spare.
const LEVELS: usize = 20;

/// As many chains of definitions as give `n` of them, each chain with names of its own.
fn chains(n: usize, first: fn(usize) -> String, next: fn(usize, usize) -> String) -> String {
    let chain = |number| first(number) + &(1..LEVELS).map(|level| next(number, level)).collect::<String>();
    each(n.div_ceil(LEVELS), chain)
}

pub(crate) const SHAPES: &[Shape] = &[
    ("ports of port types", |n| {
        let fixed = "interface I { long f(); };\nporttype P { uses I a; provides I b; };\nporttype Q { port P c; mirrorport P d; };\n";
        fixed.to_owned() + &format!("component C {{ {} }};", each(n, |i| format!("port Q p{i};\n")))
    }),
    ("port types that double", |n| {
        let level =
            |level| format!("porttype P{} {{ port P{level} a; mirrorport P{level} b; }};\n", level + 1);
        let first = "interface I { };\nporttype P0 { provides I a; };\n".to_owned();
        let levels = n.ilog2() as usize;
        first + &each(levels, level) + &format!("component C {{ port P{levels} p; }};\n")
    }),
    ("components and homes", |n| {
        let event = "eventtype E { public long a; };\ninterface I { long f(); };\n".to_owned();
        event
            + &each(n, |i| {
                format!(
                    "component C{i} {{ uses multiple I many; publishes E outward; consumes E inward; }};\nhome H{i} manages C{i} {{ }};\n"
                )
            })
    }),
    ("early prefixes", |n| {
        let prefixes = each(n, |i| format!("typeprefix M{i} \"p{i}\";\n"));
        prefixes + &each(n, |i| format!("module M{i} {{ const long c = 1; }};\n"))
    }),
    ("late prefixes", |n| {
        let modules = each(n, |i| format!("module M{i} {{ const long c = 1; }};\n"));
        modules + &each(n, |i| format!("typeprefix M{i} \"p{i}\";\n"))
    }),
    ("operations of one interface", |n| {
        format!("interface I {{ {} }};", each(n, |i| format!("void f{i}(in long a);\n")))
    }),
    ("attributes of one interface", |n| {
        format!("interface I {{ {} }};", each(n, |i| format!("attribute long a{i};\n")))
    }),
    ("interfaces", |n| each(n, |i| format!("interface I{i} {{ long f(in string a); }};\n"))),
    ("diamonds of interfaces", |n| {
        chains(
            n,
            |chain| format!("interface A{chain}_0 {{ }};\n"),
            |chain, level| {
                let below = level - 1;
                format!(
                    "interface L{chain}_{level} : A{chain}_{below} {{ }};
                     interface R{chain}_{level} : A{chain}_{below} {{ }};
                     interface A{chain}_{level} : L{chain}_{level}, R{chain}_{level} {{ }};\n"
                )
            },
        )
    }),
    ("structs that hold two of the next", |n| {
        chains(
            n,
            |chain| format!("struct S{chain}_0 {{ long a; }};\n"),
            |chain, level| {
                let below = level - 1;
                format!("struct S{chain}_{level} {{ S{chain}_{below} a; S{chain}_{below} b[2]; }};\n")
            },
        )
    }),
    ("unions that hold two of the next", |n| {
        chains(
            n,
            |chain| format!("struct S{chain}_0 {{ string a; }};\n"),
            |chain, level| {
                let below = level - 1;
                format!(
                    "union S{chain}_{level} switch (long) {{ case 1: S{chain}_{below} a; case 2: sequence<S{chain}_{below}> b; }};\n"
                )
            },
        )
    }),
    ("structs that hold one large struct", |n| {
        let large = format!("struct S {{ {} }};\n", each(n, |i| format!("long a{i};")));
        large + &each(n, |i| format!("struct S{i} {{ S a; S b[3]; }};\n"))
    }),
    ("structs without padding that hold one large struct", |n| {
        let large = format!("@zero_copy struct S {{ {} }};\n", each(n, |i| format!("long a{i};")));
        large + &each(n, |i| format!("@zero_copy struct S{i} {{ S a; S b; }};\n"))
    }),
    ("values in a ring", |n| {
        let forward = each(n, |i| format!("valuetype V{i};\n"));
        let ring = |i| format!("valuetype V{i} {{ public V{} next; public any a; }};\n", (i + 1) % n);
        let calls = |i| format!("interface I{i} {{ void f(in V{i} v); }};\n");
        format!("local interface L {{ }};{forward}{}{}", each(n, ring), each(n, calls))
    }),
    ("names used in an interface of many bases", |n| {
        let bases = each(n, |i| format!("interface B{i} {{ }}; struct S{i} {{ long a; }};\n"));
        let list: Vec<String> = (0..n).map(|i| format!("B{i}")).collect();
        let uses = each(n, |i| format!("void f{i}(in S{i} s);"));
        format!("{bases}interface I : {} {{ {uses} }};", list.join(", "))
    }),
    ("names of one scope", |n| each(n, |i| format!("struct S{i} {{ long a; }}; "))),
    ("reopened modules", |n| each(n, |i| format!("module M {{ typedef long T{i}; }};\n"))),
    ("constants of constants", |n| {
        format!("const long C0 = 1;{}", each(n, |i| format!("const long C{} = C{i} % 7 + 1;\n", i + 1)))
    }),
];
