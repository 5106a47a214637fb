//! A page as one file: its head, its sections, its foot. It runs no script and fetches nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::plot::canvas::font_base64;
use crate::plot::text::FAMILY;

const STYLE: &str = include_str!("document.css");
/// Nothing is fetched and nothing runs, whatever names the page shows.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; font-src data:; img-src data:; base-uri 'none'; form-action 'none'";

/// All that makes a page.
pub(crate) struct Document<'a> {
    pub(crate) title: &'a str,
    /// Style of this page alone.
    pub(crate) style: &'a str,
    pub(crate) heading: Markup,
    /// What stands between the heading and the list of sections.
    pub(crate) summary: Markup,
    pub(crate) sections: &'a [Section],
    /// What stands at the foot.
    pub(crate) notes: Markup,
}

/// A part of a page.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) body: Markup,
}

impl Document<'_> {
    pub(crate) fn html(&self) -> String {
        let style = format!("{}\n{STYLE}\n{}", font_face(), self.style);
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (PreEscaped(style)) }
                }
                body id="top" {
                    header {
                        h1 { (self.heading) }
                        (self.summary)
                        nav aria-label="Sections" { ul {
                            @for part in self.sections { li { a href={"#" (part.id)} { (part.title) } } }
                        } }
                    }
                    main { @for part in self.sections { (part) } }
                    footer {
                        (self.notes)
                        p { "Built by ivoro " (env!("CARGO_PKG_VERSION")) ". Letters in figures are Noto Sans "
                            "(SIL Open Font License)." }
                    }
                }
            }
        };
        markup.into_string()
    }
}

impl maud::Render for Section {
    fn render(&self) -> Markup {
        html! {
            section id=(self.id) {
                h2 { (self.title) }
                (self.body)
                a.top href="#top" { "Back to the top" }
            }
        }
    }
}

/// The font of the figures, for a style sheet.
fn font_face() -> String {
    let font = font_base64();
    format!("@font-face{{font-family:\"{FAMILY}\";src:url(data:font/ttf;base64,{font})}}")
}
