//! Colours that people with any colour vision can tell apart.

/// Okabe and Ito's colours without yellow, which is too weak for lines on white; their black is
/// the colour of the text, so that it turns with the page.
const LINES: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "currentColor"];

/// Dashes of lines that share a colour.
const DASHES: [&str; 4] = ["", "6 3", "2 3", "8 3 2 3"];

/// Okabe and Ito's eight for areas, and two more, grey and violet, that keep apart from them.
const AREAS: [&str; 10] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#882255",
    "#999999", "#7a5fd0",
];

/// The colour of a reference that is in several panels.
pub(crate) const REFERENCE: &str = "#8a8a8a";

/// Colour of the n-th line.
pub(crate) fn line(at: usize) -> &'static str {
    LINES[at % LINES.len()]
}

/// Dash of the n-th line: after one round of colours, another dash.
pub(crate) fn dash(at: usize) -> &'static str {
    DASHES[at / LINES.len() % DASHES.len()]
}

/// Colour of the n-th area.
pub(crate) fn area(at: usize) -> &'static str {
    AREAS[at % AREAS.len()]
}

/// How many areas have colours of their own.
pub(crate) const AREA_COLOURS: usize = AREAS.len();

/// From dark blue over grey to yellow (cividis), for a share from 0 to 1; equally even in
/// lightness for all colour visions.
pub(crate) fn ramp(share: f64) -> String {
    const STOPS: [[f64; 3]; 5] = [
        [0.0, 34.0, 78.0],
        [65.0, 77.0, 107.0],
        [124.0, 123.0, 120.0],
        [188.0, 174.0, 108.0],
        [254.0, 232.0, 56.0],
    ];
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let low = (place.floor() as usize).min(STOPS.len() - 2);
    let part = place - low as f64;
    let [r, g, b] = [0, 1, 2]
        .map(|at| (STOPS[low][at] + part * (STOPS[low + 1][at] - STOPS[low][at])).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Black or white, whichever is seen better on a colour `#rrggbb`.
pub(crate) fn against(colour: &str) -> &'static str {
    let part = |at: usize| colour.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let parts = [1, 3, 5].map(|at| f64::from(part(at).unwrap_or(255)));
    let bright: f64 =
        parts.iter().zip([0.299, 0.587, 0.114]).map(|(part, share)| part * share).sum();
    if bright < 110.0 { "#ffffff" } else { "#000000" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_goes_from_end_to_end() {
        assert_eq!((ramp(-1.0).as_str(), ramp(2.0).as_str()), ("#00224e", "#fee838"));
        assert_eq!(ramp(0.5), "#7c7b78");
        // what is no number has a colour too
        assert_eq!(ramp(f64::NAN).len(), 7);
    }

    #[test]
    fn lines_differ_in_colour_or_dash() {
        let looks: std::collections::HashSet<_> = (0..28).map(|at| (line(at), dash(at))).collect();
        assert_eq!(looks.len(), 28);
    }

    #[test]
    fn a_line_on_a_colour_can_be_seen() {
        assert_eq!([ramp(0.0), ramp(1.0)].map(|colour| against(&colour)), ["#ffffff", "#000000"]);
        assert_eq!(against("currentColor"), "#000000");
    }
}
