//! Ratios that a benchmark prints, against the ranges in `bench/ranges.toml`.

use std::collections::BTreeMap;
use std::path::Path;

/// From a benchmark to its ratios, and from their names to the lowest and the highest seen.
type Ranges = BTreeMap<String, BTreeMap<String, [f64; 2]>>;

/// What a line of this kind begins with; benchmark, name and ratio follow, tabs between them.
const MARK: &str = "ratio\t";

/// One ratio as it was measured.
#[derive(Debug, PartialEq)]
pub(crate) struct Ratio {
    bench: String,
    name: String,
    value: f64,
}

impl Ratio {
    /// Reads a line that a benchmark printed, if it is of this kind.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut parts = line.strip_prefix(MARK)?.split('\t');
        let (bench, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self { bench, name, value: parts.next()?.trim().parse().ok()? })
    }
}

/// Reads the ranges.
pub(crate) fn read(path: &Path) -> Result<Ranges, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let ranges = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
    ranges.map_err(|error| format!("{}: {error}", path.display()))
}

/// A table of the ratios of these benchmarks, and whether each one that has a range reached it.
pub(crate) fn compare(ranges: &Ranges, benches: &[&str], ratios: &[Ratio]) -> (String, bool) {
    let mut lines =
        vec![format!("\n{:<10} {:<44} {:>7}  range", "benchmark", "more is better", "ratio")];
    let mut good = true;
    for Ratio { bench, name, value } in ratios {
        let range = ranges.get(bench).and_then(|names| names.get(name));
        let verdict = match range {
            None => "none".to_owned(),
            Some([low, high]) if value < low => {
                good = false;
                format!("{low}–{high}  below its range")
            }
            Some([low, high]) => format!("{low}–{high}"),
        };
        lines.push(format!("{bench:<10} {name:<44} {value:>7.2}  {verdict}"));
    }
    for bench in benches {
        for name in ranges.get(*bench).into_iter().flat_map(BTreeMap::keys) {
            if !ratios.iter().any(|ratio| ratio.bench == *bench && ratio.name == *name) {
                good = false;
                lines.push(format!("{bench:<10} {name:<44} {:>7}  not measured", "–"));
            }
        }
    }
    (lines.join("\n"), good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> Ranges {
        toml::from_str("[nearest]\nfirst = [1.5, 2]\nsecond = [3.0, 4.0]").unwrap()
    }

    fn ratio(name: &str, value: f64) -> Ratio {
        Ratio::parse(&format!("ratio\tnearest\t{name}\t{value}\n")).unwrap()
    }

    #[test]
    fn only_what_is_below_its_range_or_missing_is_bad() {
        let both = [ratio("first", 1.5), ratio("second", 9.0), ratio("third", 0.1)];
        let (text, good) = compare(&ranges(), &["nearest"], &both);
        assert!(good && !text.contains("below") && !text.contains("not measured"), "{text}");
        let (text, good) =
            compare(&ranges(), &["nearest"], &[ratio("first", 1.4), ratio("second", 3.0)]);
        assert!(!good && text.matches("1.5–2  below its range").count() == 1, "{text}");
        let (text, good) = compare(&ranges(), &["nearest"], &both[..1]);
        assert!(!good && text.contains("not measured"), "{text}");
        assert!(compare(&ranges(), &["probe"], &[]).1);
    }

    #[test]
    fn other_lines_are_no_ratios() {
        for line in
            ["ratio nearest first 1", "ratio\tnearest\tfirst", "ratio\tnearest\tfirst\tx", ""]
        {
            assert_eq!(Ratio::parse(line), None, "{line}");
        }
    }

    #[test]
    fn every_range_of_the_repository_is_one_of_a_benchmark() {
        let ranges = read(&crate::python::root().join("bench/ranges.toml")).unwrap();
        for (bench, names) in ranges {
            assert!(crate::bench::NAMES.contains(&bench.as_str()), "{bench}");
            for (name, [low, high]) in names {
                assert!(0.0 < low && low <= high, "{bench}: {name}");
            }
        }
    }
}
