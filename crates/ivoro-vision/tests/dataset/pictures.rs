//! One image: formats, channels, sizes, and many decoded at once.

use std::path::{Path, PathBuf};

use image::{ImageBuffer, Luma, LumaA, Rgb, Rgba};
use ivoro_vision::dataset::{
    Broken, Fit, How, ImageInput, Shape, Split, decode, decode_all, decode_bytes,
};

use crate::fixtures::{interleaved, picture, write};

fn fit(height: usize, width: usize, channels: usize, how: How) -> Fit {
    Fit { shape: Shape { height, width, channels }, how }
}

fn saved<P>(folder: &Path, pixels: Vec<P::Subpixel>) -> PathBuf
where
    P: image::Pixel + image::PixelWithColorType,
    [P::Subpixel]: image::EncodableLayout,
{
    let path = folder.join("a.png");
    ImageBuffer::<P, _>::from_raw(2, 1, pixels).unwrap().save(&path).unwrap();
    path
}

#[test]
fn what_is_transparent_is_seen_on_white_and_sixteen_bits_become_eight() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let colour = fit(1, 2, 3, How::Exact);
    let path = saved::<Rgba<u8>>(folder, vec![1, 2, 3, 0, 4, 5, 6, 128]);
    // 255 − (255 − v) · 128 / 255, rounded
    assert_eq!(decode(&path, colour).unwrap(), [255, 255, 255, 129, 130, 130]);
    let path = saved::<LumaA<u8>>(folder, vec![9, 0, 8, 255]);
    assert_eq!(decode(&path, fit(1, 2, 1, How::Exact)).unwrap(), [255, 8]);
    let path = saved::<Luma<u16>>(folder, vec![0, 65535]);
    assert_eq!(decode(&path, fit(1, 2, 1, How::Exact)).unwrap(), [0, 255]);
    let path = saved::<Rgb<u16>>(folder, vec![257, 514, 771, 1028, 1285, 1542]);
    assert_eq!(decode(&path, colour).unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn grey_and_colour_are_converted_as_pillow_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved::<Rgb<u8>>(folder.path(), vec![255, 0, 0, 10, 200, 30]);
    // Image.open('a.png').convert('L'), Pillow 13.0.
    assert_eq!(decode(&path, fit(1, 2, 1, How::Resize)).unwrap(), [76, 124]);
    let path = saved::<Luma<u8>>(folder.path(), vec![7, 8]);
    assert_eq!(decode(&path, fit(1, 2, 3, How::Resize)).unwrap(), [7, 7, 7, 8, 8, 8]);
}

#[test]
fn other_shapes_are_refused_where_exact_ones_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    picture(folder.path(), "a.png", 0, 3, 5);
    let path = folder.path().join("a.png");
    assert_eq!(decode(&path, fit(3, 5, 3, How::Exact)).unwrap(), interleaved(&[0], 3, 5, 3));
    for (height, width, channels) in [(5, 3, 3), (3, 4, 3), (3, 5, 1)] {
        let error = decode(&path, fit(height, width, channels, How::Exact)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("a.png: image of 5×3 colour, expected"), "{error}");
    }
}

#[test]
fn resizing_agrees_with_pillow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    picture(folder.path(), "a.png", 0, 7, 11);
    for (how, height, width, expected) in PILLOW {
        let found = decode(&path, fit(height, width, 3, how)).unwrap();
        assert_eq!(found.len(), expected.len());
        let apart = found.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(apart <= Some(1), "{how:?} {height}×{width}: {apart:?}");
    }
}

#[test]
fn memory_is_fitted_like_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    picture(folder.path(), "a.png", 0, 7, 11);
    let shape = Shape { height: 7, width: 11, channels: 3 };
    let pixels = interleaved(&[5, 0], 7, 11, 3);
    let split = Split::in_memory(Path::new("m"), shape, pixels, vec![0, 0], 1).unwrap();
    for how in [How::Resize, How::ResizeThenCentreCrop { resize: 5 }] {
        let fit = fit(4, 3, 1, how);
        let read = split.read(&[1], fit, Broken::Fail).unwrap();
        assert_eq!(read.pixels, decode(&path, fit).unwrap());
    }
    let error = split.read(&[0], fit(7, 7, 3, How::Exact), Broken::Fail).unwrap_err().to_string();
    assert!(error.starts_with("m: image of 11×7 colour, expected 7×7 colour"), "{error}");
}

