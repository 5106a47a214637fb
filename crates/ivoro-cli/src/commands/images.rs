//! Labelled samples for a model: what a network sees in the photos or in the data set that a verb was given.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use anstream::eprintln;
use ivoro::{Model, Samples};
use ivoro_vision::FrozenNetwork;
use ivoro_vision::dataset::photos::train_part;
use ivoro_vision::dataset::{Dataset, OpenOptions, Photo, Photos};
use ivoro_vision::photos::Looking;
use ivoro_vision::recogniser::Seen;
use ivoro_vision::remembered::{Fingerprint, Remembered};

use super::photos::{Tale, find};
use crate::args::photos::SampleArguments;
use crate::failure::Failure;
use crate::progress;
use crate::table::visible;

/// Which photos or images become samples.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) paths: &'a [PathBuf],
    pub(super) arguments: &'a SampleArguments,
    /// The class of all of them.
    pub(super) class: Option<&'a str>,
    /// The only classes that count.
    pub(super) classes: Option<&'a Vec<String>>,
    pub(super) purpose: Purpose,
}

/// What samples are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// New classes, and more of those known.
    Teach,
    /// More of classes that are known.
    Update,
    /// To be taken back: the list of those taught says what is left out no more.
    TakeBack,
    /// To be asked about, as samples that were not learned.
    Calibrate,
}

impl Purpose {
    /// What was done with photos that count.
    fn done(self) -> &'static str {
        match self {
            Self::Teach | Self::Update => "taught",
            Self::TakeBack => "took back",
            Self::Calibrate => "calibrated with",
        }
    }

    /// Refuses classes that the model does not know, where it has to: before a network looks at anything.
    pub(super) fn check<'a>(
        self,
        model: &Model,
        mut classes: impl Iterator<Item = &'a str>,
    ) -> Result<(), Failure> {
        let known: HashSet<&str> =
            model.head().classes().iter().map(|class| class.name.as_str()).collect();
        let Some(class) = classes.find(|class| self != Self::Teach && !known.contains(class))
        else {
            return Ok(());
        };
        let help = match self {
            Self::Update => "; `ivoro learn` takes new classes and known ones together",
            Self::Calibrate => "; --classes NAME,… takes some classes alone",
            Self::Teach | Self::TakeBack => "",
        };
        let error = ivoro::Error::UnknownClass { class: class.to_owned() };
        Err(Failure::Usage(format!("{error}{help}")))
    }
}

/// Samples, and what is to be told once they count.
pub(super) struct Lesson {
    pub(super) samples: Samples,
    told: Option<Tale>,
    remembered: Option<(Remembered, PathBuf, Vec<Fingerprint>)>,
}

impl From<Samples> for Lesson {
    fn from(samples: Samples) -> Self {
        Self { samples, told: None, remembered: None }
    }
}

impl Lesson {
    /// Whether it is of photos, and not of features or of a data set.
    pub(super) fn is_of_photos(&self) -> bool {
        self.told.is_some()
    }

    /// Says how many photos were taken, and remembers them where that is wanted. Call it when they count.
    pub(super) fn finish(
        mut self,
        wanted: &SampleArguments,
        taking_back: bool,
    ) -> Result<(), Failure> {
        if let Some((list, path, photos)) = &mut self.remembered {
            if taking_back {
                list.remove(photos);
            } else {
                list.add(photos);
            }
            list.save(path)?;
        }
        self.tell(wanted)
    }

    /// Says how many photos were taken: they were remembered already, and stay so.
    pub(super) fn tell(self, wanted: &SampleArguments) -> Result<(), Failure> {
        self.told.map_or(Ok(()), |tale| tale.tell(&wanted.photos))
    }
}

/// What is learned of a data set of a known layout, or of photos.
pub(super) fn lesson(
    network: &FrozenNetwork,
    model: &mut Model,
    wanted: &Wanted<'_>,
) -> Result<Lesson, Failure> {
    if let [path] = wanted.paths {
        let broken = wanted.arguments.photos.broken();
        let options = OpenOptions { test_share: 0.0, broken, ..OpenOptions::default() };
        if let Some(dataset) = Dataset::open_known(path, &options)? {
            return Ok(of_dataset(network, model, wanted, &dataset, path)?.into());
        }
    }
    of_photos(network, model, wanted)
}

