//! Networks at hand: the one that ships, and those that the user has added to a folder. A model names the
//! network it was taught with, and is given it again by its hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use ivoro::NetworkDescription;
use ivoro_io::atomic::write_atomically;
use serde::{Deserialize, Serialize};

use crate::dataset::Shape;
use crate::engine::onnx::weight_files;
use crate::error::{Error, Result};
use crate::recogniser::{FrozenNetwork, NetworkOptions, Taught, is_onnx};
use crate::shape::{FitHow, Fitting};
use crate::shipped;

/// What a network is described by, in its folder.
const CARD: &str = "network.json";
/// A card larger than this is none.
const MOST_CARD: u64 = 1 << 20;
/// The environment variable that names another folder.
const FOLDER: &str = "IVORO_NETWORKS";

/// A network at hand and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Version of this file.
    version: u32,
    /// The network and how images are brought to it. Its path is the file in the folder, without
    /// folders.
    pub network: NetworkDescription,
    /// Its layers with their sizes, the last one first.
    pub layers: Vec<(String, usize)>,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Under which licence it may be used, where that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

impl Card {
    const VERSION: u32 = 1;

    /// The card of an opened network.
    pub(crate) fn of(network: &FrozenNetwork, bytes: u64, licence: Option<String>) -> Result<Self> {
        let layers = network.backbone().layers().to_vec();
        let network = network.describe_queries()?;
        Ok(Self { version: Self::VERSION, network, layers, bytes, licence })
    }
}

/// What is asked for where a network is to be opened.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// A file, or the name of a network at hand; none leaves it to the model.
    pub network: Option<&'a Path>,
    /// How it is opened; what is not given comes from the model, or from the network's card.
    pub options: NetworkOptions,
    /// A folder where a network that has moved may lie too: that of the model.
    pub near: Option<&'a Path>,
}

/// The networks at hand.
#[derive(Clone, Debug)]
pub struct Networks {
    folder: PathBuf,
}

impl Networks {
    /// Those of the user: in the folder that the environment variable `IVORO_NETWORKS` names, else in
    /// `ivoro/networks` of the user's data folder.
    pub fn of_user() -> Self {
        let given = std::env::var_os(FOLDER).filter(|it| !it.is_empty()).map(PathBuf::from);
        let user = || {
            let folders = etcetera::choose_base_strategy();
            let data = folders.map(|folders| folders.data_dir().join("ivoro"));
            data.unwrap_or_else(|_| PathBuf::from("ivoro-data")).join("networks")
        };
        Self::at(given.unwrap_or_else(user))
    }

    /// Those of a folder, which need not exist yet.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where networks are added.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All networks at hand, the one that ships first, then by name. A folder without a readable card is
    /// passed over, and named in the second list with the reason.
    pub fn list(&self) -> Result<(Vec<Card>, Vec<Error>)> {
        let (mut cards, broken) = self.added()?;
        let network = shipped::open(&NetworkOptions::default())?;
        let licence = Some(shipped::LICENCE.to_owned());
        cards.insert(0, Card::of(&network, shipped::SIZE as u64, licence)?);
        Ok((cards, broken))
    }

    /// Those that were added.
    fn added(&self) -> Result<(Vec<Card>, Vec<Error>)> {
        let mut names = Vec::new();
        match fs_err::read_dir(&self.folder) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry?;
                    if entry.path().is_dir() {
                        names.extend(entry.file_name().into_string());
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        names.sort();
        let (mut cards, mut broken) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|name| is_name(name)) {
            match self.card(name) {
                Ok(card) => cards.push(card),
                Err(error) => broken.push(error),
            }
        }
        Ok((cards, broken))
    }

    /// The card of an added network.
    fn card(&self, name: &str) -> Result<Card> {
        let path = self.folder.join(name).join(CARD);
        let size = fs_err::metadata(&path)?.len();
        if size > MOST_CARD {
            let what = "the card of a network".to_owned();
            return Err(Error::TooLarge { path, what, bytes: size, most: MOST_CARD });
        }
        let text = fs_err::read_to_string(&path)?;
        let broken = |reason: String| Error::malformed(&path, format!("the card {reason}"));
        let card: Card = serde_json::from_str(&text)
            .map_err(|error| broken(format!("can't be read: {error}")))?;
        NetworkDescription::from_json(&card.network.to_json()).map_err(broken)?;
        let file = card.network.path.as_deref().map(Path::new);
        let plain = file.is_some_and(|file| file.file_name() == Some(file.as_os_str()));
        if card.version != Card::VERSION || card.network.name != name || !plain {
            return Err(broken("contradicts itself, or is of a later version".to_owned()));
        }
        Ok(card)
    }

