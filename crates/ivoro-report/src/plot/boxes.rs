//! Boxes with whiskers: 5, 25, 50, 75 and 95 % of the values.

use crate::plot::canvas::{Anchor, Canvas, Figure, Pen};
use crate::plot::frame::{Axis, Frame};
use crate::plot::palette;

/// Height of the plot itself.
const HEIGHT: f64 = 200.0;

/// One box.
#[derive(Clone, Debug)]
pub(crate) struct Whiskers {
    pub(crate) five: [f64; 5],
    /// Fill: a colour of the palette.
    pub(crate) colour: String,
}

/// A row of boxes at the places 0, 1, … of the x axis.
pub(crate) struct Chart<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) boxes: Vec<Option<Whiskers>>,
    /// What the colours mean, from dark to light.
    pub(crate) ramp: Option<(&'a str, String, String)>,
}

impl Chart<'_> {
    pub(crate) fn draw(self) -> Figure {
        let mut canvas = Canvas::default();
        let mut used = canvas.title(self.title);
        if let Some((what, low, high)) = &self.ramp {
            used = ramp(&mut canvas, used, what, low, high);
        }
        let frame = Frame::new(used, HEIGHT, 12.0, self.x, self.y);
        let bottom = frame.draw(&mut canvas);
        let room = (frame.right() - frame.left()) / self.boxes.len().max(1) as f64;
        let half = (room * 0.36).min(14.0);
        for (at, drawn) in self.boxes.iter().enumerate() {
            let Some(drawn) = drawn.as_ref().filter(|b| b.five.iter().all(|v| v.is_finite()))
            else {
                continue;
            };
            let place = |value: f64| frame.at(at as f64, value);
            let [low, first, middle, third, high] = drawn.five.map(place);
            let thin = Pen::new("currentColor", if half < 3.0 { 0.5 } else { 1.0 }).faint(0.7);
            canvas.line(low, high, thin);
            let (left, right, bottom) =
                (third.0 - half, third.0 + half, first.1.max(third.1 + 0.8));
            let corners = [(left, third.1), (right, third.1), (right, bottom), (left, bottom)];
            // an edge, so that dark boxes are seen on dark paper
            canvas.polygon(&corners, &drawn.colour, 1.0, Pen::new("currentColor", 0.5).faint(0.6));
            let colour = palette::against(&drawn.colour);
            let pen = Pen::new(colour, if half < 3.0 { 0.8 } else { 2.0 });
            canvas.line((middle.0 - half, middle.1), (middle.0 + half, middle.1), pen);
        }
        canvas.finish(self.name, self.title, bottom)
    }
}

/// A bar with the colours of the ramp; gives the height used.
pub(crate) fn ramp(canvas: &mut Canvas, top: f64, what: &str, low: &str, high: &str) -> f64 {
    const STEPS: usize = 24;
    canvas.text((4.0, top + 15.0), Anchor::Start, what);
    let left = 4.0 + crate::plot::text::width(what, 12.0) + 10.0;
    let low_width = crate::plot::text::width(low, 12.0);
    canvas.text((left, top + 15.0), Anchor::Start, low);
    let begin = left + low_width + 6.0;
    for step in 0..STEPS {
        let share = (step as f64 + 0.5) / STEPS as f64;
        let at = (begin + 4.0 * step as f64, top + 6.0);
        canvas.rectangle(at, (4.3, 10.0), &palette::ramp(share), 1.0);
    }
    canvas.text((begin + 4.0 * STEPS as f64 + 6.0, top + 15.0), Anchor::Start, high);
    top + 20.0
}
