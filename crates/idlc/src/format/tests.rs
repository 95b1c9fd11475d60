//! Tests of the formatter.

use super::*;

#[track_caller]
fn assert_formatted(text: &str, expected: &str) {
    let out = format_text(text).unwrap();
    assert_eq!(out, expected, "\n{out}");
    assert_eq!(format_text(&out).unwrap(), out, "formatted text must not change again");
}

#[test]
fn lines_are_indented_by_the_open_brackets() {
    assert_formatted(
        "module  M{\ninterface  I:Base ,Other{\nvoid op( in long  a,\nin string<8>b )raises( X ,Y );\nreadonly attribute ::M::T t;\n};\n};",
        "module M {\n    interface I : Base, Other {\n        void op(in long a,\n            in string<8> b) raises (X, Y);\n        readonly attribute ::M::T t;\n    };\n};\n",
    );
}

#[test]
fn unions_enums_and_constants_are_formatted() {
    assert_formatted(
        "union U switch(long){\ncase 1 :case -2: long  a;\ndefault:\nsequence <sequence<long>,3>b[2] [3];\n};\nenum E{A,B ,\nC};\nconst long X=-1+ ( 2<<3 )*~4;\nconst double D = 1.5e-3;\n",
        "union U switch (long) {\n    case 1: case -2: long a;\n    default:\n        sequence<sequence<long>, 3> b[2][3];\n};\nenum E { A, B,\n    C };\nconst long X = -1 + (2 << 3) * ~4;\nconst double D = 1.5e-3;\n",
    );
}

#[test]
fn parameters_of_template_modules_are_formatted() {
    assert_formatted(
        "module M<typename T ,const long N,sequence <T>Q>{\nalias ::Other < T,N >Names;\ntypedef sequence<T,N> L;\n};\nmodule ::A::M <sequence <long>,(1+2),sequence<long> >X;\n",
        "module M<typename T, const long N, sequence<T> Q> {\n    alias ::Other<T, N> Names;\n    typedef sequence<T, N> L;\n};\nmodule ::A::M<sequence<long>, (1 + 2), sequence<long> > X;\n",
    );
}

#[test]
fn comments_and_directives_are_kept() {
    assert_formatted(
        "#ifndef A // x\n#define A \\\n    1\n/* a\n   b */\nmodule M { // why\n/** one\n* two\n*/\n\n\n  struct S { long a; /* in */ char b; };\n\n};\n#endif\n",
        "#ifndef A // x\n#define A \\\n    1\n/* a\n   b */\nmodule M { // why\n    /** one\n     * two\n     */\n\n    struct S { long a; /* in */ char b; };\n};\n#endif\n",
    );
}

#[test]
fn literals_and_skipped_text_are_not_changed() {
    assert_formatted(
        "const string S=\"a  \\\" // b\";\nconst wchar W=L'\\'' ;\n",
        "const string S = \"a  \\\" // b\";\nconst wchar W = L'\\'';\n",
    );
    assert_formatted(
        "#if 0\n  it isn't   IDL\n#if 1\n#else\n#endif\n#else\nconst long A=1;\n#endif\n",
        "#if 0\n  it isn't   IDL\n#if 1\n#else\n#endif\n#else\nconst long A = 1;\n#endif\n",
    );
    assert!(format_text("#ifdef NOTES\nit isn't IDL\n#endif\nconst long A=1;\n").is_ok());
    assert_eq!(format_text("const string S = \"a\n;"), Err(1));
    assert_eq!(format_text("\n/* a"), Err(2));
}

#[test]
fn line_ends_are_kept() {
    assert_formatted("struct S {\r\nlong a;\r\n};\r\n", "struct S {\r\n    long a;\r\n};\r\n");
    assert_formatted("\u{feff}struct S { };", "struct S {};\n");
    assert_formatted("", "");
}

/// Formats all IDL files in this repository, even incorrect ones, and those of omniORB if it is installed.
#[test]
fn formatting_loses_no_token_and_is_idempotent() {
    let mut folders =
        vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")), "/usr/share/idl".into()];
    let mut file_count = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "idl") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let Ok(before) = split_pieces(&text) else { continue };
                let out = Formatter::default().format(&before);
                assert!(is_equal(&before, &split_pieces(&out).unwrap()), "{}\n{out}", path.display());
                assert_eq!(format_text(&out).unwrap(), out, "{}", path.display());
                file_count += 1;
            }
        }
    }
    assert!(file_count > 50, "{file_count} files");
}

#[test]
fn annotations_and_value_types_are_formatted() {
    assert_formatted(
        "@topic( name=\"x\" )struct S{@key long a;};\nvaluetype V:truncatable Base supports I{public long a;factory make(in long a);};\n",
        "@topic(name = \"x\") struct S { @key long a; };\nvaluetype V : truncatable Base supports I { public long a; factory make(in long a); };\n",
    );
}
