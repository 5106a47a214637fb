//! From values to places on an axis.

use crate::plot::text::number;

/// An axis between two values, with the values that are written at it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Scale {
    /// An axis over these values that begins and ends at round numbers.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        let pad = if high > low { 0.0 } else { low.abs().max(1.0) * 0.05 };
        Self::round(low - pad, high + pad)
    }

    /// The same, but not beyond these limits.
    pub(crate) fn within(values: impl IntoIterator<Item = f64>, least: f64, most: f64) -> Self {
        let mut scale = Self::over(values);
        scale.low = scale.low.max(least);
        scale.high = scale.high.min(most);
        if scale.high <= scale.low {
            scale = Self::round(least, most);
        }
        let (low, high) = (scale.low, scale.high);
        scale.ticks.retain(|(value, _)| (low - 1e-9..=high + 1e-9).contains(value));
        scale
    }

    fn round(low: f64, high: f64) -> Self {
        let step = step((high - low) / 4.0);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let digits = if step >= 1.0 { 0 } else { digits };
        let ticks: Vec<(f64, String)> =
            (first..=last).map(|at| (at as f64 * step, number(at as f64 * step, digits))).collect();
        Self { low: first as f64 * step, high: last as f64 * step, logarithmic: false, ticks }
    }

    /// An axis of powers of ten over positive values.
    pub(crate) fn logarithmic(
        values: impl IntoIterator<Item = f64>,
        name: impl Fn(f64) -> String,
    ) -> Self {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let (low, high) = bounds(positive).unwrap_or((1.0, 10.0));
        // values that are nearly one still need an axis with two ticks
        let (low, high) = if high < 3.0 * low { (low / 2.0, high * 2.0) } else { (low, high) };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let last = last.max(first + 1);
        let every = ((last - first) / 6 + 1).max(1);
        let room = 10f64.powf(0.06 * f64::from(last - first));
        let (low, high) = (low / room, high * room);
        let inside = |factors: &'static [f64], every: i32| -> Vec<f64> {
            let decades = (first..=last).filter(|power| (power - first) % every == 0);
            let all = decades.flat_map(|power| factors.iter().map(move |f| f * 10f64.powi(power)));
            all.filter(|value| (low..=high).contains(value)).collect()
        };
        // few decades at first, and no more than it takes to read the axis
        let mut values = inside(&[1.0], every);
        for (factors, every) in [(&[1.0][..], 1), (&[1.0, 2.0, 5.0], 1)] {
            if values.len() < 3 {
                values = inside(factors, every);
            }
        }
        let ticks = values.into_iter().map(|value| (value, name(value))).collect();
        Self { low, high, logarithmic: true, ticks }
    }

    /// Equal places 0, 1, … with a name each.
    pub(crate) fn places(names: Vec<String>) -> Self {
        let high = names.len() as f64 - 0.5;
        let ticks = names.into_iter().enumerate().map(|(at, name)| (at as f64, name)).collect();
        Self { low: -0.5, high: high.max(0.5), logarithmic: false, ticks }
    }

    /// An axis with given ends and ticks.
    pub(crate) fn fixed(low: f64, high: f64, ticks: Vec<(f64, String)>) -> Self {
        Self { low, high, logarithmic: false, ticks }
    }

    /// Where a value is between the ends, 0 to 1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Values with their names.
    pub(crate) fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }
}

/// The least and the largest finite value.
pub(crate) fn bounds(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// The next of 1, 2, 2.5, 5 times a power of ten.
fn step(rough: f64) -> f64 {
    let rough = if rough.is_finite() && rough > 0.0 { rough } else { 1.0 };
    let power = 10f64.powf(rough.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| rough <= round * power * 1.001);
    round.unwrap_or(10.0) * power
}

/// Bytes in the largest unit that leaves a whole number.
pub(crate) fn bytes(value: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.into_iter().find(|(size, _)| value >= *size * 0.9995);
    let (size, name) = unit.unwrap_or((1.0, "B"));
    let digits = usize::from(value / size < 9.95 && (value / size).fract() > 0.04);
    format!("{} {name}", number(value / size, digits))
}

/// Seconds in a readable unit.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v < 0.000_999_5 => format!("{} µs", number(v * 1e6, 0)),
        v if v < 0.999_5 => format!("{} ms", number(v * 1e3, 0)),
        v if v < 9.95 && v.fract() > 0.04 => format!("{} s", number(v, 1)),
        v => format!("{} s", number(v, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = Scale::over([41.3, 77.9, f64::NAN]);
        let names: Vec<&str> = scale.ticks().iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["40", "50", "60", "70", "80"]);
        assert_eq!((scale.share(40.0), scale.share(80.0)), (0.0, 1.0));
        assert_eq!(Scale::within([3.0, 99.0], 0.0, 100.0).share(100.0), 1.0);
    }

    #[test]
    fn one_value_and_none_still_make_an_axis() {
        for scale in [Scale::over([5.0]), Scale::over([]), Scale::within([f64::NAN], 0.0, 100.0)] {
            assert!(scale.ticks().len() >= 2, "{scale:?}");
            assert!(scale.share(scale.ticks()[0].0).is_finite());
        }
    }

    #[test]
    fn powers_of_ten() {
        let scale = Scale::logarithmic([2_048.0, 1_990_680.0], bytes);
        let names: Vec<&str> = scale.ticks().iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["10 kB", "100 kB", "1 MB"]);
        let wide = Scale::logarithmic([0.0008, 30.0], seconds);
        let names: Vec<&str> = wide.ticks().iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
        assert!(Scale::logarithmic([3.0], bytes).ticks().len() >= 2);
        assert!(Scale::logarithmic([], bytes).share(2.0).is_finite());
    }

    #[test]
    fn units() {
        assert_eq!([bytes(4120.0), bytes(56.0), bytes(2e6)], ["4.1 kB", "56 B", "2 MB"]);
        assert_eq!([seconds(0.0123), seconds(1.26), seconds(40.0)], ["12 ms", "1.3 s", "40 s"]);
    }
}
