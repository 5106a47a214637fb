use ivoro::{Matrix, Samples};
use serde_json::Value;

use crate::harness::{CLASSES, Done, Place, samples};

impl Place {
    /// Teaches `model` classes of the data.
    pub(crate) fn learn(&self, model: &str, classes: &str, more: &str) -> Done {
        // a setting that acts under no variant that is chosen among is refused
        let few = if more.contains("--variant") { "--iterations 5" } else { "" };
        self.ivoro(&format!("learn {model} data.features --classes {classes} {few} {more}"))
    }

    pub(crate) fn inspect(&self, model: &str) -> Value {
        serde_json::from_str(&self.ivoro(&format!("inspect {model} --json")).good()).unwrap()
    }

    fn answers(&self, model: &str) -> Vec<Value> {
        let out = self.ivoro(&format!("predict {model} data.features --format jsonl")).good();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn bytes(&self, model: &str) -> Vec<u8> {
        std::fs::read(self.path(model)).unwrap()
    }
}

#[test]
fn a_model_is_taught_in_phases_and_asked() {
    let place = Place::new();
    let out = place.learn("m.ivoro", "ant,bee,cat", "").good();
    assert!(
        out.starts_with("m.ivoro: learned 3 classes from 36 samples; now 3 classes in 1 phase"),
        "{out}"
    );
    assert!(out.contains("lambda = "), "{out}");
    place.learn("m.ivoro", "dog,eel,fox", "").good();
    let model = place.inspect("m.ivoro");
    assert_eq!(model["phases"], serde_json::json!([3, 3]));
    // the variant that suits the samples, with its reason
    let chosen = &model["choices"][0];
    assert_eq!((&chosen["setting"], &chosen["value"]), (&"variant".into(), &model["variant"]));
    let line = format!(
        "  variant = {}  (first within one standard error of the least log loss",
        model["variant"].as_str().unwrap()
    );
    assert!(out.contains(&line), "{out}");
    let answers = place.answers("m.ivoro");
    assert_eq!(answers.len(), 24);
    let right = answers.iter().filter(|a| a["top"][0]["class"] == a["label"]).count();
    assert!(right >= 20, "{right} of 24");
    assert_eq!(answers[0]["top"].as_array().unwrap().len(), 3);
    assert_eq!(place.names(), ["data.features", "m.ivoro"]);
}

#[test]
fn predictions_as_csv_with_rejection_and_bursts() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat,dog", "").good();
    let done =
        place.ivoro("predict m.ivoro data.features --format csv --top 2 --reject 0.05 --burst 4");
    assert!(done.err.contains("6 burst queries of 4"), "{}", done.err);
    let out = done.good();
    let mut lines = out.lines();
    assert_eq!(
        lines.next(),
        Some(
            "row,label,unknown,uncertainty,strangeness,burst,approximate,\
             class_1,distance_1,probability_1,class_2,distance_2,probability_2"
        )
    );
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let starts: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(starts, ["0", "4", "8", "12", "16", "20"]);
    for row in &rows {
        assert!(
            ["true", "false"].contains(&row[2]) && row[5] == "4" && row[6] == "false",
            "{row:?}"
        );
    }
    // the classes never learned are stranger than those learned
    let strangeness = |row: &Vec<&str>| row[4].parse::<f64>().unwrap();
    let known = rows[..4].iter().map(strangeness).fold(0.0, f64::max);
    assert!(rows[4..].iter().all(|row| strangeness(row) > known), "{rows:?}");
}

