use ivoro::head::Head;
use ivoro::{Matrix, Samples};

use crate::data::{blobs, learned, small, variant};

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

fn learned_and_asked(name: &str, phases: &[Samples], queries: &Samples) -> (Head, Matrix) {
    let head = learned(variant(name), &small(), phases);
    let distances = head.measure(queries, true).unwrap();
    (head, distances)
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    // several hundred rows a phase, so that the work is really divided
    let train = blobs(5, 8, |class| 90 + 20 * class as usize);
    let queries = blobs(6, 8, |_| 100);
    let phases = [0..4, 4..8].map(|range| train.of_classes(|label| range.contains(&label)));
    for name in [
        "iVoro",
        "iVoro-N",
        "iVoro-W",
        "iVoro-Q",
        "iVoro-NFQAIL",
        "iVoro-NKW",
        "iVoro-D",
        "iVoro-R",
        "iVoro-NDAIL",
        "iVoro-NFKWDRAC",
        "iVoro-WAIL",
    ] {
        let (head, distances) = with_threads(1, || learned_and_asked(name, &phases, &queries));
        let predicted = with_threads(1, || head.predict(&queries).unwrap());
        for threads in [2, 3] {
            let (other, measured) =
                with_threads(threads, || learned_and_asked(name, &phases, &queries));
            assert!(other == head, "{name} on {threads} threads");
            assert_eq!(measured, distances, "{name} on {threads} threads");
            let answers = with_threads(threads, || other.predict(&queries).unwrap());
            assert_eq!(answers, predicted, "{name} on {threads} threads");
        }
    }
}
