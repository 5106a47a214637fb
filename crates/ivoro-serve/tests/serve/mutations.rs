//! Bodies of every kind, changed at random: whatever they are, they are answered, never with an error of the server.

use serde_json::json;

use crate::api::{FORM, form};
use crate::harness::{Place, around, model};
use crate::images::{RED, picture};

const JSON: &str = "application/json";

/// Random numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }

    /// A body with a few bytes changed, cut out, doubled or put in.
    fn change(&mut self, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(body.len());
            match self.below(5) {
                0 if !body.is_empty() => body[at] = self.below(256) as u8,
                1 if !body.is_empty() => body[at] ^= 1 << self.below(8),
                2 => body.truncate(at),
                3 => {
                    let piece: Vec<u8> = body[at..].iter().take(self.below(64)).copied().collect();
                    body.splice(at..at, piece);
                }
                _ => {
                    let words: [&[u8]; 6] =
                        [b"[", b"-1", b"1e999", b"\"", b"\\u0000", b"18446744073709551615"];
                    body.splice(at..at, words[self.below(words.len())].iter().copied());
                }
            }
        }
        body
    }
}

/// A file of NumPy with two rows.
fn npy() -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let header = format!("{header:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend([0.0f32, 0.5, 9.0, 9.5].into_iter().flat_map(f32::to_le_bytes));
    file
}

#[test]
fn a_changed_body_is_never_an_error_of_the_server() {
    let place = Place::with(|options| options.beginning.variant = Some("iVoro".parse().unwrap()));
    place.teach("near", &around(0.0, 0.0));
    let taught = place.teach("far", &around(9.0, 9.0));
    let receipts =
        json!({"receipts": [taught["taught"][0]["receipt"]], "class": "near"}).to_string();
    let lesson =
        json!({"samples": [{"class": "far", "name": "x", "features": [9.0, 8.5]}]}).to_string();
    let tensor = json!({"id": "1", "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [[1, 2]]}],
        "outputs": [{"name": "class"}]}).to_string();
    let labels = "<View><Image name='p' value='$i'/><Choices name='c' toName='p'><Choice value='a'/></Choices></View>";
    let event =
        json!({"action": "ANNOTATION_CREATED", "project": {"id": 1, "label_config": labels},
        "annotation": {"id": 1, "result": [{"from_name": "c", "value": {"choices": ["a"]}}]},
        "task": {"data": {"i": "data:image/png;base64,aGk="}}})
        .to_string();
    let tasks = json!({"tasks": [{"data": {"i": "data:,"}}], "label_config": labels}).to_string();
    let photo = form(&[("class", "", b"red"), ("image", "r.bmp", &picture(8, 8, RED))]);
    let file = place.get(&model("file")).body;
    let merging = form(&[("model", "m.ivoro", &file)]);
    let seal = json!({"classes": ["near"], "bits": 8}).to_string();
    let bodies: [(&str, String, &str, &[u8]); 12] = [
        ("POST", model("ask?map=true"), JSON, lesson.as_bytes()),
        ("POST", model("ask"), "application/x-npy", &npy()),
        ("POST", model("samples"), JSON, lesson.as_bytes()),
        ("POST", model("samples"), FORM, &photo),
        ("POST", model("retract"), JSON, receipts.as_bytes()),
        ("POST", model("relabel"), JSON, receipts.as_bytes()),
        ("POST", model("merge"), FORM, &merging),
        ("PUT", model("file"), "application/octet-stream", &file),
        ("POST", model("seal"), JSON, seal.as_bytes()),
        ("POST", "/v2/models/pets/infer".to_owned(), JSON, tensor.as_bytes()),
        ("POST", "/webhook".to_owned(), JSON, event.as_bytes()),
        ("POST", "/predict".to_owned(), JSON, tasks.as_bytes()),
    ];
    let mut dice = Dice(22);
    for (method, path, kind, body) in &bodies {
        for _ in 0..60 {
            let changed = dice.change(body);
            let answer = place.send(method, path, &[("Content-Type", kind)], &changed);
            let text = String::from_utf8_lossy(&answer.body);
            assert!(answer.status < 500, "{method} {path}: {changed:?}: {} {text}", answer.status);
        }
    }
    assert_eq!(place.get("/readyz").status, 200);
}
