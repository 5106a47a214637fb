//! NumPy archives of images.

use std::path::Path;

use ivoro_vision::dataset::{Shape, is_features_file};

use crate::fixtures::{interleaved, npy, npz, open, refusal, write};

fn member(channels: usize, images: &[usize]) -> Vec<u8> {
    let count = images.len();
    let shape =
        if channels == 1 { format!("({count}, 3, 5)") } else { format!("({count}, 3, 5, 3)") };
    npy("|u1", &shape, &interleaved(images, 3, 5, channels))
}

#[test]
fn medmnist_grey_and_colour() {
    for channels in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = npz(&[
            ("train_images", member(channels, &[0, 1])),
            ("val_images", member(channels, &[8])),
            ("test_images", member(channels, &[2])),
            ("train_labels", npy("|u1", "(2, 1)", &[1, 0])),
            ("val_labels", npy("|u1", "(1, 1)", &[0])),
            ("test_labels", npy("|u1", "(1, 1)", &[1])),
        ]);
        write(folder.path(), "bloodmnist.npz", &bytes);
        let set = open(&folder.path().join("bloodmnist.npz"));
        assert_eq!(set.name, "bloodmnist");
        assert_eq!(set.classes, ["0", "1"]);
        assert_eq!(set.train.shape(), Some(Shape { height: 3, width: 5, channels }));
        assert_eq!(set.train.pixels().unwrap(), interleaved(&[0, 1], 3, 5, channels));
        assert_eq!(set.test.pixels().unwrap(), interleaved(&[2], 3, 5, channels));
        assert_eq!((set.train.labels(), set.test.labels()), (&[1, 0][..], &[1][..]));
        write(folder.path(), "bloodmnist.classes.txt", b"basophil\neosinophil\n");
        assert_eq!(open(&folder.path().join("bloodmnist.npz")).classes[1], "eosinophil");
    }
}

#[test]
fn keras_names_and_wide_labels() {
    let folder = tempfile::tempdir().unwrap();
    let wide =
        |labels: &[i64]| labels.iter().flat_map(|label| label.to_le_bytes()).collect::<Vec<_>>();
    let bytes = npz(&[
        ("x_train", member(1, &[0, 1])),
        ("y_train", npy("<i8", "(2,)", &wide(&[4, 7]))),
        ("x_test", member(1, &[2])),
        ("y_test", npy("<i8", "(1,)", &wide(&[7]))),
    ]);
    write(folder.path(), "mnist.npz", &bytes);
    let set = open(&folder.path().join("mnist.npz"));
    assert_eq!((set.classes, set.test.labels()), (vec!["4".to_owned(), "7".to_owned()], &[1][..]));
}

#[test]
fn val_is_the_test_part_where_there_is_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let labels = npy("|u1", "(1, 1)", &[0]);
    let bytes = npz(&[
        ("train_images", member(1, &[0])),
        ("train_labels", labels.clone()),
        ("val_images", member(1, &[6])),
        ("val_labels", labels),
    ]);
    write(folder.path(), "a.npz", &bytes);
    let set = open(&folder.path().join("a.npz"));
    assert_eq!(set.test.pixels().unwrap(), interleaved(&[6], 3, 5, 1));
    assert_eq!(set.layout, "NumPy archive with train_images and val_images");
}

/// The message for an archive with these train images and labels.
fn refused(images: Vec<u8>, labels: Vec<u8>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let bytes = npz(&[
        ("train_images", images),
        ("train_labels", labels),
        ("test_images", member(1, &[0])),
        ("test_labels", npy("|u1", "(1, 1)", &[0])),
    ]);
    write(folder.path(), "a.npz", &bytes);
    refusal(&folder.path().join("a.npz"))
}

#[test]
fn arrays_that_are_no_images_or_labels_are_refused() {
    let one = || npy("|u1", "(1, 1)", &[0]);
    for (images, labels, expected) in [
        (npy("|u1", "(1, 2, 2, 2)", &[0; 8]), one(), "found [1, 2, 2, 2]"),
        (npy("<f4", "(1, 1, 1)", &[0; 4]), one(), "expected an array of integers"),
        (npy("<i2", "(1, 1, 1)", &[0; 2]), one(), "expected unsigned bytes"),
        (npy("|u1", "(0, 3, 5)", &[]), one(), "hold no image"),
        (npy("|u1", "(100000, 1000, 1000)", &[0; 8]), one(), "needs 100000000000 bytes"),
        (member(1, &[0]), npy("|u1", "(1, 14)", &[0; 14]), "expected one label an image"),
        (member(1, &[0]), npy("|i1", "(1,)", &[0xff]), "image 0: label -1 is outside"),
        (member(1, &[0]), npy("|u1", "(2,)", &[0, 1]), "2 labels, expected one for each of 1"),
    ] {
        let error = refused(images, labels);
        assert!(error.contains("a.npz") && error.contains(expected), "{error}");
    }
}

