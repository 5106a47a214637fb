//! The routes under `/api/v1`, a file for each resource.

mod ask;
mod classes;
mod corrections;
mod events;
mod file;
mod journal;
mod map;
mod models;
mod quality;
mod reply;
mod samples;
mod seal;
mod unknowns;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::ask::look;
pub(crate) use self::reply::{changed, replayed};
pub(crate) use self::samples::{Lesson, Teaching};
use crate::app::App;

/// All routes, with what describes them.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(models::list))
        .routes(routes!(models::describe, models::create, models::delete))
        .routes(routes!(classes::list))
        .routes(routes!(classes::change, classes::forget))
        .routes(routes!(samples::teach))
        .routes(routes!(ask::ask))
        .routes(routes!(corrections::retract))
        .routes(routes!(corrections::relabel))
        .routes(routes!(corrections::undo, corrections::last))
        .routes(routes!(unknowns::list))
        .routes(routes!(unknowns::name, unknowns::drop_one))
        .routes(routes!(quality::quality))
        .routes(routes!(map::map))
        .routes(routes!(file::get_file, file::put_file))
        .routes(routes!(file::merge))
        .routes(routes!(seal::seal))
        .routes(routes!(seal::audit))
        .routes(routes!(journal::journal))
        .routes(routes!(events::events))
}
