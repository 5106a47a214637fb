//! `.npy` and `.npz` in every order of bytes and axes.

use ivoro_io::features::{ReadOptions, read};
use zip::CompressionMethod::{Deflated, Stored};

use super::fixtures::{self, *};

/// The values as `NumPy` lays them out for a type and an order of axes.
fn laid_out(fortran: bool, encode: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
    let places = (0..ROWS * VIEWS * DIM).map(|at| {
        if fortran {
            (at % ROWS, at / ROWS % VIEWS, at / (ROWS * VIEWS))
        } else {
            (at / (VIEWS * DIM), at / DIM % VIEWS, at % DIM)
        }
    });
    places.flat_map(|(row, view, column)| encode(value(row, view, column))).collect()
}

#[test]
fn every_float_byte_order_and_axis_order() {
    type Encode = fn(f32) -> Vec<u8>;
    let encodings: [(&str, Encode); 6] = [
        ("<f2", |v| half::f16::from_f32(v).to_le_bytes().to_vec()),
        (">f2", |v| half::f16::from_f32(v).to_be_bytes().to_vec()),
        ("<f4", |v| v.to_le_bytes().to_vec()),
        (">f4", |v| v.to_be_bytes().to_vec()),
        ("<f8", |v| f64::from(v).to_le_bytes().to_vec()),
        (">f8", |v| f64::from(v).to_be_bytes().to_vec()),
    ];
    for (descr, encode) in encodings {
        for fortran in [false, true] {
            let bytes = npy(descr, fortran, &[ROWS, VIEWS, DIM], &laid_out(fortran, encode));
            let set = fixtures::read("a.npy", &bytes).unwrap().asking().unwrap();
            assert_values(&set, 0);
            assert!(set.labelled().is_none());
        }
    }
}

#[test]
fn the_bytes_numpy_itself_writes() {
    // import io, numpy
    // array = numpy.asfortranarray(numpy.array([[0, 1, 2], [10, 11, 12]], ">f4"))
    // file = io.BytesIO(); numpy.save(file, array); file.getvalue()
    let mut bytes =
        b"\x93NUMPY\x01\x00v\x00{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }"
            .to_vec();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.extend_from_slice(
        b"\x00\x00\x00\x00A \x00\x00?\x80\x00\x00A0\x00\x00@\x00\x00\x00A@\x00\x00",
    );
    let set = fixtures::read("a.npy", &bytes).unwrap().asking().unwrap();
    let block = set.points().block(0, set.points().views()[0]).unwrap();
    assert_eq!(block.row(0), [0.0, 1.0, 2.0]);
    assert_eq!(block.row(1), [10.0, 11.0, 12.0]);
}

#[test]
fn labels_beside_a_lone_array() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("birds.npy");
    let features = npy("<f4", false, &[2, 3], &singles(&[1.0; 6]));
    fs_err::write(&path, features).unwrap();
    let file = read(&path, &ReadOptions::default()).unwrap();
    assert!(
        file.learning().unwrap_err().to_string().ends_with("learning needs labels, found none")
    );
    for name in ["birds_labels.npy", "birds.labels.npy", "other.npy"] {
        let labels = directory.path().join(name);
        fs_err::write(&labels, npy("<i8", false, &[2], &longs(&[1, 0]))).unwrap();
        let named = (name == "other.npy").then(|| labels.clone());
        let options = ReadOptions { labels: named, ..ReadOptions::default() };
        let file = read(&path, &options).unwrap();
        assert_eq!(file.learning().unwrap().labels(), [1, 0], "{name}");
        fs_err::remove_file(labels).unwrap();
    }
}

#[test]
fn archives_stored_and_deflated_under_every_usual_name() {
    let features = || npy("<f4", false, &[ROWS, VIEWS, DIM], &singles(&values()));
    let labels = || npy("|u1", false, &[ROWS], &[1, 0, 1]);
    for (train, train_labels, test, test_labels) in [
        ("X_train", "y_train", "X_test", "y_test"),
        ("train.last", "train.labels", "test.last", "test.labels"),
        ("train_features", "train_labels", "test_features", "test_labels"),
    ] {
        for method in [Stored, Deflated] {
            let members = [
                (train, features()),
                (train_labels, labels()),
                (test, features()),
                (test_labels, labels()),
            ];
            let file = fixtures::read("a.npz", &npz(method, &members)).unwrap();
            assert_values(file.train.as_ref().unwrap(), 0);
            assert_values(file.test.as_ref().unwrap(), 0);
            let (split, _) = file.into_split(0.2, 0).unwrap();
            assert_eq!(split.test.labels(), [1, 0, 1]);
        }
    }
    for (name, labels_name) in [("X", "y"), ("features", "labels"), ("layer4", "labels")] {
        let members = [(name, features()), (labels_name, labels())];
        let file = fixtures::read("a.npz", &npz(Deflated, &members)).unwrap();
        assert_values(file.all.as_ref().unwrap(), 0);
    }
}

