//! Conversion of IDL comments to rustdoc, and default documentation of items without a comment.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{Annotation, Docs, Member, Model};

/// Annotations about a member's values, which are part of the member's documentation.
const DOCUMENTED_ANNOTATIONS: &[&str] = &["optional", "default", "range", "min", "max", "unit"];

/// Returns the documentation of a member: the comment or a default text, and its annotations.
pub(super) fn member_docs(model: &Model, what: &str, member: &Member) -> TokenStream {
    let text = format!("{what} `{}`: IDL `{}`.", member.name, model.describe(member.ty));
    let is_documented = |annotation: &&Annotation| DOCUMENTED_ANNOTATIONS.contains(&annotation.name.as_str());
    let documented = member.annotations.0.iter().filter(is_documented);
    let documented: Vec<String> = documented.map(|annotation| annotation_text(model, annotation)).collect();
    match documented.as_slice() {
        [] => doc(&member.docs, &text),
        documented => doc_and_paragraph(&member.docs, &text, &format!("`{}`", documented.join(" "))),
    }
}

/// Returns the text of an annotation in the IDL, with the white space in arguments reduced.
fn annotation_text(model: &Model, annotation: &Annotation) -> String {
    let args = annotation.args.iter().map(|arg| {
        let value = model.sources().snippet(arg.span).split_whitespace().collect::<Vec<_>>().join(" ");
        match &arg.name {
            Some(name) => format!("{name} = {value}"),
            None => value,
        }
    });
    match args.collect::<Vec<_>>().as_slice() {
        [] => format!("@{}", annotation.name),
        args => format!("@{}({})", annotation.name, args.join(", ")),
    }
}

/// Returns `#[doc]` attributes: the comment in the IDL, or `default` if there is none.
pub(super) fn doc(docs: &Docs, default: &str) -> TokenStream {
    let mut lines = comment_lines(docs);
    if lines.iter().all(|line| line.trim().is_empty()) {
        lines = vec![format!(" {default}")];
    }
    quote!(#(#[doc = #lines])*)
}

/// Returns `#[doc]` attributes: the comment in the IDL or `default`, followed by another paragraph.
pub(super) fn doc_and_paragraph(docs: &Docs, default: &str, more: &str) -> TokenStream {
    let first = doc(docs, default);
    let more = format!(" {more}");
    quote!(#first #[doc = ""] #[doc = #more])
}

/// Returns `#[doc]` attributes: a line that describes the item, followed by the comment in the IDL.
pub(super) fn line_and_doc(first: &str, docs: &Docs) -> TokenStream {
    let first = format!(" {first}");
    let lines = comment_lines(docs);
    let gap = (!lines.is_empty()).then(|| quote!(#[doc = ""]));
    quote!(#[doc = #first] #gap #(#[doc = #lines])*)
}

/// Returns the lines of a comment, changed such that rustdoc tests no code block without a language. Such a
/// block gets the language `text`, and the indentation outside of code blocks is limited.
fn comment_lines(docs: &Docs) -> Vec<String> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::with_capacity(docs.lines.len());
    for line in &docs.lines {
        let text = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| text.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => {
                fence = Some(marker);
                let bare = text.trim_start_matches(['`', '~']).trim().is_empty();
                let info = if bare { "text" } else { "" };
                lines.push(format!(" {}{info}", text.trim_end()));
            }
            (Some(open), Some(marker)) if open == marker => {
                fence = None;
                lines.push(format!(" {}", text.trim_end()));
            }
            (Some(_), _) => lines.push(format!(" {line}")),
            (None, None) => lines.push(format!(" {}{text}", " ".repeat(indentation(line).min(2)))),
        }
    }
    if let Some(marker) = fence {
        lines.push(format!(" {marker}"));
    }
    lines
}

fn indentation(line: &str) -> usize {
    let white_space = line.chars().take_while(|c| c.is_whitespace());
    white_space.map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        comment_lines(&Docs { lines: text.split('\n').map(str::to_owned).collect() })
    }

    #[test]
    fn code_in_a_comment_is_not_a_doc_test() {
        assert_eq!(lines("a\n\n        code();\n\tmore"), [" a", " ", "   code();", "   more"]);
        assert_eq!(lines("```\nx\n```\n```idl\ny\n```"), [" ```text", " x", " ```", " ```idl", " y", " ```"]);
        assert_eq!(lines("```\n    code\n~~~"), [" ```text", "     code", " ~~~", " ```"]);
    }

    #[test]
    fn a_declaration_without_comment_gets_the_default_line() {
        let docs = doc(&Docs::default(), "IDL struct.").to_string();
        assert!(docs.contains("\" IDL struct.\""), "{docs}");
        let docs = doc(&Docs { lines: vec!["Mine.".to_owned()] }, "IDL struct.").to_string();
        assert!(docs.contains("\" Mine.\"") && !docs.contains("IDL struct."), "{docs}");
    }
}
