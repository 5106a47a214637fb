//! Where the axes that a file gives a value lie in the memory that this engine gives it.
//!
//! The engine has the channels of a pixel side by side, whatever order of axes the file wants. So an
//! operator that gives axes another order, splits or joins them, or takes a part along one, moves no
//! number: it changes the view alone.

use std::mem::take;

use super::super::constants::Array;
use crate::shape::Shape;

/// The most numbers that are laid out for a view.
const MOST: usize = 1 << 24;

/// Some steps in memory, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) count: usize,
    pub(super) by: By,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// To the next image.
    Image,
    /// So many numbers on in the same image.
    Numbers(usize),
}

/// An axis: steps within steps, the largest first. None: it has one entry.
pub(super) type Axis = Vec<Steps>;

/// The axes of a value, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Where in an image it begins.
    pub(super) first: usize,
    pub(super) axes: Vec<Axis>,
}

impl Steps {
    pub(super) fn numbers(count: usize, by: usize) -> Self {
        Self { count, by: By::Numbers(by) }
    }
}

/// How many entries an axis has; none if that can't be counted.
fn length(axis: &[Steps]) -> Option<usize> {
    axis.iter().try_fold(1usize, |product, steps| product.checked_mul(steps.count))
}

impl View {
    /// The view of so many images as a file has feature maps: image, channel, row, column.
    pub(super) fn of_images(images: usize, shape: Shape) -> Self {
        let Shape { height, width, channels } = shape;
        let axes = vec![
            vec![Steps { count: images, by: By::Image }],
            vec![Steps::numbers(channels, 1)],
            vec![Steps::numbers(height, width * channels)],
            vec![Steps::numbers(width, channels)],
        ];
        Self::new(0, axes)
    }

    /// The view of so many images as a file has tokens: image, token, number.
    pub(super) fn of_tokens(images: usize, tokens: usize, channels: usize) -> Self {
        let images = vec![Steps { count: images, by: By::Image }];
        let tokens = vec![Steps::numbers(tokens, channels)];
        Self::new(0, vec![images, tokens, vec![Steps::numbers(channels, 1)]])
    }

    /// A view in the one form that two equal ones have.
    pub(super) fn new(first: usize, mut axes: Vec<Axis>) -> Self {
        for axis in &mut axes {
            let mut joined: Axis = Vec::new();
            for steps in take(axis).into_iter().filter(|steps| steps.count != 1) {
                match (joined.last_mut(), steps.by) {
                    (Some(Steps { count, by: By::Numbers(outer) }), By::Numbers(inner))
                        if steps.count.checked_mul(inner) == Some(*outer) =>
                    {
                        *count *= steps.count;
                        *outer = inner;
                    }
                    _ => joined.push(steps),
                }
            }
            *axis = joined;
        }
        Self { first, axes }
    }

    /// The size of each axis.
    pub(super) fn sizes(&self) -> Option<Vec<usize>> {
        self.axes.iter().map(|axis| length(axis)).collect()
    }

    /// Steps of all axes but those from image to image.
    fn inside(&self) -> impl Iterator<Item = (usize, usize)> {
        self.axes.iter().flatten().filter_map(|steps| match steps.by {
            By::Numbers(by) => Some((steps.count, by)),
            By::Image => None,
        })
    }

    /// Whether it has each number of images of `shape`.
    pub(super) fn is_whole(&self, shape: Shape) -> bool {
        let count = self.inside().try_fold(1usize, |sum, (count, _)| sum.checked_mul(count));
        self.first == 0 && count == Some(shape.len())
    }

    /// Whether it is that of feature maps of `shape`.
    pub(super) fn is_of_maps(&self, images: usize, shape: Shape) -> bool {
        *self == Self::of_images(images, shape)
    }

    /// Whether it is that of one row of numbers for each image.
    pub(super) fn is_flat(&self, images: usize, shape: Shape) -> bool {
        let mut flat = Self::of_images(images, shape);
        flat.axes.truncate(2);
        shape.height * shape.width == 1 && *self == flat
    }

    /// Whether the last axis holds all channels of a pixel, and the others all pixels.
    pub(super) fn is_of_pixels(&self, shape: Shape) -> bool {
        let channels = View::new(0, vec![vec![Steps::numbers(shape.channels, 1)]]);
        self.axes.last() == channels.axes.first() && self.is_whole(shape)
    }

