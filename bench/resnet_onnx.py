"""A ResNet-18 for 224 x 224 images as an ONNX file, with random weights and its normalisations
folded into the convolutions, as exporters leave it."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Writer:
    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.weights = [], []

    def weight(self, *shape):
        deviation = np.sqrt(2 / np.prod(shape[1:]))
        values = (self.random.normal(size=shape) * deviation).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, f"weight{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, operator, *inputs, **attributes):
        output = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def convolution(self, x, channels, outputs, size, stride):
        kernel, bias = self.weight(outputs, channels, size, size), self.weight(outputs)
        return self.node("Conv", x, kernel, bias, kernel_shape=[size] * 2, strides=[stride] * 2,
                         pads=[size // 2] * 4)

    def block(self, x, channels, outputs, stride):
        inside = self.node("Relu", self.convolution(x, channels, outputs, 3, stride))
        inside = self.convolution(inside, outputs, outputs, 3, 1)
        if stride != 1:
            x = self.convolution(x, channels, outputs, 1, stride)
        return self.node("Relu", self.node("Add", inside, x))


def resnet18():
    writer = Writer()
    x = writer.node("Relu", writer.convolution("images", 3, 64, 7, 2))
    x = writer.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for outputs in (64, 128, 256, 512):
        x = writer.block(x, channels, outputs, 1 if outputs == 64 else 2)
        x = writer.block(x, outputs, outputs, 1)
        channels = outputs
    x = writer.node("Flatten", writer.node("GlobalAveragePool", x))
    writer.nodes.append(helper.make_node(
        "Gemm", [x, writer.weight(1000, 512), writer.weight(1000)], ["answer"], transB=1))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        writer.nodes, "resnet18", [value("images", TensorProto.FLOAT, ["n", 3, 224, 224])],
        [value("answer", TensorProto.FLOAT, ["n", 1000])], writer.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()
