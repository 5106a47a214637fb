//! What the API does, and how it refuses.

use serde_json::json;

use crate::harness::{Place, around, lesson, model};

#[test]
fn a_model_is_taught_asked_and_corrected() {
    let place = Place::new();
    let empty = place.post(&model("ask"), &json!({"samples": [{"features": [0.0, 0.0]}]}));
    assert!(empty.refused(409).contains("no class yet"));
    let taught = place.teach("dog", &around(0.0, 0.0));
    assert_eq!((&taught["classes"], &taught["samples"]), (&json!(1), &json!(3)));
    assert!(taught["taught"][0].get("asked").unwrap().is_null());
    let taught = place.teach("cat", &around(9.0, 9.0));
    assert_eq!(taught["taught"][0]["asked"]["class"], "dog");
    let answer = place.ask([8.5, 9.0]);
    assert_eq!(answer["top"][0]["class"], "cat");
    assert_eq!(answer["top"].as_array().unwrap().len(), 2);
    assert_eq!(place.ask([0.1, 0.0])["top"][0]["class"], "dog");

    // what was learned as the wrong class
    let before = place.hash();
    let wrong = place.teach("cat", &[[0.2, 0.1]]);
    let receipt = wrong["taught"][0]["receipt"].clone();
    assert_eq!(wrong["taught"][0]["asked"]["right"], false);
    let moved =
        place.post(&model("relabel"), &json!({"receipts": [receipt], "class": "dog"})).good();
    assert_eq!(place.classes(), [("dog".to_owned(), 4), ("cat".to_owned(), 3)]);
    let again = place.post(&model("relabel"), &json!({"receipts": [receipt], "class": "dog"}));
    assert!(again.refused(409).contains("taken back already"));
    let back = place.post(&model("retract"), &json!({"receipts": moved["receipts"]})).good();
    assert_eq!(back["samples"], 1);
    assert_eq!(place.classes(), [("dog".to_owned(), 3), ("cat".to_owned(), 3)]);
    assert_ne!(place.hash(), before, "the journal remembers");
}

#[test]
fn one_of_many_samples_is_taken_back_exactly() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    place.teach("cat", &around(9.0, 9.0));
    let asked = |place: &Place| place.ask([3.0, 4.0])["top"].clone();
    let before = asked(&place);
    let many = place.teach("cat", &[[7.0, 7.5], [8.0, 3.0], [6.5, 9.0]]);
    assert_ne!(asked(&place), before);
    for at in [1, 0, 2] {
        let receipts = json!({"receipts": [many["taught"][at]["receipt"]]});
        place.post(&model("retract"), &receipts).good();
    }
    assert_eq!(asked(&place), before);
}

#[test]
fn names_change_and_receipts_follow() {
    let place = Place::new();
    let first = place.teach("dog", &around(0.0, 0.0));
    place.teach("cat", &around(9.0, 9.0));
    place.teach("puppy", &around(0.0, 3.0));
    let named =
        place.with_json("PATCH", &model("classes/cat"), &[], &json!({"name": "Katze 🐈"})).good();
    assert_eq!(named["into"], "Katze 🐈");
    let taken = place.with_json("PATCH", &model("classes/puppy"), &[], &json!({"name": "dog"}));
    assert!(taken.refused(409).contains("a class dog is in the model already"));
    place.with_json("PATCH", &model("classes/dog"), &[], &json!({"into": "puppy"})).good();
    assert_eq!(place.classes(), [("Katze 🐈".to_owned(), 3), ("puppy".to_owned(), 6)]);
    // a receipt of a class that is part of another now
    let receipts = json!({"receipts": [first["taught"][0]["receipt"]]});
    place.post(&model("retract"), &receipts).good();
    assert_eq!(place.classes()[1], ("puppy".to_owned(), 5));
    place.post(&model("undo"), &json!({})).good();
    assert_eq!(place.classes()[1], ("puppy".to_owned(), 6));
    let unknown = place.with_json("PATCH", &model("classes/cow"), &[], &json!({"name": "ox"}));
    assert!(unknown.refused(404).contains("class cow is not in the model"));
    let control = place.with_json("PATCH", &model("classes/puppy"), &[], &json!({"name": "a\nb"}));
    assert!(control.refused(422).contains("control characters"));
}

