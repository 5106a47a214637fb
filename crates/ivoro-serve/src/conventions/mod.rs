//! Conventions that other programs speak, a file for each.

pub(crate) mod health;
mod label_studio;
mod oip;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// All routes of other programs' conventions.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .merge(oip::routes())
        .merge(label_studio::routes())
}
