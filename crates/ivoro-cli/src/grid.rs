//! A grid of runs – protocols, orders, seeds, methods – as a TOML file, and the cells it stands for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ivoro_eval::comparison::Method;
use ivoro_eval::{ClassOrder, Protocol};
use ivoro_vision::baselines::Baseline;
use serde::Deserialize;

use crate::failure::Failure;

/// Every baseline, each training a cell of its own.
const ALL: &str = "all";
/// Longest name of a folder that is made of a name in a grid.
const LONGEST_NAME: usize = 80;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grid {
    /// Name of the data set, for records and folders.
    pub(crate) data_set: Option<String>,
    /// Where the data set may lie: the first that exists is taken.
    #[serde(default)]
    pub(crate) data: Vec<PathBuf>,
    /// What holds for every entry that does not say otherwise.
    #[serde(default)]
    common: Entry,
    /// The grid.
    #[serde(default)]
    run: Vec<Entry>,
    /// The reduced grid.
    #[serde(default)]
    quick: Vec<Entry>,
}

/// All combinations of some protocols, orders, seeds and methods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    name: Option<String>,
    protocols: Option<Vec<String>>,
    orders: Option<Vec<String>>,
    seeds: Option<Vec<u64>>,
    variants: Option<Vec<String>>,
    peers: Option<Vec<String>>,
    baselines: Option<Vec<String>>,
    lambdas: Option<Vec<f64>>,
    tuned_on_test: Option<bool>,
    backbone: Option<PathBuf>,
    network: Option<String>,
    network_name: Option<String>,
    embedding: Option<usize>,
    recipe: Option<PathBuf>,
    epochs: Option<usize>,
    views: Option<Vec<String>>,
    arguments: Option<Vec<String>>,
}

/// What a grid leaves open.
pub(crate) struct Setting<'a> {
    /// The grid's file, for messages.
    pub(crate) file: &'a str,
    pub(crate) quick: bool,
    /// The data set.
    pub(crate) data: &'a Path,
    pub(crate) data_set: &'a str,
    /// Folder of all records.
    pub(crate) out: &'a Path,
    pub(crate) backbone: Option<&'a Path>,
    /// Where a recipe that the grid names lies.
    pub(crate) recipe: &'a dyn Fn(&Path) -> PathBuf,
    /// Further words for every cell.
    pub(crate) words: Vec<String>,
    /// Words that change where and how fast something is computed, but not what.
    pub(crate) means: Vec<String>,
}

/// One run: the words that could be typed behind `ivoro`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Where its record goes, from the folder of all records.
    pub(crate) folder: PathBuf,
    /// What is computed.
    pub(crate) words: Vec<String>,
    /// Where and how fast.
    pub(crate) means: Vec<String>,
}

impl Cell {
    /// The whole command, without the name of the program.
    pub(crate) fn command(&self) -> Vec<String> {
        self.words.iter().chain(&self.means).cloned().collect()
    }

    /// The command as it would be typed.
    pub(crate) fn line(&self) -> String {
        let words: Vec<String> = self.command().iter().map(|word| typed(word)).collect();
        format!("ivoro {}", words.join(" "))
    }
}

/// A word for a shell: quoted where it must be.
fn typed(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "+-_./,:=".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A name as a folder.
fn folder_name(name: &str) -> String {
    let letter = |letter: char| {
        let fine = letter.is_alphanumeric() || "+-_.".contains(letter);
        if fine { letter } else { '-' }
    };
    let name: String = name.chars().map(letter).take(LONGEST_NAME).collect();
    // neither hidden nor the folder above
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

impl Grid {
    /// Reads the text of a grid.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Failure> {
        toml::from_str(text)
            .map_err(|error| Failure::Usage(format!("{file}: {}", error.to_string().trim_end())))
    }

    /// Every cell, each once, in the order of the file.
    pub(crate) fn cells(&self, setting: &Setting<'_>) -> Result<Vec<Cell>, Failure> {
        let (entries, key) =
            if setting.quick { (&self.quick, "quick") } else { (&self.run, "run") };
        let wrong = |text: String| Failure::Usage(format!("{}: {text}", setting.file));
        if entries.is_empty() {
            return Err(wrong(format!("no [[{key}]]: the grid is empty")));
        }
        let mut cells: Vec<Cell> = Vec::new();
        let mut places: HashMap<PathBuf, usize> = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let number = at + 1;
            let wrong = |text: String| wrong(format!("{key} {number}: {text}"));
            let entry = entry.clone().or(&self.common);
            entry.check().map_err(wrong)?;
            for cell in entry.cells(setting) {
                match places.get(&cell.folder) {
                    Some(&other) if cells[other] == cell => {}
                    Some(_) => {
                        let folder = cell.folder.display();
                        let text = format!("key name: another run writes into {folder} too");
                        return Err(wrong(text));
                    }
                    None => {
                        places.insert(cell.folder.clone(), cells.len());
                        cells.push(cell);
                    }
                }
            }
        }
        Ok(cells)
    }

    /// The trained networks that entries name.
    pub(crate) fn backbones(&self, quick: bool) -> Vec<PathBuf> {
        let entries = if quick { &self.quick } else { &self.run };
        entries.iter().filter_map(|entry| entry.clone().or(&self.common).backbone).collect()
    }
}

