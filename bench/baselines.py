"""A training step of each baseline in a plain PyTorch loop, the peer of `peers.py baselines`.

    python bench/baselines.py cuda|cpu [VIEWS] [CLASSES]

prints milliseconds a step. ResNet-18 on 32x32 images, channels-last, Adam, images already on the device; on
a GPU bf16 and fused Adam, the peer of a phase of `ivoro run DATASET --protocol 50+5x10 --variants none
--baselines ... --device cuda`, whose seconds are in run.json: CLASSES are those known at the end of the phase.
"""
import sys
import time

import torch
import torch.nn.functional as F
from vision import images_of, resnet18

TEMPERATURE, OLD, DIMS, SIDES, SOFT = 0.1, 50, 512, 3, 2


def network(device):
    return resnet18(1)[:-1].to(device).to(memory_format=torch.channels_last)


def distilled(outputs, wanted):
    """Cross-entropy with softened old outputs."""
    return -(F.softmax(wanted / SOFT, 1) * F.log_softmax(outputs / SOFT, 1)).sum(1).mean() * SOFT**2


def cosines(points, rows):
    return F.normalize(points) @ F.normalize(rows).T


class Phase:
    """What every method has: networks, heads, images of new classes and, where it keeps some, of old ones."""

    def __init__(self, device, views, classes, method):
        self.device, self.views = torch.device(device), views
        self.net, self.before = network(device), network(device).eval()
        outputs = classes * (4 if method == "PASS" else 1)
        self.head, self.old_head = torch.nn.Linear(DIMS, outputs).to(device), torch.nn.Linear(DIMS, OLD).to(device)
        self.sides = torch.nn.Linear(DIMS, SIDES * OLD).to(device)
        self.old_sides = torch.nn.Linear(DIMS, SIDES * OLD).to(device)
        self.scale = torch.nn.Parameter(torch.tensor(10.0, device=device))
        modules = [self.net, self.head] + ([self.sides] if method == "MUC" else [])
        self.weights = [weight for module in modules for weight in module.parameters()]
        learned = self.weights + ([self.scale] if method == "UCIR" else [])
        fused = {"fused": True} if self.device.type == "cuda" else {}
        self.rule = torch.optim.Adam(learned, 1e-3, weight_decay=2e-4, **fused)
        self.anchors = [(weight.detach().clone(), torch.rand_like(weight)) for weight in self.weights]
        images = images_of(views).to(device)
        # PASS has a quarter of the images and turns them in every step
        self.images = images[: views // 4] if method == "PASS" else images
        first = 0 if method in ("iCaRL-CNN", "EEIL", "UCIR") else OLD
        self.labels = torch.randint(first, classes, (len(self.images),), device=device)
        self.means = torch.randn(OLD, DIMS, device=device)

    def points(self):
        return self.net(self.images)

    @torch.no_grad()
    def old_points(self, images):
        return self.before(images)

    def old_outputs(self):
        return self.old_head(self.old_points(self.images)).detach()


def fine_tuning(phase):
    return F.cross_entropy(phase.head(phase.points()), phase.labels)


def ewc(phase):
    loss = F.cross_entropy(phase.head(phase.points())[:, OLD:], phase.labels - OLD)
    return loss + 500 * sum(
        (by * (weight - at) ** 2).sum() for weight, (at, by) in zip(phase.weights, phase.anchors, strict=True))


def lwf(phase):
    outputs = phase.head(phase.points())
    new = F.cross_entropy(outputs[:, OLD:], phase.labels - OLD)
    return new + 3 * distilled(outputs[:, :OLD], phase.old_outputs())


def lwf_mc(phase):
    outputs = phase.head(phase.points())
    wanted = F.one_hot(phase.labels, outputs.shape[1]).float()
    wanted[:, :OLD] = torch.sigmoid(phase.old_outputs().float())
    return F.binary_cross_entropy_with_logits(outputs, wanted)


def muc(phase):
    points, old = phase.points(), phase.old_points(phase.images)
    outputs = phase.head(points)
    loss = F.cross_entropy(outputs[:, OLD:], phase.labels - OLD)
    loss = loss + distilled(outputs[:, :OLD], phase.old_head(old).detach())
    sides, wanted = phase.sides(points).split(OLD, 1), phase.old_sides(old).detach().split(OLD, 1)
    return loss + sum(distilled(side, old) for side, old in zip(sides, wanted, strict=True)) / SIDES


def eeil(phase):
    outputs = phase.head(phase.points())
    return F.cross_entropy(outputs, phase.labels) + distilled(outputs[:, :OLD], phase.old_outputs())


def ucir(phase):
    points, old = phase.points(), phase.old_points(phase.images)
    angles = cosines(points, phase.head.weight)
    loss = F.cross_entropy(phase.scale * angles, phase.labels)
    loss = loss + 5 * (1 - F.cosine_similarity(points, old)).mean()
    own = angles.gather(1, phase.labels.clamp(max=OLD - 1)[:, None])
    rivals = angles[:, OLD:].topk(2, 1).values
    kept = (phase.labels < OLD)[:, None]
    return loss + (F.relu(0.5 - own + rivals) * kept).sum() / kept.sum().clamp(min=1)


def pass_(phase):
    turned = torch.cat([torch.rot90(phase.images, k, (2, 3)) for k in range(4)])
    turned = turned.to(memory_format=torch.channels_last)
    wanted = torch.cat([phase.labels * 4 + k for k in range(4)])
    drawn = torch.randint(0, OLD, (len(phase.images),), device=phase.device)
    noisy = phase.means[drawn] + 0.1 * torch.randn(len(phase.images), DIMS, device=phase.device)
    points, old = phase.net(turned), phase.old_points(turned)
    loss = F.cross_entropy(phase.head(points) / TEMPERATURE, wanted)
    loss = loss + 10 * torch.dist(points.float(), old.float(), 2)
    return loss + 10 * F.cross_entropy(phase.head(noisy) / TEMPERATURE, drawn * 4)


METHODS = {"fine-tuning": fine_tuning, "EWC": ewc, "LwF": lwf, "LwF-MC": lwf_mc, "MUC": muc, "PASS": pass_,
           "iCaRL-CNN": lwf_mc, "EEIL": eeil, "UCIR": ucir}


def step_of(method, device, views, classes):
    """One step of a method, from images to changed weights."""
    phase, loss_of = Phase(device, views, classes, method), METHODS[method]

    def step():
        with torch.autocast(phase.device.type, torch.bfloat16, enabled=phase.device.type == "cuda"):
            loss = loss_of(phase)
        phase.rule.zero_grad(set_to_none=True)
        loss.backward()
        phase.rule.step()
        loss.item()

    return step


def milliseconds(step, device):
    wait, steps = (torch.cuda.synchronize, 300) if device == "cuda" else (lambda: None, 3)
    for _ in range(max(1, steps // 15)):
        step()
    wait()
    start = time.time()
    for _ in range(steps):
        step()
    wait()
    return (time.time() - start) / steps * 1e3


if __name__ == "__main__":
    DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    VIEWS, CLASSES = (int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((2, 256), (3, 60)))
    torch.backends.cudnn.benchmark = True
    if CLASSES <= OLD:
        sys.exit(f"{CLASSES} classes: there are {OLD} before the phase, so it takes more than that")
    print(f"PyTorch {torch.__version__}, {DEVICE}, {VIEWS} views a step, {CLASSES} classes")
    for name in METHODS:
        print(f"{name}: {milliseconds(step_of(name, DEVICE, VIEWS, CLASSES), DEVICE):.2f} ms a step", flush=True)
