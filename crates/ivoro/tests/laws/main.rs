//! What must hold of every head whatever the data: laws that tie letters, statistics, threads,
//! files and runs to each other.

mod ask;
mod choosing;
mod compact;
mod data;
mod diagrams;
mod exact;
mod forgetting;
mod index;
mod journal;
mod merging;
mod network;
mod numerics;
mod plane;
mod receipts;
mod refused;
mod retracting;
mod saved;
mod sealed;
mod threads;
mod unknown;
mod variants;
