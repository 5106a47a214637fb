//! The paper's own numbers, each with the table or section it stands in.

use std::sync::OnceLock;

use serde::Deserialize;

const TEXT: &str = include_str!("../data/paper.toml");

/// All numbers of `data/paper.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The columns of the tables.
    pub protocol: Vec<PaperProtocol>,
    /// Table 1.
    pub comparison: PairTable,
    /// Table 2.
    pub ablation: PairTable,
    /// The table of average forgetting.
    pub forgetting: ValueTable,
    /// Numbers of the text.
    pub remark: Vec<Remark>,
    /// Fewer base classes.
    pub base_size: Vec<BaseSize>,
}

/// A column of the tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperProtocol {
    /// Name of the data set.
    pub data_set: String,
    /// As text: `50+5x10`.
    pub name: String,
}

/// A table of average and last accuracies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairTable {
    /// Where it stands in the paper.
    pub label: String,
    /// Its rows.
    pub row: Vec<PairRow>,
}

/// One method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairRow {
    /// Its name.
    pub method: String,
    /// Whether it keeps samples.
    #[serde(default)]
    pub exemplars: bool,
    /// [average, last] for each protocol; empty where the paper has a dash.
    pub pairs: Vec<Vec<f64>>,
}

/// A table of single numbers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueTable {
    /// Where it stands in the paper.
    pub label: String,
    /// Its rows.
    pub row: Vec<ValueRow>,
}

/// One method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueRow {
    /// Its name.
    pub method: String,
    /// Whether it keeps samples.
    #[serde(default)]
    pub exemplars: bool,
    /// One number for each of the first protocols.
    pub values: Vec<f64>,
}

/// A number that stands in the text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// Where it stands in the paper.
    pub label: String,
    /// Name of the data set.
    pub data_set: String,
    /// As text.
    pub protocol: String,
    /// Name of the method.
    pub method: String,
    /// What it is.
    pub measure: Measure,
    /// The number.
    pub value: f64,
}

/// What a number of the paper measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Average accuracy over the phases.
    Average,
    /// Accuracy after the last phase.
    Last,
    /// Average forgetting after the last phase.
    Forgetting,
}

/// The gain over PASS with fewer base classes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseSize {
    /// Where it stands in the paper.
    pub label: String,
    /// Base classes.
    pub classes: usize,
    /// As text.
    pub protocol: String,
    /// Points by which the best variant is above PASS.
    pub gain: f64,
}

/// The numbers; read once.
pub fn paper() -> &'static Paper {
    static PAPER: OnceLock<Paper> = OnceLock::new();
    // a test reads the same text, so that the default is never seen
    PAPER.get_or_init(|| toml::from_str(TEXT).unwrap_or_default())
}

/// Names are compared by letters and digits alone: CIFAR-100 is cifar100.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    // the peer's common name for the classifier by the nearest mean of exemplars
    let usual = |name: String| if name == "icarlnme" { "icarlncm".to_owned() } else { name };
    usual(plain(one)) == usual(plain(other))
}

impl Paper {
    fn column(&self, data_set: &str, protocol: &str) -> Option<usize> {
        let wanted = |column: &PaperProtocol| {
            same_name(&column.data_set, data_set) && column.name == protocol
        };
        self.protocol.iter().position(wanted)
    }

    /// What the paper says of a method; `iVoro (best)` is the best variant of Table 1.
    pub fn value(
        &self,
        data_set: &str,
        protocol: &str,
        method: &str,
        measure: Measure,
    ) -> Option<f64> {
        let remark = |remark: &&Remark| {
            same_name(&remark.data_set, data_set)
                && remark.protocol == protocol
                && same_name(&remark.method, method)
                && remark.measure == measure
        };
        if let Some(found) = self.remark.iter().find(remark) {
            return Some(found.value);
        }
        let column = self.column(data_set, protocol)?;
        let part = match measure {
            Measure::Average => 0,
            Measure::Last => 1,
            Measure::Forgetting => {
                let row = self.forgetting.row.iter().find(|row| same_name(&row.method, method));
                return row?.values.get(column).copied();
            }
        };
        let rows = self.comparison.row.iter().chain(&self.ablation.row);
        let mut found = rows.filter(|row| same_name(&row.method, method));
        found.find_map(|row| row.pairs.get(column)?.get(part).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_whole() {
        let paper: Paper = toml::from_str(TEXT).unwrap();
        assert_eq!(paper.protocol.len(), 7);
        assert_eq!((paper.comparison.row.len(), paper.ablation.row.len()), (11, 18));
        assert_eq!(paper.forgetting.row.len(), 8);
        let pairs = paper.comparison.row.iter().chain(&paper.ablation.row);
        for row in pairs {
            assert_eq!(row.pairs.len(), 7, "{}", row.method);
            for pair in row.pairs.iter().filter(|pair| !pair.is_empty()) {
                assert!(pair.len() == 2 && pair[0] > pair[1], "{} {pair:?}", row.method);
            }
        }
        assert!(paper.forgetting.row.iter().all(|row| row.values.len() == 6));
        assert_eq!(paper.comparison.row.iter().filter(|row| row.exemplars).count(), 5);
        assert!(
            paper.ablation.row.iter().all(|row| ivoro::head::PAPER.contains(&row.method.as_str()))
        );
    }

    #[test]
    fn numbers_are_found_by_name() {
        let paper = paper();
        let value = |method, measure| paper.value("cifar100", "50+5x10", method, measure);
        assert_eq!(value("pass", Measure::Last), Some(55.75));
        assert_eq!(value("iVoro-AC", Measure::Average), Some(81.38));
        assert_eq!(value("iVoro", Measure::Forgetting), Some(8.17));
        assert_eq!(value("iVoro-NAC", Measure::Forgetting), Some(5.92));
        assert_eq!(value("iVoro3", Measure::Last), Some(43.22));
        assert_eq!(value("icarl-nme", Measure::Last), Some(48.0));
        assert_eq!(value("iVoro-NWAI", Measure::Last), None);
        assert_eq!(paper.value("ImageNet-Subset", "50+10x5", "RMM", Measure::Last), Some(71.4));
        assert_eq!(paper.value("CIFAR-100", "40+20x3", "RMM", Measure::Last), None);
        assert_eq!(paper.value("MNIST", "4+2x3", "iVoro", Measure::Last), Some(64.84));
    }

    // the best variant of Table 1 is the best of Table 2
    #[test]
    fn the_two_tables_agree() {
        let paper = paper();
        let best = paper.comparison.row.iter().find(|row| row.method == "iVoro (best)").unwrap();
        for column in 0..7 {
            let most =
                paper.ablation.row.iter().map(|row| row.pairs[column][1]).fold(0.0, f64::max);
            assert_eq!(most, best.pairs[column][1]);
        }
    }
}
