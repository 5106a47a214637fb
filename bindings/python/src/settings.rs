//! Settings as a Python dictionary.

use std::str::FromStr;
use std::sync::Arc;

use ivoro::ModelOptions;
use ivoro::head::Settings;
use ivoro::tune::Given;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{Failure, Outcome};

/// All names.
const NAMES: [&str; 19] = [
    "exponent",
    "scale",
    "shift",
    "ridge",
    "prior",
    "layer_weights",
    "weight_decay",
    "beta",
    "probe_space",
    "probe_views",
    "pairs",
    "rule",
    "gamma",
    "volume",
    "optimiser",
    "iterations",
    "lift",
    "scatter",
    "seed",
];

/// Values by name; what is missing or None was not asked for.
struct Wanted<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Wanted<'_, 'py> {
    fn value(&self, name: &str) -> Outcome<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn get<T>(&self, name: &str, expected: &str) -> Outcome<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let wrong = || Failure::value(format!("{name} = {value}: expected {expected}"));
        value.extract().map(Some).map_err(|_| wrong())
    }

    fn number(&self, name: &str) -> Outcome<Option<f64>> {
        self.get(name, "a number")
    }

    fn whole<T: TryFrom<i128>>(&self, name: &str) -> Outcome<Option<T>> {
        let expected = "a whole number that is not negative";
        let Some(value) = self.get::<i128>(name, expected)? else { return Ok(None) };
        let wrong = || Failure::value(format!("{name} = {value}: expected {expected}"));
        T::try_from(value).map(Some).map_err(|_| wrong())
    }

    fn choice<T: FromStr<Err = ivoro::Error>>(&self, name: &str) -> Outcome<Option<T>> {
        let text: Option<String> = self.get(name, "text")?;
        Ok(text.map(|text| text.parse()).transpose()?)
    }
}

/// The settings given, and the defaults of those that are not.
pub(crate) fn options(settings: &Bound<'_, PyDict>) -> Outcome<ModelOptions> {
    for name in settings.keys() {
        let name: String = name.extract()?;
        if !NAMES.contains(&name.as_str()) {
            let known = NAMES.join(", ");
            return Err(Failure::value(format!("no setting {name}; there are {known}")));
        }
    }
    let wanted = Wanted(settings);
    let fixed = Settings::default();
    let settings = Settings {
        pairs: wanted.choice("pairs")?.unwrap_or(fixed.pairs),
        rule: wanted.choice("rule")?.unwrap_or(fixed.rule),
        gamma: wanted.number("gamma")?.unwrap_or(fixed.gamma),
        volume: wanted.number("volume")?.unwrap_or(fixed.volume),
        optimiser: wanted.choice("optimiser")?.unwrap_or(fixed.optimiser),
        iterations: wanted.whole("iterations")?.unwrap_or(fixed.iterations),
        lift: wanted.whole("lift")?.unwrap_or(fixed.lift),
        scatter: wanted.choice("scatter")?.unwrap_or(fixed.scatter),
        seed: wanted.whole("seed")?.unwrap_or(fixed.seed),
        ..fixed
    };
    let given = Given {
        lambda: wanted.number("exponent")?,
        scale: wanted.number("scale")?,
        shift: wanted.number("shift")?,
        ridge: wanted.number("ridge")?,
        prior: wanted.number("prior")?,
        layer_weights: wanted.get("layer_weights", "two numbers")?,
        weight_decay: wanted.number("weight_decay")?,
        beta: wanted.number("beta")?,
        probe_space: wanted.choice("probe_space")?,
        probe_views: wanted.choice("probe_views")?,
    };
    Ok(ModelOptions { settings, given, tuner: Arc::default() })
}
