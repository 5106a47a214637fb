//! `ivoro report`: records become one page with its figures.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ivoro_io::atomic::write_atomically;
use ivoro_report::{Figure, FileKind, Inputs, Report};
use rayon::prelude::*;

use super::baselines;
use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::table::visible;
use crate::{output, progress};

/// Pixels to a unit of a figure: sharp on screens and on paper.
const PIXELS: f64 = 2.0;
/// Notes that are printed; the report has all.
const MOST_NOTES: usize = 10;

/// Writes the report of all records below a folder.
pub(crate) fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let spinner = progress::spinner("reading records");
    let mut inputs = Inputs { revisions: baselines::revisions(), ..Inputs::default() };
    let runs = &arguments.runs;
    let folder = if runs.is_file() { runs.parent().unwrap_or(runs) } else { runs };
    for path in records(runs, &mut inputs)? {
        let name = path.strip_prefix(folder).unwrap_or(&path);
        match std::fs::read(&path) {
            Ok(bytes) => inputs.add(&name.to_string_lossy(), &bytes),
            Err(error) => inputs.unread(&name.to_string_lossy(), error),
        }
    }
    spinner.set_message("drawing");
    let report = ivoro_report::build(&inputs);
    write(&arguments.out, &report)?;
    spinner.finish_and_clear();
    for problem in &inputs.problems {
        let sentence = format!("{}: {}; left out", problem.file, problem.error);
        anstream::eprintln!("note: {}", visible(&sentence));
    }
    for note in report.notes.iter().take(MOST_NOTES) {
        anstream::eprintln!("note: {}", visible(note));
    }
    if report.notes.len() > MOST_NOTES {
        let more = report.notes.len() - MOST_NOTES;
        anstream::eprintln!("note: {more} more under \"What is missing\" in the report");
    }
    let page = arguments.out.join("index.html");
    Ok(output::print(&format!(
        "{}: {} records, {} figures\n",
        page.display(),
        inputs.records.len(),
        report.figures.len()
    ))?)
}

fn write(out: &Path, report: &Report) -> Result<(), Failure> {
    let folder = out.join("figures");
    output::make_folder(&folder)?;
    let before = std::fs::read_to_string(out.join("index.html")).unwrap_or_default();
    let before = if before.contains("<title>iVoro: report</title>") { &before } else { "" };
    let one = |figure: &Figure| -> Result<(), Failure> {
        let path = |extension: &str| folder.join(format!("{}.{extension}", figure.name()));
        output::write_whole(&path("svg"), &figure.svg())?;
        let picture = figure.png(PIXELS).map_err(|error| Failure::Usage(error.to_string()))?;
        write_atomically(&path("png"), |file| Ok(std::io::Write::write_all(file, &picture)?))?;
        Ok(())
    };
    report.figures.par_iter().try_for_each(one)?;
    output::write_whole(&out.join("tables.csv"), &report.csv)?;
    // last, so that a page never points to figures that are not there
    output::write_whole(&out.join("index.html"), &report.html)?;
    // figures that the page before pointed to and this one does not
    let kept: HashSet<&str> = report.figures.iter().map(Figure::name).collect();
    let named = before.split("href=\"figures/").skip(1).filter_map(|rest| rest.split('"').next());
    for file in named {
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
        if stem.is_some_and(|stem| !kept.contains(stem)) && !file.contains(['/', '\\']) {
            // one that is gone already is no harm
            let _ = std::fs::remove_file(folder.join(file));
        }
    }
    Ok(())
}

/// Every file below a folder whose name is that of a record or a picture, in order; a file named
/// directly is taken whatever its folder.
fn records(runs: &Path, inputs: &mut Inputs) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    if runs.is_file() {
        let kind = FileKind::of(&runs.to_string_lossy());
        if !matches!(kind, Some(FileKind::Record | FileKind::Scene | FileKind::Embedding)) {
            let text = "expected a file called run.json, run-….json, ….scene.json or ….tsne.json";
            return Err(Failure::Usage(format!("{}: {text}", runs.display())));
        }
        found.push(runs.to_owned());
        return Ok(found);
    }
    // a folder that is named must be there; one below it that can't be read is a note
    fs_err::read_dir(runs)?;
    let mut unread = |folder: &Path, error| {
        let name = folder.strip_prefix(runs).unwrap_or(folder);
        inputs.unread(&name.to_string_lossy(), error);
    };
    walk(runs, &mut found, &mut unread);
    found.sort();
    if found.is_empty() {
        let text = format!("{}: no run.json, *.scene.json or *.tsne.json in it", runs.display());
        return Err(Failure::Usage(text));
    }
    Ok(found)
}

/// Every folder once: first all that are there themselves, then those that links lead to.
fn walk(runs: &Path, found: &mut Vec<PathBuf>, unread: &mut impl FnMut(&Path, std::io::Error)) {
    let mut seen = HashSet::new();
    let (mut folders, mut links) = (vec![runs.to_owned()], Vec::new());
    while let Some(folder) = folders.pop().or_else(|| links.pop()) {
        let listed = folder.canonicalize().and_then(|real| Ok((real, std::fs::read_dir(&folder)?)));
        let entries = match listed {
            Ok((real, _)) if !seen.insert(real.clone()) => continue,
            Ok((_, entries)) => entries,
            Err(error) => {
                unread(&folder, error);
                continue;
            }
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            if path.is_dir() {
                if path.is_symlink() { links.push(path) } else { folders.push(path) }
            } else if name.is_some_and(|name| FileKind::of(&name).is_some()) {
                // a pipe, say, would never end
                if path.metadata().is_ok_and(|about| !about.is_file()) {
                    unread(&path, std::io::Error::other("not a plain file"));
                } else {
                    found.push(path);
                }
            }
        }
        links.sort();
    }
}
