//! A server in a folder of its own, and a client that sends exactly what it is told.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use ivoro_serve::{Options, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) folder: TempDir,
    server: Option<Server>,
    pub(crate) options: Options,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The JSON of an answer without an error.
    #[track_caller]
    pub(crate) fn good(&self) -> Value {
        assert!(
            (200..300).contains(&self.status),
            "{} {}",
            self.status,
            String::from_utf8_lossy(&self.body)
        );
        self.json()
    }

    /// The sentence of an error with this status.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let body = self.json();
        assert_eq!(body["status"], status);
        body["detail"].as_str().unwrap().to_owned()
    }
}

impl Place {
    /// A server of one model that is not there yet.
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::of(folder.path().join("pets.ivoro"));
        options.listen = "127.0.0.1:0".parse().unwrap();
        options.threads = 2;
        options.beginning.variant = Some("iVoro".parse().unwrap());
        change(&mut options);
        let mut place = Self { folder, server: None, options };
        place.start();
        place
    }

    /// A server of a folder.
    pub(crate) fn of_folder() -> Self {
        let mut place = Self::with(|options| options.listen = "127.0.0.1:0".parse().unwrap());
        place.stop();
        place.options.place = place.folder.path().to_owned();
        place.start();
        place
    }

    pub(crate) fn start(&mut self) {
        self.server = Some(Server::start(&self.options).unwrap());
    }

    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }

    pub(crate) fn again(&mut self) {
        self.stop();
        self.start();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().address()
    }

    pub(crate) fn model(&self) -> PathBuf {
        self.folder.path().join("pets.ivoro")
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut all = vec![("Host".to_owned(), self.address().to_string())];
        all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        exchange(self.address(), method, path, &all, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.with_json("POST", path, &[], body)
    }

    pub(crate) fn with_json(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut all = vec![("Content-Type", "application/json")];
        all.extend(headers);
        self.send(method, path, &all, body.to_string().as_bytes())
    }

    /// Teaches samples of a class.
    #[track_caller]
    pub(crate) fn teach(&self, class: &str, rows: &[[f32; 2]]) -> Value {
        self.post(&model("samples"), &lesson(class, rows)).good()
    }

    #[track_caller]
    pub(crate) fn ask(&self, row: [f32; 2]) -> Value {
        let body = json!({"samples": [{"features": row}]});
        self.post(&model("ask"), &body).good()["answers"][0].clone()
    }

    pub(crate) fn classes(&self) -> Vec<(String, u64)> {
        let all = self.get(&model("classes")).good();
        let line =
            |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["samples"].as_u64().unwrap());
        all.as_array().unwrap().iter().map(line).collect()
    }

    pub(crate) fn hash(&self) -> String {
        self.get("/api/v1/models/pets").good()["hash"].as_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn model(rest: &str) -> String {
    format!("/api/v1/models/pets/{rest}")
}

pub(crate) fn lesson(class: &str, rows: &[[f32; 2]]) -> Value {
    let samples: Vec<Value> =
        rows.iter().map(|row| json!({"class": class, "features": row})).collect();
    json!({"samples": samples})
}

/// Three samples around a place.
pub(crate) fn around(x: f32, y: f32) -> Vec<[f32; 2]> {
    vec![[x, y + 0.5], [x + 0.5, y], [x - 0.5, y - 0.5]]
}

/// Sends a request with these headers and no others but the length, and reads the answer.
pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([name.as_str(), ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    // a server that refuses early may not read all
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    let answer = read(&mut BufReader::new(stream));
    answer.unwrap_or_else(|| panic!("no answer; sent: {sent:?}"))
}

pub(crate) fn read(stream: &mut impl BufRead) -> Option<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut body = Vec::new();
    stream.read_to_end(&mut body).ok()?;
    Some(Answer { status, headers, body })
}
