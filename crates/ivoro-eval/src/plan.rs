//! The cells of a grid of runs, as a job that runs them leaves them behind (`grid.json`).

use serde::{Deserialize, Serialize};

/// All cells of a grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the file's format.
    pub version: u32,
    /// The cells.
    pub cells: Vec<PlannedCell>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Its folder, from where the file stands.
    pub folder: String,
    /// The command that runs it.
    pub command: String,
}

impl Plan {
    /// The version that is read and written here.
    pub const VERSION: u32 = 1;
}
