//! Unknown queries that look like one new class.
//!
//! Two queries are compared in the model's own metric: in a copy of the head each becomes a class of its
//! own, of one sample, which changes no covariance, and the distance between them is that of one to the
//! class of the other. Where letters make no metric of two queries (D, R and AC), these letters and W and Q are
//! left away: then it is the distance of transformed features. Queries that are far from everything are far from each other too, whatever they
//! are; so what counts is the angle between them, seen from the middle of the labelled queries. How alike
//! two queries of one class are is seen from labelled queries, which are compared in the same way.
//! Clusters are joined by average linkage while they are less apart than the middle between two queries
//! of one class and two of neighbouring classes. No seed and no number of clusters is needed.

use std::cmp::Reverse;
use std::collections::HashSet;

use ivoro::head::Head;
use ivoro::head::Views;
use ivoro::{Matrix, Points, Result, Samples, Variant};
use serde::Serialize;

use super::answers::Answer;

/// Unknown queries that are compared, the strangest first.
const MOST: usize = 400;
/// Bytes that classes of Q may take while queries are compared; each has a covariance of its own.
const MOST_BYTES: usize = 1 << 30;
/// Labelled queries of a class, and of all, that show how alike a class is.
const EACH: usize = 4;
const MOST_LABELLED: usize = 200;
/// Queries that make a cluster.
const LEAST: usize = 3;
/// Distances to so many classes can be held beside those to the queries.
const MOST_CLASSES: usize = 20_000;

/// Queries that look like one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Places in the list of answers, the most central first.
    pub members: Vec<usize>,
    /// How far two of them are apart in the mean: 1 less the cosine of their angle.
    pub apart: f64,
    /// What their labels say, where they have any, the most frequent first.
    pub labels: Vec<(String, usize)>,
}

/// All clusters, the largest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clusters {
    /// Unknown and rejected queries that were compared.
    pub compared: usize,
    /// The letters that they were compared with: those of the model, or some of them.
    pub by: String,
    /// How far two labelled queries of one class are apart in the mean.
    pub within: f64,
    /// The same of two labelled queries of a class and of the class nearest to it.
    pub between: f64,
    /// The clusters.
    pub found: Vec<Cluster>,
}

/// Clusters, and members of each, that are shown.
const SHOWN: usize = 8;
const SHOWN_MEMBERS: usize = 8;

impl Clusters {
    /// The first clusters, each with its most central members.
    pub fn shown(&self) -> impl Iterator<Item = (&Cluster, &[usize])> {
        let central = |it: &Cluster| it.members.len().min(SHOWN_MEMBERS);
        self.found.iter().take(SHOWN).map(move |it| (it, &it.members[..central(it)]))
    }
}

/// Clusters of queries that are rejected or known to be unknown; none where too few labelled ones show how
/// alike a class is.
pub(super) fn find(
    head: &Head,
    answers: &[Answer],
    points: &[&Points],
    known: &Samples,
) -> Result<Option<Clusters>> {
    let compared = comparing(head)?;
    if compared.classes().len() > MOST_CLASSES {
        return Ok(None);
    }
    let by = compared.variant().to_string();
    let (most, most_labelled) = room(&compared);
    let reference = reference(known, head, most_labelled);
    let candidates = candidates(answers, most);
    if reference.is_empty() {
        return Ok(None);
    }
    let rows = gathered(points, &candidates, known, &reference)?;
    let Some(distances) = distances(compared, &rows)? else { return Ok(None) };
    let labels: Vec<u32> = reference.iter().map(|&row| known.labels()[row]).collect();
    let first = candidates.len();
    let apart = angles(&distances, first);
    let Some((within, between)) = usual(&apart, first, &labels) else { return Ok(None) };
    let groups = linked(&apart, first, f64::midpoint(within, between));
    let mut found: Vec<Cluster> = groups
        .into_iter()
        .filter(|group| group.len() >= LEAST)
        .map(|group| cluster(&group, &apart, &candidates, answers))
        .collect();
    found.sort_by(|a, b| {
        let larger = Reverse(a.members.len()).cmp(&Reverse(b.members.len()));
        larger.then(a.apart.total_cmp(&b.apart))
    });
    Ok(Some(Clusters { compared: first, by, within, between, found }))
}

/// A copy of the head, or an empty one of those of its letters under which a distance compares two queries:
/// a probe of D or R is trained on whole phases, and votes of AC are no distances.
fn comparing(head: &Head) -> Result<Head> {
    let variant = head.variant();
    let votes = variant.views == Views::Consensus;
    if !(variant.divide || variant.residual || votes) {
        return Ok(head.clone());
    }
    let views = if votes { Views::Integration } else { variant.views };
    let (divide, residual, whiten, per_class_metric) = (false, false, false, false);
    let plain = Variant { divide, residual, whiten, per_class_metric, views, ..variant };
    Head::new(plain, head.settings().clone())
}

