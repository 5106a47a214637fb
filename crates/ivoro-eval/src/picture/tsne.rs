//! t-SNE after Barnes and Hut: features brought to the plane.

use ivoro::{Error, Matrix, Result};

/// Accuracy of the Barnes–Hut approximation: the usual value.
const THETA: f32 = 0.5;

/// The perplexity wished for, or what so many samples allow: t-SNE wants three times as many samples as
/// neighbours. `None` where they are too few.
pub fn allowed_perplexity(wished: f32, samples: usize) -> Option<f32> {
    let most = wished.min((samples as f32 - 2.0) / 3.0);
    (most >= 1.0).then_some(most)
}

/// Points brought to the plane.
pub fn embed(points: &Matrix, perplexity: f32, epochs: usize) -> Result<Vec<[f32; 2]>> {
    if !(perplexity >= 1.0 && 3.0 * perplexity < points.rows() as f32) {
        let samples = points.rows();
        let what = format!(
            "perplexity {perplexity}: must be at least 1 and below a third of the {samples} samples"
        );
        return Err(Error::Unsupported { what });
    }
    let rows: Vec<&[f32]> = points.iter_rows().collect();
    let mut tsne: bhtsne::tSNE<f32, &[f32]> = bhtsne::tSNE::new(&rows);
    tsne.perplexity(perplexity).epochs(epochs).initial_embedding(start(points));
    tsne.barnes_hut(THETA, |a, b| {
        a.iter().zip(b.iter()).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
    });
    Ok(tsne.embedding().chunks_exact(2).map(|at| [at[0], at[1]]).collect())
}

/// The two dimensions that vary most, made small: the same start in every run.
fn start(points: &Matrix) -> Vec<f32> {
    let rows = points.rows().max(1) as f64;
    let mut spread: Vec<(f64, f64, usize)> = (0..points.cols())
        .map(|col| {
            let values = || points.iter_rows().map(|row| f64::from(row[col]));
            let mean = values().sum::<f64>() / rows;
            (values().map(|value| (value - mean).powi(2)).sum::<f64>() / rows, mean, col)
        })
        .collect();
    spread.sort_by(|a, b| b.0.total_cmp(&a.0));
    let axes = [spread[0], spread[spread.len().min(2) - 1]];
    let place = |row: &[f32]| {
        axes.map(|(variance, mean, col)| {
            (1e-4 * (f64::from(row[col]) - mean) / variance.sqrt().max(1e-12)) as f32
        })
    };
    points.iter_rows().flat_map(place).collect()
}