    /// Stores a network under a name, with the files of weights it refers to. It is run once before, so
    /// that what does not work is not stored.
    pub fn add(
        &self,
        file: &Path,
        name: &str,
        options: &NetworkOptions,
        licence: Option<String>,
    ) -> Result<Card> {
        let place = self.folder.join(name);
        if !is_name(name) || name == shipped::NAME || place.exists() {
            let reason = if is_name(name) {
                "is the name of a network that is at hand already"
            } else {
                "is no name: letters, digits, '-', '_' and '.' inside make one, 64 at most"
            };
            return Err(Error::NetworkName { name: name.to_owned(), reason });
        }
        let bytes = fs_err::read(file)?;
        let weights = if is_onnx(file) { weight_files(file, &bytes)? } else { BTreeMap::new() };
        let network = FrozenNetwork::open(file, options)?.named(name);
        try_out(&network)?;
        let mut size = bytes.len() as u64;
        for path in weights.values() {
            size += fs_err::metadata(path)?.len();
        }
        let mut card = Card::of(&network, size, licence)?;
        let own = file.file_name().and_then(|it| it.to_str()).unwrap_or("network.onnx");
        card.network.path = Some(own.to_owned());
        // whole or not at all: the folder gets its name when all is in it
        fs_err::create_dir_all(&self.folder)?;
        let aside = self.folder.join(format!(".{name}.{}.tmp", std::process::id()));
        let stored = store(&aside, own, &bytes, &weights, &card)
            .and_then(|()| Ok(fs_err::rename(&aside, &place)?));
        if stored.is_err() {
            let _ = fs_err::remove_dir_all(&aside);
        }
        stored.map(|()| card)
    }

    /// Opens the network that is asked for, else the one that the model was taught with; for a model that
    /// has learned nothing, the one that ships.
    pub fn open(&self, asked: &Asked<'_>, taught: Taught<'_>) -> Result<FrozenNetwork> {
        let options = match taught {
            Taught::Described(described) => asked.options.clone().or(described),
            _ => asked.options.clone(),
        };
        if let Some(named) = asked.network {
            return self.open_named(named, &as_before(options, taught, named), taught);
        }
        match taught {
            Taught::Nothing => shipped::open(&options),
            Taught::Features => Err(Error::UnknownNetwork),
            Taught::Hash(hash) => self.open_by_hash(hash, None, asked, &options),
            Taught::Described(described) => {
                self.open_by_hash(&described.hash, Some(described), asked, &options)
            }
        }
    }

    /// A network of this name, or a file.
    fn open_named(
        &self,
        named: &Path,
        options: &NetworkOptions,
        taught: Taught<'_>,
    ) -> Result<FrozenNetwork> {
        if named.is_file() {
            return FrozenNetwork::open_if(named, options, |hash| taught.check_hash(hash));
        }
        let name = named.to_str().unwrap_or_default();
        if name == shipped::NAME {
            taught.check_hash(shipped::HASH)?;
            return shipped::open(options);
        }
        if is_name(name) && self.folder.join(name).is_dir() {
            let card = self.card(name)?;
            taught.check_hash(&card.network.hash)?;
            return self.open_card(&card, options);
        }
        let (cards, _) = self.added()?;
        let added = cards.iter().map(|card| card.network.name.as_str());
        let names: Vec<&str> = std::iter::once(shipped::NAME).chain(added).collect();
        let expected = format!("the file of a network, or a name: {}", names.join(", "));
        Err(Error::Missing { path: named.to_owned(), expected })
    }

