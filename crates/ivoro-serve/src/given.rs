//! Samples and queries as requests bring them: images, archives of photos, feature vectors.

use std::path::{Path, PathBuf};

use axum::body::Bytes;
use ivoro::{NetworkDescription, Points};
use ivoro_io::features::{ReadOptions, Set, read_bytes};
use ivoro_vision::dataset::{Broken, ImageInput, Photos, measure};
use ivoro_vision::recogniser::FrozenNetwork;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::content::{Content, Part};
use crate::features::{self, Vectors};
use crate::options::Limits;
use crate::problem::Problem;
use crate::snapshot::Snapshot;

/// Feature vectors as JSON.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonSamples {
    samples: Vec<JsonSample>,
}

/// One sample or query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonSample {
    /// The class of a sample; of a query nothing.
    #[serde(default)]
    class: Option<String>,
    /// Stands for it in the answer.
    #[serde(default)]
    name: Option<String>,
    /// Its features: a vector, or one for each layer and view.
    #[schema(value_type = Vec<f32>)]
    features: Vectors,
}

/// A photo in the body of a request.
pub(crate) struct GivenPhoto {
    name: String,
    class: Option<String>,
    bytes: Bytes,
}

impl GivenPhoto {
    /// A query, or a sample whose class stands elsewhere.
    pub(crate) fn of(name: String, bytes: Bytes) -> Self {
        Self { name, class: None, bytes }
    }
}

/// A zip archive in the body of a request.
pub(crate) struct GivenArchive {
    name: String,
    class: Option<String>,
    bytes: Bytes,
}

/// What a request brings.
pub(crate) enum Given {
    Vectors(Vec<JsonSample>),
    /// Of a file of features, with classes where it has them.
    Table {
        points: Points,
        classes: Vec<Option<String>>,
    },
    Photos {
        photos: Vec<GivenPhoto>,
        archives: Vec<GivenArchive>,
    },
}

/// Why something was left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Skipped {
    /// What the client called it.
    pub(crate) name: String,
    /// Why, in a sentence.
    pub(crate) reason: String,
}

/// What a model is asked or taught.
#[derive(Default)]
pub(crate) struct Seen {
    /// None where nothing could be read.
    pub(crate) points: Option<Points>,
    /// What the client calls each row.
    pub(crate) names: Vec<Option<String>>,
    /// The class of each row.
    pub(crate) classes: Vec<Option<String>>,
    pub(crate) skipped: Vec<Skipped>,
    /// The network that computed them.
    pub(crate) network: Option<NetworkDescription>,
}

/// Vectors that a body may hold for each part that a multipart body may have.
const VECTORS_PER_PART: usize = 100;
/// Photos that an archive may hold for each of those.
const PHOTOS_PER_PART: usize = 10;

impl Given {
    /// Takes a body apart. The hash is that of all it brings.
    pub(crate) async fn read(
        content: &Content,
        limits: &Limits,
    ) -> Result<(Self, blake3::Hash), Problem> {
        if content.is_multipart() {
            let parts = content.parts(limits.parts).await?;
            let hash = content.hash(Some(&parts));
            return Ok((Self::of_parts(parts)?, hash));
        }
        let given = match content.kind.as_str() {
            "application/json" => {
                let JsonSamples { samples } = content.any_json()?;
                Self::Vectors(samples)
            }
            "application/x-npy" => table("body.npy", &content.bytes)?,
            "application/vnd.apache.arrow.stream" => table("body.arrow", &content.bytes)?,
            _ => {
                let expected = "multipart/form-data, application/json, application/x-npy or \
                                application/vnd.apache.arrow.stream";
                return Err(content.other_kind(expected));
            }
        };
        let rows = match &given {
            Self::Vectors(samples) => samples.len(),
            Self::Table { points, .. } => points.len(),
            Self::Photos { .. } => 0,
        };
        let most = limits.parts * VECTORS_PER_PART;
        if rows > most {
            return Err(Problem::too_large(format!(
                "{rows} vectors, at most {most} are taken at once"
            )));
        }
        Ok((given, content.hash(None)))
    }

