use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ivoro::audit::{NOT_KEPT, audit as list_kept};
use ivoro::head::Forgetting;
use ivoro::{Model, Samples, Variant, settings};
use ivoro_io::features::{self, FeatureFile};
use ivoro_io::{FileLock, load, save};
use serde_json::json;

use super::images;
use crate::args::images::LookArguments;
use crate::args::{
    ForgetArguments, InputArguments, InspectArguments, LearnArguments, MergeArguments,
    UpdateArguments,
};
use crate::failure::Failure;
use crate::table::{Table, visible};
use crate::{output, progress};

/// Reads a features file under a spinner.
pub(crate) fn read(path: &Path, input: &InputArguments) -> Result<FeatureFile, Failure> {
    let spinner = progress::spinner(&format!("reading {}", path.display()));
    let file = features::read(path, &input.options())?;
    spinner.finish_and_clear();
    Ok(file)
}

/// The labelled samples for a model, of a features file or with a network of images; of all classes
/// or of those named.
fn samples(
    model: &mut Model,
    path: &Path,
    input: &InputArguments,
    look: &LookArguments,
    classes: Option<&Vec<String>>,
) -> Result<Samples, Failure> {
    if look.network.backbone.is_some() {
        let network = look.network.open(&look.fitting)?;
        model.use_network(network.fingerprint())?;
        return images::samples(&network, model.head().variant(), &look.fitting, path, classes);
    }
    let features = read(path, input)?.learning()?;
    let Some(wanted) = classes else { return Ok(features) };
    let names = features.classes().clone();
    for name in wanted {
        if !names.contains(name) {
            let class = format!("{name} of {}", path.display());
            return Err(ivoro::Error::EmptyClass { class, split: "training" }.into());
        }
    }
    Ok(features.of_classes(|label| wanted.contains(&names[label as usize])))
}

/// What a new model is unless another variant is asked for: iVoro-N.
const NEW_MODEL: Variant = Variant { normalise: true, ..Variant::PLAIN };

/// Loads a model that must be of this variant, if one is named.
fn load_for(path: &Path, variant: Option<Variant>) -> Result<Model, Failure> {
    let model = load(path)?;
    let own = model.head().variant();
    match variant {
        Some(other) if other != own => Err(Failure::Usage(format!(
            "{} is a model of {own} and stays one; leave out --variant {other} or begin a new file",
            path.display()
        ))),
        _ => Ok(model),
    }
}

/// Teaches a model new classes.
pub(crate) fn learn(arguments: &LearnArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = if arguments.model.exists() {
        load_for(&arguments.model, arguments.variant)?
    } else {
        Model::new(arguments.variant.unwrap_or(NEW_MODEL), arguments.settings.options())
    };
    let before = model.head().classes().len();
    let LearnArguments { features, input, look, classes, .. } = arguments;
    let phase = samples(&mut model, features, input, look, classes.as_ref())?;
    let spinner =
        progress::spinner(if before == 0 { "choosing settings, learning" } else { "learning" });
    model.learn(&phase)?;
    save(&model, &arguments.model)?;
    spinner.finish_and_clear();
    let known = model.head().classes();
    let mut text = format!(
        "{}: learned {} from {}; now {} in {}\n",
        arguments.model.display(),
        counted(known.len() - before, "class", "classes"),
        counted(phase.len(), "sample", "samples"),
        counted(known.len(), "class", "classes"),
        counted(model.head().phases().len(), "phase", "phases")
    );
    if before == 0 {
        for choice in model.choices() {
            let _ = writeln!(
                text,
                "  {} = {}  (chosen on {})",
                choice.setting, choice.value, choice.variant
            );
        }
    }
    Ok(output::print(&text)?)
}

/// Adds samples to known classes.
pub(crate) fn update(arguments: &UpdateArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load(&arguments.model)?;
    let UpdateArguments { features, input, look, classes, .. } = arguments;
    let more = samples(&mut model, features, input, look, classes.as_ref())?;
    let report = model.update(&more)?;
    save(&model, &arguments.model)?;
    let variant = model.head().variant();
    if variant.divide || variant.residual {
        anstream::eprintln!(
            "note: probes of {variant} stay those of their phase; means and spread count all samples"
        );
    }
    let lines =
        report.iter().map(|(class, count)| format!("{}: {count} samples added\n", visible(class)));
    Ok(output::print(&lines.collect::<String>())?)
}

/// Forgets classes.
pub(crate) fn forget(arguments: &ForgetArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load(&arguments.model)?;
    let how = if arguments.drop_probes { Forgetting::DropProbes } else { Forgetting::Exact };
    let classes: BTreeSet<&String> = arguments.classes.iter().collect();
    for class in &classes {
        model.forget(class, how)?;
    }
    if model.head().classes().is_empty() {
        let text = "these are all classes of the model; delete the file instead";
        return Err(Failure::Usage(text.to_owned()));
    }
    save(&model, &arguments.model)?;
    let names: Vec<String> = classes.into_iter().map(|name| visible(name)).collect();
    let remain = counted(model.head().classes().len(), "class remains", "classes remain");
    Ok(output::print(&format!("forgot {}; {remain}\n", names.join(", ")))?)
}

