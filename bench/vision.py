"""ResNet-18 for 32 x 32 images in plain PyTorch, the peer of `peers.py vision`."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.around = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu_(self.body(x) + self.around(x))


def resnet18(outputs):
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    width = 64
    for stage, out in enumerate((64, 128, 256, 512)):
        for index in range(2):
            layers.append(Block(width, out, 2 if index == 0 and stage > 0 else 1))
            width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, outputs))


def images_of(count):
    return torch.randn(count, 3, 32, 32).to(memory_format=torch.channels_last)
