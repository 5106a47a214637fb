//! Damaged and forged files are refused, whatever their layout.

use crate::fixtures::{
    gzip, idx, open, pickled_batch, pickled_names, planar, refusal, tar_gz, write,
};

fn names() -> Vec<u8> {
    (0..100).flat_map(|class| format!("c{class}\n").into_bytes()).collect()
}

fn record(label: u8) -> Vec<u8> {
    [&[0, label][..], &planar(0)].concat()
}

#[test]
fn nothing_there_and_nothing_known() {
    let folder = tempfile::tempdir().unwrap();
    let error = refusal(&folder.path().join("gone"));
    assert!(error.contains("gone: there is no such file or folder"), "{error}");
    let error = refusal(folder.path());
    assert!(error.contains("no known data set; looked for CIFAR's batches, idx files"), "{error}");
    write(folder.path(), "a.txt", b"hello");
    let error = refusal(&folder.path().join("a.txt"));
    assert!(error.contains("looked for CIFAR's .tar.gz, an .npz"), "{error}");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(refusal(folder.path()).contains("no known data set"));
}

#[test]
fn cifar_with_a_missing_truncated_or_mislabelled_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "train.bin", &record(1));
    write(root, "fine_label_names.txt", &names());
    let error = refusal(root);
    assert!(
        error.ends_with(
            "test.bin: there is no such file or folder; expected a part of CIFAR-100, binary"
        ),
        "{error}"
    );
    write(root, "test.bin", &record(1)[..3000]);
    let error = refusal(root);
    assert!(
        error.ends_with("test.bin: expected records of 3074 bytes, found 3000 bytes in all"),
        "{error}"
    );
    write(root, "test.bin", &[record(1), record(100)].concat());
    let error = refusal(root);
    assert!(error.ends_with("test.bin: image 1: label 100 is outside 0..100"), "{error}");
    write(root, "test.bin", b"");
    assert!(refusal(root).contains("found 0 bytes"));
    write(root, "test.bin", &record(1));
    open(root);
    write(root, "fine_label_names.txt", b"a\nb\n");
    let error = refusal(root);
    assert!(error.ends_with("fine_label_names.txt: expected 100 class names, found 2"), "{error}");
}

