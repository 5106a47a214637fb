//! A figure: vector graphics that turn with the page from light to dark, and the same as PNG.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use maud::{Markup, PreEscaped, html};
use resvg::{tiny_skia, usvg};

use crate::plot::text::{self, FAMILY, FONT, SIZE};

/// Width of every figure: what a phone shows without shrinking the letters.
pub(crate) const WIDTH: f64 = 420.0;
/// Most pixels of a side of a PNG.
const MOST_PIXELS: f64 = 16_000.0;

/// Why a figure has no PNG.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The renderer refuses the drawing.
    #[error("figure {name}: {source}")]
    Drawing {
        /// The figure.
        name: String,
        /// What the renderer says.
        source: usvg::Error,
    },
    /// There is no picture of that size.
    #[error("figure {name}: no picture of {width} × {height} pixels")]
    Pixels {
        /// The figure.
        name: String,
        /// Width asked for.
        width: u32,
        /// Height asked for.
        height: u32,
    },
    /// The picture can't be encoded.
    #[error("figure {name}: the picture can't be encoded as PNG")]
    Encoding {
        /// The figure.
        name: String,
    },
}

/// A finished figure.
#[derive(Clone, Debug)]
pub struct Figure {
    name: String,
    title: String,
    height: f64,
    body: String,
}

impl Figure {
    /// The name of its files, without an extension: lower-case letters, digits, `+` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rename(&mut self, name: String) {
        self.name = name;
    }

    /// What it shows.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// As part of a page, whose style sheet sets the colours of text and paper and the font.
    pub(crate) fn inline(&self) -> Markup {
        html! {
            svg class="figure" viewBox={"0 0 " (WIDTH) " " (self.height)} role="img" aria-label=(self.title) {
                (PreEscaped(&self.body))
            }
        }
    }

    /// As a file of its own, with the font in it.
    pub fn svg(&self) -> String {
        self.file(&format!(
            "<style>@font-face{{font-family:\"{FAMILY}\";src:url(data:font/ttf;base64,{})}}</style>",
            font_base64()
        ))
    }

    fn file(&self, style: &str) -> String {
        let (height, title) = (self.height, html! { (self.title) }.into_string());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" color=\"#1b1b1b\" font-family=\"{FAMILY}, sans-serif\">\
             {style}<title>{title}</title>\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>{}</svg>\n",
            self.body
        )
    }

    /// As a picture with `scale` pixels to the unit, drawn with the built-in font; letters that it
    /// does not have are taken from the fonts installed, where there are any.
    pub fn png(&self, scale: f64) -> Result<Vec<u8>, DrawError> {
        let name = || self.name.clone();
        let options = usvg::Options {
            fontdb: fonts(text::is_covered(&self.body)),
            font_family: FAMILY.to_owned(),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(&self.file(""), &options)
            .map_err(|source| DrawError::Drawing { name: name(), source })?;
        let scale = scale.min(MOST_PIXELS / self.height.max(WIDTH));
        let pixels = |length: f64| (length * scale).round() as u32;
        let (width, height) = (pixels(WIDTH), pixels(self.height));
        let mut picture = tiny_skia::Pixmap::new(width, height)
            .ok_or_else(|| DrawError::Pixels { name: name(), width, height })?;
        let transform = tiny_skia::Transform::from_scale(scale as f32, scale as f32);
        resvg::render(&tree, transform, &mut picture.as_mut());
        picture.encode_png().map_err(|_| DrawError::Encoding { name: name() })
    }
}

/// The built-in font alone, or before all that are installed: reading those takes a while.
fn fonts(alone: bool) -> Arc<usvg::fontdb::Database> {
    static ALONE: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    static ALL: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(FONT.to_vec());
        if !alone {
            fonts.load_system_fonts();
        }
        fonts.set_sans_serif_family(FAMILY);
        Arc::new(fonts)
    };
    Arc::clone(if alone { &ALONE } else { &ALL }.get_or_init(load))
}

/// The font for a style sheet.
pub(crate) fn font_base64() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| BASE64_STANDARD.encode(FONT))
}

/// Where a text begins, relative to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen<'a> {
    pub(crate) colour: &'a str,
    pub(crate) width: f64,
    pub(crate) dash: &'a str,
    pub(crate) opacity: f64,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(colour: &'a str, width: f64) -> Self {
        Self { colour, width, dash: "", opacity: 1.0 }
    }

    pub(crate) fn dashed(self, dash: &'a str) -> Self {
        Self { dash, ..self }
    }

    pub(crate) fn faint(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }

    fn attributes(&self) -> String {
        let mut out = format!("stroke=\"{}\" stroke-width=\"{}\"", self.colour, short(self.width));
        if !self.dash.is_empty() {
            let _ = write!(out, " stroke-dasharray=\"{}\"", self.dash);
        }
        if self.opacity < 1.0 {
            let _ = write!(out, " stroke-opacity=\"{}\"", short(self.opacity));
        }
        out
    }
}

/// A drawing in progress. Colours are ours, never a record's; texts are escaped.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: String,
}

