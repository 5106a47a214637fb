//! `serve`: models over HTTP.

use std::sync::Arc;

use ivoro::Budget;
use ivoro_serve::{Beginning, Limits, Options, Right, Server, Tls, new_token};
use ivoro_vision::Networks;

use crate::args::serve::ServeArguments;
use crate::failure::Failure;
use crate::output;
use crate::table::visible;
use crate::words::counted;

/// Serves models until Ctrl-C or SIGTERM.
pub(crate) fn serve(arguments: &ServeArguments, threads: Option<u16>) -> Result<(), Failure> {
    if let Some(words) = &arguments.new_token {
        return print_token(words);
    }
    let server = Server::start(&options(arguments, threads)?)?;
    for (name, classes) in server.models() {
        anstream::eprintln!("{name}: {}", counted(classes, "class", "classes"));
    }
    if let Some(fingerprint) = server.fingerprint() {
        anstream::eprintln!("certificate, SHA-256: {fingerprint}");
    }
    output::print(&format!("listening on {}\n", server.url()))?;
    let stopping = || anstream::eprintln!("stopping: what runs is finished");
    Ok(server.run_until_signal(stopping)?)
}

fn options(arguments: &ServeArguments, threads: Option<u16>) -> Result<Options, Failure> {
    let place = arguments.place.clone();
    let place = place.ok_or_else(|| Failure::Usage("expected a model or a folder".to_owned()))?;
    let own = Options::of(place);
    let budget = Budget {
        bytes_per_class: (arguments.budget as usize) << 10,
        seconds: arguments.budget_seconds,
    };
    let beginning =
        Beginning { variant: arguments.variant, options: arguments.settings.options(), budget };
    Ok(Options {
        listen: arguments.listen,
        tls: tls(arguments),
        token_file: arguments.token_file.clone(),
        hosts: arguments.host.clone(),
        origins: arguments.allow_origin.clone(),
        read_only: arguments.read_only,
        keep_unknowns: arguments.keep_unknowns,
        threads: threads.map_or(own.threads, usize::from),
        limits: Limits { body: (arguments.max_body as usize) << 20, ..own.limits },
        beginning,
        clock: super::model::now,
        notice: Arc::new(|text| anstream::eprintln!("{}", visible(text))),
        ..own
    })
}

fn tls(arguments: &ServeArguments) -> Option<Tls> {
    match (&arguments.tls_certificate, &arguments.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(Tls::Given { certificate: certificate.clone(), key: key.clone() })
        }
        _ => arguments.tls.then(|| {
            let networks = Networks::of_user();
            let data = networks.folder().parent().unwrap_or(networks.folder());
            Tls::Own(data.join("tls"))
        }),
    }
}

/// Prints a token, which nobody can find out again, and what is to be kept of it.
fn print_token(words: &[String]) -> Result<(), Failure> {
    let [name, right] = words else {
        return Err(Failure::Usage("expected --new-token NAME RIGHT".to_owned()));
    };
    let right = match right.as_str() {
        "ask" => Right::Ask,
        "teach" => Right::Teach,
        "admin" => Right::Admin,
        other => {
            let text =
                format!("--new-token: the right is ask, teach or admin, found {}", visible(other));
            return Err(Failure::Usage(text));
        }
    };
    let (token, line) = new_token(name, right)?;
    anstream::eprintln!("the token, for {name} alone; it is shown this once:");
    output::print(&format!("{token}\n"))?;
    anstream::eprintln!("its line for the token file:");
    output::print(&format!("{line}\n"))?;
    Ok(())
}
