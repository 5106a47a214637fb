//! `ivoro networks`: which networks are at hand, and how to have a better one.

use std::fmt::Write as _;
use std::path::Path;

use anstream::eprintln;
use ivoro_vision::convert::convert;
use ivoro_vision::networks::{Card, Networks};
use ivoro_vision::{NetworkOptions, shipped};
use serde_json::json;

use crate::args::networks::{
    AddArguments, ConvertArguments, NetworkOnnxArguments, NetworksArguments, NetworksCommand,
};
use crate::failure::Failure;
use crate::output;
use crate::table::Table;

/// How to have a better network, below the list.
const BETTER: &str = "
A larger network from a hub tells more apart, for more time per photo: DINOv2, CLIP or a ViT. Export it as ONNX
or download it so, and add it with the normalisation that its page names:
  ivoro networks add dinov2.onnx --name dinov2 --size 224 --mean 0.485,0.456,0.406 --deviation 0.229,0.224,0.225
  ivoro learn birds photos/ --backbone dinov2
";

/// Lists, adds or converts.
pub(crate) fn networks(arguments: &NetworksArguments) -> Result<(), Failure> {
    match &arguments.action {
        None => list(arguments.json),
        Some(NetworksCommand::Add(add)) => add_network(add),
        Some(NetworksCommand::Convert(convert)) => convert_network(convert),
    }
}

fn list(as_json: bool) -> Result<(), Failure> {
    let networks = Networks::of_user();
    let (cards, broken) = networks.list()?;
    for error in broken {
        eprintln!("note: {error}");
    }
    if as_json {
        let folder = networks.folder().display().to_string();
        let text = json!({"networks": cards, "shipped": shipped::NAME, "folder": folder});
        return Ok(output::print(&format!("{text:#}\n"))?);
    }
    let header = ["name", "input", "layers", "engine", "MB", "licence", "hash"];
    let mut table = Table::new(&header, 2);
    for card in &cards {
        table.row(row(card));
    }
    let folder = networks.folder().display();
    let text = format!("{table}\nadded ones lie in {folder}\n{BETTER}");
    Ok(output::print(&text)?)
}

fn row(card: &Card) -> Vec<String> {
    let Card { network, layers, bytes, licence, .. } = card;
    let layers: Vec<String> =
        layers.iter().map(|(name, size)| format!("{name} ({size})")).collect();
    let shipped = if network.hash == shipped::HASH { " (default)" } else { "" };
    vec![
        format!("{}{shipped}", network.name),
        format!("{}×{}, {}", network.width, network.height, network.fit),
        layers.join(", "),
        network.engine.clone(),
        format!("{:.1}", *bytes as f64 / 1e6),
        licence.clone().unwrap_or_else(|| "–".to_owned()),
        network.hash.get(..12).unwrap_or_default().to_owned(),
    ]
}

fn options(onnx: &NetworkOnnxArguments) -> NetworkOptions {
    let (onnx, fitting) = onnx.split();
    NetworkOptions {
        fitting: fitting.fitting(),
        normalisation: onnx.normalisation(),
        onnx_outputs: onnx.outputs,
        ..NetworkOptions::default()
    }
}

/// Says that a normalisation was assumed.
fn note_normalisation(onnx: &NetworkOnnxArguments, file: &Path, card: &str) {
    if onnx.mean.is_empty() && file.extension().is_some_and(|it| it.eq_ignore_ascii_case("onnx")) {
        eprintln!("note: no normalisation was given, so ImageNet's is taken: {card}");
    }
}

fn add_network(arguments: &AddArguments) -> Result<(), Failure> {
    let AddArguments { file, name, licence, onnx } = arguments;
    let networks = Networks::of_user();
    let card = networks.add(file, name, &options(onnx), licence.clone())?;
    note_normalisation(onnx, file, &card.network.to_string());
    let mut text = format!("added {}\n", card.network);
    for (layer, size) in &card.layers {
        let _ = writeln!(text, "  {layer}: {size} values");
    }
    let _ = writeln!(text, "  computed by {}", card.network.engine);
    let _ = writeln!(text, "  hash {}, in {}", card.network.hash, networks.folder().display());
    Ok(output::print(&text)?)
}

fn convert_network(arguments: &ConvertArguments) -> Result<(), Failure> {
    let ConvertArguments { file, out, name, layers, onnx } = arguments;
    let made = convert(file, name, layers, &options(onnx))?;
    note_normalisation(onnx, file, &made.description);
    ivoro_io::atomic::write_atomically(out, |target| {
        Ok(std::io::Write::write_all(target, &made.bytes)?)
    })?;
    let text = format!(
        "{}: {}, {} bytes, hash {}\n",
        out.display(),
        made.description,
        made.bytes.len(),
        made.hash
    );
    Ok(output::print(&text)?)
}
