//! Tests of the preprocessor: a table of inputs and expected outputs, which gcc's preprocessor must produce
//! too.

use std::io::Write;
use std::process::{Command, Stdio};
use std::rc::Rc;

use super::scan::Cursor;
use super::{Item, Kind, MAX_DIRECTIVES, Preprocessor, Settings};
use crate::source::{FileInfo, Sources};

/// Returns the preprocessor's tokens, and `!` with the code of each error, separated by blanks.
fn preprocess(text: &str) -> String {
    let settings = Settings::default();
    let mut sources = Sources::default();
    let file = sources.add_text("test.idl".to_owned(), Rc::from(text), FileInfo::default());
    let mut preprocessor = Preprocessor::new(&settings, &mut sources);
    preprocessor.push_text(file);
    let mut out = Vec::new();
    while let Some(item) = preprocessor.next() {
        match item {
            Item::Token(piece) if piece.kind == Kind::Bad => {}
            Item::Token(piece) => out.push(piece.text.to_string()),
            Item::Doc { .. } => {}
            Item::Pragma(_, line) => {
                out.push("#pragma".to_owned());
                out.extend(line.iter().map(|piece| piece.text.to_string()));
            }
        }
    }
    let found = preprocessor.diagnostics.finish(Rc::new(Sources::default()));
    let errors = found.err().into_iter().flat_map(|errors| errors.iter().map(|e| e.code).collect::<Vec<_>>());
    out.extend(errors.map(|code| format!("!{code}")));
    out.join(" ")
}

/// Returns the tokens of a text in the format of `preprocess`.
fn tokens(text: &str) -> String {
    let mut cursor = Cursor::new(0, Rc::from(text));
    let mut out = Vec::new();
    while let Some(piece) = cursor.next() {
        if !matches!(piece.kind, Kind::Newline | Kind::Doc { .. }) {
            out.push(piece.text.to_string());
        }
    }
    out.join(" ")
}

