//! The cells of table columns: lists of floats, and integers or text.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float32Array, Int64Array, LargeStringArray, StringArray, StringViewArray,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

/// A cast that fails where a value does not fit, instead of leaving the cell empty.
fn cast(array: &dyn Array, kind: &DataType) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, kind, &options).map_err(|error| error.to_string())
}

/// A column of lists of numbers.
pub(super) struct Lists {
    lists: ArrayRef,
    values: Float32Array,
}

impl Lists {
    pub(super) fn new(column: &ArrayRef) -> Result<Self, String> {
        let values = match column.data_type() {
            DataType::FixedSizeList(..) => column.as_fixed_size_list().values(),
            DataType::List(_) => column.as_list::<i32>().values(),
            DataType::LargeList(_) => column.as_list::<i64>().values(),
            kind => return Err(format!("expected lists of floats, found {kind}")),
        };
        if !matches!(values.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64)
        {
            return Err(format!("expected lists of floats, found lists of {}", values.data_type()));
        }
        let values = cast(values, &DataType::Float32)?.as_primitive::<Float32Type>().clone();
        Ok(Self { lists: column.clone(), values })
    }

    /// The numbers of one row.
    pub(super) fn row(&self, row: usize) -> Result<&[f32], &'static str> {
        if self.lists.is_null(row) {
            return Err("no value");
        }
        let range = self.range(row).ok_or("a list that ends before it begins")?;
        if self.values.null_count() > 0 && range.clone().any(|at| self.values.is_null(at)) {
            return Err("a number is missing in the list");
        }
        self.values.values().get(range).ok_or("a list that ends behind the data")
    }

    fn range(&self, row: usize) -> Option<Range<usize>> {
        match self.lists.data_type() {
            DataType::FixedSizeList(_, length) => {
                let length = usize::try_from(*length).ok()?;
                let start = self.lists.as_fixed_size_list().value_offset_at(row);
                Some(start..start.checked_add(length)?)
            }
            DataType::List(_) => {
                let offsets = self.lists.as_list::<i32>().value_offsets();
                let (start, end) = (*offsets.get(row)?, *offsets.get(row + 1)?);
                Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            }
            _ => {
                let offsets = self.lists.as_list::<i64>().value_offsets();
                let (start, end) = (*offsets.get(row)?, *offsets.get(row + 1)?);
                Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            }
        }
    }
}

/// One cell of a column of integers or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Integer(i64),
    Text(&'a str),
}

/// A column of integers or text, plain or through a dictionary. A dictionary stays one: written
/// out, a few bytes of it could stand for any amount of text.
pub(super) struct Values {
    keys: Option<Int64Array>,
    values: Plain,
}

enum Plain {
    Integers(Int64Array),
    Text(StringArray),
    LargeText(LargeStringArray),
    TextView(StringViewArray),
}

impl Values {
    pub(super) fn new(column: &ArrayRef) -> Result<Self, String> {
        if !matches!(column.data_type(), DataType::Dictionary(..)) {
            return Ok(Self { keys: None, values: Plain::new(column)? });
        }
        let dictionary = column.as_any_dictionary();
        let keys = cast(dictionary.keys(), &DataType::Int64)?.as_primitive::<Int64Type>().clone();
        Ok(Self { keys: Some(keys), values: Plain::new(dictionary.values())? })
    }

    /// The cell in `row`, or `None` where it is empty.
    pub(super) fn get(&self, row: usize) -> Option<Value<'_>> {
        match &self.keys {
            None => self.values.get(row),
            Some(keys) if keys.is_null(row) => None,
            Some(keys) => self.values.get(usize::try_from(keys.value(row)).ok()?),
        }
    }
}

impl Plain {
    fn new(column: &ArrayRef) -> Result<Self, String> {
        match column.data_type() {
            DataType::Utf8 => Ok(Self::Text(column.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Ok(Self::LargeText(column.as_string::<i64>().clone())),
            DataType::Utf8View => Ok(Self::TextView(column.as_string_view().clone())),
            kind if kind.is_integer() || *kind == DataType::Boolean => {
                let integers = cast(column, &DataType::Int64)?;
                Ok(Self::Integers(integers.as_primitive::<Int64Type>().clone()))
            }
            kind => Err(format!("expected integers or text, found {kind}")),
        }
    }

    fn get(&self, at: usize) -> Option<Value<'_>> {
        match self {
            Self::Integers(array) => {
                (at < array.len() && array.is_valid(at)).then(|| Value::Integer(array.value(at)))
            }
            Self::Text(array) => {
                (at < array.len() && array.is_valid(at)).then(|| Value::Text(array.value(at)))
            }
            Self::LargeText(array) => {
                (at < array.len() && array.is_valid(at)).then(|| Value::Text(array.value(at)))
            }
            Self::TextView(array) => {
                (at < array.len() && array.is_valid(at)).then(|| Value::Text(array.value(at)))
            }
        }
    }
}

/// A cell for a message.
pub(super) fn shown(value: Option<Value<'_>>) -> String {
    match value {
        None => "no value".to_owned(),
        Some(Value::Integer(value)) => value.to_string(),
        Some(Value::Text(text)) => text.chars().take(40).collect(),
    }
}
