//! The lock beside a file, and what a failed save leaves behind.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use ivoro::{Error, Matrix, Model, ModelOptions, Samples};
use ivoro_io::{FileLock, load, save};

/// A model of two classes.
fn model(variant: &str) -> Model {
    let points = Matrix::new(4, 1, vec![0.0, 1.0, 10.0, 11.0]).unwrap();
    let mut model = Model::new(variant.parse().unwrap(), ModelOptions::default());
    model.learn(&Samples::single("test", points, vec![0, 0, 1, 1], 2).unwrap()).unwrap();
    model
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_second_writer_is_told_and_a_later_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ivoro");
    let lock = FileLock::acquire(&path).unwrap();
    let refused = FileLock::acquire(&path);
    assert!(matches!(refused, Err(Error::Locked { path: of }) if of == path));
    // another model in the same folder is free
    FileLock::acquire(&folder.path().join("other.ivoro")).unwrap();
    drop(lock);
    drop(FileLock::acquire(&path).unwrap());
    assert!(names(folder.path()).is_empty(), "a lock leaves no file behind");
}

#[test]
fn a_lock_file_left_behind_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ivoro");
    std::fs::write(folder.path().join(".model.ivoro.lock"), "").unwrap();
    FileLock::acquire(&path).unwrap();
}

#[test]
fn of_many_writers_at_once_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ivoro");
    let (inside, entered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..500 {
                    match FileLock::acquire(&path) {
                        Ok(lock) => {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            entered.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                        Err(error) => assert!(matches!(error, Error::Locked { .. }), "{error}"),
                    }
                }
            });
        }
    });
    assert!(entered.into_inner() > 0);
}

#[test]
fn a_path_that_names_no_file() {
    assert!(matches!(FileLock::acquire(Path::new("..")), Err(Error::Malformed { .. })));
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere").join("model.ivoro");
    let refused = FileLock::acquire(&nowhere).unwrap_err();
    assert!(matches!(refused, Error::Io(_)));
    // the file that was asked for is named, and not the one beside it
    let start = format!("{}: no file can be made in its folder: ", nowhere.display());
    assert!(refused.to_string().starts_with(&start), "{refused}");
    assert!(!refused.to_string().contains(".lock"), "{refused}");
}

#[test]
fn a_file_that_is_write_protected_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ivoro");
    save(&model("iVoro"), &path).unwrap();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let refused = FileLock::acquire(&path).unwrap_err();
    let sentence = format!("{}: is write-protected, so it is not changed", path.display());
    assert_eq!(refused.to_string(), sentence);
    assert_eq!(names(folder.path()), ["model.ivoro"]);
}

#[test]
fn a_save_that_fails_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ivoro");
    let first = model("iVoro");
    save(&first, &path).unwrap();
    let nowhere = folder.path().join("nowhere").join("model.ivoro");
    assert!(matches!(save(&first, &nowhere), Err(Error::Io(_))));
    // a folder can't be replaced by a file: the rename fails after all was written
    let occupied = folder.path().join("occupied");
    std::fs::create_dir_all(occupied.join("inside")).unwrap();
    assert!(matches!(save(&first, &occupied), Err(Error::Io(_))));
    let empty = Model::new("iVoro".parse().unwrap(), ModelOptions::default());
    assert!(matches!(save(&empty, &path), Err(Error::Size { .. })));
    assert!(load(&path).unwrap().head() == first.head());
    let mut found = names(folder.path());
    found.sort();
    assert_eq!(found, ["model.ivoro", "occupied"]);
}

#[test]
fn bytes_in_memory_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ivoro");
    let model = model("iVoro");
    save(&model, &path).unwrap();
    assert_eq!(ivoro::codec::encode(&model).unwrap(), std::fs::read(&path).unwrap());
    assert!(load(&path).unwrap().head() == model.head());
}

#[test]
fn what_is_no_file_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(load(folder.path()), Err(Error::Io(_))));
    assert!(matches!(load(&folder.path().join("missing")), Err(Error::Io(_))));
    let empty = folder.path().join("empty.ivoro");
    std::fs::write(&empty, "").unwrap();
    assert!(load(&empty).is_err());
}
