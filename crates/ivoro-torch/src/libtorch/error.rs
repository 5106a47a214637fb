//! Errors on the way through libtorch. What leaves this crate is [`ivoro_vision::Error`], which knows
//! nothing of `tch`.

/// A result with this crate's own [`Error`].
pub(super) type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug)]
pub(super) enum Error {
    /// libtorch or a GPU failed.
    Engine {
        /// What it said.
        what: String,
    },
    /// What any engine may refuse.
    Vision(ivoro_vision::Error),
}

impl From<tch::TchError> for Error {
    fn from(error: tch::TchError) -> Self {
        // The first line says what happened, the rest is a C++ stack.
        let text = error.to_string();
        Self::Engine { what: text.lines().next().unwrap_or_default().to_owned() }
    }
}

impl From<ivoro_vision::Error> for Error {
    fn from(error: ivoro_vision::Error) -> Self {
        Self::Vision(error)
    }
}

impl From<ivoro::Error> for Error {
    fn from(error: ivoro::Error) -> Self {
        Self::Vision(error.into())
    }
}

impl From<Error> for ivoro_vision::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine { what } => Self::Engine { what },
            Error::Vision(error) => error,
        }
    }
}
