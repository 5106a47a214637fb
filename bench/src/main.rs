//! Times one piece of work and prints JSON: `ivoro-bench nearest 100000 512 100`.
//!
//! `bench/peers.py` calls this and the peers in turn and prints ratios.

mod baselines;
mod live;
mod load;
mod onnx;
mod quadrics;
mod vision;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ivoro::diagram::{Index, PowerDiagram};
use ivoro::head::Optimiser;
use ivoro::regression::{FitOptions, Objective, Penalty, fit};
use ivoro::statistics::{Grid, SecondMoments, sums_by_class};
use ivoro::tune::Given;
use ivoro::{Error, Matrix, Model, ModelOptions, Samples, Variant};
use ivoro_io::features::{self, ReadOptions};
use rayon::prelude::*;
use serde_json::{Value, json};

const REPEATS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap_or(1);
    let result = match words.as_slice() {
        ["nearest", n, d, k] => nearest(number(n), number(d), number(k)).map_err(Into::into),
        ["means", n, d, k] => means(number(n), number(d), number(k)).map_err(Into::into),
        ["probe", file] => probe(Path::new(file)).map_err(Into::into),
        ["index", folder, d] => index(Path::new(folder), number(d)).map_err(Into::into),
        ["model", file, variant, ridge] => {
            model(Path::new(file), variant, ridge.parse().ok()).map_err(Into::into)
        }
        ["quadrics", k, d, rank] => {
            quadrics::measure(number(k), number(d), number(rank)).map_err(Into::into)
        }
        ["live", k, d] => live::metric(number(k), number(d)).map_err(Into::into),
        ["lifted", k, d] => live::lifted(number(k), number(d)).map_err(Into::into),
        ["onnx", file, pixels, batch, runtime] => {
            onnx::measure(Path::new(file), Path::new(pixels), number(batch), runtime)
                .map_err(Into::into)
        }
        ["photos", network, folder, most, batch] => {
            onnx::photos(Path::new(network), Path::new(folder), number(most), number(batch))
                .map_err(Into::into)
        }
        ["load", plan] => load::run(Path::new(plan)).map_err(|error| Error::from(error).into()),
        ["train", images, repeats] => vision::train(number(images), number(repeats)),
        ["extract", images, repeats] => vision::extract(number(images), number(repeats)),
        ["baseline", method, views, steps] => baselines::step(method, number(views), number(steps)),
        _ => {
            eprintln!("ivoro-bench nearest N D K | means N D K | probe FILE.npz | index FOLDER D");
            eprintln!("ivoro-bench model FILE.npz VARIANT RIDGE | quadrics K D RANK");
            eprintln!("ivoro-bench live K D | lifted K D");
            eprintln!("ivoro-bench onnx FILE.onnx PIXELS BATCH default|builtin|rten|onnxruntime");
            eprintln!("ivoro-bench photos FILE.onnx FOLDER MOST BATCH");
            eprintln!("ivoro-bench load PLAN.json");
            eprintln!("ivoro-bench train|extract IMAGES TIMES | baseline METHOD VIEWS STEPS");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The shortest of a few runs, in seconds.
fn best(mut work: impl FnMut()) -> f64 {
    let once = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    };
    (0..REPEATS).map(|_| once(&mut work)).fold(f64::INFINITY, f64::min)
}

fn random(rows: usize, cols: usize, seed: u64) -> Result<Matrix, Error> {
    let value = |at: usize| {
        let mut x = (at as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((x >> 40) as f32) / 16_777_216.0
    };
    Matrix::new(rows, cols, (0..rows * cols).into_par_iter().map(value).collect())
}

fn nearest(n: usize, d: usize, k: usize) -> Result<Value, Error> {
    let queries = random(n, d, 1)?;
    let diagram = PowerDiagram::voronoi(random(k, d, 2)?);
    let mut answer = Ok(Vec::new());
    let seconds = best(|| answer = black_box(&diagram).nearest(black_box(&queries)));
    let sum: u64 = answer?.iter().map(|nearest| u64::from(nearest.cell)).sum();
    Ok(json!({"seconds": seconds, "check": sum}))
}

/// Class means; second moments; and the same bytes read once, as the limit.
fn means(n: usize, d: usize, k: usize) -> Result<Value, Error> {
    let points = random(n, d, 3)?;
    let labels: Vec<u32> = (0..n).map(|row| (row * 7919 % k) as u32).collect();
    let names: Vec<String> = (0..k).map(|class| class.to_string()).collect();
    let grid = Grid::covering(&points);
    let mut result = Ok(Vec::new());
    let read = best(|| {
        let sum = |chunk: &[f32]| {
            let mut lanes = [0f32; 64];
            for part in chunk.as_chunks::<64>().0 {
                lanes.iter_mut().zip(part).for_each(|(lane, value)| *lane += value);
            }
            lanes.iter().sum::<f32>()
        };
        black_box(points.as_slice().par_chunks(1 << 16).map(sum).sum::<f32>());
    });
    let seconds =
        best(|| result = sums_by_class(black_box(&points), &labels, &names, grid, "bench"));
    result?;
    let part = points.select(&(0..n.min(100_000)).collect::<Vec<_>>());
    let mut moments = Ok(());
    let scatter = best(|| moments = SecondMoments::zeros(d).add(black_box(&part), grid));
    moments?;
    Ok(json!({"seconds": seconds, "read_seconds": read, "scatter_seconds": scatter,
        "scatter_rows": part.rows(), "bytes": n * d * 4}))
}

/// Learning, updating and asking a model with arrays X, y of a file, as the Python package does it.
fn model(path: &Path, variant: &str, ridge: Option<f64>) -> Result<Value, Error> {
    let read = features::read(path, &ReadOptions::default())?.learning()?;
    let points = read.block(0, ivoro::View::UPRIGHT).cloned().unwrap_or_default();
    let (rows, cols) = (points.rows(), points.cols());
    let numbers = Arc::new(points.into_vec());
    // checking the numbers is part of the call on both sides
    let samples = || {
        let points = Matrix::shared(rows, cols, numbers.clone())?;
        Samples::single("bench", points, read.labels().to_vec(), read.classes().len())
    };
    let variant: Variant = variant.parse()?;
    let given = Given { ridge, ..Given::default() };
    let mut model = Model::new(variant, ModelOptions::default());
    let mut outcome = Ok(());
    let learn = best(|| {
        let options = ModelOptions { given: given.clone(), ..ModelOptions::default() };
        model = Model::new(variant, options);
        outcome = samples().and_then(|samples| model.teach(&samples));
    });
    outcome?;
    let mut outcome = Ok(());
    let update = best(|| outcome = samples().and_then(|samples| model.teach(&samples)));
    outcome?;
    let mut answer = Ok(Vec::new());
    let predict = best(|| answer = samples().and_then(|samples| model.head().predict(&samples)));
    let check: u64 = answer?.iter().map(|&class| u64::from(class)).sum();
    Ok(json!({"learn": learn, "update": update, "predict": predict, "check": check}))
}

/// One probe of D on arrays X, y of a file.
fn probe(path: &Path) -> Result<Value, Error> {
    let features = features::read(path, &ReadOptions::default())?.learning()?;
    let points = features.block(0, ivoro::View::UPRIGHT).cloned().unwrap_or_default();
    let classes = features.classes().len();
    let grid = Grid::covering(&points);
    let sums = sums_by_class(&points, features.labels(), features.classes(), grid, "bench")?;
    let mut counts = vec![0u64; classes];
    features.labels().iter().for_each(|&label| counts[label as usize] += 1);
    let means = sums.iter().zip(counts).flat_map(|(sums, count)| sums.mean(count, grid));
    let centres = Matrix::new(classes, points.cols(), means.map(|value| value as f32).collect())?;
    let objective = Objective::new(&points, features.labels(), &centres, Penalty::Decay(1e-4))?;
    let mut outcomes = Vec::new();
    for iterations in [10, 30, 40, 45, 50, 55, 60, 65, 70, 80, 100] {
        let options = FitOptions { optimiser: Optimiser::Lbfgs, iterations, seed: 1 };
        let mut fitted = fit(&objective, options);
        let seconds = best(|| fitted = fit(black_box(&objective), options));
        let fitted = fitted?;
        outcomes.push(
            json!({"seconds": seconds, "loss": fitted.loss, "iterations": fitted.iterations}),
        );
    }
    let mut gradient = vec![0f32; objective.start().len()];
    let evaluation = best(|| {
        black_box(objective.evaluate(objective.start(), &mut gradient));
    });
    Ok(json!({"fits": outcomes, "evaluation_seconds": evaluation}))
}

/// Rows of little-endian `f32`, nothing else.
fn raw(path: &Path, cols: usize) -> Result<Matrix, Error> {
    let bytes = std::fs::read(path)?;
    let numbers = bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk));
    Matrix::new(bytes.len() / (4 * cols), cols, numbers.collect())
}

