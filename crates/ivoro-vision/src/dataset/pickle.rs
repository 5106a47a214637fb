//! Python pickles, as far as data sets need them: lists, dictionaries, numbers, strings and
//! `NumPy` arrays of bytes.
//!
//! Nothing in a pickle is run: a call is noted as such and only recognised. Values are numbered and
//! refer to each other by number, and bytes stay in the file. So memory grows with the length of the
//! file alone, whatever is shared or nested in it. A reader that builds a tree would have to copy
//! what is shared, and a few hundred bytes can share their way to any size.

use std::collections::BTreeMap;

/// The newest protocol there is.
const NEWEST: u8 = 5;
/// More instructions than any pickle of a data set has; each may take some memory.
const MOST_STEPS: usize = 1 << 23;

/// The number of a value.
type Id = usize;

/// One Python value.
#[derive(Debug)]
enum Value<'a> {
    Nothing,
    Flag(bool),
    Integer(i64),
    /// `str` of Python 2, `bytes`, `bytearray`, or `str` in UTF-8.
    Bytes(&'a [u8]),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dictionary(Vec<(Id, Id)>),
    Global {
        module: &'a [u8],
        name: &'a [u8],
    },
    /// What a call would give, and the state that would be set on it.
    Made {
        callable: Id,
        arguments: Id,
        state: Option<Id>,
    },
}

/// Everything in a pickle, and which value is the outermost.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: Id,
}

/// A `NumPy` array of bytes with two axes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ByteMatrix<'a> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Pickle<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let mut machine = Machine::new(bytes);
        for _ in 0..MOST_STEPS {
            if machine.step().map_err(|what| format!("byte {}: {what}", machine.at))? {
                let root = machine.pop()?;
                return Ok(Self { values: machine.values, root });
            }
        }
        Err(format!("more than {MOST_STEPS} instructions"))
    }

    /// The array under `key` of the outermost dictionary.
    pub(super) fn matrix(&self, key: &str) -> Result<ByteMatrix<'a>, String> {
        let refuse = |what: &str| format!("{key}: expected a NumPy array of bytes, {what}");
        let Value::Made { callable, arguments, state } = self.values[self.field(key)?] else {
            return Err(refuse("found another value"));
        };
        let (shape, element, bytes) = match (self.numpy(callable), state) {
            (Some(b"_reconstruct"), Some(state)) => match *self.items(state)? {
                [_, shape, element, fortran, bytes] => {
                    if !matches!(self.values[fortran], Value::Flag(false) | Value::Integer(0)) {
                        return Err(refuse("found Fortran order"));
                    }
                    (shape, element, bytes)
                }
                _ => return Err(refuse("found another state")),
            },
            (Some(b"_frombuffer"), _) => match *self.items(arguments)? {
                [bytes, element, shape, order] if self.is_text(order, b"C") => {
                    (shape, element, bytes)
                }
                _ => return Err(refuse("found other arguments")),
            },
            _ => return Err(refuse("found another object")),
        };
        if !self.is_byte_type(element)? {
            return Err(refuse("found another element type"));
        }
        let &[rows, columns] = self.items(shape)? else {
            return Err(refuse("found another number of axes than two"));
        };
        let (rows, columns) = (self.length(rows)?, self.length(columns)?);
        let Value::Bytes(bytes) = self.values[bytes] else {
            return Err(refuse("found no bytes in it"));
        };
        if rows.checked_mul(columns) != Some(bytes.len()) {
            return Err(refuse(&format!("found {} for {rows}×{columns}", bytes.len())));
        }
        Ok(ByteMatrix { rows, columns, bytes })
    }

    /// The list of integers under `key` of the outermost dictionary.
    pub(super) fn integers(&self, key: &str) -> Result<Vec<i64>, String> {
        let integer = |&id: &Id| match self.values[id] {
            Value::Integer(value) => Ok(value),
            _ => Err(format!("{key}: expected a list of integers, found another value in it")),
        };
        self.items(self.field(key)?)?.iter().map(integer).collect()
    }

    /// The list of strings under `key` of the outermost dictionary.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let text = |&id: &Id| match self.values[id] {
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
            _ => None,
        };
        let items = self.items(self.field(key)?)?.iter();
        let texts: Option<Vec<String>> = items.map(text).collect();
        texts.ok_or_else(|| format!("{key}: expected a list of strings, found another value in it"))
    }

    fn field(&self, key: &str) -> Result<Id, String> {
        let Value::Dictionary(pairs) = &self.values[self.root] else {
            return Err("expected a dictionary, found another value".to_owned());
        };
        let found = pairs.iter().rev().find(|&&(name, _)| self.is_text(name, key.as_bytes()));
        found.map(|&(_, value)| value).ok_or_else(|| format!("the dictionary has no {key}"))
    }

    fn items(&self, id: Id) -> Result<&[Id], String> {
        match &self.values[id] {
            Value::List(items) | Value::Tuple(items) => Ok(items),
            _ => Err("expected a list, found another value".to_owned()),
        }
    }

    fn is_text(&self, id: Id, wanted: &[u8]) -> bool {
        matches!(self.values[id], Value::Bytes(bytes) if bytes == wanted)
    }

    fn length(&self, id: Id) -> Result<usize, String> {
        let length = match self.values[id] {
            Value::Integer(value) => usize::try_from(value).ok(),
            _ => None,
        };
        length.ok_or_else(|| "an axis of an array is no length".to_owned())
    }

    /// The name of a function of `NumPy`.
    fn numpy(&self, id: Id) -> Option<&'a [u8]> {
        match self.values[id] {
            Value::Global { module, name } if module.starts_with(b"numpy") => Some(name),
            _ => None,
        }
    }

    fn is_byte_type(&self, id: Id) -> Result<bool, String> {
        let Value::Made { callable, arguments, .. } = self.values[id] else { return Ok(false) };
        let kind = self.items(arguments)?.first();
        let is_byte = |&kind: &Id| self.is_text(kind, b"u1") || self.is_text(kind, b"|u1");
        Ok(self.numpy(callable) == Some(b"dtype") && kind.is_some_and(is_byte))
    }
}

