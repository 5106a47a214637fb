//! How an error becomes a sentence, a hint and an exit code.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::eprintln;
use anstyle::{AnsiColor, Style};
use ivoro::error::{Error, MergeRefusal, MixedComponent, ReceiptRefusal};

use crate::table::visible;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library refused.
    Library(Error),
    /// Something about images or networks went wrong.
    Vision(ivoro_vision::Error),
    /// Writing to standard output or another file failed.
    Io(io::Error),
    /// The request makes no sense; the text says why.
    Usage(String),
    /// Some cells of a grid failed; each has been named.
    Unfinished { failed: usize, all: usize },
    /// The user stopped it.
    Interrupted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<ivoro_vision::Error> for Failure {
    fn from(error: ivoro_vision::Error) -> Self {
        match error {
            ivoro_vision::Error::Method(error) => Self::Library(error),
            ivoro_vision::Error::Io(error) => Self::Io(error),
            error => Self::Vision(error),
        }
    }
}

impl From<ivoro_serve::StartError> for Failure {
    fn from(error: ivoro_serve::StartError) -> Self {
        use ivoro_serve::StartError;
        match error {
            StartError::Model(error) => Self::Library(error),
            StartError::Vision(error) => error.into(),
            StartError::Io(error) => Self::Io(error),
            error => Self::Usage(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

impl Failure {
    /// Prints the sentence and gives the exit code: 1 for "no", 2 for an error, 130 for Ctrl-C.
    pub(crate) fn report(&self) -> ExitCode {
        let text: Vec<String> = self.sentence().lines().map(visible).collect();
        let text = text.join("\n");
        match self {
            // the reader has seen enough, as in `ivoro … | head`
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Self::Interrupted => {
                eprintln!("{text}");
                return ExitCode::from(130);
            }
            _ => {}
        }
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        eprintln!("{red}error{red:#}: {text}");
        if let Some(hint) = self.hint() {
            let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
            eprintln!("{cyan}hint{cyan:#}: {hint}");
        }
        match self {
            Self::Library(
                Error::ForgetInexact { .. }
                | Error::RetractInexact { .. }
                | Error::OtherFeatures { .. }
                | Error::NotGiven { .. }
                | Error::Receipt { reason: ReceiptRefusal::Used | ReceiptRefusal::Incomplete { .. } },
            )
            | Self::Unfinished { .. } => ExitCode::from(1),
            _ => ExitCode::from(2),
        }
    }

    /// What went wrong, as one sentence.
    pub(crate) fn sentence(&self) -> String {
        match self {
            // as the flag is called
            Self::Library(Error::Setting { name: "false-rejection", value, reason }) => {
                format!("--reject={value}: {reason}")
            }
            Self::Library(error) => error.to_string(),
            Self::Vision(error) => error.to_string(),
            Self::Io(error) => error.to_string(),
            Self::Usage(text) => text.clone(),
            Self::Unfinished { failed, all } => format!("{failed} of {all} runs failed"),
            Self::Interrupted => stopped().to_owned(),
        }
    }

    /// What may help.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Library(error) => library_hint(error),
            Self::Vision(error) => vision_hint(error),
            _ => None,
        }
    }
}

/// Whether all that the command changes is written at its end, in one step.
static WRITES_AT_THE_END: AtomicBool = AtomicBool::new(false);

/// Says that this command changes nothing before its end.
pub(crate) fn only_the_end_writes() {
    WRITES_AT_THE_END.store(true, Ordering::SeqCst);
}

/// What became of a command that Ctrl-C has stopped.
fn stopped() -> &'static str {
    if WRITES_AT_THE_END.load(Ordering::SeqCst) {
        "stopped; nothing was changed"
    } else {
        "stopped; what was finished is kept"
    }
}

fn vision_hint(error: &ivoro_vision::Error) -> Option<&'static str> {
    use ivoro_vision::Error;
    match error {
        Error::NoDevice { .. } => Some("`--device cpu`, or build with `--features torch`"),
        Error::Mixed { .. } => Some("`--size PIXELS` brings all images to one size"),
        Error::BrokenImage { .. } | Error::TruncatedImage { .. } | Error::OtherFormat { .. } => {
            Some("`--skip-broken` leaves such images out and lists them")
        }
        Error::OtherTraining { .. } => {
            Some("name another --out, or take the checkpoint away to begin anew")
        }
        Error::Diverged { .. } => Some("a smaller --rate"),
        Error::NetworkNotFound { .. } => {
            Some("name its file with --backbone, or add it: `ivoro networks add FILE --name NAME`")
        }
        Error::UnknownNetwork => Some("name it with --backbone"),
        Error::NotSquare { .. } => Some("`--size PIXELS` makes images square"),
        _ => None,
    }
}

fn library_hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Variant { .. } => Some("`ivoro variants` explains the letters"),
        Error::MissingViews { .. } => Some(
            "store those views too, or choose variants without AC, AI (rotated) and F (mirrored)",
        ),
        Error::MissingLayer { .. } => {
            Some("store a second layer's features too, or choose variants without 3 and L")
        }
        Error::ForgetInexact { component: MixedComponent::PooledScatter, .. } => Some(
            "its samples (`ivoro retract MODEL FEATURES --classes NAME`) or their receipts (`ivoro forget \
                 --receipt FILE`) can be taken out; a model begun with `--scatter per-class` or `compact` needs neither",
        ),
        Error::ForgetInexact { .. } => Some("`ivoro forget --drop-probes`"),
        Error::RetractInexact { .. } => Some("`--drop-probes`"),
        Error::OtherFeatures { .. } => Some(
            "the receipt of the lesson is exact anywhere (`ivoro retract --receipt FILE`); `--inexact` takes \
             these features and leaves a trace of their last digits",
        ),
        Error::Receipt { reason: ReceiptRefusal::Incomplete { .. } } => {
            Some("name the receipts of all lessons that had samples of the class")
        }
        Error::NameTaken { .. } => {
            Some("`ivoro relabel MODEL --from NAME --to NAME` makes two classes one")
        }
        Error::OtherImages { .. } => {
            Some("leave the flag out: the model knows what it was taught with (`ivoro inspect`)")
        }
        Error::ClassReturns { .. } => Some("`ivoro update MODEL FEATURES`"),
        Error::Merge {
            reason: MergeRefusal::SameSamples { .. } | MergeRefusal::OtherAncestor { .. },
        } => Some("`ivoro merge … --ancestor MODEL`"),
        Error::Merge { reason: MergeRefusal::Setting { .. } | MergeRefusal::Differs { .. } } => {
            Some("begin the models of all sites alike: from one model, or with the same settings")
        }
        Error::Locked { .. } => Some("wait for it, or work on a copy and merge"),
        _ => None,
    }
}
