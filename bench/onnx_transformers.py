"""Vision transformers as torchvision, timm and transformers export them, with random weights: whether the
engine of this project takes them, and how far its answers are from those of ONNX Runtime.

    cargo build --release -p ivoro-bench
    python -m pip install torch torchvision timm transformers onnx onnxscript onnxruntime
    python bench/onnx_transformers.py target/release/ivoro-bench [LAYERS]
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnxruntime
import timm
import torch
import torchvision
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection, Dinov2Config, Dinov2Model

# (opset, dynamo, whether the number of images is open)
WAYS = {"script": (17, False, True), "script, one image": (14, False, False),
        "dynamo": (18, True, True), "dynamo, one image": (20, True, False)}


class Only(torch.nn.Module):
    """One of the answers of a network."""

    def __init__(self, network, name):
        super().__init__()
        self.network, self.name = network, name

    def forward(self, images):
        return getattr(self.network(images), self.name)


def networks(layers):
    small = {"hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": layers}
    of_timm = lambda name, **more: timm.create_model(name, pretrained=False, depth=layers, **more)  # noqa: E731
    yield "torchvision ViT-S/16", torchvision.models.VisionTransformer(224, 16, layers, 6, 384, 1536)
    yield "timm ViT-S/16", of_timm("vit_small_patch16_224")
    yield "timm ViT-S/16, mean of tokens", of_timm(
        "vit_small_patch16_224", global_pool="avg", class_token=False, fc_norm=True)
    yield "timm DINOv2 ViT-S/14", of_timm("vit_small_patch14_dinov2", img_size=224)
    yield "timm DINOv2 ViT-S/14, registers", of_timm("vit_small_patch14_reg4_dinov2", img_size=224)
    yield "transformers DINOv2 ViT-S/14", Only(
        Dinov2Model(Dinov2Config(**small, image_size=224, patch_size=14)), "pooler_output")
    yield "transformers CLIP ViT-S/16", Only(
        CLIPVisionModelWithProjection(CLIPVisionConfig(**small, intermediate_size=1536, patch_size=16)),
        "image_embeds")


def export(network, file, way):
    opset, dynamo, is_open = WAYS[way]
    images = torch.randn(2 if is_open else 1, 3, 224, 224)
    more = {"dynamic_axes": {"images": {0: "n"}, "answer": {0: "n"}}} if is_open else {}
    if dynamo:
        more = {"external_data": False, "verbose": False}
        more |= {"dynamic_shapes": ({0: torch.export.Dim("n")},)} if is_open else {}
    torch.onnx.export(network, (images,), file, input_names=["images"], output_names=["answer"],
                      opset_version=opset, dynamo=dynamo, **more)


def compare(program, file, pixels, raw):
    """The runtime that took the network, and how far the answers are apart, by the largest."""
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    images = ((pixels / np.float32(255) - mean) / deviation).transpose(0, 3, 1, 2)
    session = onnxruntime.InferenceSession(file)
    name = session.get_inputs()[0].name
    expected = np.concatenate([session.run(None, {name: image[None]})[0] for image in images])
    own = subprocess.run([program, "onnx", file, raw, "16", "default"], check=True, capture_output=True)
    own = json.loads(own.stdout)
    found = np.reshape(own["features"], expected.shape)
    if np.ptp(expected, axis=0).max() < 0.01 * np.abs(expected).max():
        sys.exit(f"{file}: its answers to all images are alike, so that nothing is compared")
    return own["runtime"], np.abs(found - expected).max() / np.abs(expected).max()


def main(program, layers=12):
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    pixels = np.random.default_rng(1).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        raw, file = os.path.join(folder, "pixels"), os.path.join(folder, "network.onnx")
        pixels.tofile(raw)
        for name, network in networks(int(layers)):
            for weight in network.eval().parameters():
                # no weight is 0 or 1, so that one that is left out is seen
                if weight.ndim < 2 or not weight.any():
                    weight.data += 0.05 * torch.randn_like(weight)
            for way in WAYS:
                export(network, file, way)
                runtime, apart = compare(program, file, pixels, raw)
                print(f"{name:34} {way:20} {runtime:6} {apart:.0e}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