#[test]
fn what_was_done_last_is_undone() {
    let mut place = Place::new();
    assert_eq!(place.get(&model("undo")).good(), json!({}));
    place.teach("dog", &around(0.0, 0.0));
    place.teach("cat", &around(9.0, 9.0));
    let receipt = place.teach("cat", &[[0.3, 0.3]])["taught"][0]["receipt"].clone();
    place.post(&model("relabel"), &json!({"receipts": [receipt], "class": "dog"})).good();
    place.with_json("PATCH", &model("classes/dog"), &[], &json!({"name": "Hund"})).good();
    let last = place.get(&model("undo")).good();
    assert_eq!((&last["verb"], &last["changes"]), (&json!("rename"), &json!(5)));
    for expected in [
        vec![("dog", 4), ("cat", 3)],
        vec![("dog", 3), ("cat", 4)],
        vec![("dog", 3), ("cat", 3)],
        vec![("dog", 3)],
        vec![],
    ] {
        place.post(&model("undo"), &json!({})).good();
        let expected: Vec<(String, u64)> =
            expected.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        assert_eq!(place.classes(), expected);
    }
    assert!(!place.model().exists());
    assert!(place.post(&model("undo"), &json!({})).refused(409).contains("nothing to undo"));
    place.again();
    assert_eq!(place.classes(), []);
    place.teach("dog", &around(0.0, 0.0));
}

#[test]
fn a_class_is_forgotten_with_a_receipt() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let before = place.teach("cat", &around(9.0, 9.0));
    let gone = place.send("DELETE", &model("classes/cat"), &[], b"").good();
    assert_eq!((&gone["verb"], &gone["samples"]), (&json!("forget"), &json!(3)));
    assert_eq!(gone["hash_before"], before["hash"]);
    assert_eq!(gone["hash"], place.hash());
    assert_eq!(place.classes(), [("dog".to_owned(), 3)]);
    assert!(place.post(&model("undo"), &json!({})).refused(409).contains("for good"));
}

#[test]
fn a_class_of_a_pooled_metric_is_forgotten_with_its_receipts() {
    let place = Place::with(|options| options.beginning.variant = Some("iVoro-W".parse().unwrap()));
    place.teach("dog", &around(0.0, 0.0));
    let taught = place.teach("cat", &around(9.0, 9.0));
    let refused = place.send("DELETE", &model("classes/cat"), &[], b"");
    assert!(refused.refused(409).contains("one scatter for all classes together"));
    let receipts: Vec<_> =
        taught["taught"].as_array().unwrap().iter().map(|it| it["receipt"].clone()).collect();
    let some = json!({"receipts": receipts[..2]});
    let refused = place.with_json("DELETE", &model("classes/cat"), &[], &some);
    assert!(refused.refused(409).contains("1 of its 3 samples are in no receipt"));
    place
        .with_json(
            "DELETE",
            &model("classes/cat"),
            &[],
            &json!({"receipts": receipts, "strike": true}),
        )
        .good();
    assert_eq!(place.classes(), [("dog".to_owned(), 3)]);
    assert!(!place.get(&model("journal")).good().to_string().contains("cat"));
}

