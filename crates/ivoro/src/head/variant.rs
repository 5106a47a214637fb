//! Variants: names of the form `iVoro-NFQL` as data.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::head::settings::ScatterKept;
use crate::samples::View;

/// How the four rotated views of a query come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Views {
    /// Only the upright image.
    #[default]
    Single,
    /// **AC**: the views vote.
    Consensus,
    /// **AI**: the distances of the views are added.
    Integration,
}

/// Which letters are on: a variant is data, parsed once from its name.
///
/// ```
/// let variant: ivoro::Variant = "iVoro-NDAIL".parse()?;
/// assert!(variant.divide && variant.layered);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each letter of the name is on or off")]
pub struct Variant {
    /// `iVoro3`: the third block alone instead of the last layer.
    pub third: bool,
    /// **N**: features are normalised, scaled and raised to a power.
    pub normalise: bool,
    /// **F**: an image and its mirror are averaged.
    pub flip: bool,
    /// **K**: a fixed random lift comes before W.
    pub lift: bool,
    /// **W**: distances are measured in the pooled within-class metric.
    pub whiten: bool,
    /// **Q**: every class is measured in a metric of its own.
    pub per_class_metric: bool,
    /// **D**: boundaries within a phase come from a probe.
    pub divide: bool,
    /// **R**: centres are moved from the means by a residual probe.
    pub residual: bool,
    /// **AC**, **AI** or neither.
    pub views: Views,
    /// **L**: the third block joins the last layer.
    pub layered: bool,
}

/// The 21 variants the paper names, in its order.
pub const PAPER: [&str; 21] = [
    "iVoro",
    "iVoro-N",
    "iVoro-D",
    "iVoro-ND",
    "iVoro-R",
    "iVoro-DR",
    "iVoro-NDR",
    "iVoro-AC",
    "iVoro-AI",
    "iVoro-NAC",
    "iVoro-NAI",
    "iVoro-NDAC",
    "iVoro-NDAI",
    "iVoro-RAC",
    "iVoro-RAI",
    "iVoro-DRAC",
    "iVoro-DRAI",
    "iVoro-NACL",
    "iVoro-NAIL",
    "iVoro-NDACL",
    "iVoro-NDAIL",
];

/// Variants beyond the paper that a full comparison runs too.
pub const EXTENDED: [&str; 9] = [
    "iVoro3",
    "iVoro3-N",
    "iVoro3-NAC",
    "iVoro3-NAI",
    "iVoro-W",
    "iVoro-NW",
    "iVoro-NWAC",
    "iVoro-NWAI",
    "iVoro-NWAIL",
];

/// How a variant's name is written.
pub const GRAMMAR: &str = "iVoro[3][-[N][F][K][W|Q][D][R][AC|AI][L]]";

/// Each letter with what it does, in the order of the grammar.
pub const LETTERS: [(&str, &str); 11] = [
    ("3", "the third block's features alone, instead of the last layer's"),
    ("N", "every feature is L2-normalised, scaled (w, η) and raised to the power λ"),
    ("F", "features of an image and of its mirror image are averaged"),
    ("K", "a fixed random projection with ReLU lifts the point before W"),
    ("W", "distances in the pooled within-class metric (Mahalanobis); AI and L concatenate"),
    ("Q", "every class in a metric of its own, shrunk to the pooled one; L concatenates"),
    ("D", "divide and conquer: inside a phase a probe decides, between phases the prototypes"),
    ("R", "residual: a probe moves the prototypes, held near them by β"),
    ("AC", "augmentation consensus: four rotations vote"),
    ("AI", "augmentation integration: distances of four rotations are added"),
    ("L", "layers: the third block's diagram joins the last layer's"),
];

impl Variant {
    /// No letter: the prototypes' Voronoi diagram.
    pub const PLAIN: Self = Self {
        third: false,
        normalise: false,
        flip: false,
        lift: false,
        whiten: false,
        per_class_metric: false,
        divide: false,
        residual: false,
        views: Views::Single,
        layered: false,
    };

