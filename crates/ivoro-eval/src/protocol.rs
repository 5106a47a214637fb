//! Which classes arrive when: protocols (`50+5x10`) and class orders (`numpy:1993`).
//!
//! Inside the library a class is its position in the order of arrival: class 0 is the first of
//! phase 0, and the classes of a phase are consecutive.

use std::fmt;
use std::num::IntErrorKind;
use std::ops::Range;
use std::str::FromStr;

use ivoro::{Error, Result};

/// How many classes each phase brings.
///
/// ```
/// let protocol: ivoro_eval::Protocol = "50+5x10".parse()?;
/// assert_eq!(protocol.phases().last(), Some(90..100));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    sizes: Vec<usize>,
}

impl Protocol {
    /// A protocol from the number of classes in each phase.
    pub fn new(sizes: Vec<usize>) -> Result<Self> {
        let text = || sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        if sizes.is_empty() || sizes.contains(&0) {
            let reason = "every phase needs at least one class".to_owned();
            return Err(Error::Protocol { text: text(), reason });
        }
        if sizes
            .iter()
            .try_fold(0usize, |sum, &size| sum.checked_add(size))
            .is_none_or(|s| s > 1 << 24)
        {
            let reason = "more than 2^24 classes".to_owned();
            return Err(Error::Protocol { text: text(), reason });
        }
        Ok(Self { sizes })
    }

    /// Classes per phase.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Classes in all phases together.
    pub fn classes(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The classes of each phase, by order of arrival.
    pub fn phases(&self) -> impl Iterator<Item = Range<usize>> {
        self.sizes.iter().scan(0, |next, &size| {
            let first = *next;
            *next += size;
            Some(first..*next)
        })
    }

    /// Checks that the protocol uses exactly the classes there are.
    pub fn check(&self, classes: usize) -> Result<()> {
        if self.classes() == classes {
            return Ok(());
        }
        let reason = format!("it has {} classes, the data {classes}", self.classes());
        Err(Error::Protocol { text: self.to_string(), reason })
    }

    /// A protocol for any number of classes: half of them first, the rest in about five phases.
    pub fn default_for(classes: usize) -> Result<Self> {
        Self::new(ivoro::rehearsal::usual_phases(classes))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = &self.sizes[1..];
        match rest.first() {
            Some(&size) if rest.len() > 1 && rest.iter().all(|&other| other == size) => {
                write!(f, "{}+{}x{size}", self.sizes[0], rest.len())
            }
            _ => {
                let sizes: Vec<_> = self.sizes.iter().map(ToString::to_string).collect();
                f.write_str(&sizes.join(","))
            }
        }
    }
}

impl FromStr for Protocol {
    type Err = Error;

    /// Reads `50+5x10` (50 classes, then 5 phases of 10) or a list: `4,3,3`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |reason: &str| Error::Protocol {
            text: text.to_owned(),
            reason: format!("{reason}; write 50+5x10 or 4,3,3"),
        };
        let number = |part: &str| {
            part.trim().parse::<usize>().map_err(|error| match error.kind() {
                IntErrorKind::PosOverflow => bad("a number that is too large"),
                _ => bad("not a number"),
            })
        };
        let sizes = if let Some((base, rest)) = text.split_once('+') {
            let (count, size) = rest.split_once('x').ok_or_else(|| bad("no x behind the +"))?;
            let (count, size) = (number(count)?, number(size)?);
            if count > 1 << 20 {
                return Err(bad("too many phases"));
            }
            std::iter::once(number(base)?).chain(std::iter::repeat_n(size, count)).collect()
        } else {
            text.split(',').map(number).collect::<Result<Vec<_>>>()?
        };
        Self::new(sizes)
    }
}

/// In which order the classes of a data set arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassOrder {
    /// Class ids as they are.
    Identity,
    /// A permutation drawn with this crate's own generator.
    Seed(u64),
    /// `numpy.random.RandomState(seed).permutation(K)`.
    Numpy(u32),
    /// An explicit list of class ids.
    List(Vec<usize>),
}

impl ClassOrder {
    /// The class ids in order of arrival.
    pub fn permutation(&self, classes: usize) -> Result<Vec<usize>> {
        match self {
            Self::Identity => Ok((0..classes).collect()),
            Self::Seed(seed) => Ok(ivoro::random::permutation(*seed, classes)),
            Self::Numpy(seed) => Ok(ivoro::random::numpy_permutation(*seed, classes)),
            Self::List(list) => check_list(list, classes),
        }
    }

