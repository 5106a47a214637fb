//! When a photo was taken, by the camera's clock.

use std::fmt;
use std::io::BufReader;
use std::path::Path;

use exif::{DateTime, In, Reader, Tag, Value};

/// Larger files are not searched for a time: some kinds are read whole for it.
const MOST_BYTES: u64 = 1 << 28;

/// A moment by a camera's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Taken {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    milliseconds: u16,
}

impl Taken {
    /// What the photo says; none where it says nothing that can be read.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = std::fs::File::open(path).ok()?;
        if file.metadata().ok()?.len() > MOST_BYTES {
            return None;
        }
        let found = Reader::new().read_from_container(&mut BufReader::new(file)).ok()?;
        let text = |tag: Tag| match &found.get_field(tag, In::PRIMARY)?.value {
            Value::Ascii(texts) => texts.first().cloned(),
            _ => None,
        };
        let mut time = DateTime::from_ascii(&text(Tag::DateTimeOriginal)?).ok()?;
        if let Some(part) = text(Tag::SubSecTimeOriginal) {
            // without it the time is one of whole seconds
            let _ = time.parse_subsec(&part);
        }
        let valid = (1..=12).contains(&time.month) && (1..=31).contains(&time.day);
        let valid = valid && time.hour < 24 && time.minute < 60 && time.second < 61;
        valid.then(|| Self {
            year: time.year,
            month: time.month,
            day: time.day,
            hour: time.hour,
            minute: time.minute,
            second: time.second,
            milliseconds: (time.nanosecond.unwrap_or(0) / 1_000_000) as u16,
        })
    }

    /// Seconds since some fixed moment.
    pub(super) fn seconds(self) -> f64 {
        // days of the civil calendar, counted from a March so that a leap day ends a year
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let year = if month <= 2 { year - 1 } else { year };
        let month = (month + 9) % 12;
        let days = 365 * year + year / 4 - year / 100
            + year / 400
            + (153 * month + 2) / 5
            + i64::from(self.day);
        let clock = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60;
        (days * 86_400 + clock + i64::from(self.second)) as f64 + f64::from(self.milliseconds) / 1e3
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.milliseconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: u16, month: u8, day: u8) -> Taken {
        Taken { year, month, day, hour: 0, minute: 0, second: 0, milliseconds: 0 }
    }

    // date -u -d 2024-03-01 +%s and so on give the same differences
    #[test]
    fn seconds_run_over_the_ends_of_months_and_years() {
        let days = |from: Taken, to: Taken| (to.seconds() - from.seconds()) / 86_400.0;
        assert_eq!(days(at(2024, 2, 28), at(2024, 3, 1)), 2.0);
        assert_eq!(days(at(2023, 2, 28), at(2023, 3, 1)), 1.0);
        assert_eq!(days(at(1999, 12, 31), at(2000, 1, 1)), 1.0);
        assert_eq!(days(at(1970, 1, 1), at(2026, 11, 19)), 20_776.0);
        assert_eq!(days(at(1900, 1, 1), at(2000, 1, 1)), 36_524.0);
    }
}
