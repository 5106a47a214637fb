//! Which classes are taken for which.

use crate::figures::Shown;
use crate::group::Group;
use crate::plot::canvas::{Anchor, Canvas, Pen, WIDTH};
use crate::plot::palette;
use crate::plot::text::{SIZE, fitted, width};

/// Rows of the picture; of more classes, neighbours in the order of arrival share a row.
const MOST_CELLS: usize = 100;
/// Classes whose names have room.
const MOST_NAMES: usize = 25;

/// Shares of each true class, row by row.
pub(crate) struct Shares {
    cells: usize,
    each: usize,
    /// `[row · cells + column]`.
    share: Vec<f64>,
}

impl Shares {
    pub(crate) fn of(confusion: &[[usize; 3]], classes: usize) -> Option<Self> {
        let each = classes.div_ceil(MOST_CELLS).max(1);
        let cells = classes.div_ceil(each);
        let mut counts = vec![0f64; cells * cells];
        for &[truth, found, count] in confusion {
            if truth < classes && found < classes {
                counts[truth / each * cells + found / each] += count as f64;
            }
        }
        let total: f64 = counts.iter().sum();
        for row in counts.chunks_mut(cells.max(1)) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|count| *count /= sum.max(1.0));
        }
        (total > 0.0).then_some(Self { cells, each, share: counts })
    }

    /// For a caption: how many classes share a row, where several do.
    pub(crate) fn together(&self) -> String {
        match self.each {
            1 => String::new(),
            each => format!(" {each} classes that follow each other share a row and a column."),
        }
    }
}

/// The confusion matrix of the best variant after the last phase.
pub(crate) fn matrix(group: &Group<'_>) -> Option<Shown> {
    let row = group.best_variant().or_else(|| group.rows.first())?;
    let (record, last) = (row.first().record, row.first().last()?);
    let classes = last.classes.max(last.by_class.len()).min(record.classes.len());
    let shares = Shares::of(&last.confusion, classes)?;
    let tested: usize = last.confusion.iter().map(|[_, _, count]| count).sum();
    let title = format!("{}: confusion of {} after the last phase", group.title(), row.label);
    let mut canvas = Canvas::default();
    let used = canvas.title(&title);
    let note = format!("down: true class, in order of arrival (n = {tested} test images)");
    let used = canvas.note(used, &note);
    let names: Vec<&str> = record.classes.iter().take(classes).map(String::as_str).collect();
    let names = Names { classes: &names, borders: &group.phases };
    let bottom = draw(&mut canvas, &shares, used, &names);
    let figure = canvas.finish(&format!("confusion-{}", group.title()), &title, bottom + 24.0);
    let caption = format!(
        "Rows: true class (n = {classes} classes, {tested} test images). The stronger the \
         colour, the larger the share of the row. Lines divide the phases.{}{}",
        shares.together(),
        row.which()
    );
    Some(Shown::new(figure, caption))
}

/// What rows and columns are called, and how many of them each phase has.
pub(crate) struct Names<'a> {
    pub(crate) classes: &'a [&'a str],
    pub(crate) borders: &'a [usize],
}

/// Draws legend and matrix below `used`; gives where the matrix ends, above the line below it.
pub(crate) fn draw(canvas: &mut Canvas, shares: &Shares, used: f64, names: &Names<'_>) -> f64 {
    let classes = names.classes.len();
    let top = legend(canvas, used);
    let named = shares.cells == classes && classes <= MOST_NAMES;
    let labels: Vec<String> =
        names.classes.iter().map(|name| fitted(name, SIZE - 1.0, 96.0)).collect();
    let widest = labels.iter().map(|name| width(name, SIZE - 1.0)).fold(0.0, f64::max);
    let left = if named { widest + 10.0 } else { 24.0 };
    let side = (WIDTH - left - 8.0) / shares.cells as f64;
    draw_cells(canvas, shares, left, top, side);
    let end = (left + side * shares.cells as f64, top + side * shares.cells as f64);
    if named {
        for (at, name) in labels.iter().enumerate() {
            let y = top + side * (at as f64 + 0.5) + 4.0;
            canvas.text_in((left - 5.0, y), Anchor::End, name, "currentColor", SIZE - 1.0);
        }
    }
    let mut border = 0;
    for size in names.borders {
        let at = side * (border as f64 / shares.each as f64);
        let pen = Pen::new("currentColor", 0.8).faint(0.55);
        canvas.line((left, top + at), (end.0, top + at), pen);
        canvas.line((left + at, top), (left + at, end.1), pen);
        border += size;
    }
    let frame = Pen::new("currentColor", 1.0).faint(0.6);
    canvas.polyline(&[(left, top), (end.0, top), end, (left, end.1), (left, top)], frame);
    let middle = f64::midpoint(left, end.0);
    canvas.text((middle, end.1 + 17.0), Anchor::Middle, "predicted class, in order of arrival");
    end.1
}

/// What the colours mean; gives the height used.
fn legend(canvas: &mut Canvas, top: f64) -> f64 {
    canvas.rectangle((8.0, top + 4.0), (11.0, 11.0), palette::line(0), 1.0);
    canvas.text((24.0, top + 14.0), Anchor::Start, "right");
    canvas.rectangle((70.0, top + 4.0), (11.0, 11.0), palette::line(1), 1.0);
    canvas.text((86.0, top + 14.0), Anchor::Start, "wrong");
    let shades = [(0.01, "1 %"), (0.1, "10 %"), (0.5, "50 %"), (1.0, "100 % of the row")];
    let mut at = 140.0;
    for (share, name) in shades {
        for (half, colour) in [palette::line(0), palette::line(1)].into_iter().enumerate() {
            let corner = (at + 6.0 * half as f64, top + 4.0);
            canvas.rectangle(corner, (6.0, 11.0), colour, opacity(share));
        }
        canvas.text((at + 15.0, top + 14.0), Anchor::Start, name);
        at += 15.0 + width(name, SIZE) + 12.0;
    }
    top + 22.0
}

/// Small shares are what one looks for: their square root makes them visible.
fn opacity(share: f64) -> f64 {
    (0.1 + 0.9 * share.sqrt()).min(0.99)
}

fn draw_cells(canvas: &mut Canvas, shares: &Shares, left: f64, top: f64, side: f64) {
    for (at, &share) in shares.share.iter().enumerate() {
        if share <= 0.0 {
            continue;
        }
        let (row, column) = (at / shares.cells, at % shares.cells);
        let colour = palette::line(usize::from(row != column));
        let corner = (left + side * column as f64, top + side * row as f64);
        canvas.rectangle(corner, (side, side), colour, opacity(share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_classes_share_rows_and_nonsense_is_left_out() {
        let shares = Shares::of(&[[0, 0, 3], [0, 250, 1], [9999, 0, 5]], 1000).unwrap();
        assert_eq!((shares.cells, shares.each), (100, 10));
        assert_eq!((shares.share[0], shares.share[25]), (0.75, 0.25));
        assert!(Shares::of(&[], 10).is_none());
        assert_eq!(Shares::of(&[[0, 0, 1]], 1).unwrap().cells, 1);
    }
}
