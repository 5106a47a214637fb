//! The settings of a head with their table: everything that is said of a setting anywhere is said here.
//!
//! Range checks, `ivoro inspect`, the flags of the command line, Python's keyword arguments, the
//! settings that reports tell apart and the tables of the guide are made of it.

use serde::{Deserialize, Serialize};

use super::{Lengths, Pairs, ProbeSpace, ProbeViews, Rank, RidgePer, Rule, ScatterKept};
use crate::error::Result;
use crate::head::variant::Variant;
use crate::regression::Optimiser;
use crate::setting_range::{SettingRange, SettingValue};
use crate::transform::{self, Transform};

/// Settings given by the caller; what is `None` is chosen on the base phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// λ of N.
    pub lambda: Option<f64>,
    /// w of N.
    pub scale: Option<f64>,
    /// η of N.
    pub shift: Option<f64>,
    /// How long points are after N.
    #[serde(default)]
    pub lengths: Option<Lengths>,
    /// Ridge of W.
    pub ridge: Option<f64>,
    /// κ of Q.
    pub prior: Option<f64>,
    /// Directions of Q.
    #[serde(default)]
    pub rank: Option<Rank>,
    /// Weights of the last layer and the third block.
    pub layer_weights: Option<[f64; 2]>,
    /// Weight decay of D's probe.
    pub weight_decay: Option<f64>,
    /// β of R.
    pub beta: Option<f64>,
    /// What D's probe sees under N.
    pub probe_space: Option<ProbeSpace>,
    /// One probe for all rotations or one each; not tuned, held-out samples of real data prefer one.
    pub probe_views: Option<ProbeViews>,
}

/// Every number and choice that a head needs, all of them fixed.
///
/// ```
/// use ivoro::Settings;
/// let settings = Settings { ridge: -1.0, ..Settings::default() };
/// assert!(settings.check().unwrap_err().to_string().contains("must be finite and not negative"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// N: λ, w and η.
    pub transform: Transform,
    /// N with W or Q: how long points are afterwards; models of before it was there leave them as they
    /// are.
    #[serde(default = "Settings::free_lengths")]
    pub lengths: Lengths,
    /// W and Q: ε, the ridge as a share of the mean diagonal.
    pub ridge: f64,
    /// W: what the ridge is a share of; models of before it was there take the mean.
    #[serde(default = "Settings::mean_ridge")]
    pub ridge_per: RidgePer,
    /// Q: κ, for how many samples of a class the pooled covariance counts.
    #[serde(default = "Settings::usual_prior")]
    pub prior: f64,
    /// Q: α, what a class pays for its volume; models of before it was there pay nothing.
    #[serde(default)]
    pub volume: f64,
    /// Q: in how many directions each class has a variance of its own; models of before it was there
    /// keep a whole matrix.
    #[serde(default = "Settings::whole_matrix")]
    pub rank: Rank,
    /// L: weight of the last layer and of the third block.
    pub layer_weights: [f64; 2],
    /// L: exponent γ of the influence function.
    pub gamma: f64,
    /// D: weight decay of the probe.
    pub weight_decay: f64,
    /// R: β, how firmly centres are held at the prototypes.
    pub beta: f64,
    /// D under N: which features the probe sees.
    pub probe_space: ProbeSpace,
    /// D and R with rotations: one probe or one each.
    pub probe_views: ProbeViews,
    /// How probes are fitted.
    pub optimiser: Optimiser,
    /// Most iterations (L-BFGS) or epochs (Adam) of a probe.
    pub iterations: usize,
    /// Pairs of views under AC and AI.
    pub pairs: Pairs,
    /// How D picks among phases.
    pub rule: Rule,
    /// K: dimension of the lifted space.
    pub lift: usize,
    /// Seed of the lift and of Adam's batches.
    pub seed: u64,
    /// What W keeps, and Q if it is to be compact.
    pub scatter: ScatterKept,
    /// Compact scatter: how many directions of a class are kept.
    #[serde(
        default = "Settings::usual_scatter_rank",
        skip_serializing_if = "Settings::is_usual_scatter_rank"
    )]
    pub scatter_rank: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transform: Transform { lambda: 0.7, scale: 10.0, shift: 0.0 },
            lengths: Lengths::default(),
            ridge: 1.0,
            ridge_per: RidgePer::default(),
            prior: Self::usual_prior(),
            // chosen on base-phase images of CIFAR-100, see docs/reproduce.md
            volume: 0.4,
            rank: Rank::Directions(64),
            layer_weights: [1.0, 1.0],
            gamma: 1.0,
            weight_decay: 1e-4,
            beta: 1e-2,
            probe_space: ProbeSpace::default(),
            probe_views: ProbeViews::default(),
            optimiser: Optimiser::default(),
            iterations: 100,
            pairs: Pairs::default(),
            rule: Rule::default(),
            lift: 10_000,
            seed: 1993,
            scatter: ScatterKept::default(),
            scatter_rank: Self::usual_scatter_rank(),
        }
    }
}

