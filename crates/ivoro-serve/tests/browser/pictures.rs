//! Photos drawn by the tests: things that a child tells apart, each a little different every time.

use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::{Rgb, RgbImage};

/// What is on a photo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    /// A red ball on a pale wall.
    Ball,
    /// Blue and white stripes.
    Stripes,
    /// Green and black squares.
    Board,
    /// Yellow rays on violet; never taught.
    Star,
}

impl Thing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ball => "ball",
            Self::Stripes => "stripes",
            Self::Board => "board",
            Self::Star => "star",
        }
    }

    fn colour(self, x: f64, y: f64, seed: u32) -> [f64; 3] {
        let turn = |salt: u32| {
            let mixed = (seed + 1).wrapping_mul(2 * salt + 13).wrapping_mul(2_654_435_761);
            f64::from(mixed >> 16) / 65_535.0
        };
        let (dx, dy) = (x - 0.35 - 0.3 * turn(1), y - 0.35 - 0.3 * turn(2));
        match self {
            Self::Ball if dx.hypot(dy) < 0.18 + 0.1 * turn(3) => {
                [0.85, 0.1 + 0.15 * (dx - dy), 0.1]
            }
            Self::Ball => [0.9, 0.88, 0.8 + 0.1 * y],
            Self::Stripes => {
                let across = (x * (0.7 + 0.6 * turn(4)) + y) * (5.0 + 3.0 * turn(5));
                if across.fract() < 0.5 { [0.1, 0.2, 0.75] } else { [0.95, 0.96, 1.0] }
            }
            Self::Board => {
                let count = (4.0 + 3.0 * turn(6)).floor();
                let dark = ((x * count).floor() + (y * count).floor()) % 2.0 < 0.5;
                if dark { [0.02, 0.05, 0.03] } else { [0.15, 0.65 + 0.1 * turn(7), 0.2] }
            }
            Self::Star => {
                let ray = (dy.atan2(dx) * 5.0).sin() > 0.3 * turn(8);
                if ray { [1.0, 0.85, 0.1] } else { [0.35, 0.05, 0.45] }
            }
        }
    }

    pub(crate) fn draw(self, seed: u32) -> RgbImage {
        let (width, height) = (320, 240);
        RgbImage::from_fn(width, height, |x, y| {
            let (x, y) = (f64::from(x) / f64::from(width), f64::from(y) / f64::from(height));
            let light = 0.85 + 0.15 * f64::from(seed % 5) / 4.0;
            Rgb(self.colour(x, y, seed).map(|value| (value.clamp(0.0, 1.0) * light * 255.0) as u8))
        })
    }
}

/// Photos of a thing in a folder of its name.
pub(crate) fn photos(folder: &Path, thing: Thing, seeds: std::ops::Range<u32>) -> Vec<PathBuf> {
    let own = folder.join(thing.name());
    std::fs::create_dir_all(&own).unwrap();
    let save = |seed: u32| {
        let path = own.join(format!("{}-{seed}.png", thing.name()));
        thing.draw(seed).save(&path).unwrap();
        path
    };
    seeds.map(save).collect()
}

/// A film for Chromium's camera: JPEG after JPEG.
pub(crate) fn film(path: &Path, thing: Thing, frames: u32) {
    let mut bytes = Vec::new();
    for seed in 0..frames {
        let frame = image::imageops::resize(
            &thing.draw(seed),
            640,
            480,
            image::imageops::FilterType::Triangle,
        );
        JpegEncoder::new_with_quality(&mut bytes, 90).encode_image(&frame).unwrap();
    }
    std::fs::write(path, bytes).unwrap();
}
