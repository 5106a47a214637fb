//! Reports of good, odd and hostile records.

mod contents;
mod evaluation;
mod hostile;
mod made;
