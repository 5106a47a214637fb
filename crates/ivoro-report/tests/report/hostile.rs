use ivoro_eval::picture::{Embedding, Scene, ScenePhase, Site};
use ivoro_eval::record::{MethodRecord, RunRecord, Summary};
use ivoro_report::{Figure, Inputs, Report, build};

use crate::made::{drawn, method, record, report, report_with};

const SCRIPT: &str = "<script>alert(1)</script>";

/// The page has no script, no handler and no address out of a record.
fn assert_harmless(page: &str) {
    let lower = page.to_lowercase();
    assert!(!lower.contains("<script"), "a script");
    assert!(!lower.contains("onerror=") && !lower.contains("onload="), "a handler");
    assert!(!lower.contains("javascript:"), "an address");
    assert!(!lower.contains("http://evil") && !lower.contains("<img"), "a picture from elsewhere");
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_script_in_any_name_is_text() {
    let mut hostile = record("CIFAR-100", &[3, 2], &["iVoro", "iVoro-AI"]);
    let nasty = format!("\"><img src=http://evil onerror=alert(1)>{SCRIPT}'");
    hostile.data_set = Some(nasty.clone());
    hostile.network = Some(nasty.clone());
    hostile.features = nasty.clone();
    hostile.split = nasty.clone();
    hostile.order = nasty.clone();
    hostile.program = nasty.clone();
    hostile.classes = vec![nasty.clone(); 5];
    hostile.methods.push(method(&nasty, &[3, 2], 40.0));
    let mut inputs = Inputs::default();
    inputs.add(&format!("{nasty}/run.json"), &serde_json::to_vec(&hostile).unwrap());
    inputs.add(&format!("{nasty}/run-x.json"), format!("{{\"version\": \"{SCRIPT}\"}}").as_bytes());
    let report = build(&inputs);
    assert!(report.html.contains("&lt;script&gt;"), "the name is still shown");
    // escaped text may hold the words, never the tags
    let tags = report.html.replace("&lt;", "").replace("&gt;", "").replace("&quot;", "");
    assert!(!report.html.contains("<img") && !report.html.contains("<script"));
    assert!(tags.contains("onerror"), "as text");
    for figure in &report.figures {
        assert!(!figure.svg().contains("<script") && !figure.svg().contains("<img"));
        assert!(figure.name().chars().all(|c| c.is_ascii_alphanumeric() || "+-".contains(c)));
    }
    drawn(&report);
}

#[test]
fn a_method_name_can_not_leave_its_folder() {
    let mut record = record("../../../etc", &[3, 2], &["iVoro"]);
    record.protocol = "../../x".to_owned();
    let report = report(&[record]);
    assert!(report.figures.iter().all(|figure| !figure.name().contains(['/', '.', '\\'])));
}

#[test]
fn right_to_left_names_do_not_turn_the_page() {
    let mut turned = record("CIFAR-100", &[3, 2], &["iVoro"]);
    turned.classes[0] = "\u{202e}gpj.exe\u{202c} שלום".to_owned();
    turned.data_set = Some("מבחן \u{2067}abc".to_owned());
    let report = report(&[turned]);
    for mark in ['\u{202e}', '\u{202c}', '\u{2067}'] {
        assert!(!report.html.contains(mark));
        assert!(report.figures.iter().all(|figure| !figure.svg().contains(mark)));
    }
    assert!(report.html.contains("<bdi>מבחן abc</bdi>"));
    drawn(&report);
}

#[test]
fn a_thousand_classes() {
    let mut large = record("large", &[500, 250, 250], &["iVoro", "iVoro-AI", "ncm"]);
    large.classes =
        (0..1000).map(|class| format!("a class with a long name, number {class}")).collect();
    let report = report(&[large]);
    assert!(report.html.contains("10 classes that follow each other share a row"));
    assert_harmless(&report.html);
    drawn(&report);
}

#[test]
fn one_class() {
    let report = report(&[record("small", &[1], &["iVoro", "iVoro-AI"])]);
    assert!(report.html.contains("50.00"));
    drawn(&report);
}

#[test]
fn nothing_at_all() {
    let report = build(&Inputs::default());
    assert!(report.html.contains("Not in these records"));
    assert_harmless(&report.html);
    drawn(&report);
}

#[test]
fn numbers_that_are_none_are_left_out_and_said() {
    let mut broken = record("CIFAR-100", &[3, 2], &["iVoro", "iVoro-AI", "ncm"]);
    for method in &mut broken.methods[..2] {
        for phase in &mut method.phases {
            phase.accuracy = f64::NAN;
            phase.accuracy_by_phase[0] = f64::NAN;
        }
        method.summary = ivoro_eval::record::Summary::of(&method.phases);
        method.summary.bytes_per_class = f64::NAN;
    }
    let report = report(&[broken]);
    assert!(report.html.contains("accuracies that are no percentages; left out of tables"));
    assert!(!report.html.contains("NaN"));
    drawn(&report);
}

#[test]
fn numbers_that_can_not_be_are_left_out_and_said() {
    let phases = [3, 2];
    let good = record("CIFAR-100", &phases, &["iVoro"]);
    let changed = |name: &str, change: &dyn Fn(&mut MethodRecord)| {
        let mut wrong = method(name, &phases, 60.0);
        change(&mut wrong);
        RunRecord { methods: vec![wrong], ..good.clone() }
    };
    let recount = |wrong: &mut MethodRecord| wrong.summary = Summary::of(&wrong.phases);
    let report = report(&[
        good.clone(),
        changed("iVoro-N", &|wrong| wrong.summary.average = 250.0),
        changed("iVoro-D", &|wrong| {
            wrong.phases[1].accuracy = 1e300;
            recount(wrong);
        }),
        changed("iVoro-R", &|wrong| {
            wrong.phases[1].accuracy_by_phase[0] = -5.0;
            recount(wrong);
        }),
        changed("iVoro-W", &|wrong| {
            wrong.phases[1].accuracy_by_phase.clear();
        }),
    ]);
    assert_eq!(
        report.notes,
        [
            "1/run.json: iVoro-N: its summary says 250.00 where its phases give 58.50; left out of tables and figures",
            "2/run.json: iVoro-D: 1 accuracies that are no percentages; left out of tables and figures",
            "3/run.json: iVoro-R: 1 accuracies that are no percentages; left out of tables and figures",
            "4/run.json: iVoro-W: 0 accuracies by phase in phase 2; left out of tables and figures",
        ]
    );
    assert!(
        report.html.contains("5 records, 1 finished method "),
        "the header counts the good one"
    );
    assert_eq!(report.csv.lines().count(), 2, "{}", report.csv);
    drawn(&report);
}

#[test]
fn a_number_that_is_none_in_a_figure_costs_that_number_alone() {
    let mut good = record("CIFAR-100", &[50, 10, 10, 10, 10, 10], &["iVoro", "iVoro-AI"]);
    let last = good.methods[1].phases.last_mut().unwrap();
    last.by_class[3].hv = Some([f64::NAN, 1.0, 2.0, 3.0, 4.0]);
    last.reliability[2].confidence = f64::NAN;
    last.risk_coverage[4][1] = f64::NAN;
    last.rejection_roc[1][0] = f64::NAN;
    last.burst.as_mut().unwrap().sum = f64::NAN;
    let report = report(&[good]);
    assert!(
        report.notes[0]
            .ends_with("iVoro-AI: 5 numbers of its figures that are none; they are left out")
    );
    assert!(report.csv.contains(",iVoro-AI,variant,true,1,43.50,"), "{}", report.csv);
    assert!(!report.html.contains("NaN"));
    crate::made::drawn(&report);
}

#[test]
fn words_that_json_does_not_know_are_read_as_nothing() {
    let good = serde_json::to_string(&record("CIFAR-100", &[3, 2], &["iVoro"])).unwrap();
    let bad = good.replacen("\"accuracy\":50.0", "\"accuracy\":NaN", 1);
    assert_ne!(good, bad);
    let mut inputs = Inputs::default();
    inputs.add("run.json", bad.as_bytes());
    assert!(inputs.problems.is_empty(), "{:?}", inputs.problems);
    let page = build(&inputs).html;
    assert!(page.contains("accuracies that are no percentages"));
}

#[test]
fn records_of_another_version_and_broken_ones_are_named() {
    let mut inputs = Inputs::default();
    let mut newer = record("CIFAR-100", &[3, 2], &["iVoro"]);
    newer.version = 2;
    inputs.add("new/run.json", &serde_json::to_vec(&newer).unwrap());
    inputs.add("torn/run.json", b"{\"version\": 1, \"program\"");
    inputs.add("empty/run.json", b"");
    inputs.add("strange/run.json", b"{\"version\": 1, \"phases\": \"many\"}");
    inputs.add(
        "good/run.json",
        &serde_json::to_vec(&record("CIFAR-100", &[3, 2], &["iVoro"])).unwrap(),
    );
    let page = build(&inputs).html;
    assert!(page.contains("format version 2, this program reads version 1"));
    for file in ["new/run.json", "torn/run.json", "empty/run.json", "strange/run.json"] {
        assert!(page.contains(file), "{file}");
    }
    assert_eq!((inputs.records.len(), inputs.problems.len()), (1, 4));
}

#[test]
fn phases_and_cells_that_are_missing_are_named() {
    let mut stopped = record("CIFAR-100", &[3, 2, 2], &["iVoro", "ncm"]);
    stopped.methods[0].phases.truncate(2);
    stopped.methods[1].phases.clear();
    let mut other = record("CIFAR-100", &[4, 3], &["iVoro", "fecam"]);
    other.methods[1].phases[1].by_class.clear();
    other.methods[1].phases[1].confusion = vec![[99, 0, 1], [0, 99, 1]];
    let empty = RunRecord { methods: Vec::new(), ..record("CIFAR-100", &[5], &[]) };
    let report = report(&[stopped, other, empty]);
    assert!(report.html.contains("iVoro: 2 of 3 phases"));
    assert!(report.html.contains("ncm: 0 of 3 phases"));
    assert!(report.html.contains("no finished method"));
    assert!(report.html.contains("Methods that some protocols lack"));
    drawn(&report);
}

#[test]
fn phases_that_do_not_fit_each_other() {
    let mut odd = record("CIFAR-100", &[3, 2], &["iVoro", "iVoro-AI", "iVoro3"]);
    odd.phases = vec![1];
    odd.classes.truncate(2);
    for phase in &mut odd.methods[1].phases {
        phase.accuracy_by_phase.clear();
        phase.by_class.truncate(1);
        phase.rejection_roc = vec![[f64::MAX, f64::MIN]; 3];
        phase.risk_coverage = vec![[0.0, 0.0]];
    }
    let report = report(&[odd]);
    assert!(report.html.contains("phases of 1 classes, but 2 class names"));
    drawn(&report);
}

#[test]
fn scenes_without_sense() {
    let site = |x: f32, class: u32| Site { at: [x, x], weight: 0.0, class, sister: 9 };
    let scene = |sites: Vec<Site>, samples: Vec<(f32, f32, u32)>| Scene {
        version: 1,
        data_set: SCRIPT.to_owned(),
        method: "m".to_owned(),
        classes: Vec::new(),
        phases: vec![ScenePhase { sites, samples, ..ScenePhase::default() }],
    };
    let mut inputs = Inputs::default();
    let scenes = [
        scene(Vec::new(), Vec::new()),
        scene(vec![site(1.0, 0); 3], Vec::new()),
        scene(vec![site(f32::MAX, 0), site(f32::MIN, 4_000_000_000)], vec![(0.0, 0.0, u32::MAX)]),
        scene(vec![site(0.0, 1), site(1.0, 2)], vec![(1e30, -1e30, 7)]),
    ];
    for (at, scene) in scenes.iter().enumerate() {
        inputs.add(&format!("{at}.scene.json"), &serde_json::to_vec(scene).unwrap());
    }
    assert_eq!(inputs.scenes.len(), 4, "{:?}", inputs.problems);
    let report = build(&inputs);
    assert!(!report.html.contains("<script"));
    drawn(&report);
}

#[test]
fn of_records_without_a_number_no_empty_chart_is_drawn() {
    let mut broken = record("digits", &[2, 2], &["iVoro", "fecam"]);
    for phase in broken.methods.iter_mut().flat_map(|method| &mut method.phases) {
        phase.accuracy = f64::NAN;
    }
    let report = report(&[broken]);
    assert!(!report.figures.iter().any(|figure| figure.name().starts_with("accuracy")));
    assert_eq!(report.html.matches("No method of these records has all its numbers").count(), 2);
    assert!(report.html.contains("left out of tables and figures"));
}

#[test]
fn a_name_is_no_formula_in_a_spreadsheet() {
    let name = "=HYPERLINK(\"http://evil\")\u{202e}";
    let csv = report(&[record(name, &[2, 2], &["iVoro"])]).csv;
    assert!(csv.contains("\n\"'=HYPERLINK(\"\"http://evil\"\")\","), "{csv}");
}

#[test]
fn numbers_behind_a_name_written_from_right_to_left_do_not_turn() {
    let made = |data_set: &str| {
        let record = record(data_set, &[4, 3, 3], &["iVoro", "iVoro-AI"]);
        let points = vec![(0.0, 0.0, 0), (1.0, 1.0, 4), (2.0, 0.0, 7)];
        let site = |x: f32, class: u32| Site { at: [x, x * x], weight: 0.0, class, sister: 0 };
        let phase = ScenePhase {
            sites: vec![site(0.0, 0), site(1.0, 1)],
            samples: points.clone(),
            ..ScenePhase::default()
        };
        let (data_set, method) = (data_set.to_owned(), "iVoro".to_owned());
        let embedding = Embedding {
            version: 1,
            data_set: data_set.clone(),
            method: method.clone(),
            phases: vec![4, 3, 3],
            points,
            ..Embedding::default()
        };
        let mut inputs = Inputs::default();
        inputs.add("a.tsne.json", &serde_json::to_vec(&embedding).unwrap());
        let scene =
            Scene { version: 1, data_set, method, classes: Vec::new(), phases: vec![phase] };
        inputs.add("a.scene.json", &serde_json::to_vec(&scene).unwrap());
        report_with(inputs, &[record])
    };
    let (turned, plain) = (made("שלום مرحبا"), made("digits"));
    let marked = |report: &Report, name: &str| -> Vec<bool> {
        let all = report.figures.iter().map(Figure::title);
        all.filter(|t| t.starts_with(name)).map(|title| title.contains('\u{200e}')).collect()
    };
    let (first, second) = (marked(&turned, "שלום"), marked(&plain, "digits"));
    assert!(first.len() > 7 && first.iter().all(|marked| *marked), "{first:?}");
    assert!(second.len() == first.len() && second.iter().all(|marked| !marked), "{second:?}");
    drawn(&turned);
}

#[test]
fn a_method_that_can_not_be_read_costs_the_others_nothing() {
    let record = record("CIFAR-100", &[2, 2], &["iVoro", "iVoro-N", "fecam"]);
    let mut value = serde_json::to_value(record).unwrap();
    value["methods"][1]["summary"] = "none".into();
    let mut inputs = Inputs::default();
    inputs.add("a/run.json", value.to_string().as_bytes());
    let report = build(&inputs);
    assert!(report.html.contains("methods[1].summary"), "what is wrong, and where");
    assert!(report.csv.contains("fecam") && report.csv.contains(",iVoro,"), "{}", report.csv);
    assert!(!report.csv.contains("iVoro-N"), "{}", report.csv);
}
