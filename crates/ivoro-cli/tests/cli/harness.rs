//! One folder with features, and the program run in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ivoro::{Matrix, Points, Samples, View};
use ivoro_io::features::write_features;
use tempfile::TempDir;

/// Class names of the features.
pub(crate) const CLASSES: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

/// A folder of its own for each test.
pub(crate) struct Place {
    folder: TempDir,
}

/// What a command did.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// The message of a command that must have failed like this and printed no result.
    #[track_caller]
    pub(crate) fn bad(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        self.err
    }
}

impl Place {
    /// A folder with `data.features`: training and test samples of all classes.
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write("data.features", &samples(1, 0..6, 12), Some(&samples(2, 0..6, 4)));
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Names in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn write(&self, name: &str, train: &Samples, test: Option<&Samples>) {
        write_features(&self.path(name), Some(train), test, false, &BTreeMap::new()).unwrap();
    }

    /// The program with these arguments, to be run in the folder.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ivoro"));
        command.current_dir(self.folder()).args(arguments.split_whitespace());
        // not the networks of whoever runs the tests
        command.env("IVORO_NETWORKS", self.path("networks"));
        command
    }

    /// Runs the program with arguments of any kind.
    pub(crate) fn ivoro_with(&self, arguments: &[&str]) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ivoro"));
        Done::of(command.current_dir(self.folder()).args(arguments).output().unwrap())
    }

    /// Runs the program; no argument holds a space.
    pub(crate) fn ivoro(&self, arguments: &str) -> Done {
        Done::of(self.command(arguments).output().unwrap())
    }
}

/// Two layers and four rotations of some classes, well apart.
pub(crate) fn samples(seed: u64, classes: std::ops::Range<u32>, each: usize) -> Samples {
    let labels: Vec<u32> = classes.flat_map(|class| std::iter::repeat_n(class, each)).collect();
    let mut state = seed;
    let mut noise = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let mut blocks = Vec::new();
    for dim in [5usize, 3] {
        for view in 0..4usize {
            let mut data = Vec::with_capacity(labels.len() * dim);
            for &label in &labels {
                let at = |col: usize| (label as usize * 7 + col * 5 + view) % 6;
                data.extend((0..dim).map(|col| at(col) as f32 + noise()));
            }
            blocks.push(Matrix::new(labels.len(), dim, data).unwrap());
        }
    }
    let layers = vec!["last".to_owned(), "third".to_owned()];
    let classes = CLASSES.map(str::to_owned).into();
    let points = Points::new("samples", layers, View::ROTATIONS.to_vec(), blocks).unwrap();
    Samples::new(points, labels, classes).unwrap()
}
