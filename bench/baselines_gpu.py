"""Milliseconds of a training step of fine-tuning and of PASS in a plain PyTorch loop, on a GPU.

    python bench/baselines_gpu.py [VIEWS] [CLASSES]

ResNet-18 on 32x32 images, bf16, channels-last, fused Adam, images already on the GPU. The peer of a
phase of `ivoro run DATASET --protocol 50+5x10 --variants none --baselines fine-tuning,pass --device
cuda`, whose seconds are in run.json: CLASSES are those known at the end of the phase.
"""
import sys
import time

import torch
import torch.nn.functional as F
import torchvision

views = int(sys.argv[1]) if len(sys.argv) > 1 else 256
torch.backends.cudnn.benchmark = True
TEMPERATURE, OLD, DIMS = 0.1, 50, 512
CLASSES = int(sys.argv[2]) if len(sys.argv) > 2 else 60


def network():
    net = torchvision.models.resnet18()
    net.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    net.maxpool = torch.nn.Identity()
    net.fc = torch.nn.Identity()
    return net.cuda().to(memory_format=torch.channels_last)


def time_of(step, steps=300):
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.time() - start) / steps * 1e3


def fine_tuning():
    net, head = network(), torch.nn.Linear(DIMS, CLASSES).cuda()
    optimiser = torch.optim.Adam([*net.parameters(), *head.parameters()], 1e-3, weight_decay=2e-4, fused=True)
    images = torch.randn(views, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, CLASSES, (views,), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(head(net(images)), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        loss.item()

    return step


def pass_():
    net, before, head = network(), network().eval(), torch.nn.Linear(DIMS, 4 * CLASSES).cuda()
    optimiser = torch.optim.Adam([*net.parameters(), *head.parameters()], 1e-3, weight_decay=2e-4, fused=True)
    images = torch.randn(views // 4, 3, 32, 32, device="cuda")
    labels = torch.randint(0, CLASSES, (views // 4,), device="cuda")
    means = torch.randn(OLD, DIMS, device="cuda")

    def step():
        turned = torch.cat([torch.rot90(images, k, (2, 3)) for k in range(4)])
        turned = turned.to(memory_format=torch.channels_last)
        wanted = torch.cat([labels * 4 + k for k in range(4)])
        drawn = torch.randint(0, OLD, (views // 4,), device="cuda")
        noisy = means[drawn] + 0.1 * torch.randn(views // 4, DIMS, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            points = net(turned)
            with torch.no_grad():
                old = before(turned)
            loss = F.cross_entropy(head(points) / TEMPERATURE, wanted)
            loss = loss + 10 * torch.dist(points.float(), old.float(), 2)
            loss = loss + 10 * F.cross_entropy(head(noisy) / TEMPERATURE, drawn * 4)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        loss.item()

    return step


print(f"PyTorch {torch.__version__}, {views} views a step, {CLASSES} classes")
print(f"fine-tuning: {time_of(fine_tuning()):.2f} ms a step", flush=True)
print(f"PASS: {time_of(pass_()):.2f} ms a step", flush=True)
