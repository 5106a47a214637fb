use ivoro_eval::record::RunRecord;

use crate::harness::{Place, samples};

const HEADER: &str =
    "method,average,last,forgetting_pass,forgetting_pycil,bytes_per_class,seconds,views";

const QUICK: &str = "--iterations 5 --lift 20 --ranpac-dim 30 --protocol 2,2,2";

#[test]
fn the_table_for_scripts_has_one_row_a_method_under_the_name_asked_for() {
    let place = Place::new();
    let out = place
        .ivoro(&format!(
            "run data.features --variants iVoro,iVoro-NDAIL --peers ncm,ranpac --csv - {QUICK}"
        ))
        .good();
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, ["iVoro", "iVoro-NDAIL", "ncm", "ranpac"]);
    for row in &rows {
        assert_eq!(row.len(), 8);
        for cell in &row[1..5] {
            let (_, decimals) = cell.split_once('.').unwrap();
            assert_eq!(decimals.len(), 2, "{cell}");
            assert!((-100.0..=100.0).contains(&cell.parse::<f64>().unwrap()), "{cell}");
        }
        assert!(row[5].parse::<u64>().unwrap() > 0);
        assert!(row[6].parse::<f64>().unwrap() >= 0.0);
    }
    assert_eq!(rows.iter().map(|row| row[7]).collect::<Vec<_>>(), ["1", "4", "1", "1"]);
    // means and nearest-mean are the same method
    assert_eq!(rows[0][1..5], rows[2][1..5]);
}

#[test]
fn letters_behind_a_peer_are_a_method_of_their_own() {
    let place = Place::new();
    let run = |peers: &str| {
        place.ivoro(&format!("run data.features --variants none --peers {peers} --out o {QUICK}"))
    };
    run("ncm,ncm-AIL,all-L").good();
    let read = |name: &str| std::fs::read_to_string(place.path("o").join(name)).unwrap();
    let record: RunRecord = serde_json::from_str(&read("run.json")).unwrap();
    let of = |name: &str| {
        let method = record.methods.iter().find(|method| method.name == name).unwrap();
        (method.views, method.layers)
    };
    assert_eq!(of("ncm"), (Some(1), Some(1)));
    assert_eq!(of("ncm-AIL"), (Some(4), Some(2)));
    assert_eq!(of("anacp-L"), (Some(1), Some(2)));
    let summary = read("summary.csv");
    let line = |name: &str| summary.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("ncm,").ends_with(",1") && line("ncm-AIL,").ends_with(",4"), "{summary}");
    let refused = run("ncm-F").bad(2);
    assert!(refused.contains("ncm-F") && refused.contains("0m"), "{refused}");
    let refused = run("all-F").bad(2);
    assert!(refused.contains("no method fits these features"), "{refused}");
}

#[test]
fn a_record_without_the_settings_of_newer_peers_is_continued() {
    let place = Place::new();
    let run = |peers: &str| {
        place.ivoro(&format!("run data.features --variants none --peers {peers} --out o {QUICK}"))
    };
    run("ncm").good();
    let path = place.path("o/run.json");
    let mut record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    record["options"]["peers"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("klda"));
    record["methods"][0].as_object_mut().unwrap().remove("views");
    std::fs::write(&path, record.to_string()).unwrap();
    let done = run("ncm,slda");
    assert!(done.err.contains("holds 1 finished methods"), "{}", done.err);
    assert!(done.good().contains("ncm         1"));
}

#[test]
fn the_table_can_go_to_a_file_and_people_get_theirs() {
    let place = Place::new();
    let out =
        place.ivoro(&format!("run data.features --variants iVoro --csv table.csv {QUICK}")).good();
    assert!(out.starts_with("data.features  protocol 2+2x2  order numpy:1993"), "{out}");
    let table = std::fs::read_to_string(place.path("table.csv")).unwrap();
    assert!(table.starts_with(&format!("{HEADER}\niVoro,")), "{table}");
}

#[test]
fn json_is_the_record() {
    let place = Place::new();
    let out = place.ivoro(&format!("run data.features --variants iVoro-N --json {QUICK}")).good();
    let record: RunRecord = serde_json::from_str(&out).unwrap();
    assert_eq!(record.phases, [2, 2, 2]);
    assert_eq!(record.methods.len(), 1);
    assert_eq!((record.methods[0].name.as_str(), record.methods[0].phases.len()), ("iVoro-N", 3));
    assert_eq!(record.classes.len(), 6);
    assert!(record.methods[0].choices.iter().any(|choice| choice.setting == "lambda"));
}

#[test]
fn several_orders_give_a_list_of_records() {
    let place = Place::new();
    let orders = "--order identity,7,numpy:1993";
    let out = place.ivoro(&format!("run data.features --variants iVoro --json {orders} {QUICK}"));
    let records: Vec<RunRecord> = serde_json::from_str(&out.good()).unwrap();
    let names: Vec<&str> = records.iter().map(|record| record.order.as_str()).collect();
    assert_eq!(names, ["identity", "7", "numpy:1993"]);
}