#[test]
fn conditions_are_checked_when_their_turn_comes() {
    let place = Place::new();
    let hash = place.teach("dog", &around(0.0, 0.0))["hash"].as_str().unwrap().to_owned();
    let tag = format!("\"{hash}\"");
    assert_eq!(place.get(&model("classes")).header("etag"), Some(tag.as_str()));
    let cat = lesson("cat", &around(9.0, 9.0));
    place.with_json("POST", &model("samples"), &[("If-Match", &tag)], &cat).good();
    let late = place.with_json("POST", &model("samples"), &[("If-Match", &tag)], &cat);
    assert!(late.refused(412).contains("the model has changed"));
    assert_eq!(place.classes().len(), 2);
}

#[test]
fn a_repeated_lesson_counts_once() {
    let mut place = Place::new();
    let body = lesson("dog", &around(0.0, 0.0));
    let key = [("Idempotency-Key", "lesson-1")];
    let first = place.with_json("POST", &model("samples"), &key, &body).good();
    let again = place.with_json("POST", &model("samples"), &key, &body);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.good(), first);
    place.again();
    assert_eq!(place.with_json("POST", &model("samples"), &key, &body).good(), first);
    assert_eq!(place.classes(), [("dog".to_owned(), 3)]);
    let other = place.with_json("POST", &model("samples"), &key, &lesson("dog", &around(1.0, 1.0)));
    assert!(other.refused(422).contains("came with another request"));
    let bad = place.with_json("POST", &model("samples"), &[("Idempotency-Key", "a b")], &body);
    assert!(bad.refused(400).contains("visible characters"));
}

#[test]
fn a_model_is_taken_along_and_comes_back() {
    let place = Place::new();
    assert!(place.get(&model("file")).refused(409).contains("no class yet"));
    place.teach("dog", &around(0.0, 0.0));
    let file = place.get(&model("file"));
    assert_eq!(
        file.header("etag").unwrap().trim_matches('"'),
        blake3::hash(&file.body).to_hex().as_str()
    );
    assert_eq!(file.body, std::fs::read(place.model()).unwrap());
    place.teach("cat", &around(9.0, 9.0));
    let kind = [("Content-Type", "application/octet-stream")];
    place.send("PUT", &model("file"), &kind, &file.body).good();
    assert_eq!(place.classes(), [("dog".to_owned(), 3)]);
    let broken = place.send("PUT", &model("file"), &kind, &file.body[..file.body.len() - 9]);
    assert!(broken.refused(422).contains("the uploaded model"));
    // a model of another place that began as this one
    let elsewhere = Place::new();
    elsewhere.send("PUT", &model("file"), &kind, &file.body).good();
    elsewhere.teach("cow", &around(-9.0, 9.0));
    elsewhere.teach("dog", &[[1.0, 1.0]]);
    let theirs = elsewhere.get(&model("file")).body;
    let form = form(&[("model", "theirs.ivoro", &theirs), ("ancestor", "start.ivoro", &file.body)]);
    let merged = place.send("POST", &model("merge"), &[("Content-Type", FORM)], &form).good();
    assert_eq!(merged["note"], "1 added, 1 combined, 0 forgotten since the ancestor");
    assert_eq!(place.classes(), [("dog".to_owned(), 4), ("cow".to_owned(), 3)]);
}

pub(crate) const FORM: &str = "multipart/form-data; boundary=XXXX";

pub(crate) fn form(parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, file, bytes) in parts {
        let name = if file.is_empty() { String::new() } else { format!("; filename=\"{file}\"") };
        body.extend(
            format!("--XXXX\r\nContent-Disposition: form-data; name=\"{field}\"{name}\r\n\r\n")
                .bytes(),
        );
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--XXXX--\r\n");
    body
}

