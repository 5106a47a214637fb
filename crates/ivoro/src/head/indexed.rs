//! Whether and how the index of centres answers for a head.

use crate::diagram::{Index, Nearest, PowerDiagram};
use crate::error::{Error, Result};
use crate::head::Head;
use crate::head::compose::Stage;
use crate::head::diagram_set::Metric;
use crate::lift::normals;
use crate::matrix::Matrix;
use crate::random::permutation;
use crate::samples::Points;

/// With fewer classes than this every query is compared with every class.
pub const INDEXED_FROM: usize = 100_000;

/// Queries on which the number of families to look at is chosen.
const REHEARSED: usize = 1024;
/// Share of them that must get the answer of the exact search. More than is promised, since real
/// samples do not spread evenly about their centre.
const AGREEMENT: f64 = 0.98;
/// Families looked at for every query, at the least.
const LEAST_PROBES: usize = 16;
/// Queries answered at once.
const BATCH: usize = 16_384;

/// How the nearest classes are sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// By an index from [`INDEXED_FROM`] classes on, where the variant has one and where it finds
    /// the nearest class of nearly all rehearsed queries; else exactly.
    #[default]
    Automatic,
    /// Every query is compared with every class.
    Exact,
    /// By an index, whatever the number of classes.
    Index,
}

/// An index over the classes and how it is asked.
#[derive(Debug)]
pub(crate) struct Indexed {
    index: Index,
    about: Approximation,
}

/// How answers are found that do not come from comparing a query with every class.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Approximation {
    /// Families into which the classes are divided.
    pub families: usize,
    /// How many of them, the nearest ones, each query is compared with.
    pub probes: usize,
    /// Share of rehearsed queries whose nearest class was that of the exact search: points drawn
    /// around class centres, as far away as the samples of the class were.
    pub agreement: f64,
}

impl Head {
    /// Whether this head knows enough classes for an index, and is of a variant that has one:
    /// queries may then get approximate answers, unless [`Search::Exact`] is asked for.
    pub fn may_search_index(&self) -> bool {
        self.classes.len() >= INDEXED_FROM && self.is_one_diagram()
    }

    /// One view, one layer, plain distances and no probe: N, F and R change points or centres.
    fn is_one_diagram(&self) -> bool {
        let single = self.frame.as_ref().is_some_and(|frame| frame.dims.len() == 1);
        single && !self.variant.is_metric() && !self.variant.divide && self.settings.gamma == 1.0
    }

    /// The index that answers queries, or `None` where they are compared with all classes.
    pub(crate) fn indexed(&self, search: Search) -> Result<Option<&Indexed>> {
        let wanted = match search {
            Search::Automatic => self.may_search_index(),
            Search::Exact => false,
            Search::Index if !self.is_one_diagram() => {
                let what = format!(
                    "{} has no index: only a single Voronoi diagram of class means has one \
                     (letters N, F and R; γ = 1)",
                    self.variant
                );
                return Err(Error::Unsupported { what });
            }
            Search::Index => true,
        };
        let set = self.diagram_set()?;
        let [Metric::Plain(diagram)] = &set.cross[..] else { return Ok(None) };
        if !wanted {
            return Ok(None);
        }
        if set.index.get().is_none() {
            let built = build(diagram, self.typical_distances()?, self.settings.seed)?;
            let kept = search == Search::Index || built.is_worth_it();
            set.index.get_or_init(|| kept.then_some(built));
        }
        Ok(set.index.get().and_then(Option::as_ref))
    }

    /// The nearest classes of every query, `top` per query, by way of the index.
    pub(crate) fn ask_index(
        &self,
        indexed: &Indexed,
        queries: &Points,
        top: usize,
    ) -> Result<Vec<Nearest>> {
        let mut found = Vec::with_capacity(queries.len() * top);
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(BATCH) {
            let points = self.points(&queries.select(rows), Stage::Full)?;
            found.extend(indexed.index.search(points.block(0, 0), indexed.about.probes, top)?);
        }
        Ok(found)
    }
}

impl Indexed {
    pub(crate) fn about(&self) -> Approximation {
        self.about
    }

    /// Comparing with a quarter of all classes, scattered, takes as long as comparing with all.
    fn is_worth_it(&self) -> bool {
        self.about.agreement >= AGREEMENT && 4 * self.about.probes <= self.about.families
    }
}

fn build(diagram: &PowerDiagram, typical: &[f64], seed: u64) -> Result<Indexed> {
    let centres = diagram.centres();
    let families = 4 * centres.rows().isqrt();
    let index = Index::new(centres, families, seed)?;
    let queries = rehearsed(centres, typical, seed);
    let exact = diagram.nearest(&queries)?;
    let mut about = Approximation { families: index.families(), probes: 0, agreement: 0.0 };
    let mut probes = LEAST_PROBES.min(about.families);
    loop {
        let found = index.search(&queries, probes, 1)?;
        // the same distance is as good an answer, even if it is that of another class
        let same = exact
            .iter()
            .zip(&found)
            .filter(|(exact, found)| exact.cell == found.cell || found.distance <= exact.distance);
        let agreement = same.count() as f64 / queries.rows().max(1) as f64;
        about = Approximation { probes, agreement, ..about };
        if about.agreement >= AGREEMENT || probes == about.families {
            break;
        }
        probes = (2 * probes).min(about.families);
    }
    Ok(Indexed { index, about })
}

/// Composed around some class centres, at the distance at which the samples of a class lie; the
/// usual distance stands in for a class of one sample.
fn rehearsed(centres: &Matrix, typical: &[f64], seed: u64) -> Matrix {
    let dim = centres.cols();
    let mut classes = permutation(seed ^ 1, centres.rows());
    classes.truncate(REHEARSED);
    let usual = typical.iter().sum::<f64>() / typical.len().max(1) as f64;
    let mut queries = centres.select(&classes);
    for (row, &class) in classes.iter().enumerate() {
        let size = (typical[class].max(usual) / dim as f64).sqrt();
        for (value, normal) in queries.row_mut(row).iter_mut().zip(normals(seed, row, dim)) {
            *value += (size * normal) as f32;
        }
    }
    queries
}
