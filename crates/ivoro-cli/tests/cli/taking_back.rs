use ivoro::head::Head;
use serde_json::Value;

use crate::harness::{Done, Place, samples};

/// A variant whose settings are given, so that no choice depends on what was learned.
const FIXED: &str = "--variant iVoro-NW --lambda 0.5 --ridge 1 --shift 0 --scatter pooled";

impl Place {
    fn head(&self, model: &str) -> Head {
        ivoro_io::load(&self.path(model)).unwrap().head().clone()
    }

    /// The program at a time.
    fn at(&self, seconds: u64, arguments: &str) -> Done {
        let mut command = self.command(arguments);
        command.env("SOURCE_DATE_EPOCH", seconds.to_string());
        Done::of(command.output().unwrap())
    }
}

/// A place with `m.ivoro`, `before.ivoro` and `more.features` with samples of ant and bee.
fn place() -> Place {
    let place = Place::new();
    place.write("more.features", &samples(3, 0..2, 5), None);
    place.learn("m.ivoro", "ant,bee,cat", FIXED).good();
    std::fs::copy(place.path("m.ivoro"), place.path("before.ivoro")).unwrap();
    place
}

#[test]
fn a_lesson_is_taken_back() {
    let place = place();
    place.ivoro("update m.ivoro more.features").good();
    place.learn("m.ivoro", "dog", "").good();
    insta::assert_snapshot!(place.ivoro("retract m.ivoro more.features").good(), @"
    ant: 5 samples taken back
    bee: 5 samples taken back
    m.ivoro: 4 classes
    ");
    insta::assert_snapshot!(place.ivoro("retract m.ivoro data.features --classes dog").good(), @"
    dog: 12 samples taken back; none is left, the class is gone
    m.ivoro: 3 classes
    ");
    assert!(place.head("m.ivoro") == place.head("before.ivoro"));
}

#[test]
fn what_was_not_given_is_not_taken() {
    let place = place();
    let before = place.bytes("m.ivoro");
    insta::assert_snapshot!(place.ivoro("retract m.ivoro data.features").bad(2), @"error: class dog is not in the model");
    let twice = samples(1, 0..1, 13);
    place.write("twice.features", &twice, None);
    insta::assert_snapshot!(place.ivoro("retract m.ivoro twice.features").bad(1), @"error: class ant: more would be taken back than was given: the model has 12 of its samples, to be taken are 13");
    place.write("others.features", &samples(9, 0..1, 12), None);
    insta::assert_snapshot!(place.ivoro("retract m.ivoro others.features").bad(1), @"error: class ant: more would be taken back than was given: no 0 samples have the sums that would remain, so others were learned than these");
    insta::assert_snapshot!(place.ivoro("retract m.ivoro data.features --classes ant,bee,cat").bad(2), @"error: these are all classes of the model; delete the file instead");
    assert_eq!(place.bytes("m.ivoro"), before);
    assert!(place.ivoro("retract m.ivoro").bad(2).contains("required"));
}

#[test]
fn a_receipt_takes_a_lesson_back_without_a_sample() {
    let place = place();
    let done = place.ivoro("update m.ivoro more.features --receipt more.receipt");
    insta::assert_snapshot!(done.err, @"note: more.receipt takes 10 samples back on any machine; it reveals the features of few samples, so keep it as you would keep them");
    done.good();
    place.learn("m.ivoro", "dog,eel", "--receipt new.receipt").good();
    // never written over
    let receipt = place.bytes("new.receipt");
    let refused = place.learn("m.ivoro", "fox", "--receipt new.receipt").bad(2);
    assert!(refused.contains("new.receipt: is there already"), "{refused}");
    assert_eq!(place.bytes("new.receipt"), receipt);
    std::fs::remove_file(place.path("more.features")).unwrap();
    place.ivoro("rename m.ivoro dog yak").good();
    let unknown = place.ivoro("retract m.ivoro --receipt new.receipt more.receipt").bad(2);
    assert!(unknown.contains("class dog is not in the model"), "{unknown}");
    let out =
        place.ivoro("retract m.ivoro --receipt new.receipt more.receipt --renamed dog=yak").good();
    insta::assert_snapshot!(out, @"
    yak: 12 samples taken back; none is left, the class is gone
    eel: 12 samples taken back; none is left, the class is gone
    ant: 5 samples taken back
    bee: 5 samples taken back
    m.ivoro: 3 classes
    ");
    assert!(place.head("m.ivoro") == place.head("before.ivoro"));
    let used = place.ivoro("retract m.ivoro --receipt more.receipt").bad(1);
    insta::assert_snapshot!(used, @"error: the receipt can't be used: its samples were taken back already");
    place.learn("other.ivoro", "ant,bee", "--variant iVoro").good();
    let other = place.ivoro("retract other.ivoro --receipt more.receipt").bad(2);
    insta::assert_snapshot!(other, @"error: the receipt can't be used: the variant of its model differs: expected iVoro, found iVoro-NW");
    let file = place.ivoro("retract m.ivoro --receipt m.ivoro").bad(2);
    assert!(file.contains("expected a file of format ivoro-receipt, found ivoro-model"), "{file}");
}

#[test]
fn a_class_is_forgotten_with_receipts_where_one_scatter_is_kept() {
    let place = Place::new();
    place.write("more.features", &samples(3, 0..2, 5), None);
    let note = place.learn("plain.ivoro", "ant,bee", FIXED).err;
    assert!(note.contains("note: iVoro-NW keeps one scatter for all classes"), "{note}");
    let quiet = [
        ("means.ivoro", "--variant iVoro-N"),
        ("asked.ivoro", "--variant iVoro-W --scatter per-class"),
    ];
    for (file, variant) in quiet {
        let done = place.learn(file, "ant,bee", variant);
        assert!(!done.err.contains("one scatter"), "{}", done.err);
        done.good();
        place.ivoro(&format!("forget {file} bee")).good();
    }
    let done = place.learn("m.ivoro", "ant,bee,cat", &format!("{FIXED} --receipt first.receipt"));
    assert!(!done.err.contains("one scatter"), "{}", done.err);
    place.ivoro("update m.ivoro more.features --receipt more.receipt").good();
    let refused = place.ivoro("forget m.ivoro bee --receipt first.receipt").bad(1);
    insta::assert_snapshot!(refused, @"
    error: the receipt can't be used: class bee: 5 of its 17 samples are in no receipt
    hint: name the receipts of all lessons that had samples of the class
    ");
    place.ivoro("forget m.ivoro bee --receipt first.receipt more.receipt").good();
    place.learn("never.ivoro", "ant,cat", FIXED).good();
    place.ivoro("update never.ivoro more.features --classes ant").good();
    assert!(place.head("m.ivoro") == place.head("never.ivoro"));
}

#[test]
fn wrong_labels_are_put_right() {
    let place = place();
    let wrong = samples(4, 1..2, 5).relabel(&[0; 6], ["ant".to_owned()].into()).unwrap();
    place.write("wrong.features", &wrong, None);
    place.ivoro("update m.ivoro wrong.features").good();
    let out = place.ivoro("relabel m.ivoro wrong.features --to bee").good();
    assert_eq!(out, "ant: 5 samples are bee now\n");
    let right = samples(4, 1..2, 5);
    place.write("right.features", &right, None);
    place.ivoro("update before.ivoro right.features").good();
    assert!(place.head("m.ivoro") == place.head("before.ivoro"));
    // what the file calls bee was learned as ant
    place.ivoro("relabel m.ivoro right.features --from bee --to ant").good();
    let out = place.ivoro("retract m.ivoro right.features --from ant").good();
    assert!(out.starts_with("ant: 5 samples taken back\n"), "{out}");
    // a class as a whole, without samples
    assert_eq!(
        place.ivoro("relabel m.ivoro --from cat --to ant").good(),
        "cat: all of it is ant now\n"
    );
    assert_eq!(place.inspect("m.ivoro")["phases"], serde_json::json!([2]));
    assert!(place.ivoro("relabel m.ivoro --to ant").bad(2).contains("required"));
}

#[test]
fn a_class_gets_another_name() {
    let place = place();
    assert_eq!(place.ivoro("rename m.ivoro cat yak").good(), "cat is called yak now\n");
    insta::assert_snapshot!(place.ivoro("rename m.ivoro yak bee").bad(2), @"
    error: a class bee is in the model already
    hint: `ivoro relabel MODEL --from NAME --to NAME` makes two classes one
    ");
    place.ivoro("rename m.ivoro yak cat").good();
    assert!(place.head("m.ivoro") == place.head("before.ivoro"));
}

#[test]
fn the_log_says_what_was_done() {
    let place = Place::new();
    place
        .at(1_700_000_000, "learn m.ivoro data.features --classes ant,bee,cat --variant iVoro")
        .good();
    place.at(1_700_000_060, "retract m.ivoro data.features --classes bee").good();
    place.at(1_700_086_400, "rename m.ivoro cat yak").good();
    place.at(1_700_086_401, "relabel m.ivoro --from yak --to ant").good();
    insta::assert_snapshot!(place.ivoro("log m.ivoro").good(), @"
    when (UTC)           verb     classes        samples  classes after
    ───────────────────────────────────────────────────────────────────
    2023-11-14 22:13:20  learn    ant, bee, cat       36              3
    2023-11-14 22:14:20  retract  bee                 12              2
    2023-11-15 22:13:20  rename   cat → yak                           2
    2023-11-15 22:13:21  relabel  yak → ant           12              1
    ");
    let json: Value = serde_json::from_str(&place.ivoro("log m.ivoro --json").good()).unwrap();
    assert_eq!(json["entries"][1]["verb"], "retract");
    assert_eq!(json["entries"][1]["when"], 1_700_000_060);
    place.learn("m.ivoro", "dog", "").good();
    place.ivoro("forget m.ivoro dog --strike-names").good();
    let log = place.ivoro("log m.ivoro").good();
    assert!(!log.contains("dog") && log.contains("forget"), "{log}");
}

#[test]
fn a_model_that_is_locked_takes_nothing_back() {
    let place = place();
    let lock = ivoro_io::FileLock::acquire(&place.path("m.ivoro")).unwrap();
    for command in [
        "retract m.ivoro data.features --classes ant",
        "relabel m.ivoro --from ant --to bee",
        "rename m.ivoro ant yak",
        "forget m.ivoro ant",
    ] {
        assert!(place.ivoro(command).bad(2).contains("locked by another process"));
    }
    drop(lock);
    assert!(place.head("m.ivoro") == place.head("before.ivoro"));
}
