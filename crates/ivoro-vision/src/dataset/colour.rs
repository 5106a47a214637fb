//! Colour profiles: what a photo means by its numbers, as the numbers of sRGB.
//!
//! Networks were trained on numbers of sRGB, or of photos taken for it. Phones write Display P3, some cameras
//! Adobe RGB: the same numbers are stronger colours there.

use std::sync::Arc;

use moxcms::{ColorProfile, DataColorSpace, Layout, Transform8BitExecutor, TransformOptions};

/// A difference in a channel that is not worth rounding all pixels anew: profiles that mean sRGB come in many
/// variants, whose numbers differ by so much.
const SAME: u8 = 2;
/// Steps of each channel at which a profile is compared with sRGB.
const STEPS: [u8; 6] = [0, 51, 102, 153, 204, 255];

/// Brings pixels of a profile to sRGB.
#[derive(Clone)]
pub(super) struct ToSrgb(Arc<Transform8BitExecutor>);

impl ToSrgb {
    /// What a profile asks for; none where it can't be read, is not one of red, green and blue, or says sRGB.
    pub(super) fn new(profile: &[u8]) -> Option<Self> {
        let profile = ColorProfile::new_from_slice(profile).ok()?;
        if profile.color_space != DataColorSpace::Rgb {
            return None;
        }
        let (rgb, options) = (Layout::Rgb, TransformOptions::default());
        let transform = profile.create_transform_8bit(rgb, &ColorProfile::new_srgb(), rgb, options);
        let transform = Self(transform.ok()?);
        let probe: Vec<u8> = STEPS
            .iter()
            .flat_map(|&r| STEPS.iter().flat_map(move |&g| STEPS.map(|b| [r, g, b])))
            .flatten()
            .collect();
        let there = transform.apply(&probe)?;
        let is_same = probe.iter().zip(&there).all(|(a, b)| a.abs_diff(*b) <= SAME);
        (!is_same).then_some(transform)
    }

    /// The same pixels (red, green, blue) in sRGB.
    pub(super) fn apply(&self, pixels: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; pixels.len()];
        self.0.transform(pixels, &mut out).ok()?;
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srgb_changes_nothing_and_display_p3_is_wider() {
        let srgb = ColorProfile::new_srgb().encode().unwrap();
        assert!(ToSrgb::new(&srgb).is_none());
        assert!(ToSrgb::new(b"no profile").is_none());
        let grey = ColorProfile::new_gray_with_gamma(2.2).encode().unwrap();
        assert!(ToSrgb::new(&grey).is_none());
        let p3 = ColorProfile::new_display_p3().encode().unwrap();
        let to_srgb = ToSrgb::new(&p3).unwrap();
        // by the matrices of CSS Color 4, in NumPy: 136.39, 73.88, 45.04
        let found = to_srgb.apply(&[128, 77, 51, 255, 255, 255, 0, 0, 0]).unwrap();
        for (found, expected) in found.iter().zip([136, 74, 45, 255, 255, 255, 0, 0, 0]) {
            assert!(found.abs_diff(expected) <= 1, "{found} instead of {expected}");
        }
    }
}
