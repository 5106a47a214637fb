//! What an ONNX file says of itself: its inputs, outputs and inner values.
//!
//! The file is looked at here before any runtime sees it, so that both runtimes meet the same
//! checks, and so that what would exhaust a runtime's stack is refused. The numbers are those of
//! the fields in `onnx.proto`.

use std::collections::{BTreeMap, BTreeSet};

use super::protobuf::{Broken, Field, Fields, Read, write};

/// Graphs inside operators, and types inside types, deeper than this are refused.
const DEEPEST: usize = 16;

const MODEL_GRAPH: u64 = 7;
const MODEL_OPERATORS: u64 = 8;
const GRAPH_OUTPUT: u64 = 12;
const VALUE_NAME: u64 = 1;

/// An input or output of the graph.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    pub(super) name: &'a str,
    /// The element type's number; 1 is `float`.
    pub(super) element: Option<u64>,
    /// Its dimensions, `None` where one is left open.
    pub(super) shape: Option<Vec<Option<u64>>>,
    /// The message, as the graph has it.
    message: &'a [u8],
}

/// A graph, with the bytes it was read from.
pub(super) struct Graph<'a> {
    /// What must be given to run it: inputs without a value in the file.
    pub(super) inputs: Vec<Value<'a>>,
    pub(super) outputs: Vec<Value<'a>>,
    /// Results of the operators, in the file's order.
    inner: Vec<&'a str>,
    /// Files beside this one that hold weights.
    pub(super) external: BTreeSet<&'a str>,
    file: &'a [u8],
    message: &'a [u8],
}

impl<'a> Graph<'a> {
    pub(super) fn read(file: &'a [u8]) -> Read<Self> {
        let (mut graphs, mut operators) = (Vec::new(), false);
        for field in Fields::new(file) {
            let field = field?;
            match field.number {
                MODEL_GRAPH => graphs.push(field.bytes()?),
                MODEL_OPERATORS => operators = true,
                _ => {}
            }
        }
        let &[message] = &graphs[..] else { return Err(Broken::Graphs(graphs.len())) };
        let (inputs, outputs, inner, external) = Default::default();
        let mut graph = Self { inputs, outputs, inner, external, file, message };
        let mut given = BTreeSet::new();
        for field in Fields::new(message) {
            graph.note(&field?, &mut given)?;
        }
        graph.inputs.retain(|input| !given.contains(input.name));
        match (operators, graph.inner.is_empty()) {
            (_, true) => Err(Broken::Empty),
            // The operator sets follow the graph, so that they go first when a file is cut.
            (false, _) => Err(Broken::Operators),
            (true, false) => Ok(graph),
        }
    }

    /// Takes up a field of the graph; names of weights go to `given`.
    fn note(&mut self, field: &Field<'a>, given: &mut BTreeSet<&'a str>) -> Read<()> {
        match field.number {
            1 => operator(field, 1, &mut self.inner)?,
            5 => {
                let (name, files) = weight(field)?;
                given.insert(name);
                self.external.extend(files);
            }
            11 => self.inputs.push(value(field)?),
            GRAPH_OUTPUT => self.outputs.push(value(field)?),
            13 => drop(value(field)?),
            _ => {}
        }
        Ok(())
    }

    /// Everything that can be taken as features: outputs first, then inner values.
    pub(super) fn names(&self) -> Vec<&'a str> {
        let outputs = self.outputs.iter().map(|output| output.name);
        let mut seen = BTreeSet::new();
        outputs
            .chain(self.inner.iter().copied())
            .filter(|name| !name.is_empty() && seen.insert(*name))
            .collect()
    }

    /// The file with these values, in this order, as the only outputs of its graph. A runtime
    /// then keeps them when it merges operators and leaves out what they don't need.
    pub(super) fn with_outputs(&self, names: &[String]) -> Read<Vec<u8>> {
        let mut outputs = Vec::new();
        let own: BTreeMap<&str, &[u8]> =
            self.outputs.iter().map(|output| (output.name, output.message)).collect();
        for name in names {
            if let Some(message) = own.get(name.as_str()) {
                write(GRAPH_OUTPUT, &[message], &mut outputs);
            } else {
                let mut value = Vec::new();
                write(VALUE_NAME, &[name.as_bytes()], &mut value);
                write(GRAPH_OUTPUT, &[&value], &mut outputs);
            }
        }
        let mut parts = Vec::new();
        for field in Fields::new(self.message) {
            let field = field?;
            if field.number != GRAPH_OUTPUT {
                parts.push(field.whole);
            }
        }
        parts.push(&outputs);
        let mut file = Vec::with_capacity(self.file.len() + outputs.len() + 16);
        for field in Fields::new(self.file) {
            let field = field?;
            match field.number {
                MODEL_GRAPH => write(MODEL_GRAPH, &parts, &mut file),
                _ => file.extend_from_slice(field.whole),
            }
        }
        Ok(file)
    }
}

