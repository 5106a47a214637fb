use std::collections::HashSet;
use std::io::Write as _;

use ivoro_eval::picture::{Embedding, Scene, ScenePhase, Site};
use ivoro_eval::record::{MethodRecord, RunRecord};
use ivoro_report::{Inputs, Report, build};

use crate::made::{drawn, method, record, report, report_with};

const METHODS: [&str; 9] = [
    "iVoro",
    "iVoro-N",
    "iVoro-AC",
    "iVoro-AI",
    "iVoro3",
    "iVoro-NWAI",
    "fecam",
    "PASS",
    "iCaRL-CNN",
];
const PHASES: [usize; 6] = [50, 10, 10, 10, 10, 10];

#[test]
fn every_number_links_to_its_run_and_stands_beside_the_papers() {
    let page = report(&[record("CIFAR-100", &PHASES, &METHODS)]).html;
    // iVoro: accuracies 50, 47, … 35, so 42.5 on average; the paper has 66.39 and 56.05
    assert!(page.contains("42.50"), "average");
    assert!(page.contains("paper 66.39 (−23.89)"), "difference of the average");
    assert!(page.contains("paper 56.05 (−21.05)"), "difference of the last");
    assert!(page.contains("paper 8.17"), "forgetting");
    let targets: HashSet<&str> =
        page.split("id=\"").skip(1).filter_map(|p| p.split('"').next()).collect();
    let links = page.split("href=\"#").skip(1).filter_map(|part| part.split('"').next());
    let mut count = 0;
    for link in links {
        assert!(targets.contains(link), "{link}");
        count += 1;
    }
    assert!(count > 2 * METHODS.len());
}

#[test]
fn what_keeps_samples_is_set_apart_and_never_the_best() {
    let page = report(&[record("CIFAR-100", &PHASES, &METHODS)]).html;
    let table = page.split("Table 1 (paper").nth(1).unwrap();
    let table = &table[..table.find("</table>").unwrap()];
    let kept = table.find("Keep samples").unwrap();
    let free = table.find("Keep no sample").unwrap();
    let row = table.find("iCaRL-CNN").unwrap();
    assert!(kept < row && row < free);
    // iCaRL-CNN has the highest number of all, 58 − 15; the mark is at PASS, the next
    let marks: Vec<usize> = table.match_indices("●").map(|(at, _)| at).collect();
    assert_eq!(marks.len(), 2);
    let pass = table.find(">PASS<").unwrap();
    assert!(marks.iter().all(|mark| *mark > pass && *mark < pass + 600), "{table}");
    assert!(page.contains("keeps 20 samples per class"));
}

#[test]
fn a_glance_comes_first_and_names_the_best_of_each_kind() {
    let page = report(&[record("CIFAR-100", &PHASES, &METHODS)]).html;
    let glance = page.split("<section id=\"glance\">").nth(1).unwrap();
    let glance = &glance[..glance.find("<section id=\"tables\">").unwrap()];
    let row = |name: &str| {
        let rest = glance.split(&format!("<bdi>{name}</bdi><small>")).nth(1);
        rest.map(|rest| &rest[..rest.find("</tr>").unwrap()])
    };
    assert!(row("iVoro-NWAI").unwrap().starts_with("the best variant"));
    assert!(row("fecam").unwrap().contains("frozen features"));
    assert!(row("iCaRL-CNN").unwrap().starts_with("the best that keeps images"));
    assert!(row("iVoro-N").is_none(), "neither the best nor the plain one");
    // the best of all is the best that keeps no sample
    assert!(row("PASS").unwrap().contains('●') && !row("iCaRL-CNN").unwrap().contains('●'));
    assert!(glance.contains("<svg"), "a figure");
}

