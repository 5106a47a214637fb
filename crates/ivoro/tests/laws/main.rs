//! What must hold of every head whatever the data: laws that tie letters, statistics, threads,
//! files and runs to each other.

mod ask;
mod data;
mod diagrams;
mod exact;
mod forgetting;
mod index;
mod merging;
mod plane;
mod refused;
mod saved;
mod threads;
mod variants;
