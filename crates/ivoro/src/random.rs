//! Seeded randomness that is the same on every machine: a counter-based generator of our own, and
//! NumPy's legacy Mersenne Twister for class orders of the literature.

use std::f64::consts::TAU;

/// SplitMix64: the `index`-th number of the stream `seed`.
pub fn mix(seed: u64, index: u64) -> u64 {
    let mut x = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The `index`-th number of the stream `seed`, at least 0 and below 1.
pub fn unit(seed: u64, index: u64) -> f64 {
    (mix(seed, index) >> 11) as f64 / (1u64 << 53) as f64
}

/// The `index`-th standard normal number of the stream `seed` (Box and Muller).
pub fn normal(seed: u64, index: u64) -> f64 {
    let (radius, angle) = polar(above_zero(seed, index), unit(seed, 2 * index + 1));
    radius * angle.cos()
}

/// Standard normal numbers from the `index`-th of the stream `seed` on: two of each pair of draws.
pub fn normals(seed: u64, index: u64) -> impl Iterator<Item = f64> {
    (index..).flat_map(move |at| normal_pair(above_zero(seed, at), unit(seed, 2 * at + 1)))
}

/// What radii of [`normal`] are made from: at least 2⁻⁵³ and at most 1.
fn above_zero(seed: u64, index: u64) -> f64 {
    1.0 - unit(seed, 2 * index)
}

/// Two independent standard normal numbers from a number above 0 and at most 1, and one at least 0 and
/// below 1 (Box and Muller).
pub(crate) fn normal_pair(first: f64, second: f64) -> [f64; 2] {
    let (radius, angle) = polar(first, second);
    let (sine, cosine) = angle.sin_cos();
    [radius * cosine, radius * sine]
}

/// Length and angle of a point whose two coordinates are standard normal numbers.
fn polar(first: f64, second: f64) -> (f64, f64) {
    ((-2.0 * first.ln()).sqrt(), TAU * second)
}

/// A random permutation of `0..count`.
pub fn permutation(seed: u64, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        let other = (u128::from(mix(seed, at as u64)) * (at as u128 + 1)) >> 64;
        order.swap(at, other as usize);
    }
    order
}

/// `numpy.random.RandomState(seed).permutation(count)`.
pub fn numpy_permutation(seed: u32, count: usize) -> Vec<usize> {
    let mut generator = Twister::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, generator.up_to(at as u32) as usize);
    }
    order
}

/// MT19937, seeded as NumPy's legacy `RandomState` does.
struct Twister {
    state: [u32; 624],
    next: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; 624];
        for at in 1..624 {
            let last = state[at - 1];
            state[at] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(at as u32);
        }
        Self { state, next: 624 }
    }

    fn draw(&mut self) -> u32 {
        if self.next == 624 {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C_5680;
        y ^= (y << 15) & 0xEFC6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for at in 0..624 {
            let y = (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % 624] & 0x7FFF_FFFF);
            let odd = if y & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.state[at] = self.state[(at + 397) % 624] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// A number in `0..=max`, by masking and rejection.
    fn up_to(&mut self, max: u32) -> u32 {
        let mask = u32::MAX.checked_shr(max.leading_zeros()).unwrap_or(0);
        loop {
            let value = self.draw() & mask;
            if value <= max {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_are_those_of_the_two_formulas() {
        // −2 ln(1 − u) from the first word of a pair here, −2 ln(u + 2⁻⁵³) in the lift
        let (here, lifted) = (
            [0.452_815_217_884_077_14, -0.116_645_150_805_044_26],
            [-1.712_888_991_455_515_2, 1.040_187_851_208_733_5, 2.062_278_006_440_169_3],
        );
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-14, "{found}");
        near(normal(7, 5), here[0]);
        normals(7, 5).zip(here).for_each(|(found, expected)| near(found, expected));
        let found: Vec<f64> = crate::lift::normals(7, 2, 3).collect();
        assert_eq!(found.len(), 3);
        found.into_iter().zip(lifted).for_each(|(found, expected)| near(found, expected));
    }
}
