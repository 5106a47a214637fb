//! Images in parts: while the network looks at one, the next is decoded. No core waits for the other
//! at the end of a part.

use ivoro::{Matrix, interrupt};

use crate::dataset::Images;
use crate::error::Result;

/// Decodes all parts of so many inputs and looks at them; `sift` may take images out before, and
/// `take` gets what was seen. Both are told the place of the part's first input.
pub(crate) fn look_at_parts<I: Sync>(
    inputs: &[I],
    size: usize,
    decode: impl Fn(&[I]) -> Result<Images> + Sync,
    look: impl Fn(&Images) -> Result<Vec<Matrix>> + Sync,
    mut sift: impl FnMut(&mut Images, usize),
    mut take: impl FnMut(&Images, usize, Vec<Matrix>) -> Result<()>,
) -> Result<()> {
    let size = size.max(1);
    let mut parts = inputs.chunks(size);
    let mut next = parts.next().map(&decode);
    let mut first = 0;
    while let Some(images) = next {
        interrupt::check();
        let mut images = images?;
        sift(&mut images, first);
        let part = parts.next();
        let (seen, decoded) = rayon::join(|| look(&images), || part.map(&decode));
        take(&images, first, seen?)?;
        (next, first) = (decoded, first + size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn parts_come_in_order_and_an_error_ends_them() {
        let decode = |part: &[u8]| {
            let shape = Shape { height: 1, width: 1, channels: 1 };
            let images = |pixels: Vec<u8>| Images {
                shape,
                rows: (0..pixels.len()).collect(),
                pixels,
                broken: Vec::new(),
                truncated: Vec::new(),
            };
            if part.contains(&9) {
                return Err(crate::Error::UnknownSize);
            }
            Ok(images(part.to_vec()))
        };
        let look = |images: &Images| {
            let numbers = images.pixels.iter().map(|&pixel| f32::from(pixel)).collect();
            Ok(vec![Matrix::new(images.pixels.len(), 1, numbers)?])
        };
        let all = |inputs: &[u8]| {
            let mut seen = Vec::new();
            let ended = look_at_parts(
                inputs,
                2,
                decode,
                look,
                |images, first| images.pixels.iter_mut().for_each(|it| *it += first as u8),
                |_, first, found| {
                    seen.push((first, found[0].as_slice().to_vec()));
                    Ok(())
                },
            );
            (seen, ended.is_ok())
        };
        let two = vec![(0, vec![1., 2.]), (2, vec![5., 6.])];
        assert_eq!(all(&[1, 2, 3, 4]), (two.clone(), true));
        assert_eq!(all(&[1, 2, 3, 4, 5]), ([two.clone(), vec![(4, vec![9.])]].concat(), true));
        assert_eq!(all(&[1, 2, 3, 4, 9]), (two, false));
        assert_eq!(all(&[]), (Vec::new(), true));
    }
}
