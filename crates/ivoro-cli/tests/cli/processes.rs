use std::io::{BufRead, BufReader, Read};
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
        "merge m.ivoro m.ivoro --out m.ivoro --force",
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

/// Killed in the middle of writing: the next command that changes the model clears up, one that only
/// asks does not.
#[cfg(unix)]
#[test]
fn a_writer_killed_in_the_middle_leaves_nothing_for_long() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let model = place.bytes("m.ivoro");
    // the signal for a file that is too large ends the process while the temporary file is there
    let script = "ulimit -c 0; ulimit -f 1; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.current_dir(place.folder()).args(["-c", script, env!("CARGO_BIN_EXE_ivoro")]);
    let killed = command.args(["forget", "m.ivoro", "ant"]).output().unwrap();
    assert_eq!(killed.status.code(), None, "ended by a signal");
    assert_eq!(place.bytes("m.ivoro"), model);
    let left = || place.names().into_iter().filter(|name| name.contains(".tmp")).count();
    assert_eq!(left(), 1, "{:?}", place.names());
    place.ivoro("inspect m.ivoro").good();
    assert_eq!(left(), 1);
    place.ivoro("forget m.ivoro ant").good();
    assert_eq!(place.names(), ["data.features", "m.ivoro"]);
}

/// What takes long says so where there is no terminal, and Ctrl-C says what became of it.
#[cfg(unix)]
#[test]
fn a_long_command_says_what_it_does_and_can_be_stopped() {
    let place = Place::new();
    place.write("many.features", &samples(5, 2..6, 400), None);
    let before = place.names();
    // without end, as far as a test can wait
    let endless =
        "learn new.ivoro many.features --variant iVoro-D --optimiser adam --iterations 1000000";
    let mut command = place.command(endless);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(first.starts_with("choosing weight-decay with iVoro-D: "), "{first}");
    assert!(first.ends_with(" seconds gone"), "{first}");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(lines.last().unwrap(), "stopped; nothing was changed");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let is_lock = |name: &String| name.contains(".lock");
    let left: Vec<String> = place.names().into_iter().filter(|name| !is_lock(name)).collect();
    assert_eq!(left, before);
}

#[cfg(unix)]
#[test]
fn a_write_protected_model_is_not_replaced() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let before = place.bytes("m.ivoro");
    let mut permissions = std::fs::metadata(place.path("m.ivoro")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(place.path("m.ivoro"), permissions).unwrap();
    for command in [
        "learn m.ivoro data.features --classes cat",
        "forget m.ivoro ant",
        "merge m.ivoro m.ivoro --out m.ivoro --force",
    ] {
        let text = place.ivoro(command).bad(2);
        assert_eq!(text, "error: m.ivoro: is write-protected, so it is not changed\n", "{command}");
    }
    place.ivoro("predict m.ivoro data.features").good();
    assert_eq!(place.bytes("m.ivoro"), before);
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
