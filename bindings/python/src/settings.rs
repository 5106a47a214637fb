//! Settings as a Python dictionary: one entry for each of the table.

use ivoro::ModelOptions;
use ivoro::head::settings::{SettingInfo, SettingRange, SettingValue, TABLE};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::failure::{Failure, Outcome};

/// How a setting is called in Python, where `lambda` is a keyword.
fn parameter(info: &SettingInfo) -> String {
    if info.name == "lambda" { "exponent".to_owned() } else { info.key() }
}

/// The table of settings, as JSON.
#[pyfunction]
pub(crate) fn settings_table() -> String {
    let entry = |info: &SettingInfo| {
        json!({
            "name": parameter(info),
            "letters": info.letters,
            "meaning": info.meaning,
            "range": info.range.to_string(),
            "default": info.default(),
            "chosen": info.candidates.is_some(),
        })
    };
    json!(TABLE.iter().map(entry).collect::<Vec<_>>()).to_string()
}

/// The settings given, and the defaults of those that are not.
pub(crate) fn options(wanted: &Bound<'_, PyDict>) -> Outcome<ModelOptions> {
    let names: Vec<String> = TABLE.iter().map(parameter).collect();
    for name in wanted.keys() {
        let name: String = name.extract()?;
        if !names.contains(&name) {
            let known = names.join(", ");
            return Err(Failure::value(format!("no setting {name}; there are {known}")));
        }
    }
    let mut options = ModelOptions::default();
    for (info, name) in TABLE.iter().zip(&names) {
        let Some(value) = wanted.get_item(name)?.filter(|value| !value.is_none()) else { continue };
        let wrong = |expected| Failure::value(format!("{name} = {value}: expected {expected}"));
        let (text, expected) = text_of(info, &value);
        let text = text.ok_or_else(|| wrong(expected))?;
        let place = (&mut options.settings, &mut options.given);
        info.ask_for(place, &text).map_err(|reason| match info.default() {
            SettingValue::Word(_) => Failure::value(reason),
            _ => wrong(expected),
        })?;
    }
    Ok(options)
}

/// A value as the table reads it, if it is of the right type, and what that is.
fn text_of(info: &SettingInfo, value: &Bound<'_, PyAny>) -> (Option<String>, &'static str) {
    if info.range == SettingRange::Rank {
        let count = value.extract::<i128>().ok().map(|value| value.to_string());
        return (count.or_else(|| value.extract().ok()), "a number of directions, or \"full\"");
    }
    match info.default() {
        SettingValue::Number(_) => {
            (value.extract::<f64>().ok().map(|value| value.to_string()), "a number")
        }
        SettingValue::Pair(_) => {
            let pair = value.extract::<[f64; 2]>().ok();
            (pair.map(|pair| SettingValue::Pair(pair).to_string()), "two numbers")
        }
        SettingValue::Whole(_) => {
            let whole = value.extract::<i128>().ok();
            (whole.map(|value| value.to_string()), "a whole number that is not negative")
        }
        SettingValue::Word(_) => (value.extract::<String>().ok(), "text"),
    }
}
