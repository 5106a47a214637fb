//! Files made to deceive: each is refused in one line that names it.

use serde_json::json;
use zip::CompressionMethod::{Deflated, Stored};

use super::fixtures::*;

fn train(features: Tensor<'static>, labels: &[i64]) -> Vec<u8> {
    let labels = ("train.labels", "I64", vec![labels.len()], longs(labels));
    safetensors(&json!({}), &[features, labels])
}

#[test]
fn nothing_at_all() {
    assert_eq!(refusal("a.features", b""), "a.features: the file is empty");
    assert!(refusal("a.txt", b"hello there").contains("neither its first bytes"));
}

#[test]
fn a_safetensors_file_cut_anywhere() {
    let bytes = small_features();
    for length in 0..bytes.len() {
        refusal("a.features", &bytes[..length]);
    }
}

#[test]
fn a_header_length_of_everything() {
    let mut bytes = small_features();
    bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    refusal("a.features", &bytes);
    bytes[..8].copy_from_slice(&99_999_999_u64.to_le_bytes());
    refusal("a.features", &bytes);
}

#[test]
fn a_header_that_claims_a_hundred_gigabytes() {
    let claim =
        r#"{"last":{"dtype":"F32","shape":[5000000,5000],"data_offsets":[0,100000000000]}}"#;
    refusal("a.features", &safetensors_raw(claim, &[0; 64]));
    let overflow =
        r#"{"last":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}}"#;
    refusal("a.features", &safetensors_raw(overflow, &[]));
    let empty = r#"{"last":{"dtype":"F32","shape":[4611686018427387904,0],"data_offsets":[0,0]}}"#;
    assert!(refusal("a.features", &safetensors_raw(empty, &[])).contains("holds no number"));
    let views =
        r#"{"last":{"dtype":"F32","shape":[0,4611686018427387904,0],"data_offsets":[0,0]}}"#;
    refusal("a.features", &safetensors_raw(views, &[]));
}