#[test]
fn an_update_is_the_same_as_having_had_all_samples() {
    let place = Place::new();
    let all = samples(1, 0..6, 12);
    let half = |first: usize| all.select(&(first..all.len()).step_by(2).collect::<Vec<_>>());
    place.write("first.features", &half(0), None);
    place.write("second.features", &half(1), None);
    let fixed = "--variant iVoro-NW --lambda 0.5 --ridge 1 --shift 0";
    place.ivoro(&format!("learn a.ivoro data.features {fixed}")).good();
    place.ivoro(&format!("learn b.ivoro first.features {fixed}")).good();
    let out = place.ivoro("update b.ivoro second.features").good();
    assert!(out.contains("ant: 6 samples added"), "{out}");
    let (a, b) = (place.inspect("a.ivoro"), place.inspect("b.ivoro"));
    assert_eq!(a["classes"], b["classes"]);
    for (a, b) in place.answers("a.ivoro").iter().zip(place.answers("b.ivoro")) {
        for (a, b) in a["top"].as_array().unwrap().iter().zip(b["top"].as_array().unwrap()) {
            assert_eq!((&a["class"], &a["distance"]), (&b["class"], &b["distance"]));
        }
    }
}

#[test]
fn an_update_says_that_probes_stay() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro-D").good();
    let done = place.ivoro("update m.ivoro data.features --classes ant");
    assert!(done.err.contains("note: probes of iVoro-D stay those of their phase"), "{}", done.err);
    assert_eq!(done.good(), "ant: 12 samples added\n");
}

