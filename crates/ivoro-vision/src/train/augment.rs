//! Random changes of training images, the same for every engine and any number of threads: what is
//! drawn for an image depends on seed, epoch and row alone. Several batches are changed at once.

use ivoro::random::{mix, unit};

use crate::recipe::Augmentation;
use crate::shape::Shape;

/// What was drawn for one image.
struct Draw {
    stream: u64,
    next: u64,
}

impl Draw {
    fn unit(&mut self) -> f32 {
        self.next += 1;
        unit(self.stream, self.next) as f32
    }

    /// A factor between `1 − most` and `1 + most`.
    fn factor(&mut self, most: f32) -> f32 {
        1.0 + most * (2.0 * self.unit() - 1.0)
    }

    /// One of `0..count`.
    fn index(&mut self, count: usize) -> usize {
        ((self.unit() * count as f32) as usize).min(count - 1)
    }
}

/// Changes the images in place. `rows[i]` identifies image `i`.
pub fn augment(
    pixels: &mut [u8],
    shape: Shape,
    rows: &[usize],
    settings: &Augmentation,
    stream: u64,
) {
    let size = shape.height * shape.width * shape.channels;
    let mut before = vec![0; size];
    for (image, &row) in pixels.chunks_mut(size).zip(rows) {
        let mut draw = Draw { stream: mix(stream, row as u64), next: 0 };
        change(image, &mut before, shape, settings, &mut draw);
    }
}

fn change(
    image: &mut [u8],
    before: &mut [u8],
    shape: Shape,
    settings: &Augmentation,
    draw: &mut Draw,
) {
    let reach = 2 * settings.shift + 1;
    let down = draw.index(reach) as isize - settings.shift as isize;
    let right = draw.index(reach) as isize - settings.shift as isize;
    let mirrored = draw.unit() < 0.5 && settings.mirror;
    let scale = 1.0 + settings.zoom * draw.unit();
    let colour = [settings.brightness, settings.contrast, settings.saturation];
    let [brightness, contrast, saturation] = colour.map(|most| draw.factor(most));
    if down != 0 || right != 0 || mirrored {
        before.copy_from_slice(image);
        move_pixels(image, before, shape, down, right, mirrored);
    }
    if scale > 1.0 {
        before.copy_from_slice(image);
        enlarge(image, before, shape, scale, [draw.unit(), draw.unit()]);
    }
    recolour(image, shape, brightness, contrast, saturation);
    if settings.cutout > 0 {
        let (y, x) = (draw.index(shape.height), draw.index(shape.width));
        paint_over(image, shape, y, x, settings.cutout);
    }
}

/// Mirrors, then shifts; black comes in.
fn move_pixels(
    image: &mut [u8],
    before: &[u8],
    shape: Shape,
    down: isize,
    right: isize,
    mirrored: bool,
) {
    let Shape { height, width, channels } = shape;
    for (y, line) in image.chunks_exact_mut(width * channels).enumerate() {
        let source = y as isize - down;
        if source < 0 || source >= height as isize {
            line.fill(0);
            continue;
        }
        let from = &before[source as usize * width * channels..][..width * channels];
        for (x, pixel) in line.chunks_exact_mut(channels).enumerate() {
            let source = x as isize - right;
            if source < 0 || source >= width as isize {
                pixel.fill(0);
                continue;
            }
            let at = if mirrored { width - 1 - source as usize } else { source as usize };
            pixel.copy_from_slice(&from[at * channels..][..channels]);
        }
    }
}

/// Shows a part of the image, `1 / scale` of its sides, at the size of the whole.
fn enlarge(image: &mut [u8], before: &[u8], shape: Shape, scale: f32, place: [f32; 2]) {
    let Shape { height, width, channels } = shape;
    let origin = |length: usize, place: f32| (length as f32 - length as f32 / scale) * place;
    let (top, left) = (origin(height, place[0]), origin(width, place[1]));
    let locate = |at: usize, origin: f32, length: usize| {
        let position = (origin + (at as f32 + 0.5) / scale - 0.5).clamp(0.0, length as f32 - 1.0);
        let low = position as usize;
        (low, (low + 1).min(length - 1), position - low as f32)
    };
    for y in 0..height {
        let (upper, lower, fall) = locate(y, top, height);
        for x in 0..width {
            let (west, east, along) = locate(x, left, width);
            for c in 0..channels {
                let value = |y: usize, x: usize| f32::from(before[(y * width + x) * channels + c]);
                let above = value(upper, west) * (1.0 - along) + value(upper, east) * along;
                let below = value(lower, west) * (1.0 - along) + value(lower, east) * along;
                let mixed = above * (1.0 - fall) + below * fall;
                image[(y * width + x) * channels + c] = (mixed + 0.5) as u8;
            }
        }
    }
}

