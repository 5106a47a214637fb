//! Requests as clients of other programs send them; the payloads are written after their specifications.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::harness::{Answer, Place, around};
use crate::images::{BLUE, RED, picture};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn two_classes() -> Place {
    let place = Place::with(|options| options.beginning.variant = Some("iVoro".parse().unwrap()));
    place.teach("near", &around(0.0, 0.0));
    place.teach("far", &around(9.0, 9.0));
    place
}

/// The outputs of an answer by their names.
fn output(answer: &Value, name: &str) -> Value {
    let outputs = answer["outputs"].as_array().unwrap();
    outputs.iter().find(|output| output["name"] == name).cloned().unwrap_or_default()
}

/// The sentence of an error as the protocol has it.
#[track_caller]
fn error_of(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()["error"].as_str().unwrap().to_owned()
}

#[test]
fn an_inference_server_says_what_it_is_and_has() {
    let place = two_classes();
    assert_eq!(place.get("/v2").good()["name"], "ivoro");
    assert_eq!(place.get("/v2/").good()["extensions"], json!([]));
    assert_eq!(place.get("/v2/health/live").good()["live"], true);
    assert_eq!(place.get("/v2/health/ready").good()["ready"], true);
    let ready = place.get("/v2/models/pets/ready").good();
    assert_eq!(ready, json!({"name": "pets", "ready": true}));
    let metadata = place.get("/v2/models/pets").good();
    assert_eq!(
        metadata["inputs"],
        json!([{"name": "features", "datatype": "FP32", "shape": [-1, 2]}])
    );
    assert_eq!(metadata["outputs"][0]["name"], "class");
    assert!(error_of(&place.get("/v2/models/cats"), 404).contains("no model"));
    let empty = Place::new();
    assert!(error_of(&empty.get("/v2/models/pets/ready"), 503).contains("no class"));
    let inputs = empty.get("/v2/models/pets").good()["inputs"].clone();
    assert_eq!(inputs, json!([{"name": "image", "datatype": "BYTES", "shape": [-1]}]));
}

#[test]
fn features_are_inferred_flat_nested_and_binary() {
    let place = two_classes();
    let path = "/v2/models/pets/infer";
    for data in [json!([0.1, 0.0, 8.5, 9.0]), json!([[0.1, 0.0], [8.5, 9.0]])] {
        let request = json!({
            "id": "42",
            "model_name": "pets",
            "inputs": [{"name": "features", "shape": [2, 2], "datatype": "FP32", "data": data}],
        });
        let answer = place.post(path, &request).good();
        assert_eq!((&answer["id"], &answer["model_name"]), (&json!("42"), &json!("pets")));
        let class = output(&answer, "class");
        assert_eq!((&class["datatype"], &class["shape"]), (&json!("BYTES"), &json!([2, 1])));
        assert_eq!(class["data"], json!(["near", "far"]));
    }
    // as KServe's and Triton's clients send arrays: behind the JSON
    let text = json!({"inputs": [{"name": "features", "shape": [1, 2], "datatype": "FP32",
        "parameters": {"binary_data_size": 8}}], "parameters": {"binary_data_output": true}});
    let text = text.to_string();
    let mut body = text.clone().into_bytes();
    body.extend([8.0f32, 8.0].into_iter().flat_map(f32::to_le_bytes));
    let length = text.len().to_string();
    let headers = [
        ("Content-Type", "application/octet-stream"),
        ("Inference-Header-Content-Length", &length),
    ];
    let answer = place.send("POST", path, &headers, &body).good();
    assert_eq!(output(&answer, "class")["data"], json!(["far"]));
    let wrong = [JSON, ("Inference-Header-Content-Length", "99999")];
    error_of(&place.send("POST", path, &wrong, &body), 400);
}

