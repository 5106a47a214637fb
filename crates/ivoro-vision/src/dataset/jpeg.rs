//! Whether a JPEG is whole: the decoder fills what is missing with grey and says nothing.

/// The end of an image.
const END: u8 = 0xd9;
/// The start of a scan, behind whose header compressed data follow.
const SCAN: u8 = 0xda;

/// Whether the marker that ends the image is there. Thumbnails inside of segments, and further pictures
/// behind the first, have such markers too: segments are stepped over, and the first end counts.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        let Some((marker, next)) = marker_from(bytes, at) else { return false };
        match marker {
            END => return true,
            // markers without a length
            0x01 | 0xd0..=0xd8 => at = next,
            _ => {
                let Some(length) = bytes.get(next..next + 2) else { return false };
                at = next + usize::from(u16::from_be_bytes([length[0], length[1]]));
                if marker == SCAN {
                    at = behind_scan(bytes, at);
                }
            }
        }
    }
}

/// The next marker from `at` on, and the place behind it. What lies between segments is skipped, as decoders do.
fn marker_from(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let mut at = at + bytes.get(at..)?.iter().position(|&byte| byte == 0xff)?;
    // any number of 0xff may stand before a marker
    while *bytes.get(at)? == 0xff {
        at += 1;
    }
    Some((bytes[at], at + 1))
}

/// The place of the first marker behind compressed data, in which 0xff is followed by 0, and where restart
/// markers belong to the data.
fn behind_scan(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|&b| b == 0xff)) {
        at += found;
        match bytes.get(at + 1) {
            Some(0 | 0xd0..=0xd7) => at += 2,
            _ => return at,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(format: image::ExtendedColorType) -> Vec<u8> {
        let mut bytes = Vec::new();
        let pixels: Vec<u8> = (0..64 * 64 * 3).map(|it| (it * 37 % 251) as u8).collect();
        let pixels = &pixels[..64 * 64 * usize::from(format.channel_count())];
        let encoder = image::codecs::jpeg::JpegEncoder::new(&mut bytes);
        image::ImageEncoder::write_image(encoder, pixels, 64, 64, format).unwrap();
        bytes
    }

    #[test]
    fn a_jpeg_cut_anywhere_is_not_whole() {
        for format in [image::ExtendedColorType::Rgb8, image::ExtendedColorType::L8] {
            let mut bytes = drawn(format);
            assert!(is_whole(&bytes));
            for length in 0..bytes.len() {
                assert!(!is_whole(&bytes[..length]), "{length} of {}", bytes.len());
            }
            let whole = bytes.len();
            bytes.extend([0; 100]);
            assert!(is_whole(&bytes));
            // a card that failed gives zeros for what it lost
            bytes[whole - 40..].fill(0);
            assert!(!is_whole(&bytes));
        }
    }

    #[test]
    fn the_end_of_a_thumbnail_is_not_that_of_the_photo() {
        let bytes = drawn(image::ExtendedColorType::L8);
        let segment = (bytes.len() + 2) as u16;
        let mut nested = vec![0xff, 0xd8, 0xff, 0xe1];
        nested.extend(segment.to_be_bytes());
        nested.extend(&bytes);
        assert!(!is_whole(&nested));
        nested.extend(&bytes[2..]);
        assert!(is_whole(&nested));
    }
}