    /// An order from the text of a file: class ids, or class names, separated by white space,
    /// commas or JSON brackets.
    pub fn from_list_text(text: &str, names: &[String]) -> Result<Self> {
        let parts = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '"'));
        let id = |part: &str| {
            let by_name = || names.iter().position(|name| name == part);
            by_name().or_else(|| part.parse().ok()).ok_or_else(|| Error::Order {
                text: "file".to_owned(),
                reason: format!("{part} is neither a class name nor a class id"),
            })
        };
        parts.filter(|part| !part.is_empty()).map(id).collect::<Result<_>>().map(Self::List)
    }
}

/// The list itself, if it is a permutation.
fn check_list(list: &[usize], classes: usize) -> Result<Vec<usize>> {
    let bad = |reason: String| Error::Order { text: "list".to_owned(), reason };
    if list.len() != classes {
        return Err(bad(format!("{} entries for {classes} classes", list.len())));
    }
    let mut seen = vec![false; classes];
    for &id in list {
        match seen.get_mut(id) {
            None => return Err(bad(format!("class {id} is outside 0..{classes}"))),
            Some(true) => return Err(bad(format!("class {id} occurs twice"))),
            Some(free) => *free = true,
        }
    }
    Ok(list.to_vec())
}

impl fmt::Display for ClassOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Seed(seed) => write!(f, "{seed}"),
            Self::Numpy(seed) => write!(f, "numpy:{seed}"),
            // lists of the same length have to differ in a record, and in the name of its file
            Self::List(list) => {
                let bytes: Vec<u8> = list.iter().flat_map(|id| id.to_le_bytes()).collect();
                let hash = blake3::hash(&bytes).to_hex();
                write!(f, "list of {} {}", list.len(), &hash[..8])
            }
        }
    }
}

impl FromStr for ClassOrder {
    type Err = Error;

    /// Reads `identity`, a seed, or `numpy:SEED`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Order {
            text: text.to_owned(),
            reason: "write identity, a seed, numpy:SEED, or the path of a list".to_owned(),
        };
        match text.split_once(':') {
            Some(("numpy", seed)) => seed.parse().map(Self::Numpy).map_err(|_| bad()),
            Some(_) => Err(bad()),
            None if text == "identity" => Ok(Self::Identity),
            None => text.parse().map(Self::Seed).map_err(|_| bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_round_trip() {
        for text in ["50+5x10", "4,3,3", "10+9x10", "7", "2,1"] {
            let protocol: Protocol = text.parse().unwrap();
            assert_eq!(protocol.to_string().parse::<Protocol>().unwrap(), protocol);
        }
        assert_eq!("4,3,3".parse::<Protocol>().unwrap(), "4+2x3".parse().unwrap());
        assert_eq!(Protocol::default_for(100).unwrap().to_string(), "50+5x10");
        assert_eq!(Protocol::default_for(10).unwrap().classes(), 10);
        assert_eq!(Protocol::default_for(1).unwrap().sizes(), [1]);
    }

    #[test]
    fn nonsense_protocols_are_refused() {
        for text in ["", "50+5", "a", "4,0", "50+0x", "99999999999x1", "1+99999999x9", "-3"] {
            assert!(text.parse::<Protocol>().is_err(), "{text}");
        }
    }

    // np.random.RandomState(1993).permutation(100)[:10]
    #[test]
    fn numpy_order_begins_as_in_the_literature() {
        let order = ClassOrder::Numpy(1993).permutation(100).unwrap();
        assert_eq!(order[..10], [68, 56, 78, 8, 23, 84, 90, 65, 74, 76]);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
    }

    // np.random.RandomState(0).permutation(7) and RandomState(4294967295).permutation(7)
    #[test]
    fn numpy_order_with_extreme_seeds() {
        assert_eq!(
            ClassOrder::Numpy(0).permutation(7).unwrap(),
            [6, 2, 1, 3, 0, 5, 4][..].to_vec()
        );
    }

    #[test]
    fn lists_must_be_permutations() {
        let names: Vec<String> = ["cat", "dog", "eel"].map(String::from).to_vec();
        let order = ClassOrder::from_list_text("[\"eel\", 0,\n dog]", &names).unwrap();
        assert_eq!(order.permutation(3).unwrap(), [2, 0, 1]);
        assert!(ClassOrder::List(vec![0, 0, 1]).permutation(3).is_err());
        assert!(ClassOrder::List(vec![0, 3, 1]).permutation(3).is_err());
        assert!(ClassOrder::from_list_text("cat bird eel", &names).is_err());
    }
}
