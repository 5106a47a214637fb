//! All routes, and what stands before them.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::problem::Problem;
use crate::{api, conventions, front, page};

/// The API of `ivoro serve`.
#[derive(OpenApi)]
#[openapi(info(
    title = "iVoro",
    license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
))]
struct Description;

/// All routes with their description.
fn described() -> OpenApiRouter<Arc<App>> {
    let mut description = Description::openapi();
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    description.components.get_or_insert_default().add_security_scheme("token", bearer);
    let none = SecurityRequirement::default();
    let token = SecurityRequirement::new("token", Vec::<String>::new());
    description.security = Some(vec![none, token]);
    OpenApiRouter::with_openapi(description).merge(api::routes()).merge(conventions::routes())
}

/// What the API is, as JSON.
pub(crate) fn openapi() -> String {
    described().into_openapi().to_json().unwrap_or_default()
}

/// Everything that the server answers.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (routes, _) = described().split_for_parts();
    routes
        .route("/", get(page::index))
        .route("/assets/{name}", get(page::asset))
        .route("/openapi.json", get(description))
        .fallback(nowhere)
        .method_not_allowed_fallback(other_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(&app), front::check))
        .with_state(app)
}

async fn description(State(app): State<Arc<App>>) -> Response {
    let text = app.openapi.get_or_init(openapi).clone();
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn nowhere() -> Problem {
    Problem::not_found(
        "no-route",
        "there is nothing at this address; /openapi.json says what there is",
    )
}

async fn other_method() -> Problem {
    let detail = "this address takes other methods; /openapi.json says which";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail)
}

/// What went wrong stays here: it may hold anything.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    Problem::internal().into_response()
}
