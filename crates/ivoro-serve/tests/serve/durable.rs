//! What was answered is on disk, and asking does not wait.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ivoro_io::FileLock;
use serde_json::json;

use crate::harness::{Place, around, lesson, model};

#[test]
fn the_file_is_the_truth_and_is_locked() {
    let mut place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    place.teach("cat", &around(9.0, 9.0));
    let saved = ivoro_io::load(&place.model()).unwrap();
    assert_eq!(saved.head().classes().len(), 2);
    let locked = FileLock::acquire(&place.model()).unwrap_err();
    assert!(matches!(locked, ivoro::Error::Locked { .. }));
    let answer = place.ask([4.0, 4.1]);
    place.stop();
    FileLock::acquire(&place.model()).unwrap();
    place.start();
    assert_eq!(place.ask([4.0, 4.1]), answer);
}

#[test]
fn many_teach_at_once_and_share_writes() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let each = 20;
    thread::scope(|scope| {
        for thread in 0..8 {
            let place = &place;
            scope.spawn(move || {
                for step in 0..each {
                    let (x, y) = (thread as f32, 0.1 * step as f32);
                    place.teach(["dog", "cat"][step % 2], &[[x, y]]);
                }
            });
        }
    });
    let classes: u64 = place.classes().iter().map(|(_, samples)| samples).sum();
    assert_eq!(classes, 3 + 8 * each as u64);
    let metrics = String::from_utf8(place.get("/metrics").body).unwrap();
    let number = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(number("ivoro_lessons_total"), 161);
    assert!(number("ivoro_writes_total") < 161);
    let saved = ivoro_io::load(&place.model()).unwrap();
    assert_eq!(saved.head().classes().iter().map(|class| class.statistics.count).sum::<u64>(), 163);
}

#[test]
fn one_bad_lesson_spoils_no_other() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let good = AtomicUsize::new(0);
    thread::scope(|scope| {
        for at in 0..16 {
            let (place, good) = (&place, &good);
            scope.spawn(move || {
                let bad = json!({"samples": [{"class": "bad", "features": [1.0, 2.0, 3.0]}]});
                let body = if at % 2 == 0 { lesson("cat", &[[9.0, at as f32]]) } else { bad };
                let answer = place.post(&model("samples"), &body);
                good.fetch_add(usize::from(answer.status == 200), Ordering::SeqCst);
            });
        }
    });
    assert_eq!(good.into_inner(), 8);
    assert_eq!(place.classes(), [("dog".to_owned(), 3), ("cat".to_owned(), 8)]);
}

#[test]
fn a_full_queue_says_when_to_come_back() {
    let place = Place::with(|options| {
        options.limits.queue = 1;
        options.limits.connections = 64;
    });
    place.teach("dog", &around(0.0, 0.0));
    let (busy, taught) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for at in 0..32 {
            let (place, busy, taught) = (&place, &busy, &taught);
            scope.spawn(move || {
                for step in 0..10 {
                    let answer =
                        place.post(&model("samples"), &lesson("dog", &[[at as f32, step as f32]]));
                    match answer.status {
                        200 => taught.fetch_add(1, Ordering::SeqCst),
                        _ => {
                            assert_eq!(answer.header("retry-after"), Some("1"));
                            answer.refused(503);
                            busy.fetch_add(1, Ordering::SeqCst)
                        }
                    };
                }
            });
        }
    });
    assert!(busy.into_inner() > 0);
    assert_eq!(place.classes()[0].1, 3 + taught.into_inner() as u64);
}

#[test]
fn asking_goes_on_while_much_is_taught() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let row =
        |class: &str, at: usize| json!({"class": class, "features": [at as f32, (at % 97) as f32]});
    let many: Vec<_> = (0..20_000).map(|at| row(["dog", "cat"][at % 2], at)).collect();
    let many = json!({"samples": many});
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            place.post(&format!("{}?receipts=false", model("samples")), &many).good();
            done.store(true, Ordering::SeqCst);
        });
        let mut longest = Duration::ZERO;
        while !done.load(Ordering::SeqCst) {
            let began = Instant::now();
            place.ask([0.0, 0.0]);
            longest = longest.max(began.elapsed());
        }
        assert!(longest < Duration::from_secs(2), "{longest:?}");
    });
    assert_eq!(place.classes().iter().map(|it| it.1).sum::<u64>(), 20_003);
}

#[test]
fn a_model_that_can_not_be_written_stays_as_it_is() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let before = (place.hash(), place.classes());
    // a folder in the way of the file that keys are kept in
    std::fs::create_dir(place.folder.path().join("pets.ivoro.keys")).unwrap();
    let key = [("Idempotency-Key", "k")];
    let refused =
        place.with_json("POST", &model("samples"), &key, &lesson("cat", &around(9.0, 9.0)));
    assert!(refused.refused(500).contains("nothing was changed"));
    assert_eq!((place.hash(), place.classes()), before);
    place.teach("cat", &around(9.0, 9.0));
}

#[test]
fn listeners_hear_of_changes() {
    use std::io::{BufRead, BufReader, Write};
    let mut place = Place::new();
    let stream = std::net::TcpStream::connect(place.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", model("events"), place.address());
    (&stream).write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = || lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("data: "));
    assert!(next().unwrap().contains("\"classes\":0"));
    place.teach("dog", &around(0.0, 0.0));
    assert!(next().unwrap().contains("\"samples\":3"));
    let began = Instant::now();
    place.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "an open stream does not hold the end up");
    assert!(next().is_none());
}
