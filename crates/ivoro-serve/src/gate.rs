//! Who gets in at all: requests for this server by its name, from its own pages.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::options::Options;
use crate::problem::Problem;

/// Whose connection a request came on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The names of this server, and the pages of others that may use it.
pub(crate) struct Gate {
    /// Without ports: who forwards a port may have another one.
    hosts: Vec<String>,
    origins: Vec<String>,
    scheme: &'static str,
}

/// Names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Gate {
    pub(crate) fn new(options: &Options, address: SocketAddr) -> Self {
        let mut hosts: Vec<String> =
            options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let ip = address.ip();
        if ip.is_loopback() || ip.is_unspecified() {
            hosts.extend(LOOPBACK.map(str::to_owned));
        }
        if !ip.is_unspecified() {
            hosts.push(if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() });
        }
        let origins = options
            .origins
            .iter()
            .map(|it| it.trim_end_matches('/').to_ascii_lowercase())
            .collect();
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        Self { hosts, origins, scheme }
    }

    /// The host that a request names, if it is one of this server's.
    pub(crate) fn host<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut given = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else { return None };
        let host = host.to_str().ok()?;
        let name = without_port(host).to_ascii_lowercase();
        self.hosts.contains(&name).then_some(host)
    }

    /// Whether a request may come from the page that it says it comes from.
    pub(crate) fn admits(
        &self,
        headers: &HeaderMap,
        host: &str,
    ) -> Result<Option<HeaderValue>, Problem> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(None) };
        let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        if text == format!("{}://{}", self.scheme, host.to_ascii_lowercase()) {
            return Ok(None);
        }
        if self.origins.contains(&text) {
            return Ok(Some(origin.clone()));
        }
        let detail =
            "pages of other places may not use this server; --allow-origin names those that may";
        Err(Problem::new(StatusCode::FORBIDDEN, "origin", detail))
    }
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        // the colons of an address in brackets are its own
        Some(at) if !host[at..].contains(']') => &host[..at],
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_part_of_a_name() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("127.0.0.1:1", "127.0.0.1"),
        ] {
            assert_eq!(without_port(host), name);
        }
    }

    #[test]
    fn only_own_names_and_own_pages_get_in() {
        let options = Options::of("m.ivoro".into());
        let gate = Gate::new(&options, "127.0.0.1:8080".parse().unwrap());
        let with = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            let host = gate.host(&headers).map(str::to_owned);
            host.is_some_and(|host| gate.admits(&headers, &host).is_ok())
        };
        assert!(with("localhost:8080", None) && with("127.0.0.1:9", Some("http://127.0.0.1:9")));
        assert!(!with("evil.example:8080", None) && !with("localhost.evil.example", None));
        assert!(!with("localhost:8080", Some("http://evil.example")));
        assert!(!with("localhost:8080", Some("null")));
        assert!(!with("localhost:8080", Some("https://localhost:8080")));
    }
}