/// Returns the result of gcc's preprocessor; `None` if it reports errors.
fn gcc_preprocess(text: &str) -> Option<String> {
    let mut child = Command::new("cpp")
        .args(["-P", "-undef", "-nostdinc", "-std=gnu2x", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("cpp starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("cpp reads");
    let output = child.wait_with_output().expect("cpp ends");
    output.status.success().then(|| tokens(&String::from_utf8_lossy(&output.stdout)))
}

/// Inputs and expected outputs of [`preprocess`]. `!` stands for any output with an error.
const TABLE: &[(&str, &str)] = &[
    ("a b/* c */d // e\nf", "a b d f"),
    ("a\\\nb c\\\n d", "ab c d"),
    ("/\\\n/ comment\nx", "x"),
    ("\"a/*b*/\" '\"' \"\\\"\" x", "\"a/*b*/\" '\"' \"\\\"\" x"),
    ("#define X 1\nX XX \"X\" 'X'", "1 XX \"X\" 'X'"),
    ("#define X\na X b", "a b"),
    ("#define X Y\n#define Y X\nX Y", "X Y"),
    ("#define A A B\n#define B A\nA", "A A"),
    ("#define F(x) [x]\nF(1) F (2) F\nF\n(3)", "[ 1 ] [ 2 ] F [ 3 ]"),
    ("#define F (x)\nF(1)", "( x ) ( 1 )"),
    ("#define F() x\nF() F( ) F", "x x F"),
    ("#define F(x,y) x-y\nF((1,2),3) F(,) F( a , )", "( 1 , 2 ) - 3 - a -"),
    ("#define F(x) x x\n#define G(x) F(F(x))\nG(1)", "1 1 1 1"),
    ("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2 * 9 * g"),
    (
        "#define z z[0]\n#define f(a) f(z * (a))\nf(1) f(z)",
        "f ( z [ 0 ] * ( 1 ) ) f ( z [ 0 ] * ( z [ 0 ] ) )",
    ),
    (
        "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\nf(y+1) + f(f(z)) % t(t(g)(0) + t)(1);\ng(x+(3,4)-w) | h 5) & m\n(f)^m(m);",
        "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 ) ; f ( 2 * ( 2 + ( 3 , 4 ) - 0 , 1 ) ) | f ( 2 * ( ~ 5 ) ) & f ( 2 * ( 0 , 1 ) ) ^ m ( 0 , 1 ) ;",
    ),
    ("#define S(x) #x\nS( a  b ) S(\"q\\n\") S('\"') S() S(a,b)", "!"),
    ("#define S(x) #x\nS( a  b ) S(\"q\\n\") S('\"') S()", "\"a b\" \"\\\"q\\\\n\\\"\" \"'\\\"'\" \"\""),
    ("#define S(x) #x\n#define X(x) S(x)\n#define Y 1 + 2\nS(Y) X(Y)", "\"Y\" \"1 + 2\""),
    ("#define S(x) # x\nS(a\n/* c */ b) S(@ `)", "\"a b\" \"@ `\""),
    ("#define P(a,b) a##b\nP(x,1) P(1,2) P(,y) P(x,) P(,) P(<,<) P(:,:)", "x1 12 y x << ::"),
    ("#define P(a,b) a ## b\n#define xy done\nP(x,y) P(P(x,y),z)", "!"),
    ("#define P(a,b) a ## b\n#define xy done\nP(x,y)", "done"),
    ("#define P(a,b) a ## b\n#define Q(a,b) P(a,b)\n#define A x\nP(A,1) Q(A,1)", "A1 x1"),
    ("#define C(a,b,c) a ## b ## c\nC(x,,z) C(1,2,3)", "xz 123"),
    (
        "#define hash_hash # ## #\n#define mkstr(a) # a\n#define in_between(a) mkstr(a)\n#define join(c, d) in_between(c hash_hash d)\njoin(x, y)",
        "\"x ## y\"",
    ),
    (
        "#define t(x,y,z) x ## y ## z\nt(1,2,3) t(,4,5) t(6,,7) t(8,9,) t(10,,) t(,11,) t(,,12) t(,,)",
        "123 45 67 89 10 11 12",
    ),
    (
        "#define str(s) # s\n#define xstr(s) str(s)\n#define debug(s, t) f(\"x\" # s \"= %d\", x ## s, x ## t)\n#define INCFILE(n) vers ## n\ndebug(1, 2); xstr(INCFILE(2).h)",
        "f ( \"x\" \"1\" \"= %d\" , x1 , x2 ) ; \"vers2.h\"",
    ),
    ("#define V(...) [__VA_ARGS__]\nV() V(1) V(1,2) V((1,2),3)", "[ ] [ 1 ] [ 1 , 2 ] [ ( 1 , 2 ) , 3 ]"),
    (
        "#define V(a, ...) a:__VA_ARGS__;#__VA_ARGS__\nV(1) V(1,) V(1,2, 3)",
        "1 : ; \"\" 1 : ; \"\" 1 : 2 , 3 ; \"2, 3\"",
    ),
    ("#define E(f, args...) p(f, ## args)\nE(1) E(1, 2, 3)", "p ( 1 ) p ( 1 , 2 , 3 )"),
    (
        "#define E(f, ...) p(f __VA_OPT__(,) __VA_ARGS__)\nE(1) E(1,) E(1, 2, 3)",
        "p ( 1 ) p ( 1 ) p ( 1 , 2 , 3 )",
    ),
    ("#define EMPTY\n#define V(...) __VA_OPT__(x ## 1) y\nV() V(EMPTY) V(2)", "y y x1 y"),
    ("#define LPAREN (\n#define F(x) <x>\n#define G F LPAREN 1)\nG", "F ( 1 )"),
    ("#define F(x) x F\nF(1)(2)(3)", "1 F ( 2 ) ( 3 )"),
    ("#define NIL(x) x\n#define G_0(a) NIL(G_1)(a)\n#define G_1(a) a\nG_0(42)", "42"),
    ("#define AA BB\n#define BB AA CC\nAA BB", "AA CC BB CC"),
    ("#define F(x) #x x\n#define ONE 1\nF(ONE)", "\"ONE\" 1"),
    ("#define X 1\n#undef X\n#undef X\nX", "X"),
    ("#define X 1\n#define X 1\n#define Y(a) a\n#define Y(a) a\nX Y(2)", "1 2"),
    ("#if 1\na\n#else\nb\n#endif\nc", "a c"),
    ("#if 0\na\n#elif 0\nb\n#elif 1\nc\n#elif 1\nd\n#else\ne\n#endif", "c"),
    ("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif", "c"),
    ("#if 1\na\n#elif 1/0\nb\n#endif", "a"),
    ("#ifdef X\na\n#endif\n#ifndef X\nb\n#endif\n#define X\n#ifdef X\nc\n#endif", "b c"),
    ("#if 0\ndon't /* \n#endif\nx", "x"),
    ("#if 0\n/* don't\n#endif\n*/ \"/*\"\n#endif\nx", "x"),
    ("#if 0\n\"\\\"/*\"\n#else\ny\n#endif\nx", "y x"),
    ("  # /* c */ if /* d */ 1 // e\nx\n # endif", "x"),
    ("#\n#/**/\nx", "x"),
    ("#if defined X || defined(Y) || !defined Z\na\n#endif", "a"),
    ("#define D defined(X)\n#define X\n#if D\na\n#endif", "a"),
    ("#if X == 0 && Y() == 0\na\n#endif", "!"),
    ("#define F(x) x\n#if F(2) > F(1)\na\n#endif", "a"),
    ("#if 1 + 2 * 3 == 7 && (1 + 2) * 3 == 9\na\n#endif", "a"),
    ("#if 10 - 4 - 3 == 3 && 100 / 10 / 5 == 2 && 7 % 4 == 3\na\n#endif", "a"),
    ("#if -7 / 2 == -3 && -7 % 2 == -1 && -1 >> 1 == -1\na\n#endif", "a"),
    ("#if 1 << 3 == 8 && 8 >> 1 == 4 && (5 & 6) == 4 && (5 | 6) == 7 && (5 ^ 6) == 3\na\n#endif", "a"),
    ("#if ~0 == -1 && !0 == 1 && -(-1) == +1 && - - 1\na\n#endif", "a"),
    ("#if -1 > 0u && 0xFFFFFFFFFFFFFFFF > 0 && 18446744073709551615u == -1\na\n#endif", "a"),
    ("#if 0x10 == 16 && 010 == 8 && 1L == 1 && 1ull == 1 && 0b11 == 3\na\n#endif", "a"),
    ("#if 'a' == 97 && '\\n' == 10 && '\\101' == 'A' && '\\x41' == 'A' && L'b' == 98\na\n#endif", "a"),
    ("#if 1 ? 0 : 1\na\n#elif 0 ? 1/0 : 2\nb\n#endif", "b"),
    ("#if 0 ? 1 : 0 ? 2 : 3\na\n#endif", "a"),
    ("#if (2 || 1/0) && !(0 && 1/0)\na\n#endif", "a"),
    ("#if 1 < 2 && 2 <= 2 && 3 >= 2 && 3 > 2 && 1 != 2\na\n#endif", "a"),
    ("#if 1 || 0 && 0\na\n#endif\n#if (1 || 0) && 0\nb\n#endif", "a"),
    ("#if 1 == 1 == 1\na\n#endif\n#if 5 == 5 == 5\nb\n#endif", "a"),
    ("#if 0 == 0u > -1\na\n#endif", "a"),
    ("#if 1/0\n#endif", "!"),
    ("#if 1 +\n#endif", "!"),
    ("#if (1\n#endif", "!"),
    ("#if\n#endif", "!"),
    ("#if 1.5\n#endif", "!"),
    ("#if \"x\"\n#endif", "!"),
    ("#if 0x\n#endif", "!"),
    ("#if 08\n#endif", "!"),
    ("#else\n", "!"),
    ("#endif\n", "!"),
    ("#if 1\n", "!"),
    ("#if 1\n#else\n#else\n#endif", "!"),
    ("#if 1\n#else\n#elif 1\n#endif", "!"),
    ("#define\n", "!"),
    ("#define defined\n", "!"),
    ("#define 1\n", "!"),
    ("#define F(\n", "!"),
    ("#define F(a,a)\n", "!"),
    ("#define F(a) #b\n", "!"),
    ("#define F ## a\n", "!"),
    ("#define F a ##\n", "!"),
    ("#define F(a,) a\n", "!"),
    ("#define F(x) x\nF(1,2)", "!"),
    ("#define F(x,y) x\nF(1)", "!"),
    ("#define F(x) x\nF(1", "!"),
    ("#define F() x\nF(1)", "!"),
    ("#error no\n", "!"),
    ("#line x\n", "!"),
    ("#include\n", "!"),
    ("#include \"no such file\"\n", "!"),
    ("/* no end", "!"),
    ("#nonsense\n", "!"),
    ("__LINE__\n__LINE__ \\\n__LINE__\n__LINE__", "1 2 3 4"),
    ("\n\n#line 70\n__LINE__\n__LINE__", "70 71"),
    ("\n#if __LINE__ == 2\nx\n#endif\n#line __LINE__\n__LINE__", "x 5"),
    ("#if 0\n#elif __LINE__ == 2\nx\n#elif __LINE__ == 4\ny\n#endif", "x"),
    ("#line 7\n#if 0\nz\n#elif __LINE__ == 9 && \\\n 1\nx\n#endif __LINE__\n__LINE__", "x 13"),
    ("#define L __LINE__\n#if L == 2\nx\n#endif\nL", "x 5"),
    ("#define N 5\n#line N \"f\\\\g\"\n__LINE__ __FILE__", "5 \"f\\\\g\""),
    ("#define F(x) __LINE__\n\nF(1)", "3"),
    ("# 33 \"x.idl\"\n__LINE__ __FILE__", "33 \"x.idl\""),
    ("__INCLUDE_LEVEL__", "0"),
    ("#pragma prefix \"a\"\nX\n#define P Q\n#pragma ID P \"x\"", "#pragma prefix \"a\" X #pragma ID P \"x\""),
    ("sequence<sequence<long>> a>>b", "sequence < sequence < long > > a > > b"),
    ("1.5e+3 .5 1. 0x1F 1e-2 5d 'a' L'b' L\"c\" L", "1.5e+3 .5 1. 0x1F 1e-2 5d 'a' L'b' L\"c\" L"),
    ("#define X 1\n#if X\\\n == 1\na\n#endif\n#def\\\nine Y 2\nY", "a 2"),
    ("#define SHR(a,b) a >> b\nSHR(1,2)", "1 > > 2"),
    ("#define P(a,b) a##b\nP(>,>) P(&,&) P(=,=)", "> > & & = ="),
    ("#define f(x) x\n#define g f(\ng 1) f\n#undef f\n(1)", "1 f ( 1 )"),
    ("#ident \"x\"\nx", "x"),
];

#[test]
fn table_inputs_give_the_expected_tokens() {
    for (text, expected) in TABLE {
        let found = preprocess(text);
        if *expected == "!" {
            assert!(found.contains('!'), "expected an error in\n{text}\nfound: {found}");
        } else {
            assert_eq!(found, *expected, "\n{text}");
        }
    }
}

#[test]
fn gcc_gives_the_expected_tokens_of_the_table() {
    if Command::new("cpp").arg("--version").output().is_err() {
        eprintln!("SKIPPED: cpp is not installed, the table is not compared with gcc");
        return;
    }
    for (text, expected) in TABLE {
        // gcc outputs `#ident`.
        let expected = match text.contains("#ident") {
            true => "# ident \"x\" x".to_owned(),
            false => tokens(expected),
        };
        match gcc_preprocess(text) {
            Some(found) => assert_eq!(found, expected, "\n{text}"),
            None => assert_eq!(expected, "!", "gcc reports an error in\n{text}"),
        }
    }
}

#[test]
fn files_of_omniorb_give_the_same_tokens_as_with_gcc() {
    let root = std::path::Path::new("/usr/share/idl/omniORB");
    let folders = [root.to_owned(), root.join("COS")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "idl"));
    if paths.is_empty() || Command::new("cpp").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED: cpp or the IDL files of omniORB are not installed, the files are not compared with gcc"
        );
        return;
    }
    let mut compared = 0;
    for path in paths {
        let output = Command::new("cpp")
            .args(["-P", "-undef", "-nostdinc", "-x", "c"])
            .args(folders.iter().flat_map(|folder| [std::ffi::OsStr::new("-I"), folder.as_os_str()]))
            .arg(&path)
            .output()
            .expect("cpp");
        // gcc fails if the package does not contain an included file.
        if !output.status.success() {
            continue;
        }
        let text: String = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(|line| !line.starts_with("#pragma"))
            .map(|line| format!("{line}\n"))
            .collect();
        let settings =
            Settings { files: Rc::new(super::Disk::new()), folders: folders.to_vec(), ..Settings::default() };
        let mut sources = Sources::default();
        let mut preprocessor = Preprocessor::new(&settings, &mut sources);
        preprocessor.push_input_files(std::slice::from_ref(&path));
        let mut out = Vec::new();
        while let Some(item) = preprocessor.next() {
            if let Item::Token(piece) = item {
                out.push(piece.text.to_string());
            }
        }
        assert_eq!(preprocessor.diagnostics.error_count(), 0, "{}", path.display());
        assert!(out.join(" ") == tokens(&text), "{} differs", path.display());
        compared += 1;
    }
    assert!(compared > 50, "only {compared} files were compared");
}