#[test]
fn a_folder_has_many_models() {
    let mut place = Place::of_folder();
    assert_eq!(place.get("/api/v1/models").good(), json!([]));
    let begun = place.send("PUT", "/api/v1/models/birds", &[], b"");
    assert_eq!((begun.status, &begun.json()["name"]), (201, &json!("birds")));
    let again = place.send("PUT", "/api/v1/models/birds", &[], b"");
    assert!(again.refused(409).contains("here already"));
    let samples = lesson("robin", &around(0.0, 0.0));
    place.post("/api/v1/models/birds/samples", &samples).good();
    place.again();
    assert_eq!(place.get("/api/v1/models").good()[0]["samples"], 3);
    let gone = place.send("DELETE", "/api/v1/models/birds", &[], b"").good();
    assert_eq!((&gone["classes"], &gone["samples"]), (&json!(1), &json!(3)));
    assert!(place.get("/api/v1/models/birds").refused(404).contains("no model of this name"));
    let left: Vec<_> = std::fs::read_dir(place.folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn it_says_how_good_it_is_and_what_it_keeps() {
    let place = Place::with(|options| options.keep_unknowns = true);
    let near = |x: f32, y: f32, count: u8| -> Vec<[f32; 2]> {
        let turn = |at: u8| (f32::from(at) * 2.4).sin_cos();
        (0..count).map(|at| [x + turn(at).0, y + turn(at).1]).collect()
    };
    for step in 0..6 {
        let count = if step == 0 { 10 } else { 2 };
        place.teach("dog", &near(0.0, 0.1 * step as f32, count));
        place.teach("cat", &near(9.0, 9.0 - 0.1 * step as f32, count));
    }
    let quality = place.get(&model("quality")).good();
    assert_eq!((&quality["asked"], &quality["right"]), (&json!(20), &json!(20)));
    assert_eq!(quality["per_class"][0]["samples"], 20);
    let map = place.get(&format!("{}?width=300&height=200", model("map"))).good();
    assert_eq!(map["cells"].as_array().unwrap().len(), 2);
    let inside = |at: &serde_json::Value| {
        let [x, y] = [0, 1].map(|axis| at[axis].as_f64().unwrap());
        (0.0..=300.0).contains(&x) && (0.0..=200.0).contains(&y)
    };
    assert!(inside(&map["cells"][0]["centre"]));
    let asking = format!("{}?map=true&width=300&height=200&keep_unknown=true", model("ask"));
    let answers = place.post(
        &asking,
        &json!({"samples": [{"features": [0.1, 0.2], "name": "who"}, {"features": [4.5, 4.4]}]}),
    );
    let answers = answers.good()["answers"].clone();
    assert!(answers[0]["name"] == "who" && inside(&answers[0]["point"]), "{answers}");
    let unknown = (&answers[0]["unknown"], &answers[1]["unknown"]);
    assert_eq!(unknown, (&json!(false), &json!(true)), "{answers}");
    let waiting = place.get(&model("unknowns")).good();
    assert_eq!(waiting["unknowns"][0]["id"], answers[1]["unknown_id"]);
    place.post(&model("unknowns/1"), &json!({"class": "cow"})).good();
    assert_eq!(place.classes()[2], ("cow".to_owned(), 1));
    assert!(
        place
            .post(&model("unknowns/1"), &json!({"class": "cow"}))
            .refused(404)
            .contains("15 minutes")
    );
    let audit = place.get(&model("audit")).good();
    assert!(
        audit["bytes"].as_u64().unwrap() > 0 && audit["not_kept"].as_array().unwrap().len() > 3
    );
    let journal = place.get(&model("journal")).good();
    let entries = journal["entries"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &entries[0]["verb"], &entries[0]["token"]),
        (13, &json!("learn"), &json!("local"))
    );
    let metrics = String::from_utf8(place.get("/metrics").body).unwrap();
    for line in [
        "ivoro_samples_taught_total 41",
        "ivoro_model_classes{model=\"pets\"} 3",
        "ivoro_answers_unknown_total 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn classes_of_q_are_sealed() {
    let place = Place::with(|options| options.beginning.variant = Some("iVoro-Q".parse().unwrap()));
    place.teach("dog", &around(0.0, 0.0));
    place.teach("cat", &around(9.0, 9.0));
    place.post(&model("seal"), &json!({"classes": ["dog"], "rank": 1})).good();
    let more = place.post(&model("samples"), &lesson("dog", &around(0.0, 0.0)));
    assert!(more.refused(409).contains("is sealed"));
    assert_eq!(place.get(&model("classes")).good()[0]["sealed"], true);
}

#[test]
fn what_can_not_be_read_is_refused_with_a_sentence() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let send = |kind: &str, body: &[u8]| {
        place.send("POST", &model("samples"), &[("Content-Type", kind)], body)
    };
    for (kind, body, status, said) in [
        ("application/json", "{", 400, "EOF"),
        ("application/json", "{\"samples\":[]}", 422, "no feature vector"),
        ("application/json", "{\"samples\":[{\"features\":[1,2]}]}", 422, "sample 0 has no class"),
        (
            "application/json",
            "{\"samples\":[{\"class\":\"a\",\"features\":[1,2,3]}]}",
            422,
            "expected 2, found 3",
        ),
        (
            "application/json",
            "{\"samples\":[{\"class\":\"a\",\"features\":[1,1e30]}]}",
            422,
            "not a finite number",
        ),
        (
            "application/json",
            "{\"samples\":[{\"class\":\"a\",\"features\":[1,\"b\"]}]}",
            400,
            "expected f32",
        ),
        ("application/json", "{\"rows\":[]}", 400, "unknown field"),
        ("text/plain", "hello", 415, "found text/plain"),
        ("multipart/form-data", "hello", 400, "multipart"),
        ("application/x-npy", "hello", 422, "body.npy"),
        ("application/vnd.apache.arrow.stream", "hello", 422, "body.arrow"),
    ] {
        let sentence = send(kind, body.as_bytes()).refused(status);
        assert!(sentence.contains(said), "{sentence}");
    }
    assert_eq!(place.classes(), [("dog".to_owned(), 3)]);
    assert!(place.get("/api/v1/nothing").refused(404).contains("openapi.json"));
    assert!(place.send("DELETE", &model("ask"), &[], b"").refused(405).contains("other methods"));
}

#[test]
fn numpy_arrays_are_asked_and_taught() {
    let place = Place::new();
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    array.extend(format!("{header:<117}\n").bytes());
    around(0.0, 0.0).iter().flatten().for_each(|value| array.extend(value.to_le_bytes()));
    let kind = [("Content-Type", "application/x-npy")];
    place.send("POST", &format!("{}?class=dog", model("samples")), &kind, &array).good();
    place.teach("cat", &around(9.0, 9.0));
    let answers = place.send("POST", &model("ask"), &kind, &array).good();
    assert_eq!(answers["answers"].as_array().unwrap().len(), 3);
    assert_eq!(answers["answers"][2]["top"][0]["class"], "dog");
}

#[test]
fn the_description_names_every_route() {
    let place = Place::new();
    let api = place.get("/openapi.json").good();
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"));
    for path in
        ["/api/v1/models/{model}/ask", "/api/v1/models/{model}/samples", "/livez", "/metrics"]
    {
        assert!(api["paths"][path].is_object(), "{path}");
    }
    // each GET without a parameter but the model answers
    place.teach("dog", &around(0.0, 0.0));
    for (path, methods) in api["paths"].as_object().unwrap() {
        if methods.get("get").is_some() && !path.contains("{id}") && !path.ends_with("/events") {
            let answer = place.get(&path.replace("{model}", "pets"));
            assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        }
    }
    assert_eq!(place.get("/livez").body, b"ok");
}

#[test]
fn the_page_comes_from_the_binary() {
    let place = Place::new();
    let page = place.get("/");
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    let tag = page.header("etag").unwrap();
    assert_eq!(place.send("GET", "/", &[("If-None-Match", tag)], b"").status, 304);
    assert_eq!(place.get("/assets/nothing.js").status, 404);
    assert_eq!(place.get("/assets/..%2fCargo.toml").status, 404);
}