#[test]
fn paths_bytes_and_pixels_give_the_same_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    picture(folder.path(), "a.png", 0, 7, 11);
    let bytes = std::fs::read(&path).unwrap();
    let pixels = interleaved(&[0], 7, 11, 3);
    let shape = Shape { height: 7, width: 11, channels: 3 };
    // the ending says JPEG, the bytes say PNG
    let name = Path::new("upload.jpg");
    let inputs = [
        ImageInput::Path(&path),
        ImageInput::Bytes { name, bytes: &bytes },
        ImageInput::Pixels { name, shape, pixels: &pixels },
    ];
    let exact = Fit { shape, how: How::Exact };
    for fit in [exact, fit(4, 3, 1, How::Resize)] {
        let one = decode(&path, fit).unwrap();
        assert_eq!(decode_bytes(&bytes, name, fit).unwrap(), one);
        let all = decode_all(&inputs, fit, Broken::Fail).unwrap();
        assert_eq!((all.shape, all.rows, all.broken), (fit.shape, vec![0, 1, 2], Vec::new()));
        assert_eq!(all.pixels, [&one[..]; 3].concat());
    }
    let empty = decode_all(&[], exact, Broken::Fail).unwrap();
    assert!(empty.pixels.is_empty() && empty.rows.is_empty());
}

#[test]
fn broken_inputs_are_named_and_the_others_stay_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.png", "b.png"].map(|name| folder.path().join(name));
    picture(folder.path(), "a.png", 0, 7, 11);
    picture(folder.path(), "b.png", 1, 5, 6);
    let whole = std::fs::read(&paths[0]).unwrap();
    let shape = Shape { height: 7, width: 11, channels: 3 };
    let missing = folder.path().join("missing.png");
    let inputs = [
        ImageInput::Path(&paths[0]),
        ImageInput::Bytes { name: Path::new("cut.png"), bytes: &whole[..whole.len() / 2] },
        ImageInput::Path(&missing),
        ImageInput::Pixels { name: Path::new("short"), shape, pixels: &[0; 7 * 11 * 3 - 1] },
        ImageInput::Path(&paths[1]),
    ];
    let fit = fit(4, 3, 3, How::Resize);
    let left = decode_all(&inputs, fit, Broken::Skip).unwrap();
    assert_eq!(left.rows, [0, 4]);
    let expected = paths.each_ref().map(|path| decode(path, fit).unwrap());
    assert_eq!(left.pixels, expected.concat());
    let places: Vec<usize> = left.broken.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [1, 2, 3]);
    for ((_, reason), name) in left.broken.iter().zip(["cut.png: ", "missing.png", "short: 230 "]) {
        assert!(reason.why.contains(name), "{reason}");
    }
    let error = decode_all(&inputs, fit, Broken::Fail).unwrap_err().to_string();
    assert!(error.starts_with("cut.png: the image is cut off"), "{error}");
}

#[test]
fn senseless_shapes_are_refused() {
    let path = Path::new("none.png");
    for wrong in [
        fit(0, 5, 3, How::Resize),
        fit(5, 5, 2, How::Resize),
        fit(usize::MAX, 2, 3, How::Resize),
        fit(8, 9, 3, How::ResizeThenCentreCrop { resize: 8 }),
    ] {
        let error = decode(path, wrong).unwrap_err().to_string();
        assert!(error.starts_with("shape = ") || error.starts_with("resize = "), "{error}");
    }
}

/// A PNG whose header claims a size, and no more.
fn claiming(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&header);
    let mut bytes = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0d".to_vec();
    bytes.extend(header);
    bytes.extend(crc.sum().to_be_bytes());
    bytes.extend(b"\x00\x00\x00\x00IDAT\x35\xaf\x06\x1e");
    bytes
}

#[test]
fn a_bomb_is_refused_by_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.png");
    write(folder.path(), "bomb.png", &claiming(100_000, 100_000));
    let error = decode(&path, fit(8, 8, 3, How::Resize)).unwrap_err().to_string();
    assert!(error.contains("bomb.png: ") && error.contains("100000×100000"), "{error}");
}

#[test]
fn a_long_strip_does_not_grow_without_bound() {
    let folder = tempfile::tempdir().unwrap();
    picture(folder.path(), "strip.png", 0, 1, 20_000);
    let how = How::ResizeThenCentreCrop { resize: 1_000 };
    let error = decode(&folder.path().join("strip.png"), fit(8, 8, 3, how)).unwrap_err();
    assert!(error.to_string().contains("its longer side would be 20000000"), "{error}");
}

#[test]
fn a_jpeg_is_read_in_the_right_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jpg");
    // Left half red, right half blue, 16 wide and 8 high: loss stays small.
    let picture =
        image::RgbImage::from_fn(16, 8, |x, _| Rgb(if x < 8 { [250, 0, 0] } else { [0, 0, 250] }));
    picture.save(&path).unwrap();
    let found = decode(&path, fit(8, 16, 3, How::Exact)).unwrap();
    let at = |row: usize, column: usize| &found[(row * 16 + column) * 3..][..3];
    for row in 0..8 {
        assert!(at(row, 2)[0] > 200 && at(row, 2)[2] < 50, "{:?}", at(row, 2));
        assert!(at(row, 13)[0] < 50 && at(row, 13)[2] > 200, "{:?}", at(row, 13));
    }
}

include!("pillow.rs");