    fn flags(&mut self) -> [(&'static str, &mut bool); 7] {
        [
            ("N", &mut self.normalise),
            ("F", &mut self.flip),
            ("K", &mut self.lift),
            ("W", &mut self.whiten),
            ("Q", &mut self.per_class_metric),
            ("D", &mut self.divide),
            ("R", &mut self.residual),
        ]
    }

    /// Whether four rotations of every image are needed.
    pub fn rotates(&self) -> bool {
        self.views != Views::Single
    }

    /// Every view that it looks at: the upright one or all rotations, then under F their mirror
    /// images in the same order.
    pub fn views(&self) -> Vec<View> {
        let mut views = self.separate_views().to_vec();
        if self.flip {
            views.extend(self.separate_views().iter().map(|view| view.mirror()));
        }
        views
    }

    /// The layers that it looks at, as places among those of the features: the last layer is 0, the
    /// block before it 1.
    pub fn layers(&self) -> Range<usize> {
        usize::from(self.third)..1 + usize::from(self.third || self.layered)
    }

    /// The views before mirror images are averaged with them.
    pub(crate) fn separate_views(&self) -> &'static [View] {
        if self.rotates() { &View::ROTATIONS } else { &[View::UPRIGHT] }
    }

    /// Whether distances depend on how samples spread: W or Q.
    pub fn is_metric(&self) -> bool {
        self.whiten || self.per_class_metric
    }

    /// How many views and how many layers stay separate: W and Q join layers, W under AI views.
    pub(crate) fn separate(&self) -> (usize, usize) {
        let joined = self.whiten && self.views == Views::Integration;
        let views = if self.rotates() && !joined { 4 } else { 1 };
        (views, if self.layered && !self.is_metric() { 2 } else { 1 })
    }

    /// Whether second moments are kept for every class, given who keeps those of W.
    pub(crate) fn keeps_second_per_class(&self, scatter: ScatterKept) -> bool {
        let compact = scatter == ScatterKept::Compact;
        !compact && (self.per_class_metric || self.whiten && scatter == ScatterKept::PerClass)
    }

    /// Whether how a class spreads is kept in few numbers of its own.
    pub(crate) fn keeps_compact(&self, scatter: ScatterKept) -> bool {
        self.is_metric() && scatter == ScatterKept::Compact
    }

    /// Reads the letters behind `iVoro-`; returns what could not be read.
    fn letters<'a>(&mut self, mut rest: &'a str) -> &'a str {
        for (letter, flag) in self.flags() {
            if let Some(tail) = rest.strip_prefix(letter) {
                (*flag, rest) = (true, tail);
            }
        }
        for (letters, views) in [("AC", Views::Consensus), ("AI", Views::Integration)] {
            if let Some(tail) = rest.strip_prefix(letters) {
                (self.views, rest) = (views, tail);
                break;
            }
        }
        if let Some(tail) = rest.strip_prefix('L') {
            (self.layered, rest) = (true, tail);
        }
        rest
    }

    fn senseless(&self) -> Option<&'static str> {
        if self.third && self.layered {
            Some("iVoro3 is the third block alone and L adds it to the last layer")
        } else if self.lift && !self.whiten {
            Some("K lifts before W, so it needs W")
        } else if self.per_class_metric && (self.whiten || self.divide || self.residual) {
            Some("Q gives every class its own metric, and W, D and R need one for all")
        } else {
            None
        }
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let bad =
            |reason: String| Error::Variant { name: name.to_owned(), reason, grammar: GRAMMAR };
        let mut variant = Self::default();
        // in small letters too
        let (start, rest) = name.split_at_checked("iVoro".len()).unwrap_or(("", name));
        if !start.eq_ignore_ascii_case("iVoro") {
            return Err(bad("does not begin with iVoro".into()));
        }
        let rest = &*rest.to_ascii_uppercase();
        let rest = rest.strip_prefix('3').map_or(rest, |tail| {
            variant.third = true;
            tail
        });
        if !rest.is_empty() {
            let letters = rest.strip_prefix('-').filter(|letters| !letters.is_empty());
            let letters = letters.ok_or_else(|| bad(format!("{rest} is not - and letters")))?;
            let unread = variant.letters(letters);
            if !unread.is_empty() {
                return Err(bad(format!("{unread} is unknown, repeated or out of order")));
            }
        }
        variant.senseless().map_or(Ok(variant), |reason| Err(bad(reason.to_owned())))
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        let mut letters: String =
            copy.flags().iter().filter(|(_, on)| **on).map(|(letter, _)| *letter).collect();
        letters.push_str(match self.views {
            Views::Single => "",
            Views::Consensus => "AC",
            Views::Integration => "AI",
        });
        letters.push_str(if self.layered { "L" } else { "" });
        let dash = if letters.is_empty() { "" } else { "-" };
        write!(f, "iVoro{}{dash}{letters}", if self.third { "3" } else { "" })
    }
}

