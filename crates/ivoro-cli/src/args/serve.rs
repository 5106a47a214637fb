//! Arguments of `serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use ivoro::Variant;
use ivoro_serve::PORT;

use crate::args::SettingArguments;

const EXAMPLES: &str = "\
Examples:
  ivoro serve pets.ivoro                     a model, begun if it is not there, on http://127.0.0.1:8080/
  ivoro serve models/                        every model of a folder
  ivoro serve pets.ivoro --listen 9000       on another port
  ivoro serve --new-token anna teach         prints a token, and the line of the token file that knows it
  ivoro serve pets.ivoro --listen 0.0.0.0:8443 --tls --token-file tokens --host pets.home
                                             for other machines: with tokens, encrypted, under its own name

From programs:
  curl -F class=dog -F image=@rex.jpg http://127.0.0.1:8080/api/v1/models/pets/samples
  curl -F image=@who.jpg http://127.0.0.1:8080/api/v1/models/pets/ask
  curl http://127.0.0.1:8080/openapi.json    what else there is

What was answered is on disk. Ctrl-C finishes what runs and leaves a whole file. While it runs, other
commands can ask the model and not change it.";

/// Serve models over HTTP: teach, ask and correct from a browser, a phone or any program.
///
/// New models take the network that comes along. Without --token-file only this machine is served.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// A model file, begun if it does not exist, or a folder: then every model in it.
    #[arg(required_unless_present = "new_token")]
    pub(crate) place: Option<PathBuf>,

    /// Where to listen: a port of this machine, or ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
        value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// A file with tokens: lines of a name, a right (ask, teach or admin) and a hash.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Print a new token and its line for the token file, and end.
    #[arg(long, num_args = 2, value_names = ["NAME", "RIGHT"], conflicts_with = "place")]
    pub(crate) new_token: Option<Vec<String>>,

    /// A name that browsers call this server by, besides its address. Requests for others are refused.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// A page of another place that may use this server: https://example.org.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// Encrypt, with a certificate of its own that is made on first use.
    #[arg(long)]
    pub(crate) tls: bool,

    /// Encrypt with this certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Refuse every change.
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Keep the features of rejected queries for 15 minutes, in memory, so that they can be named.
    #[arg(long)]
    pub(crate) keep_unknowns: bool,

    /// MB (1,048,576 bytes) of the largest request that is taken; a model that is uploaded may have 1,024.
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) max_body: u32,

    /// Variant of new models. Default: the one that suits their first lesson best, within the budget.
    #[arg(long)]
    pub(crate) variant: Option<Variant>,

    /// KB (1,024 bytes) that a class may add to a model whose variant is chosen.
    #[arg(long, value_name = "KB", default_value_t = 200, conflicts_with = "variant")]
    pub(crate) budget: u32,

    /// Seconds on two cores that choosing and learning the first lesson may take where the variant is chosen.
    #[arg(long, value_name = "S", default_value_t = 60.0, conflicts_with = "variant")]
    pub(crate) budget_seconds: f64,

    #[command(flatten)]
    pub(crate) settings: SettingArguments,
}

/// An address with its port, or a port of this machine.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse().map_err(|_| {
        "expected a port, or ADDRESS:PORT such as 0.0.0.0:8080 or [::]:8080".to_owned()
    })
}
