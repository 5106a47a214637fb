//! A grid of runs as one job that can be stopped and goes on where it was.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use anstream::eprintln;
use indicatif::HumanDuration;
use ivoro_vision::dataset::{Dataset, OpenOptions};
use ivoro_vision::network::fingerprint;
use ivoro_web::{Plan, PlannedCell, is_whole};
use serde::{Deserialize, Serialize};

use super::{baselines, demo, hold, run};
use crate::args::{Arguments, Command, Judge, RunArguments};
use crate::args_reproduce::ReproduceArguments;
use crate::failure::Failure;
use crate::grid::{Cell, Grid, Setting};
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
        let other = if holds_images(Path::new(&arguments.target)) { &FOLDER } else { &FEATURES };
        let built_in = known.unwrap_or(other);
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
        let stamps = self.stamps(prepared);
        let both = self.cells.iter().zip(&stamps);
        let finished: Vec<bool> =
            both.map(|(cell, stamp)| is_finished(&self.out, cell, stamp.as_deref())).collect();
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
            match self.one(cell, &prepared[at], stamps[at].clone()) {
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
        let methods = recorded(&folder).unwrap_or_default();
        let arguments = cell.words.clone();
        let files = made(&folder)?;
        let before = mark_of(&folder).map_or(Vec::new(), |mark| mark.files);
        for lost in before.iter().filter(|file| !files.contains(file)) {
            eprintln!(
                "note: {} is gone and is made in training alone; remove run.json there to train again",
                folder.join(lost).display()
            );
        }
        let mark = Mark { version: MARK_VERSION, arguments, methods, inputs, files };
        Ok(output::write_whole(&folder.join(MARK), &(serde_json::to_string(&mark)? + "\n"))?)
    }

    /// For each cell what tells whether what it reads has been changed; nothing for what comes with
    /// the program.
    fn stamps(&self, prepared: &[RunArguments]) -> Vec<Option<String>> {
        let own: Vec<&Path> = self.own_files().collect();
        // most cells read the same, which may be a million files
        let mut known: HashMap<Vec<&Path>, String> = HashMap::new();
        let real = |path: &Path| path.canonicalize().ok();
        let cache = prepared.first().and_then(|cell| cell.pipeline.cache.as_deref());
        let written: Vec<PathBuf> =
            [Some(self.out.as_path()), cache].into_iter().flatten().filter_map(real).collect();
        let mut stamp = |arguments| {
            let read: Vec<&Path> = read_by(arguments).filter(|path| !own.contains(path)).collect();
            let made = || stamp_of(&read, &written);
            let stamp = || known.entry(read.clone()).or_insert_with(made).clone();
            (!read.is_empty()).then(stamp)
        };
        prepared.iter().map(&mut stamp).collect()
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

/// Whether a path leads to images: by its name, and an archive of arrays by what is in it.
fn holds_images(path: &Path) -> bool {
    let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase).unwrap_or_default();
    match extension.to_str() {
        Some("gz" | "tgz") => true,
        Some("npz") if path.is_file() => Dataset::open(path, &OpenOptions::default()).is_ok(),
        _ => !path.is_file(),
    }
}

/// The files besides the data that a run reads.
fn named_files(arguments: &RunArguments) -> impl Iterator<Item = &Path> {
    let pipeline = &arguments.pipeline;
    let lists = arguments.order.iter().map(Path::new).filter(|order| order.exists());
    let judge = match &arguments.judge {
        Some(Judge::File(path)) => Some(path),
        _ => None,
    };
    let labels = &arguments.input.labels;
    let named =
        pipeline.backbone.iter().chain(&pipeline.training.recipe).chain(judge).chain(labels);
    named.map(PathBuf::as_path).chain(lists)
}

/// All that a run reads.
fn read_by(arguments: &RunArguments) -> impl Iterator<Item = &Path> {
    arguments.features.iter().map(PathBuf::as_path).chain(named_files(arguments))
}