#[test]
fn protocols_that_the_paper_does_not_have_are_folded_where_there_are_many() {
    let sizes = |base: usize, count: usize, step: usize| -> Vec<usize> {
        std::iter::once(base).chain(std::iter::repeat_n(step, count)).collect()
    };
    let records: Vec<_> = [(50, 5, 10), (50, 10, 5), (40, 20, 3), (40, 12, 5), (30, 14, 5)]
        .map(|(base, count, step)| record("CIFAR-100", &sizes(base, count, step), &["iVoro"]))
        .into();
    let line = "Further protocols of <bdi>CIFAR-100</bdi>: <bdi>40+12x5</bdi>, <bdi>30+14x5</bdi>";
    let phases = |page: &str| {
        let start = page.find("<section id=\"phases\">").unwrap();
        page[start..page.find("<section id=\"protocols\">").unwrap()].to_owned()
    };
    let page = phases(&report(&records).html);
    let folded = &page[page.find(line).expect("a line that names them")..];
    assert!(folded.contains("CIFAR-100, 30+14x5") && !folded.contains("CIFAR-100, 40+20x3"));
    assert!(!phases(&report(&records[..4]).html).contains("Further protocols"));
    // of a data set that the paper does not have nothing is folded
    let own: Vec<_> = (2..9).map(|base| record("own", &sizes(base, 2, 3), &["iVoro"])).collect();
    let page = report(&own).html;
    assert!(!page.contains("Further protocols") && page.contains("Protocols, part 1 of 2"));
}

#[test]
fn several_orders_become_mean_and_deviation() {
    let (first, mut second) =
        (record("CIFAR-100", &PHASES, &["iVoro"]), record("CIFAR-100", &PHASES, &["iVoro"]));
    second.order = "7".to_owned();
    second.methods[0] = method("iVoro", &PHASES, 52.0);
    let page = report(&[first, second]).html;
    assert!(page.contains("43.50 ± 1.41"), "mean of 42.5 and 44.5");
    // each of the two is one click away
    let links = page.split("43.50 ± 1.41</a>").nth(1).unwrap();
    let links = &links[..links.find("</td>").unwrap()];
    assert!(links.contains("title=\"run 2 of 2\">b</a>"), "{links}");
    assert!(page.contains("Means over 2 runs."));
}

#[test]
fn which_protocol_matches_the_paper_is_said_plainly() {
    let names = ["iVoro", "iVoro-N", "iCaRL-CNN", "iVoro-AC", "iVoro-NAC", "iVoro-AI"];
    let mut made = record("CIFAR-100", &PHASES, &names);
    // what one image and a burst have; the paper has 56.05, 56.39, 70.63, 72.04 and 50.18
    let set = [(0, 56.0, 70.0), (1, 57.0, 71.0), (3, 58.0, 83.0), (4, 58.0, 84.0), (5, 58.0, 50.5)];
    for (method, single, vote) in set {
        let method = &mut made.methods[method];
        let last = method.phases.last_mut().unwrap();
        (last.accuracy, last.burst.as_mut().unwrap().vote) = (single, vote);
        method.summary = ivoro_eval::record::Summary::of(&method.phases);
    }
    let page = report(&[made]).html;
    let said = |family: &str| -> String {
        let from = page.split(family).nth(1).unwrap_or_else(|| panic!("{family}"));
        from[..from.find("</li>").unwrap()].to_owned()
    };
    let plain = said("<li>Without rotations (2)");
    assert!(plain.contains("differs from the paper by −0.05 to +0.61 points, 4 images"), "{plain}");
    assert!(plain.ends_with("One image per query matches it; bursts do not."), "{plain}");
    let turned = said("<li>With AC, where four rotations of the image vote (2)");
    assert!(
        turned.ends_with("Neither matches it; it lies between the two for 2 of 2."),
        "{turned}"
    );
    let added = said("<li>With AI, where distances of four rotations are added (1)");
    assert!(added.ends_with("Bursts match it; one image per query does not."), "{added}");
    // what keeps samples is in the table alone, marked
    assert!(page.contains("iCaRL-CNN (keeps samples)"));
}

