"""Writes tiny.onnx, and prints what ONNX Runtime computes with it, for tests/onnx.rs.

    pip install onnx onnxruntime numpy
    python make_onnx.py

The network takes colour images of 5 rows and 7 columns: a convolution of 3 × 3 to 4 channels with
stride 2, a rectifier, the mean over pixels, and a linear layer to 3 numbers.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROWS, COLUMNS, CHANNELS = 5, 7, 4
MEAN, DEVIATION = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)

kernel = (np.arange(CHANNELS * 27).reshape(CHANNELS, 3, 3, 3) * 37 % 23 - 11) / 32
bias = np.array([0.5, -0.25, 0.125, 0.0])
linear = (np.arange(12).reshape(CHANNELS, 3) * 5 % 7 - 3) / 4
weights = {"kernel": kernel, "bias": bias, "linear": linear}


def network(images):
    nodes = [
        helper.make_node("Conv", ["images", "kernel", "bias"], ["map"], kernel_shape=[3, 3],
                         strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["map"], ["active"]),
        helper.make_node("GlobalAveragePool", ["active"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("MatMul", ["flat", "linear"], ["answer"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "tiny",
        [value("images", TensorProto.FLOAT, [images, 3, ROWS, COLUMNS])],
        [value("answer", TensorProto.FLOAT, [images, 3])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


model = network("n")
with open("tiny.onnx", "wb") as file:
    file.write(model.SerializeToString())
with open("tiny-one.onnx", "wb") as file:
    file.write(network(1).SerializeToString())

for name in ("active", "flat"):
    model.graph.output.append(onnx.ValueInfoProto(name=name))
session = onnxruntime.InferenceSession(model.SerializeToString())
pixels = (np.arange(3 * ROWS * COLUMNS * 3) * 31 % 256).astype(np.uint8).reshape(3, ROWS, COLUMNS, 3)
images = ((pixels / 255 - MEAN) / DEVIATION).astype(np.float32).transpose(0, 3, 1, 2)
answer, active, flat = session.run(None, {"images": np.ascontiguousarray(images)})
np.set_printoptions(precision=7, floatmode="fixed", suppress=True)
print("active", active.shape, "averaged\n", active.mean((2, 3)))
print("flat\n", flat)
print("answer\n", answer)
