//! A server in a folder of its own.

use std::path::{Path, PathBuf};

use ivoro_serve::{Options, Server};
use tempfile::TempDir;

/// A server on a free port, which begins again on the same one.
pub(crate) struct Served {
    folder: TempDir,
    pub(crate) options: Options,
    server: Option<Server>,
}

impl Served {
    /// Serves `pets.ivoro`, which is begun.
    pub(crate) fn start() -> Self {
        Self::with(|_, _| ())
    }

    /// The same with other options, for which files may be put into the folder.
    pub(crate) fn with(change: impl FnOnce(&Path, &mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::of(folder.path().join("pets.ivoro"));
        options.listen = "127.0.0.1:0".parse().unwrap();
        change(folder.path(), &mut options);
        let mut served = Self { folder, options, server: None };
        served.again();
        served
    }

    /// The address of the page, with a slash at its end.
    pub(crate) fn address(&self) -> String {
        self.server.as_ref().unwrap().url()
    }

    /// The address of a section.
    pub(crate) fn section(&self, name: &str) -> String {
        format!("{}#{name}", self.address())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it as a signal does.
    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            self.options.listen = server.address();
            server.stop();
        }
    }

    /// Begins, on the address that it had before.
    pub(crate) fn again(&mut self) {
        self.server = Some(Server::start(&self.options).unwrap());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}