/// Names, sizes and times of files, and of all files in folders but hidden ones and those that are
/// written, in one hash.
fn stamp_of(paths: &[&Path], written: &[PathBuf]) -> String {
    // each folder once, wherever links lead
    let mut seen: HashSet<PathBuf> = written.iter().cloned().collect();
    let mut left: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    // names of classes may stand beside an archive
    left.extend(paths.iter().map(|path| path.with_extension("classes.txt")));
    let mut lines = Vec::new();
    while let Some(path) = left.pop() {
        let Ok(about) = std::fs::metadata(&path) else { continue };
        if about.is_dir() {
            if path.canonicalize().is_ok_and(|real| seen.insert(real)) {
                let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
                let shown =
                    inside.filter(|one| !one.file_name().to_string_lossy().starts_with('.'));
                left.extend(shown.map(|one| one.path()));
            }
            continue;
        }
        let since = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        lines.push(format!("{} {} {since:?}", path.display(), about.len()));
    }
    lines.sort();
    fingerprint(lines.join("\n").as_bytes())
}

/// Names of the files that a run has left in a folder.
fn made(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if [".csv", ".scene.json", ".tsne.json"].iter().any(|end| name.ends_with(end)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
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
    let mut words = Vec::new();
    if let Some(cache) = &arguments.cache {
        words.extend(["--cache".to_owned(), cache.display().to_string()]);
    }
    if let Some(device) = &arguments.device {
        words.extend(["--device".to_owned(), device.to_string()]);
    }
    words
}

fn name_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_stem().map_or("data".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The file beside a record that says which command made it.
const MARK: &str = "cell.json";
/// Marks of versions up to this one hold the same.
const MARK_VERSION: u32 = 4;

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    version: u32,
    arguments: Vec<String>,
    /// What the record held at the end; variants that the features do not allow are not in it.
    methods: Vec<String>,
    /// A hash of names, sizes and times of what was read.
    #[serde(default)]
    inputs: Option<String>,
    /// Tables and pictures beside the record.
    #[serde(default)]
    files: Vec<String>,
}

fn mark_of(folder: &Path) -> Option<Mark> {
    serde_json::from_str(&std::fs::read_to_string(folder.join(MARK)).ok()?).ok()
}

/// Whether the same command came to its end here, has read what is there now, and has all that it
/// left: then nothing is to be done. Where something has changed the run itself sees what to do.
fn is_finished(out: &Path, cell: &Cell, inputs: Option<&str>) -> bool {
    let folder = out.join(&cell.folder);
    let Some(mark) = mark_of(&folder).filter(|mark| mark.version <= MARK_VERSION) else {
        return false;
    };
    let held = recorded(&folder).unwrap_or_default();
    mark.arguments == cell.words
        && !mark.methods.is_empty()
        && mark.inputs.as_deref().is_none_or(|before| Some(before) == inputs)
        && mark.files.iter().all(|file| {
            let path = folder.join(file);
            path.exists() || folder.join(format!("{file}.gz")).exists()
        })
        && mark.methods.iter().all(|method| held.contains(method))
}

/// The methods in the record of a folder that went through all phases and are as they are now.
fn recorded(folder: &Path) -> Option<Vec<String>> {
    let (name, bytes) = ["run.json", "run.json.gz"]
        .into_iter()
        .find_map(|name| Some((name, std::fs::read(folder.join(name)).ok()?)))?;
    let mut inputs = baselines::inputs();
    inputs.add(name, &bytes);
    let record = &inputs.records.first()?.content;
    let whole = record.methods.iter().filter(|method| is_whole(method, record.phases.len()));
    let present = whole.filter(|method| !inputs.is_outdated(method));
    Some(present.map(|method| method.name.clone()).collect())
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_sees_what_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("class/runs")).unwrap();
        std::fs::write(path("class/1.png"), "a picture").unwrap();
        // every one of them doubles the ways that lead round
        for name in ["a", "b", "c", "d"] {
            std::os::unix::fs::symlink(".", path(name)).unwrap();
        }
        let written = [path("class/runs").canonicalize().unwrap()];
        let stamp = || stamp_of(&[folder.path()], &written);
        let first = stamp();
        std::fs::write(path("class/runs/run.json"), "{}").unwrap();
        std::fs::write(path("class/.hidden"), "").unwrap();
        assert_eq!(stamp(), first);
        std::fs::write(path("class/1.png"), "another picture").unwrap();
        assert_ne!(stamp(), first);
    }
}
