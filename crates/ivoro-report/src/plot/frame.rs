//! Axes around a plot.

use crate::plot::canvas::{Anchor, Canvas, Pen, WIDTH};
use crate::plot::scale::Scale;
use crate::plot::text::{self, SIZE, width};

/// An axis with what it measures, unit and count included.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale }
    }
}

/// A plot's place on the canvas.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    left: f64,
    right: f64,
    /// Where the label of the y axis begins.
    above: f64,
    top: f64,
    bottom: f64,
    x: Axis,
    y: Axis,
    turned: bool,
}

impl Frame {
    /// A frame below `top` of this inner height that leaves `margin` at its right.
    pub(crate) fn new(top: f64, height: f64, margin: f64, x: Axis, y: Axis) -> Self {
        let widest = y.scale.ticks().iter().map(|(_, name)| width(name, SIZE)).fold(0.0, f64::max);
        let left = (widest + 10.0).clamp(24.0, 150.0);
        let names = x.scale.ticks();
        let right = WIDTH - margin.max(12.0);
        let room = (right - left) / names.len().max(1) as f64;
        // numbers that do not fit are left out; names have no neighbours to be guessed from
        let numeric = names.iter().all(|(_, name)| name.parse::<f64>().is_ok());
        let wide = |(_, name): &(f64, String)| width(name, SIZE) > room.max(14.0) - 4.0;
        let turned = !numeric && names.iter().any(wide);
        let lines = text::wrapped(&y.label, SIZE, WIDTH - 8.0).len() as f64;
        let (above, top) = (top, top + 15.0 * lines + 7.0);
        Self { left, right, above, top, bottom: top + height, x, y, turned }
    }

    /// The place of a value.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + (self.right - self.left) * self.x.scale.share(x),
            self.bottom - (self.bottom - self.top) * self.y.scale.share(y),
        )
    }

    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    pub(crate) fn right(&self) -> f64 {
        self.right
    }

    pub(crate) fn top(&self) -> f64 {
        self.top
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.bottom
    }

    /// Draws grid, ticks and labels; gives the height used from the top of the canvas.
    pub(crate) fn draw(&self, canvas: &mut Canvas) -> f64 {
        let grid = Pen::new("currentColor", 1.0).faint(0.13);
        canvas.note(self.above, &self.y.label);
        for (value, name) in self.y.scale.ticks() {
            let (_, y) = self.at(0.0, *value);
            canvas.line((self.left, y), (self.right, y), grid);
            let name = text::fitted(name, SIZE, self.left - 8.0);
            canvas.text((self.left - 6.0, y + 4.0), Anchor::End, &name);
        }
        let below = if self.turned { self.draw_turned(canvas) } else { self.draw_names(canvas) };
        canvas.line(
            (self.left, self.bottom),
            (self.right, self.bottom),
            Pen::new("currentColor", 1.0).faint(0.6),
        );
        let lines = text::wrapped(&self.x.label, SIZE, WIDTH - 16.0);
        let middle = |line: &str| {
            let half = width(line, SIZE) / 2.0;
            f64::midpoint(self.left, self.right).clamp(half + 4.0, WIDTH - half - 4.0)
        };
        for (at, line) in lines.iter().enumerate() {
            canvas.text((middle(line), below + 16.0 + 15.0 * at as f64), Anchor::Middle, line);
        }
        below + 8.0 + 15.0 * lines.len() as f64
    }

    /// Names under the axis; those that would touch the one before or the last are left out.
    fn draw_names(&self, canvas: &mut Canvas) -> f64 {
        let mut free = f64::NEG_INFINITY;
        let ticks = self.x.scale.ticks();
        // the last one always has its name, so one before it may have to do without
        let begin =
            |(value, name): &(f64, String)| self.at(*value, 0.0).0 - width(name, SIZE) / 2.0;
        let last = ticks.last().map_or(f64::INFINITY, begin);
        for (place, (value, name)) in ticks.iter().enumerate() {
            let (x, _) = self.at(*value, 0.0);
            canvas.line(
                (x, self.bottom),
                (x, self.bottom + 4.0),
                Pen::new("currentColor", 1.0).faint(0.6),
            );
            let half = width(name, SIZE) / 2.0;
            let before_last = place + 1 < ticks.len();
            if x - half < free || (before_last && x + half + 4.0 > last) {
                continue;
            }
            canvas.text((x, self.bottom + 17.0), Anchor::Middle, name);
            free = x + half + 4.0;
        }
        self.bottom + 18.0
    }

    /// Names that are too wide side by side stand on steps, one below the other.
    fn draw_turned(&self, canvas: &mut Canvas) -> f64 {
        let mut ends: Vec<f64> = Vec::new();
        for (value, name) in self.x.scale.ticks() {
            let (x, _) = self.at(*value, 0.0);
            let name = text::fitted(name, SIZE, 140.0);
            let half = width(&name, SIZE) / 2.0;
            let middle = x.clamp(half + 2.0, WIDTH - half - 2.0);
            let row = ends.iter().position(|end| middle - half > *end).unwrap_or(ends.len());
            if row >= 4 {
                continue;
            }
            let end = middle + half + 5.0;
            match ends.get_mut(row) {
                Some(taken) => *taken = end,
                None => ends.push(end),
            }
            let y = self.bottom + 17.0 + 15.0 * row as f64;
            let pen = Pen::new("currentColor", 1.0).faint(0.4);
            canvas.line((x, self.bottom), (x, y - 11.0), pen);
            canvas.plate((middle, y), Anchor::Middle, &name, SIZE);
        }
        self.bottom + 3.0 + 15.0 * ends.len().max(1) as f64
    }
}
