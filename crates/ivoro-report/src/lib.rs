//! Records of runs as pages and figures.
//!
//! Everything here is pure: bytes come in through [`Inputs::add`], text and pictures go out of
//! [`build`]. Whatever a record holds, the page runs no script and fetches nothing.
//!
//! ```
//! let mut inputs = ivoro_report::Inputs::default();
//! inputs.add("runs/run.json", b"{\"version\": 99}");
//! let report = ivoro_report::build(&inputs);
//! assert!(report.html.contains("format version 99, this program reads version 1"));
//! ```

mod figures;
mod group;
pub mod inputs;
mod page;
pub mod paper;
mod plot;
mod run_settings;
mod table;

pub use inputs::{FileKind, Inputs, Problem};
pub use page::{Report, build};
pub use plot::canvas::{DrawError, Figure};