    fn of_parts(parts: Vec<Part>) -> Result<Self, Problem> {
        let (mut photos, mut archives) = (Vec::new(), Vec::new());
        // a class is that of all that follows
        let mut current: Option<String> = None;
        for Part { name: field, file, bytes } in parts {
            let file = unescaped(&file);
            let class = current.clone();
            match field.as_str() {
                "class" => {
                    let text = String::from_utf8(bytes.to_vec());
                    current = Some(text.map_err(|_| Problem::bad("the field class is not UTF-8"))?);
                }
                "archive" => archives.push(GivenArchive { name: file, class, bytes }),
                "image" => {
                    let class = class.or_else(|| folder_of(&file));
                    photos.push(GivenPhoto { name: file, class, bytes });
                }
                _ => {
                    let found = crate::names::visible(&field);
                    let detail = format!(
                        "the field {found} is not known; expected class, image and archive"
                    );
                    return Err(Problem::bad(detail));
                }
            }
        }
        Ok(Self::Photos { photos, archives })
    }

    /// Whether it takes long to look at.
    pub(crate) fn is_heavy(&self, snapshot: &Snapshot) -> bool {
        /// Products of one thread in about a millisecond or two.
        const LIGHT: usize = 20_000_000;
        let rows = match self {
            Self::Vectors(samples) => samples.len(),
            Self::Table { points, .. } => points.len(),
            Self::Photos { .. } => return true,
        };
        let dims: usize = snapshot.model.head().layers().iter().map(|(_, dim)| dim).sum();
        rows > 1 && rows * dims.max(512) * snapshot.classes().max(100) > LIGHT
    }

    pub(crate) fn needs_network(&self) -> bool {
        matches!(self, Self::Photos { .. })
    }

    /// What a model is to be asked or taught. Images take a network, and time.
    pub(crate) fn look(
        self,
        snapshot: &Snapshot,
        network: Option<&FrozenNetwork>,
        limits: &Limits,
    ) -> Result<Seen, Problem> {
        let variant = snapshot.model.head().variant();
        match (self, network) {
            (Self::Vectors(samples), _) => {
                let rows: Vec<&Vectors> = samples.iter().map(|sample| &sample.features).collect();
                let points = features::points("samples", variant, &rows)?;
                let parts = samples.into_iter().map(|sample| (sample.name, sample.class));
                let (names, classes) = parts.unzip();
                Ok(Seen { points: Some(points), names, classes, ..Seen::default() })
            }
            (Self::Table { points, classes }, _) => {
                let names = vec![None; points.len()];
                Ok(Seen { points: Some(points), names, classes, ..Seen::default() })
            }
            (Self::Photos { photos, archives }, Some(network)) => {
                look_at(photos, archives, (snapshot, network), limits)
            }
            (Self::Photos { .. }, None) => Err(Problem::internal()),
        }
    }
}

/// A name as it was before a browser wrote it into a header.
fn unescaped(name: &str) -> String {
    [("%22", "\""), ("%0D", ""), ("%0A", "")]
        .iter()
        .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// The folder right above a file, as browsers name files of folders and programs name classes.
fn folder_of(file: &str) -> Option<String> {
    let mut parts = file.rsplit(['/', '\\']);
    parts.next();
    parts.next().filter(|part| !matches!(*part, "" | "." | "..")).map(str::to_owned)
}

fn table(name: &str, bytes: &[u8]) -> Result<Given, Problem> {
    let file = read_bytes(name, bytes, &ReadOptions::default())?;
    let set = file.all.or(file.train).or(file.test);
    match set {
        Some(Set::Labelled(samples)) => {
            let names = samples.classes();
            let class = |&label: &u32| Some(names[label as usize].clone());
            let classes = samples.labels().iter().map(class).collect();
            Ok(Given::Table { classes, points: samples.into_points() })
        }
        Some(Set::Unlabelled(points)) => {
            Ok(Given::Table { classes: vec![None; points.len()], points })
        }
        None => Err(Problem::unprocessable("there is no row in it")),
    }
}

/// An image with what it is called and its class.
struct Image<'a> {
    input: ImageInput<'a>,
    name: String,
    class: Option<String>,
}

