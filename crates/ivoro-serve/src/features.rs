//! Feature vectors as requests bring them, and what a model makes of them.

use std::fmt;

use ivoro::{Matrix, Points, Variant, View};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

use crate::problem::Problem;

/// The features of one sample or query: one vector, or one for each layer and view, the last layer first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Vectors {
    One(Vec<f32>),
    Several(Vec<Vec<f32>>),
}

impl Vectors {
    pub(crate) fn blocks(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Several(several) => several.len(),
        }
    }

    pub(crate) fn block(&self, at: usize) -> Option<&[f32]> {
        match self {
            Self::One(one) => (at == 0).then_some(one),
            Self::Several(several) => several.get(at).map(Vec::as_slice),
        }
    }
}

impl<'de> Deserialize<'de> for Vectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List)
    }
}

/// Reads a list of numbers, or of lists of numbers.
struct List;

/// What a list has as its first.
enum Cell {
    Number(f32),
    Vector(Vec<f32>),
}

impl<'de> Visitor<'de> for List {
    type Value = Vectors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers, or a list of such lists: one for each layer and view")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vectors, A::Error> {
        match list.next_element()? {
            None => Ok(Vectors::One(Vec::new())),
            Some(Cell::Number(first)) => {
                let mut numbers = Vec::with_capacity(512);
                numbers.push(first);
                while let Some(number) = list.next_element::<f32>()? {
                    numbers.push(number);
                }
                Ok(Vectors::One(numbers))
            }
            Some(Cell::Vector(first)) => {
                let mut vectors = vec![first];
                while let Some(vector) = list.next_element::<Vec<f32>>()? {
                    vectors.push(vector);
                }
                Ok(Vectors::Several(vectors))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a list of numbers")
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Cell, E> {
                Ok(Cell::Number(number as f32))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Cell, E> {
                Ok(Cell::Number(number as f32))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Cell, E> {
                Ok(Cell::Number(number as f32))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = list.next_element::<f32>()? {
                    numbers.push(number);
                }
                if numbers.is_empty() {
                    return Err(A::Error::custom("a vector without a number"));
                }
                Ok(Cell::Vector(numbers))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Points of vectors that all have the same number of blocks and dimensions.
pub(crate) fn points(origin: &str, variant: Variant, rows: &[&Vectors]) -> Result<Points, Problem> {
    let Some(first) = rows.first() else {
        return Err(Problem::unprocessable("no feature vector was given"));
    };
    let mut blocks = Vec::with_capacity(first.blocks());
    for at in 0..first.blocks() {
        let dim = first.block(at).map_or(0, <[f32]>::len);
        let mut numbers = Vec::with_capacity(dim * rows.len());
        for (row, vectors) in rows.iter().enumerate() {
            let block = vectors.block(at).filter(|_| vectors.blocks() == first.blocks());
            match block {
                Some(block) if block.len() == dim => numbers.extend_from_slice(block),
                other => {
                    let found = other.map_or(0, <[f32]>::len);
                    return Err(Problem::unprocessable(format!(
                        "{origin}: row {row}: numbers of its features: expected {dim}, found {found}"
                    )));
                }
            }
        }
        blocks.push(Matrix::new(rows.len(), dim, numbers)?);
    }
    assembled(origin, variant, blocks)
}

/// Points of matrices: a single one is the upright view of the last layer, several are all layers and views that
/// the variant looks at.
pub(crate) fn assembled(
    origin: &str,
    variant: Variant,
    blocks: Vec<Matrix>,
) -> Result<Points, Problem> {
    let layers = variant.layers().end;
    let (layers, views) = match blocks.len() {
        1 => (1, vec![View::UPRIGHT]),
        found => {
            let views = View::conventional(found / layers.max(1));
            let own = variant.views();
            let views = if own.len() * layers == found { Some(own) } else { views };
            let views = views.filter(|views| views.len() * layers == found);
            let views = views.ok_or_else(|| {
                Problem::unprocessable(format!(
                    "{origin}: vectors of a sample for {variant}: expected {}, found {found}",
                    layers * variant.views().len()
                ))
            })?;
            (layers, views)
        }
    };
    let name = |layer| if layer == 0 { "last".to_owned() } else { format!("last but {layer}") };
    Ok(Points::new(origin, (0..layers).map(name).collect(), views, blocks)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_flat_and_nested() {
        let read = |text: &str| serde_json::from_str::<Vectors>(text);
        assert_eq!(read("[1, 2.5, -3e0]").unwrap(), Vectors::One(vec![1.0, 2.5, -3.0]));
        let several = Vectors::Several(vec![vec![1.0], vec![2.0]]);
        assert_eq!(read("[[1], [2]]").unwrap(), several);
        for bad in ["1", "[1, [2]]", "[[1], 2]", "[\"a\"]", "[[]]", "[[[1]]]", "[null]"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