impl Settings {
    fn free_lengths() -> Lengths {
        Lengths::Free
    }

    fn mean_ridge() -> RidgePer {
        RidgePer::Mean
    }

    fn usual_prior() -> f64 {
        500.0
    }

    fn usual_scatter_rank() -> usize {
        32
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_usual_scatter_rank(rank: &usize) -> bool {
        *rank == Self::usual_scatter_rank()
    }

    fn whole_matrix() -> Rank {
        Rank::Full
    }
}

/// One setting.
///
/// ```
/// use ivoro::head::settings::{self, SettingInfo};
///
/// let volume: &SettingInfo = settings::find("volume").unwrap();
/// assert_eq!((volume.letters, volume.default().to_string()), ("Q", "0.4".to_owned()));
/// let mut settings = ivoro::Settings::default();
/// volume.write(&mut settings, "1").unwrap();
/// assert_eq!(settings.volume, 1.0);
/// ```
#[derive(Debug)]
pub struct SettingInfo {
    /// Its name, as the flag is written.
    pub name: &'static str,
    /// The letters under which it acts, in words; empty where it always does.
    pub letters: &'static str,
    /// The symbol of its value, where there is one.
    pub symbol: Option<&'static str>,
    /// What it is.
    pub meaning: &'static str,
    /// Which values are allowed.
    pub range: SettingRange,
    /// The values tried on the base phase, in words; `None` where the default is fixed.
    pub candidates: Option<&'static str>,
    /// Whether reports keep results with different values apart by the settings of their run. Not so
    /// where the value changes no result or the record tells it in another place.
    pub compared: bool,
    applies: fn(Variant) -> bool,
    field: Field,
}

/// Where a setting is kept.
#[derive(Debug)]
struct Field {
    read: fn(&Settings) -> SettingValue,
    write: fn(&mut Settings, &str) -> Parsed<()>,
    given: Option<GivenField>,
}

/// Where a setting waits until the base phase has settled what was not given.
#[derive(Debug)]
struct GivenField {
    write: fn(&mut Given, &str) -> Parsed<()>,
    /// Copies it to the settings, if it was given.
    apply: fn(&Given, &mut Settings),
}

/// What was read of a text, or what is wrong with it.
type Parsed<T> = std::result::Result<T, String>;

impl SettingInfo {
    /// Its name in model files and records.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Whether it changes anything for a variant.
    pub fn applies(&self, variant: Variant) -> bool {
        (self.applies)(variant)
    }

    /// Its value.
    pub fn read(&self, settings: &Settings) -> SettingValue {
        (self.field.read)(settings)
    }

    /// Its value where nobody says and nothing is chosen.
    pub fn default(&self) -> SettingValue {
        self.read(&Settings::default())
    }

    /// Sets it; whether the value is in range is checked by [`Settings::check`]. The error says what
    /// is wrong with the text.
    pub fn write(&self, settings: &mut Settings, text: &str) -> std::result::Result<(), String> {
        (self.field.write)(settings, text)
    }