#[test]
fn tensors_that_overlap_or_leave_a_hole() {
    for offsets in ["[0,8],\"x\":0", "[4,12]", "[8,0]"] {
        let header =
            format!(r#"{{"last":{{"dtype":"F32","shape":[1,2],"data_offsets":{offsets}}}}}"#);
        refusal("a.features", &safetensors_raw(&header, &[0; 12]));
    }
}

#[test]
fn numbers_that_are_none() {
    for (value, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut numbers = values();
        numbers[2 * VIEWS * DIM + DIM + 3] = value;
        let tensor = ("train.layer4", "F32", vec![ROWS, VIEWS, DIM], singles(&numbers));
        let message = refusal("a.features", &train(tensor, &[0, 1, 0]));
        let expected = "a.features: train: row 2, layer layer4, view 0m: ";
        assert_eq!(message, format!("{expected}{shown} is not a finite number within ±1e15"));
    }
    let tensor = ("train.last", "F64", vec![1, 1], 1e300_f64.to_le_bytes().to_vec());
    assert!(refusal("a.features", &train(tensor, &[0])).contains("inf is not a finite number"));
}

#[test]
fn labels_outside_any_list_of_classes() {
    let tensor = || ("train.last", "F32", vec![3, 1], singles(&[1.0; 3]));
    for label in [-1, i64::MIN, 1 << 24, 1 << 31, i64::MAX] {
        let message = refusal("a.features", &train(tensor(), &[0, label, 0]));
        assert!(message.contains(&format!("row 1: label {label} is outside")), "{message}");
    }
    let labels = ("train.labels", "U64", vec![3], vec![255; 24]);
    let message = refusal("a.features", &safetensors(&json!({}), &[tensor(), labels]));
    assert!(message.contains("row 0: label 18446744073709551615 is outside"), "{message}");
}

#[test]
fn as_many_labels_as_it_likes() {
    let tensor = ("train.last", "F32", vec![3, 1], singles(&[1.0; 3]));
    let message = refusal("a.features", &train(tensor, &[0, 1, 0, 1]));
    assert_eq!(message, "a.features: train: rows of layer last: expected 4, found 3");
}

#[test]
fn a_test_part_of_another_shape() {
    let part = |dim, views, label| {
        let count = 2 * dim * views;
        safetensors(
            &json!({}),
            &[
                ("train.last", "F32", vec![2, 1, 3], singles(&[1.0; 6])),
                ("train.labels", "I64", vec![2], longs(&[0, 1])),
                ("test.last", "F32", vec![2, views, dim], singles(&vec![1.0; count])),
                ("test.labels", "I64", vec![2], longs(&[0, label])),
            ],
        )
    };
    let message = refusal("a.features", &part(4, 1, 1));
    assert_eq!(message, "a.features: test: dimensions of layer last: expected 3, found 4");
    let message = refusal("a.features", &part(3, 2, 1));
    assert_eq!(message, "a.features: test: views of layer last: expected 1, found 2");
    let message = refusal("a.features", &part(3, 1, 9));
    assert_eq!(message, "a.features: test: row 1: class 9 has no train sample");
}

#[test]
fn three_views_that_nobody_names() {
    let tensor = ("last", "F32", vec![1, 3, 1], singles(&[1.0; 3]));
    let message = refusal("a.features", &safetensors(&json!({}), &[tensor]));
    assert!(message.contains("1, 2, 4 and 8 are understood"), "{message}");
}

#[test]
fn metadata_that_lies() {
    let tensors = || {
        [
            ("last", "F32", vec![2, 1], singles(&[1.0; 2])),
            ("labels", "I64", vec![2], longs(&[0, 1])),
        ]
    };
    for metadata in [
        json!({"layers": "first"}),
        json!({"layers": "last,last"}),
        json!({"layers": ""}),
        json!({"views": "0,90"}),
        json!({"views": "45"}),
        json!({"classes": "owl, ant"}),
        json!({"classes": "[\"owl\",\"owl\"]"}),
        json!({"classes": "[\"owl\"]"}),
        json!({"format": "ivoro-features", "version": "one"}),
    ] {
        refusal("a.features", &safetensors(&metadata, &tensors()));
    }
}

#[test]
fn a_numpy_array_cut_anywhere_or_too_long() {
    let mut bytes = npy("<f4", false, &[2, 3], &singles(&[1.0; 6]));
    for length in 0..bytes.len() {
        refusal("a.npy", &bytes[..length]);
    }
    bytes.push(0);
    let message = refusal("a.npy", &bytes);
    assert!(message.contains("needs 24 bytes of data, found 25"), "{message}");
}

#[test]
fn a_numpy_header_that_claims_a_hundred_gigabytes() {
    for shape in [&[5_000_000, 5000][..], &[usize::MAX, usize::MAX], &[usize::MAX, 0]] {
        refusal("a.npy", &npy("<f4", false, shape, &[0; 64]));
    }
    refusal("a.npy", &npy("<U4611686018427387905", false, &[1, 1], &[0; 4]));
}

#[test]
fn an_archive_cut_anywhere() {
    let member = npy("<f4", false, &[2, 3], &singles(&[1.0; 6]));
    let bytes = npz(Deflated, &[("X", member)]);
    for length in 0..bytes.len() {
        refusal("a.npz", &bytes[..length]);
    }
}

/// Overwrites four bytes behind every occurrence of a zip signature.
fn patch(bytes: &mut [u8], signature: [u8; 4], offset: usize, value: u32) {
    let found: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == signature[..]).collect();
    for at in found {
        bytes[at + offset..at + offset + 4].copy_from_slice(&value.to_le_bytes());
    }
}

#[test]
fn an_archive_that_declares_another_size() {
    let member = npy("<f4", false, &[2, 3], &singles(&[1.0; 6]));
    for method in [Stored, Deflated] {
        let whole = npz(method, &[("X", member.clone())]);
        for declared in [0, 1, member.len() as u32 - 1, member.len() as u32 + 1, u32::MAX - 1] {
            let mut bytes = whole.clone();
            patch(&mut bytes, *b"PK\x01\x02", 24, declared);
            patch(&mut bytes, *b"PK\x03\x04", 22, declared);
            refusal("a.npz", &bytes);
        }
    }
}

#[test]
fn a_zip_bomb() {
    // 300 MB of zeros in 300 kB: more than 100 times the archive.
    let zeros = vec![0; 300_000_000 - 128];
    let bytes = npz(Deflated, &[("X", npy("<f4", false, &[1, zeros.len() / 4], &zeros))]);
    assert!(bytes.len() < 400_000);
    let message = refusal("a.npz", &bytes);
    assert!(message.contains("brings the unpacked size over"), "{message}");
}

#[test]
fn an_archive_of_something_else() {
    let member = b"import os".to_vec();
    assert!(refusal("a.npz", &npz(Stored, &[("X", member)])).contains("not a NumPy array"));
    let member = || npy("<f4", false, &[1, 1], &singles(&[1.0]));
    let members = [("X_train", member()), ("features_train", member())];
    assert!(refusal("a.npz", &npz(Stored, &members)).contains("two arrays mean layer last"));
    let members = [("X_train", member()), ("X", member())];
    assert!(refusal("a.npz", &npz(Stored, &members)).contains("of neither part"));
}

#[test]
fn pickled_objects_are_never_read() {
    let message = refusal("a.npy", &npy("|O", false, &[1, 1], b"cos\nsystem\n"));
    assert!(message.contains("elements of type |O are not read"), "{message}");
}
