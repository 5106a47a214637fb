//! A grid of runs as one job that can be stopped and resumes where it was.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anstream::eprintln;
use indicatif::HumanDuration;
use ivoro_eval::plan::{Plan, PlannedCell};
use ivoro_vision::dataset::is_features_file;

use super::completion::{self, CellManifest, fingerprint_of, named_files, read_by};
use super::{demo, hold, run};
use crate::args::reproduce::ReproduceArguments;
use crate::args::{Arguments, Command, RunArguments};
use crate::failure::Failure;
use crate::grid::{Cell, Grid, Setting, pair};
use crate::{output, progress};

/// Runs all cells of a grid that are not finished.
pub(crate) fn reproduce(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let job = Job::plan(arguments)?;
    let prepared = job.prepare(arguments.list)?;
    if arguments.list {
        let lines: String = job.cells.iter().map(|cell| cell.line() + "\n").collect();
        for path in job.own_files().filter(|path| !path.exists()) {
            eprintln!("note: {} is not there yet; ivoro reproduce writes it first", path.display());
        }
        return Ok(output::print(&lines)?);
    }
    output::make_folder(&job.out)?;
    let _lock = hold(&job.out.join("reproduce"), &job.out)?;
    job.write_embedded()?;
    job.write_plan()?;
    progress::catch_interrupts();
    let failed = job.work(&prepared)?;
    job.end(&failed)
}

/// A grid that comes with the program.
struct BuiltIn {
    name: &'static str,
    grid: &'static str,
    /// Name and text of the recipe that the grid names.
    recipe: Option<(&'static str, &'static str)>,
}

/// Those that have a name.
static NAMED: [BuiltIn; 3] = [
    BuiltIn {
        name: "mnist",
        grid: include_str!("../../data/grids/mnist.toml"),
        recipe: Some(("mnist-recipe.toml", include_str!("../../data/mnist-recipe.toml"))),
    },
    BuiltIn {
        name: "cifar100",
        grid: include_str!("../../data/grids/cifar100.toml"),
        recipe: None,
    },
    BuiltIn {
        name: "tinyimagenet",
        grid: include_str!("../../data/grids/tinyimagenet.toml"),
        recipe: Some((
            "tinyimagenet-recipe.toml",
            include_str!("../../data/tinyimagenet-recipe.toml"),
        )),
    },
];

/// For any other data set of images.
static FOLDER: BuiltIn = BuiltIn {
    name: "for a folder",
    grid: include_str!("../../data/grids/folder.toml"),
    recipe: None,
};

/// For a file of features, from which no network can be trained.
static FEATURES: BuiltIn = BuiltIn {
    name: "for features",
    grid: include_str!("../../data/grids/features.toml"),
    recipe: None,
};

/// The cells of all jobs in a folder.
const PLAN: &str = "grid.json";

/// The part of MNIST that comes with the program is another data set than the whole.
const EMBEDDED_SET: &str = "MNIST (part)";

struct Job {
    cells: Vec<Cell>,
    out: PathBuf,
    /// Where the images that come with the program are to be written, if they are used.
    embedded: Option<PathBuf>,
    recipe: Option<(PathBuf, &'static str)>,
}

/// A cell that could not be finished, with its sentence.
struct Failed<'a> {
    cell: &'a Cell,
    sentence: String,
}

