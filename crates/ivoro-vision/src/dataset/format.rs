//! Which format the first bytes of a file show; its name counts for nothing.

use image::ImageFormat;

/// Bytes at the beginning of a file that tell its format.
pub(super) const HEAD: usize = 64;
/// Endings of photos as the sensor saw them. Their first bytes are those of a TIFF, which holds no more than a
/// small preview.
const RAW: [&str; 10] = ["arw", "cr2", "dng", "nef", "nrw", "orf", "pef", "rw2", "sr2", "srw"];
/// What is read, for messages.
pub(super) const READ: &str = if cfg!(feature = "heic") {
    "JPEG, PNG, WebP, TIFF, BMP, GIF, PNM or HEIC"
} else {
    "JPEG, PNG, WebP, TIFF, BMP, GIF or PNM"
};

/// What a file with pictures is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// One that is read.
    Known(ImageFormat),
    /// Photos of phones.
    Heic,
    /// One with this name, which is not read.
    Other(&'static str),
}

impl Format {
    /// The format of a file that begins with `head`; none if it shows no picture.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let known = |format| Some(Self::Known(format));
        match head {
            [0xff, 0xd8, 0xff, ..] => known(ImageFormat::Jpeg),
            [0x89, b'P', b'N', b'G', ..] => known(ImageFormat::Png),
            [b'G', b'I', b'F', b'8', ..] => known(ImageFormat::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                known(ImageFormat::WebP)
            }
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => known(ImageFormat::Tiff),
            [b'B', b'M', ..] if is_bitmap(head) => known(ImageFormat::Bmp),
            [b'P', b'1'..=b'7', space, next, ..]
                if space.is_ascii_whitespace()
                    && (next.is_ascii_digit() || matches!(next, b'#' | b'W')) =>
            {
                known(ImageFormat::Pnm)
            }
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => of_brands(&head[8..]),
            [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => {
                Some(Self::Other("JP2"))
            }
            [0xff, 0x0a, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => {
                Some(Self::Other("JPEG XL"))
            }
            [b'8', b'B', b'P', b'S', ..] => Some(Self::Other("PSD")),
            [b'I', b'I', b'U', 0, ..] | [b'I', b'I', b'R', b'O' | b'S', ..] => {
                Some(Self::Other("RAW"))
            }
            [b'F', b'U', b'J', b'I', b'F', b'I', b'L', b'M', ..] => Some(Self::Other("RAW")),
            _ => None,
        }
    }

    /// The same, where the ending of the name says that a TIFF is no more than the shell of a raw photo.
    pub(super) fn of_file(head: &[u8], name: &std::path::Path) -> Option<Self> {
        let format = Self::of(head)?;
        let ending = name.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_raw = RAW.iter().any(|raw| ending.eq_ignore_ascii_case(raw));
        let is_shell = is_raw && format == Self::Known(ImageFormat::Tiff);
        Some(if is_shell { Self::Other("RAW") } else { format })
    }

    /// The name of the format, if this program does not read it.
    pub(super) fn unread(self) -> Option<&'static str> {
        match self {
            Self::Known(_) => None,
            Self::Heic => (!cfg!(feature = "heic")).then_some("HEIC"),
            Self::Other(name) => Some(name),
        }
    }
}

/// Whether the header behind "BM" has one of the lengths that there are: texts may begin so too.
fn is_bitmap(head: &[u8]) -> bool {
    let length = head.get(14..18).and_then(<[u8]>::first_chunk).map(|it| u32::from_le_bytes(*it));
    length.is_some_and(|length| [12, 16, 40, 52, 56, 64, 108, 124].contains(&length))
}

/// Of a file of boxes, by its brands: the first one, and those it is compatible with behind four bytes.
fn of_brands(brands: &[u8]) -> Option<Format> {
    let brands = brands.as_chunks::<4>().0;
    let is = |wanted: &[&[u8; 4]]| brands.iter().any(|brand| wanted.contains(&brand));
    if is(&[b"avif", b"avis"]) {
        Some(Format::Other("AVIF"))
    } else if is(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"]) {
        Some(Format::Heic)
    } else if is(&[b"mif1", b"msf1"]) {
        Some(Format::Other("HEIF"))
    } else if is(&[b"crx "]) {
        Some(Format::Other("RAW"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        let other = |name| Some(Format::Other(name));
        let known = |format| Some(Format::Known(format));
        let cases: [(&[u8], Option<Format>); 15] = [
            (b"\xff\xd8\xff\xe0", known(ImageFormat::Jpeg)),
            (b"GIF89a", known(ImageFormat::Gif)),
            (b"MM\0*", known(ImageFormat::Tiff)),
            (b"P6\n3 2\n255\n", known(ImageFormat::Pnm)),
            (b"P1 report", None),
            (b"BMW and other cars", None),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", Some(Format::Heic)),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", Some(Format::Heic)),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", other("AVIF")),
            (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", None),
            (b"\0\0\0\x0cjP  \r\n\x87\n", other("JP2")),
            (b"\xff\x0a\xfa", other("JPEG XL")),
            (b"<?xpacket begin", None),
            (b"", None),
            (b"8BPS\0\x01", other("PSD")),
        ];
        for (head, expected) in cases {
            assert_eq!(Format::of(head), expected, "{head:?}");
        }
        assert_eq!(Format::of_file(b"II*\0", Path::new("a.NEF")), other("RAW"));
        assert_eq!(Format::of_file(b"II*\0", Path::new("a.x")), known(ImageFormat::Tiff));
        assert_eq!(Format::of_file(b"\xff\xd8\xff", Path::new("a.nef")), known(ImageFormat::Jpeg));
    }
}
