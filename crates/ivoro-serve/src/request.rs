//! What handlers take from a request besides its body: who sent it, and under which conditions.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{self, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;

use crate::access::{Caller, Right};
use crate::app::App;
use crate::gate::Peer;
use crate::keys::Key;
use crate::problem::Problem;

/// Whoever may ask.
pub(crate) struct Asker(pub(crate) Caller);
/// Whoever may teach, where teaching is possible.
pub(crate) struct Teacher(pub(crate) Caller);
/// Whoever may do everything, where changes are possible.
pub(crate) struct Admin(pub(crate) Caller);

/// The token of an Authorization: as Bearer, or as the password of Basic, which is all that some clients know.
fn token_of(text: &str) -> Option<String> {
    let (scheme, sent) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(sent.trim().to_owned());
    }
    let basic = scheme.eq_ignore_ascii_case("basic").then(|| BASE64.decode(sent.trim()).ok())??;
    let (_, password) = std::str::from_utf8(&basic).ok()?.split_once(':')?;
    Some(password.to_owned())
}

fn caller(parts: &Parts, app: &App, needed: Right) -> Result<Caller, Problem> {
    let from =
        parts.extensions.get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let sent = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent.and_then(token_of);
    let caller = app.access.caller(sent.as_deref(), from)?;
    if caller.right < needed {
        let (own, needed) = (caller.right.word(), needed.word());
        let detail = format!("this takes the right to {needed}, the token has the right to {own}");
        return Err(Problem::forbidden(detail));
    }
    Ok(caller)
}

impl FromRequestParts<Arc<App>> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        caller(parts, app, Right::Ask).map(Self)
    }
}

impl FromRequestParts<Arc<App>> for Teacher {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = caller(parts, app, Right::Teach)?;
        app.writable()?;
        Ok(Self(caller))
    }
}

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = caller(parts, app, Right::Admin)?;
        app.writable()?;
        Ok(Self(caller))
    }
}

/// What stands in the address; what can't be read is a problem like any other.
pub(crate) struct Path<T>(pub(crate) T);
/// What stands behind the question mark of the address.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let read = extract::Path::<T>::from_request_parts(parts, app).await;
        let refused =
            |error: PathRejection| Problem::bad(format!("the address: {}", error.body_text()));
        read.map(|extract::Path(value)| Self(value)).map_err(refused)
    }
}

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let read = extract::Query::<T>::from_request_parts(parts, app).await;
        let refused =
            |error: QueryRejection| Problem::bad(format!("the address: {}", error.body_text()));
        read.map(|extract::Query(value)| Self(value)).map_err(refused)
    }
}

/// Under which conditions something is to be changed.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<String>,
    key: Option<String>,
    /// The method and the address.
    line: String,
}

impl Conditions {
    /// The key of a request with this content, if it has one.
    pub(crate) fn key(&self, content: &blake3::Hash) -> Option<Key> {
        let text = self.key.clone()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.line.as_bytes()).update(b"\n").update(content.as_bytes());
        Some(Key { text, request: hasher.finalize().to_hex()[..32].to_owned() })
    }
}

impl FromRequestParts<Arc<App>> for Conditions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let key = text_of(&parts.headers, "idempotency-key")?;
        key.as_deref().map_or(Ok(()), Key::check)?;
        let if_match = text_of(&parts.headers, "if-match")?.filter(|it| it != "*");
        let if_match = if_match.map(|it| it.trim_matches('"').to_owned());
        Ok(Self { if_match, key, line: format!("{} {}", parts.method, parts.uri) })
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(_) => Err(Problem::bad(format!("the header {name} is not ASCII"))),
    }
}