impl Job {
    fn plan(arguments: &ReproduceArguments) -> Result<Self, Failure> {
        let known = NAMED.iter().find(|grid| is_called(grid.name, &arguments.target));
        let other = || if holds_images(Path::new(&arguments.target)) { &FOLDER } else { &FEATURES };
        let built_in = known.unwrap_or_else(other);
        let (file, text) = match &arguments.grid {
            Some(path) => (path.display().to_string(), fs_err::read_to_string(path)?),
            None => (format!("grid {}", built_in.name), built_in.grid.to_owned()),
        };
        let grid = Grid::parse(&file, &text)?;
        let own = arguments.out.join("data");
        let (data, embedded) = data(arguments, known, &grid, &own)?;
        let data_set = match (&embedded, &grid.data_set) {
            (Some(_), _) => EMBEDDED_SET.to_owned(),
            (None, Some(name)) => name.clone(),
            (None, None) => name_of(&data),
        };
        check_backbone(arguments, &grid)?;
        let words = arguments.fitting.words();
        let mut for_images = words.iter().cloned().chain(means(arguments));
        if let Some(flag) = for_images.next().filter(|_| !holds_images(&data)) {
            let text = format!("{} holds features: {flag} is for images", data.display());
            return Err(Failure::Usage(text));
        }
        let recipe = built_in.recipe.filter(|_| arguments.grid.is_none());
        let recipe = recipe.map(|(name, text)| (own.join(name), text));
        let cells = grid.cells(&Setting {
            file: &file,
            quick: arguments.quick,
            data: &data,
            data_set: &data_set,
            out: &arguments.out,
            backbone: arguments.backbone.as_deref(),
            recipe: &|named: &Path| {
                recipe.as_ref().map_or(named.to_owned(), |(path, _)| path.clone())
            },
            words: words.clone(),
            means: means(arguments),
        })?;
        Ok(Self { cells, out: arguments.out.clone(), embedded, recipe })
    }

    /// Every cell as `ivoro run` understands it: a wrong word, or a file that is not there, is found
    /// before hours of work.
    fn prepare(&self, listed: bool) -> Result<Vec<RunArguments>, Failure> {
        let own: Vec<&Path> = self.own_files().collect();
        let prepared: Vec<RunArguments> =
            self.cells.iter().map(understood).collect::<Result<_, _>>()?;
        for arguments in prepared.iter().filter(|_| !listed) {
            if let Some(path) =
                named_files(arguments).find(|path| !path.exists() && !own.contains(path))
            {
                return Err(Failure::Usage(format!("{}: no such file", path.display())));
            }
            let training = &arguments.pipeline.training;
            if training.recipe.as_deref().is_some_and(|path| !own.contains(&path)) {
                training.recipe()?;
            }
        }
        Ok(prepared)
    }

    /// What the commands need and the program has.
    fn own_files(&self) -> impl Iterator<Item = &Path> {
        let recipe = self.recipe.as_ref().map(|(path, _)| path);
        self.embedded.iter().chain(recipe).map(PathBuf::as_path)
    }

    fn write_embedded(&self) -> Result<(), Failure> {
        if let Some(folder) = &self.embedded {
            demo::write_images(folder)?;
        }
        if let Some((path, text)) = &self.recipe {
            fs_err::create_dir_all(self.out.join("data"))?;
            output::write_whole(path, text)?;
        }
        Ok(())
    }

    /// Leaves a list of all cells, with those of earlier jobs here, so that a report can say which of
    /// them are missing.
    fn write_plan(&self) -> Result<(), Failure> {
        let path = self.out.join(PLAN);
        let earlier = std::fs::read(&path).ok();
        let earlier: Plan = earlier
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .filter(|plan: &Plan| plan.version == Plan::VERSION)
            .unwrap_or_default();
        let planned = |cell: &Cell| PlannedCell {
            folder: cell.folder.display().to_string().replace('\\', "/"),
            command: cell.line(),
        };
        let mut cells: Vec<PlannedCell> = self.cells.iter().map(planned).collect();
        let is_new = |one: &PlannedCell| cells.iter().all(|cell| cell.folder != one.folder);
        let others: Vec<PlannedCell> = earlier.cells.into_iter().filter(is_new).collect();
        cells.extend(others);
        let plan = Plan { version: Plan::VERSION, cells };
        Ok(output::write_whole(&path, &(serde_json::to_string_pretty(&plan)? + "\n"))?)
    }