#[test]
fn an_inference_names_its_outputs_and_how_many() {
    let place = two_classes();
    let path = "/v2/models/pets/infer";
    let input = json!({"name": "x", "shape": [1, 2], "datatype": "FP64", "data": [0.0, 0.0]});
    let request =
        json!({"inputs": [input], "parameters": {"top": 5}, "outputs": [{"name": "class"}]});
    let answer = place.post(path, &request).good();
    assert_eq!(answer["outputs"].as_array().unwrap().len(), 1);
    assert_eq!(answer["outputs"][0]["data"], json!(["near", "far"]));
    for (request, status) in [
        (json!({"inputs": []}), 400),
        (json!({"inputs": [input, input]}), 400),
        (json!({"inputs": [input], "outputs": [{"name": "logits"}]}), 400),
        (json!({"inputs": [input], "parameters": {"top": 0}}), 400),
        (
            json!({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "INT8", "data": [0, 0]}]}),
            400,
        ),
        (
            json!({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [0, 0, 0]}]}),
            422,
        ),
        (
            json!({"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["aGk="]}]}),
            409,
        ),
        (json!("x"), 400),
    ] {
        let answer = place.post(path, &request);
        assert!(!error_of(&answer, status).is_empty(), "{request}");
    }
    let empty = Place::new();
    error_of(&empty.post(path, &json!({"inputs": [input]})), 409);
}

fn data_uri(colour: [u8; 3]) -> String {
    format!("data:image/bmp;base64,{}", BASE64.encode(picture(64, 48, colour)))
}

/// The labels of a project: a choice between two.
const LABELS: &str = r#"<View><Image name="photo" value="$image"/>
  <Choices name="colour" toName="photo"><Choice value="red"/><Choice value="blue"/></Choices></View>"#;

/// An event as Label Studio sends it, with fields that nothing is made of.
fn event(action: &str, id: u64, class: Option<&str>, colour: [u8; 3]) -> Value {
    let result = class.map(|class| {
        json!({"id": "x1", "type": "choices", "from_name": "colour", "to_name": "photo",
            "origin": "manual", "value": {"choices": [class]}})
    });
    json!({
        "action": action,
        "annotation": {"id": id, "result": result.into_iter().collect::<Vec<_>>(), "was_cancelled": false,
            "ground_truth": false, "lead_time": 2.5, "task": 7, "project": 3, "completed_by": 1},
        "task": {"id": 7, "data": {"image": data_uri(colour)}, "project": 3, "is_labeled": true},
        "project": {"id": 3, "title": "colours", "label_config": LABELS},
    })
}

fn tasks(colours: &[[u8; 3]]) -> Value {
    let task = |(id, colour): (usize, &[u8; 3])| json!({"id": id, "data": {"image": data_uri(*colour)}, "project": 3, "annotations": []});
    let tasks: Vec<Value> = colours.iter().enumerate().map(task).collect();
    json!({"tasks": tasks, "project": "3.1700000000", "label_config": LABELS,
        "params": {"login": null, "password": null, "context": null}})
}