fn of_dataset(
    network: &FrozenNetwork,
    model: &mut Model,
    wanted: &Wanted<'_>,
    dataset: &Dataset,
    path: &Path,
) -> Result<Samples, Failure> {
    let rows = wanted_rows(dataset, path, wanted.classes)?;
    match network.fit_of(&dataset.train, &rows)? {
        Some(fit) => model.use_described_network(&network.describe(fit))?,
        None => model.use_network(network.fingerprint())?,
    }
    let bar = progress::bar(rows.len());
    bar.set_message("images");
    let mut done = |count: usize| bar.set_position(count as u64);
    let broken = wanted.arguments.photos.broken();
    let seen = network.samples(model.head().variant(), dataset, &rows, broken, &mut done)?;
    bar.finish_and_clear();
    say_left_out(&seen);
    let none = || Failure::Usage(format!("{}: there is no image to learn from", path.display()));
    seen.of.ok_or_else(none)
}

fn of_photos(
    network: &FrozenNetwork,
    model: &mut Model,
    wanted: &Wanted<'_>,
) -> Result<Lesson, Failure> {
    let SampleArguments { class_from, keep_duplicates, remember, photos } = wanted.arguments;
    let mut found = find(&learned(wanted.paths), photos.broken())?;
    found.name_classes(class_from.map(Into::into), wanted.class, photos.broken())?;
    only(&mut found, wanted)?;
    let mut tale = Tale::of(wanted.purpose.done(), &mut found);
    if wanted.class.is_none() && wanted.classes.is_none() {
        tale.report.empty = found.empty_folders().into_iter().map(str::to_owned).collect();
    }
    let all = found.photos;
    if all.is_empty() {
        return Err(tale.nothing(wanted.paths));
    }
    wanted.purpose.check(model, all.iter().filter_map(Photo::class))?;
    let fit = network.photo_fit(&all)?;
    model.use_described_network(&network.describe(fit))?;
    let list = remember.as_deref().map(|path| Remembered::open(path, fit));
    let list = list.transpose()?;
    let bar = progress::bar(all.len());
    bar.set_message("photos");
    let looking = Looking {
        decoding: photos.decoding(),
        keep_duplicates: *keep_duplicates,
        remembered: list.as_ref().filter(|_| wanted.purpose != Purpose::TakeBack),
    };
    let mut done = |count: usize| bar.set_position(count as u64);
    let seen = network.photo_samples(model.head().variant(), &all, looking, &mut done)?;
    bar.finish_and_clear();
    let (samples, fingerprints) = tale.report.add_seen(&all, seen);
    let Some(samples) = samples else {
        tale.tell(photos)?;
        return Err(tale.nothing(wanted.paths));
    };
    let remembered = list.zip(remember.clone()).map(|(list, path)| (list, path, fingerprints));
    Ok(Lesson { samples, told: Some(tale), remembered })
}

/// The folders that are learned from: of one that is divided the train part.
fn learned(paths: &[PathBuf]) -> Vec<PathBuf> {
    let part = |path: &PathBuf| {
        let Some(train) = train_part(path) else { return path.clone() };
        eprintln!("note: of {} the folder train is taken", path.display());
        train
    };
    paths.iter().map(part).collect()
}

/// Keeps the photos of the classes that are wanted.
fn only(found: &mut Photos, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let Some(classes) = wanted.classes else { return Ok(()) };
    let known: BTreeSet<&str> = found.photos.iter().filter_map(Photo::class).collect();
    let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
    check_classes(classes, &known, wanted.paths)?;
    let is_wanted = |photo: &Photo| classes.iter().any(|name| photo.class() == Some(name));
    found.photos.retain(is_wanted);
    Ok(())
}

/// Classes that are listed where one is not there.
const LISTED: usize = 8;

/// Refuses classes that the data do not have, and says which they have.
pub(super) fn check_classes(
    wanted: &[String],
    known: &[String],
    paths: &[PathBuf],
) -> Result<(), Failure> {
    let Some(name) = wanted.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut listed: Vec<&str> = known.iter().take(LISTED).map(String::as_str).collect();
    let more = format!("{} more", known.len() - listed.len());
    if known.len() > LISTED {
        listed.push(&more);
    }
    let (paths, listed) = (paths.join(", "), listed.join(", "));
    Err(Failure::Usage(format!("{paths}: no class {name}; there are {listed}")))
}

/// Names the images that could not be read.
pub(super) fn say_left_out<T>(seen: &Seen<T>) {
    let reasons = seen.broken.iter().map(|(_, reason)| visible(&reason.to_string()));
    reasons.for_each(|reason| eprintln!("left out: {reason}"));
}

fn wanted_rows(
    dataset: &Dataset,
    path: &Path,
    classes: Option<&Vec<String>>,
) -> Result<Vec<usize>, Failure> {
    let all = 0..dataset.train.len();
    let Some(wanted) = classes else { return Ok(all.collect()) };
    check_classes(wanted, &dataset.classes, &[path.to_owned()])?;
    let class = |row: usize| &dataset.classes[dataset.train.labels()[row] as usize];
    Ok(all.filter(|&row| wanted.contains(class(row))).collect())
}
