"""Features of scikit-learn's two sample photographs by ONNX Runtime, from the original network.

    python make_lite0.py efficientnet_lite0.onnx lite0.json

docs/format.md says how the network comes to be; its input is called `image`. Needs onnxruntime.
"""

import json
import sys


def main(network, target):
    import numpy as np
    import onnxruntime
    from PIL import Image
    from sklearn.datasets import load_sample_images

    net = onnxruntime.InferenceSession(network)
    out = {}
    for name, pixels in zip(("china", "flower"), load_sample_images().images):
        image = Image.fromarray(pixels)
        w, h = image.size
        scale = (256, int(256 * h / w)) if w < h else (int(256 * w / h), 256)
        image = image.resize(scale, Image.BILINEAR)
        w, h = image.size
        left, top = round((w - 224) / 2), round((h - 224) / 2)
        crop = image.crop((left, top, left + 224, top + 224))
        x = (np.asarray(crop, np.float32) / 255 - 0.498) / 0.502
        features = net.run(None, {"image": x.transpose(2, 0, 1)[None]})[0][0]
        out[name] = [round(float(v), 5) for v in features]
    with open(target, "w") as file:
        json.dump(out, file, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:3])
