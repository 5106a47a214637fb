use crate::harness::{Place, samples};

const QUICK: &str = "--iterations 5 --lift 20 --ranpac-dim 30 --protocol 2,2,2";

/// A folder with one record of these features.
fn with_record(place: &Place) {
    place
        .ivoro(&format!(
            "run data.features --data-set made --variants iVoro,iVoro-N,iVoro-AI --peers ncm --out runs/a {QUICK}"
        ))
        .good();
}

#[test]
fn a_report_is_one_page_and_its_figures() {
    let place = Place::new();
    with_record(&place);
    let out = place.ivoro("report runs --out report").good();
    assert!(out.contains("1 records"), "{out}");
    let page = std::fs::read_to_string(place.path("report/index.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("iVoro-AI"));
    for part in page.split("href=\"figures/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(place.path("report/figures").join(name).is_file(), "{name}");
    }
    // nothing is fetched from elsewhere
    assert!(!page.contains("src=\"http") && !page.contains("<script"));
}

#[cfg(unix)]
#[test]
fn a_file_that_can_not_be_opened_is_named_and_the_rest_is_shown() {
    let place = Place::new();
    with_record(&place);
    let folder = place.path("runs/b\u{1b}[31m");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("run.json")).unwrap();
    let done = place.ivoro("report runs --out report");
    assert!(done.err.contains("run.json") && done.err.contains("left out"), "{}", done.err);
    assert!(!done.err.contains('\u{1b}'), "{:?}", done.err);
    assert!(done.good().contains("1 records"));
}

#[cfg(unix)]
#[test]
fn every_folder_is_read_once_and_nothing_that_never_ends() {
    let place = Place::new();
    with_record(&place);
    std::os::unix::fs::symlink("..", place.path("runs/a/up")).unwrap();
    std::os::unix::fs::symlink("a", place.path("runs/b")).unwrap();
    let pipe = place.path("runs/run-pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let done = place.ivoro("report runs --out report");
    assert!(done.err.contains("run-pipe.json: not a plain file"), "{}", done.err);
    assert!(done.good().contains("1 records"));
    // a list of cells is no record
    std::fs::write(place.path("grid.json"), "{}").unwrap();
    assert!(place.ivoro("report grid.json --out report").bad(2).contains("expected a file"));
}

#[test]
fn runs_with_other_settings_are_rows_of_their_own() {
    let place = Place::new();
    let run = |more: &str| {
        let line = "run data.features --data-set made --variants iVoro-AC,iVoro-D --peers ranpac \
                    --protocol 2,2,2 --iterations 5";
        place.ivoro(&format!("{line} {more}")).good();
    };
    // what is usual has the plain name, whichever is read first
    run("--pairs all --ranpac-dim 40 --out runs/a");
    run("--pairs matched --ranpac-dim 30 --out runs/b");
    place.ivoro("report runs --out report").good();
    let table = std::fs::read_to_string(place.path("report/tables.csv")).unwrap();
    let rows: Vec<&str> = table.lines().filter_map(|line| line.split(',').nth(2)).collect();
    for name in ["iVoro-AC", "iVoro-AC · pairs all", "ranpac", "ranpac · dim 40", "iVoro-D"] {
        assert_eq!(rows.iter().filter(|row| **row == name).count(), 1, "{name}\n{table}");
    }
}

#[test]
fn a_scene_and_an_embedding_are_computed_once_and_drawn() {
    let place = Place::new();
    with_record(&place);
    let refused =
        place.ivoro("figure scene data.features --protocol 2,2,2 --out runs/a.scene.json");
    assert!(refused.bad(2).contains("expected 2, found 5"));
    let tsne =
        "figure tsne data.features --variant iVoro-N --protocol 2,2,2 --perplexity 5 --epochs 60";
    place.ivoro(&format!("{tsne} --out runs/a.tsne.json")).good();
    let first = std::fs::read(place.path("runs/a.tsne.json")).unwrap();
    let wrong = place.ivoro(&format!("{tsne} --out runs/a.json")).bad(2);
    assert!(wrong.contains(".tsne.json"), "{wrong}");
    place.ivoro("report runs --out report").good();
    let page = std::fs::read_to_string(place.path("report/index.html")).unwrap();
    assert!(page.contains("t-SNE of iVoro-N, phase 2"));
    assert!(first.starts_with(b"{\"version\":1"));
}

#[test]
fn a_plane_is_drawn_with_exact_cells() {
    let place = Place::new();
    let numbers = |each: u16, seed: u16| {
        let points = (0..6 * each).flat_map(|at| {
            let (class, noise) = (at / each, at.wrapping_mul(seed) % 31);
            [
                f32::from(class * 5 % 6) + f32::from(noise) / 40.0,
                f32::from(class) + f32::from(noise % 7) / 9.0,
            ]
        });
        let labels = (0..6 * each).map(|at| u32::from(at / each)).collect();
        let matrix = ivoro::Matrix::new(6 * usize::from(each), 2, points.collect()).unwrap();
        ivoro::Samples::single("plane", matrix, labels, 6).unwrap()
    };
    place.write("plane.features", &numbers(12, 37), Some(&numbers(5, 23)));
    place
        .ivoro(
            "figure scene plane.features --protocol 2,2,2 --data-set made --out runs/x.scene.json",
        )
        .good();
    place.ivoro("report runs --out report").good();
    let page = std::fs::read_to_string(place.path("report/index.html")).unwrap();
    assert!(page.contains("Exact cells of 6 sites with 30 samples. Accuracy"), "{page}");
    // a comparison leaves the same, of the variants that the paper draws
    place
        .ivoro(
            "run plane.features --protocol 2,2,2 --data-set made --variants iVoro,iVoro-D \
             --pictures --out drawn",
        )
        .good();
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!(read("drawn/ivoro.scene.json"), read("runs/x.scene.json"));
    assert!(!place.path("drawn/ivoro-d.scene.json").exists());
}

#[test]
fn a_comparison_leaves_maps_of_the_features() {
    let place = Place::new();
    let run = format!("run data.features --variants iVoro-N --pictures --out drawn {QUICK}");
    place.ivoro(&run).good();
    let map = std::fs::read_to_string(place.path("drawn/ivoro-n.tsne.json")).unwrap();
    assert!(map.contains("\"method\":\"iVoro-N\""), "{map}");
    // what is there is not computed again
    std::fs::write(place.path("drawn/ivoro-n.tsne.json"), "kept").unwrap();
    place.ivoro(&run).good();
    assert_eq!(std::fs::read(place.path("drawn/ivoro-n.tsne.json")).unwrap(), b"kept");
    // of other samples there is another picture, and nothing is lost
    place.write("data.features", &samples(7, 0..6, 12), Some(&samples(8, 0..6, 4)));
    place.ivoro(&run).good();
    let map = std::fs::read_to_string(place.path("drawn/ivoro-n.tsne.json")).unwrap();
    assert!(map.contains("\"method\":\"iVoro-N\""), "{map}");
    assert_eq!(std::fs::read(place.path("drawn/ivoro-n.tsne.json.before")).unwrap(), b"kept");
}

#[test]
fn a_folder_without_records_is_an_error_that_says_so() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    let text = place.ivoro("report empty --out report").bad(2);
    assert!(text.contains("no run.json"), "{text}");
    assert!(place.ivoro("report missing --out report").bad(2).contains("missing"));
}

#[test]
fn broken_records_are_left_out_and_named() {
    let place = Place::new();
    with_record(&place);
    std::fs::create_dir(place.path("runs/b")).unwrap();
    std::fs::write(place.path("runs/b/run.json"), "{\"version\": 3}").unwrap();
    let done = place.ivoro("report runs --out report");
    assert!(
        done.err.contains("format version 3, this program reads version 1; left out"),
        "{}",
        done.err
    );
    done.good();
}