    /// Reads a text, without setting anything.
    pub fn parse(&self, text: &str) -> std::result::Result<SettingValue, String> {
        let mut scratch = Settings::default();
        self.write(&mut scratch, text)?;
        Ok(self.read(&scratch))
    }

    /// Sets what a caller asks for: among what was given, where the base phase would else choose.
    pub fn ask_for(
        &self,
        (settings, given): (&mut Settings, &mut Given),
        text: &str,
    ) -> std::result::Result<(), String> {
        match &self.field.given {
            Some(field) => (field.write)(given, text),
            None => self.write(settings, text),
        }
    }

    /// What a help says of it.
    pub fn help(&self) -> String {
        if self.letters.is_empty() {
            return self.meaning.to_owned();
        }
        format!("{}: {}", self.letters, self.meaning)
    }
}

/// A type that the value of a setting has.
trait Kind: Copy {
    fn value(self) -> SettingValue;
    fn parse(text: &str) -> Parsed<Self>;
}

impl Kind for f64 {
    fn value(self) -> SettingValue {
        SettingValue::Number(self)
    }

    fn parse(text: &str) -> Parsed<Self> {
        text.parse().map_err(|error: std::num::ParseFloatError| error.to_string())
    }
}

impl Kind for [f64; 2] {
    fn value(self) -> SettingValue {
        SettingValue::Pair(self)
    }

    fn parse(text: &str) -> Parsed<Self> {
        let numbers: Vec<f64> = text.split(',').filter_map(|it| it.trim().parse().ok()).collect();
        Self::try_from(numbers).map_err(|_| "two numbers with a comma between: 1,1".to_owned())
    }
}

macro_rules! whole {
    ($($type:ty),+) => { $(
        impl Kind for $type {
            fn value(self) -> SettingValue {
                SettingValue::Whole(self as u64)
            }

            fn parse(text: &str) -> Parsed<Self> {
                text.parse().map_err(|error: std::num::ParseIntError| error.to_string())
            }
        }
    )+ };
}
whole!(usize, u64);

impl Kind for Rank {
    fn value(self) -> SettingValue {
        match self {
            Self::Full => SettingValue::Word(self.to_string()),
            Self::Directions(count) => SettingValue::Whole(count as u64),
        }
    }

