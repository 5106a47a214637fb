//! A guard in front of the Parquet decoder, whose metadata are Thrift's compact protocol.
//!
//! The decoder passes over an unknown list of booleans without consuming a byte for each, so a few
//! forged bytes keep it busy for two thousand million steps, times as many such lists as fit. No
//! metadata of a real file hold a collection of booleans where the decoder looks, so a file that
//! does is refused before it is decoded. The decoder also takes memory for what a page's header
//! claims before it looks at the page, so the claims are checked here. Whatever else is wrong is
//! left to the decoder.

const DEEPEST: usize = 64;
const BOOLEANS: [u8; 2] = [1, 2];
const PARQUET_MAGIC: &[u8] = b"PAR1";
/// Field ids of a page's header, and of the headers inside it that hold a number of values.
const UNCOMPRESSED: i64 = 2;
const COMPRESSED: i64 = 3;
const DATA: i64 = 5;
const DICTIONARY: i64 = 7;
const DATA_V2: i64 = 8;
/// The structure that is in none, and one that is deeper than any of interest.
const TOP: i64 = 0;
const ELSEWHERE: i64 = -1;

/// Why a walk ended early.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// A collection of booleans.
    Forged,
    /// Bytes that are no Thrift, which the decoder will say better.
    Unclear,
}

/// Whether the footer of a Parquet file would keep the decoder busy.
pub(super) fn footer_is_forged(bytes: &[u8]) -> bool {
    let footer = || {
        let (rest, length) = bytes.strip_suffix(PARQUET_MAGIC)?.split_last_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        rest.get(rest.len().checked_sub(length)?..)
    };
    let forged = |bytes| Walker::new(bytes).structure(TOP, DEEPEST) == Err(Stop::Forged);
    footer().is_some_and(forged)
}

/// What a page's header claims.
#[derive(Debug, Default)]
struct Page {
    uncompressed: i64,
    compressed: i64,
    values: i64,
    dictionary_values: i64,
}

impl Page {
    /// A value of a dictionary takes a byte or more; those of a page may be run-length encoded.
    fn check(&self, most: u64) -> Result<(), &'static str> {
        let within = |claim: i64, most: u64| u64::try_from(claim).is_ok_and(|claim| claim <= most);
        if !within(self.uncompressed, most) || !within(self.values, most) {
            return Err("claims more than a file of this length may unpack to");
        }
        if !within(self.dictionary_values, self.uncompressed as u64) {
            return Err("claims more values than it has bytes");
        }
        Ok(())
    }
}

/// Says what is wrong with the header of a page in a column's bytes, where no page may claim more
/// than `most` bytes or values.
pub(super) fn check_pages(mut column: &[u8], most: u64) -> Result<(), &'static str> {
    while !column.is_empty() {
        let mut walker = Walker::new(column);
        match walker.structure(TOP, DEEPEST) {
            Ok(()) => walker.page.check(most)?,
            Err(Stop::Forged) => return Err("holds a list that no page has"),
            Err(Stop::Unclear) => return Ok(()),
        }
        let size = usize::try_from(walker.page.compressed).ok();
        match size.and_then(|size| walker.bytes.get(size..)) {
            Some(rest) => column = rest,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Passes over values the way the decoder does.
struct Walker<'a> {
    bytes: &'a [u8],
    page: Page,
}

impl<'a> Walker<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, page: Page::default() }
    }

    fn skip(&mut self, count: u64) -> Result<(), Stop> {
        let count = usize::try_from(count).map_err(|_| Stop::Unclear)?;
        self.bytes = self.bytes.get(count..).ok_or(Stop::Unclear)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        let (&byte, rest) = self.bytes.split_first().ok_or(Stop::Unclear)?;
        self.bytes = rest;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Stop> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Stop::Unclear)
    }

    fn signed(&mut self) -> Result<i64, Stop> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::Unclear)?;
        match kind {
            // A boolean field's value is in its type.
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => self.list(depth),
            11 => self.map(depth),
            12 => self.structure(ELSEWHERE, depth),
            13 => self.skip(16),
            _ => Err(Stop::Unclear),
        }
    }

    fn list(&mut self, depth: usize) -> Result<(), Stop> {
        let header = self.byte()?;
        let (kind, short) = (header & 15, u64::from(header >> 4));
        let count = if short == 15 { self.varint()? } else { short };
        if count > 0 && BOOLEANS.contains(&kind) {
            return Err(Stop::Forged);
        }
        (0..count).try_for_each(|_| self.value(kind, depth))
    }

    fn map(&mut self, depth: usize) -> Result<(), Stop> {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        let (key, value) = (kinds >> 4, kinds & 15);
        if BOOLEANS.contains(&key) || BOOLEANS.contains(&value) {
            return Err(Stop::Forged);
        }
        (0..count).try_for_each(|_| {
            self.value(key, depth)?;
            self.value(value, depth)
        })
    }

    /// The fields of a structure, which is itself the field `of` of a page's header.
    fn structure(&mut self, of: i64, depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::Unclear)?;
        let mut id = 0_i64;
        loop {
            let header = self.byte()?;
            let (kind, step) = (header & 15, i64::from(header >> 4));
            if kind == 0 {
                return Ok(());
            }
            id = if step == 0 { self.signed()? } else { id.saturating_add(step) };
            match kind {
                5 => {
                    let value = self.signed()?;
                    self.page.note(of, id, value);
                }
                12 => self.structure(if of == TOP { id } else { ELSEWHERE }, depth)?,
                _ => self.value(kind, depth)?,
            }
        }
    }
}

