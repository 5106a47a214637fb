//! Folders of image files: layouts, divisions, and files that are no images.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ivoro_vision::dataset::{Broken, Dataset, Fit, How, OpenOptions, Shape, Split};

use crate::fixtures::{interleaved, open, picture, refusal, write};

const SHAPE: Shape = Shape { height: 3, width: 5, channels: 3 };
const EXACT: Fit = Fit { shape: SHAPE, how: How::Exact };

fn all(split: &Split) -> Vec<u8> {
    let rows: Vec<usize> = (0..split.len()).collect();
    split.read(&rows, EXACT, Broken::Fail).unwrap().pixels
}

fn files(split: &Split) -> Vec<String> {
    let name = |row| split.path(row).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    (0..split.len()).map(name).collect()
}

#[test]
fn split_and_class_folders_of_every_lossless_kind() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    picture(root, "train/zebra/a.png", 0, 3, 5);
    picture(root, "train/ant/b.bmp", 1, 3, 5);
    picture(root, "train/ant/a.tiff", 2, 3, 5);
    picture(root, "val/ant/x.webp", 3, 3, 5);
    picture(root, "test/zebra/y.TIF", 4, 3, 5);
    write(root, "train/ant/.hidden", b"no image");
    write(root, "train/README.md", b"not in a class folder");
    let set = open(root);
    assert_eq!(set.classes, ["ant", "zebra"]);
    assert_eq!(set.layout, "folders train and test of class folders, val not used");
    assert_eq!(set.train.labels(), [0, 0, 1]);
    assert_eq!(files(&set.train), ["a.tiff", "b.bmp", "a.png"]);
    assert_eq!(all(&set.train), interleaved(&[2, 1, 0], 3, 5, 3));
    assert_eq!((set.test.labels(), all(&set.test)), (&[1][..], interleaved(&[4], 3, 5, 3)));
    assert_eq!((set.train.shape(), set.train.measure(0).unwrap()), (None, SHAPE));
    std::fs::remove_dir_all(root.join("test")).unwrap();
    let set = open(root);
    assert_eq!((set.test.labels(), all(&set.test)), (&[0][..], interleaved(&[3], 3, 5, 3)));
}

fn class_folders(root: &Path, classes: &[&str]) {
    for class in classes {
        for at in 0..10 {
            picture(root, &format!("{class}/{at}.png"), at, 3, 5);
        }
    }
}

#[test]
fn class_folders_are_divided_by_the_seed_and_each_class_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    class_folders(folder.path(), &["cat", "dog", "train"]);
    let options = |seed| OpenOptions { test_share: 0.3, seed, ..OpenOptions::default() };
    let divided = |seed| {
        let set = Dataset::open(folder.path(), &options(seed)).unwrap();
        let paths = |split: &Split| -> Vec<PathBuf> {
            (0..split.len()).map(|row| split.path(row).unwrap().to_owned()).collect()
        };
        (paths(&set.train), paths(&set.test))
    };
    let (train, test) = divided(1);
    assert_eq!((train.len(), test.len()), (21, 9));
    let together: BTreeSet<&PathBuf> = train.iter().chain(&test).collect();
    assert_eq!(together.len(), 30);
    assert_eq!(divided(1), (train, test.clone()));
    assert_ne!(divided(2).1, test);
    // Another class changes nothing for those that were there.
    class_folders(folder.path(), &["bee"]);
    let with_bee = divided(1).1;
    assert!(test.iter().all(|path| with_bee.contains(path)));
    assert_eq!(with_bee.len(), 12);
}

#[test]
fn nothing_is_held_out_where_nothing_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    picture(folder.path(), "one/only.png", 0, 3, 5);
    let options = OpenOptions { test_share: 0.0, ..OpenOptions::default() };
    let set = Dataset::open(folder.path(), &options).unwrap();
    assert_eq!((set.train.len(), set.test.len()), (1, 0));
    let error = refusal(folder.path());
    assert!(error.ends_with("one: class folder without an image; expected at least 2"), "{error}");
    for test_share in [-0.1, 1.0, f64::NAN] {
        let options = OpenOptions { test_share, ..OpenOptions::default() };
        let error = Dataset::open(folder.path(), &options).unwrap_err().to_string();
        assert!(error.starts_with("test_share = "), "{error}");
    }
}