#[test]
fn protocols_of_the_paper_without_a_record_are_listed() {
    let page = report(&[record("CIFAR-100", &PHASES, &["iVoro"])]).html;
    let missing = page.split("Protocols of the paper that no record is of").nth(1).unwrap();
    let missing = &missing[..missing.find("</p>").unwrap()];
    assert!(missing.contains("CIFAR-100, 50+10x5; CIFAR-100, 40+20x3"), "{missing}");
    assert!(missing.contains("TinyImageNet") && !missing.contains("50+5x10"), "{missing}");
}

#[test]
fn the_tables_are_there_as_csv() {
    let (first, mut second) =
        (record("CIFAR-100", &PHASES, &METHODS), record("CIFAR-100", &PHASES, &["iVoro"]));
    second.methods[0] = method("iVoro", &PHASES, 52.0);
    let third = record("a, \"b\"", &PHASES, &["fecam"]);
    let csv = report(&[first, second, third]).csv;
    let lines: Vec<&str> = csv.lines().collect();
    let fields = lines[0].split(',').count();
    assert_eq!(lines.len(), 1 + METHODS.len() + 1);
    assert!(lines[..=METHODS.len()].iter().all(|line| line.split(',').count() == fields), "{csv}");
    let own = "CIFAR-100,50+5x10,iVoro,variant,true,2,43.50,1.41,36.00,1.41,";
    assert!(lines[1].starts_with(own) && lines[1].ends_with(",66.39,56.05,8.17,false,1"), "{csv}");
    let kept = "CIFAR-100,50+5x10,iCaRL-CNN,baseline,false,1,50.50,,43.00,,";
    assert!(lines.iter().any(|line| line.starts_with(kept)), "{csv}");
    assert!(csv.contains("\"a, \"\"b\"\"\",50+5x10,fecam,peer,true,1,42.50,,"), "{csv}");
}

#[test]
fn a_baseline_that_has_changed_since_is_marked_wherever_it_stands() {
    let mut record = record("CIFAR-100", &PHASES, &["iVoro", "PASS", "LwF", "MUC"]);
    record.options.revision = Some(2);
    record.methods[3].settings = serde_json::json!({"revision": 3});
    let revisions = ["PASS", "LwF", "MUC"].map(|name| (name.to_owned(), 3));
    let present = Inputs { revisions: revisions.into(), ..Inputs::default() };
    let marked = report_with(present, std::slice::from_ref(&record));
    let outdated: Vec<&str> = marked.csv.lines().filter(|line| line.ends_with(",true,1")).collect();
    let named = |line: &str, name: &str| line.contains(&format!(",{name},baseline,"));
    assert_eq!(outdated.len(), 2, "{}", marked.csv);
    assert!(named(outdated[0], "LwF") && named(outdated[1], "PASS"), "{}", marked.csv);
    // the paper's figure still stands beside it, and its lines are drawn under a marked name
    assert!(outdated[1].contains(",63.88,55.75,"), "{}", marked.csv);
    let named = |text: &str| marked.figures.iter().any(|figure| figure.svg().contains(text));
    assert!(named("PASS †") && named("LwF †") && named("MUC") && !named("MUC †"));
    assert!(marked.html.contains("† Trained before"));
    // also where single images and bursts stand side by side
    assert!(marked.html.contains("<bdi>LwF †</bdi>"));
    assert_eq!(marked.html.matches("</a> †").count(), 6, "average, last and forgetting of two");
    let plain = report(&[record]);
    assert!(!plain.html.contains('†'));
}

#[test]
fn results_of_an_earlier_revision_are_left_out_where_there_are_present_ones() {
    let of = |revision: u64, accuracy: f64| {
        let mut one = record("CIFAR-100", &PHASES, &["iVoro"]);
        let settings = serde_json::json!({ "revision": revision });
        one.methods.push(MethodRecord { settings, ..method("LwF", &PHASES, accuracy) });
        one
    };
    let present = || Inputs { revisions: [("LwF".to_owned(), 3)].into(), ..Inputs::default() };
    let both = report_with(present(), &[of(2, 20.0), of(3, 60.0), of(2, 30.0)]);
    assert!(both.csv.contains(",LwF,baseline,true,1,52.50,,45.00,"), "{}", both.csv);
    assert!(!both.html.contains("</a> †") && !both.html.contains("† Trained before"));
    assert_eq!(both.html.matches("(† it has changed since)").count(), 2);
    let left_out = both.notes.iter().filter(|note| note.contains("LwF: of an earlier revision"));
    assert_eq!(left_out.count(), 2, "{:?}", both.notes);
    // without a present one they are what there is, and marked
    let old = report_with(present(), &[of(2, 20.0), of(1, 30.0)]);
    assert!(old.csv.contains(",LwF,baseline,true,2,") && old.html.contains("</a> "), "{}", old.csv);
    assert!(old.csv.lines().any(|line| line.contains(",LwF,") && line.ends_with(",true,1")));
}

