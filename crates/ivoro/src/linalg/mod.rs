//! Dense linear algebra on all cores, with results that do not depend on how many there are.
//!
//! Work is cut into tiles of a fixed size, each tile is one sequential call of the GEMM crate, and
//! partial sums are added in a fixed order. Threads only decide who computes a tile, never how.

pub(crate) mod bytes;
mod columns;
mod leading;
mod mahalanobis;
mod product;
mod symmetric;
mod thin;

pub use columns::Columns;
pub(crate) use columns::chain;
pub(crate) use leading::{Covariance, eigen, leading_space, times};
pub use mahalanobis::{mahalanobis, squared_distance};
pub use product::{fill_products, times_transposed, times_transposed_alike};
pub(crate) use symmetric::tile_rows;
pub use symmetric::{Factor, Symmetric};
pub(crate) use thin::{THIN, add_thin_sums, thin_products};
