//! The arguments of the macro `idl!`: options, and IDL as Rust tokens, as a string or as paths of files.

use idl_compiler::emit::{IncludePolicy, Options};
use proc_macro2::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::{Ident, LitStr, Token};

pub(crate) struct Input {
    pub(crate) idl: Idl,
    pub(crate) options: Options,
    pub(crate) spans: Spans,
    /// The search path of `#include`.
    pub(crate) include: Vec<String>,
    /// Macro definitions, in the form of `-D`.
    pub(crate) define: Vec<String>,
    /// True if warnings about the IDL are suppressed.
    pub(crate) no_warnings: bool,
}

/// The spans of options, for error messages.
#[derive(Default)]
pub(crate) struct Spans {
    /// For each entry of `rename`, the spans of the IDL name and of the Rust name.
    pub(crate) rename: Vec<(Span, Span)>,
    /// For each entry of `extern`, the span of the IDL name.
    pub(crate) external: Vec<Span>,
    /// For each entry of `derive`, the span of the IDL name, or of the option if the entry has no IDL name.
    /// The next four fields contain the same for the options of their names.
    pub(crate) derive: Vec<Span>,
    pub(crate) default_bodies: Vec<Span>,
    pub(crate) ami: Vec<Span>,
    pub(crate) interpretive: Vec<Span>,
    pub(crate) adaptive: Vec<Span>,
    /// The span of the name in `uses`.
    pub(crate) uses: Option<Span>,
    /// The span of the path in `crate`.
    pub(crate) runtime: Option<Span>,
}

/// The IDL, or where to find it.
pub(crate) enum Idl {
    Tokens(TokenStream),
    Text(Literal),
    /// The paths of files, each as a literal and as its value.
    Files(Vec<(Literal, String)>),
}

impl Input {
    /// Parses the arguments of the macro.
    ///
    /// # Errors
    /// Unknown, repeated, malformed or unsupported options, all reported together.
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let tokens = without_invisible_groups(tokens);
        let mut start = tokens.clone().into_iter();
        let mut idl = match (start.next(), start.next()) {
            (Some(TokenTree::Literal(literal)), second)
                if is_string(&literal) && !is_idl(second.as_ref()) =>
            {
                Some(text_or_path(literal))
            }
            (Some(TokenTree::Ident(first)), Some(second)) if is_option_start(&first, &second) => None,
            _ => return Reader::default().finish(None, tokens),
        };
        let mut reader = Reader::default();
        let mut rest = TokenStream::new();
        let parse = |input: ParseStream<'_>| {
            let mut more = true;
            if let Some(idl) = &mut idl {
                input.parse::<LitStr>()?;
                more = input.parse::<Option<Token![,]>>()?.is_some();
                while let (true, Idl::Files(paths), true) = (more, &mut *idl, input.peek(LitStr)) {
                    let path: LitStr = input.parse()?;
                    paths.push((path.token(), path.value()));
                    more = input.parse::<Option<Token![,]>>()?.is_some();
                }
            }
            if more {
                reader.options(input)?;
            }
            if idl.is_none() && input.parse::<Option<Token![;]>>()?.is_some() {
                rest = input.parse()?;
            }
            input.parse::<syn::parse::Nothing>().map(|_| ())
        };
        if let Err(error) = Parser::parse2(parse, tokens) {
            reader.fail(error);
        }
        reader.finish(idl, rest)
    }
}

/// Removes the invisible delimiters that a `macro_rules!` macro puts around fragments such as `$x:literal`.
fn without_invisible_groups(tokens: TokenStream) -> TokenStream {
    if !has_invisible_groups(&tokens) {
        return tokens;
    }
    let without = |tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            without_invisible_groups(group.stream())
        }
        TokenTree::Group(group) if has_invisible_groups(&group.stream()) => {
            let mut visible = Group::new(group.delimiter(), without_invisible_groups(group.stream()));
            visible.set_span(group.span());
            TokenTree::Group(visible).into()
        }
        other => other.into(),
    };
    tokens.into_iter().flat_map::<TokenStream, _>(without).collect()
}

fn has_invisible_groups(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Group(group) => {
            group.delimiter() == Delimiter::None || has_invisible_groups(&group.stream())
        }
        _ => false,
    })
}

