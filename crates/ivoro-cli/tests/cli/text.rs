use ivoro::head::{EXTENDED, LETTERS, PAPER};

use crate::harness::{Done, Place};

#[test]
fn completions_are_scripts() {
    let place = Place::new();
    for (shell, part) in
        [("bash", "complete -F _ivoro"), ("zsh", "#compdef ivoro"), ("fish", "complete -c ivoro")]
    {
        let out = place.ivoro(&format!("completions {shell}")).good();
        assert!(out.contains(part), "{shell}");
    }
}

#[test]
fn variants_explains_every_letter_and_lists_every_variant() {
    let out = Place::new().ivoro("variants").good();
    for (letter, meaning) in LETTERS {
        assert!(out.contains(&format!("  {letter:<3} {meaning}\n")), "{letter}");
    }
    for name in PAPER.iter().chain(&EXTENDED) {
        let listed = out.split([',', '\n']).any(|part| part.trim() == *name);
        assert!(listed, "{name}");
    }
}

#[test]
fn without_a_command_the_help_is_printed() {
    let place = Place::new();
    let done = place.ivoro("");
    assert_eq!(done.code, Some(2));
    for command in [
        "run",
        "reproduce",
        "report",
        "figure",
        "learn",
        "predict",
        "update",
        "forget",
        "seal",
        "merge",
        "inspect",
        "audit",
    ] {
        assert!(done.err.contains(&format!("\n  {command} ")), "{command}");
        let help = place.ivoro(&format!("{command} --help")).good();
        assert!(help.contains("Usage: ivoro"), "{command}");
    }
    assert_eq!(place.ivoro("--version").good(), concat!("ivoro ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn colours_are_for_those_who_want_them() {
    let place = Place::new();
    let error = |name: &str, value: &str| {
        let mut command = place.command("inspect missing.ivoro");
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env(name, value);
        Done::of(command.output().unwrap()).bad(2)
    };
    assert!(!error("NO_COLOR", "1").contains('\x1b'));
    assert!(!error("TERM", "xterm").contains('\x1b'), "not a terminal");
    assert!(error("CLICOLOR_FORCE", "1").contains('\x1b'));
}