impl Entry {
    /// This entry, with what it leaves out taken from another.
    fn or(self, common: &Self) -> Self {
        macro_rules! either {
            ($($field:ident),*) => {
                Self { $($field: self.$field.or_else(|| common.$field.clone())),* }
            };
        }
        either!(
            name,
            protocols,
            orders,
            seeds,
            variants,
            peers,
            baselines,
            lambdas,
            tuned_on_test,
            backbone,
            network,
            network_name,
            embedding,
            recipe,
            epochs,
            views,
            arguments
        )
    }

    /// What can be known to be wrong before anything is computed, with its key.
    fn check(&self) -> Result<(), String> {
        let names = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let (variants, peers) = (names(&self.variants), names(&self.peers));
        if variants.is_empty() && peers.is_empty() && names(&self.baselines).is_empty() {
            return Err("keys variants, peers, baselines: none names a method".to_owned());
        }
        Method::named(variants.iter().map(String::as_str), [])
            .map_err(|error| format!("key variants: {error}"))?;
        Method::named([], peers.iter().map(String::as_str))
            .map_err(|error| format!("key peers: {error}"))?;
        let baselines = names(&self.baselines);
        for name in baselines.iter().filter(|name| *name != ALL).flat_map(|n| n.split(',')) {
            let parsed: ivoro_vision::Result<Baseline> = name.parse();
            parsed.map_err(|error| format!("key baselines: {error}"))?;
        }
        for protocol in names(&self.protocols) {
            let parsed: ivoro::Result<Protocol> = protocol.parse();
            parsed.map_err(|error| format!("key protocols: {error}"))?;
        }
        for order in names(&self.orders) {
            let parsed: ivoro::Result<ClassOrder> = order.parse();
            if let Err(error) = parsed
                && !Path::new(&order).exists()
            {
                return Err(format!("key orders: {error}"));
            }
        }
        match self.lambdas.iter().flatten().find(|lambda| !lambda.is_finite()) {
            Some(lambda) => Err(format!("key lambdas: {lambda} is no finite number")),
            None => Ok(()),
        }
    }

    fn cells(&self, setting: &Setting<'_>) -> Vec<Cell> {
        let mut cells = Vec::new();
        for protocol in each(self.protocols.as_deref()) {
            for order in each(self.orders.as_deref()) {
                for seed in each(self.seeds.as_deref()) {
                    let place = Place { protocol, order, seed };
                    for work in self.works() {
                        cells.push(self.cell(setting, place, &work));
                    }
                }
            }
        }
        cells
    }

    /// All that is done for one protocol, order and seed.
    fn works(&self) -> Vec<Work> {
        let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
        let (variants, peers) = (list(&self.variants), list(&self.peers));
        let heads = |lambda: Option<f64>| {
            let own = self.name.clone().unwrap_or_else(|| "heads".to_owned());
            let name = lambda.map_or(own.clone(), |lambda| format!("{own}-lambda-{lambda}"));
            let named = if variants.is_empty() { "none".to_owned() } else { variants.clone() };
            let mut words = vec!["--variants".to_owned(), named];
            words.extend(pair("--peers", (!peers.is_empty()).then_some(&peers)));
            words.extend(pair("--lambda", lambda.as_ref()));
            words.extend(self.tuned_on_test.filter(|on| *on).map(|_| "--tuned-on-test".to_owned()));
            Work { name, words }
        };
        let mut works = Vec::new();
        if !(variants.is_empty() && peers.is_empty()) {
            works.extend(each(self.lambdas.as_deref()).map(|lambda| heads(lambda.copied())));
        }
        for baseline in self.baselines.iter().flatten().flat_map(|name| trainings(name)) {
            let name = match &self.name {
                Some(own) => format!("{own}-{baseline}"),
                None => baseline.clone(),
            };
            let words =
                ["--variants", "none", "--baselines", &baseline].map(str::to_owned).to_vec();
            works.push(Work { name, words });
        }
        works
    }

