//! `ivoro variants`: explains the letters.

use std::fmt::Write as _;

use ivoro::head::{EXTENDED, GRAMMAR, LETTERS, PAPER};
use ivoro_eval::peers::Peer;

use crate::failure::Failure;
use crate::output;

/// Explains the letters.
pub(crate) fn variants() -> Result<(), Failure> {
    let mut text = format!("{GRAMMAR}\n\n");
    for (letter, meaning) in LETTERS {
        let _ = writeln!(text, "  {letter:<3} {meaning}");
    }
    let _ = writeln!(text, "\nThe paper's {}:\n{}", PAPER.len(), wrapped(&PAPER));
    let _ = writeln!(text, "With --variants all also:\n{}", wrapped(&EXTENDED));
    text.push_str(
        "Any other combination by its name: iVoro-NKWAIL, or iVoro-NFWAIL where the features hold\nmirrored views.\n",
    );
    text.push_str("\nMethods to compare with (--peers); ranpac-FL sees what F and L do, all-FAIL all there is:\n");
    for peer in Peer::ALL {
        let _ = writeln!(text, "  {:<11} {}", peer.to_string(), peer.description());
    }
    output::print(&text)?;
    Ok(())
}

fn wrapped(names: &[&str]) -> String {
    let lines = names.chunks(6).map(|chunk| format!("  {}\n", chunk.join(", ")));
    lines.collect()
}
