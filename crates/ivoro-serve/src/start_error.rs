//! Why a server does not begin.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not begin, in one sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),

    /// A model could not be opened.
    #[error(transparent)]
    Model(#[from] ivoro::Error),

    /// A network could not be opened.
    #[error(transparent)]
    Vision(#[from] ivoro_vision::Error),

    /// Another program listens there.
    #[error("{address}: another program listens there already; name another one with --listen")]
    AddressTaken {
        /// The address.
        address: SocketAddr,
    },

    /// The address can't be listened on.
    #[error("{address}: can't be listened on: {what}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        what: String,
    },

    /// Others could reach a server that asks nobody who he is.
    #[error(
        "{address} can be reached from other machines: that takes --token-file FILE; \
         `ivoro serve --new-token NAME RIGHT` makes a token"
    )]
    NeedsTokens {
        /// The address.
        address: SocketAddr,
    },

    /// A token file is none.
    #[error("{path}: line {line}: {what}")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1; 0 is the whole file.
        line: usize,
        /// What was expected and what was found.
        what: String,
    },

    /// A token can't have this name.
    #[error("\"{name}\" names no token: 1 to 64 letters, digits, - _ . and @")]
    TokenName {
        /// The name.
        name: String,
    },

    /// The system gave no random numbers.
    #[error("the system gave no random numbers: {what}")]
    Random {
        /// What it said.
        what: String,
    },

    /// A folder holds two models of one name.
    #[error("{path}: its model would be called {name}, as that of another file is")]
    SameName {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },

    /// The sidecar of a model does not fit to it.
    #[error("{path}: {what}")]
    Sidecar {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },

    /// No TLS with this certificate.
    #[error("{path}: {what}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },
}