    fn cell(&self, setting: &Setting<'_>, place: Place<'_>, work: &Work) -> Cell {
        // the reduced grid never takes the place of the whole one
        let quick = if setting.quick { "quick-" } else { "" };
        let folder = Path::new(&folder_name(setting.data_set))
            .join(place.protocol())
            .join(place.order_and_seed())
            .join(folder_name(&format!("{quick}{}", work.name)));
        let mut words = vec!["run".to_owned(), setting.data.display().to_string()];
        let data_set = setting.data_set.to_owned();
        words.extend(pair("--data-set", Some(&data_set)));
        words.extend(pair("--protocol", place.protocol));
        words.extend(pair("--order", place.order));
        words.extend(pair("--training-seed", place.seed));
        words.extend(work.words.iter().cloned());
        words.extend(self.network_words(setting));
        words.extend(self.arguments.iter().flatten().cloned());
        words.extend(setting.words.iter().cloned());
        let mut means = pair("--out", Some(&setting.out.join(&folder).display()));
        means.extend(setting.means.iter().cloned());
        Cell { folder, words, means }
    }

    /// What says how the network is made, or which one is taken.
    fn network_words(&self, setting: &Setting<'_>) -> Vec<String> {
        let mut words = Vec::new();
        let backbone = self.backbone.as_deref().map(|own| setting.backbone.unwrap_or(own));
        words.extend(pair("--backbone", backbone.map(Path::display).as_ref()));
        words.extend(pair("--network", self.network.as_ref()));
        words.extend(pair("--network-name", self.network_name.as_ref()));
        words.extend(pair("--embedding", self.embedding.as_ref()));
        let recipe = self.recipe.as_deref().map(setting.recipe);
        words.extend(pair("--recipe", recipe.as_deref().map(Path::display).as_ref()));
        words.extend(pair("--epochs", self.epochs.as_ref()));
        let views = self.views.as_ref().map(|views| views.join(","));
        words.extend(pair("--views", views.as_ref()));
        words
    }
}

/// The names that share a training, together; one name stands for itself.
fn trainings(name: &str) -> Vec<String> {
    if name != ALL {
        return vec![name.to_owned()];
    }
    let named = |baseline: &Baseline| baseline.to_string().to_lowercase();
    let of = |training: Baseline| {
        let same = Baseline::ALL.iter().filter(|baseline| baseline.training() == training);
        same.map(named).collect::<Vec<_>>().join(",")
    };
    let trainings = Baseline::ALL.into_iter().filter(|baseline| baseline.training() == *baseline);
    trainings.map(of).collect()
}

/// Where in the grid a cell stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    protocol: Option<&'a String>,
    order: Option<&'a String>,
    seed: Option<&'a u64>,
}

impl Place<'_> {
    fn protocol(&self) -> String {
        let Some(text) = self.protocol else { return "default-protocol".to_owned() };
        // 4,3,3 and 4+2x3 are one protocol
        let parsed: ivoro::Result<Protocol> = text.parse();
        folder_name(&parsed.map_or(text.clone(), |protocol| protocol.to_string()))
    }

    fn order_and_seed(&self) -> String {
        let order = self.order.map_or("default-order".to_owned(), |order| folder_name(order));
        self.seed.map_or(order.clone(), |seed| format!("{order}-seed{seed}"))
    }
}

/// What is done at one place of the grid.
struct Work {
    name: String,
    words: Vec<String>,
}

/// Each of a list, or nothing once.
fn each<T>(list: Option<&[T]>) -> impl Iterator<Item = Option<&T>> + '_ {
    let list = list.unwrap_or(&[]);
    let none = list.is_empty().then_some(None);
    list.iter().map(Some).chain(none)
}

/// A flag and its value, if there is one.
pub(crate) fn pair(flag: &str, value: Option<&impl ToString>) -> Vec<String> {
    value.map_or(Vec::new(), |value| vec![flag.to_owned(), value.to_string()])
}