    /// The same pixels with another number of channels, once [`is_of_pixels`](Self::is_of_pixels).
    pub(super) fn with_channels(&self, old: usize, new: usize) -> Option<Self> {
        let mut axes = self.axes.clone();
        *axes.last_mut()? = vec![Steps::numbers(new, 1)];
        let pixels = axes.len() - 1;
        for steps in axes[..pixels].iter_mut().flatten() {
            if let By::Numbers(by) = &mut steps.by {
                *by = by.is_multiple_of(old).then_some(*by / old)?.checked_mul(new)?;
            }
        }
        Some(Self::new(0, axes))
    }

    /// The tokens it has, if those are whole and one after the other: the first and how many.
    pub(super) fn tokens(&self, channels: usize) -> Option<(usize, usize)> {
        let mut count = 1;
        let mut seen = channels == 1;
        for (steps, by) in self.inside() {
            match (steps, by) {
                (steps, 1) if steps == channels && !seen => seen = true,
                (steps, by) if by == channels && count == 1 => count = steps,
                _ => return None,
            }
        }
        (seen && self.first.is_multiple_of(channels)).then_some((self.first / channels, count))
    }

    /// The same numbers in axes of other sizes.
    pub(super) fn reshaped(&self, sizes: &[usize]) -> Option<Self> {
        let mut rest: Vec<Steps> = self.axes.iter().flatten().rev().copied().collect();
        let mut axes = Vec::new();
        for &size in sizes {
            let (mut axis, mut open) = (Vec::new(), size);
            while open > 1 {
                let steps = rest.pop()?;
                if open.is_multiple_of(steps.count) {
                    open /= steps.count;
                    axis.push(steps);
                } else {
                    let By::Numbers(by) = steps.by else { return None };
                    let inner = steps.count.is_multiple_of(open).then_some(steps.count / open)?;
                    axis.push(Steps::numbers(open, by.checked_mul(inner)?));
                    rest.push(Steps::numbers(inner, by));
                    open = 1;
                }
            }
            axes.push((open == 1).then_some(axis)?);
        }
        rest.is_empty().then(|| Self::new(self.first, axes))
    }

    /// The axes in another order, which names each of them once.
    pub(super) fn transposed(&self, order: &[usize]) -> Option<Self> {
        let complete = (0..self.axes.len()).all(|axis| order.contains(&axis));
        if order.len() != self.axes.len() || !complete {
            return None;
        }
        let axes = order.iter().map(|&axis| self.axes[axis].clone()).collect();
        Some(Self { first: self.first, axes })
    }

    /// Some entries of an axis, one after the other.
    pub(super) fn part(&self, axis: usize, first: usize, count: usize) -> Option<Self> {
        let length = length(self.axes.get(axis)?)?;
        if count == 0 || first.checked_add(count)? > length {
            return None;
        }
        let mut part = self.clone();
        if count == length {
            return Some(part);
        }
        let &[Steps { by: By::Numbers(by), .. }] = &part.axes[axis][..] else { return None };
        part.first = first.checked_mul(by)?.checked_add(part.first)?;
        part.axes[axis] = vec![Steps::numbers(count, by)];
        Some(Self::new(part.first, part.axes))
    }

