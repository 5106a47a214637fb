//! `ivoro seal`: what a device needs of a model, and no more.

use std::fmt::Write as _;
use std::path::Path;

use ivoro::SealOptions;
use ivoro::head::Head;
use ivoro::head::audit::audit as list_kept;
use ivoro_io::FileLock;

use super::model::load_to_change;
use super::save;
use crate::args::SealArguments;
use crate::failure::Failure;
use crate::output;

/// What a sealed class still does, and what it refuses.
const AFTERWARDS: &str = "  still exact: learn new classes, merge with models of other classes that were begun \
from this one\n  forget: all that is kept of a class alone goes; the metric that all share keeps what the classes \
of the first sealing gave it\n  refused from now on: update, and whatever else needs the sums of a sealed class\n";

/// Seals classes of a model.
pub(crate) fn seal(arguments: &SealArguments) -> Result<(), Failure> {
    let out = arguments.out.as_ref().unwrap_or(&arguments.model);
    let _lock = FileLock::acquire(out)?;
    let mut model = load_to_change(&arguments.model)?;
    let before = size(&arguments.model)?;
    let options =
        SealOptions { rank: arguments.rank.map(std::num::NonZero::get), bits: arguments.bits };
    let sealing = model.seal(arguments.classes.as_deref(), options)?;
    save(&model, out)?;
    let after = size(out)?;
    let shared = shared_bytes(model.head());
    let classes = model.head().classes().len().max(1) as u64;
    let kept = model.head().classes().iter().filter(|class| !class.is_sealed()).count();
    let mut text = format!(
        "{}: sealed {} of {classes} classes, {} directions of {} bits each\n  {before} bytes before, \
         {after} now: {shared} of a metric that all classes share, and {} per class\n",
        out.display(),
        sealing.classes.len(),
        sealing.rank,
        sealing.bits,
        after.saturating_sub(shared) / classes,
    );
    if kept > 0 {
        let _ = writeln!(text, "  {kept} classes keep their sums");
    }
    text.push_str(AFTERWARDS);
    Ok(output::print(&text)?)
}

fn size(path: &Path) -> Result<u64, Failure> {
    Ok(fs_err::metadata(path)?.len())
}

/// Bytes of what classes share.
fn shared_bytes(head: &Head) -> u64 {
    let lines = list_kept(head).into_iter().filter(|line| line.owner == "model");
    lines.map(|line| line.bytes as u64).sum()
}