/// The results of an operator; graphs inside it are only measured for their depth.
fn operator<'a>(field: &Field<'a>, depth: usize, results: &mut Vec<&'a str>) -> Read<()> {
    if depth > DEEPEST {
        return Err(Broken::Nested(DEEPEST));
    }
    for part in field.fields()? {
        let part = part?;
        match part.number {
            2 => results.push(part.text()?),
            5 => attribute(&part, depth)?,
            _ => {}
        }
    }
    Ok(())
}

fn attribute(field: &Field, depth: usize) -> Read<()> {
    for part in field.fields()? {
        let part = part?;
        // A graph, or one of several.
        if !matches!(part.number, 6 | 11) {
            continue;
        }
        for inside in part.fields()? {
            let inside = inside?;
            match inside.number {
                1 => operator(&inside, depth + 1, &mut Vec::new())?,
                11..=13 => drop(value(&inside)?),
                _ => {}
            }
        }
    }
    Ok(())
}

/// A weight's name, and the files that hold its numbers if this one does not.
fn weight<'a>(field: &Field<'a>) -> Read<(&'a str, Vec<&'a str>)> {
    let (mut name, mut files) = ("", Vec::new());
    for part in field.fields()? {
        let part = part?;
        match part.number {
            8 => name = part.text()?,
            13 => {
                let (mut key, mut text) = ("", "");
                for entry in part.fields()? {
                    let entry = entry?;
                    match entry.number {
                        1 => key = entry.text()?,
                        2 => text = entry.text()?,
                        _ => {}
                    }
                }
                if key == "location" {
                    files.push(text);
                }
            }
            _ => {}
        }
    }
    Ok((name, files))
}

fn value<'a>(field: &Field<'a>) -> Read<Value<'a>> {
    let mut value = Value { name: "", element: None, shape: None, message: field.bytes()? };
    for part in field.fields()? {
        let part = part?;
        match part.number {
            VALUE_NAME => value.name = part.text()?,
            2 => kind(&part, 1, &mut value)?,
            _ => {}
        }
    }
    Ok(value)
}

/// A type: of a tensor, or of a sequence of another type.
fn kind<'a>(field: &Field<'a>, depth: usize, value: &mut Value<'a>) -> Read<()> {
    if depth > DEEPEST {
        return Err(Broken::Nested(DEEPEST));
    }
    for part in field.fields()? {
        let part = part?;
        match part.number {
            1 => tensor(&part, value)?,
            // A sequence's or an optional's element; a map's value.
            4 | 5 | 9 => {
                for inside in part.fields()? {
                    let inside = inside?;
                    if inside.bytes().is_ok() {
                        kind(&inside, depth + 1, &mut value.clone())?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn tensor<'a>(field: &Field<'a>, value: &mut Value<'a>) -> Read<()> {
    for part in field.fields()? {
        let part = part?;
        match part.number {
            1 => value.element = Some(part.number()?),
            2 => {
                let dimensions = part.fields()?.filter(|dimension| {
                    dimension.as_ref().map_or(true, |dimension| dimension.number == 1)
                });
                let sizes: Read<Vec<_>> = dimensions.map(|dimension| size(&dimension?)).collect();
                value.shape = Some(sizes?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// A dimension's size; none if it has a name only, or a size that says nothing.
fn size(dimension: &Field) -> Read<Option<u64>> {
    let mut size = None;
    for part in dimension.fields()? {
        let part = part?;
        if part.number == 1 {
            // Exporters write −1 or 0 for a dimension that is left open.
            size = Some(part.number()?).filter(|&size| size > 0 && i64::try_from(size).is_ok());
        }
    }
    Ok(size)
}
