//! Files of photos as cameras, phones and programs write them.

use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat, RgbImage};
use ivoro_vision::Error;
use ivoro_vision::dataset::{
    Broken, Decoding, Fit, How, ImageInput, Shape, Truncated, decode, decode_all, decode_bytes,
    measure,
};

use crate::fixtures::interleaved;

const HEIGHT: usize = 24;
const WIDTH: usize = 40;

/// Colours that change slowly, so that what is lost in a JPEG stays small.
fn drawn() -> RgbImage {
    RgbImage::from_fn(WIDTH as u32, HEIGHT as u32, |x, y| {
        image::Rgb([(x * 6) as u8, (y * 10) as u8, 255 - (x * 3 + y * 3) as u8])
    })
}

/// An EXIF block with nothing but an orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    block
}

fn written(mut encoder: impl ImageEncoder, image: &RgbImage, exif: Option<Vec<u8>>) {
    if let Some(exif) = exif {
        encoder.set_exif_metadata(exif).unwrap();
    }
    let (width, height) = image.dimensions();
    encoder.write_image(image.as_raw(), width, height, ExtendedColorType::Rgb8).unwrap();
}

fn file(format: ImageFormat, image: &RgbImage, orientation: Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let exif = orientation.map(exif);
    match format {
        ImageFormat::Jpeg => written(JpegEncoder::new_with_quality(&mut bytes, 95), image, exif),
        ImageFormat::Png => written(PngEncoder::new(&mut bytes), image, exif),
        ImageFormat::WebP => written(WebPEncoder::new_lossless(&mut bytes), image, exif),
        _ => bytes = tiff(image, orientation),
    }
    bytes
}