/// Parses `=` and a string.
fn string_value(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// A parser of options that collects errors.
#[derive(Default)]
struct Reader {
    options: Options,
    spans: Spans,
    include: Vec<String>,
    define: Vec<String>,
    no_warnings: bool,
    /// The name of the first option for the preprocessor.
    preprocessor_option: Option<Ident>,
    files: Vec<(Literal, String)>,
    /// The names of the options so far.
    seen: Vec<String>,
    error: Option<syn::Error>,
}

impl Reader {
    /// Parses options separated by commas, up to the end or a semicolon.
    fn options(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() && !input.peek(Token![;]) {
            let mut result = self.option(input);
            if result.is_ok() && !(input.is_empty() || input.peek(Token![,]) || input.peek(Token![;])) {
                result = Err(input.error("expected `,`"));
            }
            if let Err(error) = result {
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
            self.fail(syn::Error::new(name.span(), format!("the option `{text}` is given twice")));
        }
        self.seen.push(text.clone());
        match text.as_str() {
            "file" => {
                let path = string_value(input)?;
                self.files.push((path.token(), path.value()));
            }
            "include" | "define" => {
                input.parse::<Token![=]>()?;
                let values: Vec<LitStr> = in_brackets(input)?;
                let list = if text == "include" { &mut self.include } else { &mut self.define };
                list.extend(values.iter().map(LitStr::value));
                self.preprocessor_option.get_or_insert(name);
            }
            "extern" => {
                for (idl, path) in in_parentheses(input, |input| {
                    let idl: LitStr = input.parse()?;
                    input.parse::<Token![=]>()?;
                    Ok((idl, syn::Path::parse_mod_style(input)?))
                })? {
                    self.spans.external.push(idl.span());
                    self.options.external.push((idl.value(), path.into_token_stream()));
                }
            }
            "include_policy" => {
                input.parse::<Token![=]>()?;
                self.options.include_policy = include_policy(input)?;
            }
            "crate" => {
                input.parse::<Token![=]>()?;
                let path = syn::Path::parse_mod_style(input)?;
                self.spans.runtime = path.segments.first().map(|first| first.ident.span());
                self.options.runtime = path.into_token_stream();
            }
            "rename" => {
                for (idl, rust) in
                    in_parentheses(input, |input| Ok((input.parse::<LitStr>()?, string_value(input)?)))?
                {
                    self.spans.rename.push((idl.span(), rust.span()));
                    self.options.rename.push((idl.value(), rust.value()));
                }
            }
            "non_nil" => {
                let patterns: Vec<LitStr> = in_parentheses(input, |input| input.parse())?;
                self.options.non_nil.extend(patterns.iter().map(LitStr::value));
            }
            "derive" => {
                for (pattern, path) in in_parentheses(input, derive_entry)? {
                    self.spans.derive.push(pattern.as_ref().map_or(name.span(), LitStr::span));
                    let pattern = pattern.map_or("*".to_owned(), |pattern| pattern.value());
                    self.options.derive.push((pattern, path.into_token_stream()));
                }
            }
            "default_bodies" | "ami" | "interpretive" => {
                let (spans, patterns) = match text.as_str() {
                    "default_bodies" => (&mut self.spans.default_bodies, &mut self.options.default_bodies),
                    "ami" => (&mut self.spans.ami, &mut self.options.ami),
                    _ => (&mut self.spans.interpretive, &mut self.options.interpretive),
                };
                for (span, pattern) in patterns_or_all(input, &name)? {
                    spans.push(span);
                    patterns.push(pattern);
                }
            }
            "adaptive" => {
                let (patterns, uses) = adaptive(input)?;
                if patterns.is_empty() {
                    self.spans.adaptive.push(name.span());
                    self.options.adaptive.push(("*".to_owned(), uses));
                }
                for pattern in patterns {
                    self.spans.adaptive.push(pattern.span());
                    self.options.adaptive.push((pattern.value(), uses));
                }
            }
            "no_warnings" => self.no_warnings = true,
            "uses" => {
                let function = string_value(input)?;
                self.spans.uses = Some(function.span());
                self.options.use_counts_fn = Some(function.value());
            }
            _ => {
                let known = "`file`, `include`, `define`, `extern`, `include_policy`, `rename`, `non_nil`, `derive`, `default_bodies`, `ami`, `interpretive`, `adaptive`, `uses`, `no_warnings` and `crate`";
                let message = format!("there is no option `{text}`; the options are {known}");
                return Err(syn::Error::new(name.span(), message));
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
        let files = std::mem::take(&mut self.files);
        let idl = match (text, files.first().cloned()) {
            (None, None) => Idl::Tokens(rest),
            (None, Some(_)) if rest.is_empty() => Idl::Files(files),
            (Some(idl), None) => idl,
            (_, Some((literal, _))) => {
                let message = "the IDL must be either in files or in the macro, not in both";
                self.fail(syn::Error::new(literal.span(), message));
                Idl::Tokens(TokenStream::new())
            }
        };
        if let (Idl::Tokens(_), Some(name), None) = (&idl, &self.preprocessor_option, &self.error) {
            let message = format!(
                "`{name}` has no effect on IDL that is written as Rust tokens, because such IDL is not preprocessed; put the IDL into a string or a file"
            );
            self.fail(syn::Error::new(name.span(), message));
        }
        let Reader { options, spans, include, define, no_warnings, error, .. } = self;
        match error {
            Some(error) => Err(error),
            None => Ok(Input { idl, options, spans, include, define, no_warnings }),
        }
    }
}

fn include_policy(input: ParseStream<'_>) -> syn::Result<IncludePolicy> {
    let policy = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
    match policy.to_string().as_str() {
        "compile" => Ok(IncludePolicy::Compile),
        "extern" => Ok(IncludePolicy::Extern),
        _ => Err(syn::Error::new(policy.span(), "the include policy must be `compile` or `extern`")),
    }
}

/// Parses `"pattern" = path`, or a path that applies to all types.
fn derive_entry(input: ParseStream<'_>) -> syn::Result<(Option<LitStr>, syn::Path)> {
    let pattern: Option<LitStr> = if input.peek(LitStr) { Some(input.parse()?) } else { None };
    if pattern.is_some() {
        input.parse::<Token![=]>()?;
    }
    Ok((pattern, syn::Path::parse_mod_style(input)?))
}

/// Parses `("a", "b", ...)`; without parentheses, the option `name` applies to all definitions.
fn patterns_or_all(input: ParseStream<'_>, name: &Ident) -> syn::Result<Vec<(Span, String)>> {
    if !input.peek(syn::token::Paren) {
        return Ok(vec![(name.span(), "*".to_owned())]);
    }
    let patterns: Vec<LitStr> = in_parentheses(input, |input| input.parse())?;
    Ok(patterns.iter().map(|pattern| (pattern.span(), pattern.value())).collect())
}

/// Parses `("a", "b", ..., uses = 9)`.
fn adaptive(input: ParseStream<'_>) -> syn::Result<(Vec<LitStr>, u32)> {
    let content;
    syn::parenthesized!(content in input);
    let read = || {
        let mut patterns = Vec::new();
        while content.peek(LitStr) {
            patterns.push(content.parse()?);
            content.parse::<Token![,]>()?;
        }
        let word: Ident = content.parse()?;
        if word != "uses" {
            return Err(syn::Error::new(word.span(), "expected `uses = ` and a number"));
        }
        content.parse::<Token![=]>()?;
        let uses: syn::LitInt = content.parse()?;
        content.parse::<Option<Token![,]>>()?;
        Ok((patterns, uses.base10_parse()?))
    };
    let found = read();
    // Consume the remaining tokens, because they would be reported as errors too.
    content.parse::<TokenStream>()?;
    found
}

/// Parses `["a", "b", ...]`, or a single `"a"`.
fn in_brackets(input: ParseStream<'_>) -> syn::Result<Vec<LitStr>> {
    if input.peek(LitStr) {
        return Ok(vec![input.parse()?]);
    }
    let content;
    syn::bracketed!(content in input);
    Ok(content.parse_terminated(|input| input.parse(), Token![,])?.into_iter().collect())
}

/// Parses `(a, b, ...)`.
fn in_parentheses<T>(
    input: ParseStream<'_>,
    item: fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<Vec<T>> {
    let content;
    syn::parenthesized!(content in input);
    let items = content.parse_terminated(item, Token![,]);
    if items.is_err() {
        // Consume the remaining tokens, because they would be reported as errors too.
        content.parse::<TokenStream>()?;
    }
    Ok(items?.into_iter().collect())
}

fn is_string(literal: &Literal) -> bool {
    matches!(syn::Lit::new(literal.clone()), syn::Lit::Str(_))
}

/// Returns whether the arguments of the macro, which start with a string and `second`, are IDL. A string
/// argument is the last token, or a comma follows it. The compiler reports a string at the start of IDL.
fn is_idl(second: Option<&TokenTree>) -> bool {
    !matches!(second, None | Some(TokenTree::Punct(_)))
}

/// Returns whether these two first tokens are the start of an option, and not of IDL.
fn is_option_start(first: &Ident, second: &TokenTree) -> bool {
    match second {
        // Options without a value.
        TokenTree::Punct(punct) if punct.as_char() == ';' => {
            ["default_bodies", "ami", "interpretive", "no_warnings"].iter().any(|name| first == name)
        }
        TokenTree::Punct(punct) => matches!(punct.as_char(), '=' | ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    }
}

/// Returns the IDL or path in a string. A string with a semicolon is IDL, because paths contain none.
fn text_or_path(literal: Literal) -> Idl {
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) if !text.value().contains(';') => {
            let path = text.value();
            Idl::Files(vec![(literal, path)])
        }
        _ => Idl::Text(literal),
    }
}
