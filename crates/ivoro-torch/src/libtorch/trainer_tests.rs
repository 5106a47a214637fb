//! Tests of training with libtorch on the CPU.

use super::*;
use ivoro_vision::network::Weights;
use ivoro_vision::shape::Shape;

const SHAPE: Shape = Shape { height: 16, width: 16, channels: 3 };

fn trainer(weights: &Weights, place: (Device, Arithmetic)) -> Result<TorchTrainer> {
    let state = State {
        learned: weights.learned.clone(),
        measured: weights.measured.clone(),
        ..State::default()
    };
    let recipe = Recipe { batch: 64, ..Recipe::default() };
    let Weights { architecture, normalisation, .. } = weights;
    TorchTrainer::new(architecture, &recipe, normalisation, SHAPE, &state, place)
}

fn pixels() -> Vec<u8> {
    (0..64 * SHAPE.len()).map(|at| ivoro::random::mix(3, at as u64) as u8).collect()
}

/// A gradient of points or maps.
fn push(found: &Matrix) -> Result<Matrix> {
    let value = |at: usize| (ivoro::random::mix(4, at as u64) % 1000) as f32 / 500.0 - 1.0;
    let values = (0..found.as_slice().len()).map(value).collect();
    Ok(Matrix::new(found.rows(), found.cols(), values)?)
}

/// Points of some images, and the gradient after a backward pass.
fn there_and_back(trainer: &mut TorchTrainer) -> Result<(Matrix, Vec<f32>)> {
    let points = trainer.embed(&pixels())?;
    trainer.backward(&push(&points)?, None)?;
    Ok((points, trainer.gradient()?))
}

/// Gradient and running statistics after one look at the same images.
fn seen(
    weights: &Weights,
    arithmetic: Arithmetic,
    fused: bool,
    device: Device,
) -> Result<(Vec<f32>, Vec<f32>, bool)> {
    let mut trainer = trainer(weights, (device, arithmetic))?;
    if !fused {
        trainer.fused = None;
    }
    let used = trainer.fused.is_some();
    let (_, gradient) = there_and_back(&mut trainer)?;
    Ok((gradient, trainer.state()?.measured, used))
}

/// The relative distance of two vectors.
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f32>| -> f64 {
        values.map(|value| f64::from(value).powi(2)).sum()
    };
    let apart = square(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    (apart / square(&mut expected.iter().copied())).sqrt()
}

#[test]
fn mixed_arithmetic_is_near_full_arithmetic() -> Result<()> {
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let weights = Weights::random(Architecture::small(3, 20), normalisation, 5);
    let (exact, running, _) = seen(&weights, Arithmetic::Full, false, Device::Cpu)?;
    let (mixed, measured, _) = seen(&weights, Arithmetic::Mixed, false, Device::Cpu)?;
    let apart = distance(&mixed, &exact);
    assert!(apart > 0.0 && apart < 0.3, "{apart}");
    assert!(distance(&measured, &running) < 1e-2);
    Ok(())
}

/// Needs a GPU; without one there is nothing to compare.
#[test]
fn kernels_of_our_own_are_as_close_to_full_arithmetic_as_libtorch_is() -> Result<()> {
    let Ok(device) = super::super::gpu(0, false) else { return Ok(()) };
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let resnet = Architecture::resnet18(ivoro_vision::network::Stem::Small, 3, 20);
    for architecture in [Architecture::small(3, 20), resnet] {
        let weights = Weights::random(architecture, normalisation.clone(), 5);
        let (exact, running, used) = seen(&weights, Arithmetic::Full, true, device)?;
        assert!(!used);
        let (automatic, _, _) = seen(&weights, Arithmetic::Mixed, false, device)?;
        let (own, measured, used) = seen(&weights, Arithmetic::Mixed, true, device)?;
        assert!(used, "the kernels do not run on this GPU");
        let apart = (distance(&own, &exact), distance(&automatic, &exact));
        println!("relative error of the gradient: ours {:.4}, libtorch {:.4}", apart.0, apart.1);
        assert!(apart.0 < 1.2 * apart.1 + 1e-3, "{apart:?}");
        assert!(distance(&measured, &running) < 1e-2);
    }
    Ok(())
}

/// Needs a GPU; without one nothing is recorded.
#[test]
fn a_recorded_way_is_the_way_itself() -> Result<()> {
    let Ok(device) = super::super::gpu(0, false) else { return Ok(()) };
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let plane = Architecture::small(3, 20).with_embedding(2);
    for architecture in [Architecture::small(3, 20), plane] {
        let weights = Weights::random(architecture, normalisation.clone(), 5);
        let mut trainer = trainer(&weights, (device, Arithmetic::Mixed))?;
        let once = there_and_back(&mut trainer)?;
        for _ in 0..2 * WARM_UP {
            assert!(there_and_back(&mut trainer)? == once, "another way");
        }
        // Weights that have moved are seen by what was recorded.
        trainer.apply_gradient(1e-2)?;
        assert!(there_and_back(&mut trainer)? != once, "the same way");
    }
    Ok(())
}

#[test]
fn maps_and_their_gradient_are_those_of_the_engine_without_libtorch() -> Result<()> {
    use ivoro_vision::engine::{CustomLossTrainer, cpu::CpuTrainer};
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    for architecture in [Architecture::small(3, 20), Architecture::small(3, 20).with_embedding(2)] {
        let weights = Weights::random(architecture, normalisation.clone(), 5);
        let mut found = trainer(&weights, (Device::Cpu, Arithmetic::Full))?;
        let state = found.state()?;
        let recipe = Recipe { batch: 64, ..Recipe::default() };
        let (architecture, normalisation) =
            (weights.architecture.clone(), weights.normalisation.clone());
        let mut expected = CpuTrainer::new(architecture, &recipe, normalisation, SHAPE, state)?;
        let points = found.embed(&pixels())?;
        expected.embed(&pixels())?;
        let (maps, wanted) = (found.maps()?, expected.maps()?);
        assert!(distance(maps.as_slice(), wanted.as_slice()) < 1e-3);
        // that of maps alone
        let (none, gradient) = (Matrix::zeros(points.rows(), points.cols()), push(&wanted)?);
        found.backward(&none, Some(&gradient))?;
        expected.backward(&none, Some(&gradient))?;
        assert!(distance(&found.gradient()?, &expected.gradient()?) < 1e-2);
    }
    Ok(())
}

/// Needs a GPU; without one there is nothing to compare.
#[test]
fn the_gradient_of_maps_passes_through_kernels_of_our_own_too() -> Result<()> {
    let Ok(device) = super::super::gpu(0, false) else { return Ok(()) };
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let weights = Weights::random(Architecture::small(3, 20), normalisation, 5);
    let seen = |arithmetic: Arithmetic| -> Result<Vec<f32>> {
        let mut trainer = trainer(&weights, (device, arithmetic))?;
        let points = trainer.embed(&pixels())?;
        let maps = trainer.maps()?;
        let none = Matrix::zeros(points.rows(), points.cols());
        trainer.backward(&none, Some(&push(&maps)?))?;
        trainer.gradient()
    };
    let apart = distance(&seen(Arithmetic::Mixed)?, &seen(Arithmetic::Full)?);
    assert!(apart < 0.3, "{apart}");
    Ok(())
}
