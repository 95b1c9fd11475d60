//! What stands in the macro's parentheses: IDL, text, a path, options.

use idl_compiler::emit::Options;
use proc_macro2::{Delimiter, Literal, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, LitStr, Token};

/// A call of the macro.
pub(crate) struct Input {
    pub(crate) idl: Idl,
    pub(crate) options: Options,
    /// Of each entry of `rename`, the places of the two names.
    pub(crate) rename_spans: Vec<(Span, Span)>,
}

/// Where the IDL is.
pub(crate) enum Idl {
    /// In the macro as tokens.
    Tokens(TokenStream),
    /// In a string.
    Text(Literal),
    /// In a file: the literal and the path in it.
    File(Literal, String),
}

impl Input {
    /// Tells the forms apart.
    ///
    /// # Errors
    /// Unknown, repeated, malformed or unsupported options, all together.
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let mut start = tokens.clone().into_iter();
        match (start.next(), start.next()) {
            (Some(TokenTree::Literal(literal)), second)
                if is_string(&literal) && !is_idl(second.as_ref()) =>
            {
                let idl = text_or_path(literal);
                let mut reader = Reader::default();
                let parse = |input: ParseStream<'_>| {
                    input.parse::<LitStr>()?;
                    if input.parse::<Option<Token![,]>>()?.is_some() {
                        reader.options(input)?;
                    }
                    input.parse::<syn::parse::Nothing>().map(|_| ())
                };
                if let Err(error) = Parser::parse2(parse, tokens) {
                    reader.fail(error);
                }
                reader.finish(Some(idl), TokenStream::new())
            }
            (Some(TokenTree::Ident(_)), Some(second)) if is_option_mark(&second) => {
                let mut reader = Reader::default();
                let mut rest = TokenStream::new();
                let parse = |input: ParseStream<'_>| {
                    reader.options(input)?;
                    if input.parse::<Option<Token![;]>>()?.is_some() {
                        rest = input.parse()?;
                    }
                    input.parse::<syn::parse::Nothing>().map(|_| ())
                };
                if let Err(error) = Parser::parse2(parse, tokens) {
                    reader.fail(error);
                }
                reader.finish(None, rest)
            }
            _ => Reader::default().finish(None, tokens),
        }
    }
}

/// Reads options and remembers what is wrong.
#[derive(Default)]
struct Reader {
    options: Options,
    rename_spans: Vec<(Span, Span)>,
    file: Option<(Literal, String)>,
    seen: Vec<String>,
    error: Option<syn::Error>,
}

impl Reader {
    /// Options separated by commas, up to the end or a semicolon.
    fn options(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() && !input.peek(Token![;]) {
            if let Err(error) = self.option(input) {
                self.fail(error);
                while !input.is_empty() && !input.peek(Token![,]) && !input.peek(Token![;]) {
                    input.parse::<TokenTree>()?;
                }
            }
            if input.parse::<Option<Token![,]>>()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn option(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let name = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
        let text = name.to_string();
        if self.seen.contains(&text) {
            self.fail(syn::Error::new(name.span(), format!("the option `{text}` stands twice")));
        }
        self.seen.push(text.clone());
        match text.as_str() {
            "file" => {
                input.parse::<Token![=]>()?;
                let path: LitStr = input.parse()?;
                self.file = Some((path.token(), path.value()));
            }
            "crate" => {
                input.parse::<Token![=]>()?;
                self.options.runtime = syn::Path::parse_mod_style(input)?.to_token_stream();
            }
            "rename" => {
                for (idl, rust) in in_parentheses(input, |input| {
                    let idl: LitStr = input.parse()?;
                    input.parse::<Token![=]>()?;
                    Ok((idl, input.parse::<LitStr>()?))
                })? {
                    self.rename_spans.push((idl.span(), rust.span()));
                    self.options.rename.push((idl.value(), rust.value()));
                }
            }
            "non_nil" => {
                let patterns: Vec<LitStr> = in_parentheses(input, |input| input.parse())?;
                self.options.non_nil.extend(patterns.iter().map(LitStr::value));
            }
            "include" | "extern" | "derive" | "default_bodies" => {
                return Err(syn::Error::new(
                    name.span(),
                    format!("the option `{text}` is not supported yet"),
                ));
            }
            _ => {
                let known = "`file`, `rename`, `non_nil` and `crate`";
                return Err(syn::Error::new(
                    name.span(),
                    format!("there is no option `{text}`; there are {known}"),
                ));
            }
        }
        Ok(())
    }

    fn fail(&mut self, error: syn::Error) {
        match &mut self.error {
            Some(errors) => errors.combine(error),
            None => self.error = Some(error),
        }
    }

    fn finish(mut self, text: Option<Idl>, rest: TokenStream) -> syn::Result<Input> {
        let file = self.file.take();
        let idl = match (text, file) {
            (None, None) => Idl::Tokens(rest),
            (None, Some((literal, path))) if rest.is_empty() => Idl::File(literal, path),
            (Some(idl), None) => idl,
            (_, Some((literal, _))) => {
                self.fail(syn::Error::new(
                    literal.span(),
                    "IDL comes from a file or from the macro, not from both",
                ));
                Idl::Tokens(TokenStream::new())
            }
        };
        match self.error {
            Some(error) => Err(error),
            None => Ok(Input { idl, options: self.options, rename_spans: self.rename_spans }),
        }
    }
}

/// `(a, b, ...)`.
fn in_parentheses<T>(
    input: ParseStream<'_>,
    item: fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<Vec<T>> {
    let content;
    syn::parenthesized!(content in input);
    Ok(content.parse_terminated(item, Token![,])?.into_iter().collect())
}

fn is_string(literal: &Literal) -> bool {
    matches!(syn::Lit::new(literal.clone()), syn::Lit::Str(_))
}

/// What follows a string that is no argument but a part of inline IDL, which then is reported as such.
fn is_idl(second: Option<&TokenTree>) -> bool {
    !matches!(second, None | Some(TokenTree::Punct(_)))
}

/// What follows the name of an option, and never the first word of IDL.
fn is_option_mark(second: &TokenTree) -> bool {
    match second {
        TokenTree::Punct(punct) => matches!(punct.as_char(), '=' | ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    }
}

/// A string with a semicolon is IDL; no path has one.
fn text_or_path(literal: Literal) -> Idl {
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) if !text.value().contains(';') => Idl::File(literal, text.value()),
        _ => Idl::Text(literal),
    }
}
