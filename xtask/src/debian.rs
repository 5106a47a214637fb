//! Packages of Debian, for what the checks need beside Rust.

use std::process::Command;

use crate::command::{run, succeeds};

/// Whether packages can be installed here: as root, with apt.
pub(crate) fn may_install() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|user| user.stdout.trim_ascii() == b"0")
        && succeeds(Command::new("apt-get").arg("--version"))
}

/// Installs packages.
pub(crate) fn install(packages: &[&str]) -> Option<()> {
    println!("$ apt-get install {}", packages.join(" "));
    let mut update = Command::new("apt-get");
    run(update.args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run(install.args(["install", "--quiet", "--yes", "--no-install-recommends"]).args(packages))
}
