//! Tensors of a request: as JSON, flat or nested, or as bytes behind the JSON.

use std::fmt;

use axum::body::Bytes;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use crate::problem::Problem;

/// Some clients pad, some don't.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A request for answers.
#[derive(Debug, Deserialize)]
pub(super) struct InferRequest {
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) parameters: Parameters,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Option<Vec<Output>>,
}

/// What a request says besides; what is not known here is left to others.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Parameters {
    pub(super) top: Option<usize>,
    pub(super) false_rejection: Option<f64>,
}

/// An output that is wanted.
#[derive(Debug, Deserialize)]
pub(super) struct Output {
    pub(super) name: String,
}

/// A tensor of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Tensor {
    pub(super) name: String,
    shape: Shape,
    pub(super) datatype: String,
    #[serde(default)]
    parameters: TensorParameters,
    data: Option<Data>,
}

#[derive(Debug, Default, Deserialize)]
struct TensorParameters {
    /// Bytes of its data behind the JSON.
    binary_data_size: Option<usize>,
}

/// A list, or of some clients a single number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Shape {
    One(i64),
    Several(Vec<i64>),
}

/// The elements of a tensor, in row-major order.
#[derive(Debug, PartialEq)]
enum Data {
    Numbers(Vec<f32>),
    Texts(Vec<String>),
}

impl Tensor {
    /// The shape, without the sizes that the client leaves open.
    fn shape(&self) -> Result<Vec<Option<usize>>, Problem> {
        let sizes = match &self.shape {
            Shape::One(one) => std::slice::from_ref(one),
            Shape::Several(several) => several,
        };
        let size = |&size: &i64| match size {
            -1 => Ok(None),
            size => usize::try_from(size).map(Some).map_err(|_| {
                Problem::bad(format!("shape: expected sizes of 0 and more, found {size}"))
            }),
        };
        sizes.iter().map(size).collect()
    }

    /// Takes its bytes from behind the JSON.
    pub(super) fn take<'a>(&self, rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Problem> {
        let Some(length) = self.parameters.binary_data_size else { return Ok(None) };
        let left = rest.len();
        rest.split_off(..length).map(Some).ok_or_else(|| {
            Problem::bad(format!("binary_data_size: expected at most {left} bytes, found {length}"))
        })
    }

    /// Files of images: base64 in JSON, as they are behind it.
    pub(super) fn images(self, raw: Option<&[u8]>) -> Result<Vec<Bytes>, Problem> {
        let shape = self.shape()?;
        let images = match (raw, self.data) {
            (Some(raw), _) => elements(raw)?,
            (None, Some(Data::Texts(texts))) => {
                let decoded = texts.iter().enumerate().map(|(at, text)| {
                    let text = text.trim();
                    let bytes = BASE64.decode(text).map(Bytes::from);
                    bytes.map_err(|error| {
                        Problem::bad(format!("image {at}: expected base64: {error}"))
                    })
                });
                decoded.collect::<Result<Vec<_>, _>>()?
            }
            (None, Some(Data::Numbers(numbers))) if numbers.is_empty() => Vec::new(),
            (None, Some(Data::Numbers(_))) => {
                return Err(Problem::bad("BYTES: expected images as base64, found numbers"));
            }
            (None, None) => return Err(Problem::bad("an input without data")),
        };
        check_elements(&shape, images.len())?;
        Ok(images)
    }

    /// Rows of numbers: how many, how many vectors each has, of how many numbers, and all numbers.
    pub(super) fn rows(self, raw: Option<&[u8]>) -> Result<Rows, Problem> {
        let shape = self.shape()?;
        let is_double = self.datatype == "FP64";
        let numbers = match (raw, self.data) {
            (Some(raw), _) if is_double => whole(raw, 8)?
                .as_chunks()
                .0
                .iter()
                .map(|it| f64::from_le_bytes(*it) as f32)
                .collect(),
            (Some(raw), _) => {
                whole(raw, 4)?.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
            }
            (None, Some(Data::Numbers(numbers))) => numbers,
            (None, Some(Data::Texts(_))) => {
                return Err(Problem::bad(format!(
                    "{}: expected numbers, found texts",
                    self.datatype
                )));
            }
            (None, None) => return Err(Problem::bad("an input without data")),
        };
        check_elements(&shape, numbers.len())?;
        let (blocks, dim) = match shape[..] {
            [dim] | [_, dim] => (1, dim),
            [_, Some(blocks), dim] => (blocks, dim),
            _ => {
                let expected = "[dimensions], [rows, dimensions] or [rows, vectors, dimensions]";
                return Err(Problem::bad(format!("shape: expected {expected}")));
            }
        };
        let single = shape.len() == 1;
        let dim = dim.or(single.then_some(numbers.len()));
        let dim =
            dim.ok_or_else(|| Problem::bad("shape: expected the number of dimensions, found -1"))?;
        let row = blocks.checked_mul(dim).filter(|row| *row > 0 && numbers.len() % row == 0);
        let row = row.ok_or_else(|| Problem::bad("shape: expected rows of one number or more"))?;
        Ok(Rows { count: numbers.len() / row, blocks, dim, numbers })
    }
}

/// Rows of numbers.
#[derive(Debug, PartialEq)]
pub(super) struct Rows {
    pub(super) count: usize,
    pub(super) blocks: usize,
    pub(super) dim: usize,
    pub(super) numbers: Vec<f32>,
}