// before a class paid for its volume its records did not name the setting
#[test]
fn results_with_another_volume_are_not_averaged() {
    let (mut first, mut second) =
        (record("CIFAR-100", &PHASES, &["iVoro-Q"]), record("CIFAR-100", &PHASES, &["iVoro-Q"]));
    first.methods[0].settings = serde_json::json!({"ridge": 0.1});
    second.methods[0].settings = serde_json::json!({"ridge": 0.1, "volume": 0.4});
    let csv = report(&[first, second]).csv;
    assert!(csv.contains(",iVoro-Q,variant,true,1,"), "{csv}");
    assert!(csv.contains(",iVoro-Q · volume 0,variant,true,1,"), "{csv}");
}

// records of whole matrices per class did not name the rank
#[test]
fn results_in_few_directions_are_not_averaged_with_those_of_whole_matrices() {
    let (mut first, mut second) =
        (record("CIFAR-100", &PHASES, &["iVoro-Q"]), record("CIFAR-100", &PHASES, &["iVoro-Q"]));
    first.methods[0].settings = serde_json::json!({"volume": 0.4});
    second.methods[0].settings = serde_json::json!({"volume": 0.4, "rank": 64});
    let csv = report(&[first, second]).csv;
    assert!(csv.contains(",iVoro-Q · 64 directions,variant,true,1,"), "{csv}");
    assert!(csv.contains(",iVoro-Q,variant,true,1,"), "{csv}");
}

/// A record of these protocol and settings.
fn with_options(phases: &[usize], accuracy: f64, options: serde_json::Value) -> RunRecord {
    let mut one = record("digits", phases, &[]);
    one.methods.push(method("iVoro-AC", phases, accuracy));
    one.options = serde_json::from_value(options).unwrap();
    one
}

#[test]
fn one_line_of_a_table_has_one_setting_whatever_the_protocol() {
    let pairs = |pairs: &str| serde_json::json!({"settings": {"pairs": pairs}});
    let csv = report(&[
        with_options(&[2, 2], 60.0, pairs("all")),
        with_options(&[2, 1], 61.0, pairs("all")),
        with_options(&[2, 1], 71.0, pairs("matched")),
    ])
    .csv;
    assert_eq!(csv.matches(",iVoro-AC,variant").count(), 1, "{csv}");
    assert_eq!(csv.matches(",iVoro-AC · pairs all,variant").count(), 2, "{csv}");
}

#[test]
fn rows_that_differ_in_much_do_not_share_a_name() {
    let recipe = |batch: usize, decay: f64, rate: f64, epochs: usize| serde_json::json!({"training": {"recipe": {"batch": batch, "decay": decay, "epochs": epochs, "rate": rate}}});
    let csv = report(&[
        with_options(&[2, 2], 60.0, recipe(8, 0.5, 0.1, 9)),
        with_options(&[2, 2], 70.0, recipe(16, 0.25, 0.1, 8)),
        with_options(&[2, 2], 80.0, recipe(16, 0.25, 0.2, 8)),
    ])
    .csv;
    let mut names: Vec<&str> =
        csv.lines().skip(1).filter_map(|line| line.split(",variant").next()).collect();
    assert_eq!(names.len(), 3, "{csv}");
    assert!(names[0].ends_with(",iVoro-AC"), "the longest training is the usual one: {csv}");
    names.dedup();
    assert_eq!(names.len(), 3, "{csv}");
}