#[test]
fn labels_of_text_and_names_of_classes() {
    // numpy.array(["owl", "ant", "owl"]) has the type <U3.
    let utf32 = |byte_order: fn(u32) -> [u8; 4]| -> Vec<u8> {
        "owlantowl".chars().flat_map(|c| byte_order(u32::from(c))).collect()
    };
    let features = || npy("<f4", false, &[ROWS, VIEWS, DIM], &singles(&values()));
    for labels in [
        npy("<U3", false, &[ROWS], &utf32(u32::to_le_bytes)),
        npy(">U3", false, &[ROWS], &utf32(u32::to_be_bytes)),
        npy("|S4", false, &[ROWS], b"owl\0ant\0owl\0"),
    ] {
        let members = [("X", features()), ("y", labels)];
        let features =
            fixtures::read("a.npz", &npz(Deflated, &members)).unwrap().learning().unwrap();
        assert_eq!(**features.classes(), ["ant", "owl"]);
        assert_eq!(features.labels(), [1, 0, 1]);
    }
    let members = [
        ("X", features()),
        ("y", npy(">i2", false, &[ROWS], &[0, 1, 0, 0, 0, 1])),
        ("classes", npy("|S3", false, &[2], b"owlant")),
        ("views", npy("|S4", false, &[2], b"0\x00\x00\x00180m")),
    ];
    let features = fixtures::read("a.npz", &npz(Deflated, &members)).unwrap().learning().unwrap();
    assert_eq!(**features.classes(), ["owl", "ant"]);
    assert_eq!(features.labels(), [1, 0, 1]);
    assert_eq!(features.views()[1].to_string(), "180m");
}

#[test]
fn arrays_under_names_of_their_own() {
    let features = |first: f32| npy("<f4", false, &[2, 2], &singles(&[first, 1.0, 2.0, 3.0]));
    let labels = |ids: [i64; 2]| npy("<i8", false, &[2], &longs(&ids));
    let members = [
        ("X_train", features(5.0)),
        ("deep_train", features(7.0)),
        ("y_train", labels([0, 1])),
        ("coarse_train", labels([1, 0])),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    fs_err::write(&path, npz(Deflated, &members)).unwrap();
    let some = |text: &str| Some(text.to_owned());
    for (label, feature, first, ids) in [
        ("y", "X", 5.0, [0, 1]),
        ("coarse", "X", 5.0, [1, 0]),
        ("coarse_train", "deep_train", 7.0, [1, 0]),
        ("y", "deep", 7.0, [0, 1]),
    ] {
        let (label_column, feature_column) = (some(label), some(feature));
        let options = ReadOptions { label_column, feature_column, ..ReadOptions::default() };
        let found = read(&path, &options).unwrap().learning().unwrap();
        assert_eq!(found.layers().len(), 1);
        assert_eq!(found.block(0, found.views()[0]).unwrap().row(0)[0], first);
        assert_eq!(found.labels(), ids);
    }
    let refused = |options: &ReadOptions| read(&path, options).unwrap_err().to_string();
    let options = ReadOptions { label_column: some("fine"), ..ReadOptions::default() };
    assert!(refused(&options).ends_with(
        "there is no array fine; the arrays are X_train, deep_train, y_train, coarse_train"
    ));
    let options = ReadOptions { split_column: some("part"), ..ReadOptions::default() };
    assert!(refused(&options).ends_with("is for Parquet and Arrow files"));
    let options = ReadOptions { labels: Some(path.clone()), ..ReadOptions::default() };
    assert!(refused(&options).ends_with("are for a lone .npy array"));
    let layers = Some(vec!["last".to_owned(), "nosuch".to_owned()]);
    let options = ReadOptions { layers, ..ReadOptions::default() };
    assert!(refused(&options).ends_with("there is no layer nosuch; there is last, deep, coarse"));
}

#[test]
fn a_file_that_is_cut_off_says_how_much_is_missing() {
    let whole = small_features();
    let refused = refusal("a.features", &whole[..whole.len() - 3]);
    let (expected, found) = (whole.len(), whole.len() - 3);
    assert!(
        refused.contains(&format!("the tensors: expected {expected} bytes, found {found}")),
        "{refused}"
    );
}
