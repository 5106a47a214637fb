//! A network whose loss is the caller's. On a GPU the forward and the backward pass are recorded once
//! each and then replayed.

use ivoro::Matrix;
use ivoro_vision::engine::Anchor;
use tch::{Device, Kind, Tensor};

use super::error::{Error, Result};
use super::forward::weight;
use super::libtorch_ffi::{Graph, sent};
use super::trainer::{TorchTrainer, WARM_UP, Way, matrix, size};

/// What was looked at, and how.
#[derive(Default)]
pub(super) struct Looks {
    /// Images of a look, and how many looks in a row had as many.
    alike: (usize, u64),
    replayed: Option<Replayed>,
    /// Points last looked at, with the backward pass to the weights.
    last: Option<Looked>,
    /// Whether maps have been asked for: what is recorded has points alone.
    with_maps: bool,
}

impl Looks {
    /// The backward pass goes through the weights that the points were made with: it ends when those
    /// change.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}

enum Looked {
    Once(Look),
    /// The points and the way are those that are replayed.
    Again,
}

/// A look that nothing was recorded of.
struct Look {
    points: Tensor,
    way: Way,
    /// The last stage's output where libtorch does not remember how it was made, and the maps.
    maps: Option<(Option<Tensor>, Tensor)>,
}

/// A recorded way: images come into `pixels`, and `points` are what becomes of them.
struct Replayed {
    images: usize,
    pixels: Tensor,
    points: Tensor,
    there: Graph,
    /// The backward pass, until it is recorded.
    way: Option<Way>,
    /// The backward pass from the gradient of the points, which comes into the tensor.
    back: Option<(Graph, Tensor)>,
}

impl TorchTrainer {
    /// Records the way from so many images to points.
    fn record_look(&self, images: usize, device: i8) -> Result<Replayed> {
        let pixels = Tensor::f_zeros(size(images, self.shape), (Kind::Uint8, self.device))?;
        let mut passed = None;
        let there = Graph::record(device, || {
            let images = tch::no_grad(|| self.prepare(&pixels, 1))?;
            passed = Some(self.pass(&images)?);
            Ok(())
        })?;
        let (points, way) = passed.ok_or_else(no_way)?;
        Ok(Replayed { images, pixels, points, there, way: Some(way), back: None })
    }

    /// Whether looks at so many images are replayed from now on.
    fn replays(&mut self, images: usize) -> Result<bool> {
        let Device::Cuda(index) = self.device else { return Ok(false) };
        if self.looks.with_maps {
            return Ok(false);
        }
        if self.looks.replayed.as_ref().is_some_and(|replayed| replayed.images == images) {
            return Ok(true);
        }
        let (before, count) = self.looks.alike;
        self.looks.alike = (images, if before == images { count + 1 } else { 1 });
        if self.fused.is_none() || self.looks.alike.1 <= WARM_UP {
            return Ok(false);
        }
        self.looks.replayed = Some(self.record_look(images, index as i8)?);
        Ok(true)
    }

    /// The gradient of all weights from that of points.
    fn back(&mut self, points: &Tensor, gradient: &Tensor, way: Way) -> Result<()> {
        let sum = self.along(points, gradient)?;
        self.differentiate(&sum, way, None)
    }

    /// A sum whose gradient is the one asked for, and 0 for the classifier.
    fn along(&self, points: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let mut sum = points.f_mul(gradient)?.f_sum(Kind::Float)?;
        for kind in ["weight", "bias"] {
            let unused = weight(&self.weights.named, "fc", kind)?.f_sum(Kind::Float)?;
            sum = sum.f_add(&unused.f_mul_scalar(0.0)?)?;
        }
        Ok(sum)
    }

    /// The gradient of all weights from that of the points and maps of a look.
    fn back_from(&mut self, look: Look, points: &Tensor, maps: Option<&Tensor>) -> Result<()> {
        let mut sum = self.along(&look.points, points)?;
        let (stage, seen) = look.maps.unzip();
        if let Some(gradient) = maps {
            let seen = seen.ok_or_else(no_way)?;
            sum = sum.f_add(&seen.f_mul(gradient)?.f_sum(Kind::Float)?)?;
        }
        let stage = stage.flatten().filter(|_| maps.is_some());
        self.differentiate(&sum, look.way, stage.as_ref())
    }

