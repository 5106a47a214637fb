//! The verb `extract`: features of a data set of images, in a file.

use std::collections::BTreeMap;
use std::path::Path;

use anstream::eprintln;
use ivoro_vision::dataset::Dataset;
use ivoro_vision::engine::Backbone;
use ivoro_vision::extract::{Extracted, Extraction, NETWORK, extract};

use crate::args::images::{ExtractArguments, PrecisionChoice, views};
use crate::failure::Failure;
use crate::{output, progress};

/// Writes the features of a data set.
pub(crate) fn extract_features(arguments: &ExtractArguments) -> Result<(), Failure> {
    let dataset = arguments.images.open(&arguments.dataset)?;
    eprintln!("{}: {}", dataset.name, dataset.layout);
    let network = arguments.backbone.open(&arguments.images.fitting)?;
    let fit = arguments.images.fit(&dataset.train, Some(network.trained_fit()))?;
    let mut settings = Extraction {
        views: views(&arguments.views),
        layers: arguments.layers.clone(),
        half_precision: arguments.precision == PrecisionChoice::F16,
        batch: arguments.backbone.batch(),
        fit,
        broken: arguments.images.broken(),
        metadata: BTreeMap::from([
            ("weights".to_owned(), network.fingerprint().to_owned()),
            ("data_set".to_owned(), dataset.name.clone()),
            ("data_set_identity".to_owned(), dataset.identity()?),
            ("device".to_owned(), arguments.backbone.device.to_string()),
        ]),
    };
    // a stopped extraction goes on only where all is the same
    settings.metadata.insert(NETWORK.to_owned(), network.describe(fit).to_json());
    progress::catch_interrupts();
    let done = extract_to(&dataset, network.backbone(), &settings, &arguments.out)?;
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
