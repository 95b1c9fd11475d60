//! Large IDL as projects have it: modules with some of everything, built on each other three deep.

use std::fmt::Write as _;

/// IDL of about so many lines: modules with names of their own, comments, and uses of the module before.
pub(crate) fn idl(lines: usize) -> String {
    let mut text = String::from("#pragma prefix \"corpus.org\"\n");
    for n in 0..lines.div_ceil(MODULE.lines().count()) {
        let before = if n % 3 == 0 { "Root".to_owned() } else { format!("Area{}", n - 1) };
        if n == 0 {
            text.push_str(FIRST);
        }
        let _ = write!(text, "{}", MODULE.replace("@N@", &n.to_string()).replace("@BEFORE@", &before));
    }
    text
}

const FIRST: &str = "module Root {
    typedef unsigned long long Key;
    struct Entry { Key id; string<64> name; };
    typedef sequence<Entry> Entries;
    exception Missing { Key id; string why; };
    enum Kind { basic, derived };
    interface Store { Entry find(in Key id) raises (Missing); };
    valuetype Node { public Key id; public Node next; };
};
";

const MODULE: &str = "
/**
 * Area @N@ of the corpus: what a service of its size declares.
 */
module Area@N@ {
    const long MOST = (1 << 4) + @N@ * 2;
    const string TITLE = \"Area \" \"@N@\";
    typedef unsigned long long Key;
    typedef sequence<octet> Blob;
    typedef double Matrix[4][4];

    enum Kind { basic, derived, other };

    /// One thing that is stored.
    struct Entry {
        Key id;
        string<64> name;
        Kind sort;
        Blob content;
        @BEFORE@::Entry origin;
        Matrix place;
        sequence<Key, 8> links;
    };
    typedef sequence<Entry> Entries;

    union Choice switch (Kind) {
        case basic: long number;
        case derived: Entry whole;
        default: string text;
    };

    exception Missing { Key id; string why; };

    /// Where entries are found.
    interface Store : @BEFORE@::Store {
        readonly attribute long size@N@;
        attribute string title@N@;
        Entry get@N@(in Key id) raises (Missing, @BEFORE@::Missing);
        void put@N@(in Entry one, inout Choice pick, out Entries others) raises (Missing);
        any ask@N@(in any question, in @BEFORE@::Store other);
        oneway void note@N@(in long value, in Blob text);
    };

    valuetype Node : @BEFORE@::Node { public Entry value@N@; private Node peer@N@; };
};
";