#[test]
fn seconds_of_a_gpu_and_of_a_processor_are_not_compared() {
    let on = |device: &str, seed: f64| {
        let mut one = record("digits", &[2, 2], &["iVoro", "ncm"]);
        let settings = serde_json::json!({"device": device});
        one.methods.push(MethodRecord { settings, ..method("LwF", &[2, 2], 50.0 + seed) });
        one
    };
    let names = |report: &Report| -> Vec<String> {
        let all = report.figures.iter().map(|figure| figure.name().to_owned());
        all.filter(|name| name.starts_with("seconds")).collect()
    };
    assert_eq!(names(&report(&[on("cpu", 0.0)])), ["seconds-digits-2-2"]);
    let both = report(&[on("cuda:0", 0.0), on("cpu", 1.0)]);
    assert_eq!(names(&both), ["seconds-on-a-gpu-digits-2-2", "seconds-on-a-processor-digits-2-2"]);
    let gpu = both.figures.iter().find(|figure| figure.name().contains("gpu")).unwrap();
    assert!(gpu.svg().contains("LwF") && !gpu.svg().contains("ncm"));
}

#[test]
fn a_whole_report_has_every_kind_of_figure_and_all_are_drawn() {
    let mut records = vec![
        record("CIFAR-100", &PHASES, &METHODS),
        record("CIFAR-100", &[40, 10, 10, 10, 10, 10, 10], &METHODS),
    ];
    for lambda in [0.3, 0.5, 1.0] {
        let mut swept = record("CIFAR-100", &PHASES, &["iVoro-N"]);
        let options = serde_json::json!({"given": {"lambda": lambda, "beta": null}});
        swept.options = serde_json::from_value(options).unwrap();
        records.push(swept);
    }
    let report = report(&records);
    let names: Vec<&str> = report.figures.iter().map(ivoro_report::Figure::name).collect();
    for kind in [
        "accuracy-",
        "forgetting-",
        "bursts-",
        "schematic-",
        "lambda-",
        "base-size-",
        "layers-",
        "hv-cifar",
        "hv-gain-",
        "reliability-",
        "risk-coverage-",
        "rejection-",
        "confusion-",
        "bytes-",
        "seconds-",
    ] {
        assert!(names.iter().any(|name| name.starts_with(kind)), "{kind} {names:?}");
    }
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    drawn(&report);
    // what was run with a given λ is no row of the tables
    assert!(!report.html.contains("(lambda 0.3)"));
}

#[test]
fn what_is_missing_is_said_with_the_command_that_makes_it() {
    let page = report(&[record("CIFAR-100", &[3], &["iVoro"])]).html;
    for command in ["ivoro figure tsne", "ivoro figure scene", "--lambda 0.3", "--protocol 40+12x5"]
    {
        let missing = page.split("class=\"missing\"").skip(1);
        assert!(
            missing.into_iter().any(|part| part.split("</p>").next().unwrap().contains(command)),
            "{command}"
        );
    }
    assert!(!page.contains("<svg class=\"figure\" viewBox=\"0 0 420 0\""));
}

#[test]
fn nothing_of_the_paper_stands_beside_a_set_without_a_name() {
    let mut unnamed = record("", &PHASES, &["iVoro"]);
    unnamed.data_set = None;
    unnamed.features = "cifar100.features".to_owned();
    let page = report(&[unnamed]).html;
    assert!(!page.contains("paper 66.39"));
    assert!(page.contains("--data-set NAME"));
}

#[test]
fn settings_chosen_on_test_samples_are_stamped() {
    let mut tuned = record("CIFAR-100", &PHASES, &["iVoro"]);
    tuned.tuned_on_test = true;
    let page = report(&[tuned]).html;
    assert!(page.contains("iVoro (tuned on test)"));
    assert!(page.contains("Settings chosen on test samples"));
}

