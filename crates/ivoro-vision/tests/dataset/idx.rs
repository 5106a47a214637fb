//! idx files, as MNIST and EMNIST have them.

use std::path::Path;

use ivoro_vision::dataset::Shape;

use crate::fixtures::{gzip, idx, interleaved, open, refusal, write};

/// 3 images for training and 2 for testing, 3 rows × 5 columns.
fn files(folder: &Path, [train, test]: [&str; 2], labels: [&[u8]; 2], pack: bool) {
    let file = |name: String, bytes: Vec<u8>| {
        if pack {
            write(folder, &(name + ".gz"), &gzip(&bytes));
        } else {
            write(folder, &name, &bytes);
        }
    };
    file(format!("{train}-images-idx3-ubyte"), idx(&[3, 3, 5], &interleaved(&[0, 1, 2], 3, 5, 1)));
    file(format!("{train}-labels-idx1-ubyte"), idx(&[3], labels[0]));
    file(format!("{test}-images-idx3-ubyte"), idx(&[2, 3, 5], &interleaved(&[3, 4], 3, 5, 1)));
    file(format!("{test}-labels-idx1-ubyte"), idx(&[2], labels[1]));
}

#[test]
fn plain_and_gzipped_images_that_are_not_square() {
    for pack in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("digits");
        files(&root, ["train", "t10k"], [&[0, 2, 1], &[2, 0]], pack);
        let set = open(&root);
        assert_eq!(set.name, "digits");
        assert_eq!(set.classes, ["0", "1", "2"]);
        assert_eq!(set.train.shape(), Some(Shape { height: 3, width: 5, channels: 1 }));
        assert_eq!(set.train.pixels().unwrap(), interleaved(&[0, 1, 2], 3, 5, 1));
        assert_eq!(set.test.pixels().unwrap(), interleaved(&[3, 4], 3, 5, 1));
        assert_eq!((set.train.labels(), set.test.labels()), (&[0, 2, 1][..], &[2, 0][..]));
    }
}

#[test]
fn class_names_come_from_a_list_or_from_the_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let names = ["emnist-letters-train", "emnist-letters-test"];
    // Letters begin at 1; the unused 0 is no class.
    files(root, names, [&[1, 3, 1], &[3, 3]], true);
    let set = open(root);
    assert_eq!(set.name, "emnist-letters");
    assert_eq!(set.classes, ["1", "3"]);
    assert_eq!((set.train.labels(), set.test.labels()), (&[0, 1, 0][..], &[1, 1][..]));
    write(root, "emnist-letters-mapping.txt", b"1 65 97\n2 66 98\n3 67 99\n");
    assert_eq!(open(root).classes, ["A", "C"]);
    write(root, "classes.txt", b"none\nay\nbee\nsee\n");
    let set = open(root);
    assert_eq!(set.classes, ["none", "ay", "bee", "see"]);
    assert_eq!(set.train.labels(), [1, 3, 1]);
    write(root, "classes.txt", b"none\nay\nbee\n");
    let error = refusal(root);
    assert!(error.ends_with("image 1: label 3 is outside 0..3"), "{error}");
}

#[test]
fn of_several_sets_in_a_folder_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    files(root, ["emnist-digits-train", "emnist-digits-test"], [&[0, 1, 1], &[0, 1]], true);
    files(root, ["emnist-mnist-train", "emnist-mnist-test"], [&[7, 8, 9], &[7, 7]], true);
    let error = refusal(root);
    assert!(error.contains("2 idx data sets (emnist-digits, emnist-mnist)"), "{error}");
    let set = open(&root.join("emnist-mnist-train-images-idx3-ubyte.gz"));
    assert_eq!((set.name.as_str(), set.classes.len()), ("emnist-mnist", 3));
}