    fn parse(text: &str) -> Parsed<Self> {
        text.parse().map_err(|error: crate::error::Error| error.to_string())
    }
}

macro_rules! words {
    ($($type:ty),+) => { $(
        impl Kind for $type {
            fn value(self) -> SettingValue {
                SettingValue::Word(self.to_string())
            }

            fn parse(text: &str) -> Parsed<Self> {
                text.parse().map_err(|error: crate::error::Error| error.to_string())
            }
        }
    )+ };
}
words!(Lengths, Pairs, Rule, ProbeSpace, ProbeViews, Optimiser, RidgePer, ScatterKept);

fn assign<T: Kind>(target: &mut T, text: &str) -> Parsed<()> {
    *target = T::parse(text)?;
    Ok(())
}

/// The place of a setting in [`Settings`], and in [`Given`] where it has one.
macro_rules! field {
    ($($path:ident).+) => { field!(@ None, $($path).+) };
    ($($path:ident).+, $given:ident) => {
        field!(@ Some(GivenField {
            write: |given, text| {
                given.$given = Some(Kind::parse(text)?);
                Ok(())
            },
            apply: |given, settings| {
                settings.$($path).+ = given.$given.unwrap_or(settings.$($path).+);
            },
        }), $($path).+)
    };
    (@ $given:expr, $($path:ident).+) => {
        Field {
            read: |settings| settings.$($path).+.value(),
            write: |settings, text| assign(&mut settings.$($path).+, text),
            given: $given,
        }
    };
}

/// Whether layers are added, each with a weight.
fn adds_layers(variant: Variant) -> bool {
    variant.layered && !variant.is_metric()
}

fn has_probes(variant: Variant) -> bool {
    variant.divide || variant.residual
}

/// A setting as most are.
const PLAIN: SettingInfo = SettingInfo {
    name: "",
    letters: "",
    symbol: None,
    meaning: "",
    range: SettingRange::Finite,
    candidates: None,
    compared: false,
    applies: |_| true,
    field: field!(seed),
};

/// All settings: first those that are chosen on the base phase, then those with a fixed default.
pub static TABLE: [SettingInfo; 22] = [
    SettingInfo {
        name: "lambda",
        letters: "N",
        symbol: Some("λ"),
        meaning: "exponent λ; 0 is the logarithm",
        range: transform::LAMBDA,
        candidates: Some("0.3 to 1 in steps of 0.1"),
        applies: |variant| variant.normalise,
        field: field!(transform.lambda, lambda),
        ..PLAIN
    },
    SettingInfo {
        name: "scale",
        letters: "N",
        symbol: Some("W"),
        meaning: "factor w",
        range: transform::SCALE,
        candidates: Some("1, 10, 30, together with β of R"),
        applies: |variant| variant.normalise,
        field: field!(transform.scale, scale),
        ..PLAIN
    },
    SettingInfo {
        name: "shift",
        letters: "N",
        symbol: Some("η"),
        meaning: "shift η",
        range: transform::SHIFT,
        candidates: Some("0, 0.003, 0.01, 0.03 times w"),
        applies: |variant| variant.normalise,
        field: field!(transform.shift, shift),
        ..PLAIN
    },
    SettingInfo {
        name: "lengths",
        letters: "N with W or Q",
        symbol: Some("HOW"),
        meaning: "length of points after the power: equal (w) or free",
        range: SettingRange::Words(Lengths::WORDS),
        candidates: Some("both"),
        applies: |variant| variant.normalise && variant.is_metric(),
        field: field!(lengths, lengths),
        ..PLAIN
    },
    SettingInfo {
        name: "ridge",
        letters: "W and Q",
        symbol: Some("ε"),
        meaning: "ridge ε, as a share of the mean variance",
        range: SettingRange::NotNegative,
        candidates: Some("W: 0.03 to 10, Q: 0.03 to 1"),
        applies: |variant| variant.is_metric(),
        field: field!(ridge, ridge),
        ..PLAIN
    },
    SettingInfo {
        name: "prior",
        letters: "Q",
        symbol: Some("κ"),
        meaning: "κ, for how many samples of a class the pooled covariance counts",
        range: SettingRange::NotNegative,
        candidates: Some("250 to 2000, together with ε"),
        applies: |variant| variant.per_class_metric,
        field: field!(prior, prior),
        ..PLAIN
    },
    SettingInfo {
        name: "rank",
        letters: "Q",
        symbol: Some("R"),
        meaning: "directions in which a class has a variance of its own, or full: a whole matrix",
        range: SettingRange::Rank,
        candidates: Some("8 to 128, then full"),
        applies: |variant| variant.per_class_metric,
        field: field!(rank, rank),
        ..PLAIN
    },
    SettingInfo {
        name: "layer-weights",
        letters: "L",
        symbol: Some("A,B"),
        meaning: "weights of the last layer and of the third block",
        range: SettingRange::Weights,
        candidates: Some("six pairs"),
        applies: adds_layers,
        field: field!(layer_weights, layer_weights),
        ..PLAIN
    },
    SettingInfo {
        name: "weight-decay",
        letters: "D",
        symbol: Some("δ"),
        meaning: "weight decay of the probe",
        range: SettingRange::NotNegative,
        candidates: Some("0.0001 to 0.1"),
        applies: |variant| variant.divide,
        field: field!(weight_decay, weight_decay),
        ..PLAIN
    },
    SettingInfo {
        name: "beta",
        letters: "R",
        symbol: Some("β"),
        meaning: "β, how firmly centres are held at the prototypes",
        range: SettingRange::NotNegative,
        candidates: Some("0.001 to 1"),
        applies: |variant| variant.residual,
        field: field!(beta, beta),
        ..PLAIN
    },
    SettingInfo {
        name: "probe-space",
        letters: "D under N",
        symbol: Some("SPACE"),
        meaning: "raw or transformed features for the probe",
        range: SettingRange::Words(ProbeSpace::WORDS),
        candidates: Some("both"),
        applies: |variant| variant.divide && variant.normalise,
        field: field!(probe_space, probe_space),
        ..PLAIN
    },
    SettingInfo {
        name: "probe-views",
        letters: "D and R with rotations",
        symbol: Some("HOW"),
        meaning: "one probe over all sisters, or separate ones",
        range: SettingRange::Words(ProbeViews::WORDS),
        applies: |variant| has_probes(variant) && variant.rotates(),
        field: field!(probe_views, probe_views),
        ..PLAIN
    },
    SettingInfo {
        name: "volume",
        letters: "Q",
        symbol: Some("α"),
        meaning: "α, what a class pays for its volume: 1 as for normal distributions, 0 nothing",
        range: SettingRange::NotNegative,
        applies: |variant| variant.per_class_metric,
        field: field!(volume),
        ..PLAIN
    },
    SettingInfo {
        name: "pairs",
        letters: "AC and AI",
        meaning: "matched (4 pairs of views) or all (16)",
        range: SettingRange::Words(Pairs::WORDS),
        compared: true,
        applies: |variant| variant.rotates(),
        field: field!(pairs),
        ..PLAIN
    },
    SettingInfo {
        name: "rule",
        letters: "D",
        meaning: "tournament, or elimination in order of arrival",
        range: SettingRange::Words(Rule::WORDS),
        compared: true,
        applies: |variant| variant.divide,
        field: field!(rule),
        ..PLAIN
    },
    SettingInfo {
        name: "gamma",
        letters: "L",
        meaning: "exponent γ of the influence function, not 0",
        range: SettingRange::NotZero,
        compared: true,
        applies: adds_layers,
        field: field!(gamma),
        ..PLAIN
    },
    SettingInfo {
        name: "optimiser",
        letters: "D and R",
        meaning: "lbfgs (deterministic, full batch) or adam (mini-batches, rate 1e-3)",
        range: SettingRange::Words(Optimiser::WORDS),
        compared: true,
        applies: has_probes,
        field: field!(optimiser),
        ..PLAIN
    },
    SettingInfo {
        name: "iterations",
        letters: "D and R",
        symbol: Some("N"),
        meaning: "most iterations of L-BFGS, or epochs of Adam",
        range: SettingRange::Iterations,
        compared: true,
        applies: has_probes,
        field: field!(iterations),
        ..PLAIN
    },
    SettingInfo {
        name: "lift",
        letters: "K",
        symbol: Some("DIM"),
        meaning: "dimension of the lifted space",
        range: SettingRange::Dimension,
        compared: true,
        applies: |variant| variant.lift,
        field: field!(lift),
        ..PLAIN
    },
    SettingInfo {
        name: "ridge-per",
        letters: "W",
        meaning: "what the ridge is a share of: mean (the mean variance), feature (each feature's own) \
                  or auto (feature where features are of mixed scale)",
        range: SettingRange::Words(RidgePer::WORDS),
        compared: true,
        applies: |variant| variant.whiten,
        field: field!(ridge_per),
        ..PLAIN
    },
    SettingInfo {
        name: "scatter",
        letters: "W and Q",
        meaning: "pooled (small), per-class (larger; classes can be forgotten exactly) or compact (few \
                  directions of each class; it can be forgotten exactly, and gets no more samples); Q \
                  takes pooled for per-class",
        range: SettingRange::Words(ScatterKept::WORDS),
        compared: true,
        applies: |variant| variant.is_metric(),
        field: field!(scatter),
        ..PLAIN
    },
    SettingInfo {
        name: "scatter-rank",
        letters: "W and Q with a compact scatter",
        symbol: Some("R"),
        meaning: "directions kept of each class",
        range: SettingRange::Dimension,
        compared: true,
        applies: |variant| variant.is_metric(),
        field: field!(scatter_rank),
        ..PLAIN
    },
    SettingInfo {
        name: "seed",
        meaning: "seed of everything random: hold-out, lift, mini-batches, peers",
        range: SettingRange::Whole,
        ..PLAIN
    },
];

/// The setting of this name.
pub fn find(name: &str) -> Option<&'static SettingInfo> {
    TABLE.iter().find(|info| info.name == name)
}

