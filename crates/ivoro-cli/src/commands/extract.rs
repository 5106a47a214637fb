use std::collections::BTreeMap;
use std::path::Path;

use anstream::eprintln;
use ivoro_vision::dataset::{Dataset, Fit, How, Shape};
use ivoro_vision::engine::onnx::{OnnxNetwork, OnnxOptions};
use ivoro_vision::engine::{Backbone, Normalisation};
use ivoro_vision::extract::{Extracted, Extraction, extract};
use ivoro_vision::network::{Weights, fingerprint};

use crate::failure::Failure;
use crate::image_args::{BackboneArguments, ExtractArguments, PrecisionChoice, views};
use crate::{output, progress};

/// A frozen network from a file, with a hash of what it is.
pub(crate) struct Loaded {
    pub(crate) backbone: Box<dyn Backbone>,
    pub(crate) fingerprint: String,
    /// What images are brought to for it; height and width are 0 where any will do.
    pub(crate) fit: Fit,
}

/// Opens the network that the arguments name.
pub(crate) fn load(arguments: &BackboneArguments, size: Option<usize>) -> Result<Loaded, Failure> {
    let Some(path) = &arguments.backbone else {
        let text = "images need a network that looks at them: name one with --backbone";
        return Err(Failure::Usage(text.to_owned()));
    };
    let bytes = fs_err::read(path)?;
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        return load_onnx(arguments, path, bytes, size);
    }
    let weights = Weights::from_bytes(path, &bytes)?;
    Ok(Loaded {
        backbone: super::engine(&arguments.device)?.backbone(&weights)?,
        fingerprint: fingerprint(&bytes),
        fit: weights.fit(),
    })
}

fn load_onnx(
    arguments: &BackboneArguments,
    path: &Path,
    bytes: Vec<u8>,
    size: Option<usize>,
) -> Result<Loaded, Failure> {
    let (mean, deviation) = (arguments.onnx_mean.clone(), arguments.onnx_deviation.clone());
    let normalisation = (!mean.is_empty()).then_some(Normalisation { mean, deviation });
    let options = OnnxOptions {
        outputs: arguments.onnx_outputs.clone(),
        height: size,
        width: size,
        normalisation,
        batch: arguments.batch(),
        ..OnnxOptions::default()
    };
    let fingerprint = fingerprint(&bytes);
    let network = OnnxNetwork::from_bytes(path, bytes, &options)?;
    let any = Shape { height: 0, width: 0, channels: 3 };
    let fit = Fit { shape: network.shape().unwrap_or(any), how: How::Resize };
    Ok(Loaded { backbone: Box::new(network), fingerprint, fit })
}

/// Writes the features of a data set.
pub(crate) fn extract_features(arguments: &ExtractArguments) -> Result<(), Failure> {
    let dataset = arguments.images.open(&arguments.dataset)?;
    eprintln!("{}: {}", dataset.name, dataset.layout);
    let loaded = load(&arguments.backbone, arguments.images.fitting.size)?;
    let fit = arguments.images.fit(&dataset.train, Some(loaded.fit))?;
    let mut settings = Extraction {
        views: views(&arguments.views),
        layers: arguments.layers.clone(),
        half_precision: arguments.precision == PrecisionChoice::F16,
        batch: arguments.backbone.batch(),
        fit,
        broken: arguments.images.broken(),
        metadata: BTreeMap::from([
            ("weights".to_owned(), loaded.fingerprint.clone()),
            ("data_set".to_owned(), dataset.name.clone()),
            ("data_set_identity".to_owned(), dataset.identity()?),
            ("device".to_owned(), arguments.backbone.device.to_string()),
        ]),
    };
    // what is not in the file's hash: a stopped extraction goes on only where all is the same
    let BackboneArguments { onnx_mean, onnx_deviation, .. } = &arguments.backbone;
    if !onnx_mean.is_empty() {
        let text = format!("mean {onnx_mean:?}, deviation {onnx_deviation:?}");
        settings.metadata.insert("normalisation".to_owned(), text);
    }
    progress::catch_interrupts();
    let done = extract_to(&dataset, &*loaded.backbone, &settings, &arguments.out)?;
    for sentence in &done.broken {
        eprintln!("left out: {sentence}");
    }
    Ok(output::print(&format!(
        "{}: features of {} images{}\n",
        arguments.out.display(),
        done.computed + done.resumed,
        if done.resumed > 0 {
            format!(", {} of them from before", done.resumed)
        } else {
            String::new()
        }
    ))?)
}

/// Extracts with a progress bar.
pub(crate) fn extract_to(
    dataset: &Dataset,
    backbone: &dyn Backbone,
    settings: &Extraction,
    out: &Path,
) -> Result<Extracted, Failure> {
    let bar = progress::bar(dataset.train.len() + dataset.test.len());
    bar.set_message("images");
    let mut first = true;
    let result = extract(dataset, backbone, settings, out, |done, images| {
        bar.set_length(images as u64);
        bar.set_position(done as u64);
        if std::mem::take(&mut first) {
            bar.reset_eta();
        }
        !progress::interrupted()
    });
    bar.finish_and_clear();
    result?.ok_or(Failure::Interrupted)
}
