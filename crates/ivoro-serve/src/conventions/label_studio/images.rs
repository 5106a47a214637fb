//! Images of tasks. Only what a task brings itself is read: an address in a task is the wish of whoever
//! made the task, and a server that follows it can be sent anywhere.

use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::config::Labelling;
use super::payload::Task;

/// The image of each task, or why there is none.
pub(super) fn of_tasks(tasks: &[Task], labelling: &Labelling) -> Vec<Result<Bytes, String>> {
    tasks.iter().map(|task| of_task(task, labelling)).collect()
}

/// The image of a task.
pub(super) fn of_task(task: &Task, labelling: &Labelling) -> Result<Bytes, String> {
    let field = &labelling.field;
    let value = task.data.get(field).and_then(serde_json::Value::as_str);
    let value = value.ok_or_else(|| format!("a task has no text in its field {field}"))?;
    let Some(data) = value.strip_prefix("data:") else {
        return Err(format!(
            "the field {field} of a task is an address, and addresses are not fetched here: expected \
             data:image/…;base64,…"
        ));
    };
    let data = data.split_once(";base64,").map(|(_, data)| data);
    let data =
        data.ok_or_else(|| format!("the field {field} of a task: expected data:image/…;base64,…"))?;
    let bytes =
        BASE64.decode(data).map_err(|error| format!("the field {field} of a task: {error}"))?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_of_the_task_itself_is_read() {
        let config =
            r#"<View><Image name="i" value="$image"/><Choices name="c" toName="i"/></View>"#;
        let labelling = Labelling::parse(config).unwrap();
        let image = |value: &str| {
            let task = serde_json::json!({ "id": 1, "data": { "image": value } });
            of_task(&serde_json::from_value(task).unwrap(), &labelling)
        };
        assert_eq!(image("data:image/png;base64,aGk=").unwrap(), &b"hi"[..]);
        for address in [
            "http://169.254.169.254/latest/meta-data",
            "https://example.org/a.jpg",
            "/data/upload/1/a.jpg",
            "/data/local-files/?d=../../etc/passwd",
            "s3://bucket/a.jpg",
            "file:///etc/passwd",
            "",
        ] {
            assert!(image(address).unwrap_err().contains("not fetched"), "{address}");
        }
        assert!(image("data:image/png;base64,!").is_err() && image("data:text/plain,hi").is_err());
        let none: Task = serde_json::from_str(r#"{"data":{"text":"x"}}"#).unwrap();
        assert!(of_task(&none, &labelling).is_err());
    }
}
