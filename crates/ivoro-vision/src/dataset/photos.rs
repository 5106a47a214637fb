//! Photos as people have them: in folders of folders, in a zip archive, one by one.
//!
//! What is a photo is said by its first bytes. Files beside photos – thumbnails of a system, notes, videos – are passed
//! over and counted. Links are followed, to files and to folders, and no folder is entered twice. Pipes,
//! sockets and devices are never opened.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decode::ImageInput;
use super::format::{Format, HEAD, READ};
use super::images::Broken;
use super::listing::{Entry, all_listed, is_image_name, kind_of, name_of};
use super::unread::Unread;
use super::zipped::{Archive, is_archive};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Folders within folders, at most: deeper ones are no photo album.
const DEEPEST: usize = 64;

/// A photo and where it lies.
#[derive(Clone, Debug)]
pub struct Photo {
    name: PathBuf,
    /// The folder that was named, which it lies in or below.
    root: Option<Arc<str>>,
    folders: Vec<String>,
    class: Option<String>,
    place: Place,
}

/// Where a photo lies.
#[derive(Clone)]
enum Place {
    /// In the file of its name.
    File,
    /// In an archive, under this number.
    Archive(Arc<Archive>, usize),
    /// In memory, as the contents of a file.
    Bytes(Arc<[u8]>),
    /// In memory, decoded.
    Pixels(Shape, Arc<[u8]>),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("File"),
            Self::Archive(archive, entry) => write!(f, "{archive:?} {entry}"),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Pixels(shape, _) => write!(f, "pixels of {shape}"),
        }
    }
}

impl Photo {
    /// A photo in a file, of this class if it is known.
    pub fn file(path: PathBuf, class: Option<String>) -> Self {
        Self { name: path, root: None, folders: Vec::new(), class, place: Place::File }
    }

    /// The contents of a photo's file, in memory; `name` stands for it in messages.
    pub fn bytes(name: PathBuf, bytes: Arc<[u8]>, class: Option<String>) -> Self {
        Self { place: Place::Bytes(bytes), ..Self::file(name, class) }
    }

    /// A photo that is decoded already: pixels in the order height, width, channel. `name` stands for it in
    /// messages.
    pub fn pixels(name: PathBuf, shape: Shape, pixels: Arc<[u8]>, class: Option<String>) -> Self {
        Self { place: Place::Pixels(shape, pixels), ..Self::file(name, class) }
    }

    /// The archive that it lies in.
    fn archive(&self) -> Option<*const Archive> {
        match &self.place {
            Place::Archive(archive, _) => Some(Arc::as_ptr(archive)),
            _ => None,
        }
    }

    /// Its path; of one in an archive the path of that, and its name there.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The folders between the one that was named and the photo.
    pub fn folders(&self) -> &[String] {
        &self.folders
    }

    /// Its class, where that is known.
    pub fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// Whether it lies in an archive.
    pub fn is_zipped(&self) -> bool {
        self.archive().is_some()
    }

    /// What can be decoded.
    pub fn input(&self) -> ImageInput<'_> {
        let name = self.name.as_path();
        match &self.place {
            Place::File => ImageInput::Path(name),
            Place::Archive(archive, entry) => ImageInput::Zipped { name, archive, entry: *entry },
            Place::Bytes(bytes) => ImageInput::Bytes { name, bytes },
            Place::Pixels(shape, pixels) => ImageInput::Pixels { name, shape: *shape, pixels },
        }
    }
}

/// Which folder names the class of a photo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ClassFrom {
    /// The first one below the folder that was named.
    #[default]
    First,
    /// The one that the photo lies in.
    Last,
    /// All between them, with `/` between.
    Path,
}

/// Photos, and what lies beside them.
#[derive(Debug, Default)]
pub struct Photos {
    /// Those that can be decoded, as far as their first bytes tell; in the order of what was named, sorted by name
    /// in each folder.
    pub photos: Vec<Photo>,
    /// Those that can't, with the reason.
    pub unread: Vec<(PathBuf, Unread)>,
    /// Files that are no photos.
    pub others: Vec<PathBuf>,
    /// Folders right below one that was named.
    first_level: Vec<(PathBuf, String)>,
    /// How many folders were named.
    roots: usize,
}