/// Merges models.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.out)?;
    let ancestor = arguments.ancestor.as_deref().map(load).transpose()?;
    let mut text = String::new();
    let mut models = arguments.models.iter();
    let first = models.next().ok_or_else(|| Failure::Usage("nothing to merge".to_owned()))?;
    let mut merged = load(first)?;
    for path in models {
        let report = merged.merge(&load(path)?, ancestor.as_ref())?;
        let _ = writeln!(
            text,
            "{}: {} classes added, {} combined",
            path.display(),
            report.added.len(),
            report.combined.len()
        );
        if !report.forgotten.is_empty() {
            let names = visible(&report.forgotten.join(", "));
            let _ = writeln!(text, "forgotten since the ancestor: {names}");
        }
    }
    save(&merged, &arguments.out)?;
    let known = merged.head().classes().len();
    let _ = writeln!(text, "{}: {known} classes", arguments.out.display());
    Ok(output::print(&text)?)
}

/// Says what a model is.
pub(crate) fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let model = load(&arguments.model)?;
    let head = model.head();
    if arguments.json {
        let classes =
            head.classes().iter().map(|c| json!({"name": c.name, "samples": c.statistics.count}));
        let text = json!({
            "variant": head.variant(),
            "settings": head.settings(),
            "choices": model.choices(),
            "calibration": model.calibration(),
            "temperature": model.calibration().and_then(|_| model.temperature().ok()),
            "network": model.network(),
            "layers": head.layers(),
            "phases": head.phases(),
            "classes": classes.collect::<Vec<_>>(),
            "bytes": head.bytes(),
            "search": if head.may_search_index() { "index" } else { "exact" },
        });
        return Ok(output::print(&format!("{text:#}\n"))?);
    }
    let mut text = format!("{}  {}\n", arguments.model.display(), head.variant());
    let layers: Vec<String> =
        head.layers().iter().map(|(name, dim)| format!("{} ({dim})", visible(name))).collect();
    let phases: Vec<String> = head.phases().iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "layers    {}", layers.join(", "));
    let _ = writeln!(text, "phases    {} classes", phases.join(" + "));
    if let Some(network) = model.network() {
        let _ = writeln!(text, "network   {network}");
    }
    if head.may_search_index() {
        let _ = writeln!(text, "search    by an index, approximately, unless asked with --exact");
    }
    for info in settings::of_variant(head.variant()) {
        let name = info.name;
        let value = json!(info.read(head.settings())).to_string().replace('"', "");
        let chosen = model.choices().iter().find(|it| it.setting.split(',').any(|it| it == name));
        let how = chosen.map_or(String::new(), |it| format!("  (chosen on {})", it.variant));
        let _ = writeln!(text, "{name:<9} {value}{how}");
    }
    if let Some(fitted) = model.calibration() {
        let _ = writeln!(
            text,
            "temperature {:.4} from {} held-out samples",
            model.temperature()?,
            fitted.samples
        );
    }
    let mut table = Table::new(&["class", "samples"], 1);
    head.classes()
        .iter()
        .for_each(|c| table.row(vec![c.name.clone(), c.statistics.count.to_string()]));
    let _ = write!(text, "\n{table}");
    Ok(output::print(&text)?)
}

/// Lists every number kept.
pub(crate) fn audit(arguments: &InspectArguments) -> Result<(), Failure> {
    let model = load(&arguments.model)?;
    let lines = list_kept(model.head());
    let total: usize = lines.iter().map(|line| line.bytes).sum();
    if arguments.json {
        let text = json!({"kept": lines, "bytes": total, "not_kept": NOT_KEPT});
        return Ok(output::print(&format!("{text:#}\n"))?);
    }
    let mut table = Table::new(&["owner", "what", "numbers", "bytes"], 2);
    for line in &lines {
        let cells = [
            line.owner.clone(),
            line.what.to_owned(),
            line.numbers.to_string(),
            line.bytes.to_string(),
        ];
        table.row(cells.to_vec());
    }
    let classes = model.head().classes().len().max(1);
    let mut text = format!(
        "{table}\n{total} bytes in all, {} per class; besides, whatever was learned: class names, \
         settings and how they were chosen, a temperature and {} thresholds, a range of values for \
         each block\n",
        total / classes,
        model.calibration().map_or(0, |fitted| fitted.thresholds.len())
    );
    text.push_str("not kept:\n");
    NOT_KEPT.iter().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    Ok(output::print(&text)?)
}

/// "1 class", "2 classes".
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
