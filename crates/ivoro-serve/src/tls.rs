//! TLS, with a certificate that is given or one of this server's own.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use ivoro_io::atomic::write_atomically;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::options::{Options, Tls};
use crate::start_error::StartError;

/// What this server's own certificate is called.
const CERTIFICATE: &str = "ivoro-serve.crt";
const KEY: &str = "ivoro-serve.key";

/// What accepts connections, and the fingerprint of the certificate.
pub(crate) fn acceptor(tls: &Tls, options: &Options) -> Result<(TlsAcceptor, String), StartError> {
    let (certificate, key) = match tls {
        Tls::Given { certificate, key } => (certificate.clone(), key.clone()),
        Tls::Own(folder) => (folder.join(CERTIFICATE), folder.join(KEY)),
    };
    if let Tls::Own(_) = tls
        && !(certificate.exists() && key.exists())
    {
        make(&certificate, &key, options)?;
    }
    let refuse =
        |path: &Path, what: String| StartError::Certificate { path: path.to_owned(), what };
    let chain = CertificateDer::pem_slice_iter(&fs_err::read(&certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| refuse(&certificate, format!("not a certificate in PEM: {error}")))?;
    let first = chain
        .first()
        .ok_or_else(|| refuse(&certificate, "there is no certificate in it".to_owned()))?;
    let fingerprint = fingerprint(first);
    let private = PrivateKeyDer::from_pem_slice(&fs_err::read(&key)?)
        .map_err(|error| refuse(&key, format!("not a private key in PEM: {error}")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(&certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| refuse(&certificate, error.to_string()))?;
    Ok((TlsAcceptor::from(Arc::new(config)), fingerprint))
}

/// As browsers show it.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let hash = ::ring::digest::digest(&::ring::digest::SHA256, certificate);
    let bytes: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

/// Makes a certificate for the names that this server is called by.
fn make(certificate: &Path, key: &Path, options: &Options) -> Result<(), StartError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !options.listen.ip().is_unspecified() {
        names.push(options.listen.ip().to_string());
    }
    names.extend(options.hosts.iter().map(|host| host.trim_matches(['[', ']']).to_owned()));
    names.dedup();
    let refuse = |error: rcgen::Error| {
        let (path, what) = (certificate.to_owned(), format!("can't be made: {error}"));
        StartError::Certificate { path, what }
    };
    let made = rcgen::generate_simple_self_signed(names).map_err(refuse)?;
    if let Some(folder) = certificate.parent() {
        fs_err::create_dir_all(folder)?;
    }
    write_private(key, made.signing_key.serialize_pem().as_bytes())?;
    write_atomically(certificate, |file| Ok(file.write_all(made.cert.pem().as_bytes())?))?;
    Ok(())
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, text: &[u8]) -> Result<(), StartError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()?;
    Ok(())
}
