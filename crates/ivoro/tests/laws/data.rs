//! Small random features, the same on every run.

use std::sync::Arc;

use ivoro::head::Head;
use ivoro::head::{ProbeViews, Settings};
use ivoro::transform::Transform;
use ivoro::{Matrix, Points, Samples, Variant, View};

/// Dimensions of the last layer and of the block before it.
pub(crate) const DIMS: [usize; 2] = [7, 5];
/// Classes of the usual data, and those of its three phases.
pub(crate) const CLASSES: u32 = 9;
pub(crate) const PHASES: [std::ops::Range<u32>; 3] = [0..4, 4..6, 6..9];

/// Numbers in 0..1 from splitmix64.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    fn matrix(&mut self, rows: usize, cols: usize) -> Matrix {
        Matrix::new(rows, cols, (0..rows * cols).map(|_| self.next()).collect()).unwrap()
    }
}

pub(crate) fn names(classes: u32) -> Arc<[String]> {
    (0..classes).map(|class| format!("class {class}")).collect()
}

/// Non-negative features of two layers and eight views around random centres. Classes overlap, so
/// that answers differ between variants; `count` is the number of samples of each class.
pub(crate) fn blobs(seed: u64, classes: u32, count: impl Fn(u32) -> usize) -> Samples {
    let views = View::conventional(8).unwrap();
    let labels: Vec<u32> = (0..classes).flat_map(|c| std::iter::repeat_n(c, count(c))).collect();
    // the centres do not depend on the seed: another seed gives other samples of the same classes
    let mut fixed = Numbers(77);
    let mut numbers = Numbers(seed);
    let mut blocks = Vec::new();
    for dim in DIMS {
        for _ in &views {
            let centres = fixed.matrix(classes as usize, dim);
            let mut block = numbers.matrix(labels.len(), dim);
            for (row, &label) in labels.iter().enumerate() {
                let centre = centres.row(label as usize);
                block
                    .row_mut(row)
                    .iter_mut()
                    .zip(centre)
                    .for_each(|(z, c)| *z = 3.0 * *z + 4.0 * c);
            }
            blocks.push(block);
        }
    }
    let layers = vec!["last".to_owned(), "third".to_owned()];
    let points = Points::new("blobs", layers, views, blocks).unwrap();
    Samples::new(points, labels, names(classes)).unwrap()
}

/// Unequal counts, at least six.
pub(crate) fn unequal(class: u32) -> usize {
    6 + (class as usize * 5) % 7
}

pub(crate) fn train() -> Samples {
    blobs(1, CLASSES, unequal)
}

pub(crate) fn queries() -> Samples {
    blobs(2, CLASSES, |_| 4)
}

/// The samples of one of the phases.
pub(crate) fn phase(features: &Samples, phase: usize) -> Samples {
    features.of_classes(|label| PHASES[phase].contains(&label))
}

/// Every second sample from `first` on.
pub(crate) fn half(features: &Samples, first: usize) -> Samples {
    features.select(&(first..features.len()).step_by(2).collect::<Vec<_>>())
}

/// The same samples with other layers or views: `pick` names the block for each layer and view.
pub(crate) fn rearranged(
    features: &Samples,
    layers: usize,
    views: Vec<View>,
    pick: impl Fn(usize, View) -> (usize, View),
) -> Samples {
    let mut blocks = Vec::new();
    for layer in 0..layers {
        for &view in &views {
            let (layer, view) = pick(layer, view);
            blocks.push(features.block(layer, view).unwrap().clone());
        }
    }
    let names = features.layers()[..layers].to_vec();
    let (labels, classes) = (features.labels().to_vec(), features.classes().clone());
    Samples::new(Points::new("rearranged", names, views, blocks).unwrap(), labels, classes).unwrap()
}

/// Small settings, so that hundreds of heads are learned in seconds. All values, lifted and
/// transformed ones too, have their largest in (4, 64), where every batch asks for the same fixed-point grid.
pub(crate) fn small() -> Settings {
    Settings {
        transform: Transform { lambda: 0.7, scale: 60.0, shift: 0.0 },
        lift: 20,
        iterations: 5,
        probe_views: ProbeViews::Separate,
        ..Settings::default()
    }
}

pub(crate) fn variant(name: &str) -> Variant {
    name.parse().unwrap()
}

/// A head that learned these phases one after another.
pub(crate) fn learned(variant: Variant, settings: &Settings, phases: &[Samples]) -> Head {
    let mut head = Head::new(variant, settings.clone()).unwrap();
    for phase in phases {
        head.learn(phase).unwrap();
    }
    head
}

/// The three phases of some features.
pub(crate) fn phases(features: &Samples) -> Vec<Samples> {
    (0..PHASES.len()).map(|at| phase(features, at)).collect()
}

/// Every variant whose name parses.
pub(crate) fn every_variant() -> Vec<Variant> {
    let mut names = vec![vec!["iVoro".to_owned(), "iVoro3".to_owned()]];
    for letters in
        [&["N"][..], &["F"], &["K"], &["W"], &["Q"], &["D"], &["R"], &["AC", "AI"], &["L"]]
    {
        let mut choices = vec![String::new()];
        choices.extend(letters.iter().map(ToString::to_string));
        names.push(choices);
    }
    let spelled = names.into_iter().reduce(|heads, tails| {
        let join = |head: &String| tails.iter().map(|t| format!("{head}{t}")).collect::<Vec<_>>();
        heads.iter().flat_map(join).collect()
    });
    let dashed = |name: String| match name.find(|c: char| c.is_uppercase() && c != 'V') {
        Some(at) => format!("{}-{}", &name[..at], &name[at..]),
        None => name,
    };
    spelled.unwrap().into_iter().filter_map(|name| dashed(name).parse().ok()).collect()
}
