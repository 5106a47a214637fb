//! A map of the classes, as a picture has it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ivoro::Points;
use ivoro::diagram::Rectangle;
use ivoro::head::ClassMap;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::reply::{json, tagged};
use crate::app::App;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Asker, Path, Query};
use crate::snapshot::Snapshot;

/// Sides of a picture.
const LARGEST: f64 = 10_000.0;

/// How large the picture is.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Default for Size {
    fn default() -> Self {
        Self { width: 960.0, height: 600.0 }
    }
}

/// The classes in the plane.
#[derive(Serialize, ToSchema)]
pub(crate) struct MapReply {
    hash: String,
    width: f64,
    height: f64,
    /// How much of what lies between the centres the plane shows, from 0 to 1.
    share: f64,
    /// What the picture is.
    axes: &'static str,
    cells: Vec<MapCell>,
}

/// The cell of a class: what is nearest to its centre.
#[derive(Serialize, ToSchema)]
pub(crate) struct MapCell {
    class: String,
    /// Corners; none where the cell lies outside.
    polygon: Vec<[f64; 2]>,
    centre: [f64; 2],
}

const AXES: &str = "the two directions in which the centres of the classes lie furthest apart, measured as the model \
                    measures; what lies beyond them is not shown";

/// From the plane to a picture, where y goes down.
struct Frame {
    shown: Rectangle,
    size: Size,
}

impl Frame {
    fn of(map: &ClassMap, size: Size) -> Option<Self> {
        let Size { width, height } = size;
        if !(1.0..=LARGEST).contains(&width) || !(1.0..=LARGEST).contains(&height) {
            return None;
        }
        let mut shown = map.whole()?;
        let sides = [0, 1].map(|axis| shown.high[axis] - shown.low[axis]);
        let unit = (sides[0] / width).max(sides[1] / height);
        for (axis, side) in [(0, width), (1, height)] {
            let more = (unit * side - sides[axis]) / 2.0;
            shown.low[axis] -= more;
            shown.high[axis] += more;
        }
        Some(Self { shown, size })
    }

    fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let Rectangle { low, high } = self.shown;
        let part = |value: f64, axis: usize| (value - low[axis]) / (high[axis] - low[axis]);
        [part(x, 0) * self.size.width, (1.0 - part(y, 1)) * self.size.height]
    }
}

/// The classes in the plane, with the cells of their centres there.
#[utoipa::path(get, path = "/api/v1/models/{model}/map", tag = "quality", params(("model" = String, Path), Size),
    responses((status = 200, body = MapReply), (status = 409, body = ProblemBody)))]
pub(crate) async fn map(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Query(size): Query<Size>,
    _: Asker,
) -> Result<Response, Problem> {
    let now = app.store.get(&model)?.held();
    let reply = app.heavy(move || drawn(&now, size)).await?;
    Ok(tagged(&reply.hash, json(&reply)))
}

fn drawn(now: &Snapshot, size: Size) -> Result<MapReply, Problem> {
    let (hash, Size { width, height }) = (now.hash.clone(), size);
    let mut reply = MapReply { hash, width, height, share: 1.0, axes: AXES, cells: Vec::new() };
    let Some(map) = now.map()? else { return Ok(reply) };
    let frame = Frame::of(map, size)
        .ok_or_else(|| Problem::unprocessable("a picture has sides from 1 to 10000"))?;
    let cells = map.cells(frame.shown)?;
    let all = now.model.head().classes().iter().zip(cells).zip(map.sites());
    reply.cells = all
        .map(|((class, polygon), site)| MapCell {
            class: class.name.clone(),
            polygon: polygon.into_iter().map(|corner| frame.at(corner)).collect(),
            centre: frame.at(*site),
        })
        .collect();
    reply.share = map.share();
    Ok(reply)
}

/// Where queries lie in a picture of this size.
pub(crate) fn places(
    now: &Snapshot,
    queries: &Points,
    size: Size,
) -> Result<Vec<[f64; 2]>, Problem> {
    let Some(map) = now.map()? else { return Ok(Vec::new()) };
    let Some(frame) = Frame::of(map, size) else { return Ok(Vec::new()) };
    let places = map.place(now.model.head(), queries)?;
    Ok(places.into_iter().map(|place| frame.at(place)).collect())
}