#[test]
fn tiny_imagenet() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (id, image) in [("n02", 0), ("n01", 1), ("n03", 2)] {
        picture(root, &format!("train/{id}/images/{id}_0.png"), image, 3, 5);
        write(root, &format!("train/{id}/{id}_boxes.txt"), b"0 0 1 1");
    }
    picture(root, "val/images/val_0.png", 3, 3, 5);
    picture(root, "val/images/val_1.png", 4, 3, 5);
    picture(root, "test/images/test_0.png", 5, 3, 5);
    write(root, "wnids.txt", b"n03\nn01\nn02\n");
    write(
        root,
        "val/val_annotations.txt",
        b"val_1.png\tn03\t0\t0\t1\t1\nval_0.png\tn01\t0\t0\t1\t1\n",
    );
    write(
        root,
        "words.txt",
        b"n01\tgoldfish, Carassius auratus\nn02\tcrane\nn03\tcrane, bird\nn04\tx\n",
    );
    let set = open(root);
    assert_eq!(set.classes, ["goldfish", "crane (n02)", "crane (n03)"]);
    assert_eq!(
        (set.train.labels(), all(&set.train)),
        (&[0, 1, 2][..], interleaved(&[1, 0, 2], 3, 5, 3))
    );
    assert_eq!((set.test.labels(), all(&set.test)), (&[2, 0][..], interleaved(&[4, 3], 3, 5, 3)));
    for (list, expected) in [
        ("val_1.png\tn03\n", "1 labels, expected one for each of 2 images"),
        ("val_1.png\tn09\nval_0.png\tn01", "val_1.png: expected a class that train has, found n09"),
        ("val_1.png\tn03\nval_1.png\tn01", "there is no such file"),
        ("../../x.png\tn03\nval_1.png\tn01", "there is no such file"),
        ("val_1.png n03\n", "with tabs between"),
    ] {
        write(root, "val/val_annotations.txt", list.as_bytes());
        let error = refusal(root);
        assert!(error.contains(expected), "{error}");
    }
    // Many people sort val into class folders.
    std::fs::remove_file(root.join("val/val_annotations.txt")).unwrap();
    std::fs::remove_dir_all(root.join("val/images")).unwrap();
    picture(root, "val/n02/images/val_0.png", 6, 3, 5);
    assert_eq!(open(root).test.labels(), [1]);
}

#[test]
fn a_file_that_is_no_image_is_named_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    class_folders(root, &["cat", "dog"]);
    write(root, "cat/notes.txt", b"hello");
    let error = refusal(root);
    assert!(error.contains("notes.txt: a file that is no image in a class folder"), "{error}");
    let options = OpenOptions { broken: Broken::Skip, ..OpenOptions::default() };
    let set = Dataset::open(root, &options).unwrap();
    assert_eq!(set.left_out, [root.join("cat/notes.txt")]);
    assert_eq!(set.train.len() + set.test.len(), 20);
}

#[test]
fn a_broken_image_is_named_or_skipped_and_the_rest_stays_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for at in 0..4 {
        picture(root, &format!("train/a/{at}.png"), at, 3, 5);
    }
    picture(root, "test/a/0.png", 9, 3, 5);
    write(root, "train/a/1.png", b"\x89PNG\r\n\x1a\nnot really");
    let train = open(root).train;
    let error = train.read(&[0, 1, 2], EXACT, Broken::Fail).unwrap_err().to_string();
    assert!(error.contains("1.png: not a readable image: "), "{error}");
    let images = train.read(&[3, 1, 0, 3], EXACT, Broken::Skip).unwrap();
    assert_eq!(images.rows, [3, 0, 3]);
    assert_eq!(images.pixels, interleaved(&[3, 0, 3], 3, 5, 3));
    assert_eq!(images.broken.len(), 1);
    assert_eq!(images.broken[0].0, 1);
    assert!(images.broken[0].1.why.contains("1.png: not a readable image"), "{:?}", images.broken);
    let error = train.read(&[4], EXACT, Broken::Skip).unwrap_err().to_string();
    assert_eq!(error, "row 4 was asked for, the split has 4 images");
}

#[test]
fn empty_unpaired_and_misplaced_classes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    picture(root, "train/a/0.png", 0, 3, 5);
    let error = refusal(root);
    assert!(
        error.contains("test: there is no such file or folder; expected the test part"),
        "{error}"
    );
    picture(root, "test/b/0.png", 0, 3, 5);
    let error = refusal(root);
    assert!(error.ends_with("expected a class that train has too, found another"), "{error}");
    std::fs::create_dir(root.join("train/b")).unwrap();
    let error = refusal(root);
    assert!(error.ends_with("b: class folder without an image; expected at least 1"), "{error}");
    std::fs::remove_dir(root.join("train/b")).unwrap();
    picture(root, "train/0.png", 0, 3, 5);
    let error = refusal(root);
    assert!(error.contains("an image beside the class folders"), "{error}");
}

#[test]
fn the_identity_does_not_depend_on_the_place_but_on_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, image| {
        let root = folder.path().join(name);
        picture(&root, "train/a/0.png", 0, 3, 5);
        picture(&root, "test/a/0.png", image, 3, 5);
        open(&root).identity().unwrap()
    };
    assert_eq!(build("here", 1), build("there", 1));
    assert_ne!(build("here", 1), build("elsewhere", 2));
    let root = folder.path().join("here");
    std::fs::rename(root.join("test/a/0.png"), root.join("test/a/1.png")).unwrap();
    assert_ne!(open(&root).identity().unwrap(), build("there", 1));
}
