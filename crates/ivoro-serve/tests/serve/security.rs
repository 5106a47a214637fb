//! Nobody in who should not be.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ivoro_serve::{Options, Right, Server, Tls, new_token};
use serde_json::json;

use crate::harness::{Place, around, exchange, lesson, model, read};

#[test]
fn requests_for_another_host_and_from_other_pages_are_refused() {
    let place = Place::with(|options| options.origins = vec!["https://friend.example".to_owned()]);
    let to = |host: &str| {
        let headers = [("Host".to_owned(), host.to_owned())];
        exchange(place.address(), "GET", "/api/v1/models", &headers, b"")
    };
    assert!(to("evil.example").refused(403).contains("--host NAME"));
    assert_eq!(to(&format!("localhost:{}", place.address().port())).status, 200);
    let twice = [("Host", "localhost")];
    assert_eq!(place.send("GET", "/api/v1/models", &twice, b"").status, 403);

    let own = format!("http://{}", place.address());
    let from = |origin: &str| {
        place.with_json(
            "POST",
            &model("samples"),
            &[("Origin", origin)],
            &lesson("dog", &around(0.0, 0.0)),
        )
    };
    for forged in ["http://evil.example", "null", "https://friend.example.evil"] {
        assert!(from(forged).refused(403).contains("--allow-origin"));
    }
    assert_eq!(place.classes(), []);
    assert!(from(&own).header("access-control-allow-origin").is_none());
    let friend = from("https://friend.example");
    assert_eq!(
        (friend.status, friend.header("access-control-allow-origin")),
        (200, Some("https://friend.example"))
    );
    let question =
        place.send("OPTIONS", &model("samples"), &[("Origin", "https://friend.example")], b"");
    assert_eq!(question.status, 204);
    let question =
        place.send("OPTIONS", &model("samples"), &[("Origin", "http://evil.example")], b"");
    assert_eq!(question.status, 403);
}

#[test]
fn a_model_name_is_no_path() {
    let place = Place::of_folder();
    for name in
        ["..", "..%2f..%2fetc%2fpasswd", "%2e%2e%2fpets", ".hidden", "a%00b", "a%5cb", "C%3a%5cx"]
    {
        let answer = place.send("PUT", &format!("/api/v1/models/{name}"), &[], b"");
        assert!(matches!(answer.status, 404 | 422), "{name}: {}", answer.status);
        assert_eq!(place.get(&format!("/api/v1/models/{name}/file")).status, 404, "{name}");
    }
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0);
}

#[test]
fn tokens_have_rights() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    let tokens: Vec<(String, String)> = [Right::Ask, Right::Teach, Right::Admin]
        .into_iter()
        .map(|right| new_token(right.word(), right).unwrap())
        .collect();
    std::fs::write(
        &file,
        tokens.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    let place = Place::with(|options| {
        options.token_file = Some(file);
        options.limits.wrong_tokens = 3;
    });
    let with = |token: &str, method: &str, path: &str| {
        let bearer = format!("Bearer {token}");
        place.with_json(
            method,
            path,
            &[("Authorization", &bearer)],
            &lesson("dog", &around(0.0, 0.0)),
        )
    };
    let [ask, teach, admin] = [0, 1, 2].map(|at: usize| tokens[at].0.as_str());
    let nobody = place.get("/api/v1/models");
    assert_eq!(nobody.header("www-authenticate"), Some("Bearer"));
    assert!(nobody.refused(401).contains("a token is needed"));
    assert_eq!(place.get("/livez").status, 200);
    assert_eq!(place.get("/metrics").status, 401);
    assert_eq!(with(ask, "GET", "/api/v1/models").status, 200);
    assert!(with(ask, "POST", &model("samples")).refused(403).contains("has the right to ask"));
    assert_eq!(with(teach, "POST", &model("samples")).status, 200);
    assert_eq!(with(teach, "PUT", &model("file")).status, 403);
    assert_ne!(with(admin, "PUT", &model("file")).status, 403);
    let journal = with(ask, "GET", &model("journal")).good();
    assert_eq!(journal["who"][0]["token"], "teach");
    for _ in 0..3 {
        assert_eq!(with("guess", "GET", "/api/v1/models").status, 401);
    }
    let locked = with(admin, "GET", "/api/v1/models");
    assert!(locked.header("retry-after").is_some());
    assert!(locked.refused(429).contains("too many wrong tokens"));
}

