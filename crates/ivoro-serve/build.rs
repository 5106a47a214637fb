//! Lists the files of the page, so that the binary has them all.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new("page");
    println!("cargo::rerun-if-changed=page");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.is_file() && path.extension().is_some_and(|it| it != "md"));
    files.sort();
    let mut text = String::from("&[\n");
    for path in &files {
        let whole = path.canonicalize()?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let (name, whole) = (format!("{name:?}"), format!("{:?}", whole.display().to_string()));
        let _ = writeln!(text, "    ({name}, include_bytes!({whole})),");
    }
    text.push_str("]\n");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("page.rs"), text)
}
