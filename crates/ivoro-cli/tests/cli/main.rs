//! The program as scripts and people meet it: exit codes, texts, files, and what other processes
//! do meanwhile.

mod errors;
mod evaluate;
mod few_shot;
mod harness;
mod help;
mod images;
mod models;
mod names;
mod photos;
mod processes;
mod report;
mod reproduce;
mod run;
mod serve;
mod taking_back;
mod text;
mod watch;
