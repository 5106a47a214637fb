//! The fields of a protocol buffers message, without copying and without recursion.

/// Why bytes are no message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("it is cut short: {0} bytes are missing")]
    Truncated(u64),
    #[error("field {number} is of kind {kind}, which no ONNX file has")]
    Kind { number: u64, kind: u64 },
    #[error("a number has more than 64 bits")]
    Number,
    #[error("a name is not UTF-8")]
    Text,
    #[error("it is nested more than {0} levels deep")]
    Nested(usize),
    #[error("field {0} is a number where a message is expected, or the reverse")]
    Content(u64),
    #[error("it holds {0} graphs, expected 1")]
    Graphs(usize),
    #[error("it names no set of operators")]
    Operators,
    #[error("its graph has no operator")]
    Empty,
}

/// A result of reading bytes.
pub(super) type Read<T> = std::result::Result<T, Broken>;

/// One field: its number, what it holds, and all of its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    content: Content<'a>,
    pub(super) whole: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The bytes of a text, a message or an array.
    pub(super) fn bytes(&self) -> Read<&'a [u8]> {
        match self.content {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Number(_) => Err(Broken::Content(self.number)),
        }
    }

    pub(super) fn text(&self) -> Read<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Broken::Text)
    }

    pub(super) fn number(&self) -> Read<u64> {
        match self.content {
            Content::Number(number) => Ok(number),
            Content::Bytes(_) => Err(Broken::Content(self.number)),
        }
    }

    /// The numbers of a repeated field: one of them, or many packed together.
    pub(super) fn numbers(&self) -> Read<Vec<u64>> {
        let mut rest = match self.content {
            Content::Number(number) => return Ok(vec![number]),
            Content::Bytes(bytes) => Fields::new(bytes),
        };
        let mut numbers = Vec::new();
        while !rest.rest.is_empty() {
            numbers.push(rest.variable()?);
        }
        Ok(numbers)
    }

    /// The fields of the message that this field holds.
    pub(super) fn fields(&self) -> Read<Fields<'a>> {
        Ok(Fields { rest: self.bytes()? })
    }
}

/// The fields of a message, one after the other; ends after the first error.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Read<Field<'a>> {
        let start = self.rest;
        let tag = self.variable()?;
        let (number, kind) = (tag >> 3, tag & 7);
        let content = match kind {
            0 => Content::Number(self.variable()?),
            1 => Content::Bytes(self.take(8)?),
            2 => {
                let length = self.variable()?;
                Content::Bytes(self.take(length)?)
            }
            5 => Content::Bytes(self.take(4)?),
            _ => return Err(Broken::Kind { number, kind }),
        };
        Ok(Field { number, content, whole: &start[..start.len() - self.rest.len()] })
    }

    fn variable(&mut self) -> Read<u64> {
        let mut value = 0u64;
        for (at, &byte) in self.rest.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at > 9 || (at == 9 && bits > 1) {
                return Err(Broken::Number);
            }
            value |= bits << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(Broken::Truncated(1))
    }

    fn take(&mut self, length: u64) -> Read<&'a [u8]> {
        let there = self.rest.len() as u64;
        if length > there {
            return Err(Broken::Truncated(length - there));
        }
        let (taken, rest) = self.rest.split_at(length as usize);
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Read<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Appends a field that holds bytes.
pub(super) fn write(number: u64, content: &[&[u8]], out: &mut Vec<u8>) {
    write_variable(number << 3 | 2, out);
    write_variable(content.iter().map(|part| part.len() as u64).sum(), out);
    content.iter().for_each(|part| out.extend_from_slice(part));
}

fn write_variable(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_field_is_read_back() {
        let mut message = Vec::new();
        write(12, &[b"ab", b"c"], &mut message);
        write(300, &[&[7; 200]], &mut message);
        let fields: Vec<_> = Fields::new(&message).map(Result::unwrap).collect();
        assert_eq!((fields[0].number, fields[0].text()), (12, Ok("abc")));
        assert_eq!((fields[1].number, fields[1].bytes()), (300, Ok(&[7u8; 200][..])));
        assert_eq!(fields[0].whole.len() + fields[1].whole.len(), message.len());
    }

    #[test]
    fn a_length_beyond_the_end_says_how_much_is_missing() {
        let mut message = Vec::new();
        write(1, &[b"abcdef"], &mut message);
        message.truncate(5);
        assert_eq!(Fields::new(&message).next().unwrap().unwrap_err(), Broken::Truncated(3));
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let message = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2];
        assert_eq!(Fields::new(&message).next().unwrap().unwrap_err(), Broken::Number);
        let largest = [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(Fields::new(&largest).next().unwrap().unwrap().number(), Ok(u64::MAX));
    }

    #[test]
    fn numbers_come_alone_or_packed() {
        let message = [8, 5, 10, 3, 5, 0xac, 2];
        let fields: Vec<_> = Fields::new(&message).map(Result::unwrap).collect();
        assert_eq!((fields[0].numbers(), fields[1].numbers()), (Ok(vec![5]), Ok(vec![5, 300])));
        let cut = Fields::new(&[10, 1, 0xac]).next().unwrap().unwrap();
        assert_eq!(cut.numbers(), Err(Broken::Truncated(1)));
    }

    #[test]
    fn after_an_error_there_is_nothing() {
        let mut fields = Fields::new(&[0x0b, 1, 1]);
        assert_eq!(fields.next().unwrap().unwrap_err(), Broken::Kind { number: 1, kind: 3 });
        assert!(fields.next().is_none());
    }
}
