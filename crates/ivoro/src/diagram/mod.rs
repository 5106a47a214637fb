//! Power diagrams, Voronoi diagrams as their special case, and cluster-to-cluster diagrams.

mod bisector;
mod cluster;
mod index;
mod plane;
mod power;
mod screen;

pub use bisector::Bisector;
pub use cluster::ClusterDiagram;
pub(crate) use cluster::{add_influence, add_matrix};
pub use index::Index;
pub use plane::{Point, Rectangle, area, plane_cells};
pub use power::{Nearest, PowerDiagram};
pub(crate) use power::{far_origin, less, squared_length};
