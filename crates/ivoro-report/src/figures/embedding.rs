//! Features brought to the plane, coloured by the phase in which their classes arrived.

use ivoro::diagram::Rectangle;
use ivoro_eval::Protocol;
use ivoro_eval::picture::Embedding;

use crate::figures::scene::View;
use crate::figures::{MOST_PHASES, Shown, evenly};
use crate::inputs::Found;
use crate::plot::canvas::{Canvas, Pen};
use crate::plot::palette;
use crate::plot::scatter::legend;
use crate::plot::text::{joined, number};

/// One picture a phase; of a network that trains on, the one phase it is of.
pub(crate) fn pictures(found: &Found<Embedding>) -> Vec<Shown> {
    let embedding = &found.content;
    let phases = match embedding.phase {
        Some(phase) => vec![phase],
        None => evenly(embedding.phases.len(), MOST_PHASES),
    };
    phases.into_iter().filter_map(|phase| picture(&found.file, embedding, phase)).collect()
}

fn picture(file: &str, embedding: &Embedding, phase: usize) -> Option<Shown> {
    let points = embedding.points.iter();
    let shown = Rectangle::around(points.map(|&(x, y, _)| [f64::from(x), f64::from(y)]), 0.02)?;
    let protocol = Protocol::new(embedding.phases.clone());
    let protocol = protocol.map_or(String::new(), |protocol| format!(", {protocol}"));
    let Embedding { data_set, method, .. } = embedding;
    let title = joined(data_set, &format!("{protocol}: t-SNE of {method}, phase {phase}"));
    let mut canvas = Canvas::default();
    let mut used = canvas.title(&title);
    used = canvas.note(used, &format!("axes without unit, n = {} samples", embedding.points.len()));
    let known = embedding.phases.len().min(phase + 1);
    let per_colour = embedding.phases.len().div_ceil(palette::AREA_COLOURS).max(1);
    let names = colour_names(known, per_colour);
    let names = names.iter().enumerate();
    let mut kinds: Vec<(usize, &str, &str)> =
        names.map(|(at, name)| (0, name.as_str(), palette::area(at))).collect();
    if known < embedding.phases.len() {
        kinds.push((0, "still to come", palette::REFERENCE));
    }
    used = legend(&mut canvas, used, &kinds);
    let view = View::new(shown, used + 2.0);
    let mut bins: Vec<Vec<(f64, f64)>> = vec![Vec::new(); embedding.phases.len() + 1];
    for &(x, y, class) in embedding.points.iter().filter(|(x, y, _)| x.is_finite() && y.is_finite())
    {
        bins[arrival(&embedding.phases, class)].push(view.at([f64::from(x), f64::from(y)]));
    }
    let later: Vec<(f64, f64)> = bins.iter().skip(known).flatten().copied().collect();
    canvas.dots(later, 2.2, palette::REFERENCE, 0.55);
    for (at, points) in bins.into_iter().take(known).enumerate() {
        canvas.dots(points, 2.6, palette::area(at / per_colour), 0.75);
    }
    let corners = view.rectangle().corners().map(|corner| view.at(corner));
    let frame = [corners.as_slice(), &corners[..1]].concat();
    canvas.polyline(&frame, Pen::new("currentColor", 1.0).faint(0.6));
    let figure = canvas.finish(&format!("tsne-{title}"), &title, view.bottom() + 4.0);
    let caption = format!(
        "{} samples of {} classes, perplexity {}. Colour: phase of arrival; grey: classes that are \
         still to come. Axes of t-SNE have no unit, and distances between far groups no meaning. \
         From {file}.",
        embedding.points.len(),
        embedding.classes.len(),
        number(embedding.perplexity, 0)
    );
    Some(Shown::new(figure, caption))
}

/// The phase in which a class arrives; one behind the last for a class that is in none.
fn arrival(phases: &[usize], class: u32) -> usize {
    let mut end = 0;
    let found = phases.iter().position(|size| {
        end += size;
        (class as usize) < end
    });
    found.unwrap_or(phases.len())
}

/// What each colour stands for: a phase, or several where there are more phases than colours.
fn colour_names(known: usize, per_colour: usize) -> Vec<String> {
    let firsts = (0..known).step_by(per_colour);
    let name = |first: usize| match (first + per_colour).min(known) - 1 {
        last if last == first => format!("phase {first}"),
        last => format!("phases {first}–{last}"),
    };
    firsts.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::{arrival, colour_names};

    #[test]
    fn classes_arrive_in_their_phase() {
        assert_eq!([0, 3, 4, 6, 7, 99].map(|class| arrival(&[4, 3, 3], class)), [0, 0, 1, 1, 2, 3]);
    }
    #[test]
    fn phases_that_share_a_colour_share_a_name() {
        assert_eq!(colour_names(2, 1), ["phase 0", "phase 1"]);
        assert_eq!(colour_names(3, 2), ["phases 0–1", "phase 2"]);
        assert_eq!(colour_names(11, 2).len(), 6);
        assert_eq!(colour_names(21, 3)[6], "phases 18–20");
    }
}
