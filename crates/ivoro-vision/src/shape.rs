//! The shape of images, and how others are brought to it.

use std::fmt;

use ivoro::NetworkDescription;
use ivoro::network::ImageFit;
use serde::Serialize;

/// The most pixels of a file that are decoded: enough for any camera, and far from a bomb.
pub(crate) const MOST_PIXELS: u64 = 1 << 27;

/// Height, width and channels (1 or 3) of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Shape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
}

impl Shape {
    /// The number of bytes of an image.
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether an image has no pixel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are pixels, not too many, of 1 or 3 channels.
    pub(crate) fn is_valid(self) -> bool {
        let area = (self.height as u64).checked_mul(self.width as u64);
        matches!(self.channels, 1 | 3) && area.is_some_and(|area| (1..=MOST_PIXELS).contains(&area))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colour = if self.channels == 1 { "grey" } else { "colour" };
        write!(f, "{}×{} {colour}", self.width, self.height)
    }
}

/// The shape that images are brought to, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// The shape wanted.
    pub shape: Shape,
    /// How others are brought to it.
    pub how: How,
}

/// How an image of another shape is brought to the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Not at all: another size or number of channels is an error.
    Exact,
    /// Both sides are scaled on their own; channels are converted.
    Resize,
    /// The shorter side is scaled to `resize`, then the centre is cut out; channels are converted.
    ResizeThenCentreCrop {
        /// The length of the shorter side, at least that of the sides asked for.
        resize: usize,
    },
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.shape, self.how)
    }
}

impl Fit {
    /// What a description says.
    pub fn of_description(described: &NetworkDescription) -> Self {
        let NetworkDescription { height, width, ref mean, .. } = *described;
        let how = match described.fit {
            ImageFit::Exact => How::Exact,
            ImageFit::Stretch => How::Resize,
            ImageFit::Centre { of } => How::ResizeThenCentreCrop { resize: of },
        };
        Self { shape: Shape { height, width, channels: mean.len() }, how }
    }
}

impl How {
    /// The same as models keep it.
    pub fn described(self) -> ImageFit {
        match self {
            Self::Exact => ImageFit::Exact,
            Self::Resize => ImageFit::Stretch,
            Self::ResizeThenCentreCrop { resize } => ImageFit::Centre { of: resize },
        }
    }

    /// What a caller would ask for to get it.
    pub(crate) fn choice(self) -> Option<FitHow> {
        match self {
            Self::Exact => None,
            Self::Resize => Some(FitHow::Stretch),
            Self::ResizeThenCentreCrop { .. } => Some(FitHow::Centre),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Resize => f.write_str("stretch"),
            Self::ResizeThenCentreCrop { resize } => write!(f, "centre of {resize}"),
        }
    }
}

/// What a caller wants of the size of images; by default, what the network was trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fitting {
    /// Side of the square that images are brought to.
    pub size: Option<usize>,
    /// How other sizes are brought to it.
    pub how: Option<FitHow>,
}

/// How images of other sizes are brought to a square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitHow {
    /// Both sides are scaled on their own.
    Stretch,
    /// The shorter side is scaled to 8/7 of the size, then the centre is cut out.
    Centre,
}

impl Fitting {
    /// The shape that images are brought to: the size given, else the one that the network was
    /// made for, else that of the first image (`own`), which all others must then have too.
    pub fn fit(self, own: Shape, network: Option<Fit>) -> Fit {
        let channels = network.map_or(own.channels, |fit| fit.shape.channels);
        let shape = match (self.size, network) {
            (Some(size), _) => Shape { height: size, width: size, channels },
            (None, Some(fit)) if fit.shape.height > 0 => fit.shape,
            (None, _) => Shape { channels, ..own },
        };
        // sides of a centre are 7/8 of the shorter side before
        let centre = How::ResizeThenCentreCrop { resize: shape.height.max(shape.width) * 8 / 7 };
        let trained = network.map(|fit| match fit.how {
            How::ResizeThenCentreCrop { .. } if fit.shape != shape => centre,
            how => how,
        });
        let untrained = if self.size.is_none() { How::Exact } else { How::Resize };
        let how = match self.how {
            Some(FitHow::Stretch) => How::Resize,
            Some(FitHow::Centre) => centre,
            None => trained.unwrap_or(untrained),
        };
        Fit { shape, how }
    }
}