impl Page {
    fn note(&mut self, of: i64, id: i64, value: i64) {
        match (of, id) {
            (TOP, UNCOMPRESSED) => self.uncompressed = value,
            (TOP, COMPRESSED) => self.compressed = value,
            (DATA | DATA_V2, 1) => self.values = value,
            (DICTIONARY, 1) => self.dictionary_values = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer, its length and the magic.
    fn file(footer: &[u8]) -> Vec<u8> {
        [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
    }

    #[test]
    fn a_list_of_two_thousand_million_booleans() {
        // Field 9, a list of booleans with 2³¹ − 1 elements, then the end of the structure.
        assert!(footer_is_forged(&file(&[0x99, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0])));
        assert!(footer_is_forged(&file(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0])));
        // The same list of bytes runs out of the file, which the decoder notices by itself.
        assert!(!footer_is_forged(&file(&[0x99, 0xf3, 0xff, 0xff, 0xff, 0xff, 0x07, 0])));
    }

    #[test]
    fn ordinary_structures_pass() {
        // A boolean field, an integer, a text, a list of two structures.
        let footer = [0x11, 0x15, 0x08, 0x18, 2, b'a', b'b', 0x19, 0x2c, 0x11, 0, 0x11, 0, 0];
        assert!(!footer_is_forged(&file(&footer)));
        for length in 0..footer.len() {
            assert!(!footer_is_forged(&file(&footer[..length])));
        }
        assert!(!footer_is_forged(b"PAR1"));
    }

    #[test]
    fn a_forged_header_behind_an_honest_page() {
        // Type 0, sizes 3 and 3, three bytes of page; then a header with a list of booleans.
        let honest = [0x15, 0, 0x15, 6, 0x15, 6, 0, 9, 9, 9];
        let forged = [0x15, 0, 0xd9, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert!(check_pages(&honest, 100).is_ok());
        assert!(check_pages(&[&honest[..], &forged].concat(), 100).is_err());
        assert!(check_pages(&[0x15, 0, 0x15, 6, 0x15, 99, 0], 100).is_ok());
    }

    #[test]
    fn a_dictionary_of_more_values_than_bytes() {
        // Type 2, sizes 3 and 3, field 7: a structure whose field 1 is the number of values.
        let page = |values: u8| [0x15, 4, 0x15, 6, 0x15, 6, 0x4c, 0x15, values * 2, 0, 0, 9, 9, 9];
        assert!(check_pages(&page(3), 100).is_ok());
        assert_eq!(check_pages(&page(4), 100), Err("claims more values than it has bytes"));
        assert!(check_pages(&page(3), 2).is_err());
        // An odd number is a negative one.
        assert!(check_pages(&[0x15, 0, 0x15, 1, 0x15, 0, 0], 100).is_err());
    }

    #[test]
    fn a_page_of_no_bytes_ends() {
        assert!(check_pages(&[0x15, 0, 0x15, 0, 0x15, 0, 0].repeat(100), 100).is_ok());
        assert!(check_pages(&[0; 100], 100).is_ok());
    }
}