#[test]
fn finished_methods_are_not_run_again() {
    let place = Place::new();
    let command = format!("run data.features --variants iVoro,iVoro-W --out results {QUICK}");
    place.ivoro(&command).good();
    let read = |name: &str| std::fs::read_to_string(place.path("results").join(name)).unwrap();
    let record: RunRecord = serde_json::from_str(&read("run.json")).unwrap();
    assert!(read("summary.csv").starts_with(HEADER));
    assert_eq!(read("phases.csv").lines().count(), 1 + 2 * 3);
    // the same seconds: nothing was measured again
    let more = command.replace("iVoro,iVoro-W", "iVoro,iVoro-W,iVoro-R");
    let again = place.ivoro(&more);
    assert!(
        again.err.contains("holds 2 finished methods; they are not run again"),
        "{}",
        again.err
    );
    again.good();
    let longer: RunRecord = serde_json::from_str(&read("run.json")).unwrap();
    assert_eq!(longer.methods.len(), 3);
    assert_eq!(longer.methods[..2], record.methods[..]);
    // another comparison begins anew
    let other = place.ivoro(&more.replace("2,2,2", "3,3"));
    assert!(!other.err.contains("finished methods"), "{}", other.err);
    assert_eq!(other.code, Some(0));
}

#[test]
fn a_damaged_record_is_run_again() {
    let place = Place::new();
    let command = format!("run data.features --variants iVoro --out results {QUICK}");
    place.ivoro(&command).good();
    let path = place.path("results").join("run.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    place.ivoro(&command).good();
    let record: RunRecord = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(record.methods.len(), 1);
}

#[test]
fn the_number_of_threads_changes_nothing_but_the_time() {
    let place = Place::new();
    let rows = |threads: usize| {
        let variants = "--variants iVoro-NDAIL,iVoro-NKWR --peers all";
        let out = place
            .ivoro(&format!("run data.features --threads {threads} {variants} --csv - {QUICK}"));
        let rows = out.good();
        let cells = |row: &str| row.split(',').map(str::to_owned).collect::<Vec<_>>();
        let without_seconds = |row: &str| [&cells(row)[..6], &cells(row)[7..]].concat();
        rows.lines().map(without_seconds).collect::<Vec<_>>()
    };
    assert_eq!(rows(1), rows(3));
}

#[test]
fn a_file_without_a_test_part_is_divided_and_that_is_said() {
    let place = Place::new();
    place.write("all.features", &crate::harness::samples(3, 0..6, 10), None);
    let done = place.ivoro(&format!("run all.features --variants iVoro --json {QUICK}"));
    assert!(done.err.contains("0.2 of each class held out as test, seed 1993"), "{}", done.err);
    let record: RunRecord = serde_json::from_str(&done.good()).unwrap();
    assert!(record.split.contains("held out"));
    let tested: usize = record.methods[0].phases[2].by_class.iter().map(|class| class.tested).sum();
    assert_eq!(tested, 12);
}

#[test]
fn other_data_under_the_same_name_is_no_finished_work() {
    let place = Place::new();
    let run = |more: &str| {
        place.ivoro(&format!("run data.features --variants iVoro --out o {QUICK} {more}"))
    };
    run("").good();
    let first = std::fs::read_to_string(place.path("o/run.json")).unwrap();
    assert!(run("").err.contains("holds 1 finished methods"));
    // the same numbers, and two classes of the training part exchanged
    let (train, test) = (samples(1, 0..6, 12), samples(2, 0..6, 4));
    let changed = train.relabel(&[1, 0, 2, 3, 4, 5], train.classes().to_vec().into()).unwrap();
    place.write("data.features", &changed, Some(&test));
    let done = run("");
    assert!(done.err.contains("o/run.json was of other data"), "{}", done.err);
    done.good();
    assert_eq!(std::fs::read_to_string(place.path("o/run.json.before")).unwrap(), first);
    assert!(run("--seed 5").err.contains("it is now o/run.json.before"));
}

#[test]
fn tables_of_a_folder_hold_what_its_record_holds() {
    let place = Place::new();
    for variants in ["iVoro,iVoro-N", "iVoro-D"] {
        place.ivoro(&format!("run data.features --variants {variants} --out o {QUICK}")).good();
    }
    let record: RunRecord =
        serde_json::from_str(&std::fs::read_to_string(place.path("o/run.json")).unwrap()).unwrap();
    let summary = std::fs::read_to_string(place.path("o/summary.csv")).unwrap();
    let names: Vec<&str> =
        summary.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(names, record.methods.iter().map(|it| it.name.as_str()).collect::<Vec<_>>());
    assert_eq!(names, ["iVoro-D", "iVoro", "iVoro-N"]);
}

#[test]
fn every_list_of_classes_has_a_record_of_its_own() {
    let place = Place::new();
    std::fs::write(place.path("a.txt"), "fox eel dog cat bee ant").unwrap();
    std::fs::write(place.path("b.txt"), "0 1 2 3 4 5").unwrap();
    let run = |orders: &str| {
        place.ivoro(&format!("run data.features --variants iVoro --out o --order {orders} {QUICK}"))
    };
    run("a.txt,b.txt").good();
    let mut names: Vec<String> = std::fs::read_dir(place.path("o"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("run-"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("run-list-of-6-"), "{names:?}");
    std::fs::write(place.path("c.txt"), "0 1 2").unwrap();
    for (orders, sentence) in [
        ("1,1", "order 1 is given twice"),
        ("nowhere.txt", "there is no such file"),
        ("c.txt", "class order c.txt: 3 entries for 6 classes"),
    ] {
        let text = run(orders).bad(2);
        assert!(text.contains(sentence), "{text}");
    }
}
