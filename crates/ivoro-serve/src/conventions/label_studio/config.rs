//! The labels of a project: which field of a task is the image, and which choices there are.

use ivoro::Prediction;
use serde_json::{Value, json};

use super::payload::Annotation;
use crate::problem::Problem;

/// What a project's labels say.
#[derive(Debug, PartialEq)]
pub(super) struct Labelling {
    /// The name of the choices.
    choices: String,
    /// The name of the image they are about.
    image: String,
    /// The field of a task that has the image.
    pub(super) field: String,
    /// Which choices there are; none where they come with the tasks.
    known: Vec<String>,
}

/// A longer one is none.
const LONGEST: usize = 1 << 20;

impl Labelling {
    /// Reads the labels: XML with `Choices` about an `Image`.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let refuse = |what: &str| Problem::unprocessable(format!("label_config: {what}"));
        if text.len() > LONGEST {
            return Err(refuse("longer than 1 MiB"));
        }
        let document =
            roxmltree::Document::parse(text).map_err(|error| refuse(&error.to_string()))?;
        let elements = || document.root().descendants().filter(roxmltree::Node::is_element);
        let choices = elements().find_map(|choices| {
            let is_choices = choices.has_tag_name("Choices");
            let (name, about) = (choices.attribute("name")?, choices.attribute("toName")?);
            let is_image = |it: &roxmltree::Node<'_, '_>| {
                it.has_tag_name("Image") && it.attribute("name") == Some(about)
            };
            let image = elements().find(is_image)?;
            let field = image.attribute("value")?.strip_prefix('$')?;
            is_choices.then_some((choices, name, about, field))
        });
        let Some((choices, name, image, field)) = choices else {
            return Err(refuse(
                "expected Choices about an Image whose value is a field of the task, as $image",
            ));
        };
        let known = choices.descendants().filter(|it| it.has_tag_name("Choice"));
        // an alias stands in results for the text that is shown
        let known = known.filter_map(|it| it.attribute("alias").or(it.attribute("value")));
        let known = known.map(str::to_owned).collect();
        let (choices, image, field) = (name.to_owned(), image.to_owned(), field.to_owned());
        Ok(Self { choices, image, field, known })
    }

    /// The class that somebody chose; none where it was skipped, and where nothing or several were chosen.
    pub(super) fn class_of(&self, annotation: &Annotation) -> Option<String> {
        let mut chosen = annotation.result.iter().filter(|region| region.from_name == self.choices);
        let (Some(region), None, false) = (chosen.next(), chosen.next(), annotation.was_cancelled)
        else {
            return None;
        };
        match region.value.get("choices").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => only.as_str().map(str::to_owned),
            _ => None,
        }
    }

    /// A prediction as Label Studio shows it; none for what is unknown, to the model or to the project.
    pub(super) fn result(&self, prediction: &Prediction, version: &str) -> Option<Value> {
        let nearest = prediction.top.first()?;
        let is_choice = self.known.is_empty() || self.known.contains(&nearest.class);
        if prediction.unknown == Some(true) || !is_choice {
            return None;
        }
        let score = nearest.probability.unwrap_or(0.0);
        Some(json!({
            "result": [{
                "from_name": self.choices,
                "to_name": self.image,
                "type": "choices",
                "value": { "choices": [nearest.class] },
                "score": score,
            }],
            "score": score,
            "model_version": version,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PETS: &str = r#"<View><Image name="photo" value="$picture"/>
        <Choices name="pet" toName="photo"><Choice value="Dog" alias="dog"/><Choice value="cat"/></Choices></View>"#;

    fn annotation(text: &str) -> Annotation {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn labels_say_where_the_image_is_and_what_was_chosen() {
        let pets = Labelling::parse(PETS).unwrap();
        assert_eq!(
            (pets.field.as_str(), pets.known.as_slice()),
            ("picture", &["dog".to_owned(), "cat".to_owned()][..])
        );
        let chosen = r#"{"id":1,"result":[{"from_name":"pet","value":{"choices":["dog"]}}]}"#;
        assert_eq!(pets.class_of(&annotation(chosen)).unwrap(), "dog");
        for none in [
            r#"{"id":1,"result":[]}"#,
            r#"{"id":1,"was_cancelled":true,"result":[{"from_name":"pet","value":{"choices":["dog"]}}]}"#,
            r#"{"id":1,"result":[{"from_name":"pet","value":{"choices":["dog","cat"]}}]}"#,
            r#"{"id":1,"result":[{"from_name":"mood","value":{"choices":["dog"]}}]}"#,
        ] {
            assert_eq!(pets.class_of(&annotation(none)), None, "{none}");
        }
    }

    #[test]
    fn other_labels_are_refused() {
        let bomb = r#"<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><View>&z;</View>"#;
        for text in [
            "",
            "<View/>",
            "<View",
            bomb,
            r#"<View><Text name="t" value="$t"/></View>"#,
            r#"<View><Image name="i" value="http://a"/><Choices name="c" toName="i"/></View>"#,
        ] {
            assert!(Labelling::parse(text).is_err(), "{text}");
        }
    }
}
