use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use ivoro_io::{FileLock, load};

use crate::harness::{Done, Place, samples};

#[test]
fn a_model_that_another_process_writes_is_locked() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let before = std::fs::read(place.path("m.ivoro")).unwrap();
    let lock = FileLock::acquire(&place.path("m.ivoro")).unwrap();
    insta::assert_snapshot!(place.learn("m.ivoro", "cat", "").bad(2), @"
    error: m.ivoro: locked by another process that is writing this model
    hint: wait for it, or work on a copy and merge
    ");
    for command in [
        "update m.ivoro data.features --classes ant",
        "forget m.ivoro ant",
        "merge m.ivoro m.ivoro --out m.ivoro",
    ] {
        assert!(place.ivoro(command).bad(2).contains("locked by another process"));
    }
    // reading needs no lock
    place.ivoro("inspect m.ivoro").good();
    place.ivoro("predict m.ivoro data.features").good();
    drop(lock);
    assert_eq!(std::fs::read(place.path("m.ivoro")).unwrap(), before);
    place.learn("m.ivoro", "cat", "").good();
}

#[test]
fn a_process_killed_while_it_learns_leaves_the_old_model_or_the_new() {
    let place = Place::new();
    place.write("many.features", &samples(5, 2..6, 400), None);
    place.learn("m.ivoro", "ant,bee", "--variant iVoro-NDAIL").good();
    let old = load(&place.path("m.ivoro")).unwrap();
    let mut killed = 0;
    for milliseconds in [1, 3, 6, 10, 15, 22, 30, 45, 60] {
        let mut child = place
            .command("learn m.ivoro many.features")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        let finished = child.wait().unwrap().success();
        let found = load(&place.path("m.ivoro")).unwrap();
        if found.head().classes().len() == 2 {
            killed += 1;
            assert!(!finished && found.head() == old.head());
        } else {
            assert_eq!(found.head().classes().len(), 6);
            break;
        }
    }
    assert!(killed > 0, "at least the first was killed in time");
    // what a killed process left behind is in nobody's way
    if load(&place.path("m.ivoro")).unwrap().head().classes().len() == 2 {
        place.ivoro("learn m.ivoro many.features").good();
    }
    place.ivoro("forget m.ivoro ant --drop-probes").good();
}

/// A disk that takes no more than a few hundred bytes of a file.
#[cfg(unix)]
fn with_little_room(place: &Place, arguments: &str) -> Done {
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.current_dir(place.folder()).args(["-c", script, env!("CARGO_BIN_EXE_ivoro")]);
    Done::of(command.args(arguments.split_whitespace()).output().unwrap())
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file_and_says_so() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let model = std::fs::read(place.path("m.ivoro")).unwrap();
    let names = place.names();
    for command in [
        "learn m.ivoro data.features --classes cat",
        "update m.ivoro data.features --classes ant",
        "forget m.ivoro ant",
        "learn new.ivoro data.features --variant iVoro",
        "merge m.ivoro m.ivoro --ancestor m.ivoro --out other.ivoro",
    ] {
        let message = with_little_room(&place, command).bad(2);
        assert!(message.contains("error: failed to write to file"), "{command}: {message}");
        assert!(message.contains(".ivoro.") && message.contains("File too large"), "{message}");
        assert_eq!(message.lines().filter(|line| line.starts_with("error")).count(), 1);
        assert_eq!(std::fs::read(place.path("m.ivoro")).unwrap(), model, "{command}");
        let is_lock = |name: &String| name.rsplit('.').next() == Some("lock");
        let left = place.names().into_iter().filter(|name| !is_lock(name));
        assert!(left.eq(names.iter().filter(|name| !is_lock(name)).cloned()));
    }
}

#[cfg(unix)]
#[test]
fn results_of_an_earlier_run_survive_a_full_disk() {
    let place = Place::new();
    let run = "run data.features --protocol 2,2,2 --variants iVoro --out results";
    place.ivoro(run).good();
    let read = |name: &str| std::fs::read(place.path(&format!("results/{name}"))).unwrap();
    let before = ["run.json", "summary.csv", "phases.csv"].map(read);
    let more = run.replace("--variants iVoro", "--variants iVoro,iVoro-N");
    let done = with_little_room(&place, &more);
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    assert!(done.err.contains("error: failed to write to file"), "{}", done.err);
    assert_eq!(["run.json", "summary.csv", "phases.csv"].map(read), before);
    place.ivoro(&more).good();
}

/// Standard output on a full disk.
#[cfg(target_os = "linux")]
#[test]
fn output_that_can_not_be_written_is_an_error() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    for arguments in ["inspect m.ivoro", "predict m.ivoro data.features --format csv"] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let done = Done::of(place.command(arguments).stdout(full).output().unwrap());
        assert_eq!(done.code, Some(2), "{}", done.err);
        assert!(done.err.contains("error: No space left on device"), "{}", done.err);
    }
}

/// A reader that has seen enough: `ivoro … | head`.
#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    for arguments in [
        "completions bash",
        "variants",
        "inspect m.ivoro",
        "audit m.ivoro --json",
        "predict m.ivoro data.features --format jsonl",
        "run data.features --variants iVoro --csv -",
    ] {
        let mut child =
            place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{arguments}: {status} {message}");
        assert!(!message.contains("panicked") && !message.contains("error"), "{message}");
    }
}
