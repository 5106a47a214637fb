"""Networks for 224 x 224 images as ONNX files, with random weights and their normalisations folded
into the convolutions, as exporters leave them: ResNet-18, ResNet-50, MobileNetV2 and ViT-S/16."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Writer:
    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.weights = [], []

    def weight(self, *shape):
        deviation = np.sqrt(2 / np.prod(shape[1:]))
        return self.constant((self.random.normal(size=shape) * deviation).astype(np.float32))

    def constant(self, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values), f"weight{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, operator, *inputs, **attributes):
        output = f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def convolution(self, x, channels, outputs, size, stride, groups=1):
        kernel, bias = self.weight(outputs, channels // groups, size, size), self.weight(outputs)
        return self.node("Conv", x, kernel, bias, kernel_shape=[size] * 2, strides=[stride] * 2,
                         pads=[size // 2] * 4, group=groups)

    def block(self, x, channels, outputs, stride):
        inside = self.node("Relu", self.convolution(x, channels, outputs, 3, stride))
        inside = self.convolution(inside, outputs, outputs, 3, 1)
        if stride != 1:
            x = self.convolution(x, channels, outputs, 1, stride)
        return self.node("Relu", self.node("Add", inside, x))

    def bottleneck(self, x, channels, inner, stride):
        inside = self.node("Relu", self.convolution(x, channels, inner, 1, 1))
        inside = self.node("Relu", self.convolution(inside, inner, inner, 3, stride))
        inside = self.convolution(inside, inner, 4 * inner, 1, 1)
        if channels != 4 * inner:
            x = self.convolution(x, channels, 4 * inner, 1, stride)
        return self.node("Relu", self.node("Add", inside, x))

    def relu6(self, x):
        least, most = (self.constant(np.float32(value)) for value in (0, 6))
        return self.node("Clip", x, least, most)

    def inverted(self, x, channels, outputs, stride, factor):
        inside, inner = x, channels * factor
        if factor != 1:
            inside = self.relu6(self.convolution(x, channels, inner, 1, 1))
        inside = self.relu6(self.convolution(inside, inner, inner, 3, stride, inner))
        inside = self.convolution(inside, inner, outputs, 1, 1)
        return self.node("Add", x, inside) if (stride, channels) == (1, outputs) else inside

    def linear(self, x, inputs, outputs):
        """A linear map of tokens."""
        product = self.node("MatMul", x, self.weight(inputs, outputs))
        return self.node("Add", self.weight(outputs), product)

    def normalise(self, x, size):
        scale, shift = self.constant(np.ones(size, np.float32)), self.constant(np.zeros(size, np.float32))
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-6)

    def heads(self, x, tokens, size, heads, order):
        shape = self.constant(np.array([-1, tokens, heads, size // heads]))
        return self.node("Transpose", self.node("Reshape", x, shape), perm=order)

    def encoder(self, x, tokens, size, heads):
        inside = self.normalise(x, size)
        query, key, value = (self.linear(inside, size, size) for _ in range(3))
        scale = self.constant(np.float32((size // heads) ** -0.5))
        query = self.node("Mul", self.heads(query, tokens, size, heads, [0, 2, 1, 3]), scale)
        key = self.heads(key, tokens, size, heads, [0, 2, 3, 1])
        value = self.heads(value, tokens, size, heads, [0, 2, 1, 3])
        weights = self.node("Softmax", self.node("MatMul", query, key), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        mixed = self.node("Reshape", mixed, self.constant(np.array([-1, tokens, size])))
        x = self.node("Add", x, self.linear(mixed, size, size))
        inside = self.linear(self.normalise(x, size), size, 4 * size)
        root, one, half = (self.constant(np.float32(value)) for value in (2**0.5, 1, 0.5))
        error = self.node("Erf", self.node("Div", inside, root))
        inside = self.node("Mul", inside, self.node("Add", error, one))
        inside = self.node("Mul", inside, half)
        return self.node("Add", x, self.linear(inside, 4 * size, size))

    def file(self, name, x, inputs):
        self.nodes.append(helper.make_node(
            "Gemm", [x, self.weight(1000, inputs), self.weight(1000)], ["answer"], transB=1))
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, name, [value("images", TensorProto.FLOAT, ["n", 3, 224, 224])],
            [value("answer", TensorProto.FLOAT, ["n", 1000])], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return model.SerializeToString()

    def mean(self, x):
        return self.node("Flatten", self.node("GlobalAveragePool", x))

    def stem(self):
        x = self.node("Relu", self.convolution("images", 3, 64, 7, 2))
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def resnet18():
    writer = Writer()
    x, channels = writer.stem(), 64
    for outputs in (64, 128, 256, 512):
        x = writer.block(x, channels, outputs, 1 if outputs == 64 else 2)
        x = writer.block(x, outputs, outputs, 1)
        channels = outputs
    return writer.file("resnet18", writer.mean(x), 512)


def resnet50():
    writer = Writer()
    x, channels = writer.stem(), 64
    for inner, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            x = writer.bottleneck(x, channels, inner, 2 if block == 0 and inner != 64 else 1)
            channels = 4 * inner
    return writer.file("resnet50", writer.mean(x), 2048)


def mobilenet_v2():
    writer = Writer()
    x, channels = writer.relu6(writer.convolution("images", 3, 32, 3, 2)), 32
    for factor, outputs, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                            (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            x = writer.inverted(x, channels, outputs, stride if block == 0 else 1, factor)
            channels = outputs
    x = writer.relu6(writer.convolution(x, 320, 1280, 1, 1))
    return writer.file("mobilenet_v2", writer.mean(x), 1280)


def vit_small():
    writer, size, heads, tokens = Writer(), 384, 6, 197
    x = writer.node("Conv", "images", writer.weight(size, 3, 16, 16), writer.weight(size),
                    kernel_shape=[16, 16], strides=[16, 16])
    x = writer.node("Reshape", x, writer.constant(np.array([0, size, -1])))
    x = writer.node("Transpose", x, perm=[0, 2, 1])
    # a token of its own for each image, whose number is that of the images
    count = writer.node("Gather", writer.node("Shape", "images"), writer.constant(np.array([0])))
    shape = writer.node("Concat", count, writer.constant(np.array([1, size])), axis=0)
    first = writer.node("Expand", writer.weight(1, 1, size), shape)
    x = writer.node("Add", writer.node("Concat", first, x, axis=1), writer.weight(1, tokens, size))
    for _ in range(12):
        x = writer.encoder(x, tokens, size, heads)
    x = writer.node("Gather", writer.normalise(x, size), writer.constant(np.array(0)), axis=1)
    return writer.file("vit_small", x, size)


NETWORKS = {"ResNet-18": resnet18, "ResNet-50": resnet50, "MobileNetV2": mobilenet_v2,
            "ViT-S/16": vit_small}
