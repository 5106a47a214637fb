//! Settings of the method.

use std::sync::Arc;

use clap::Args;
use ivoro::ModelOptions;
use ivoro::head::{Optimiser, Pairs, ProbeSpace, ProbeViews, Rule, ScatterKept, Settings};
use ivoro::tune::Given;

/// Settings of the method. What is not given is chosen on held-out base-phase samples.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings (default: chosen on held-out base-phase samples)")]
pub(crate) struct SettingArguments {
    /// N: exponent λ; 0 is the logarithm.
    #[arg(long, value_name = "λ", allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// N: factor w.
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    scale: Option<f64>,
    /// N: shift η.
    #[arg(long, value_name = "η", allow_negative_numbers = true)]
    shift: Option<f64>,
    /// W and Q: ridge ε, as a share of the mean variance.
    #[arg(long, value_name = "ε", allow_negative_numbers = true)]
    ridge: Option<f64>,
    /// Q: κ, for how many samples of a class the pooled covariance counts.
    #[arg(long, value_name = "κ", allow_negative_numbers = true)]
    prior: Option<f64>,
    /// L: weights of the last layer and of the third block.
    #[arg(long, value_name = "A,B", value_parser = two_numbers)]
    layer_weights: Option<[f64; 2]>,
    /// D: weight decay of the probe.
    #[arg(long, value_name = "δ", allow_negative_numbers = true)]
    weight_decay: Option<f64>,
    /// R: β, how firmly centres are held at the prototypes.
    #[arg(long, value_name = "β", allow_negative_numbers = true)]
    beta: Option<f64>,
    /// D under N: raw or transformed features for the probe.
    #[arg(long, value_name = "SPACE")]
    probe_space: Option<ProbeSpace>,
    /// Probes with rotations: one over all sisters, or separate ones.
    #[arg(long, value_name = "HOW", help_heading = "Settings with a fixed default")]
    probe_views: Option<ProbeViews>,
    /// Q: α, what a class pays for its volume: 1 as for normal distributions, 0 nothing.
    #[arg(
        long,
        value_name = "α",
        default_value_t = Settings::default().volume,
        help_heading = "Settings with a fixed default"
    )]
    volume: f64,
    /// AC and AI: matched (4 pairs of views) or all (16).
    #[arg(long, default_value = "matched", help_heading = "Settings with a fixed default")]
    pairs: Pairs,
    /// D: tournament, or elimination in order of arrival.
    #[arg(long, default_value = "tournament", help_heading = "Settings with a fixed default")]
    rule: Rule,
    /// L: exponent γ of the influence function, not 0.
    #[arg(
        long,
        default_value_t = 1.0,
        allow_negative_numbers = true,
        help_heading = "Settings with a fixed default"
    )]
    gamma: f64,
    /// Probes: lbfgs (deterministic, full batch) or adam (mini-batches, rate 1e-3).
    #[arg(long, default_value = "lbfgs", help_heading = "Settings with a fixed default")]
    optimiser: Optimiser,
    /// Probes: most iterations of L-BFGS, or epochs of Adam.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        help_heading = "Settings with a fixed default"
    )]
    iterations: usize,
    /// K: dimension of the lifted space.
    #[arg(
        long,
        value_name = "DIM",
        default_value_t = 10_000,
        help_heading = "Settings with a fixed default"
    )]
    lift: usize,
    /// W: pooled (small) or per-class (larger; classes can be forgotten exactly).
    #[arg(long, default_value = "pooled", help_heading = "Settings with a fixed default")]
    scatter: ScatterKept,
    /// Seed of everything random: hold-out, lift, mini-batches, peers.
    #[arg(long, default_value_t = 1993, help_heading = "Settings with a fixed default")]
    pub(crate) seed: u64,
}

fn two_numbers(text: &str) -> Result<[f64; 2], String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    <[f64; 2]>::try_from(numbers).map_err(|_| "two numbers with a comma between: 1,1".to_owned())
}

impl SettingArguments {
    pub(crate) fn options(&self) -> ModelOptions {
        let settings = Settings {
            volume: self.volume,
            pairs: self.pairs,
            rule: self.rule,
            gamma: self.gamma,
            optimiser: self.optimiser,
            iterations: self.iterations,
            lift: self.lift,
            scatter: self.scatter,
            seed: self.seed,
            ..Settings::default()
        };
        let given = Given {
            lambda: self.lambda,
            scale: self.scale,
            shift: self.shift,
            ridge: self.ridge,
            prior: self.prior,
            layer_weights: self.layer_weights,
            weight_decay: self.weight_decay,
            beta: self.beta,
            probe_space: self.probe_space,
            probe_views: self.probe_views,
        };
        ModelOptions { settings, given, tuner: Arc::default() }
    }
}