/// The settings that act under a variant.
pub fn of_variant(variant: Variant) -> impl Iterator<Item = &'static SettingInfo> {
    TABLE.iter().filter(move |info| info.applies(variant))
}

impl Settings {
    /// Checks every number's range.
    pub fn check(&self) -> Result<()> {
        TABLE.iter().try_for_each(|info| info.range.check(info.name, &info.read(self)))
    }
}

impl Given {
    /// Puts what was given into the settings.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        for field in TABLE.iter().filter_map(|info| info.field.given.as_ref()) {
            (field.apply)(self, settings);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_setting_reads_back_what_was_written() {
        for info in &TABLE {
            let (mut settings, mut given) = (Settings::default(), Given::default());
            let other = match info.range {
                SettingRange::Words(words) => {
                    let default = info.default().to_string();
                    (*words.iter().find(|word| **word != default).unwrap()).to_owned()
                }
                _ if info.name == "layer-weights" => "0.25,3".to_owned(),
                _ => "7".to_owned(),
            };
            assert_ne!(info.default().to_string(), other, "{}", info.name);
            info.ask_for((&mut settings, &mut given), &other).unwrap();
            given.apply(&mut settings);
            assert_eq!(info.read(&settings).to_string(), other, "{}", info.name);
            settings.check().unwrap();
            // and nothing else has changed
            info.write(&mut settings, &info.default().to_string()).unwrap();
            assert_eq!(settings, Settings::default(), "{}", info.name);
            assert!(info.parse("neither here nor there").is_err(), "{}", info.name);
        }
        let names: HashSet<&str> = TABLE.iter().map(|info| info.name).collect();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_reason() {
        let refused = |name: &str, text: &str| {
            let mut settings = Settings::default();
            find(name).unwrap().write(&mut settings, text).unwrap();
            settings.check().unwrap_err().to_string()
        };
        for (name, text, reason) in [
            ("lambda", "11", "must lie in -10..=10"),
            ("scale", "inf", "must be positive"),
            ("shift", "inf", "must be finite"),
            ("ridge", "NaN", "must be finite and not negative"),
            ("volume", "-1", "must be finite and not negative"),
            ("layer-weights", "1,-1", "must be finite and not negative"),
            ("layer-weights", "0,0", "at least one must be positive"),
            ("gamma", "0", "must be finite and not 0"),
            ("rank", "0", "must lie in 1..=1048576"),
            ("lift", "0", "must lie in 1..=1048576"),
            ("iterations", "1000001", "must lie in 1..=1000000"),
        ] {
            let message = refused(name, text);
            assert!(message.contains(name) && message.contains(reason), "{message}");
        }
    }

    #[test]
    fn settings_of_before_leave_lengths_free() {
        let mut written = serde_json::to_value(Settings::default()).unwrap();
        written.as_object_mut().unwrap().remove("lengths");
        let read: Settings = serde_json::from_value(written).unwrap();
        assert_eq!(read, Settings { lengths: Lengths::Free, ..Settings::default() });
    }

    #[test]
    fn a_setting_acts_under_the_letters_that_it_names() {
        let of = |name: &str| {
            let names = of_variant(name.parse().unwrap()).map(|info| info.name);
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("iVoro"), "seed");
        assert_eq!(
            of("iVoro-NQ"),
            "lambda scale shift lengths ridge prior rank volume scatter scatter-rank seed"
        );
        assert_eq!(of("iVoro-KW"), "ridge lift ridge-per scatter scatter-rank seed");
        assert_eq!(of("iVoro-WACL"), "ridge pairs ridge-per scatter scatter-rank seed");
        assert_eq!(
            of("iVoro-NDAIL"),
            "lambda scale shift layer-weights weight-decay probe-space probe-views pairs rule gamma \
             optimiser iterations seed"
        );
    }
}
