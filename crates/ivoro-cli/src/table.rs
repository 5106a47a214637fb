//! Plain aligned tables.

use std::fmt;

/// Rows of text under a header; columns after the first are aligned to the right.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    /// A table with a header; the first `left` columns are aligned to the left.
    pub(crate) fn new(header: &[&str], left: usize) -> Self {
        Self { rows: vec![header.iter().map(ToString::to_string).collect()], left }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell)).collect());
    }

    /// Takes a column out, counted from 0.
    pub(crate) fn remove_column(&mut self, column: usize) {
        self.rows.iter_mut().filter(|row| column < row.len()).for_each(|row| {
            row.remove(column);
        });
    }
}

/// Text of a file as it may be shown in a terminal: signs that would steer it are written out.
pub(crate) fn visible(text: &str) -> String {
    let shown = |sign: char| match sign {
        sign if sign.is_control() => sign.escape_default().to_string(),
        sign => sign.to_string(),
    };
    text.chars().map(shown).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (at, row) in self.rows.iter().enumerate() {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let gap = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                if column < self.left { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
            if at == 0 {
                let length = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
                writeln!(f, "{}", "─".repeat(length))?;
            }
        }
        Ok(())
    }
}