#[test]
fn images_are_inferred_and_annotations_teach_relabel_and_take_back() {
    let mut place =
        Place::with(|options| options.beginning.variant = Some("iVoro".parse().unwrap()));
    assert_eq!(place.get("/health").good()["status"], "UP");
    let setup = json!({"project": "3.1700000000", "schema": LABELS, "hostname": "http://169.254.169.254",
        "access_token": "secret", "extra_params": null});
    let first = place.post("/label-studio/pets/setup", &setup).good()["model_version"].clone();
    let empty = place.post("/predict", &tasks(&[RED])).good();
    assert_eq!(empty["results"][0]["result"], json!([]));
    for (id, class, colour) in [(1, "red", RED), (2, "blue", BLUE), (3, "blue", [30, 30, 220])] {
        let answer = place.post("/webhook", &event("ANNOTATION_CREATED", id, Some(class), colour));
        assert_eq!((answer.status, &answer.json()["result"]["taught"]), (201, &json!(1)));
    }
    // the same event again counts once, also after a restart
    place.again();
    place.post("/webhook", &event("ANNOTATION_CREATED", 1, Some("red"), RED)).good();
    assert_eq!(place.classes(), [("red".to_owned(), 1), ("blue".to_owned(), 2)]);
    let now = place.post("/setup", &setup).good()["model_version"].clone();
    assert_ne!(now, first);
    let answer = place.post("/label-studio/pets/predict", &tasks(&[RED, BLUE])).good();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["model_version"], now);
    assert_eq!(results[0]["result"][0]["value"], json!({"choices": ["red"]}));
    assert_eq!(results[1]["result"][0]["from_name"], "colour");
    assert_eq!(results[1]["result"][0]["value"]["choices"][0], "blue");

    place.post("/webhook", &event("ANNOTATION_UPDATED", 3, Some("red"), BLUE)).good();
    assert_eq!(place.classes(), [("red".to_owned(), 2), ("blue".to_owned(), 1)]);
    // nothing is chosen any more, and then something again
    place.post("/webhook", &event("ANNOTATION_UPDATED", 3, None, BLUE)).good();
    assert_eq!(place.classes(), [("red".to_owned(), 1), ("blue".to_owned(), 1)]);
    place.post("/webhook", &event("ANNOTATION_UPDATED", 3, Some("blue"), BLUE)).good();
    assert_eq!(place.classes(), [("red".to_owned(), 1), ("blue".to_owned(), 2)]);
    let gone = json!({"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 2}, {"id": 3}, {"id": 99}],
        "project": {"id": 3, "label_config": LABELS}});
    assert_eq!(place.post("/webhook", &gone).good()["result"]["taken_back"], 2);
    assert_eq!(place.classes(), [("red".to_owned(), 1)]);
    let other = place.post("/webhook", &json!({"action": "TASKS_CREATED", "tasks": []}));
    assert_eq!((other.status, other.json()["status"].clone()), (200, json!("Unknown event")));

    let image = BASE64.encode(picture(64, 48, RED));
    let request =
        json!({"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [image]}]});
    let answer = place.post("/v2/models/pets/infer", &request).good();
    assert_eq!(output(&answer, "class")["data"], json!(["red"]));
    let broken =
        json!({"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": ["aGk="]}]});
    assert!(error_of(&place.post("/v2/models/pets/infer", &broken), 422).contains("image 0"));
}

#[test]
fn addresses_in_tasks_are_not_followed() {
    let place = Place::new();
    for address in ["http://169.254.169.254/latest", "/data/upload/3/a.jpg", "file:///etc/passwd"] {
        let mut event = event("ANNOTATION_CREATED", 1, Some("red"), RED);
        event["task"]["data"]["image"] = json!(address);
        assert!(place.post("/webhook", &event).refused(422).contains("not fetched"));
    }
    assert!(place.classes().is_empty());
    assert!(
        place
            .post("/predict", &json!({"tasks": [], "label_config": "<View/>"}))
            .refused(422)
            .contains("Choices")
    );
    place.post("/webhook", &json!({"action": "ANNOTATION_CREATED"})).refused(400);
}

#[test]
fn a_token_may_be_the_password_of_basic() {
    let (token, line) = ivoro_serve::new_token("studio", ivoro_serve::Right::Teach).unwrap();
    let place = Place::with(|options| {
        let file = options.place.with_file_name("tokens");
        std::fs::write(&file, &line).unwrap();
        options.token_file = Some(file);
    });
    let setup = json!({"project": "3.1", "schema": LABELS}).to_string();
    let send = |authorization: &str| {
        place.send("POST", "/setup", &[JSON, ("Authorization", authorization)], setup.as_bytes())
    };
    let basic = |password: &str| format!("Basic {}", BASE64.encode(format!("anybody:{password}")));
    assert_eq!(send(&basic(&token)).status, 200);
    assert_eq!(send(&format!("Bearer {token}")).status, 200);
    for wrong in [basic("wrong"), "Basic !".to_owned(), format!("Basic {token}")] {
        assert_eq!(send(&wrong).status, 401, "{wrong}");
    }
    error_of(&place.get("/v2/models/pets"), 401);
}

#[test]
fn several_models_are_told_apart_by_the_address() {
    let place = Place::of_folder();
    for name in ["cats", "dogs"] {
        place.send("PUT", &format!("/api/v1/models/{name}"), &[], b"").good();
    }
    assert!(place.get("/health").refused(404).contains("/label-studio/"));
    assert_eq!(place.get("/label-studio/cats/health").good()["status"], "UP");
}
