//! Photos and archives with changed bytes: a picture or an error, never a panic.

use std::io::Write;
use std::path::Path;

use image::{DynamicImage, ImageFormat, RgbImage};
use ivoro_vision::dataset::{Broken, Fit, How, ImageInput, Photos, Shape, decode_bytes, measure};
use zip::write::SimpleFileOptions;

use crate::mutated::{Mutations, rounds};

const FIT: Fit = Fit {
    shape: Shape { height: 8, width: 8, channels: 3 },
    how: How::ResizeThenCentreCrop { resize: 9 },
};

fn drawn() -> RgbImage {
    RgbImage::from_fn(21, 17, |x, y| image::Rgb([(x * 11) as u8, (y * 13) as u8, (x * y) as u8]))
}

fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A small photo in each format that can be written here.
fn photos() -> Vec<Vec<u8>> {
    let colour = DynamicImage::from(drawn());
    let formats = [
        ImageFormat::Jpeg,
        ImageFormat::Png,
        ImageFormat::Gif,
        ImageFormat::WebP,
        ImageFormat::Tiff,
        ImageFormat::Bmp,
        ImageFormat::Pnm,
    ];
    let mut files: Vec<Vec<u8>> = formats.map(|format| file(&colour, format)).into();
    let deep = DynamicImage::from(colour.to_rgba16());
    files.push(file(&DynamicImage::from(colour.to_luma8()), ImageFormat::Jpeg));
    files.extend([ImageFormat::Png, ImageFormat::Tiff].map(|format| file(&deep, format)));
    #[cfg(feature = "heic")]
    files.push(
        heifer::encode_rgb8(21, 17, drawn().as_raw(), &heifer::EncodeOptions::default()).unwrap(),
    );
    files
}

#[test]
fn changed_bytes_of_a_photo_give_a_picture_or_an_error() {
    let (files, mut mutations) = (photos(), Mutations::new(5));
    let mut read = 0;
    for round in 0..rounds(1500) {
        let bytes = mutations.of(&files[round % files.len()]);
        let name = Path::new("photo");
        let shape = measure(ImageInput::Bytes { name, bytes: &bytes });
        let found = decode_bytes(&bytes, name, FIT);
        assert!(found.is_err() || shape.is_ok(), "read, and its size is unknown");
        read += usize::from(found.is_ok());
    }
    assert!(read > 0);
}

#[test]
fn changed_bytes_of_an_archive_give_its_photos_or_an_error() {
    let photos = photos();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (at, bytes) in photos.iter().take(3).enumerate() {
        zip.start_file(format!("kind{at}/photo"), SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let file = zip.finish().unwrap().into_inner();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photos.zip");
    let (mut mutations, mut read) = (Mutations::new(6), 0);
    for _ in 0..rounds(400) {
        std::fs::write(&path, mutations.of(&file)).unwrap();
        let Ok(found) = Photos::find(std::slice::from_ref(&path), Broken::Skip) else { continue };
        for photo in &found.photos {
            if let ImageInput::Zipped { .. } = photo.input() {
                read += usize::from(measure(photo.input()).is_ok());
            }
        }
    }
    assert!(read > 0);
}