impl Photos {
    /// Photos in the folders and archives among `paths`, and those that are named themselves.
    pub fn find(paths: &[PathBuf], broken: Broken) -> Result<Self> {
        let found = Self::default();
        let mut search = Search { found, broken, root: None, entered: HashSet::new() };
        for path in paths {
            search.named(path)?;
        }
        Ok(search.found)
    }

    /// These photos and nothing beside them.
    pub fn of(photos: Vec<Photo>) -> Self {
        Self { photos, ..Self::default() }
    }

    /// Adds others behind these.
    pub fn append(&mut self, others: Self) {
        self.photos.extend(others.photos);
        self.unread.extend(others.unread);
        self.others.extend(others.others);
        self.first_level.extend(others.first_level);
        self.roots += others.roots;
    }

    /// Adds what a list names: a path a line, and behind a tab its class. Without one, the class of a photo is
    /// the name of the folder it lies in.
    pub fn add_list(&mut self, list: &str, broken: Broken) -> Result<()> {
        for line in list.lines().filter(|line| !line.trim().is_empty()) {
            let (path, class) = line.split_once('\t').map_or((line, None), |(path, class)| {
                (path, Some(class.trim().to_owned()).filter(|class| !class.is_empty()))
            });
            let path = Path::new(path);
            let mut found = match Self::find(&[path.to_owned()], broken) {
                Ok(found) => found,
                Err(error) if broken == Broken::Skip => {
                    self.unread.push((path.to_owned(), Unread::from(&error)));
                    continue;
                }
                Err(error) => return Err(error),
            };
            for photo in &mut found.photos {
                let folder = photo.name.parent().and_then(Path::file_name);
                let folder = folder.map(|name| name.to_string_lossy().into_owned());
                photo.class = class.clone().or_else(|| folder.filter(|_| photo.folders.is_empty()));
            }
            self.append(found);
        }
        Ok(())
    }

    /// Finds the class of each photo that has none: `given`, or the name of a folder. Where several folders were
    /// named and photos lie right in them, as of `photos/*`, these are the classes. Photos without a class are
    /// left out.
    pub fn name_classes(
        &mut self,
        from: Option<ClassFrom>,
        given: Option<&str>,
        broken: Broken,
    ) -> Result<()> {
        if given.is_none() && from.is_none() {
            self.leave_wrapper();
        }
        let roots_are_classes = from.is_none() && self.roots_hold_photos();
        let from = from.unwrap_or_default();
        let mut classed = Vec::with_capacity(self.photos.len());
        for mut photo in std::mem::take(&mut self.photos) {
            let root = || photo.root.as_deref().map(str::to_owned);
            let of_folder = || match from {
                ClassFrom::First if roots_are_classes && photo.root.is_some() => root(),
                ClassFrom::First => photo.folders.first().cloned(),
                ClassFrom::Last => photo.folders.last().cloned().or_else(root),
                ClassFrom::Path => {
                    Some(photo.folders.join("/")).filter(|folders| !folders.is_empty())
                }
            };
            let known = given.map(str::to_owned).or_else(|| photo.class.clone());
            photo.class = known.or_else(of_folder);
            if photo.class.is_some() {
                classed.push(photo);
            } else if broken == Broken::Fail {
                return Err(Error::NoClass { path: photo.name });
            } else {
                let why = Unread::from(&Error::NoClass { path: photo.name.clone() });
                self.unread.push((photo.name, why));
            }
        }
        self.photos = classed;
        Ok(())
    }

    /// Whether several folders were named, and a photo lies in one of them and not below.
    fn roots_hold_photos(&self) -> bool {
        let is_in_root = |photo: &Photo| photo.root.is_some() && photo.folders.is_empty();
        self.roots > 1 && self.photos.iter().any(is_in_root)
    }

    /// An archive of a folder has that folder around all others: it names no class.
    fn leave_wrapper(&mut self) {
        let archives: HashSet<*const Archive> =
            self.photos.iter().filter_map(Photo::archive).collect();
        for archive in archives {
            let is_in = |photo: &Photo| photo.archive() == Some(archive);
            loop {
                let mut inside = self.photos.iter().filter(|photo| is_in(photo));
                let Some(first) = inside.next().and_then(|photo| photo.folders.first()) else {
                    break;
                };
                let wraps =
                    |photo: &Photo| photo.folders.len() > 1 && photo.folders.first() == Some(first);
                if !self.photos.iter().filter(|photo| is_in(photo)).all(wraps) {
                    break;
                }
                for photo in self.photos.iter_mut().filter(|photo| is_in(photo)) {
                    photo.folders.remove(0);
                }
            }
        }
    }

