//! CIFAR-10 and CIFAR-100, binary and Python versions, in folders and archives.

use std::path::Path;

use ivoro_vision::dataset::{Broken, Fit, How, Shape, Split};

use crate::fixtures::{interleaved, open, pickled_batch, pickled_names, planar, tar_gz, write};

const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };

fn names(count: usize) -> Vec<String> {
    (0..count).map(|class| format!("class{class}")).collect()
}

fn records(label_bytes: &[u8], images: &[(usize, u8)]) -> Vec<u8> {
    let record = |&(image, label): &(usize, u8)| [label_bytes, &[label], &planar(image)].concat();
    images.iter().flat_map(record).collect()
}

fn check(split: &Split, images: &[usize], labels: &[u32]) {
    assert_eq!(split.shape(), Some(SHAPE));
    assert_eq!(split.labels(), labels);
    assert_eq!(split.pixels().unwrap(), interleaved(images, 32, 32, 3));
    let rows: Vec<usize> = (0..images.len()).rev().collect();
    let fit = Fit { shape: SHAPE, how: How::Exact };
    let read = split.read(&rows, fit, Broken::Fail).unwrap();
    let backwards: Vec<usize> = images.iter().rev().copied().collect();
    assert_eq!((read.pixels, read.rows), (interleaved(&backwards, 32, 32, 3), rows));
}

fn hundred_binary() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("train.bin", records(&[19], &[(0, 5), (1, 99), (2, 0)])),
        ("test.bin", records(&[3], &[(3, 42)])),
        ("fine_label_names.txt", names(100).join("\n").into_bytes()),
    ]
}

fn hundred_python() -> Vec<(&'static str, Vec<u8>)> {
    let data: Vec<u8> = (0..3).flat_map(planar).collect();
    vec![
        ("train", pickled_batch("fine_labels", 3, &data, &[5, 99, 0])),
        ("test", pickled_batch("fine_labels", 1, &planar(3), &[42])),
        ("meta", pickled_names("fine_label_names", &names(100))),
    ]
}

fn ten(python: bool) -> Vec<(String, Vec<u8>)> {
    let file = |name: String, image: usize, label: u8| {
        if python {
            (name, pickled_batch("labels", 1, &planar(image), &[label]))
        } else {
            (format!("{name}.bin"), records(&[], &[(image, label)]))
        }
    };
    let mut files: Vec<(String, Vec<u8>)> =
        (1..=5).map(|at| file(format!("data_batch_{at}"), at, at as u8)).collect();
    files.push(file("test_batch".to_owned(), 7, 9));
    files.push(if python {
        ("batches.meta".to_owned(), pickled_names("label_names", &names(10)))
    } else {
        ("batches.meta.txt".to_owned(), (names(10).join("\n") + "\n\n").into_bytes())
    });
    files
}

/// Opens the files as a folder, and as an archive in which they lie in a folder.
fn both_ways(files: &[(&str, Vec<u8>)], check: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        write(folder.path(), name, bytes);
    }
    check(folder.path());
    let inside: Vec<(String, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (format!("cifar/{name}"), bytes.clone())).collect();
    let inside: Vec<(&str, Vec<u8>)> =
        inside.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    write(folder.path(), "packed/set.tar.gz", &tar_gz(&inside));
    check(&folder.path().join("packed/set.tar.gz"));
}

#[test]
fn cifar_100_binary_and_python() {
    for (files, layout) in
        [(hundred_binary(), "CIFAR-100, binary"), (hundred_python(), "CIFAR-100, Python pickles")]
    {
        both_ways(&files, |path| {
            let set = open(path);
            assert_eq!((set.name.as_str(), set.layout.as_str()), ("cifar-100", layout));
            assert_eq!(set.classes, names(100));
            check(&set.train, &[0, 1, 2], &[5, 99, 0]);
            check(&set.test, &[3], &[42]);
        });
    }
}

#[test]
fn cifar_10_binary_and_python() {
    for python in [false, true] {
        let files = ten(python);
        let files: Vec<(&str, Vec<u8>)> =
            files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
        both_ways(&files, |path| {
            let set = open(path);
            assert_eq!(set.classes, names(10));
            check(&set.train, &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]);
            check(&set.test, &[7], &[9]);
        });
    }
}

#[test]
fn the_same_images_have_the_same_identity_whatever_the_packing() {
    let identities = std::cell::RefCell::new(Vec::new());
    for files in [hundred_binary(), hundred_python()] {
        both_ways(&files, |path| identities.borrow_mut().push(open(path).identity().unwrap()));
    }
    let mut changed = hundred_binary();
    *changed[1].1.last_mut().unwrap() ^= 1;
    both_ways(&changed, |path| identities.borrow_mut().push(open(path).identity().unwrap()));
    let identities = identities.into_inner();
    assert_eq!(identities[0].len(), 64);
    assert!(identities[..4].iter().all(|identity| *identity == identities[0]));
    assert!(identities[4] != identities[0] && identities[4] == identities[5]);
}
