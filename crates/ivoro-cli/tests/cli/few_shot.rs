use ivoro_eval::few_shot::FewShotRecord;

use crate::harness::Place;

const FEW: &str = "few-shot data.features --shots 2,5,all --draws 2 --orders 3 --out out";

fn record(place: &Place) -> FewShotRecord {
    serde_json::from_slice(&std::fs::read(place.path("out/few-shot.json")).unwrap()).unwrap()
}

#[test]
fn draws_and_orders_give_a_table_a_record_and_csv() {
    let place = Place::new();
    let out = place.ivoro(&format!("{FEW} --variants iVoro-NW,default --peers ncm")).good();
    assert!(out.contains("6 classes, 24 test samples"), "{out}");
    let rows: Vec<&str> = out.lines().filter(|line| line.contains("  iVoro-NW  ")).collect();
    assert_eq!(rows.len(), 6, "{out}");
    // rows in another order change nothing
    assert!(rows[..3].iter().all(|row| row.contains("0.00 (0.00)")), "{out}");
    assert!(rows[3..].iter().all(|row| row.contains("lambda")), "{out}");
    let record = record(&place);
    assert_eq!(record.trials.len(), 3 * (2 + 2 + 1) * 3);
    let sizes: Vec<usize> = record.trials[..15].iter().map(|trial| trial.samples).collect();
    assert_eq!((sizes[0], sizes[6], sizes[12]), (12, 30, 72));
    assert!(record.trials[0].chosen.contains_key("lambda"), "{:?}", record.trials[0]);
    let csv = std::fs::read_to_string(place.path("out/few-shot.csv")).unwrap();
    assert_eq!(csv.lines().count(), 46);
    let again = place.ivoro("few-shot data.features --shots 2 --variants iVoro --csv").good();
    assert_eq!(again.lines().count(), 6);
}

#[test]
fn finished_trials_are_not_run_again() {
    let place = Place::new();
    place.ivoro(&format!("{FEW} --variants iVoro-N")).good();
    let before = record(&place);
    // more is asked for: what was there stays to the last digit of its seconds
    place.ivoro(&format!("{FEW} --variants iVoro-N,iVoro")).good();
    let after = record(&place);
    assert_eq!(after.trials[..before.trials.len()], before.trials);
    assert_eq!(after.trials.len(), 2 * before.trials.len());
    // less is asked for: the file keeps the rest
    let out = place.ivoro("few-shot data.features --shots 5 --draws 2 --variants iVoro --out out");
    assert_eq!(out.good().lines().filter(|line| line.contains("iVoro")).count(), 2);
    assert_eq!(record(&place).trials.len(), after.trials.len());
    let other = place.ivoro(&format!("{FEW} --variants iVoro --seed 3")).bad(2);
    assert!(other.contains("trials of other data, settings"), "{other}");
}

#[test]
fn senseless_shots_are_refused() {
    let place = Place::new();
    for shots in ["0", "few", "2,2"] {
        let error = place.ivoro(&format!("few-shot data.features --shots {shots}")).bad(2);
        assert!(error.contains("shots"), "{error}");
    }
}