/// Two digits behind the point are enough for a place on paper; what is no number is drawn at 0.
fn short(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Canvas {
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), pen: Pen) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
        let pen = pen.attributes();
        let _ = write!(self.body, "<path d=\"M{x1} {y1}L{x2} {y2}\" {pen}/>");
    }

    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], pen: Pen) {
        let path = path(points);
        let pen = pen.attributes();
        let _ =
            write!(self.body, "<path d=\"{path}\" fill=\"none\" stroke-linejoin=\"round\" {pen}/>");
    }

    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], fill: &str, opacity: f64, pen: Pen) {
        let (path, opacity) = (path(points), short(opacity));
        let pen = pen.attributes();
        let _ = write!(
            self.body,
            "<path d=\"{path}Z\" fill=\"{fill}\" fill-opacity=\"{opacity}\" stroke-linejoin=\"round\" {pen}/>"
        );
    }

    pub(crate) fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), fill: &str, opacity: f64) {
        let [x, y, w, h] = [at.0, at.1, size.0, size.1].map(short);
        let opacity = match opacity {
            o if o < 1.0 => format!(" fill-opacity=\"{}\"", short(o)),
            _ => String::new(),
        };
        let _ = write!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\"{opacity}/>"
        );
    }

    pub(crate) fn circle(&mut self, at: (f64, f64), radius: f64, fill: &str, pen: Pen) {
        let [x, y, r] = [at.0, at.1, radius].map(short);
        let pen = pen.attributes();
        let _ =
            write!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{fill}\" {pen}/>");
    }

    /// Many dots of one colour as a single path: a tenth of the bytes of as many circles.
    pub(crate) fn dots(
        &mut self,
        points: impl IntoIterator<Item = (f64, f64)>,
        size: f64,
        colour: &str,
        opacity: f64,
    ) {
        let mut path = String::new();
        for (x, y) in points {
            // a line of no length is no dot for every renderer
            let _ = write!(path, "M{} {}h.01", short(x), short(y));
        }
        let pen = Pen::new(colour, size).faint(opacity).attributes();
        let _ =
            write!(self.body, "<path d=\"{path}\" fill=\"none\" stroke-linecap=\"round\" {pen}/>");
    }

    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.text_in(at, anchor, text, "currentColor", SIZE);
    }

    pub(crate) fn text_in(
        &mut self,
        at: (f64, f64),
        anchor: Anchor,
        text: &str,
        colour: &str,
        size: f64,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let [x, y, size] = [at.0, at.1, size].map(short);
        let markup = html! {
            text x=(x) y=(y) font-size=(size) text-anchor=(anchor) fill=(colour) { (text::clean(text)) }
        };
        self.body.push_str(&markup.into_string());
    }

    /// A text on a ground of the paper's colour, so that lines do not run through it.
    pub(crate) fn plate(&mut self, at: (f64, f64), anchor: Anchor, text: &str, size: f64) {
        let width = text::width(&text::clean(text), size) + 4.0;
        let left = match anchor {
            Anchor::Start => at.0 - 2.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width + 2.0,
        };
        let [x, y, w, h] = [left, at.1 - size * 0.9, width, size * 1.2].map(short);
        let _ = write!(
            self.body,
            "<rect class=\"paper\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"2\" fill=\"#ffffff\" fill-opacity=\"0.75\"/>"
        );
        self.text_in(at, anchor, text, "currentColor", size);
    }

    /// A title in as many lines as it needs; gives the height used.
    pub(crate) fn title(&mut self, title: &str) -> f64 {
        let lines = text::balanced(title, SIZE + 1.0, WIDTH - 8.0);
        for (at, line) in lines.iter().enumerate() {
            let place = (4.0, 16.0 + 17.0 * at as f64);
            self.text_in(place, Anchor::Start, line, "currentColor", SIZE + 1.0);
        }
        6.0 + 17.0 * lines.len() as f64
    }

    /// A line below the title, as what is measured and of how many; gives the height used.
    pub(crate) fn note(&mut self, used: f64, note: &str) -> f64 {
        let lines = text::wrapped(note, SIZE, WIDTH - 8.0);
        for (at, line) in lines.iter().enumerate() {
            self.text((4.0, used + 13.0 + 15.0 * at as f64), Anchor::Start, line);
        }
        used + 3.0 + 15.0 * lines.len() as f64
    }

    pub(crate) fn finish(self, name: &str, title: &str, height: f64) -> Figure {
        let (name, title) = (slug(name), text::clean(title));
        Figure { name, title, height: height.ceil(), body: self.body }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(out, "{}{} {}", if at == 0 { "M" } else { "L" }, short(*x), short(*y));
    }
    out
}

/// Letters of a figure's name, without its ending.
const MOST_LETTERS: usize = 150;

/// A file name of letters that every system takes.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || c == '+' => out.push(c),
            _ if !out.ends_with('-') && !out.is_empty() => out.push('-'),
            _ => {}
        }
        if out.len() >= MOST_LETTERS {
            break;
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "figure".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_harmless() {
        assert_eq!(slug("../../etc/<passwd> 50+5x10"), "etc-passwd-50+5x10");
        assert_eq!(slug("שלום"), "figure");
        assert!(slug(&"x".repeat(500)).len() <= MOST_LETTERS);
    }

    #[test]
    fn hostile_texts_are_drawn_as_texts() {
        let mut canvas = Canvas::default();
        canvas.text((10.0, 20.0), Anchor::Start, "<script>alert(1)</script> & \u{202e}\0");
        canvas.text((f64::NAN, f64::INFINITY), Anchor::End, "\"nowhere\"");
        let figure = canvas.finish("a", "<b>", 40.0);
        assert!(!figure.svg().contains("<script>") && !figure.svg().contains("<b>"));
        assert!(!figure.svg().contains("NaN") && !figure.svg().contains("inf"));
        assert!(figure.png(1.0).unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn letters_are_drawn_without_any_font_installed() {
        let drawn = |label: &str| {
            let mut canvas = Canvas::default();
            canvas.text((10.0, 20.0), Anchor::Start, label);
            canvas.finish("a", "t", 40.0).png(1.0).unwrap()
        };
        assert_ne!(drawn(""), drawn("λ = 0.5"));
    }
}