    /// Runs what is not finished. A cell that fails does not keep the others from running.
    fn work(&self, prepared: &[RunArguments]) -> Result<Vec<Failed<'_>>, Failure> {
        let started = Instant::now();
        let fingerprints = self.fingerprints(prepared);
        let both = self.cells.iter().zip(&fingerprints);
        let finished: Vec<bool> = both
            .map(|(cell, inputs)| completion::is_finished(&self.out, cell, inputs.as_deref()))
            .collect();
        let mut left = finished.iter().filter(|done| !**done).count();
        let (all, there) = (self.cells.len(), self.cells.len() - left);
        if there > 0 {
            eprintln!("{there} of {all} cells are finished and not computed again");
        }
        let (mut computed, mut failed) = (0, Vec::new());
        for (at, cell) in self.cells.iter().enumerate().filter(|(at, _)| !finished[*at]) {
            if progress::interrupted() {
                return Err(Failure::Interrupted);
            }
            announce(at + 1, all, cell, started.elapsed(), remaining(started, computed, left));
            match self.one(cell, &prepared[at], fingerprints[at].clone()) {
                Ok(()) => {}
                // nobody reads any more, as in `ivoro … | head`
                Err(Failure::Io(error)) if error.kind() == ErrorKind::BrokenPipe => {
                    return Err(error.into());
                }
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(failure) => {
                    let sentence = failure.sentence();
                    eprintln!("failed: {sentence}");
                    if let Some(hint) = failure.hint() {
                        eprintln!("hint: {hint}");
                    }
                    failed.push(Failed { cell, sentence });
                }
            }
            computed += 1;
            left -= 1;
        }
        Ok(failed)
    }

    fn one(
        &self,
        cell: &Cell,
        arguments: &RunArguments,
        inputs: Option<String>,
    ) -> Result<(), Failure> {
        run::run(arguments)?;
        let folder = self.out.join(&cell.folder);
        CellManifest::new(cell, inputs, &folder)?.write(&folder)
    }

    /// For each cell what tells whether what it reads has been changed; nothing for what comes with
    /// the program.
    fn fingerprints(&self, prepared: &[RunArguments]) -> Vec<Option<String>> {
        let own: Vec<&Path> = self.own_files().collect();
        // most cells read the same, which may be a million files
        let mut known: HashMap<Vec<&Path>, String> = HashMap::new();
        let real = |path: &Path| path.canonicalize().ok();
        let cache = prepared.first().and_then(|cell| cell.pipeline.cache.as_deref());
        let written: Vec<PathBuf> =
            [Some(self.out.as_path()), cache].into_iter().flatten().filter_map(real).collect();
        let mut of_inputs = |arguments| {
            let read: Vec<&Path> = read_by(arguments).filter(|path| !own.contains(path)).collect();
            let made = || fingerprint_of(&read, &written);
            let fingerprint = || known.entry(read.clone()).or_insert_with(made).clone();
            (!read.is_empty()).then(fingerprint)
        };
        prepared.iter().map(&mut of_inputs).collect()
    }

    fn end(&self, failed: &[Failed<'_>]) -> Result<(), Failure> {
        let (out, all) = (self.out.display(), self.cells.len());
        let done = all - failed.len();
        eprintln!("\n{done} of {all} cells are finished; their records are in {out}");
        if done > 0 {
            eprintln!("the report of them: ivoro report {out} --out report");
        }
        if failed.is_empty() {
            return Ok(());
        }
        for Failed { cell, sentence } in failed {
            eprintln!("not finished: {}: {sentence}", cell.folder.display());
        }
        Err(Failure::Unfinished { failed: failed.len(), all })
    }
}

/// The arguments of a cell's command.
fn understood(cell: &Cell) -> Result<RunArguments, Failure> {
    let line = std::iter::once("ivoro".to_owned()).chain(cell.command());
    let wrong = |text: &str| Failure::Usage(format!("{}: {text}", cell.folder.display()));
    match Arguments::read(line) {
        Ok(Arguments { command: Command::Run(arguments), .. }) => Ok(arguments.with_defaults()),
        Ok(_) => Err(wrong("not a command of ivoro run")),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(wrong(first.trim_start_matches("error: ")))
        }
    }
}

