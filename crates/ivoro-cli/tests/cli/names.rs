use std::sync::Arc;

use crate::harness::{Place, samples};

/// Names that spreadsheets and terminals would act on, and one with a comma.
const NAMES: [&str; 6] = ["=1+1", "+a", "@sum", "-2", "rose, red", "\u{1b}[31mred\u{9b}"];

/// A folder with `odd.features`, whose classes have these names, and a model of them.
fn place() -> Place {
    let place = Place::new();
    let names: Arc<[String]> = NAMES.map(str::to_owned).into();
    let odd = |seed, each| samples(seed, 0..6, each).relabel(&[0, 1, 2, 3, 4, 5], names.clone());
    place.write("odd.features", &odd(1, 12).unwrap(), Some(&odd(2, 4).unwrap()));
    place.ivoro("learn m.ivoro odd.features --variant iVoro").good();
    place
}

#[test]
fn no_cell_of_a_csv_file_is_a_formula() {
    let place = place();
    let out = place.ivoro("predict m.ivoro odd.features --format csv --top 1").good();
    for name in &NAMES[..4] {
        assert!(out.contains(&format!(",'{name},")), "{out}");
        assert!(!out.contains(&format!(",{name},")), "{out}");
    }
    assert!(out.contains(",\"rose, red\","), "{out}");
    // JSON has the names as they are
    let out = place.ivoro("predict m.ivoro odd.features --format jsonl").good();
    let rows = out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let labels: Vec<String> = rows.map(|row| row["label"].as_str().unwrap().to_owned()).collect();
    assert!(NAMES.iter().all(|name| labels.iter().any(|label| label == name)), "{labels:?}");
}

#[test]
fn no_name_steers_a_terminal() {
    let place = place();
    let steers = |text: &str| text.chars().any(|sign| sign.is_control() && sign != '\n');
    for command in
        ["predict m.ivoro odd.features", "inspect m.ivoro", "audit m.ivoro", "log m.ivoro"]
    {
        let out = place.ivoro(command).good();
        assert!(!steers(&out), "{command}: {out}");
        assert!(command.starts_with("log") || out.contains("\\u{1b}[31mred\\u{9b}"), "{out}");
    }
    let refused = place.ivoro("learn m.ivoro odd.features").bad(2);
    assert!(!steers(&refused), "{refused}");
}

#[test]
fn a_name_with_a_comma_can_be_picked() {
    let place = place();
    let out = place.command("update m.ivoro odd.features --classes").arg(r"rose\, red,+a").output();
    let out = String::from_utf8(out.unwrap().stdout).unwrap();
    assert_eq!(out, "+a: 12 samples added\nrose, red: 12 samples added\n");
}

#[test]
fn a_variant_in_small_letters_is_that_variant() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant ivoro-nw --lambda 0.5").good();
    assert_eq!(place.inspect("m.ivoro")["variant"], "iVoro-NW");
    place.learn("m.ivoro", "cat", "--variant IVORO-nw").good();
}