#[test]
fn exponential_expansion_and_deep_nesting_end_in_an_error() {
    let mut doubling = String::from("#define A0 x x\n");
    let mut vanishing = String::from("#define A0\n");
    let mut pasting = String::from("#define P(x) x ## x\n#define Q(x) P(x)\n#define A0 xxxxxxxx\n");
    for n in 1..60 {
        doubling.push_str(&format!("#define A{n} A{} A{}\n", n - 1, n - 1));
        vanishing.push_str(&format!("#define A{n} A{} A{}\n", n - 1, n - 1));
        pasting.push_str(&format!("#define A{n} Q(A{})\n", n - 1));
    }
    for bomb in [doubling, vanishing, pasting] {
        assert!(preprocess(&format!("{bomb}\nA59")).ends_with("!too-large"));
    }
    let mut arguments = String::from("#define F(x) x x x x x x x x\n");
    arguments.push_str(&format!("{}1{}", "F(".repeat(20), ")".repeat(20)));
    assert_eq!(preprocess(&arguments).rsplit(' ').next(), Some("!too-large"));
    let deep = format!("#define F(x) x\n{}1{}", "F(".repeat(1000), ")".repeat(1000));
    assert_eq!(preprocess(&deep), "!too-deep");
    let nested = format!("#if {}1{}\n#endif", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(preprocess(&nested), "!bad-condition");
    let signs = format!("#if {}1\n#endif", "-".repeat(5000));
    assert_eq!(preprocess(&signs), "!bad-condition");
    // These texts are long, but within the limits.
    let chain: String = (1..5000).map(|n| format!("#define A{n} A{}\n", n - 1)).collect();
    assert_eq!(preprocess(&format!("{chain}A4999")), "A0");
    let line = "x ".repeat(100_000);
    assert_eq!(preprocess(&format!("#define X {line}\nX")).len(), line.len() - 1);
    for lines in ["#line 5", "#pragma vendor", "#if 1", "#ident"] {
        let many = format!("{lines}\n").repeat(MAX_DIRECTIVES + 1);
        assert!(preprocess(&many).ends_with("!too-large"), "{lines}");
    }
}

#[test]
fn preprocessing_truncated_table_inputs_terminates() {
    for (text, _) in TABLE {
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            preprocess(&text[..at]);
            preprocess(&text[at..]);
        }
    }
}
