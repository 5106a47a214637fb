//! How a network is trained on the base phase: every setting, typed.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Every setting of base-phase training. The default is the recipe of PASS for 32×32 images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Times every training image is seen.
    pub epochs: usize,
    /// Training images per step; each is seen at all four rotations if `rotations` is on.
    pub batch: usize,
    /// Whether each class has four sister classes, one per rotation: label 4y + rotation.
    pub rotations: bool,
    /// Logits are divided by this before the softmax.
    pub temperature: f32,
    /// Share of the label that is spread over all outputs.
    pub smoothing: f32,
    /// Which rule moves the weights.
    pub optimiser: Optimiser,
    /// The first learning rate.
    pub rate: f32,
    /// Factor of the weights themselves in the gradient.
    pub decay: f32,
    /// How the rate falls.
    pub schedule: Schedule,
    /// What is done to the training images.
    pub augmentation: Augmentation,
    /// Share of the old average in a running average of the weights, which is then what is kept.
    pub average: Option<f32>,
    /// Share of the training images that are held out to measure accuracy, 0 for none.
    pub holdout: f64,
    /// Seed of weights, order and augmentation.
    pub seed: u64,
}

/// Which rule moves the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimiser {
    /// Adam, β₁ = 0.9, β₂ = 0.999, ε = 1e-8, decay added to the gradient.
    Adam,
    /// Gradient descent with momentum 0.9.
    Momentum,
}

/// How the learning rate falls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Times 0.1 at the start of each of these epochs, counted from 0.
    Steps(Vec<usize>),
    /// Along a cosine to zero, after a linear rise over this many epochs.
    Cosine(usize),
}

/// Random changes of a training image; each is off at zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    /// The image is shifted by up to this many pixels each way, black coming in.
    pub shift: usize,
    /// Whether half of the images are mirrored left to right.
    pub mirror: bool,
    /// Largest relative change of brightness.
    pub brightness: f32,
    /// Largest relative change of contrast.
    pub contrast: f32,
    /// Largest relative change of saturation.
    pub saturation: f32,
    /// Side of a square that is painted over with grey.
    pub cutout: usize,
    /// Largest relative enlargement: a random part of the image fills the frame.
    pub zoom: f32,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            epochs: 101,
            batch: 64,
            rotations: true,
            temperature: 0.1,
            smoothing: 0.0,
            optimiser: Optimiser::Adam,
            rate: 1e-3,
            decay: 2e-4,
            schedule: Schedule::Steps(vec![44, 89]),
            augmentation: Augmentation::default(),
            average: None,
            holdout: 0.0,
            seed: 0,
        }
    }
}

impl Default for Augmentation {
    fn default() -> Self {
        Self {
            shift: 4,
            mirror: true,
            brightness: 63.0 / 255.0,
            contrast: 0.0,
            saturation: 0.0,
            cutout: 0,
            zoom: 0.0,
        }
    }
}

impl Augmentation {
    /// Images as they are.
    pub fn none() -> Self {
        Self {
            shift: 0,
            mirror: false,
            brightness: 0.0,
            contrast: 0.0,
            saturation: 0.0,
            cutout: 0,
            zoom: 0.0,
        }
    }
}

impl Recipe {
    /// Outputs per class: itself, or itself and three rotated sisters.
    pub fn sisters(&self) -> usize {
        if self.rotations { 4 } else { 1 }
    }

    /// The same training in another number of epochs: the rate falls after the same shares of them.
    #[must_use]
    pub fn in_epochs(mut self, epochs: usize) -> Self {
        // rounded up, so that no epoch that was there is lost
        let scaled = |at: usize| (at * epochs).div_ceil(self.epochs.max(1));
        match &mut self.schedule {
            Schedule::Steps(steps) => steps.iter_mut().for_each(|step| *step = scaled(*step)),
            Schedule::Cosine(rise) => *rise = scaled(*rise),
        }
        self.epochs = epochs;
        self
    }

    /// The learning rate of a step, `progress` being the epochs done so far, with fractions.
    pub fn rate_at(&self, progress: f64) -> f32 {
        let factor = match &self.schedule {
            Schedule::Steps(epochs) => {
                let passed = epochs.iter().filter(|&&epoch| progress >= epoch as f64).count();
                0.1f64.powi(passed as i32)
            }
            Schedule::Cosine(rise) if progress < *rise as f64 => {
                (progress + 1e-2) / (*rise as f64 + 1e-2)
            }
            Schedule::Cosine(rise) => {
                let length = (self.epochs as f64 - *rise as f64).max(1.0);
                let done = ((progress - *rise as f64) / length).min(1.0);
                0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
        };
        (f64::from(self.rate) * factor) as f32
    }

    /// Checks every range.
    pub fn check(&self) -> Result<()> {
        let positive = |name, value: f32| check(name, value, value > 0.0, "must be above 0");
        positive("temperature", self.temperature)?;
        positive("rate", self.rate)?;
        check("decay", self.decay, self.decay >= 0.0, "must not be negative")?;
        let share = |name, value: f32| {
            check(name, value, (0.0..1.0).contains(&value), "must be at least 0 and below 1")
        };
        share("smoothing", self.smoothing)?;
        share("average", self.average.unwrap_or(0.0))?;
        share("holdout", self.holdout as f32)?;
        let Augmentation { brightness, contrast, saturation, zoom, .. } = self.augmentation;
        share("brightness", brightness)?;
        share("contrast", contrast)?;
        share("saturation", saturation)?;
        check("zoom", zoom, (0.0..=8.0).contains(&zoom), "must be between 0 and 8")?;
        check("epochs", self.epochs, self.epochs > 0, "must be above 0")?;
        check("batch", self.batch, self.batch > 0, "must be above 0")
    }
}

fn check(
    name: &'static str,
    value: impl std::fmt::Display,
    fine: bool,
    reason: &'static str,
) -> Result<()> {
    if fine { Ok(()) } else { Err(Error::Setting { name, value: format!("{value}"), reason }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_at_the_start_of_the_epochs_named() {
        let recipe = Recipe::default();
        let rates = [0.0, 43.99, 44.0, 88.9, 89.0, 100.9].map(|at| recipe.rate_at(at));
        let expected = [1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5];
        for (rate, expected) in rates.iter().zip(expected) {
            assert!((rate / expected - 1.0).abs() < 1e-5, "{rates:?}");
        }
    }

    #[test]
    fn a_shorter_training_has_its_rates_for_the_same_shares() {
        let recipe = Recipe::default().in_epochs(31);
        assert_eq!((recipe.epochs, recipe.schedule), (31, Schedule::Steps(vec![14, 28])));
        // however short, it begins with the first rate
        let recipe = Recipe::default().in_epochs(1);
        assert_eq!(recipe.rate_at(0.0), recipe.rate);
        let rising = Recipe { epochs: 8, schedule: Schedule::Cosine(2), ..Recipe::default() };
        assert_eq!(rising.in_epochs(4).schedule, Schedule::Cosine(1));
    }

    #[test]
    fn the_cosine_rises_and_ends_at_nothing() {
        let recipe = Recipe { epochs: 10, schedule: Schedule::Cosine(2), ..Recipe::default() };
        assert!(recipe.rate_at(0.0) < recipe.rate_at(1.0));
        assert!((recipe.rate_at(2.0) - recipe.rate).abs() < 1e-9);
        assert!((recipe.rate_at(6.0) - recipe.rate / 2.0).abs() < 1e-9);
        assert!(recipe.rate_at(10.0) < 1e-9);
    }
}
