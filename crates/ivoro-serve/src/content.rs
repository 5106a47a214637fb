//! Bodies of requests: read within their limits, and taken apart.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::stream;
use http_body_util::BodyExt as _;
use multer::{Constraints, Multipart, SizeLimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::{App, PERMIT};
use crate::problem::Problem;

/// A body, with the memory that it was granted.
pub(crate) struct Content {
    /// Its type, without what stands behind it.
    pub(crate) kind: String,
    /// The whole header.
    content_type: String,
    pub(crate) bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

/// The same of a request that may bring a model.
pub(crate) struct LargeContent(pub(crate) Content);

impl FromRequest<Arc<App>> for Content {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        read(request, app, app.limits.body).await
    }
}

impl FromRequest<Arc<App>> for LargeContent {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        read(request, app, app.limits.model.max(app.limits.body)).await.map(Self)
    }
}

async fn read(request: Request, app: &App, most: usize) -> Result<Content, Problem> {
    let content_type = text(request.headers(), header::CONTENT_TYPE);
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let declared = text(request.headers(), header::CONTENT_LENGTH).parse::<usize>().ok();
    let too_large = || {
        Problem::too_large(format!(
            "the body is longer than {most} bytes, which is the most that is taken"
        ))
    };
    if declared.is_some_and(|length| length > most) {
        drain(request.into_body()).await;
        return Err(too_large());
    }
    let mut memory = granted(&app.bodies, declared.unwrap_or(0))?;
    let whole = tokio::time::timeout(app.limits.time, async {
        let mut body = request.into_body();
        let (mut first, mut rest) = (Bytes::new(), Vec::new());
        while let Some(data) = frame(&mut body, app.limits.slow).await? {
            let length = first.len() + rest.len() + data.len();
            if length > most {
                drain(body).await;
                return Err(too_large());
            }
            if declared.is_none() {
                memory.merge(granted(&app.bodies, data.len())?);
            }
            if first.is_empty() && rest.is_empty() {
                first = data;
                continue;
            }
            if rest.is_empty() {
                rest.reserve(declared.unwrap_or(length).max(length));
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
        Ok(if rest.is_empty() { first } else { rest.into() })
    });
    let bytes = whole.await.unwrap_or_else(|_| Err(too_slow()))?;
    Ok(Content { kind, content_type, bytes, _memory: memory })
}

/// Reads on for a moment what nobody wants: a client that is still sending would not see why it was refused.
async fn drain(mut body: Body) {
    /// Bytes, at most.
    const MOST: usize = 4 << 20;
    /// Time, at most.
    const FOR: Duration = Duration::from_secs(2);
    let read = async {
        let mut left = MOST;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // in vain is as good as done
    let _ = tokio::time::timeout(FOR, read).await;
}

/// The next part of a body; a client that pauses for long is cut off.
async fn frame(body: &mut Body, slow: Duration) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = tokio::time::timeout(slow, body.frame()).await.map_err(|_| too_slow())?;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => return Err(Problem::bad("the body was cut off")),
        }
    }
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly")
}

fn granted(bodies: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
    let permits = u32::try_from(bytes.div_ceil(PERMIT)).unwrap_or(u32::MAX);
    Arc::clone(bodies)
        .try_acquire_many_owned(permits)
        .map_err(|_| Problem::busy("too much is being sent at once; try again in a moment"))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// A part of a multipart body.
pub(crate) struct Part {
    /// Of the field.
    pub(crate) name: String,
    /// As the client calls the file.
    pub(crate) file: String,
    pub(crate) bytes: Bytes,
}

impl Content {
    /// A hash of what is asked for: of a multipart body without the boundary, which differs each time.
    pub(crate) fn hash(&self, parts: Option<&[Part]>) -> blake3::Hash {
        let Some(parts) = parts else { return blake3::hash(&self.bytes) };
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            for piece in [part.name.as_bytes(), part.file.as_bytes(), &part.bytes] {
                hasher.update(&(piece.len() as u64).to_le_bytes()).update(piece);
            }
        }
        hasher.finalize()
    }

    pub(crate) fn is_multipart(&self) -> bool {
        self.kind == "multipart/form-data"
    }

    /// The parts of a multipart body.
    pub(crate) async fn parts(&self, most: usize) -> Result<Vec<Part>, Problem> {
        let malformed =
            |error: multer::Error| Problem::bad(format!("not a multipart body: {error}"));
        let boundary = multer::parse_boundary(&self.content_type).map_err(malformed)?;
        let bytes = self.bytes.clone();
        let whole = stream::iter([Ok::<_, std::io::Error>(bytes)]);
        let size = SizeLimit::new().whole_stream(self.bytes.len() as u64 + 1);
        let mut body =
            Multipart::with_constraints(whole, boundary, Constraints::new().size_limit(size));
        let mut parts = Vec::new();
        while let Some(field) = body.next_field().await.map_err(malformed)? {
            if parts.len() >= most {
                return Err(Problem::too_large(format!(
                    "more than {most} parts, which is the most that is taken"
                )));
            }
            let name = field.name().unwrap_or_default().to_owned();
            let file = field.file_name().unwrap_or_default().to_owned();
            let bytes = field.bytes().await.map_err(malformed)?;
            parts.push(Part { name, file, bytes });
        }
        Ok(parts)
    }

    /// A JSON body.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Problem> {
        if self.kind != "application/json" {
            return Err(self.other_kind("application/json"));
        }
        self.any_json()
    }

    /// The same whatever the client calls it.
    pub(crate) fn any_json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.bytes)
            .map_err(|error| Problem::bad(format!("not the JSON that is expected: {error}")))
    }

    pub(crate) fn other_kind(&self, expected: &str) -> Problem {
        let found = crate::names::visible(&self.kind);
        let detail = format!("Content-Type: expected {expected}, found {found}");
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-type", detail)
    }
}