impl serde::Serialize for Variant {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Variant {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sensible_combination_round_trips() {
        let mut count = 0;
        for bits in 0..1024u32 {
            let on = |bit: u32| bits >> bit & 1 == 1;
            for views in [Views::Single, Views::Consensus, Views::Integration] {
                let variant = Variant {
                    third: on(0),
                    normalise: on(1),
                    flip: on(2),
                    lift: on(3),
                    whiten: on(4),
                    divide: on(5),
                    residual: on(6),
                    views,
                    layered: on(7),
                    per_class_metric: on(8),
                };
                let parsed = variant.to_string().parse::<Variant>();
                match variant.senseless() {
                    None => assert_eq!(parsed.unwrap(), variant),
                    Some(_) => assert!(parsed.is_err()),
                }
                count += 1;
            }
        }
        assert_eq!(count, 3072);
        for name in PAPER.iter().chain(&EXTENDED) {
            assert_eq!(name.parse::<Variant>().unwrap().to_string(), *name);
            let small = name.to_ascii_lowercase().parse::<Variant>().unwrap();
            assert_eq!(small.to_string(), *name, "in small letters");
        }
    }

    #[test]
    fn a_variant_names_the_views_and_layers_that_it_looks_at() {
        let looks = |name: &str| {
            let variant: Variant = name.parse().unwrap();
            let views: Vec<String> = variant.views().iter().map(ToString::to_string).collect();
            (views.join(" "), variant.layers())
        };
        assert_eq!(looks("iVoro"), (View::UPRIGHT.to_string(), 0..1));
        assert_eq!(looks("iVoro3").1, 1..2);
        assert_eq!(looks("iVoro-NACL").1, 0..2);
        let rotations = View::ROTATIONS.map(|view| view.to_string()).join(" ");
        let mirrored = View::ROTATIONS.map(|view| view.mirror().to_string()).join(" ");
        assert_eq!(looks("iVoro-FAI").0, format!("{rotations} {mirrored}"));
        assert_eq!(looks("iVoro-F").0, format!("{0} {1}", View::UPRIGHT, View::UPRIGHT.mirror()));
    }

    #[test]
    fn senseless_names_state_the_grammar() {
        for name in [
            "",
            "voro",
            "iVör",
            "ivoro-ö",
            "iVoro-",
            "iVoro-X",
            "iVoro-DN",
            "iVoro-NN",
            "iVoro-ACAI",
            "iVoro3-NACL",
            "iVoro-K",
            "iVoro-QD",
            "iVoro-WQ",
            "iVoro-NQR",
            "iVoroN",
            "iVoro-A",
        ] {
            let text = name.parse::<Variant>().unwrap_err().to_string();
            assert!(text.contains("iVoro[3][-[N][F][K][W|Q][D][R][AC|AI][L]]"), "{text}");
        }
    }
}