    /// The recorded backward pass; the first time, it is recorded.
    fn replay_back(&mut self, replayed: &mut Replayed, gradient: &Tensor) -> Result<()> {
        if let (Some(way), Device::Cuda(index)) = (replayed.way.take(), self.device) {
            let (points, place) = (&replayed.points, gradient.f_empty_like()?);
            let graph = Graph::record(index as i8, || self.back(points, &place, way))?;
            replayed.back = Some((graph, place));
        }
        let (graph, place) = replayed.back.as_mut().ok_or_else(no_way)?;
        tch::no_grad(|| place.f_copy_(gradient))?;
        graph.replay();
        Ok(())
    }
}

/// What [`CustomLossTrainer`](ivoro_vision::engine::CustomLossTrainer) asks for.
impl TorchTrainer {
    pub(super) fn embed(&mut self, pixels: &[u8]) -> Result<Matrix> {
        let images = pixels.len() / self.shape.len().max(1);
        self.check(pixels, images)?;
        self.looks.forget();
        if self.replays(images)? {
            let raw = sent(pixels, self.device)?.f_view(size(images, self.shape))?;
            let replayed = self.looks.replayed.as_mut().ok_or_else(no_way)?;
            replayed.pixels.f_copy_(&raw)?;
            replayed.there.replay();
            self.looks.last = Some(Looked::Again);
            return matrix(&replayed.points.f_detach()?);
        }
        let images = tch::no_grad(|| self.upload(pixels, images))?;
        let (points, way) = self.pass(&images)?;
        let found = matrix(&points.f_detach()?)?;
        self.looks.last = Some(Looked::Once(Look { points, way, maps: None }));
        Ok(found)
    }

    pub(super) fn maps(&mut self) -> Result<Matrix> {
        self.looks.with_maps = true;
        let Some(Looked::Once(look)) = &mut self.looks.last else { return Err(no_way()) };
        let leaf = match &look.way {
            Way::Automatic(_) => None,
            Way::Fused(_, tape) => {
                let stage = tape.last_stage().ok_or_else(no_way)?;
                Some(stage.f_detach()?.f_set_requires_grad(true)?)
            }
        };
        let stage = match (&look.way, &leaf) {
            (_, Some(stage)) | (Way::Automatic(stage), None) => stage,
            (Way::Fused(..), None) => return Err(no_way()),
        };
        let maps = self.network.maps(&self.weights.named, stage)?;
        let found = matrix(&maps.f_detach()?)?;
        look.maps = Some((leaf, maps));
        Ok(found)
    }

    pub(super) fn backward(&mut self, points: &Matrix, maps: Option<&Matrix>) -> Result<()> {
        let upload = |gradient: &Matrix| -> Result<Tensor> {
            let size = [gradient.rows() as i64, gradient.cols() as i64];
            Ok(sent(gradient.as_slice(), self.device)?.f_view(size)?)
        };
        let (gradient, of_maps) = (upload(points)?, maps.map(upload).transpose()?);
        match self.looks.last.take().ok_or_else(no_way)? {
            Looked::Once(look) => self.back_from(look, &gradient, of_maps.as_ref()),
            Looked::Again if maps.is_some() => Err(no_way()),
            Looked::Again => {
                let mut replayed = self.looks.replayed.take().ok_or_else(no_way)?;
                self.replay_back(&mut replayed, &gradient)?;
                self.looks.replayed = Some(replayed);
                Ok(())
            }
        }
    }

    pub(super) fn gradient(&mut self) -> Result<Vec<f32>> {
        self.layout.download(&self.weights.gradient)
    }

    pub(super) fn apply_gradient(&mut self, rate: f32) -> Result<()> {
        self.looks.forget();
        let _ = self.weights.rate.f_fill_(f64::from(rate))?;
        tch::no_grad(|| self.move_weights())?;
        self.steps += 1;
        Ok(())
    }

    pub(super) fn hold(&mut self, anchor: &Anchor) -> Result<()> {
        let at = self.layout.upload(&anchor.at, self.device)?;
        self.anchor = Some((at, self.layout.upload(&anchor.importance, self.device)?));
        self.recorded = None;
        Ok(())
    }
}

fn no_way() -> Error {
    Error::Engine { what: "a backward pass without points".to_owned() }
}