/// Brightness, then contrast around the mean grey, then saturation, clipped after each.
fn recolour(image: &mut [u8], shape: Shape, brightness: f32, contrast: f32, saturation: f32) {
    if brightness != 1.0 {
        image.iter_mut().for_each(|value| *value = clip(f32::from(*value) * brightness));
    }
    if contrast != 1.0 {
        let pixels = image.chunks_exact(shape.channels);
        let count = pixels.len() as f32;
        let mean = pixels.map(grey).sum::<f32>() / count;
        let change = |value: u8| clip(mean + contrast * (f32::from(value) - mean));
        image.iter_mut().for_each(|value| *value = change(*value));
    }
    if saturation != 1.0 && shape.channels == 3 {
        for pixel in image.chunks_exact_mut(3) {
            let level = grey(pixel);
            let change = |value: u8| clip(level + saturation * (f32::from(value) - level));
            pixel.iter_mut().for_each(|value| *value = change(*value));
        }
    }
}

/// Luma of ITU-R BT.601.
fn grey(pixel: &[u8]) -> f32 {
    match pixel {
        [r, g, b] => 0.299 * f32::from(*r) + 0.587 * f32::from(*g) + 0.114 * f32::from(*b),
        _ => f32::from(pixel[0]),
    }
}

fn clip(value: f32) -> u8 {
    (value + 0.5).clamp(0.0, 255.0) as u8
}

/// A grey square around a point; what lies outside the image is cut off.
fn paint_over(image: &mut [u8], shape: Shape, y: usize, x: usize, side: usize) {
    let range =
        |at: usize, length: usize| at.saturating_sub(side / 2)..(at + side.div_ceil(2)).min(length);
    for row in range(y, shape.height) {
        for column in range(x, shape.width) {
            let at = (row * shape.width + column) * shape.channels;
            image[at..at + shape.channels].fill(127);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { height: 2, width: 3, channels: 1 };

    #[test]
    fn shifts_and_mirrors_a_non_square_image() {
        let before = [1, 2, 3, 4, 5, 6];
        let mut image = before;
        move_pixels(&mut image, &before, SHAPE, 1, -1, false);
        assert_eq!(image, [0, 0, 0, 2, 3, 0]);
        move_pixels(&mut image, &before, SHAPE, 0, 0, true);
        assert_eq!(image, [3, 2, 1, 6, 5, 4]);
        // The mirror image is what is shifted.
        move_pixels(&mut image, &before, SHAPE, 0, 1, true);
        assert_eq!(image, [0, 3, 2, 0, 6, 5]);
    }

    #[test]
    fn colours_change_as_asked() {
        let shape = Shape { height: 1, width: 2, channels: 3 };
        let mut image = [100, 150, 200, 10, 20, 250];
        recolour(&mut image, shape, 1.2, 1.0, 1.0);
        assert_eq!(image, [120, 180, 240, 12, 24, 255]);
        recolour(&mut image, shape, 1.0, 1.0, 0.0);
        assert!(image[0] == image[1] && image[1] == image[2], "{image:?} is not grey");
        let mut image = [0, 0, 0, 200, 200, 200];
        recolour(&mut image, shape, 1.0, 0.5, 1.0);
        assert_eq!(image, [50, 50, 50, 150, 150, 150]);
    }

    #[test]
    fn enlarging_by_two_shows_a_quarter() {
        let shape = Shape { height: 4, width: 4, channels: 1 };
        let before: Vec<u8> = (0..16).map(|at| if at % 4 < 2 { 0 } else { 200 }).collect();
        let mut image = before.clone();
        enlarge(&mut image, &before, shape, 2.0, [0.0, 1.0]);
        assert!(image.iter().all(|&value| value >= 150), "{image:?}");
        enlarge(&mut image, &before, shape, 2.0, [0.0, 0.0]);
        assert!(image.iter().all(|&value| value <= 50), "{image:?}");
    }

    #[test]
    fn a_square_is_cut_off_at_the_border() {
        let mut image = [9; 6];
        paint_over(&mut image, SHAPE, 0, 0, 2);
        assert_eq!(image, [127, 9, 9, 9, 9, 9]);
    }

    #[test]
    fn what_is_drawn_depends_on_the_row_not_on_its_neighbours() {
        let shape = Shape { height: 8, width: 8, channels: 3 };
        let image: Vec<u8> = (0..192).map(|at| (at * 7 % 251) as u8).collect();
        let settings =
            Augmentation { cutout: 3, zoom: 0.5, contrast: 0.2, ..Augmentation::default() };
        let mut pair = [image.clone(), image.clone()].concat();
        augment(&mut pair, shape, &[5, 9], &settings, 1);
        let mut alone = image.clone();
        augment(&mut alone, shape, &[9], &settings, 1);
        assert_eq!(pair[192..], alone);
        assert_ne!(pair[..192], pair[192..]);
        let mut later = image;
        augment(&mut later, shape, &[9], &settings, 2);
        assert_ne!(later, alone);
    }
}