    /// Folders right below those that were named which hold no photo.
    pub fn empty_folders(&self) -> Vec<&str> {
        let holding: HashSet<&Path> =
            self.photos.iter().flat_map(|photo| photo.name.ancestors()).collect();
        let empty =
            self.first_level.iter().filter(|(folder, _)| !holding.contains(folder.as_path()));
        empty.map(|(_, name)| name.as_str()).collect()
    }

    /// How many photos of which kind were left out: `HEIC 12, truncated 2`; the most frequent kind first.
    pub fn tell(unread: &[&Unread]) -> String {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for unread in unread {
            match kinds.iter_mut().find(|(kind, _)| *kind == unread.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((unread.kind, 1)),
            }
        }
        kinds.sort_by_key(|&(kind, count)| (std::cmp::Reverse(count), kind));
        let kinds: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        kinds.join(", ")
    }
}

struct Search {
    found: Photos,
    broken: Broken,
    /// The folder that was named last.
    root: Option<Arc<str>>,
    /// Folders that were entered below what was named last, without links in their paths.
    entered: HashSet<PathBuf>,
}

impl Search {
    /// Takes what a user named.
    fn named(&mut self, path: &Path) -> Result<()> {
        let Ok(metadata) = fs_err::metadata(path) else {
            let expected = "a photo, a folder of photos or a zip archive of photos".to_owned();
            return Err(Error::Missing { path: path.to_owned(), expected });
        };
        if metadata.is_dir() {
            let real = fs_err::canonicalize(path)?;
            // `.` has no name of its own
            let name = path.file_name().or(real.file_name());
            self.root = name.map(|name| name.to_string_lossy().into());
            self.found.roots += 1;
            self.entered = HashSet::from([real]);
            return self.folder(path, &mut Vec::new());
        }
        if metadata.is_file() && head_of(path).is_ok_and(|head| is_archive(&head)) {
            return self.archive(path);
        }
        // what is wrong with it is said when it is decoded
        self.found.photos.push(Photo::file(path.to_owned(), None));
        Ok(())
    }

