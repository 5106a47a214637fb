"""The client against the real program."""

import re
import socket
import subprocess
import threading
import zlib
from contextlib import contextmanager
from struct import pack

import pytest

from conftest import ROOT
from ivoro import Client, ServeError


@contextmanager
def serving(program, *arguments):
    """A running server; gives its address."""
    command = [program, "serve", *map(str, arguments), "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            line = server.stdout.readline()
            found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)/\n", line)
            assert found, line
            yield found[1]
        finally:
            server.terminate()
            server.wait(60)


@pytest.fixture
def address(program, tmp_path):
    with serving(program, tmp_path / "pets.ivoro", "--variant", "iVoro") as address:
        yield address


@pytest.fixture
def client(address):
    with Client(address) as client:
        yield client


def counts(client):
    return {line["name"]: line["samples"] for line in client.classes()}


def test_what_is_taught_is_known_and_what_is_taken_back_is_not(client, samples, queries):
    X, y = samples
    assert client.model == "pets"
    lesson = client.teach(X, y)
    assert lesson["samples"] == len(X) and lesson["classes"] == 4
    answers = client.ask(queries[0], top=2)
    assert answers["hash"] == lesson["hash"]
    assert [answer["top"][0]["class"] for answer in answers["answers"]] == queries[1].tolist()
    before = client.download()
    more = client.teach(X[:3] + 1, "gnu")
    assert counts(client)["gnu"] == 3
    change = client.retract([sample["receipt"] for sample in more["taught"]])
    assert change["emptied"] == ["gnu"] and "gnu" not in counts(client)
    assert client.classes() and client.describe()["variant"] == "iVoro"
    # but for the journal it is the model that never saw them
    assert len(client.download()) >= len(before)


def test_corrections_change_what_they_name(client, samples):
    X, y = samples
    lesson = client.teach(X, y)
    receipt = lesson["taught"][0]["receipt"]
    client.relabel(receipt, "bee")
    assert (counts(client)["ape"], counts(client)["bee"]) == (19, 21)
    with pytest.raises(ServeError, match="receipt") as refused:
        client.retract(receipt)
    assert refused.value.status == 409
    client.undo()
    assert counts(client)["ape"] == 20
    client.rename("ape", "gorilla")
    client.join("gorilla", "bee")
    assert counts(client) == {"bee": 40, "cat": 20, "dog": 20}
    change = client.forget("dog", strike=True)
    assert change["hash_before"] != change["hash"]
    assert counts(client) == {"bee": 40, "cat": 20}
    assert "dog" not in str(client.journal())
    assert client.quality()["asked"] >= 0 and client.audit()["kept"]


def test_refusals_come_as_sentences(client, samples):
    X, y = samples
    with pytest.raises(ServeError, match="knows no class yet"):
        client.ask(X[0])
    lesson = client.teach(X, y)
    with pytest.raises(ServeError) as refused:
        client.teach(X[0], "ape", if_match=lesson["hash_before"])
    assert refused.value.status == 412
    client.teach(X[0], "ape", if_match=lesson["hash"])
    with pytest.raises(ServeError) as refused:
        client.forget("unicorn")
    assert (refused.value.status, refused.value.kind) == (404, "unknown-class")
    with pytest.raises(ServeError):
        client.seal()
    with pytest.raises(ValueError, match="one for each sample"):
        client.teach(X, ["ape"])
    with pytest.raises(ValueError, match="address"):
        Client("127.0.0.1:8080")


def test_models_move_between_servers(program, tmp_path, client, samples):
    X, y = samples
    lesson = client.teach(X[:40], y[:40])
    client.download(tmp_path / "copy.ivoro")
    with serving(program, tmp_path / "other.ivoro", "--variant", "iVoro") as address, Client(address) as other:
        other.upload(tmp_path / "copy.ivoro")
        assert other.describe()["hash"] == lesson["hash"]
        other.teach(X[40:], y[40:])
        client.merge(other.download(), tmp_path / "copy.ivoro")
    assert counts(client) == {"ape": 20, "bee": 20, "cat": 20, "dog": 20}


def test_changes_are_heard_of(client, address, samples):
    X, y = samples
    with Client(address) as listener:
        events = listener.events()
        assert next(events)["samples"] == 0
        lesson = client.teach(X, y)
        event = next(events)
        assert (event["hash"], event["samples"]) == (lesson["hash"], len(X))
        events.close()


def png(colour, size=48):
    """A picture of one colour."""
    def chunk(kind, data):
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * size) * size
    head = pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_photos_are_taught_and_asked(client, tmp_path):
    red, blue = tmp_path / 'the "red" one.png', tmp_path / "blue.png"
    red.write_bytes(png((250, 10, 10)))
    blue.write_bytes(png((10, 10, 250)))
    lesson = client.teach([red, png((230, 20, 10)), blue, png((20, 5, 240))], ["red", "red", "blue", "blue"])
    assert counts(client) == {"red": 2, "blue": 2} and not lesson["skipped"]
    answers = client.ask([png((240, 15, 15)), blue])["answers"]
    assert [answer["top"][0]["class"] for answer in answers] == ["red", "blue"]


@contextmanager
def losing(address, lost):
    """A way to the server on which the first answers get lost."""
    host, port = address.removeprefix("http://").split(":")
    listener = socket.create_server(("127.0.0.1", 0))
    left = [lost]

    def carry(near):
        with near, socket.create_connection((host, int(port))) as far:
            near.settimeout(20)
            request = near.recv(1 << 20)
            while b"\r\n\r\n" not in request:
                request += near.recv(1 << 20)
            length = re.search(rb"(?i)content-length: (\d+)", request)
            body = request.index(b"\r\n\r\n") + 4
            while len(request) < body + int(length[1] if length else 0):
                request += near.recv(1 << 20)
            far.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
            answer = b"".join(iter(lambda: far.recv(1 << 20), b""))
            if left[0] > 0:
                left[0] -= 1
                return
            near.sendall(answer)

    def accept():
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=carry, args=(near,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def test_a_lesson_whose_answer_is_lost_counts_once(address, client, samples):
    X, y = samples
    with losing(address, 2) as way, Client(way, "pets") as far:
        lesson = far.teach(X, y)
    assert lesson["samples"] == len(X) and sum(counts(client).values()) == len(X)
    with losing(address, 9) as way, Client(way, "pets", retries=1) as far, pytest.raises(OSError):
        far.classes()


def test_tokens_have_rights(program, tmp_path, samples):
    made = subprocess.run([program, "serve", "--new-token", "anna", "ask"], check=True,
                          capture_output=True, text=True)
    token, line = made.stdout.split("\n")[:2]
    (tmp_path / "tokens").write_text(line + "\n")
    folder = tmp_path / "models"
    folder.mkdir()
    with serving(program, folder / "pets.ivoro", "--token-file", tmp_path / "tokens") as address:
        with Client(address) as nobody, pytest.raises(ServeError, match="token") as refused:
            nobody.models()
        assert refused.value.status == 401
        with Client(address, token=token) as anna:
            assert anna.classes() == []
            with pytest.raises(ServeError) as refused:
                anna.teach(*samples)
            assert refused.value.status == 403


def test_the_examples_of_the_guide_run(address, shipped, tmp_path, monkeypatch):
    text = (ROOT / "docs/guide/clients.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar100-small.features").symlink_to(shipped)
    assert code
    names = {}
    for block in code:
        exec(compile(block.replace("http://127.0.0.1:8080", address), "clients.md", "exec"), names)