/// The data set, and where its files are to be written if it comes with the program.
fn data(
    arguments: &ReproduceArguments,
    known: Option<&BuiltIn>,
    grid: &Grid,
    own: &Path,
) -> Result<(PathBuf, Option<PathBuf>), Failure> {
    let path = match (known, &arguments.data) {
        (None, Some(_)) => {
            let text =
                format!("{}: the data set is named twice; leave --data out", arguments.target);
            return Err(Failure::Usage(text));
        }
        (None, None) => PathBuf::from(&arguments.target),
        (Some(_), Some(path)) => path.clone(),
        (Some(known), None) => match grid.data.iter().find(|path| path.exists()) {
            Some(path) => path.clone(),
            None if known.name == "mnist" => {
                let folder = own.join("mnist");
                return Ok((folder.clone(), Some(folder)));
            }
            None if arguments.list => grid.data.first().cloned().unwrap_or("DATA".into()),
            None => {
                let names: Vec<String> =
                    grid.data.iter().map(|path| path.display().to_string()).collect();
                let text = format!(
                    "{}: the data set is not here under a usual name ({}); say --data PATH",
                    arguments.target,
                    names.join(", ")
                );
                return Err(Failure::Usage(text));
            }
        },
    };
    // the commands of a known grid can be shown without the data
    if path.exists() || (arguments.list && known.is_some()) {
        return Ok((path, None));
    }
    if known.is_some() {
        let text = format!("--data {}: no such file or folder", path.display());
        return Err(Failure::Usage(text));
    }
    let targets: Vec<&str> = NAMED.iter().map(|grid| grid.name).collect();
    let text =
        format!("{}: no such file or folder, nor one of {}", path.display(), targets.join(", "));
    Err(Failure::Usage(text))
}

/// Whether a name stands for a grid: large letters and hyphens are no difference.
fn is_called(grid: &str, name: &str) -> bool {
    grid == name || (!Path::new(name).exists() && grid == name.to_lowercase().replace('-', ""))
}

/// Whether a path leads to images, or would if there were anything.
fn holds_images(path: &Path) -> bool {
    !path.exists() || !is_features_file(path)
}

/// A network that is named must be there, and must be used.
fn check_backbone(arguments: &ReproduceArguments, grid: &Grid) -> Result<(), Failure> {
    let named = grid.backbones(arguments.quick);
    match &arguments.backbone {
        Some(path) if named.is_empty() => {
            let text = format!(
                "--backbone {}: every run of this grid trains its own network",
                path.display()
            );
            Err(Failure::Usage(text))
        }
        Some(_) => Ok(()),
        None => match named.iter().find(|path| !path.exists() && !arguments.list) {
            Some(path) => {
                let text = format!("{}: not here; say --backbone FILE", path.display());
                Err(Failure::Usage(text))
            }
            None => Ok(()),
        },
    }
}

/// Words for every cell that do not change what is computed.
fn means(arguments: &ReproduceArguments) -> Vec<String> {
    let cache = arguments.cache.as_deref().map(Path::display);
    [pair("--cache", cache.as_ref()), pair("--device", arguments.device.as_ref())].concat()
}

fn name_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_stem().map_or("data".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// How long the cells that are left will take, if they are like those computed.
fn remaining(started: Instant, computed: usize, left: usize) -> Option<Duration> {
    let each = started.elapsed().checked_div(u32::try_from(computed).ok()?)?;
    each.checked_mul(u32::try_from(left).ok()?)
}

fn announce(at: usize, all: usize, cell: &Cell, gone: Duration, left: Option<Duration>) {
    let gone = HumanDuration(gone);
    let left = left.map_or(String::new(), |left| format!(", about {} left", HumanDuration(left)));
    eprintln!("\ncell {at} of {all}: {} ({gone} gone{left})", cell.folder.display());
    eprintln!("  {}", cell.line());
}
