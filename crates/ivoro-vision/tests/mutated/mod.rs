//! Files with some of their bytes changed, the same in each run.

/// How many files are changed: few in a usual run, as many as `IVORO_MUTATIONS` says where that is set.
pub(crate) fn rounds(few: usize) -> usize {
    std::env::var("IVORO_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(few)
}

/// Any numbers, the same in each run.
pub(crate) struct Mutations(u64);

impl Mutations {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    /// A file with one to four places changed: a bit, a byte, a byte or a piece of another place, or
    /// a number that sizes are at the edge of.
    pub(crate) fn of(&mut self, file: &[u8]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        for _ in 0..=self.below(4) {
            let (at, from) = (self.below(bytes.len()), self.below(bytes.len()));
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.below(256) as u8,
                2 => bytes[at] = bytes[from],
                3 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][self.below(6)],
                4 => bytes.truncate(at.max(1)),
                _ => {
                    let length = self.below(16).min(bytes.len() - at.max(from));
                    bytes.copy_within(from..from + length, at);
                }
            }
        }
        bytes
    }
}
