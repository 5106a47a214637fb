"""Whether `ivoro serve` keeps what it promised: killed at any moment, on a full disk, with 1,000
connections, under ten minutes of load, and given images that claim too much.

    python3 bench/soak.py PROGRAM kills 20
    python3 bench/soak.py PROGRAM all BENCH

`cargo xtask soak` builds both programs and runs all of it; `cargo xtask test` runs 20 kills. Nothing but Python's
own library is needed.
"""

import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import zipfile
import zlib
from contextlib import contextmanager
from io import BytesIO

PROGRAM = os.path.abspath(sys.argv[1])
DIM = 16
JSON = "application/json"
#: Seconds after which something is said to hang.
PATIENCE = 60


def start(model, *arguments, **options):
    """A server, and its address."""
    command = [PROGRAM, "serve", model, "--variant", "iVoro", "--listen", "0", *arguments]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    line = server.stdout.readline()
    found = re.search(r"http://([^/]+)/", line)
    if not found:
        raise SystemExit(f"the server did not start on {model}: {server.stderr.read()}")
    threading.Thread(target=server.stderr.read, daemon=True).start()
    return server, found[1]


@contextmanager
def serving(model, *arguments, **options):
    server, address = start(model, *arguments, **options)
    try:
        yield server, address
    finally:
        server.terminate()
        server.wait(PATIENCE)