/// The stack machine that a pickle is a program for.
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: BTreeMap<usize, Id>,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let (values, stack, marks) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, at: 0, values, stack, marks, memo: BTreeMap::new() }
    }

    /// Obeys one instruction; true after the last one.
    fn step(&mut self) -> Result<bool, String> {
        let [code] = self.array()?;
        match code {
            b'.' => return Ok(true),
            // Where a frame ends does not matter.
            0x95 => self.take(8).map(|_| ())?,
            0x80 => self.protocol()?,
            b'(' => self.marks.push(self.stack.len()),
            b'0' => self.pop().map(|_| ())?,
            b'1' => self.above_mark().map(|_| ())?,
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'a' | b'e' | b's' | b'u' => self.fill(code)?,
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.remember(code)?,
            b'R' | b'b' | b'c' | 0x93 => self.call(code)?,
            b'N' | 0x88 | 0x89 | b'K' | b'M' | b'J' | 0x8a => self.constant(code)?,
            b'U' | b'T' | b'X' | b'B' | b'C' | 0x8c | 0x8d | 0x8e | 0x96 => self.string(code)?,
            b']' | b'}' | b')' | b'l' | b'd' | b't' | 0x85..=0x87 => self.collection(code)?,
            _ => return Err(format!("instruction 0x{code:02x} is not one of a data set")),
        }
        Ok(false)
    }

    fn protocol(&mut self) -> Result<(), String> {
        let [version] = self.array()?;
        if version > NEWEST {
            return Err(format!("protocol {version}, at most {NEWEST} is read"));
        }
        Ok(())
    }

    fn constant(&mut self, code: u8) -> Result<(), String> {
        let value = match code {
            b'N' => Value::Nothing,
            0x88 => Value::Flag(true),
            0x89 => Value::Flag(false),
            b'K' => Value::Integer(i64::from(u8::from_le_bytes(self.array()?))),
            b'M' => Value::Integer(i64::from(u16::from_le_bytes(self.array()?))),
            b'J' => Value::Integer(i64::from(i32::from_le_bytes(self.array()?))),
            _ => Value::Integer(self.long()?),
        };
        self.push(value);
        Ok(())
    }

    /// A little-endian integer with its length in front.
    fn long(&mut self) -> Result<i64, String> {
        let [length] = self.array()?;
        let digits = self.take(usize::from(length))?;
        if digits.len() > 8 {
            return Err("an integer of more than 64 bits".to_owned());
        }
        let sign = digits.last().is_some_and(|&last| last >= 0x80);
        let mut all = [if sign { 0xff } else { 0 }; 8];
        all[..digits.len()].copy_from_slice(digits);
        Ok(i64::from_le_bytes(all))
    }

    fn string(&mut self, code: u8) -> Result<(), String> {
        let length = match code {
            b'U' | b'C' | 0x8c => u64::from(u8::from_le_bytes(self.array()?)),
            b'T' | b'X' | b'B' => u64::from(u32::from_le_bytes(self.array()?)),
            _ => u64::from_le_bytes(self.array()?),
        };
        let length = usize::try_from(length).map_err(|_| "a string without an end".to_owned())?;
        let bytes = self.take(length)?;
        self.push(Value::Bytes(bytes));
        Ok(())
    }

    fn collection(&mut self, code: u8) -> Result<(), String> {
        let value = match code {
            b']' => Value::List(Vec::new()),
            b'}' => Value::Dictionary(Vec::new()),
            b')' => Value::Tuple(Vec::new()),
            b'l' => Value::List(self.above_mark()?),
            b't' => Value::Tuple(self.above_mark()?),
            b'd' => Value::Dictionary(pairs(&self.above_mark()?)),
            _ => {
                let mut items: Vec<Id> =
                    (0x84..code).map(|_| self.pop()).collect::<Result<_, _>>()?;
                items.reverse();
                Value::Tuple(items)
            }
        };
        self.push(value);
        Ok(())
    }

    fn fill(&mut self, code: u8) -> Result<(), String> {
        let items = match code {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.above_mark()?,
        };
        let target = self.top()?;
        match (&mut self.values[target], code) {
            (Value::List(list), b'a' | b'e') => list.extend(items),
            (Value::Dictionary(dictionary), b's' | b'u') => dictionary.extend(pairs(&items)),
            _ => return Err("items for something that holds none".to_owned()),
        }
        Ok(())
    }

    fn remember(&mut self, code: u8) -> Result<(), String> {
        let key = match code {
            b'q' | b'h' => usize::from(u8::from_le_bytes(self.array()?)),
            b'r' | b'j' => u32::from_le_bytes(self.array()?) as usize,
            _ => self.memo.len(),
        };
        if matches!(code, b'h' | b'j') {
            let known = self.memo.get(&key).ok_or_else(|| format!("nothing is noted as {key}"))?;
            self.stack.push(*known);
        } else {
            self.memo.insert(key, self.top()?);
        }
        Ok(())
    }

    fn call(&mut self, code: u8) -> Result<(), String> {
        match code {
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Value::Global { module, name });
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Bytes(module), Value::Bytes(name)) =
                    (&self.values[module], &self.values[name])
                else {
                    return Err("a function whose name is no string".to_owned());
                };
                self.push(Value::Global { module, name });
            }
            b'R' => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                self.push(Value::Made { callable, arguments, state: None });
            }
            _ => {
                let (given, target) = (self.pop()?, self.top()?);
                let Value::Made { state, .. } = &mut self.values[target] else {
                    return Err("a state for something that was not made by a call".to_owned());
                };
                *state = Some(given);
            }
        }
        Ok(())
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    /// A value may only be taken if it lies above the last mark.
    fn pop(&mut self) -> Result<Id, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(empty());
        }
        self.stack.pop().ok_or_else(empty)
    }

    fn top(&self) -> Result<Id, String> {
        self.stack.last().copied().ok_or_else(empty)
    }

    fn above_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or("the end of a list without a beginning")?;
        Ok(self.stack.split_off(mark))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.take(N)?.first_chunk();
        taken.copied().ok_or_else(|| "the file ends here".to_owned())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).ok_or_else(|| {
            format!("{length} more bytes are promised, the file has {}", rest.len())
        })?;
        self.at += length;
        Ok(taken)
    }

    fn line(&mut self) -> Result<&'a [u8], String> {
        let end = self.bytes[self.at..].iter().position(|&byte| byte == b'\n');
        let line = self.take(end.ok_or("a line without an end")?)?;
        self.at += 1;
        Ok(line)
    }
}

fn empty() -> String {
    "nothing is on the stack".to_owned()
}

fn pairs(items: &[Id]) -> Vec<(Id, Id)> {
    items.as_chunks::<2>().0.iter().map(|&[key, value]| (key, value)).collect()
}

#[cfg(test)]
#[path = "pickle_tests.rs"]
mod tests;