    fn folder(&mut self, folder: &Path, below: &mut Vec<String>) -> Result<()> {
        for entry in all_listed(folder)? {
            if entry.is_hidden() {
                self.found.others.push(entry.path);
            } else if entry.is_folder {
                self.enter(&entry, below)?;
            } else {
                self.file(&entry.path, below)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, entry: &Entry, below: &mut Vec<String>) -> Result<()> {
        let path = &entry.path;
        if below.is_empty() {
            self.found.first_level.push((path.clone(), entry.name()));
        }
        let known = fs_err::canonicalize(path).map(|real| !self.entered.insert(real));
        let refused = match known {
            Ok(true) => {
                Some(Unread::new("folder seen before", path, "a link to a folder that was entered"))
            }
            Ok(false) if below.len() >= DEEPEST => {
                Some(Unread::new("too deep", path, &format!("below {DEEPEST} folders")))
            }
            Ok(false) => None,
            Err(error) => Some(Unread::from(&Error::from(error))),
        };
        if let Some(unread) = refused {
            self.found.unread.push((path.clone(), unread));
            return Ok(());
        }
        below.push(entry.name());
        let outcome = self.folder(path, below);
        below.pop();
        match outcome {
            // a folder that can't be listed hides its photos: that is counted
            Err(error @ Error::Io(_)) => self.leave_out(path, error),
            outcome => outcome,
        }
    }

    fn file(&mut self, path: &Path, below: &[String]) -> Result<()> {
        let metadata = match fs_err::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return self.leave_out(path, error.into()),
        };
        if !metadata.is_file() {
            let found = kind_of(&metadata);
            return self.leave_out(path, Error::NoFile { path: path.to_owned(), found });
        }
        match head_of(path) {
            Ok(head) => self.judged(
                &head,
                Photo {
                    root: self.root.clone(),
                    folders: below.to_vec(),
                    ..Photo::file(path.to_owned(), None)
                },
            ),
            Err(error) => self.leave_out(path, error),
        }
    }

    fn archive(&mut self, path: &Path) -> Result<()> {
        let archive = Arc::new(Archive::open(path)?);
        for entry in archive.entries() {
            let name = entry.parts.iter().fold(path.to_owned(), |path, part| path.join(part));
            let (folders, _) = entry.parts.split_at(entry.parts.len() - 1);
            if entry.parts.iter().any(|part| part.starts_with('.') || part == "__MACOSX") {
                self.found.others.push(name);
                continue;
            }
            if let [first, ..] = folders
                && !self.found.first_level.iter().any(|(_, known)| known == first)
            {
                self.found.first_level.push((path.join(first), first.clone()));
            }
            let place = Place::Archive(Arc::clone(&archive), entry.number);
            let photo = Photo { folders: folders.to_vec(), place, ..Photo::file(name, None) };
            match entry.head {
                Ok(head) => self.judged(&head, photo)?,
                Err(error) => self.leave_out(&photo.name, error)?,
            }
        }
        Ok(())
    }

    /// Takes a file for what its first bytes show.
    fn judged(&mut self, head: &[u8], photo: Photo) -> Result<()> {
        let path = &photo.name;
        match Format::of_file(head, path) {
            Some(format) => match format.unread() {
                None => self.found.photos.push(photo),
                Some(found) => {
                    let path = photo.name.clone();
                    let error = Error::OtherFormat { path, found, read: READ };
                    return self.leave_out(&photo.name, error);
                }
            },
            None if is_archive(head) => {
                let unread = Unread::new("zip", path, "an archive in a folder; name it itself");
                self.found.unread.push((path.clone(), unread));
            }
            None if is_image_name(path) => {
                let found = if head.is_empty() { "an empty file" } else { "something else" };
                let error = Error::broken(path, &format!("expected {READ}, found {found}"));
                return self.leave_out(&photo.name, error);
            }
            None => self.found.others.push(photo.name),
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &Path, error: Error) -> Result<()> {
        match self.broken {
            Broken::Fail => Err(error),
            Broken::Skip => {
                self.found.unread.push((path.to_owned(), Unread::from(&error)));
                Ok(())
            }
        }
    }
}

/// The first bytes of a file.
pub(super) fn head_of(path: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    fs_err::File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Where the photos lie that a model learns: the folder `train`, where there is one of class folders and a test part
/// beside it.
pub fn train_part(folder: &Path) -> Option<PathBuf> {
    let train = folder.join("train");
    let is_train = train.is_dir()
        && super::folder::TEST.iter().any(|name| folder.join(name).is_dir())
        && all_listed(&train).is_ok_and(|entries| entries.iter().any(|entry| entry.is_folder));
    is_train.then_some(train)
}

/// Where the photos lie that a model is asked about: the test part, where a folder `train` lies beside it.
pub fn test_part(folder: &Path) -> Option<PathBuf> {
    train_part(folder)?;
    super::folder::TEST.iter().map(|name| folder.join(name)).find(|path| path.is_dir())
}

/// The classes of photos by the folders they lie in, as far as a model knows such classes: those of the level
/// where most names are known, or of the folder itself that was named.
pub fn labels(photos: &[Photo], knows: impl Fn(&str) -> bool) -> Vec<Option<String>> {
    let deepest = photos.iter().map(|photo| photo.folders.len()).max().unwrap_or(0);
    let known_at = |level: usize| {
        let named = photos.iter().filter_map(|photo| photo.folders.get(level));
        named.filter(|name| knows(name)).count()
    };
    let counts: Vec<usize> = (0..deepest).map(known_at).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let level = counts.iter().position(|&count| count > 0 && count == most);
    let label = |photo: &Photo| match (&photo.class, level) {
        (Some(class), _) => Some(class.clone()),
        (None, Some(level)) => photo.folders.get(level).cloned(),
        (None, None) => {
            let named = photo.name.ancestors().nth(photo.folders.len() + 1);
            named
                .filter(|_| matches!(photo.place, Place::File))
                .map(name_of)
                .filter(|name| knows(name))
        }
    };
    photos.iter().map(label).collect()
}
