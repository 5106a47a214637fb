//! What values a setting may have, and the values themselves.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};

/// The value of a setting. `Display` writes it as the command line takes it, serde as files hold it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// A number.
    Number(f64),
    /// Two numbers.
    Pair([f64; 2]),
    /// A whole number, not negative.
    Whole(u64),
    /// One of several words.
    Word(String),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Pair([a, b]) => write!(f, "{a},{b}"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Which values are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SettingRange {
    /// Numbers from −10 to 10.
    WithinTen,
    /// Finite numbers above 0.
    Positive,
    /// Finite numbers.
    Finite,
    /// Finite numbers from 0 on.
    NotNegative,
    /// Finite numbers but 0.
    NotZero,
    /// Two numbers from 0 on, not both 0.
    Weights,
    /// Whole numbers from 1 to 1048576.
    Dimension,
    /// The same, or the word for all of them.
    Rank,
    /// Whole numbers from 1 to 1000000.
    Iterations,
    /// Whole numbers.
    Whole,
    /// These words.
    Words(&'static [&'static str]),
}

impl SettingRange {
    /// Refuses a value out of range.
    pub(crate) fn check(self, name: &'static str, value: &SettingValue) -> Result<()> {
        let refuse = |value: String, reason| Err(Error::Setting { name, value, reason });
        match value {
            SettingValue::Number(number) => self.check_number(name, *number),
            SettingValue::Pair(pair) => {
                pair.iter().try_for_each(|&weight| Self::NotNegative.check_number(name, weight))?;
                if pair.iter().sum::<f64>() > 0.0 {
                    return Ok(());
                }
                refuse(value.to_string(), "at least one must be positive")
            }
            SettingValue::Whole(number) => match self {
                Self::Dimension | Self::Rank if !(1..=1 << 20).contains(number) => {
                    refuse(value.to_string(), "must lie in 1..=1048576")
                }
                Self::Iterations if !(1..=1_000_000).contains(number) => {
                    refuse(value.to_string(), "must lie in 1..=1000000")
                }
                _ => Ok(()),
            },
            SettingValue::Word(_) => Ok(()),
        }
    }

    /// Refuses a number out of range.
    pub(crate) fn check_number(self, name: &'static str, value: f64) -> Result<()> {
        let (allowed, reason) = match self {
            Self::WithinTen => (value.abs() <= 10.0, "must lie in -10..=10"),
            Self::Positive => (value > 0.0, "must be positive"),
            Self::NotNegative => (value >= 0.0, "must be finite and not negative"),
            Self::NotZero => (value != 0.0, "must be finite and not 0"),
            _ => (true, "must be finite"),
        };
        if allowed && value.is_finite() {
            return Ok(());
        }
        Err(Error::Setting { name, value: value.to_string(), reason })
    }
}

impl fmt::Display for SettingRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithinTen => "-10 to 10",
            Self::Positive => "above 0",
            Self::Finite => "finite",
            Self::NotZero => "not 0",
            Self::Weights => "0 or more, not both 0",
            Self::Dimension => "1 to 1048576",
            Self::Rank => "1 to 1048576, or full",
            Self::Iterations => "1 to 1000000",
            Self::NotNegative | Self::Whole => "0 or more",
            Self::Words(words) => return f.write_str(&words.join(", ")),
        })
    }
}
