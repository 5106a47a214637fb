//! A server as a process: begun, asked, stopped and killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use ivoro_io::load;

use crate::harness::Place;

/// A server that is killed where it is not stopped.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(place: &Place, arguments: &str) -> Self {
        let command = format!("serve {arguments} --listen 0");
        let mut child = place.command(&command).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("listening on http://").unwrap().trim_end_matches('/');
        Self { address: address.to_owned(), child }
    }

    /// The status and the body of an answer, or nothing where none came.
    fn send(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    fn teach(&self, class: &str, x: usize) -> Option<u16> {
        let body = format!("{{\"samples\":[{{\"class\":\"{class}\",\"features\":[{x},1.5]}}]}}");
        self.send("POST", "/api/v1/models/m/samples", &body).map(|(status, _)| status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[cfg(unix)]
fn a_server_that_is_told_to_stop_leaves_a_whole_file() {
    let place = Place::new();
    let mut server = Running::start(&place, "m.ivoro");
    for x in 0..4 {
        assert_eq!(server.teach(["ant", "bee"][x % 2], x), Some(200));
    }
    let locked = place.ivoro("learn m.ivoro data.features").bad(2);
    assert!(locked.contains("locked by another process"), "{locked}");
    place.ivoro("inspect m.ivoro").good();
    let stopped = Command::new("kill").arg("-TERM").arg(server.child.id().to_string()).status();
    assert!(stopped.unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert_eq!(load(&place.path("m.ivoro")).unwrap().head().classes().len(), 2);
    assert!(place.ivoro("log m.ivoro").good().contains("learn"));
}

#[test]
fn lessons_that_were_answered_survive_a_kill() {
    let place = Place::new();
    for round in 0..3 {
        let mut server = Running::start(&place, "m.ivoro --variant iVoro");
        let mut answered = 0;
        std::thread::scope(|scope| {
            let server = &server;
            let teaching = scope.spawn(move || {
                (0..500).take_while(|x| server.teach("ant", *x) == Some(200)).count()
            });
            std::thread::sleep(std::time::Duration::from_millis(150 + 100 * round));
            let _ = Command::new("kill").arg("-KILL").arg(server.child.id().to_string()).status();
            answered = teaching.join().unwrap();
        });
        let _ = server.child.wait();
        let model = load(&place.path("m.ivoro")).unwrap();
        let kept = model.head().classes()[0].statistics.count as usize;
        // one more may be on disk whose answer did not arrive
        assert!(kept == answered || kept == answered + 1, "{kept} of {answered}");
        std::fs::remove_file(place.path("m.ivoro")).unwrap();
        for name in place.names() {
            if name.starts_with("m.ivoro") {
                std::fs::remove_file(place.path(&name)).unwrap();
            }
        }
    }
}

#[test]
fn tokens_are_printed_once_and_mistakes_are_named() {
    let place = Place::new();
    let printed = place.ivoro("serve --new-token anna teach").good();
    let [token, line] = printed.lines().collect::<Vec<_>>()[..] else { panic!("{printed}") };
    assert!(line.starts_with("anna teach ") && !line.contains(token));
    assert!(place.ivoro("serve --new-token anna all").bad(2).contains("found all"));
    assert!(place.ivoro("serve m.ivoro --listen 0.0.0.0:0").bad(2).contains("--token-file FILE"));
    assert!(place.ivoro("serve m.ivoro --listen here").bad(2).contains("expected a port"));
    assert!(place.ivoro("serve").bad(2).contains("[PLACE]"));
    let server = Running::start(&place, "m.ivoro");
    let taken = place.ivoro(&format!("serve n.ivoro --listen {}", server.address)).bad(2);
    assert!(taken.contains("another program listens there already"), "{taken}");
    let twice = place.ivoro("serve m.ivoro --listen 0").bad(2);
    assert!(twice.contains("locked by another process"), "{twice}");
}