#[test]
fn an_archive_without_images_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.npz", &npz(&[("X", npy("<f4", "(1,)", &[0; 4]))]));
    let error = refusal(&folder.path().join("a.npz"));
    assert!(error.ends_with("names train_images, x_train, found none"), "{error}");
    let whole = npz(&[("train_images", member(1, &[0])), ("train_labels", member(1, &[0]))]);
    write(folder.path(), "b.npz", &whole[..whole.len() / 2]);
    let error = refusal(&folder.path().join("b.npz"));
    assert!(error.contains("b.npz") && error.contains("not a readable zip archive"), "{error}");
}

#[test]
fn images_and_features_are_told_apart_without_unpacking() {
    let folder = tempfile::tempdir().unwrap();
    let is_features = |name: &str, members: &[(&str, Vec<u8>)]| {
        write(folder.path(), name, &npz(members));
        is_features_file(&folder.path().join(name))
    };
    let labels = npy("|u1", "(1,)", &[0]);
    let set = |train: Vec<u8>, test: Vec<u8>| {
        [
            ("x_train", train),
            ("y_train", labels.clone()),
            ("x_test", test),
            ("y_test", labels.clone()),
        ]
    };
    let image = || member(1, &[0]);
    let floats = || npy("<f4", "(1, 2)", &[0; 8]);
    assert!(!is_features("keras.npz", &set(image(), image())));
    assert!(is_features("floats.npz", &set(floats(), floats())));
    // bytes of two axes are features, and so are floats of three
    let bytes = npy("|u1", "(1, 2)", &[0; 2]);
    assert!(is_features("bytes.npz", &set(bytes.clone(), bytes)));
    let volume = npy("<f4", "(1, 1, 2)", &[0; 8]);
    assert!(is_features("volume.npz", &set(volume.clone(), volume)));
    assert!(is_features("half.npz", &set(image(), image())[..2]));
    assert!(is_features("other.npz", &[("X", floats()), ("y", labels.clone())]));
    // an array whose numbers are cut short: its header alone is read
    assert!(!is_features("cut.npz", &set(npy("|u1", "(9, 3, 5)", &[1]), image())));
    write(folder.path(), "broken.npz", b"no archive");
    assert!(is_features_file(&folder.path().join("broken.npz")));
}

#[test]
fn by_name_only_folders_packed_sets_and_idx_files_are_images() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!is_features_file(folder.path()));
    for name in ["cifar-10-python.tar.GZ", "cifar.tgz", "train-images-idx3-ubyte"] {
        assert!(!is_features_file(Path::new(name)), "{name}");
    }
    for name in ["a.features", "a.parquet", "a.npy", "missing.npz", "missing"] {
        assert!(is_features_file(Path::new(name)), "{name}");
    }
}

#[test]
fn a_rehearsal_divides_the_training_images_of_some_classes() {
    let folder = tempfile::tempdir().unwrap();
    let labels: Vec<u8> = (0..15).map(|image| image % 3).collect();
    let bytes = npz(&[
        ("train_images", member(1, &(0..15).collect::<Vec<_>>())),
        ("train_labels", npy("|u1", "(15, 1)", &labels)),
        ("test_images", member(1, &[20])),
        ("test_labels", npy("|u1", "(1, 1)", &[0])),
    ]);
    write(folder.path(), "three.npz", &bytes);
    let set = open(&folder.path().join("three.npz"));
    let part = set.rehearsal(&[2, 0], 0.2, 7);
    assert_eq!(part.classes, ["2", "0"]);
    assert_eq!(part.train.labels(), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(part.test.labels(), [0, 1]);
    // every training image of both classes is in one part, and none of another
    let pixels = [part.train.pixels().unwrap(), part.test.pixels().unwrap()].concat();
    let mut found: Vec<&[u8]> = pixels.chunks(15).collect();
    let all: Vec<usize> = (0..15).filter(|image| image % 3 != 1).collect();
    let expected = interleaved(&all, 3, 5, 1);
    let mut expected: Vec<&[u8]> = expected.chunks(15).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(part.identity().unwrap(), set.rehearsal(&[2, 0], 0.2, 7).identity().unwrap());
    assert_ne!(part.identity().unwrap(), set.rehearsal(&[2, 0], 0.2, 8).identity().unwrap());
}