#[test]
fn others_are_served_with_tokens_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::of(folder.path().join("m.ivoro"));
    options.listen = "0.0.0.0:0".parse().unwrap();
    let refused = Server::start(&options).unwrap_err().to_string();
    assert!(refused.contains("--token-file"), "{refused}");
    let taken = Place::new();
    options.listen = taken.address();
    let refused = Server::start(&options).unwrap_err().to_string();
    assert!(refused.contains("another program listens there already"), "{refused}");
}

#[test]
fn a_read_only_server_changes_nothing() {
    let mut place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    place.stop();
    place.options.read_only = true;
    place.start();
    for (method, path) in
        [("POST", "samples"), ("DELETE", "classes/dog"), ("POST", "undo"), ("PUT", "file")]
    {
        let refused = place.with_json(method, &model(path), &[], &lesson("cat", &around(1.0, 1.0)));
        assert!(refused.refused(403).contains("--read-only"));
    }
    assert_eq!(place.ask([0.0, 0.0])["top"][0]["class"], "dog");
}

#[test]
fn bodies_parts_headers_and_names_have_limits() {
    let place = Place::with(|options| {
        options.limits.body = 10_000;
        options.limits.model = 10_000;
        options.limits.parts = 3;
    });
    let long = vec![b' '; 10_001];
    let kind = [("Content-Type", "application/json")];
    assert!(place.send("POST", &model("ask"), &kind, &long).refused(413).contains("10000 bytes"));
    // one that does not say how long it is
    let mut stream = TcpStream::connect(place.address()).unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        model("ask"),
        place.address()
    );
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..11 {
        let _ = stream.write_all(&[b"3e8\r\n".as_slice(), &[b' '; 1000], b"\r\n"].concat());
    }
    let _ = stream.write_all(b"0\r\n\r\n");
    assert_eq!(read(&mut BufReader::new(stream)).unwrap().status, 413);
    let parts: Vec<(&str, &str, &[u8])> = vec![("image", "a.png", b"x"); 4];
    let form = crate::api::form(&parts);
    let many = place.send("POST", &model("ask"), &[("Content-Type", crate::api::FORM)], &form);
    assert!(many.refused(413).contains("more than 3 parts"));
    let name = "x".repeat(300);
    let named = place.post(&model("samples"), &lesson(&name, &around(0.0, 0.0)));
    assert!(named.refused(422).contains("1 to 256 bytes, found 300"));
    let control = place.post(&model("samples"), &lesson("a\u{1b}[31m", &around(0.0, 0.0)));
    assert!(control.refused(422).contains("control characters"));
    let header = "y".repeat(40_000);
    let status = place.send("GET", "/livez", &[("X-Long", &header)], b"").status;
    assert_eq!(status, 431);
    let vectors = lesson("a", &[[0.0, 0.0]; 301]);
    let many = place.with_json("POST", &model("samples"), &[], &vectors);
    assert!(matches!(many.status, 413), "{}", many.status);
    assert_eq!(place.classes(), []);
}

#[test]
fn slow_clients_are_cut_off() {
    let place = Place::with(|options| options.limits.slow = Duration::from_millis(300));
    let began = Instant::now();
    let mut slow = TcpStream::connect(place.address()).unwrap();
    slow.write_all(b"GET /livez HTT").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut end = Vec::new();
    let _ = std::io::Read::read_to_end(&mut slow, &mut end);
    let mut slow = TcpStream::connect(place.address()).unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\nabc",
        model("ask"),
        place.address()
    );
    slow.write_all(head.as_bytes()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut BufReader::new(slow), &mut line).unwrap();
    assert!(line.contains("408"), "{line}");
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn what_stands_in_answers_protects_browsers() {
    let place = Place::new();
    for path in ["/", "/livez", "/nothing"] {
        let answer = place.get(path);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(
            answer.header("content-security-policy").unwrap().contains("frame-ancestors 'none'")
        );
    }
    let named = place.post(&model("samples"), &json!({"samples": "<script>"}));
    assert_eq!(named.header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_certificate_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let own = Tls::Own(folder.path().join("tls"));
    let mut place = Place::with(|options| options.tls = Some(own));
    let key = folder.path().join("tls/ivoro-serve.key");
    let first = std::fs::read(&key).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }
    place.again();
    assert_eq!(std::fs::read(&key).unwrap(), first);
    // plain HTTP is not understood
    let mut stream = TcpStream::connect(place.address()).unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut end = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut end);
    assert!(!end.starts_with(b"HTTP"));
}