/// A TIFF of one strip.
fn tiff(image: &RgbImage, orientation: Option<u8>) -> Vec<u8> {
    let (width, height) = image.dimensions();
    let mut tags: Vec<(u16, u16, u32)> = vec![
        (256, 4, width),
        (257, 4, height),
        (258, 3, 8),
        (259, 3, 1),
        (262, 3, 2),
        (273, 4, 0),
        (277, 3, 3),
        (278, 4, height),
        (279, 4, image.as_raw().len() as u32),
    ];
    if let Some(orientation) = orientation {
        tags.insert(6, (274, 3, u32::from(orientation)));
    }
    let behind = 8 + 2 + tags.len() as u32 * 12 + 4;
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    bytes.extend((tags.len() as u16).to_le_bytes());
    for (tag, kind, value) in tags {
        let (count, value) = match tag {
            258 => (3_u32, behind),
            273 => (1, behind + 6),
            _ => (1, value),
        };
        bytes.extend(tag.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes.extend([8, 0, 8, 0, 8, 0]);
    bytes.extend(image.as_raw());
    bytes
}

fn exact(height: usize, width: usize) -> Fit {
    Fit { shape: Shape { height, width, channels: 3 }, how: How::Exact }
}

fn resized(height: usize, width: usize) -> Fit {
    Fit { how: How::Resize, ..exact(height, width) }
}

const FORMATS: [ImageFormat; 4] =
    [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Tiff];

#[test]
fn all_eight_orientations_are_applied_in_every_format() {
    let name = Path::new("phone");
    for format in FORMATS {
        let stored =
            decode_bytes(&file(format, &drawn(), None), name, exact(HEIGHT, WIDTH)).unwrap();
        for number in 1..=8 {
            let bytes = file(format, &drawn(), Some(number));
            let stored = RgbImage::from_raw(WIDTH as u32, HEIGHT as u32, stored.clone()).unwrap();
            let mut seen = DynamicImage::from(stored);
            seen.apply_orientation(Orientation::from_exif(number).unwrap());
            let (width, height) = (seen.width() as usize, seen.height() as usize);
            let shape = measure(ImageInput::Bytes { name, bytes: &bytes }).unwrap();
            assert_eq!((shape.height, shape.width), (height, width), "{format:?} {number}");
            let found = decode_bytes(&bytes, name, exact(height, width)).unwrap();
            assert_eq!(found, seen.as_bytes(), "{format:?} {number}");
        }
    }
}

#[test]
fn a_turned_photo_is_resized_as_the_upright_one() {
    let name = Path::new("phone");
    let upright = file(ImageFormat::Png, &drawn(), None);
    let crop = How::ResizeThenCentreCrop { resize: 20 };
    for fit in [resized(12, 10), Fit { how: crop, ..exact(16, 16) }] {
        let expected = decode_bytes(&upright, name, fit).unwrap();
        for number in 1..=8 {
            let orientation = Orientation::from_exif(number).unwrap();
            // stored so that it comes upright: the turn that undoes this one
            let mut stored = DynamicImage::from(drawn());
            let undoing = match orientation {
                Orientation::Rotate90 => Orientation::Rotate270,
                Orientation::Rotate270 => Orientation::Rotate90,
                other => other,
            };
            stored.apply_orientation(undoing);
            let bytes = file(ImageFormat::Png, &stored.into_rgb8(), Some(number));
            let found = decode_bytes(&bytes, name, fit).unwrap();
            let apart = found.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(apart <= Some(1), "{number}: {apart:?}");
        }
    }
}

#[test]
fn orientation_six_has_the_top_at_the_right() {
    let two = RgbImage::from_raw(2, 1, vec![1, 1, 1, 9, 9, 9]).unwrap();
    // EXIF 2.3: row 0 is the right-hand side of what is seen, column 0 the top
    let bytes = file(ImageFormat::Png, &two, Some(6));
    assert_eq!(decode_bytes(&bytes, Path::new("a"), exact(2, 1)).unwrap(), [1, 1, 1, 9, 9, 9]);
    let bytes = file(ImageFormat::Png, &two, Some(8));
    assert_eq!(decode_bytes(&bytes, Path::new("a"), exact(2, 1)).unwrap(), [9, 9, 9, 1, 1, 1]);
}

#[test]
fn colours_of_a_phone_become_those_of_srgb() {
    let name = Path::new("phone");
    let even = RgbImage::from_pixel(16, 16, image::Rgb([128, 77, 51]));
    let with = |profile: &moxcms::ColorProfile| {
        let mut bytes = Vec::new();
        let mut encoder = PngEncoder::new(&mut bytes);
        encoder.set_icc_profile(profile.encode().unwrap()).unwrap();
        written(encoder, &even, Some(exif(6)));
        bytes
    };
    let p3 = with(&moxcms::ColorProfile::new_display_p3());
    // the matrices of CSS Color 4, in NumPy: 136.39, 73.88, 45.04
    for fit in [exact(16, 16), resized(8, 8)] {
        let found = decode_bytes(&p3, name, fit).unwrap();
        for (found, expected) in found.iter().zip([136_u8, 74, 45].iter().cycle()) {
            assert!(found.abs_diff(*expected) <= 1, "{found} instead of {expected}");
        }
    }
    let grey = Fit { shape: Shape { height: 8, width: 8, channels: 1 }, how: How::Resize };
    // 0.299 · 136 + 0.587 · 74 + 0.114 · 45
    assert!(decode_bytes(&p3, name, grey).unwrap().iter().all(|value| value.abs_diff(89) <= 1));
    let srgb = decode_bytes(&with(&moxcms::ColorProfile::new_srgb()), name, exact(16, 16));
    assert_eq!(srgb.unwrap(), *even.as_raw());
}

/// 8×8 pixels of one colour, by Pillow 13.0: `Image.new("CMYK", (8, 8), (200, 40, 10, 60))`, quality 60.
const CMYK: &str = "ffd8ffee000e41646f626500640000000000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17\
     202e2931302e292d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a51524fffc000140800080008\
     044311004d11005911004b1100ffc4001f0000010501010101010100000000000000000102030405060708090a0bffc4\
     00b5100002010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c115\
     52d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a535455565758595a63646566\
     6768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2\
     c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffda000e0443004d005900\
     4b00003f00e4abb6af48aea6bfffd9";

#[test]
fn cmyk_is_converted_as_pillow_does() {
    let digits = CMYK.as_bytes().chunks(2);
    let bytes: Vec<u8> = digits
        .map(|it| u8::from_str_radix(std::str::from_utf8(it).unwrap(), 16).unwrap())
        .collect();
    let found = decode_bytes(&bytes, Path::new("print"), exact(8, 8)).unwrap();
    // Image.open(…).convert("RGB")
    for (found, expected) in found.iter().zip([42_u8, 165, 187].iter().cycle()) {
        assert!(found.abs_diff(*expected) <= 2, "{found} instead of {expected}");
    }
}

#[test]
fn the_format_is_read_from_the_contents_and_not_from_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let fit = exact(HEIGHT, WIDTH);
    for format in FORMATS {
        let bytes = file(format, &drawn(), None);
        let expected = decode_bytes(&bytes, Path::new("any"), fit).unwrap();
        for name in ["a.jfif", "a.jpe", "a.png", "a.txt", "a"] {
            let path = folder.path().join(name);
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(decode(&path, fit).unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn gif_and_pnm_are_read_and_of_an_animation_the_first_picture() {
    let pixels = interleaved(&[3], 2, 3, 3);
    let pnm = [b"P6\n3 2\n255\n".as_slice(), &pixels].concat();
    assert_eq!(decode_bytes(&pnm, Path::new("a"), exact(2, 3)).unwrap(), pixels);
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
    for value in [10, 200] {
        let frame = image::RgbaImage::from_pixel(3, 2, image::Rgba([value, value, value, 255]));
        encoder.encode_frame(image::Frame::new(frame)).unwrap();
    }
    drop(encoder);
    assert_eq!(decode_bytes(&bytes, Path::new("a.gif"), exact(2, 3)).unwrap(), [10; 18]);
}

#[test]
fn photos_that_end_too_early_are_refused_or_taken_as_asked() {
    let name = Path::new("cut.jpg");
    let (whole, fit) = (file(ImageFormat::Jpeg, &drawn(), None), resized(8, 8));
    for percent in [20, 50, 95, 99] {
        let bytes = &whole[..whole.len() * percent / 100];
        let error = decode_bytes(bytes, name, fit).unwrap_err();
        let is_known = matches!(error, Error::TruncatedImage { .. } | Error::BrokenImage { .. });
        assert!(is_known && error.to_string().starts_with("cut.jpg: "), "{percent}: {error}");
    }
    let cut = &whole[..whole.len() * 95 / 100];
    let inputs =
        [ImageInput::Bytes { name, bytes: cut }, ImageInput::Bytes { name, bytes: &whole }];
    let skip = decode_all(&inputs, fit, Broken::Skip).unwrap();
    assert_eq!((skip.rows, skip.broken[0].1.kind, skip.truncated), (vec![1], "truncated", vec![]));
    let take = Decoding { broken: Broken::Fail, truncated: Truncated::Take };
    let taken = decode_all(&inputs, fit, take).unwrap();
    assert_eq!((taken.rows, taken.truncated), (vec![0, 1], vec![0]));
    // the first row was there in both
    assert_eq!(taken.pixels[..3], taken.pixels[192..195]);
}

#[test]
fn a_cut_file_of_any_format_is_refused() {
    let mut files: Vec<(ImageFormat, Vec<u8>)> =
        FORMATS.into_iter().map(|format| (format, file(format, &drawn(), None))).collect();
    for format in [ImageFormat::Bmp, ImageFormat::Gif, ImageFormat::Pnm] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        DynamicImage::from(drawn()).write_to(&mut bytes, format).unwrap();
        files.push((format, bytes.into_inner()));
    }
    for (format, bytes) in files {
        decode_bytes(&bytes, Path::new("whole"), exact(HEIGHT, WIDTH)).unwrap();
        for length in (0..bytes.len() * 9 / 10).step_by(7) {
            let found = decode_bytes(&bytes[..length], Path::new("cut"), resized(8, 8));
            assert!(found.is_err(), "{format:?}: {length} of {}", bytes.len());
        }
    }
}

#[test]
fn known_formats_that_are_not_read_are_named() {
    for (bytes, format) in [
        (&b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf"[..], "AVIF"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JP2"),
        (b"\xff\x0a\0\0", "JPEG XL"),
    ] {
        let error = decode_bytes(bytes, Path::new("a.jpg"), resized(8, 8)).unwrap_err();
        assert!(matches!(error, Error::OtherFormat { found, .. } if found == format), "{error}");
        assert!(error.to_string().contains(&format!("in the format {format}")), "{error}");
    }
    let error = decode_bytes(b"", Path::new("a.jpg"), resized(8, 8)).unwrap_err().to_string();
    assert!(error.contains("found an empty file"), "{error}");
}

#[cfg(feature = "heic")]
#[test]
fn a_heic_of_a_phone_is_read_and_a_damaged_one_refused() {
    let image = drawn();
    let (width, height) = image.dimensions();
    let options = heifer::EncodeOptions { quality: 95, ..heifer::EncodeOptions::default() };
    let bytes = heifer::encode_rgb8(width, height, image.as_raw(), &options).unwrap();
    let found = decode_bytes(&bytes, Path::new("IMG_1.HEIC"), exact(HEIGHT, WIDTH)).unwrap();
    let apart: u32 = found.iter().zip(image.as_raw()).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
    assert!(apart < 6 * found.len() as u32, "{apart} over {} values", found.len());
    for length in (0..bytes.len() - 1).step_by(11) {
        let _ = decode_bytes(&bytes[..length], Path::new("cut"), resized(8, 8));
        let mut damaged = bytes.clone();
        damaged[length] ^= 0x5a;
        let _ = decode_bytes(&damaged, Path::new("damaged"), resized(8, 8));
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_never_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jpg");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = decode(&path, resized(8, 8)).unwrap_err().to_string();
    assert!(error.ends_with("x.jpg: expected a file, found a named pipe"), "{error}");
    let error = decode(Path::new("/dev/null"), resized(8, 8)).unwrap_err().to_string();
    assert!(error.contains("found a device"), "{error}");
}