def send(address, method, path, body=None, kind=JSON, key=None):
    """A request on a connection of its own: the status and what came back."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    try:
        headers = {"Content-Type": kind} | ({"Idempotency-Key": key} if key else {})
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def samples(class_, seed, count=1):
    rows = random.Random(seed)
    return {"samples": [{"class": class_, "features": [rows.gauss(0, 1) for _ in range(DIM)]} for _ in range(count)]}


class Teacher(threading.Thread):
    """Teaches lesson after lesson. One whose answer is lost is sent again with its key, until it is answered.

    A class has a few lessons; of every third class all samples are taken back.
    """

    LESSONS = 3

    def __init__(self, number, where):
        super().__init__(daemon=True)
        self.number, self.where = number, where
        self.expected, self.acknowledged, self.repeated, self.wrong = {}, 0, 0, []
        self.over = False

    def insist(self, path, body):
        key, first = str(uuid.uuid4()), True
        while True:
            try:
                status, answer = send(self.where["address"], "POST", f"/api/v1/models/soak/{path}",
                                      json.dumps(body), key=key)
            except (OSError, http.client.HTTPException, ValueError):
                first = False
                time.sleep(0.01)
                continue
            if status == 503:
                time.sleep(0.02)
                continue
            self.repeated += not first
            self.acknowledged += 1
            if status != 200:
                self.wrong.append((path, status, answer))
            return answer

    def run(self):
        block = 0
        while not self.over:
            class_, receipts = f"{self.number}.{block}", []
            for lesson in range(self.LESSONS):
                answer = self.insist("samples", samples(class_, f"{class_}.{lesson}"))
                receipts += [taught["receipt"] for taught in answer.get("taught", [])]
            self.expected[class_] = self.LESSONS
            if block % 3 == 2:
                answer = self.insist("retract", {"receipts": receipts})
                if answer.get("emptied") == [class_]:
                    del self.expected[class_]
            block += 1


def asking(where, outcomes):
    while not where["over"]:
        try:
            body = json.dumps({"samples": [{"features": [0.5] * DIM}]})
            status, _ = send(where["address"], "POST", "/api/v1/models/soak/ask", body)
            outcomes[status] = outcomes.get(status, 0) + 1
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.01)


def kills(count):
    """Kills the server again and again while four teach and two ask."""
    began, chance = time.monotonic(), random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "soak.ivoro")
        server, address = start(model)
        where, outcomes, restarts = {"address": address, "over": False}, {}, []
        teachers = [Teacher(number, where) for number in range(4)]
        askers = [threading.Thread(target=asking, args=(where, outcomes), daemon=True) for _ in range(2)]
        for thread in teachers + askers:
            thread.start()
        for _ in range(count):
            time.sleep(chance.uniform(0.02, 0.6))
            server.send_signal(signal.SIGKILL)
            server.wait()
            again = time.monotonic()
            server, where["address"] = start(model)
            restarts.append(time.monotonic() - again)
        for teacher in teachers:
            teacher.over = True
        for teacher in teachers:
            teacher.join(PATIENCE)
        where["over"] = True
        for asker in askers:
            asker.join(PATIENCE)
        expected = {class_: lessons for teacher in teachers for class_, lessons in teacher.expected.items()}
        compare(where["address"], expected)
        server.terminate()
        server.wait(PATIENCE)
        # the program reads the file by itself, with nobody's help
        server, address = start(model)
        compare(address, expected)
        server.terminate()
        server.wait(PATIENCE)
        left = sorted(set(os.listdir(folder)) - {f"soak.ivoro{end}" for end in ("", ".keys", ".who", ".lock")})
        wrong = [it for teacher in teachers for it in teacher.wrong]
        bad = {status: number for status, number in outcomes.items() if status not in (200, 409, 503)}
        assert not wrong and not bad, (wrong[:3], bad)
        acknowledged = sum(teacher.acknowledged for teacher in teachers)
        repeated = sum(teacher.repeated for teacher in teachers)
        print(f"{count} kills under load in {time.monotonic() - began:.0f} s: {acknowledged} changes acknowledged, "
              f"{repeated} of them after a lost answer; {len(expected)} classes of {Teacher.LESSONS} samples, each "
              f"there once; asked {sum(outcomes.values())} times; the slowest start took {max(restarts):.2f} s; "
              f"other files left: {len(left)}")


def compare(address, expected):
    _, classes = send(address, "GET", "/api/v1/models/soak/classes")
    found = {line["name"]: line["samples"] for line in classes}
    lost = {name: (count, found.get(name)) for name, count in expected.items() if found.get(name) != count}
    more = {name: count for name, count in found.items() if name not in expected}
    assert not lost and not more, f"expected and found: {lost}; found besides: {more}"


@contextmanager
def little_room(folder):
    """A place for files that is soon full, and how to make more room there; else a limit for files."""
    megabyte = 1 << 20
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "soak", folder], capture_output=True)
    if mounted.returncode == 0:
        def more():
            subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        try:
            yield "a file system of 1 MiB", {}, more
        finally:
            subprocess.run(["umount", folder], check=True)
        return

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (megabyte, resource.RLIM_INFINITY))

    yield "files of at most 1 MiB (RLIMIT_FSIZE)", {"preexec_fn": limited}, None


def full_disk():
    folder = tempfile.mkdtemp()
    try:
        with little_room(folder) as (what, options, more):
            model = os.path.join(folder, "soak.ivoro")
            server, address = start(model, **options)
            path, taught, good = "/api/v1/models/soak/samples?receipts=false", 0, None
            for lesson in range(5000):
                status, answer = send(address, "POST", path, json.dumps(samples(f"class {lesson}", lesson, 4)))
                if status != 200:
                    break
                taught, good = taught + 1, answer
            assert status == 507, (status, answer)
            sentence = answer["detail"]
            _, details = send(address, "GET", "/api/v1/models/soak")
            assert details["hash"] == good["hash"] and details["classes"] == taught, details
            status, _ = send(address, "POST", "/api/v1/models/soak/ask",
                             json.dumps({"samples": [{"features": [0.5] * DIM}]}))
            assert status == 200
            if more:
                more()
                status, answer = send(address, "POST", path, json.dumps(samples("after", 0, 4)))
                assert status == 200 and answer["classes"] == taught + 1, answer
            server.kill()
            server.wait()
            with serving(model) as (_, address):
                _, details = send(address, "GET", "/api/v1/models/soak")
                assert details["classes"] == taught + bool(more), details
            print(f"full disk, {what}: 507 after {taught} lessons (“{sentence}”); hash, classes and answers as "
                  f"before; {'taught again once there was room, and' if more else ''} read again after a kill")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bodies(folder, name, each):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        for body in each:
            file.write(struct.pack("<I", len(body)) + body)
    return path


def memory(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def load(bench, folder, connections, seconds, watch=None):
    """A mix of asks and lessons from the load generator; what came back, and what `watch` saw."""
    chance = random.Random(7)
    point = lambda: [round(chance.gauss(0, 1), 4) for _ in range(DIM)]  # noqa: E731
    asks = [json.dumps({"samples": [{"features": point()}]}).encode() for _ in range(64)]
    lessons = [json.dumps({"samples": [{"class": f"class {at % 50}", "features": point()} for at in range(10)]})
               .encode() for _ in range(64)]
    with serving(os.path.join(folder, "soak.ivoro")) as (server, address):
        send(address, "POST", "/api/v1/models/soak/samples", lessons[0])
        plan = {"address": address, "path": "/api/v1/models/soak/ask", "kind": JSON, "seconds": seconds,
                "bodies": bodies(folder, "asks", asks), "connections": connections,
                "lessons": {"path": "/api/v1/models/soak/samples?receipts=false", "kind": JSON, "every": 20,
                            "bodies": bodies(folder, "lessons", lessons), "connections": 8}}
        file = os.path.join(folder, "plan.json")
        with open(file, "w") as out:
            json.dump(plan, out)
        generator = subprocess.Popen([bench, "load", file], stdout=subprocess.PIPE, text=True)
        seen = []
        while generator.poll() is None:
            if watch:
                seen.append((time.monotonic(), watch(server.pid)))
            time.sleep(1)
        outcome = json.loads(generator.stdout.read())
        for part in (outcome, outcome["lessons"]):
            assert part["lost"] == 0 and set(part["statuses"]) <= {"200", "503"}, outcome
        return outcome, seen


def thousand(bench):
    with tempfile.TemporaryDirectory() as folder:
        outcome, _ = load(bench, folder, 1000, 20)
    print(f"1,000 connections at once for 20 s: {outcome['statuses']} asks by status, "
          f"{outcome['lessons']['statuses']} lessons; none lost; p50 {outcome['p50'] * 1e3:.0f} ms, p99 "
          f"{outcome['p99'] * 1e3:.0f} ms")


def ten_minutes(bench, seconds=600):
    with tempfile.TemporaryDirectory() as folder:
        outcome, seen = load(bench, folder, 16, seconds, memory)
    began = seen[0][0]
    near = lambda minute: [mb for when, mb in seen if abs(when - began - minute * 60) <= 15]  # noqa: E731
    median = lambda values: sorted(values)[len(values) // 2]  # noqa: E731
    early, late = median(near(2)), median(near(seconds / 60 - 0.25))
    print(f"{seconds / 60:.0f} minutes of mixed load: {outcome['statuses']} asks, {outcome['lessons']['statuses']} "
          f"lessons of 10; {early:.1f} MB in minute 2, {late:.1f} MB at the end ({100 * (late / early - 1):+.1f} %)")
    assert late <= early * 1.05, seen[:: max(len(seen) // 20, 1)]


def bombs():
    """Images of a few bytes that claim more pixels than are taken."""
    side = 60_000

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compressobj(9)
    packed = b"".join(rows.compress(bytes(side + 1)) for _ in range(side // 40)) + rows.flush()
    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
           + chunk(b"IDAT", packed) + chunk(b"IEND", b""))
    jpeg = (b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 17, 8, side, side, 3) + b"\x01\x11\0\x02\x11\0\x03\x11\0"
            + b"\xff\xda\0\x0c\x03\x01\0\x02\0\x03\0\0\x3f\0" + bytes(64) + b"\xff\xd9")
    gif = (b"GIF89a" + struct.pack("<HHBBB", side, side, 0x80, 0, 0) + bytes(6)
           + b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x02\x02\x4c\x01\0;")
    bmp = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 1 << 20, 0, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0)
    entries = [(256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
               (278, 4, side), (279, 4, 1 << 20)]
    tiff = (b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries))
            + b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries) + bytes(4))
    extended = bytes(4) + struct.pack("<I", 16_382)[:3] * 2
    webp = b"RIFF" + struct.pack("<I", 4 + 18 + 14) + b"WEBPVP8X" + struct.pack("<I", 10) + extended
    webp += b"VP8L" + struct.pack("<I", 5) + b"\x2f" + struct.pack("<I", 16_383 | 16_383 << 14) + b"\0"
    box = lambda kind, data: struct.pack(">I", 8 + len(data)) + kind + data  # noqa: E731
    size = box(b"ipco", box(b"ispe", struct.pack(">III", 0, side, side)))
    associated = box(b"ipma", struct.pack(">IIHBB", 0, 1, 1, 1, 1))
    meta = bytes(4) + box(b"hdlr", bytes(8) + b"pict" + bytes(13)) + box(b"pitm", struct.pack(">IH", 0, 1))
    meta += box(b"iinf", struct.pack(">IH", 0, 1) + box(b"infe", struct.pack(">IHH", 2 << 24, 1, 0) + b"hvc1\0"))
    meta += box(b"iprp", size + associated)
    heic = box(b"ftyp", b"heic" + bytes(4) + b"mif1heic") + box(b"meta", meta)
    return {"png": png, "jpeg": jpeg, "gif": gif, "bmp": bmp, "tiff": tiff, "webp": webp, "heic": heic,
            "pnm": b"P6 60000 60000 255\n" + bytes(1000)}


def part(field, data, name):
    head = f'--b\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
    return head.encode() + data + b"\r\n--b--\r\n"


def hostile_images():
    """Each bomb is refused quickly, and memory stays."""
    multipart = "multipart/form-data; boundary=b"
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        with file.open("dog/zeros.png", "w", force_zip64=True) as entry:
            for _ in range(1024):
                entry.write(bytes(1 << 20))
    with tempfile.TemporaryDirectory() as folder, serving(os.path.join(folder, "soak.ivoro")) as (server, address):
        # the network is loaded with the first image, whatever becomes of it
        send(address, "POST", "/api/v1/models/soak/samples?class=x", part("image", b"no image", "x"), multipart)
        before, said = memory(server.pid), []
        given = [(kind, part("image", data, f"bomb.{kind}")) for kind, data in bombs().items()]
        for kind, body in [*given, ("zip", part("archive", archive.getvalue(), "bomb.zip"))]:
            began = time.monotonic()
            status, answer = send(address, "POST", "/api/v1/models/soak/samples?class=x", body, multipart)
            took, more = time.monotonic() - began, memory(server.pid) - before
            assert status in (413, 422) and took < 10 and more < 160, (kind, status, answer, took, more)
            said.append(f"{kind} {status} in {took * 1e3:.0f} ms")
        most = memory(server.pid) - before
        _, details = send(address, "GET", "/api/v1/models/soak")
        assert details["classes"] == 0, details
    print(f"images that claim too much: {', '.join(said)}; {most:+.0f} MB afterwards")


def main(what, *rest):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8192), hard), hard))
    parts = {"kills": lambda: kills(int(rest[0]) if rest[0].isdigit() else 300), "disk": full_disk, "bombs": hostile_images,
             "connections": lambda: thousand(rest[0]), "minutes": lambda: ten_minutes(rest[0])}
    for name, run in parts.items():
        if what in ("all", name):
            run()


if __name__ == "__main__":
    main(*sys.argv[2:])
