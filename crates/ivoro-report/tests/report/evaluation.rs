//! The page of an evaluation: every number is there, and hostile names are text.

use std::collections::BTreeMap;

use ivoro::{Matrix, Model, ModelOptions, Samples};
use ivoro_eval::evaluation::{Answer, Asked, Findings, Next};
use ivoro_report::evaluation::{Sheet, page};

const SCRIPT: &str = "\"><script>alert(1)</script><img src=http://evil onerror=alert(1)>\u{202e}";

struct Made {
    findings: Findings,
    answers: Vec<Answer>,
    next: Next,
}

/// Points of classes around axes of their own, the first of them `from`; every third is nearer to the next
/// class.
fn samples(classes: &[String], each: usize, dims: usize, from: usize, seed: usize) -> Samples {
    let mut data = Vec::new();
    let mut labels = Vec::new();
    for class in 0..classes.len() {
        for at in 0..each {
            let next = if at % 3 == 0 { 0.6 } else { 0.1 };
            let mut point: Vec<f32> =
                (0..dims).map(|dim| 0.05 * ((dim * 7 + at * 3 + seed) % 11) as f32).collect();
            point[from + class] += 4.0 * (1.0 - next);
            point[from + (class + 1) % classes.len()] += 4.0 * next;
            data.extend(point);
            labels.push(class as u32);
        }
    }
    let points = Matrix::new(labels.len(), dims, data).unwrap();
    let points = ivoro::Points::single("test", points).unwrap();
    Samples::new(points, labels, classes.to_vec().into()).unwrap()
}

fn made(prefix: &str, count: usize) -> Made {
    let classes: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
    let mut model = Model::new("iVoro".parse().unwrap(), ModelOptions::default());
    let dims = count + 1;
    model.learn(&samples(&classes, 9, dims, 0, 1)).unwrap();
    let asked_about = samples(&classes, 7, dims, 0, 2);
    let far = samples(&[format!("{prefix}new0")], 6, dims, count, 3);
    let (mut asked, _) = Asked::new(&model, Some(0.05)).unwrap();
    asked.labelled(&asked_about, |row| format!("photos/{prefix}{row}.jpg")).unwrap();
    asked.unknown(far.points(), Some(&far), |row| format!("far/{prefix}{row}.jpg")).unwrap();
    let answers = asked.answers;
    let findings = Findings::of(&model, Some(0.05), &answers).unwrap();
    let points = [asked_about.points(), far.points()];
    let next = Next::of(&model, &answers, &points, &asked_about, 12).unwrap();
    Made { findings, answers, next }
}

impl Made {
    fn page(&self, thumbnails: &BTreeMap<usize, Vec<u8>>, name: &str) -> String {
        page(&Sheet {
            model: name,
            data: name,
            findings: &self.findings,
            answers: &self.answers,
            next: &self.next,
            thumbnails,
            most: 12,
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * share)
}

#[test]
fn every_number_is_on_the_page() {
    let made = made("class ", 5);
    let html = made.page(&BTreeMap::new(), "model");
    let found = &made.findings;
    let accuracy = found.accuracy.unwrap();
    let calibration = found.calibration.as_ref().unwrap();
    let rejection = found.rejection.as_ref().unwrap();
    let at = rejection.at_threshold.as_ref().unwrap();
    let mut numbers = vec![
        percent(accuracy.share),
        format!("{:.1} to {}", 100.0 * accuracy.low, percent(accuracy.high)),
        percent(found.macro_accuracy.unwrap()),
        percent(calibration.error),
        percent(calibration.confidence),
        percent(at.known.share.unwrap().share),
        percent(at.unknown.unwrap().share.unwrap().share),
        percent(at.accepted.unwrap().share),
        format!("{:.3}", rejection.auroc.unwrap()),
        percent(rejection.fpr95.unwrap()),
        "looked at 1 view of each".to_owned(),
        format!("{} of {} queries right", found.right, found.queries),
    ];
    for class in &found.classes {
        numbers.push(format!(
            "<td>{}</td><td>{}</td><td>{}</td>",
            class.queries,
            class.right,
            percent(class.recall.unwrap())
        ));
    }
    for bin in &calibration.bins {
        numbers.push(format!(
            "<td>{}</td><td>{}</td>",
            percent(bin.confidence),
            percent(bin.accuracy)
        ));
    }
    for it in found.confusions.iter().take(20) {
        numbers.push(format!("<bdi>{}</bdi></td><td>{}</td>", it.named, it.queries));
    }
    for number in numbers {
        assert!(html.contains(&number), "{number}");
    }
    assert!(found.right < found.queries, "there are mistakes to show");
    let cluster = &made.next.clusters.as_ref().unwrap().found[0];
    assert_eq!(cluster.members.len(), 6);
    assert!(
        html.contains("Cluster 1: 6 queries")
            && html.contains("labelled <bdi>class new0</bdi> (6)")
    );
}

#[test]
fn hostile_names_are_text() {
    let made = made(SCRIPT, 3);
    let thumbnails: BTreeMap<usize, Vec<u8>> =
        (0..made.answers.len()).map(|at| (at, b"\xff\xd8 a photo".to_vec())).collect();
    let html = made.page(&thumbnails, SCRIPT);
    assert!(
        !html.contains("<script") && !html.contains("<img src=http") && !html.contains('\u{202e}')
    );
    assert!(html.contains("&lt;script&gt;"), "the name is still shown");
    assert!(html.contains("default-src 'none'"));
    // pictures are in the page itself
    let pictures = html.matches("<img ").count();
    assert!(pictures > 5 && pictures == html.matches("<img src=\"data:image/jpeg;base64,").count());
    assert!(!html.contains("href=\"http") && !html.contains("src=\"http"));
}

#[test]
fn photos_are_shown_where_they_are_looked_at_and_nowhere_else() {
    let made = made("class ", 4);
    let shown = made.next.shown(12);
    let all: BTreeMap<usize, Vec<u8>> =
        (0..made.answers.len()).map(|at| (at, format!("photo {at:05}").into_bytes())).collect();
    let some = all.iter().filter(|(at, _)| shown.contains(at));
    let some: BTreeMap<usize, Vec<u8>> = some.map(|(at, jpeg)| (*at, jpeg.clone())).collect();
    assert_eq!(made.page(&all, "model"), made.page(&some, "model"));
    assert!(made.page(&all, "model").contains("keep it where you would keep the photos"));
    assert!(!made.page(&BTreeMap::new(), "model").contains("<img"));
}

#[test]
fn one_class_and_very_many_have_a_page() {
    for count in [1, 2, 150] {
        let made = made("a class with a long name ", count);
        let html = made.page(&BTreeMap::new(), "model");
        assert!(html.contains("Macro accuracy") && !html.contains("NaN"), "{count}");
    }
}
