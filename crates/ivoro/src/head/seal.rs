//! Sealed classes: small enough for a device, without the sums that more could be learned from.
//!
//! A sealed class keeps what its distances are computed from (see [`compact`](super::compact)): its
//! centre, its directions and its variances, in few bits, and no second moments. The metric that all
//! classes share is fixed with the first class that is sealed. From then on a class changes nothing
//! for the others, so forgetting a class and merging models of different classes stay exact, and new
//! classes can be learned, measured in that metric. What needs sums is refused: update, taking
//! samples away, and merging two parts of one class.

use crate::error::{Error, Result};
use crate::head::compact::{Base, CompactClass, SharedMetric};
use crate::head::{Head, LearnedClass, Rank};
use crate::matrix::Matrix;

/// Bits of a number of a direction, where nobody says.
const BITS: u8 = 8;

/// How classes are sealed.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// use ivoro::SealOptions;
/// let mut model = Model::new("iVoro-Q".parse::<Variant>()?, Default::default());
/// model.learn(&monday)?;
/// let sealing = model.seal(None, SealOptions { rank: Some(1), ..SealOptions::default() })?;
/// assert_eq!(sealing.classes, ["0", "1"]);
/// assert!(model.update(&monday).unwrap_err().to_string().contains("is sealed"));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealOptions {
    /// Directions per class; without it as many as the model asks with.
    pub rank: Option<usize>,
    /// Bits of each number of a direction, 8 or 16; without it 8, or as earlier classes were sealed.
    pub bits: Option<u8>,
}

/// What sealing did.
///
/// ```
/// # use ivoro::{Matrix, Model, Samples, SealOptions, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let mut model = Model::new("iVoro-Q".parse::<Variant>()?, Default::default());
/// # model.learn(&Samples::single("monday", points, vec![0, 0, 1, 1], 2)?)?;
/// let sealing = model.seal(Some(&["1".to_owned()]), SealOptions::default())?;
/// assert_eq!((sealing.classes.len(), sealing.bits), (1, 8));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealing {
    /// The classes that were sealed now.
    pub classes: Vec<String>,
    /// Most directions per class.
    pub rank: usize,
    /// Bits of each number of a direction.
    pub bits: u8,
}

/// The metric of a model with sealed classes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frozen {
    /// Bits of each number of a direction.
    pub(crate) bits: u8,
    pub(crate) blocks: Vec<SharedMetric>,
    /// The usual distance of a sample to its class in each block.
    pub(crate) usual: Vec<f64>,
}

/// One block of a sealed class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedBlock {
    /// The whitened centre, one row of 16 bits.
    pub(crate) centre: Codes,
    pub(crate) directions: Codes,
    /// Bits of the variances in these directions, and of that in all others.
    variances: Vec<u32>,
    rest: u32,
}

/// Rows of numbers as small integers, each row with a scale of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Codes {
    pub(crate) cols: usize,
    /// Bits of the scales.
    scales: Vec<u32>,
    pub(crate) whole: Vec<i16>,
}

impl Codes {
    /// Rounds each row to integers of so many bits.
    fn of(rows: &Matrix, bits: u8) -> Self {
        let limit = f64::from((1u32 << (bits - 1)) - 1);
        let (mut scales, mut whole) = (Vec::new(), Vec::new());
        for row in rows.iter_rows() {
            let most = row.iter().fold(0f32, |most, value| most.max(value.abs()));
            let scale = (f64::from(most) / limit) as f32;
            let factor = if scale > 0.0 { f64::from(scale).recip() } else { 0.0 };
            let code = |&value: &f32| (f64::from(value) * factor).round_ties_even();
            whole.extend(row.iter().map(|value| code(value).clamp(-limit, limit) as i16));
            scales.push(scale.to_bits());
        }
        Self { cols: rows.cols(), scales, whole }
    }

    pub(crate) fn from_parts(cols: usize, scales: &[f32], whole: Vec<i16>) -> Self {
        Self { cols, scales: scales.iter().map(|scale| scale.to_bits()).collect(), whole }
    }

    pub(crate) fn scales(&self) -> impl Iterator<Item = f32> {
        self.scales.iter().map(|&bits| f32::from_bits(bits))
    }

    pub(crate) fn rows(&self) -> usize {
        self.scales.len()
    }

    fn numbers(&self) -> Vec<f32> {
        let rows = self.whole.chunks_exact(self.cols.max(1)).zip(self.scales());
        rows.flat_map(|(row, scale)| row.iter().map(move |&code| f32::from(code) * scale)).collect()
    }
}

impl SealedBlock {
    fn of(class: &CompactClass, bits: u8) -> Self {
        let centre = Matrix::new(1, class.centre.len(), class.centre.clone()).unwrap_or_default();
        Self {
            centre: Codes::of(&centre, 16),
            directions: Codes::of(&class.directions, bits),
            variances: class.variances.iter().map(|variance| variance.to_bits()).collect(),
            rest: class.rest.to_bits(),
        }
    }

    pub(crate) fn from_parts(
        centre: Codes,
        directions: Codes,
        variances: &[f32],
        rest: f32,
    ) -> Self {
        let variances = variances.iter().map(|variance| variance.to_bits()).collect();
        Self { centre, directions, variances, rest: rest.to_bits() }
    }

    /// The numbers that distances are computed from.
    pub(crate) fn opened(&self) -> CompactClass {
        let directions = self.directions.numbers();
        let rows = self.directions.rows();
        CompactClass {
            centre: self.centre.numbers(),
            directions: Matrix::new(rows, self.directions.cols, directions).unwrap_or_default(),
            variances: self.variances().collect(),
            rest: self.rest(),
        }
    }