#[test]
fn pickles_that_disagree_with_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let class_names: Vec<String> = (0..100).map(|class| format!("c{class}")).collect();
    let good = pickled_batch("fine_labels", 1, &planar(0), &[1]);
    write(root, "meta", &pickled_names("fine_label_names", &class_names));
    write(root, "train", &good);
    for (test, expected) in [
        (good[..good.len() - 20].to_vec(), "more bytes are promised"),
        (
            pickled_batch("fine_labels", 1, &planar(0), &[1, 2]),
            "2 labels, expected one for each of 1",
        ),
        (
            pickled_batch("fine_labels", 1, &planar(0), &[200]),
            "image 0: label 200 is outside 0..100",
        ),
        (pickled_batch("fine_labels", 9, &planar(0), &[1]), "found 3072 for 9×3072"),
        (pickled_batch("labels", 1, &planar(0), &[1]), "the dictionary has no fine_labels"),
        (b"~hello".to_vec(), "instruction 0x7e"),
        (Vec::new(), "byte 0: 1 more bytes are promised, the file has 0"),
    ] {
        write(root, "test", &test);
        let error = refusal(root);
        assert!(error.contains("test: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn an_archive_that_is_cut_short_or_no_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.gz");
    let whole = tar_gz(&[
        ("x/train.bin", record(1)),
        ("x/test.bin", record(2)),
        ("x/fine_label_names.txt", names()),
    ]);
    write(folder.path(), "a.tar.gz", &whole);
    open(&path);
    for end in [0, 1, 10, whole.len() / 2, whole.len() - 100] {
        write(folder.path(), "a.tar.gz", &whole[..end]);
        let error = refusal(&path);
        assert!(error.contains("a.tar.gz: "), "cut at {end}: {error}");
    }
    write(folder.path(), "a.tar.gz", b"hello, this is no archive");
    assert!(refusal(&path).contains("a.tar.gz: not a complete .tar.gz"));
    write(folder.path(), "a.tar.gz", &tar_gz(&[("x/readme", b"hello".to_vec())]));
    assert!(refusal(&path).contains("a.tar.gz: no known data set"));
    let twice = [("x/train.bin", record(1)), ("y/train.bin", record(2))];
    write(folder.path(), "a.tar.gz", &tar_gz(&twice));
    assert!(refusal(&path).contains("two files are called train.bin"));
}

#[test]
fn archives_that_unpack_to_too_much() {
    let folder = tempfile::tempdir().unwrap();
    // A header alone can claim any size.
    let mut header = tar::Header::new_gnu();
    header.set_path("x/train.bin").unwrap();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(100_000_000_000);
    header.set_cksum();
    write(folder.path(), "a.tar.gz", &gzip(header.as_bytes()));
    let error = refusal(&folder.path().join("a.tar.gz"));
    assert!(
        error.contains("train.bin takes 100000000000 bytes, at most 268435456 are read"),
        "{error}"
    );
    // Gigabytes of zeros fit into megabytes; what is there need not be claimed anywhere.
    let mut bomb = idx(&[3], &[]);
    bomb.resize(300 << 20, 0);
    write(folder.path(), "train-labels-idx1-ubyte.gz", &gzip(&bomb));
    for name in ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"] {
        write(folder.path(), name, b"");
    }
    let error = refusal(folder.path());
    assert!(error.contains("train-labels-idx1-ubyte.gz: the file takes"), "{error}");
}

#[test]
fn idx_files_that_promise_what_they_do_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let good = [
        ("train-images-idx3-ubyte", idx(&[2, 3, 5], &[7; 30])),
        ("train-labels-idx1-ubyte", idx(&[2], &[0, 1])),
        ("t10k-images-idx3-ubyte", idx(&[1, 3, 5], &[7; 15])),
        ("t10k-labels-idx1-ubyte", idx(&[1], &[1])),
    ];
    let restore = || good.iter().for_each(|(name, bytes)| write(root, name, bytes));
    restore();
    open(root);
    for (name, bytes, expected) in [
        (good[0].0, idx(&[2, 3, 5], &[7; 29]), "the header promises 30 bytes, found 29"),
        (good[0].0, idx(&[2, 3, 5], &[7; 31]), "the header promises 30 bytes, found 31"),
        (good[0].0, idx(&[100_000, 1000, 1000], &[7; 30]), "promises 100000000000 bytes, found 30"),
        (good[0].0, idx(&[u32::MAX; 3], &[7; 30]), "found 30"),
        (good[0].0, idx(&[0, u32::MAX, 9], &[]), "0 images of 9×4294967295 can't be read"),
        (good[0].0, vec![0, 0, 8], "an idx header has 16 bytes, found 3"),
        (good[0].0, idx(&[30], &[7; 30]), "expected the idx number 00000803, found 00000801"),
        (good[1].0, idx(&[3], &[0, 1, 1]), "3 labels, expected one for each of 2 images"),
        (good[1].0, good[0].1.clone(), "expected the idx number 00000801, found 00000803"),
    ] {
        restore();
        write(root, name, &bytes);
        let error = refusal(root);
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
    restore();
    std::fs::remove_file(root.join(good[3].0)).unwrap();
    let error = refusal(root);
    assert!(error.contains("t10k-labels-idx1-ubyte: there is no such file"), "{error}");
    let packed = gzip(&good[3].1);
    write(root, "t10k-labels-idx1-ubyte.gz", &packed[..packed.len() - 5]);
    let error = refusal(root);
    assert!(error.contains("t10k-labels-idx1-ubyte.gz: not a complete .gz"), "{error}");
}
