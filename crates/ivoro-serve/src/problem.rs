//! Errors as people and programs read them: problem+json (RFC 9457) with the library's sentences.

use std::io::ErrorKind;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ivoro::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// What a client is told where something can't be done.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    /// Seconds after which the same may succeed.
    retry_after: Option<u32>,
}

/// The body of an error.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProblemBody<'a> {
    /// A name for programs: `urn:ivoro:unknown-class`.
    #[serde(rename = "type")]
    kind: String,
    /// The status in words.
    title: &'a str,
    /// The HTTP status.
    status: u16,
    /// A sentence that says what, which, expected and found.
    detail: &'a str,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self { status, kind, detail: detail.into(), retry_after: None }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(crate) fn conflict(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, kind, detail)
    }

    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    }

    pub(crate) fn not_found(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, kind, detail)
    }

    /// Something went wrong that the client can't know of; what exactly stays here.
    pub(crate) fn internal() -> Self {
        let detail = "the server could not finish this; nothing was changed";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// More is asked for than can be done now.
    pub(crate) fn busy(detail: impl Into<String>) -> Self {
        let refused = Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
        Self { retry_after: Some(1), ..refused }
    }

    pub(crate) fn after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            kind: format!("urn:ivoro:{}", self.kind),
            title: self.status.canonical_reason().unwrap_or("error"),
            status: self.status.as_u16(),
            detail: &self.detail,
        };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, kind) = match &error {
            Error::Io(error) => return Self::from_io(error),
            Error::UnknownClass { .. } => (StatusCode::NOT_FOUND, "unknown-class"),
            Error::NameTaken { .. } => (StatusCode::CONFLICT, "name-taken"),
            Error::ClassReturns { .. } => (StatusCode::CONFLICT, "class-returns"),
            Error::Sealed { .. } => (StatusCode::CONFLICT, "sealed"),
            Error::ForgetInexact { .. } => (StatusCode::CONFLICT, "forget-inexact"),
            Error::RetractInexact { .. } => (StatusCode::CONFLICT, "retract-inexact"),
            Error::NotGiven { .. } => (StatusCode::CONFLICT, "not-given"),
            Error::OtherFeatures { .. } => (StatusCode::CONFLICT, "other-features"),
            Error::Receipt { .. } => (StatusCode::CONFLICT, "receipt"),
            Error::OtherNetwork { .. } | Error::OtherImages { .. } => {
                (StatusCode::CONFLICT, "other-network")
            }
            Error::Merge { .. } => (StatusCode::CONFLICT, "merge"),
            Error::Unsupported { .. } => (StatusCode::CONFLICT, "unsupported"),
            Error::Locked { .. } => (StatusCode::CONFLICT, "locked"),
            Error::Malformed { .. } | Error::Checksum { .. } | Error::NewerVersion { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "malformed-file")
            }
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable"),
        };
        Self::new(status, kind, error.to_string())
    }
}

impl Problem {
    fn from_io(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                let detail = "the disk is full, so nothing was changed: what is not on disk is not \
                              learned; free some space and try again";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk-full", detail)
            }
            // a path says more than a client may know
            _ => Self::internal(),
        }
    }
}

impl From<ivoro_vision::Error> for Problem {
    fn from(error: ivoro_vision::Error) -> Self {
        use ivoro_vision::Error;
        let (status, kind) = match error {
            Error::Method(error) => return error.into(),
            Error::Io(error) => return Self::from_io(&error),
            Error::UnknownNetwork => {
                let detail = "this model was taught with features, and nothing says which network \
                              made them: it answers feature vectors and no images";
                return Self::conflict("unknown-network", detail);
            }
            // where it was looked for is nobody's business
            Error::NetworkNotFound { name, .. } => {
                let detail = format!(
                    "the network of the model was not found on this machine: {name}; add it with \
                     `ivoro networks add`"
                );
                return Self::conflict("network-not-found", detail);
            }
            Error::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            Error::Engine { .. } => return Self::internal(),
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable"),
        };
        Self::new(status, kind, error.to_string())
    }
}