    pub(crate) fn variances(&self) -> impl Iterator<Item = f32> {
        self.variances.iter().map(|&bits| f32::from_bits(bits))
    }

    pub(crate) fn rest(&self) -> f32 {
        f32::from_bits(self.rest)
    }
}

impl Frozen {
    /// What tells it from other metrics, in few letters.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for block in &self.blocks {
            let numbers = block.origin.iter().chain(block.whitener.as_slice());
            let bytes: Vec<u8> = numbers.flat_map(|value| value.to_le_bytes()).collect();
            hasher.update(&bytes);
            hasher.update(&block.share.to_le_bytes()).update(&block.floor.to_le_bytes());
        }
        let text = hasher.finalize().to_hex();
        format!("{} in {} bits", &text[..12], self.bits)
    }
}

impl LearnedClass {
    /// Whether it keeps no sums.
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// Whether it keeps too little of how it spreads for samples to be added or taken away: it is sealed,
    /// or its scatter is compact.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_sealed() || self.statistics.compact.is_some()
    }

    /// Whether both are closed, from the same samples.
    pub(crate) fn is_closed_as(&self, other: &Self) -> bool {
        self.is_closed() && self == other
    }
}

impl Head {
    /// Seals classes; see [`Model::seal`](crate::Model::seal).
    pub fn seal(&mut self, classes: Option<&[String]>, options: SealOptions) -> Result<Sealing> {
        let (rank, bits) = self.sealing_options(options)?;
        let places = self.to_seal(classes)?;
        let frame = self.frame.clone().ok_or(Error::Size {
            what: "classes in the model".to_owned(),
            expected: 1,
            found: 0,
        })?;
        let mut changed = self.clone();
        changed.settings.rank = Rank::Directions(rank);
        let usual = self.diagram_set()?.usual.clone();
        let mut frozen = Frozen { bits, blocks: Vec::new(), usual };
        let mut sealed: Vec<Vec<SealedBlock>> = vec![Vec::new(); places.len()];
        for block in 0..frame.dims.len() {
            let centres = self.centres(&frame, block)?;
            let scatter = &mut |block, class| self.scatter(block, class);
            let base = if let Some(frozen) = &self.frozen {
                Base::of(frozen.blocks[block].clone())
            } else {
                let counts: Vec<u64> =
                    self.classes.iter().map(|class| class.statistics.count).collect();
                let (pooled, _) = self.pooled_covariance(&frame, block, &centres, scatter)?;
                Base::new(pooled, &centres, &counts, &changed.settings, rank)?
            };
            let described =
                changed.describe(&frame, block, (&base, &centres, rank), &places, scatter)?;
            for (sealed, class) in sealed.iter_mut().zip(&described) {
                sealed.push(SealedBlock::of(class, bits));
            }
            frozen.blocks.push(base.shared().clone());
        }
        for (&at, sealed) in places.iter().zip(sealed) {
            let class = &mut changed.classes[at];
            let statistics = &mut class.statistics;
            (statistics.blocks, statistics.second, statistics.compact) = (Vec::new(), None, None);
            class.sealed = Some(sealed);
        }
        changed.frozen = Some(frozen);
        changed.diagram_set.take();
        let classes = places.iter().map(|&at| self.classes[at].name.clone()).collect();
        *self = changed;
        Ok(Sealing { classes, rank, bits })
    }

    /// Directions and bits of a sealing, if it is possible.
    fn sealing_options(&self, options: SealOptions) -> Result<(usize, u8)> {
        let unsupported = |what: String| Err(Error::Unsupported { what });
        if !self.variant.per_class_metric {
            return unsupported(format!(
                "{} has nothing to seal: only Q keeps a matrix per class",
                self.variant
            ));
        }
        let rank = match (options.rank, self.settings.rank) {
            (Some(rank), _) | (None, Rank::Directions(rank)) => rank,
            (None, Rank::Full) => {
                let what = "the model keeps a whole matrix per class (rank full): say in how many \
                            directions its classes are to be sealed";
                return unsupported(what.to_owned());
            }
        };
        if rank == 0 {
            let (value, reason) = (rank.to_string(), "must be at least 1");
            return Err(Error::Setting { name: "rank", value, reason });
        }
        let known = self.frozen.as_ref().map(|frozen| frozen.bits);
        let bits = options.bits.or(known).unwrap_or(BITS);
        if ![8, 16].contains(&bits) {
            let (value, reason) = (bits.to_string(), "must be 8 or 16");
            return Err(Error::Setting { name: "bits", value, reason });
        }
        match known {
            Some(known) if known != bits => unsupported(format!(
                "other classes are sealed in {known} bits, so are further ones"
            )),
            _ => Ok((rank, bits)),
        }
    }

    /// Places of the classes to seal: those named, or all that are not sealed yet.
    fn to_seal(&self, classes: Option<&[String]>) -> Result<Vec<usize>> {
        let Some(names) = classes else {
            let open = |&at: &usize| !self.classes[at].is_sealed();
            return Ok((0..self.classes.len()).filter(open).collect());
        };
        let known = self.places();
        let place = |name: &String| {
            let at = known.get(name.as_str()).copied();
            let at = at.ok_or_else(|| Error::UnknownClass { class: name.clone() })?;
            if self.classes[at].is_sealed() {
                return Err(Error::Sealed { class: name.clone() });
            }
            Ok(at)
        };
        let mut places = names.iter().map(place).collect::<Result<Vec<_>>>()?;
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }
}