/// How many unknown and labelled queries can be compared.
fn room(head: &Head) -> (usize, usize) {
    if !head.variant().per_class_metric {
        return (MOST, MOST_LABELLED);
    }
    let layers = head.layers().iter();
    let bytes: usize = layers.map(|(_, dim)| 8 * dim * dim).sum::<usize>().max(1);
    let rows = MOST_BYTES / bytes;
    ((rows * 2 / 3).min(MOST), (rows / 3).min(MOST_LABELLED))
}

/// Queries that are rejected or known to be unknown, the strangest first.
fn candidates(answers: &[Answer], most: usize) -> Vec<usize> {
    let is_unknown = |at: &usize| answers[*at].rejected == Some(true) || !answers[*at].known;
    let mut places: Vec<usize> = (0..answers.len()).filter(is_unknown).collect();
    let strangeness = |at: usize| answers[at].strangeness.unwrap_or(0.0);
    places.sort_by(|&a, &b| strangeness(b).total_cmp(&strangeness(a)).then(a.cmp(&b)));
    places.truncate(most);
    places
}

/// Rows of labelled queries, the first few of each known class that has two; empty if no two classes have.
fn reference(known: &Samples, head: &Head, most: usize) -> Vec<usize> {
    let names: HashSet<&str> = head.classes().iter().map(|class| class.name.as_str()).collect();
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); known.classes().len()];
    for (row, &label) in known.labels().iter().enumerate() {
        let rows = &mut rows[label as usize];
        if rows.len() < EACH && names.contains(known.classes()[label as usize].as_str()) {
            rows.push(row);
        }
    }
    rows.retain(|rows| rows.len() > 1);
    if rows.len() < 2 || most < 4 {
        return Vec::new();
    }
    let each = EACH.min((most / rows.len()).max(2));
    let rows = rows.iter().take(most / 2).flat_map(|rows| rows.iter().take(each));
    rows.copied().collect()
}

/// The queries that are compared, and behind them the labelled ones.
fn gathered(
    points: &[&Points],
    candidates: &[usize],
    known: &Samples,
    reference: &[usize],
) -> Result<Points> {
    let mut parts = vec![known.points().select(reference)];
    let mut order = Vec::with_capacity(candidates.len());
    let (mut first, mut taken) = (0, reference.len());
    let mut place_of = vec![None; candidates.len()];
    for part in points {
        let range = first..first + part.len();
        let mut rows = Vec::new();
        for (at, place) in candidates.iter().enumerate().filter(|(_, it)| range.contains(it)) {
            place_of[at] = Some(taken + rows.len());
            rows.push(place - first);
        }
        taken += rows.len();
        first = range.end;
        parts.push(part.select(&rows));
    }
    order.extend(place_of.into_iter().flatten());
    order.extend(0..reference.len());
    Ok(joined(&parts)?.select(&order))
}

/// Points of several sets below each other.
fn joined(parts: &[Points]) -> Result<Points> {
    let first = &parts[0];
    let mut blocks = Vec::new();
    for layer in 0..first.layers().len() {
        for &view in first.views() {
            let mut all = Matrix::zeros(0, first.dim(layer));
            for part in parts {
                if let Some(block) = part.block(layer, view) {
                    all.append(block)?;
                }
            }
            blocks.push(all);
        }
    }
    Points::new(first.origin(), first.layers().to_vec(), first.views().to_vec(), blocks)
}

/// Distances of all queries to each other, the mean of both directions; none of a head that can't learn.
fn distances(mut compared: Head, rows: &Points) -> Result<Option<Vec<Vec<f64>>>> {
    let count = rows.len();
    // a name that no class has
    let marks = compared
        .classes()
        .iter()
        .map(|class| class.name.bytes().take_while(|&b| b == b'?').count());
    let mark = "?".repeat(1 + marks.max().unwrap_or(0));
    let names: Vec<String> = (0..count).map(|row| format!("{mark}{row}")).collect();
    let before = compared.classes().len();
    let samples = Samples::new(rows.clone(), (0..count as u32).collect(), names.into())?;
    if compared.learn(&samples).is_err() {
        return Ok(None);
    }
    let to_all = compared.distances(rows)?;
    let one_way = |a: usize, b: usize| f64::from(to_all.row(a)[before + b]);
    let row = |a: usize| (0..count).map(|b| f64::midpoint(one_way(a, b), one_way(b, a))).collect();
    Ok(Some((0..count).map(row).collect()))
}