#[test]
fn forgetting_is_exact_or_refused() {
    let place = Place::new();
    let fixed = "--variant iVoro-NW --scatter per-class --lambda 0.5 --ridge 1 --shift 0";
    place.learn("kept.ivoro", "ant,bee,cat", fixed).good();
    assert_eq!(place.ivoro("forget kept.ivoro bee").good(), "forgot bee; 2 classes remain\n");
    place.learn("never.ivoro", "ant,cat", fixed).good();
    let kept = ivoro_io::load(&place.path("kept.ivoro")).unwrap();
    assert!(kept.head() == ivoro_io::load(&place.path("never.ivoro")).unwrap().head());

    place.learn("pooled.ivoro", "ant,bee", "--variant iVoro-W --scatter pooled").good();
    let before = place.bytes("pooled.ivoro");
    insta::assert_snapshot!(place.ivoro("forget pooled.ivoro bee").bad(1), @"
    error: class bee can't be forgotten exactly: W keeps one scatter for all classes together; learn with the scatter kept per class
    hint: its samples (`ivoro retract MODEL FEATURES --classes NAME`) or their receipts (`ivoro forget --receipt FILE`) can be taken out; a model begun with `--scatter per-class` or `compact` needs neither
    ");
    assert_eq!(place.bytes("pooled.ivoro"), before);

    place.learn("probed.ivoro", "ant,bee,cat", "--variant iVoro-D").good();
    insta::assert_snapshot!(place.ivoro("forget probed.ivoro bee").bad(1), @"
    error: class bee can't be forgotten exactly: the probe of its phase was trained on it and other classes; drop the probes of that phase: its classes keep their exact means
    hint: `ivoro forget --drop-probes`
    ");
    place.ivoro("forget probed.ivoro bee --drop-probes").good();
    assert_eq!(place.inspect("probed.ivoro")["phases"], serde_json::json!([2]));
}

#[test]
fn a_model_is_not_emptied() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let before = place.bytes("m.ivoro");
    insta::assert_snapshot!(place.ivoro("forget m.ivoro ant bee").bad(2), @"error: these are all classes of the model; delete the file instead");
    insta::assert_snapshot!(place.ivoro("forget m.ivoro ant yak").bad(2), @"error: class yak is not in the model");
    assert_eq!(place.bytes("m.ivoro"), before, "one class that can't be forgotten keeps all");
}

#[test]
fn two_sites_merge_into_the_pooled_model() {
    let place = Place::new();
    let fixed = "--variant iVoro-NW --lambda 0.5 --ridge 1 --shift 0";
    place.learn("base.ivoro", "ant,bee", fixed).good();
    for (site, classes) in [("a", "cat,dog"), ("b", "eel,fox")] {
        std::fs::copy(place.path("base.ivoro"), place.path(&format!("{site}.ivoro"))).unwrap();
        place.learn(&format!("{site}.ivoro"), classes, "").good();
    }
    insta::assert_snapshot!(place.ivoro("merge a.ivoro b.ivoro --out ab.ivoro").bad(2), @"
    error: the models can't be merged: class ant has the same statistics in both, so both seem to hold the same samples; name the model both started from
    hint: `ivoro merge … --ancestor MODEL`
    ");
    assert!(!place.path("ab.ivoro").exists());
    let out = place.ivoro("merge a.ivoro b.ivoro --ancestor base.ivoro --out ab.ivoro").good();
    insta::assert_snapshot!(out, @"
    b.ivoro: 2 classes added, 2 combined
    ab.ivoro: 6 classes
    ");
    place.learn("a.ivoro", "eel,fox", "").good();
    let joint = ivoro_io::load(&place.path("a.ivoro")).unwrap();
    assert!(joint.head() == ivoro_io::load(&place.path("ab.ivoro")).unwrap().head());
}

#[test]
fn a_class_forgotten_at_one_site_is_forgotten_in_the_merged_model() {
    let place = Place::new();
    place.learn("base.ivoro", "ant,bee", "--variant iVoro").good();
    for (site, classes) in [("a", "cat"), ("b", "dog")] {
        std::fs::copy(place.path("base.ivoro"), place.path(&format!("{site}.ivoro"))).unwrap();
        place.learn(&format!("{site}.ivoro"), classes, "").good();
    }
    place.ivoro("forget b.ivoro ant").good();
    let out = place.ivoro("merge a.ivoro b.ivoro --ancestor base.ivoro --out ab.ivoro").good();
    insta::assert_snapshot!(out, @"
    b.ivoro: 1 class added, 1 combined
    forgotten since the ancestor: ant
    ab.ivoro: 3 classes
    ");
    let out = place.ivoro("merge b.ivoro a.ivoro --ancestor base.ivoro --out ba.ivoro").good();
    assert!(out.ends_with("forgotten since the ancestor: ant\nba.ivoro: 3 classes\n"), "{out}");
}

#[test]
fn a_merge_overwrites_nothing_unless_told() {
    let place = Place::new();
    place.learn("a.ivoro", "ant,bee", "--variant iVoro").good();
    place.learn("b.ivoro", "cat,dog", "--variant iVoro").good();
    let before = place.bytes("a.ivoro");
    for out in ["a.ivoro", "b.ivoro", "data.features"] {
        let text = place.ivoro(&format!("merge a.ivoro b.ivoro --out {out}")).bad(2);
        assert_eq!(text, format!("error: {out}: is there already; --force replaces it\n"));
    }
    assert_eq!(place.bytes("a.ivoro"), before);
    place.ivoro("merge a.ivoro b.ivoro --out a.ivoro --force").good();
    assert_eq!(place.inspect("a.ivoro")["classes"].as_array().unwrap().len(), 4);
}

/// Sites that began on their own choose settings of their own: those that act when a query is asked do
/// not stand in the way.
#[test]
fn models_with_other_settings_merge_where_that_is_exact() {
    let place = Place::new();
    let fixed = "--variant iVoro-NW --lambda 0.5 --shift 0";
    place.learn("a.ivoro", "ant,bee", &format!("{fixed} --ridge 1")).good();
    place.learn("b.ivoro", "cat,dog", &format!("{fixed} --ridge 3")).good();
    insta::assert_snapshot!(place.ivoro("merge a.ivoro b.ivoro --out ab.ivoro").good(), @"
    b.ivoro: 2 classes added, 0 combined
    ridge differs: 1 in a.ivoro, 3 in b.ivoro
    settings are those of a.ivoro
    ab.ivoro: 4 classes
    ");
    place.learn("one.ivoro", "ant,bee", &format!("{fixed} --ridge 1")).good();
    place.learn("one.ivoro", "cat,dog", "").good();
    let head = |name: &str| ivoro_io::load(&place.path(name)).unwrap().head().clone();
    assert!(head("ab.ivoro") == head("one.ivoro"));
    let out = place.ivoro("merge a.ivoro b.ivoro --settings-of b.ivoro --out theirs.ivoro").good();
    assert!(out.contains("settings are those of b.ivoro"), "{out}");
    place.learn("two.ivoro", "ant,bee", &format!("{fixed} --ridge 3")).good();
    place.learn("two.ivoro", "cat,dog", "").good();
    assert!(head("theirs.ivoro") == head("two.ivoro"));
    let text = place.ivoro("merge a.ivoro b.ivoro --settings-of two.ivoro --out no.ivoro").bad(2);
    assert!(text.contains("--settings-of two.ivoro: is none of the models to merge"), "{text}");
}

#[test]
fn models_of_other_points_are_refused_in_a_sentence() {
    let place = Place::new();
    place.learn("a.ivoro", "ant,bee", "--variant iVoro-NW --lambda 0.5 --scatter pooled").good();
    place.learn("b.ivoro", "cat,dog", "--variant iVoro-NW --lambda 0.7 --scatter pooled").good();
    place.learn("c.ivoro", "cat,dog", "--variant iVoro-NW --lambda 0.5 --scatter per-class").good();
    place.learn("d.ivoro", "cat,dog", "--variant iVoro-N --lambda 0.5").good();
    place
        .ivoro("learn e.ivoro data.features --variant iVoro-NW --lambda 0.5 --layers third")
        .good();
    let refused = |other: &str| place.ivoro(&format!("merge a.ivoro {other} --out x.ivoro")).bad(2);
    insta::assert_snapshot!(refused("b.ivoro"), @"
    error: the models can't be merged: what is kept of a sample depends on lambda, which is 0.5 in one and 0.7 in the other
    hint: begin the models of all sites alike: from one model, or with the same settings
    ");
    insta::assert_snapshot!(refused("c.ivoro"), @"
    error: the models can't be merged: what is kept of a sample depends on scatter, which is pooled in one and per-class in the other
    hint: begin the models of all sites alike: from one model, or with the same settings
    ");
    insta::assert_snapshot!(refused("d.ivoro"), @"
    error: the models can't be merged: the variant differs: iVoro-NW and iVoro-N
    hint: begin the models of all sites alike: from one model, or with the same settings
    ");
    insta::assert_snapshot!(refused("e.ivoro"), @"
    error: the models can't be merged: the list of layers differs: last (5) in blocks of 5 and third (3) in blocks of 3
    hint: begin the models of all sites alike: from one model, or with the same settings
    ");
}

/// From 100,000 classes on an index answers, and every output says so.
#[test]
fn answers_of_an_index_are_labelled() {
    let place = Place::new();
    let count = 100_000u32;
    let at = |class: u32| [(class % 317) as f32, (class / 317) as f32];
    let points = (0..count).flat_map(at).collect();
    let points = Matrix::new(count as usize, 2, points).unwrap();
    let many = Samples::single("many", points, (0..count).collect(), count as usize).unwrap();
    place.write("many.features", &many, Some(&many.select(&[5, 99_999])));
    place.ivoro("learn m.ivoro many.features --variant iVoro").good();
    assert_eq!(place.inspect("m.ivoro")["search"], "index");
    let done = place.ivoro("predict m.ivoro many.features --format jsonl");
    assert!(
        done.err.starts_with("note: answers come from an index and can be wrong"),
        "{}",
        done.err
    );
    let answers = |text: String| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let exact = place.ivoro("predict m.ivoro many.features --format jsonl --exact");
    assert!(!exact.err.contains("index"), "{}", exact.err);
    for (found, exact) in answers(done.good()).iter().zip(answers(exact.good())) {
        assert_eq!((&found["approximate"], &exact["approximate"]), (&true.into(), &false.into()));
        assert_eq!(found["top"][0]["class"], exact["top"][0]["class"]);
        assert_eq!(found["top"][0]["class"], found["label"]);
    }
}

#[test]
fn the_audit_lists_every_number() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro-WDR --scatter pooled").good();
    insta::assert_snapshot!(place.ivoro("audit m.ivoro").good(), @"
    owner      what                                      numbers  bytes
    ───────────────────────────────────────────────────────────────────
    class ant  count of samples                                1      8
    class ant  sum of features                                 5     40
    class ant  sum of squared lengths                          1     16
    class bee  count of samples                                1      8
    class bee  sum of features                                 5     40
    class bee  sum of squared lengths                          1     16
    phase 0    probe centres (D)                              10     40
    phase 0    displacements of centres (R)                   10     40
    model      second moments, all classes together (W)       25    200

    408 bytes in all, 204 per class; besides, whatever was learned: class names, settings and how they were chosen, 48 numbers of its calibration, a range of values for each block, a journal of 1 entry (ivoro log)
    not kept:
      no image and no feature vector of any sample
      no file name or path of any sample; of time, in the journal, only when each lesson was given
      no number per sample: the size of a model does not depend on how many samples it learned
      no weight of the network: it stays where it is, frozen
      no receipt: it goes to whoever gave the samples, and the receipt of few samples reveals their features
    ");
    let json: Value = serde_json::from_str(&place.ivoro("audit m.ivoro --json").good()).unwrap();
    let sum: u64 =
        json["kept"].as_array().unwrap().iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
    assert_eq!(json["bytes"], sum);
    assert_eq!(place.inspect("m.ivoro")["bytes"], sum);
}

#[test]
fn inspect_says_what_a_model_is() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro3").good();
    place.learn("m.ivoro", "cat", "").good();
    let out = place.ivoro("inspect m.ivoro").good();
    assert!(
        out.starts_with("m.ivoro  iVoro3\nlayers    third (3)\nphases    2 + 1 classes\n"),
        "{out}"
    );
    for class in &CLASSES[..3] {
        assert!(out.contains(&format!("{class}         12\n")), "{out}");
    }
}

#[test]
fn a_start_that_does_not_know_the_common_classes_is_no_start() {
    let place = Place::new();
    let scatter = "--variant iVoro";
    place.learn("start.ivoro", "ant,bee", scatter).good();
    place.learn("start.ivoro", "cat", "").good();
    for (site, more) in [("a.ivoro", "dog"), ("b.ivoro", "eel")] {
        std::fs::copy(place.path("start.ivoro"), place.path(site)).unwrap();
        place.learn(site, more, "").good();
    }
    place.learn("other.ivoro", "fox,eel", scatter).good();
    let merge = |start: &str| place.ivoro(&format!("merge a.ivoro b.ivoro --out m.ivoro {start}"));
    for start in ["", "--ancestor other.ivoro"] {
        let text = merge(start).bad(2);
        assert!(text.contains("name the model both started from"), "{text}");
        assert!(!place.path("m.ivoro").exists());
    }
    assert!(merge("--ancestor start.ivoro").good().contains("m.ivoro: 5 classes"));
    assert_eq!(place.inspect("m.ivoro")["classes"][0]["samples"], 12);
}

#[test]
fn a_class_that_is_named_twice_is_forgotten_once() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat", "").good();
    let out = place.ivoro("forget m.ivoro cat ant cat").good();
    assert_eq!(out, "forgot ant, cat; 1 class remains\n");
}

#[test]
fn bursts_of_different_objects_count_for_nothing() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat,dog,eel,fox", "").good();
    // there are four test samples of each class, one class after the other
    let done = place.ivoro("predict m.ivoro data.features --format csv --burst 3");
    assert!(done.err.contains("4 bursts have rows of different labels"), "{}", done.err);
    assert!(done.err.contains("8 burst queries of 3: 100.00 % right"), "{}", done.err);
    let labels: Vec<String> =
        done.good().lines().skip(1).map(|l| l.split(',').nth(1).unwrap().to_owned()).collect();
    assert_eq!(labels, ["ant", "", "", "cat", "dog", "", "", "fox"]);
    let done = place.ivoro("predict m.ivoro data.features --burst 1000");
    assert!(done.err.contains("1 burst has rows of different labels"), "{}", done.err);
}

/// Columns of the table that would say the same in every row are left out, the others explained; CSV and
/// JSON keep theirs.
#[test]
fn the_table_has_the_columns_that_say_something() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat", "--variant iVoro").good();
    place.learn("views.ivoro", "ant,bee,cat", "--variant iVoro-AI").good();
    let header = |arguments: &str| {
        let done = place.ivoro(&format!("predict {arguments}"));
        let err = done.err.clone();
        let header = done.good().lines().next().unwrap().to_owned();
        (header.split_whitespace().skip(4).collect::<Vec<_>>().join(" "), err)
    };
    assert_eq!(header("m.ivoro data.features").0, "runner-up unknown");
    assert_eq!(header("m.ivoro data.features --top 1").0, "unknown");
    let (columns, err) = header("m.ivoro data.features --burst 2");
    assert_eq!(columns, "runner-up HV unknown burst");
    assert!(err.contains("burst: how many rows") && err.contains("HV: how much"), "{err}");
    let (columns, err) = header("views.ivoro data.features");
    assert_eq!(columns, "runner-up HV unknown");
    assert!(err.contains("HV: how much") && !err.contains("burst"), "{err}");
    let help = place.ivoro("predict --help").good();
    for word in ["HV ", "strangeness ", "burst ", "probability "] {
        assert!(help.contains(&format!("\n  {word}")), "{word}: {help}");
    }
    assert!(!place.ivoro("predict -h").good().contains("\n  strangeness"));
}

#[test]
fn inspect_says_the_settings_in_use_and_which_were_chosen() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat", "--variant iVoro-NW --lambda 0.5").good();
    let out = place.ivoro("inspect m.ivoro").good();
    assert!(out.contains("\nlambda    0.5\n") && out.contains("\nscatter   pooled\n"), "{out}");
    assert!(out.lines().any(|l| l.starts_with("ridge ") && l.contains("(chosen on ")), "{out}");
    assert!(!out.contains("beta"), "{out}");
}

#[test]
fn names_can_not_steer_the_terminal() {
    let place = Place::new();
    let data = samples(1, 0..2, 6);
    let names = ["\u{1b}[2Jant", "bee\nfox"].map(String::from).to_vec();
    let data = data.relabel(&[0, 1, 0, 0, 0, 0], names.into()).unwrap();
    place.write("steer.features", &data, Some(&data));
    place.ivoro("learn s.ivoro steer.features --variant iVoro").good();
    for command in ["inspect s.ivoro", "audit s.ivoro", "predict s.ivoro steer.features"] {
        let out = place.ivoro(command).good();
        assert!(!out.contains('\u{1b}') && out.contains("\\u{1b}[2Jant"), "{out}");
        assert!(out.contains("bee\\nfox"), "{out}");
    }
    assert!(!place.ivoro("forget s.ivoro \u{1b}[2Jbee").bad(2).contains('\u{1b}'));
}

#[test]
fn a_sealed_model_is_small_and_is_told_what_it_refuses() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat", "--variant iVoro-Q --rank 2").good();
    let right = |model: &str| {
        place.answers(model).iter().filter(|a| a["top"][0]["class"] == a["label"]).count()
    };
    let before = right("m.ivoro");
    let out = place.ivoro("seal m.ivoro --out s.ivoro").good();
    assert!(
        out.starts_with("s.ivoro: sealed 3 of 3 classes, 2 directions of 8 bits each\n"),
        "{out}"
    );
    assert!(right("s.ivoro").abs_diff(before) <= 1 && before >= 10);
    let kept = |model: &str| place.inspect(model)["bytes"].as_u64().unwrap();
    assert!(kept("s.ivoro") < kept("m.ivoro"));
    let refused = place.ivoro("update s.ivoro data.features --classes ant").bad(2);
    assert!(refused.contains("class ant is sealed"), "{refused}");
    place.learn("s.ivoro", "dog", "").good();
    place.ivoro("forget s.ivoro bee").good();
    let audit = place.ivoro("audit s.ivoro").good();
    assert!(audit.contains("centre, whitened") && audit.contains("metric that sealed"), "{audit}");
    let out = place.ivoro("seal m.ivoro --class bee").good();
    assert!(out.contains("2 classes keep their sums"), "{out}");
    assert_eq!(place.inspect("m.ivoro")["settings"]["rank"], 2);
}
