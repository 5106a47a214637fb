//! Pictures of a variant: its diagram in the plane, phase after phase, and its features brought there.

use std::ops::Range;

use ivoro::head::{Head, Views};
use ivoro::{Error, Matrix, Model, ModelOptions, Result, Samples, Variant};

use super::{Embedding, Sample, Scene, ScenePhase, Site, VERSION, evenly, tsne};
use crate::Stream;

/// What pictures of a variant are computed from.
pub struct Picture<'a> {
    /// The phases.
    pub stream: &'a Stream,
    /// Name of the data set.
    pub data_set: String,
    /// How models are made.
    pub options: &'a ModelOptions,
}

impl Picture<'_> {
    /// Cells and samples in the plane, phase after phase.
    pub fn scene(&self, variant: Variant, most: usize) -> Result<Scene> {
        if variant.is_metric() || variant.divide || variant.layered {
            let what = format!("{variant}: cells are drawn for variants without W, Q, D and L");
            return Err(Error::Unsupported { what });
        }
        let stream = self.stream;
        let mut model = Model::new(variant, self.options.clone());
        let all: Vec<Range<usize>> = stream.protocol().phases().collect();
        let mut phases = Vec::new();
        for (at, phase) in all.iter().enumerate() {
            model.learn(&stream.train()[at])?;
            let test = stream.test().of_classes(|label| (label as usize) < phase.end);
            let found = model.head().predict(&test)?;
            let accuracy = |wanted: &Range<usize>| accuracy(test.labels(), &found, wanted);
            phases.push(ScenePhase {
                accuracy: accuracy(&(0..phase.end)),
                accuracy_by_phase: all[..=at].iter().map(accuracy).collect(),
                sites: sites(model.head())?,
                samples: samples(model.head(), &test, most)?,
            });
        }
        let (method, classes) = (variant.to_string(), stream.classes().to_vec());
        Ok(Scene { version: VERSION, data_set: self.data_set.clone(), method, classes, phases })
    }

    /// Features brought to the plane by t-SNE.
    pub fn embedding(
        &self,
        variant: Variant,
        most: usize,
        perplexity: f32,
        epochs: usize,
    ) -> Result<Embedding> {
        let (points, labels) = self.features(variant, most)?;
        let placed = tsne::embed(&points, perplexity, epochs)?;
        Ok(Embedding {
            version: VERSION,
            data_set: self.data_set.clone(),
            method: variant.to_string(),
            phase: None,
            perplexity: f64::from(perplexity),
            classes: self.stream.classes().to_vec(),
            phases: self.stream.protocol().sizes().to_vec(),
            points: placed.into_iter().zip(labels).map(|([x, y], label)| (x, y, label)).collect(),
        })
    }

    /// Test samples as the variant sees them after the first phase settled its settings. Under AC
    /// and AI every rotation is a sample of its own.
    fn features(&self, variant: Variant, most: usize) -> Result<(Matrix, Vec<u32>)> {
        let stream = self.stream;
        let mut model = Model::new(variant, self.options.clone());
        if let Some(base) = stream.train().first() {
            model.learn(base)?;
        }
        let views = if variant.views == Views::Single { 1 } else { 4 };
        let rows: Vec<usize> = evenly(stream.test().len(), most.div_ceil(views)).collect();
        let test = stream.test().select(&rows);
        let mut all = Matrix::default();
        let mut labels = Vec::new();
        for block in model.head().block_points(&test)? {
            // a further layer has another dimension, and its own space
            if all.rows() > 0 && block.cols() != all.cols() {
                continue;
            }
            if all.rows() == 0 {
                all = block;
            } else {
                all.append(&block)?;
            }
            labels.extend_from_slice(test.labels());
        }
        Ok((all, labels))
    }
}

/// Accuracy in percent on the samples of these classes, where there is one.
fn accuracy(labels: &[u32], found: &[u32], wanted: &Range<usize>) -> Option<f64> {
    let asked = labels.iter().zip(found).filter(|(label, _)| wanted.contains(&(**label as usize)));
    let (all, right) = asked.fold((0usize, 0usize), |(all, right), (label, found)| {
        (all + 1, right + usize::from(label == found))
    });
    (all > 0).then(|| 100.0 * right as f64 / all as f64)
}

/// The sites of all views; the report draws the sisters of a class in one colour.
fn sites(head: &Head) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    for (sister, diagram) in head.block_diagrams()?.iter().enumerate() {
        if diagram.centres().cols() != 2 {
            let (what, found) =
                ("dimension of features that are drawn".to_owned(), diagram.centres().cols());
            return Err(Error::Size { what, expected: 2, found });
        }
        for (class, (centre, &weight)) in
            diagram.centres().iter_rows().zip(diagram.weights()).enumerate()
        {
            let at = [centre[0], centre[1]];
            sites.push(Site { at, weight, class: class as u32, sister: sister as u32 });
        }
    }
    Ok(sites)
}

/// Upright samples as the head sees them, at most so many.
fn samples(head: &Head, test: &Samples, most: usize) -> Result<Vec<Sample>> {
    let points = head.block_points(test)?;
    let upright = points.first().cloned().unwrap_or_default();
    let rows = evenly(test.len(), most);
    let sample = |row: usize| (upright.row(row)[0], upright.row(row)[1], test.labels()[row]);
    Ok(rows.map(sample).collect())
}
