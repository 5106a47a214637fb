//! Photos as Python gives them: files and folders, contents of files, arrays.

use std::path::PathBuf;
use std::sync::Arc;

use ivoro_vision::dataset::{Broken, ClassFrom, Photo, Photos, Shape};
use numpy::{PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::FromPyObject;
use pyo3::pybacked::PyBackedBytes;

use crate::failure::{Failure, Outcome};

/// A photo, or a folder of photos.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    Bytes(PyBackedBytes),
    Path(PathBuf),
    Pixels(PyReadonlyArray3<'py, u8>),
}

/// The same, free of the interpreter.
pub(crate) enum Held {
    /// A file, a folder or an archive.
    Path(PathBuf),
    /// A photo in memory.
    Photo(Photo),
}

impl Given<'_> {
    /// Takes a photo from Python; it is the one at this place of those given.
    pub(crate) fn hold(self, place: usize) -> Outcome<Held> {
        let name = PathBuf::from(format!("photo {place}"));
        Ok(Held::Photo(match self {
            Self::Path(path) => return Ok(Held::Path(path)),
            Self::Bytes(bytes) => Photo::bytes(name, Arc::from(&bytes[..]), None),
            Self::Pixels(array) => {
                let &[height, width, channels] = array.shape() else {
                    return Err(Failure::value("an image has rows, columns and channels"));
                };
                let pixels: Vec<u8> = array.as_array().iter().copied().collect();
                Photo::pixels(name, Shape { height, width, channels }, pixels.into(), None)
            }
        }))
    }
}

/// Takes photos from Python.
pub(crate) fn hold(given: Vec<Given<'_>>) -> Outcome<Vec<Held>> {
    given.into_iter().enumerate().map(|(place, it)| it.hold(place)).collect()
}

impl Held {
    /// A single photo: what is wrong with a file is said when it is decoded.
    pub(crate) fn single(self) -> Photo {
        match self {
            Self::Path(path) => Photo::file(path, None),
            Self::Photo(photo) => photo,
        }
    }

    /// All photos that it is: those of a folder or an archive, or itself.
    pub(crate) fn all(self, broken: Broken) -> Outcome<Photos> {
        match self {
            Self::Path(path) if !path.exists() => Err(Failure::missing(&path)),
            Self::Path(path) => Ok(Photos::find(&[path], broken)?),
            Self::Photo(photo) => Ok(Photos::of(vec![photo])),
        }
    }
}

/// Which class photos have.
pub(crate) struct Classes {
    /// That of all of them, or one for each that was given; else folders name it.
    pub(crate) given: Option<Vec<String>>,
    pub(crate) from: Option<ClassFrom>,
}

impl Classes {
    pub(crate) fn new(given: Option<Vec<String>>, from: Option<&str>) -> Outcome<Self> {
        let from = match from {
            None => None,
            Some("first") => Some(ClassFrom::First),
            Some("last") => Some(ClassFrom::Last),
            Some("path") => Some(ClassFrom::Path),
            Some(other) => {
                let text = format!("class_from = {other:?}: write \"first\", \"last\" or \"path\"");
                return Err(Failure::value(text));
            }
        };
        Ok(Self { given, from })
    }

    /// The photos among what was given, each with its class; those without one are left out.
    pub(crate) fn of(&self, held: Vec<Held>, broken: Broken) -> Outcome<Photos> {
        let mut all = Photos::default();
        let Some(classes) = &self.given else {
            for (place, one) in held.into_iter().enumerate() {
                if let Held::Photo(_) = one {
                    return Err(Failure::value(format!(
                        "classes: expected one for photo {place}, which lies in no folder"
                    )));
                }
                all.append(one.all(broken)?);
            }
            all.name_classes(self.from, None, broken)?;
            return Ok(all);
        };
        if classes.len() != 1 && classes.len() != held.len() {
            return Err(Failure::value(format!(
                "classes: expected one for all photos or {}, found {}",
                held.len(),
                classes.len()
            )));
        }
        for (one, class) in held.into_iter().zip(classes.iter().cycle()) {
            let mut photos = one.all(broken)?;
            photos.name_classes(self.from, Some(class.as_str()), broken)?;
            all.append(photos);
        }
        Ok(all)
    }
}