/// The index over the centres of a folder, at several numbers of probes; the exact answer beside.
fn index(folder: &Path, d: usize) -> Result<Value, Error> {
    let diagram = PowerDiagram::voronoi(raw(&folder.join("centres.f32"), d)?);
    let queries = raw(&folder.join("queries.f32"), d)?;
    let started = Instant::now();
    let exact = diagram.nearest(&queries)?;
    let exact_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let index = Index::new(diagram.centres(), 4 * diagram.centres().rows().isqrt(), 1)?;
    let build_seconds = started.elapsed().as_secs_f64();
    let mut points = Vec::new();
    for probes in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        let mut found = Ok(Vec::new());
        let seconds = best(|| found = index.search(black_box(&queries), probes, 1));
        let found = found?;
        let same = exact.iter().zip(&found).filter(|(exact, found)| exact.cell == found.cell);
        let recall = same.count() as f64 / queries.rows() as f64;
        points.push(json!({"probes": probes, "seconds": seconds, "recall": recall}));
        if recall > 0.995 {
            break;
        }
    }
    Ok(json!({"build_seconds": build_seconds, "exact_seconds": exact_seconds, "points": points,
        "bytes": index.bytes(), "families": index.families(),
        "exact": exact.iter().map(|nearest| nearest.cell).collect::<Vec<_>>()}))
}
