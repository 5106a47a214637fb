//! The hyperplane between two centres.

use crate::error::{Error, Result};

/// The hyperplane halfway between two centres: vᵀz = q, with v = (c₁−c₂)/‖c₁−c₂‖ and
/// q = (‖c₁‖²−‖c₂‖²) / (2‖c₁−c₂‖).
#[derive(Clone, Debug, PartialEq)]
pub struct Bisector {
    /// Unit normal v, pointing to the first centre.
    pub normal: Vec<f64>,
    /// Offset q.
    pub offset: f64,
}

impl Bisector {
    /// Between two different centres.
    pub fn between(first: &[f32], second: &[f32]) -> Result<Self> {
        let size = |found| Error::Size {
            what: "dimension of the second centre".to_owned(),
            expected: first.len(),
            found,
        };
        if first.len() != second.len() {
            return Err(size(second.len()));
        }
        let pairs = || first.iter().zip(second).map(|(&a, &b)| (f64::from(a), f64::from(b)));
        let length = pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        if length == 0.0 {
            let what = "two equal centres have no bisector".to_owned();
            return Err(Error::Unsupported { what });
        }
        let normal = pairs().map(|(a, b)| (a - b) / length).collect();
        let offset = pairs().map(|(a, b)| a * a - b * b).sum::<f64>() / (2.0 * length);
        Ok(Self { normal, offset })
    }

    /// vᵀz − q: positive on the side of the first centre.
    pub fn side(&self, query: &[f32]) -> f64 {
        self.normal.iter().zip(query).map(|(v, &z)| v * f64::from(z)).sum::<f64>() - self.offset
    }
}
