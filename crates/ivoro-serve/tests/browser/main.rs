//! The page of `ivoro serve` as people use it: a real Chromium, the real program, photos drawn here.
//!
//! Chromium is driven over WebDriver. `cargo xtask test browser` installs it where it may.

mod accessibility;
mod camera;
mod chromium;
mod flow;
mod keyboard;
mod page;
mod pictures;
mod rights;
mod served;
mod trouble;
