//! What a peer sees of an image: the same views and layers as variants with the letters F, AI and L.

use std::borrow::Cow;
use std::fmt;

use super::Peer;
use ivoro::head::Views;
use ivoro::{Error, Matrix, Points, Result, Variant, View};

/// The views and layers that make up the one vector a peer is given; the upright view of the last
/// layer by default. Written as letters behind a peer's name: `ranpac-FAIL`.
///
/// ```
/// use ivoro_eval::peers::Look;
/// let look = Look::parse("FL").ok_or("no letters")?;
/// assert_eq!((look.to_string().as_str(), look.views(), look.layers()), ("FL", 2, 2));
/// assert_eq!(Look::default().views(), 1);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Look(Variant);

impl Look {
    /// Reads letters of F (an image and its mirror image are averaged), AI (rotations are
    /// concatenated) and L (so is the second layer), in this order.
    pub fn parse(letters: &str) -> Option<Self> {
        let variant: Variant = format!("iVoro-{letters}").parse().ok()?;
        let look = Self::of(variant);
        (look.0 == variant && variant.views != Views::Consensus).then_some(look)
    }

    /// What a variant sees.
    pub(crate) fn of(variant: Variant) -> Self {
        let Variant { third, flip, views, layered, .. } = variant;
        Self(Variant { flip, views, layered, third, ..Variant::PLAIN })
    }

    /// How many rotations and mirror images of an image the network is shown.
    pub fn views(self) -> usize {
        self.0.views().len()
    }

    /// How many layers of the network are looked at.
    pub fn layers(self) -> usize {
        self.0.layers().len()
    }

    /// Refuses features without these views and layers.
    pub(crate) fn check(self, peer: Peer, features: &Points) -> Result<()> {
        self.0.check_features(features).map_err(|error| match error {
            Error::MissingViews { needed, found, .. } => {
                Error::MissingViews { variant: self.name(peer), needed, found }
            }
            Error::MissingLayer { needed, found, .. } => {
                Error::MissingLayer { variant: self.name(peer), needed, found }
            }
            other => other,
        })
    }

    /// The one vector of every row.
    pub(super) fn compose(self, peer: Peer, features: &Points) -> Result<Cow<'_, Matrix>> {
        self.check(peer, features)?;
        let mut parts = Vec::new();
        for &view in self.rotations() {
            for layer in self.0.layers() {
                // no part is missing once the features are checked
                let part = features.block(layer, view).map(Cow::Borrowed);
                let mirror = features.block(layer, view.mirror()).filter(|_| self.0.flip);
                parts.extend(part.map(|part| match mirror {
                    Some(mirror) => Cow::Owned(mean(part.into_owned(), mirror)),
                    None => part,
                }));
            }
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let parts: Vec<&Matrix> = parts.iter().map(AsRef::as_ref).collect();
        Matrix::concat_columns(&parts).map(Cow::Owned)
    }

    fn rotations(self) -> &'static [View] {
        if self.0.rotates() { &View::ROTATIONS } else { &[View::UPRIGHT] }
    }

    /// The name of a peer that looks so.
    pub fn name(self, peer: Peer) -> String {
        if self == Self::default() { peer.to_string() } else { format!("{peer}-{self}") }
    }
}

fn mean(mut one: Matrix, other: &Matrix) -> Matrix {
    let pairs = one.as_mut_slice().iter_mut().zip(other.as_slice());
    pairs.for_each(|(one, other)| *one = 0.5 * (*one + other));
    one
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.to_string();
        f.write_str(name.strip_prefix("iVoro-").unwrap_or_default())
    }
}