#[test]
fn settings_chosen_on_test_samples_are_never_the_best() {
    let mut tuned = record("CIFAR-100", &PHASES, &["iVoro-N", "fecam"]);
    tuned.methods = tuned.methods.iter().map(|one| method(&one.name, &PHASES, 90.0)).collect();
    tuned.tuned_on_test = true;
    let honest = record("CIFAR-100", &PHASES, &["iVoro"]);
    let page = report(&[honest, tuned.clone()]).html;
    let marked: Vec<&str> = page.split("class=\"best\"").skip(1).collect();
    assert!(!marked.is_empty());
    for cell in marked {
        let cell = cell.split("</td>").next().unwrap();
        assert!(
            cell.contains("42.50") || cell.contains("35.00") || cell.contains("9.00"),
            "{cell}"
        );
    }
    // alone it is shown, and still not the best
    let page = report(&[tuned]).html;
    assert!(page.contains("82.50") && !page.contains("class=\"best\""));
}

#[test]
fn a_record_that_is_there_twice_is_counted_once() {
    let one = record("CIFAR-100", &PHASES, &["iVoro"]);
    let mut again = one.clone();
    again.methods[0].phases[0].learn_seconds = 77.0;
    again.methods[0].summary.seconds = 90.0;
    let report = report(&[one, again]);
    assert!(report.csv.contains(",iVoro,variant,true,1,42.50,,"), "{}", report.csv);
    assert_eq!(report.notes, ["1/run.json: iVoro: a copy of that in 0/run.json"]);
    assert!(report.html.contains("Counted once"));
}

#[test]
fn compressed_records_scenes_and_embeddings_are_read() {
    let mut inputs = Inputs::default();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(&serde_json::to_vec(&record("MNIST", &[4, 3, 3], &["iVoro"])).unwrap())
        .unwrap();
    inputs.add("mnist/run.json.gz", &packed.finish().unwrap());
    let site = |class: u32, sister: u32| Site {
        at: [class as f32, (class * 7 % 10 + sister) as f32],
        weight: 0.0,
        class,
        sister,
    };
    let samples: Vec<(f32, f32, u32)> = (0..500u16)
        .map(|at| (f32::from(at % 97) / 10.0, f32::from(at % 89) / 10.0, u32::from(at % 10)))
        .collect();
    let phase = ScenePhase {
        accuracy: Some(64.84),
        accuracy_by_phase: vec![Some(90.0), None],
        sites: (0..40).map(|at| site(at / 4, at % 4)).collect(),
        samples: samples.clone(),
    };
    let classes: Vec<String> = (0..10).map(|class| class.to_string()).collect();
    let scene = Scene {
        version: 1,
        data_set: "MNIST".to_owned(),
        method: "iVoro-AC".to_owned(),
        classes: classes.clone(),
        phases: vec![phase],
    };
    inputs.add("mnist.scene.json", &serde_json::to_vec(&scene).unwrap());
    let embedding = Embedding {
        version: 1,
        data_set: "MNIST".to_owned(),
        method: "iVoro".to_owned(),
        perplexity: 30.0,
        classes,
        phases: vec![4, 3, 3],
        points: samples,
        ..Embedding::default()
    };
    inputs.add("mnist.tsne.json", &serde_json::to_vec(&embedding).unwrap());
    assert!(inputs.problems.is_empty(), "{:?}", inputs.problems);
    let report = build(&inputs);
    assert!(report.html.contains("Exact cells of 40 sites with 500 samples. Accuracy 64.8 % (90.0 / – on the classes of each phase)."));
    assert_eq!(
        report.figures.iter().filter(|figure| figure.name().starts_with("tsne-")).count(),
        3
    );
    drawn(&report);
}

#[test]
fn the_same_records_make_the_same_report() {
    let records = [record("CIFAR-100", &PHASES, &METHODS), record("MNIST", &[4, 3, 3], &["iVoro"])];
    let (first, second) = (report(&records), report(&records));
    assert_eq!(first.html, second.html);
    assert_eq!(first.figures[0].png(1.0).unwrap(), second.figures[0].png(1.0).unwrap());
}