fn check_elements(shape: &[Option<usize>], found: usize) -> Result<(), Problem> {
    let known = shape.iter().flatten().try_fold(1usize, |all, size| all.checked_mul(*size));
    let fits = match known {
        Some(all) if shape.contains(&None) => all > 0 && found.is_multiple_of(all),
        Some(all) => all == found,
        None => false,
    };
    if fits {
        return Ok(());
    }
    let shape: Vec<String> =
        shape.iter().map(|size| size.map_or("-1".to_owned(), |size| size.to_string())).collect();
    let shape = shape.join(", ");
    Err(Problem::bad(format!("data: expected elements for a shape of [{shape}], found {found}")))
}

fn whole(raw: &[u8], size: usize) -> Result<&[u8], Problem> {
    if raw.len().is_multiple_of(size) {
        return Ok(raw);
    }
    let found = raw.len();
    Err(Problem::bad(format!("data: expected a multiple of {size} bytes, found {found}")))
}

/// Elements of BYTES behind the JSON: each with its length before it, little-endian, in four bytes.
fn elements(mut raw: &[u8]) -> Result<Vec<Bytes>, Problem> {
    let cut_off = || Problem::bad("data: an element of BYTES is cut off");
    let mut elements = Vec::new();
    while !raw.is_empty() {
        let length = raw.split_off(..4).and_then(|it| it.try_into().ok()).ok_or_else(cut_off)?;
        let element = raw.split_off(..u32::from_le_bytes(length) as usize).ok_or_else(cut_off)?;
        elements.push(Bytes::copy_from_slice(element));
    }
    Ok(elements)
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut collected = Collected::default();
        deserializer.deserialize_any(Nested(&mut collected, 0))?;
        match (collected.numbers.is_empty(), collected.texts.is_empty()) {
            (false, false) => Err(D::Error::custom("numbers and texts in one tensor")),
            (_, true) => Ok(Self::Numbers(collected.numbers)),
            (true, false) => Ok(Self::Texts(collected.texts)),
        }
    }
}

#[derive(Default)]
struct Collected {
    numbers: Vec<f32>,
    texts: Vec<String>,
}

/// Lists in lists so deep.
const DEEPEST: usize = 8;

/// Reads an element, or a list of elements or lists, row by row.
struct Nested<'a>(&'a mut Collected, usize);

impl<'de> serde::de::DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers or texts, flat or in lists")
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.0.numbers.push(number as f32);
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.visit_f64(number as f64)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.0.texts.push(text.to_owned());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.1 == DEEPEST {
            return Err(A::Error::custom(format!("lists in more than {DEEPEST} lists")));
        }
        while list.next_element_seed(Nested(self.0, self.1 + 1))?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(text: &str) -> Tensor {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_read_flat_and_nested() {
        for data in ["[1, 2, 4, 5]", "[[1, 2], [4, 5.0]]"] {
            let text = format!(r#"{{"name":"x","shape":[2,2],"datatype":"FP32","data":{data}}}"#);
            let rows = tensor(&text).rows(None).unwrap();
            assert_eq!(
                rows,
                Rows { count: 2, blocks: 1, dim: 2, numbers: vec![1.0, 2.0, 4.0, 5.0] }
            );
        }
        let open = tensor(r#"{"name":"x","shape":[-1,2,1],"datatype":"FP64","data":[1,2,3,4]}"#);
        assert_eq!(open.rows(None).unwrap().blocks, 2);
        let deep = "[".repeat(20) + &"]".repeat(20);
        for (shape, data) in [
            ("[3,2]", "[1,2]"),
            ("[0]", "[]"),
            ("[-2]", "[1]"),
            ("[1,-1]", "[1]"),
            ("[2]", "[\"a\",\"b\"]"),
            ("[9223372036854775807, 9223372036854775807]", "[1]"),
            ("[1,1,1,1]", "[1]"),
        ] {
            let text = format!(r#"{{"name":"x","shape":{shape},"datatype":"FP32","data":{data}}}"#);
            assert!(tensor(&text).rows(None).is_err(), "{text}");
        }
        for data in [&deep, "[1,\"a\"]", "[null]", "[true]", "{}"] {
            let text = format!(r#"{{"name":"x","shape":[1],"datatype":"FP32","data":{data}}}"#);
            assert!(serde_json::from_str::<Tensor>(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn images_are_base64_in_json_and_bytes_behind_it() {
        let list = tensor(r#"{"name":"x","shape":[2],"datatype":"BYTES","data":["aGk=","aGk"]}"#);
        assert_eq!(list.images(None).unwrap(), [&b"hi"[..], b"hi"]);
        // as one sample of KServe has it: no list, and a shape without one
        let bare = tensor(r#"{"name":"x","shape":-1,"datatype":"BYTES","data":"aGk="}"#);
        assert_eq!(bare.images(None).unwrap(), [&b"hi"[..]]);
        let text =
            r#"{"name":"x","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}}"#;
        let mut rest: &[u8] = b"\x02\0\0\0hi";
        let behind = tensor(text);
        let raw = behind.take(&mut rest).unwrap();
        assert_eq!(behind.images(raw).unwrap(), [&b"hi"[..]]);
        assert!(tensor(text).take(&mut &b"hi"[..]).is_err());
        for cut in [&b"\x02\0\0"[..], b"\x03\0\0\0hi", b"\xff\xff\xff\xffhi"] {
            assert!(tensor(text).images(Some(cut)).is_err());
        }
        assert!(
            tensor(r#"{"name":"x","shape":[1],"datatype":"BYTES","data":["!"]}"#)
                .images(None)
                .is_err()
        );
    }
}
