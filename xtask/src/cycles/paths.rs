//! Paths in a list of tokens, and attributes that say what is test code.

use proc_macro2::{Delimiter, Span, TokenTree};

/// A path and where its last part stands.
pub(super) struct Found {
    pub(super) parts: Vec<String>,
    pub(super) span: Span,
}

/// All paths that begin at this token: more than one, where braces follow. Also the number of the
/// token behind them.
pub(super) fn paths(tokens: &[TokenTree], start: usize) -> (Vec<Found>, usize) {
    let mut found = Vec::new();
    let end = gather(tokens, start, &[], &mut found);
    (found, end)
}

fn gather(tokens: &[TokenTree], start: usize, before: &[String], found: &mut Vec<Found>) -> usize {
    let mut parts = before.to_vec();
    let mut at = start;
    let mut span = None;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(ident)) => parts.push(ident.to_string()),
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => parts.push("*".to_owned()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut begin = 0;
                while begin < inner.len() {
                    let end = gather(&inner, begin, &parts, found);
                    // to behind the next comma, past `as name`
                    begin = (end..inner.len())
                        .find(|&at| is_punct(inner.get(at), ','))
                        .map_or(inner.len(), |comma| comma + 1);
                }
                return at + 1;
            }
            _ => break,
        }
        span = tokens.get(at).map(TokenTree::span);
        at += 1;
        if !is_colons(tokens, at) {
            break;
        }
        at += 2;
    }
    if let Some(span) = span {
        found.push(Found { parts, span });
    }
    at.max(start + 1)
}

/// Whether `::` stands here.
pub(super) fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

pub(super) fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

pub(super) fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

/// The word that stands here.
pub(super) fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// Whether this is what stands in the brackets of `#[cfg(test)]`, or of a `cfg` with `test` in it.
pub(super) fn is_test(attribute: &[TokenTree]) -> bool {
    let [TokenTree::Ident(name), TokenTree::Group(condition)] = attribute else { return false };
    let condition: Vec<TokenTree> = condition.stream().into_iter().collect();
    name == "cfg" && asks_for_test(&condition)
}

fn asks_for_test(condition: &[TokenTree]) -> bool {
    condition.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(ident) => ident == "test",
        TokenTree::Group(group) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let before = at.checked_sub(1).and_then(|at| condition.get(at));
            !is_ident(before, "not") && asks_for_test(&inner)
        }
        _ => false,
    })
}

/// The number of the token behind an item that begins here.
pub(super) fn behind_item(tokens: &[TokenTree], start: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    (start..tokens.len()).find(|&at| ends(&tokens[at])).map_or(tokens.len(), |end| end + 1)
}