/// 1 less the cosine of the angle between queries, seen from the middle of those from `first` on. With
/// squared distances, products around the middle follow from them by centring.
fn angles(distances: &[Vec<f64>], first: usize) -> Vec<Vec<f64>> {
    let (count, middle) = (distances.len(), first..distances.len());
    let n = middle.len() as f64;
    // what every distance has in addition, as for the volume of a class
    let added = middle.clone().map(|row| distances[row][row]).sum::<f64>() / n;
    let to_middle =
        |row: usize| middle.clone().map(|at| distances[row][at] - added).sum::<f64>() / n;
    let means: Vec<f64> = (0..count).map(to_middle).collect();
    let spread = middle.clone().map(|row| means[row]).sum::<f64>() / n / 2.0;
    let square: Vec<f64> = means.iter().map(|mean| mean - spread).collect();
    let angle = |a: usize, b: usize| {
        let product = (square[a] + square[b] - (distances[a][b] - added)) / 2.0;
        let length = (square[a].max(0.0) * square[b].max(0.0)).sqrt();
        // a query in the very middle has no direction
        if length > 0.0 { 1.0 - (product / length).clamp(-1.0, 1.0) } else { 1.0 }
    };
    (0..count).map(|a| (0..count).map(|b| angle(a, b)).collect()).collect()
}

/// How far two labelled queries of one class are apart in the mean, and two of a class and its nearest
/// other one.
fn usual(apart: &[Vec<f64>], first: usize, labels: &[u32]) -> Option<(f64, f64)> {
    let mut classes = labels.to_vec();
    classes.dedup();
    let rows = |class: u32| {
        (0..labels.len()).filter(move |&row| labels[row] == class).map(move |row| first + row)
    };
    let mean = |a: u32, b: u32| {
        let pairs = rows(a).flat_map(|x| rows(b).filter(move |&y| y != x).map(move |y| (x, y)));
        let (sum, count) =
            pairs.fold((0.0, 0.0), |(sum, count), (x, y)| (sum + apart[x][y], count + 1.0));
        sum / f64::max(count, 1.0)
    };
    let nearest = |a: u32| {
        let others = classes.iter().filter(|&&b| b != a).map(|&b| mean(a, b));
        others.fold(f64::INFINITY, f64::min)
    };
    let count = classes.len() as f64;
    let within = classes.iter().map(|&class| mean(class, class)).sum::<f64>() / count;
    let between = classes.iter().map(|&class| nearest(class)).sum::<f64>() / count;
    (within.is_finite() && between.is_finite() && between > within).then_some((within, between))
}

/// Groups of the first `count` rows by average linkage, up to so far apart.
fn linked(all: &[Vec<f64>], count: usize, most: f64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..count).map(|row| vec![row]).collect();
    let mut apart: Vec<Vec<f64>> = all[..count].iter().map(|row| row[..count].to_vec()).collect();
    loop {
        let mut best: Option<(f64, usize, usize)> = None;
        for a in (0..count).filter(|&a| !groups[a].is_empty()) {
            for b in (a + 1..count).filter(|&b| !groups[b].is_empty()) {
                if apart[a][b] <= most && best.is_none_or(|(least, ..)| apart[a][b] < least) {
                    best = Some((apart[a][b], a, b));
                }
            }
        }
        let Some((_, a, b)) = best else { break };
        let (m, n) = (groups[a].len() as f64, groups[b].len() as f64);
        let means: Vec<f64> =
            apart[a].iter().zip(&apart[b]).map(|(x, y)| (m * x + n * y) / (m + n)).collect();
        apart.iter_mut().zip(&means).for_each(|(row, mean)| row[a] = *mean);
        apart[a] = means;
        let moved = std::mem::take(&mut groups[b]);
        groups[a].extend(moved);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// A group in places of answers.
fn cluster(
    group: &[usize],
    apart: &[Vec<f64>],
    candidates: &[usize],
    answers: &[Answer],
) -> Cluster {
    let sum =
        |row: usize| group.iter().filter(|&&it| it != row).map(|&it| apart[row][it]).sum::<f64>();
    let mut order: Vec<(f64, usize)> = group.iter().map(|&row| (sum(row), row)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let pairs = (group.len() * (group.len() - 1)).max(1) as f64;
    let apart = order.iter().map(|(sum, _)| sum).sum::<f64>() / pairs;
    let members: Vec<usize> = order.into_iter().map(|(_, row)| candidates[row]).collect();
    let mut labels: Vec<(String, usize)> = Vec::new();
    for label in members.iter().filter_map(|&at| answers[at].label.as_ref()) {
        match labels.iter_mut().find(|(name, _)| name == label) {
            Some((_, count)) => *count += 1,
            None => labels.push((label.clone(), 1)),
        }
    }
    labels.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Cluster { members, apart, labels }
}