fn look_at(
    photos: Vec<GivenPhoto>,
    archives: Vec<GivenArchive>,
    (snapshot, network): (&Snapshot, &FrozenNetwork),
    limits: &Limits,
) -> Result<Seen, Problem> {
    let paths: Vec<PathBuf> =
        photos.iter().map(|photo| PathBuf::from(shown(&photo.name))).collect();
    let mut skipped = Vec::new();
    let unpacked = archives.into_iter().map(|archive| unpack(archive, limits, &mut skipped));
    let unpacked: Vec<Unpacked> = unpacked.collect::<Result<_, _>>()?;
    let mut images: Vec<Image<'_>> = Vec::new();
    for (photo, path) in photos.iter().zip(&paths) {
        let input = ImageInput::Bytes { name: path, bytes: &photo.bytes };
        images.push(Image { input, name: photo.name.clone(), class: photo.class.clone() });
    }
    for Unpacked { photos, file, name } in &unpacked {
        for photo in &photos.photos {
            let inside = photo.name().strip_prefix(file.path()).unwrap_or(photo.name());
            let name = format!("{name}/{}", inside.display());
            images.push(Image {
                input: photo.input(),
                name,
                class: photo.class().map(str::to_owned),
            });
        }
    }
    let images = within(images, limits, &mut skipped)?;
    let inputs: Vec<ImageInput<'_>> = images.iter().map(|image| image.input).collect();
    let seen = network.points(snapshot.model.head().variant(), &inputs, Broken::Skip)?;
    for (place, why) in &seen.broken {
        skipped
            .push(Skipped { name: images[*place].name.clone(), reason: without_folders(&why.why) });
    }
    let of_row = |row: &usize| (Some(images[*row].name.clone()), images[*row].class.clone());
    let (names, classes) = seen.rows.iter().map(of_row).unzip();
    let network = network.describe_queries()?;
    Ok(Seen { points: seen.of, names, classes, skipped, network: Some(network) })
}

/// Images of which no one has more pixels than are taken: what a file claims is read before anything is unpacked.
fn within<'a>(
    images: Vec<Image<'a>>,
    limits: &Limits,
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<Image<'a>>, Problem> {
    let alone = images.len() == 1;
    let mut taken = Vec::with_capacity(images.len());
    for image in images {
        let pixels =
            measure(image.input).map_or(0, |shape| (shape.height as u64) * (shape.width as u64));
        if pixels <= limits.pixels {
            taken.push(image);
            continue;
        }
        let reason = format!("an image of {pixels} pixels, at most {} are taken", limits.pixels);
        if alone {
            return Err(Problem::too_large(reason));
        }
        skipped.push(Skipped { name: image.name, reason });
    }
    Ok(taken)
}

/// An archive in a file, which goes with it.
struct Unpacked {
    photos: Photos,
    file: tempfile::NamedTempFile,
    name: String,
}

fn unpack(
    archive: GivenArchive,
    limits: &Limits,
    skipped: &mut Vec<Skipped>,
) -> Result<Unpacked, Problem> {
    let io = |error: std::io::Error| Problem::from(ivoro::Error::from(error));
    let file = tempfile::Builder::new().prefix("ivoro-").suffix(".zip").tempfile().map_err(io)?;
    fs_err::write(file.path(), &archive.bytes).map_err(io)?;
    drop(archive.bytes);
    let name = shown(&archive.name);
    let mut photos = Photos::find(&[file.path().to_owned()], Broken::Skip)?;
    photos.name_classes(None, archive.class.as_deref(), Broken::Skip)?;
    let most = limits.parts * PHOTOS_PER_PART;
    if photos.photos.len() > most {
        return Err(Problem::too_large(format!(
            "{name}: more than {most} photos, which is the most that is taken"
        )));
    }
    let own = file.path().display().to_string();
    for (path, why) in &photos.unread {
        let path = path.strip_prefix(file.path()).unwrap_or(path).display().to_string();
        skipped.push(Skipped { name: path, reason: why.why.replace(&own, &name) });
    }
    Ok(Unpacked { photos, file, name })
}

/// A name for messages.
fn shown(name: &str) -> String {
    let name = crate::names::visible(name);
    if name.is_empty() { "image".to_owned() } else { name }
}

/// A sentence without the folders of this machine.
fn without_folders(text: &str) -> String {
    let folder = std::env::temp_dir();
    let folder = Path::new(&folder).display().to_string();
    text.replace(&format!("{folder}/"), "")
}