    /// Numbers that meet those of the value as they lie in an image of `shape`, all of which it has:
    /// where an axis of theirs has one entry, that one meets all.
    pub(super) fn arrange(&self, array: &Array<f32>, shape: Shape) -> Option<Vec<f32>> {
        let missing = self.axes.len().checked_sub(array.shape.len())?;
        if shape.len() > MOST || !self.is_whole(shape) {
            return None;
        }
        // from each number of an image to one of the array
        let mut pairs = vec![(0, 0)];
        for (at, axis) in self.axes.iter().enumerate() {
            let size = at.checked_sub(missing).map_or(1, |at| array.shape[at]);
            let mut places = vec![0];
            for steps in axis {
                let (count, by) = match steps.by {
                    By::Numbers(by) => (steps.count, by),
                    By::Image if size == 1 => (1, 0),
                    By::Image => return None,
                };
                let next = |place: usize| (0..count).map(move |step| place + step * by);
                places = places.into_iter().flat_map(next).collect();
            }
            let step = usize::from(size != 1);
            if size != 1 && size != places.len() {
                return None;
            }
            let places = places.into_iter().enumerate();
            let steps: Vec<(usize, usize)> =
                places.map(|(entry, place)| (place, entry * step)).collect();
            let next = |(place, entry): (usize, usize)| {
                steps.iter().map(move |(by, step)| (place + by, entry * size + step))
            };
            pairs = pairs.into_iter().flat_map(next).collect();
        }
        let mut numbers = vec![0.0; shape.len()];
        for (place, entry) in pairs {
            *numbers.get_mut(place)? = *array.numbers.get(entry)?;
        }
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGES: usize = 1009;

    #[test]
    fn tokens_of_a_map_lie_as_the_map_does() {
        let shape = Shape { height: 3, width: 5, channels: 8 };
        let map = View::of_images(IMAGES, shape);
        assert_eq!(map.sizes(), Some(vec![IMAGES, 8, 3, 5]));
        assert!(map.is_of_maps(IMAGES, shape) && !map.is_of_pixels(shape));
        let tokens = map.reshaped(&[IMAGES, 8, 15]).unwrap().transposed(&[0, 2, 1]).unwrap();
        assert!(tokens.is_of_pixels(shape));
        assert_eq!(tokens.tokens(8), Some((0, 15)));
        let back = tokens.transposed(&[0, 2, 1]).unwrap().reshaped(&[IMAGES, 8, 3, 5]).unwrap();
        assert_eq!(back, map);
    }

    #[test]
    fn heads_are_parts_of_the_channels() {
        let shape = Shape { height: 7, width: 1, channels: 3 * 2 * 4 };
        let tokens = View::of_images(IMAGES, shape);
        let tokens = tokens.reshaped(&[IMAGES, 24, 7]).unwrap().transposed(&[0, 2, 1]).unwrap();
        let heads = tokens.reshaped(&[IMAGES, 7, 3, 2, 4]).unwrap();
        let keys = heads.transposed(&[2, 0, 3, 1, 4]).unwrap().part(0, 1, 1).unwrap();
        assert_eq!((keys.first, keys.sizes()), (8, Some(vec![1, IMAGES, 2, 7, 4])));
        assert_eq!(
            keys.axes[2..],
            [[(2, 4)], [(7, 24)], [(4, 1)]]
                .map(|axis| { axis.map(|(count, by)| Steps::numbers(count, by)).to_vec() })
        );
        assert!(!keys.is_whole(shape));
        assert_eq!(heads.reshaped(&[IMAGES, 7, 5, 5]), None);
    }

    #[test]
    fn a_token_is_a_part_of_all() {
        let shape = Shape { height: 7, width: 1, channels: 4 };
        let tokens = View::of_images(1, shape).reshaped(&[1, 4, 7]).unwrap();
        let tokens = tokens.transposed(&[0, 2, 1]).unwrap();
        assert_eq!(tokens.part(1, 2, 3).unwrap().tokens(4), Some((2, 3)));
        assert_eq!(tokens.part(1, 6, 1).unwrap().tokens(4), Some((6, 1)));
        assert_eq!(tokens.part(1, 6, 2), None);
        assert_eq!(tokens.part(2, 0, 2).unwrap().tokens(4), None);
    }

    #[test]
    fn numbers_that_never_change_lie_as_what_they_meet() {
        let shape = Shape { height: 1, width: 3, channels: 2 };
        let map = View::of_images(IMAGES, shape);
        let array = |shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            Array { shape: shape.to_vec(), numbers: (0..count).map(|at| at as f32).collect() }
        };
        let arrange = |view: &View, sizes: &[usize]| view.arrange(&array(sizes), shape);
        assert_eq!(arrange(&map, &[2, 1, 1]), Some(vec![0., 1., 0., 1., 0., 1.]));
        assert_eq!(arrange(&map, &[1, 2, 1, 3]), Some(vec![0., 3., 1., 4., 2., 5.]));
        let tokens = map.reshaped(&[IMAGES, 2, 3]).unwrap().transposed(&[0, 2, 1]).unwrap();
        assert_eq!(arrange(&tokens, &[1, 3, 2]), Some(vec![0., 1., 2., 3., 4., 5.]));
        assert_eq!(arrange(&tokens, &[2]), Some(vec![0., 1., 0., 1., 0., 1.]));
        assert_eq!(arrange(&tokens, &[1, 1, 1, 2]), None);
        assert_eq!(arrange(&tokens, &[IMAGES, 1, 2]), None);
    }
}
