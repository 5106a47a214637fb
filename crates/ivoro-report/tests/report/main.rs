//! Reports of good, odd and hostile records.

mod contents;
mod hostile;
mod made;