    /// An added network.
    fn open_card(&self, card: &Card, options: &NetworkOptions) -> Result<FrozenNetwork> {
        let Card { network, .. } = card;
        let file = self.folder.join(&network.name).join(network.path.as_deref().unwrap_or(CARD));
        let options = options.clone().or(network);
        let changed = || Error::malformed(&file, "the file is not the one that was added");
        let opened = FrozenNetwork::open_if(&file, &options, |hash| {
            if hash == network.hash { Ok(()) } else { Err(changed()) }
        })?;
        Ok(opened.named(&network.name))
    }

    /// The network with this hash, wherever it is now.
    fn open_by_hash(
        &self,
        hash: &str,
        described: Option<&NetworkDescription>,
        asked: &Asked<'_>,
        options: &NetworkOptions,
    ) -> Result<FrozenNetwork> {
        if hash == shipped::HASH {
            return shipped::open(options);
        }
        let (cards, _) = self.added()?;
        if let Some(card) = cards.iter().find(|card| card.network.hash == hash) {
            return self.open_card(card, options);
        }
        let last = described.and_then(|it| it.path.as_deref()).map(PathBuf::from);
        let file = last.as_deref().and_then(Path::file_name);
        let near = file.zip(asked.near).map(|(file, near)| near.join(file));
        let places: Vec<PathBuf> = last.into_iter().chain(near).collect();
        let taught = Taught::Hash(hash);
        for path in places.iter().filter(|path| path.is_file()) {
            let opened = FrozenNetwork::open_if(path, options, |found| taught.check_hash(found));
            match (opened, described) {
                // another file of this name
                (Err(Error::Method(ivoro::Error::OtherNetwork { .. })), _) => {}
                (opened, Some(described)) => return Ok(opened?.named(&described.name)),
                (opened, None) => return opened,
            }
        }
        let name =
            described.map_or("a network without a name", |described| described.name.as_str());
        let (name, hash) = (name.to_owned(), hash.to_owned());
        let places = places.into_iter().chain([self.folder.clone()]);
        let looked_in = places.map(|path| path.display().to_string()).collect();
        Err(Error::NetworkNotFound { name, hash, looked_in })
    }
}

/// Models of version 0.1 know a hash and no fit: their photos were stretched where the file of an ONNX
/// network did not say better.
fn as_before(options: NetworkOptions, taught: Taught<'_>, file: &Path) -> NetworkOptions {
    match taught {
        Taught::Hash(_) if is_onnx(file) && options.fit.is_none() => {
            let how = options.fitting.how.or(Some(FitHow::Stretch));
            NetworkOptions { fitting: Fitting { how, ..options.fitting }, ..options }
        }
        _ => options,
    }
}

/// Runs a network on a grey image of its size.
fn try_out(network: &FrozenNetwork) -> Result<()> {
    let described = network.describe_queries()?;
    let (height, width, channels) = (described.height, described.width, described.mean.len());
    let shape = Shape { height, width, channels };
    let layers: Vec<usize> = (0..network.backbone().layers().len()).collect();
    let found = network.backbone().features(&vec![128; shape.len()], shape, &layers)?;
    for (features, (name, _)) in found.iter().zip(network.backbone().layers()) {
        if let Some(value) = features.as_slice().iter().find(|value| !value.is_finite()) {
            let what = format!("the value {name} of a grey image has {value}");
            return Err(Error::Engine { what });
        }
    }
    Ok(())
}

/// Writes the files of a network into a new folder.
fn store(
    folder: &Path,
    name: &str,
    bytes: &[u8],
    weights: &BTreeMap<String, PathBuf>,
    card: &Card,
) -> Result<()> {
    fs_err::create_dir(folder)?;
    fs_err::write(folder.join(name), bytes)?;
    for (name, path) in weights {
        let copy = folder.join(name);
        copy.parent().map_or(Ok(()), fs_err::create_dir_all)?;
        fs_err::copy(path, copy)?;
    }
    let text = serde_json::to_vec_pretty(card)
        .map_err(|error| Error::malformed(&folder.join(CARD), error.to_string()))?;
    Ok(write_atomically(&folder.join(CARD), |file| Ok(std::io::Write::write_all(file, &text)?))?)
}

/// Whether a text can be the name of a network and of its folder.
fn is_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(fine) && !name.starts_with(['.', '-'])
}
