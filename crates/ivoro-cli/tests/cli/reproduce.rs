//! A grid as a job: what it stands for, what is done again, and what stops it.

use std::io::Write as _;

use ivoro_eval::record::RunRecord;
use ivoro_io::FileLock;

use crate::harness::{Place, samples};

/// A small grid on the features of a place.
const GRID: &str = r#"
data_set = "made up: <b>"

[common]
protocols = ["2,2,2"]
arguments = ["--iterations", "5"]

[[run]]
orders = ["identity", "numpy:1993"]
variants = ["iVoro", "iVoro-N"]
peers = ["ncm"]

[[run]]
orders = ["identity"]
variants = ["iVoro-N"]
lambdas = [0.3, 0.5]

[[quick]]
orders = ["identity"]
variants = ["iVoro"]
"#;

const RECORD: &str = "runs/made-up---b/2+2x2/identity/heads/run.json";

impl Place {
    fn grid(&self, text: &str) {
        std::fs::write(self.path("grid.toml"), text).unwrap();
    }

    fn reproduce(&self, more: &str) -> crate::harness::Done {
        self.ivoro(&format!("reproduce data.features --grid grid.toml {more}"))
    }

    fn record(&self, name: &str) -> RunRecord {
        serde_json::from_str(&std::fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

#[test]
fn a_grid_is_a_list_of_commands() {
    let place = Place::new();
    place.grid(GRID);
    insta::assert_snapshot!(place.reproduce("--list").good(), @r#"
    ivoro run data.features --data-set 'made up: <b>' --protocol 2,2,2 --order identity --variants iVoro,iVoro-N --peers ncm --iterations 5 --out runs/made-up---b/2+2x2/identity/heads
    ivoro run data.features --data-set 'made up: <b>' --protocol 2,2,2 --order numpy:1993 --variants iVoro,iVoro-N --peers ncm --iterations 5 --out runs/made-up---b/2+2x2/numpy-1993/heads
    ivoro run data.features --data-set 'made up: <b>' --protocol 2,2,2 --order identity --variants iVoro-N --lambda 0.3 --iterations 5 --out runs/made-up---b/2+2x2/identity/heads-lambda-0.3
    ivoro run data.features --data-set 'made up: <b>' --protocol 2,2,2 --order identity --variants iVoro-N --lambda 0.5 --iterations 5 --out runs/made-up---b/2+2x2/identity/heads-lambda-0.5
    "#);
    insta::assert_snapshot!(place.reproduce("--list --quick").good(), @"ivoro run data.features --data-set 'made up: <b>' --protocol 2,2,2 --order identity --variants iVoro --iterations 5 --out runs/made-up---b/2+2x2/identity/quick-heads");
    let said = place.reproduce("--list --device cpu").bad(2);
    assert!(said.contains("data.features holds features: --device is for images"), "{said}");
    let listed = place.ivoro("reproduce mnist --list --quick --cache c --device cpu");
    assert!(listed.err.contains("mnist-recipe.toml is not there yet"), "{}", listed.err);
    let mnist = listed.good();
    assert!(mnist.lines().all(|line| line.ends_with(" --cache c --device cpu")), "{mnist}");
    // nothing was run or written
    assert_eq!(place.names(), ["data.features", "grid.toml"]);
}

#[test]
fn baselines_begin_with_the_network_that_is_named() {
    let place = Place::new();
    place.grid("[[run]]\nprotocols = ['2+2x2']\nbackbone = 'net.safetensors'\nvariants = ['iVoro']\nbaselines = ['ewc', 'pass']\n");
    let listed = place.ivoro("reproduce mnist --grid grid.toml --list").good();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.lines().all(|line| line.contains(" --backbone net.safetensors ")), "{listed}");
    let listed = place.ivoro("reproduce mnist --grid grid.toml --list --backbone other").good();
    assert!(listed.lines().all(|line| line.contains(" --backbone other ")), "{listed}");
}

#[test]
fn the_grids_that_come_with_the_program_cover_the_paper() {
    let place = Place::new();
    let list = |what: &str| -> Vec<String> {
        let text = place.ivoro(&format!("reproduce {what} --list")).good();
        text.lines().map(str::to_owned).collect()
    };
    let cifar = list("cifar100");
    let count = |words: &str| cifar.iter().filter(|line| line.contains(words)).count();
    for protocol in ["50+5x10", "50+10x5", "40+20x3"] {
        // with settings from the base phase, and ours with those of a second network
        assert_eq!(
            count(&format!("--protocol {protocol} --order numpy:1993 --training-seed 2")),
            2
        );
        for baseline in ["fine-tuning", "pass"] {
            assert_eq!(
                cifar
                    .iter()
                    .filter(|line| {
                        line.contains(protocol)
                            && line.contains(&format!("--baselines {baseline} "))
                    })
                    .count(),
                1
            );
        }
    }
    for protocol in ["40+12x5", "30+14x5", "20+16x5", "10+18x5", "10+9x10"] {
        assert!(count(&format!("--protocol {protocol} ")) > 0, "{protocol}");
    }
    for baseline in [
        "ewc",
        "lwf",
        "lwf-mc",
        "lwm",
        "muc",
        "icarl-cnn,icarl-nme",
        "eeil",
        "ucir",
        "rmm-icarl-cnn,rmm-icarl-nme",
        "rmm-ucir",
    ] {
        assert_eq!(count(&format!("--variants none --baselines {baseline} ")), 3, "{baseline}");
    }
    assert_eq!(count("--baselines joint-training "), 1);
    assert_eq!(count("--lambda 0.3") + count("--lambda 0.9"), 2);
    let quick = list("cifar100 --quick");
    assert_eq!(quick.len(), 1);
    assert!(quick[0].contains("--variants all --peers all --backbone networks/resnet18-cifar100"));
    let other = list("cifar100 --quick --backbone mine.safetensors");
    assert!(other[0].contains("--backbone mine.safetensors"), "{other:?}");
    let mnist = list("mnist");
    assert!(mnist.iter().all(|line| line.contains("'MNIST (part)' --protocol 4,3,3")));
    assert!(mnist.iter().any(|line| line.contains("--embedding 2")));
    for baseline in ["ewc", "lwm", "muc", "eeil", "ucir", "rmm-ucir", "joint-training"] {
        let wide = format!("--baselines {baseline} --network small --network-name 'full width'");
        assert!(mnist.iter().any(|line| line.contains(&wide)), "{baseline}");
    }
    let whole = list("mnist --data digits");
    assert!(whole.iter().all(|line| line.starts_with("ivoro run digits --data-set MNIST ")));
    for protocol in ["100+5x20", "100+10x10", "100+20x5"] {
        assert!(list("tinyimagenet").iter().any(|line| line.contains(protocol)), "{protocol}");
    }
    assert_eq!(list("data.features").len(), 1);
    assert_eq!(place.names(), ["data.features"]);
}

#[test]
fn finished_cells_are_not_computed_again_and_others_are() {
    let place = Place::new();
    place.grid(GRID);
    let first = place.reproduce("");
    assert!(first.err.contains("cell 1 of 4: made-up---b/2+2x2/identity/heads"), "{}", first.err);
    assert!(first.err.contains("ivoro report runs --out report"), "{}", first.err);
    first.good();
    let record = place.record(RECORD);
    assert_eq!(record.data_set.as_deref(), Some("made up: <b>"));
    assert_eq!(record.methods.len(), 3);
    let lambda = place.record("runs/made-up---b/2+2x2/identity/heads-lambda-0.3/run.json");
    assert_eq!(lambda.options.given.as_ref().unwrap()["lambda"], 0.3);

    let again = place.reproduce("");
    assert!(again.err.contains("4 of 4 cells are finished and not computed again"));
    assert!(!again.err.contains("\ncell "), "{}", again.err);
    assert_eq!(again.good(), "");

    // a job killed between two methods: the first is kept with the seconds it took
    // and so it is where the record is of a version that did not tell the layers, and compressed
    let mut cut = RunRecord { methods: record.methods[..1].to_vec(), ..record.clone() };
    assert!(cut.options.layers.take().is_some());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&serde_json::to_vec(&cut).unwrap()).unwrap();
    let compressed = place.path(&format!("{RECORD}.gz"));
    std::fs::write(&compressed, packed.finish().unwrap()).unwrap();
    std::fs::remove_file(place.path(RECORD)).unwrap();
    let resumed = place.reproduce("");
    assert!(!compressed.exists(), "all of it is in the new record");
    assert!(resumed.err.contains("3 of 4 cells are finished"), "{}", resumed.err);
    assert!(resumed.err.contains("holds 1 finished methods"), "{}", resumed.err);
    resumed.good();
    let whole = place.record(RECORD);
    assert_eq!(whole.methods.len(), 3);
    assert_eq!(whole.methods[0], record.methods[0]);

    // another command at the same place is another cell
    place.grid(&GRID.replace("\"iVoro\", \"iVoro-N\"", "\"iVoro\", \"iVoro-N\", \"iVoro-W\""));
    let more = place.reproduce("");
    assert!(more.err.contains("2 of 4 cells are finished"), "{}", more.err);
    more.good();
    assert_eq!(place.record(RECORD).methods.len(), 4);
    assert_eq!(place.record(RECORD).methods[0], record.methods[0]);
    place.ivoro("report runs --out report").good();
}

#[test]
fn a_finished_cell_of_other_data_is_computed_again() {
    let place = Place::new();
    place.grid("[[run]]\nprotocols = ['2,2,2']\nvariants = ['iVoro']\n");
    place.reproduce("").good();
    let record = "runs/data/2+2x2/default-order/heads/run.json";
    let first = place.record(record);
    let again = place.reproduce("");
    assert!(again.err.contains("1 of 1 cells are finished"), "{}", again.err);
    // a copy of the same samples is looked at, and nothing is computed
    let bytes = std::fs::read(place.path("data.features")).unwrap();
    std::fs::write(place.path("data.features"), bytes).unwrap();
    let same = place.reproduce("");
    assert!(same.err.contains("holds 1 finished methods"), "{}", same.err);
    assert_eq!(place.record(record), first);
    // other samples are another comparison
    place.write("data.features", &samples(7, 0..6, 12), Some(&samples(8, 0..6, 4)));
    let other = place.reproduce("");
    assert!(other.err.contains("was of other data"), "{}", other.err);
    other.good();
    assert_ne!(place.record(record).options.data, first.options.data);
    // what has lost a number or a table is not finished
    let mut lost = place.record(record);
    lost.methods[0].phases[1].accuracy = f64::NAN;
    std::fs::write(place.path(record), serde_json::to_string(&lost).unwrap()).unwrap();
    place.reproduce("").good();
    assert!(place.record(record).methods[0].phases[1].accuracy.is_finite());
    std::fs::remove_file(place.path("runs/data/2+2x2/default-order/heads/phases.csv")).unwrap();
    place.reproduce("").good();
    assert!(place.path("runs/data/2+2x2/default-order/heads/phases.csv").exists());
}

#[test]
fn a_list_of_classes_that_has_changed_is_seen() {
    let place = Place::new();
    let folder = place.path("all");
    std::fs::create_dir(&folder).unwrap();
    std::fs::rename(place.path("data.features"), folder.join("data.features")).unwrap();
    std::fs::write(folder.join("order.txt"), "0\n1\n2\n3\n4\n5\n").unwrap();
    let grid = "[[run]]\nprotocols = ['2,2,2']\norders = ['all/order.txt']\nvariants = ['iVoro']\n";
    place.grid(grid);
    let run = "reproduce all/data.features --grid grid.toml --out all/runs";
    place.ivoro(run).good();
    assert!(place.ivoro(run).err.contains("1 of 1 cells are finished"));
    std::fs::write(folder.join("order.txt"), "5\n4\n3\n2\n1\n0\n").unwrap();
    let changed = place.ivoro(run);
    assert!(changed.err.contains("cell 1 of 1"), "{}", changed.err);
    changed.good();
}

/// What `numpy.savez` writes of these members.
fn npz(members: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, kind, shape, data) in members {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(format!("{name}.npy"), options).unwrap();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        writer.write_all(b"\x93NUMPY\x01\x00").unwrap();
        writer.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        writer.write_all(header.as_bytes()).unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn an_archive_of_arrays_holds_features_or_images() {
    let place = Place::new();
    let numbers = (0..24u16).flat_map(|at| f32::from(at % 7).to_le_bytes()).collect();
    let labels = (0..12u8).flat_map(|at| i64::from(at % 2).to_le_bytes()).collect::<Vec<u8>>();
    let bytes = npz(&[("X", "<f4", "(12, 2)", numbers), ("y", "<i8", "(12,)", labels)]);
    std::fs::write(place.path("points.npz"), bytes).unwrap();
    let listed = place.ivoro("reproduce points.npz --list").good();
    assert!(listed.contains("run points.npz") && !listed.contains("--training-seed"), "{listed}");
    let said = place.ivoro("reproduce points.npz --list --size 8").bad(2);
    assert!(said.contains("points.npz holds features: --size is for images"), "{said}");
    let part = |name: &str, images: usize| {
        let (pixels, shape) = (vec![7; images * 16], format!("({images}, 4, 4)"));
        [
            (format!("{name}_images"), shape, pixels),
            (format!("{name}_labels"), format!("({images}, 1)"), vec![0; images]),
        ]
    };
    let parts: Vec<(String, String, Vec<u8>)> =
        ["train", "val", "test"].into_iter().flat_map(|name| part(name, 4)).collect();
    let members: Vec<(&str, &str, &str, Vec<u8>)> = parts
        .iter()
        .map(|(name, shape, data)| (name.as_str(), "|u1", shape.as_str(), data.clone()))
        .collect();
    std::fs::write(place.path("pictures.npz"), npz(&members)).unwrap();
    let listed = place.ivoro("reproduce pictures.npz --list --size 8 --skip-broken").good();
    assert!(listed.lines().all(|line| line.contains("--size 8 --skip-broken")), "{listed}");
    assert!(listed.contains("--training-seed"), "{listed}");
}

#[test]
fn what_a_grid_reads_is_looked_for_first() {
    let place = Place::new();
    place.grid("[[run]]\nprotocols = ['2+2x2']\nvariants = ['iVoro']\nrecipe = 'none.toml'\n");
    let said = place.ivoro("reproduce . --grid grid.toml").bad(2);
    assert!(said.contains("none.toml: no such file"), "{said}");
    let said = place.ivoro("reproduce cifar100 --data nowhere").bad(2);
    assert!(said.contains("--data nowhere: no such file or folder\n"), "{said}");
    let said = place.ivoro("reproduce data.features --out data.features").bad(2);
    assert!(said.contains("data.features: a file, not a folder"), "{said}");
    // large letters are no difference
    let listed = place.ivoro("reproduce CIFAR-100 --list --quick").good();
    assert_eq!(listed, place.ivoro("reproduce cifar100 --list --quick").good());
}

#[test]
fn a_job_that_was_killed_goes_on() {
    let place = Place::new();
    place.grid(GRID);
    let mut child = place
        .command("reproduce data.features --grid grid.toml")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // as soon as the first record is there
    while !place.path(RECORD).exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = place.record(RECORD).methods;
    assert!(!kept.is_empty());
    place.reproduce("").good();
    assert_eq!(place.record(RECORD).methods[..kept.len()], kept[..]);
    assert_eq!(place.record(RECORD).methods.len(), 3);
}

#[test]
fn a_cell_that_fails_does_not_stop_the_others() {
    let place = Place::new();
    place.grid(
        r#"
        [[run]]
        protocols = ["2,2,2", "4,4", "3,3"]
        variants = ["iVoro"]
        "#,
    );
    let done = place.reproduce("");
    assert_eq!(done.code, Some(1), "{}", done.err);
    let named =
        "not finished: data/4-4/default-order/heads: protocol 4,4: it has 8 classes, the data 6";
    assert!(done.err.contains(named), "{}", done.err);
    assert!(done.err.contains("2 of 3 cells are finished"), "{}", done.err);
    assert!(done.err.ends_with("error: 1 of 3 runs failed\n"), "{}", done.err);
    assert!(place.path("runs/data/3-3/default-order/heads/run.json").exists());
    // a report names it, with its command, and nothing else
    let missing = || {
        place.ivoro("report runs --out report").good();
        let page = std::fs::read_to_string(place.path("report/index.html")).unwrap();
        let list = page.split("Cells of a grid that are not finished</h3>").nth(1)?;
        Some(list[..list.find("</ul>").unwrap()].to_owned())
    };
    let list = missing().unwrap();
    assert_eq!(list.matches("<li>").count(), 1, "{list}");
    assert!(list.contains("data/4-4/default-order/heads") && list.contains("--protocol 4,4"));
    // a record that is gone is missed too, also after another job in the same folder
    std::fs::remove_dir_all(place.path("runs/data/3-3/default-order/heads")).unwrap();
    place.grid("[[run]]\nprotocols = ['2,4']\nvariants = ['iVoro']\n");
    place.reproduce("").good();
    assert_eq!(missing().unwrap().matches("<li>").count(), 2);
}

#[test]
fn what_is_wrong_with_a_grid_is_said_before_anything_is_run() {
    let place = Place::new();
    let said = |grid: &str, words: &[&str]| {
        place.grid(grid);
        let text = place.reproduce("").bad(2);
        for word in words {
            assert!(text.contains(word), "{grid}\n{text}");
        }
        assert!(!place.path("runs").exists());
    };
    said("[[run]\n", &["grid.toml", "line 1"]);
    said("", &["grid.toml", "[[run]]"]);
    said("[[run]]\nprotocol = [\"2,2,2\"]\n", &["grid.toml", "`protocol`", "`protocols`"]);
    said("[[run]]\nseeds = [\"a\"]\n", &["grid.toml", "seeds", "line 2"]);
    said("[[run]]\nprotocols = [\"2,2,2\"]\n", &["grid.toml: run 1", "variants"]);
    let run = |key: &str, value: &str| {
        format!(
            "[[run]]\nvariants = [\"iVoro\"]\n[[run]]\nname = \"b\"\npeers = [\"ncm\"]\n{key} = [\"{value}\"]\n"
        )
    };
    said(&run("protocols", "2+"), &["grid.toml: run 2: key protocols: protocol 2+"]);
    said(&run("orders", "sorted"), &["grid.toml: run 2: key orders: class order sorted"]);
    said(&run("variants", "iVoro-X"), &["grid.toml: run 2: key variants: variant iVoro-X"]);
    said("[[run]]\npeers = [\"knn\"]\n", &["grid.toml: run 1: key peers", "knn"]);
    said(&run("baselines", "packnet"), &["grid.toml: run 2: key baselines", "packnet", "LwF"]);
    said(&run("arguments", "--no-such"), &["data/default-protocol", "--no-such"]);
    said(
        "[[run]]\npeers = [\"ncm\"]\n[[run]]\nvariants = [\"iVoro\"]\n",
        &["grid.toml: run 2: key name", "default-protocol/default-order/heads"],
    );
    let refused = |arguments: &str, words: &[&str]| {
        let text = place.ivoro(arguments).bad(2);
        words.iter().for_each(|word| assert!(text.contains(word), "{arguments}\n{text}"));
    };
    refused("reproduce cifar10", &["cifar10: no such file", "cifar100"]);
    refused("reproduce cifar10 --list", &["cifar10: no such file", "cifar100"]);
    refused("reproduce cifar100", &["--data", "cifar-100-binary"]);
    refused("reproduce cifar100 --data data.features --quick", &["networks/", "--backbone"]);
    refused("reproduce data.features --backbone x", &["--backbone x"]);
    refused("reproduce data.features --data data.features", &["twice"]);
    refused("reproduce data.features --grid none.toml", &["none.toml"]);
}

#[test]
fn the_reduced_grid_leaves_the_whole_ones_records_alone() {
    let place = Place::new();
    place.grid(GRID);
    place.reproduce("").good();
    let before = std::fs::read(place.path(RECORD)).unwrap();
    place.reproduce("--quick").good();
    assert_eq!(std::fs::read(place.path(RECORD)).unwrap(), before);
    assert!(place.path(&RECORD.replace("heads", "quick-heads")).exists());
    assert!(!place.path(&RECORD.replace("run.json", "run.json.before")).exists());
}

#[test]
fn all_baselines_are_a_cell_for_each_training() {
    let place = Place::new();
    place.grid("[[run]]\nbaselines = [\"all\"]\n");
    let text = place.reproduce("--list").good();
    assert_eq!(text.lines().count(), 13, "{text}");
    assert!(
        text.contains("--baselines icarl-cnn,icarl-nme ") && text.contains("--baselines ucir ")
    );
}

#[test]
fn two_jobs_do_not_share_a_folder() {
    let place = Place::new();
    place.grid(GRID);
    std::fs::create_dir(place.path("runs")).unwrap();
    let lock = FileLock::acquire(&place.path("runs/reproduce")).unwrap();
    let text = place.reproduce("").bad(2);
    assert!(text.contains("runs: another ivoro is writing here"), "{text}");
    place.reproduce("--quick --out other").good();
    drop(lock);
    place.reproduce("--quick").good();
}

#[test]
fn settings_chosen_on_test_samples_are_stamped_everywhere() {
    let place = Place::new();
    let run = "run data.features --variants iVoro,iVoro-NR --protocol 2,2,2 --iterations 5";
    let out = place.ivoro(&format!("{run} --tuned-on-test --out tuned")).good();
    assert!(out.contains("SETTINGS CHOSEN ON THE TEST SAMPLES"), "{out}");
    assert!(out.contains("iVoro-NR (tuned on test)"), "{out}");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let header =
        "method,average,last,forgetting_pass,forgetting_pycil,bytes_per_class,seconds,views\n";
    assert!(read("tuned/summary.csv").starts_with(&format!("{header}iVoro (tuned on test),")));
    assert!(read("tuned/phases.csv").contains("\niVoro-NR (tuned on test),"));
    let record = place.record("tuned/run.json");
    assert!(record.tuned_on_test);
    // each choice was made with the variant itself, and the last one is what the run then reached
    let method = &record.methods[1];
    assert!(method.choices.iter().all(|choice| choice.variant == "iVoro-NR"));
    let scores = &method.choices.last().unwrap().candidates;
    let best = scores.iter().map(|(_, score)| *score).fold(f64::MIN, f64::max);
    assert_eq!(method.summary.last, best);

    let plain = place.ivoro(&format!("{run} --out plain")).good();
    assert!(!plain.contains("SETTINGS") && !read("plain/summary.csv").contains("tuned"));
    assert!(!read("plain/run.json").contains("tuned_on_test"));
    // neither takes over what the other has finished
    let other = place.ivoro(&format!("{run} --out tuned"));
    assert!(!other.err.contains("finished methods"), "{}", other.err);
    let refused = place.ivoro(&format!("{run} --tuned-on-test --peers ncm")).bad(2);
    assert!(refused.contains("--tuned-on-test") && refused.contains("--peers"), "{refused}");
}
