"""A client of `ivoro serve`: teach, ask and correct a model that runs elsewhere."""

from __future__ import annotations

import io
import json
import os
import ssl
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike

#: A photo: the path of its file, or its bytes.
Photo = str | os.PathLike[str] | bytes

#: Seconds before a request is sent again, doubled each time.
PAUSE = 0.1
#: Seconds that are waited at most before a request is sent again.
LONGEST_PAUSE = 5.0


class Answer(TypedDict, total=False):
    """What is said of one query. `unknown` is missing where that can't be said yet."""

    name: str
    top: list[dict[str, Any]]
    unknown: bool
    strangeness: float
    threshold: float
    uncertainty: float
    kept: int
    point: list[float]


class Answers(TypedDict, total=False):
    """Answers to the queries of a request, with the hash of the model that gave them."""

    hash: str
    answers: list[Answer]
    skipped: list[dict[str, str]]


class Lesson(TypedDict):
    """What was taught, for each sample with a receipt that takes it back."""

    taught: list[dict[str, Any]]
    skipped: list[dict[str, str]]
    hash_before: str
    hash: str
    classes: int
    samples: int
    time: int


class Change(TypedDict, total=False):
    """What a change did: its verb, classes and samples, and the hashes before and after it."""

    verb: str
    classes: list[str]
    samples: int
    emptied: list[str]
    into: str
    note: str
    receipts: list[str]
    hash_before: str
    hash: str
    model_classes: int
    model_samples: int
    time: int


class ServeError(Exception):
    """The server refused a request; the text is its sentence."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        #: The HTTP status, such as 404.
        self.status = status
        #: What went wrong, for programs, such as ``unknown-class``.
        self.kind = kind


class Client:
    """A model of a running `ivoro serve`.

    `model` is its name; it may be left out where a single one is served. `token` is what
    ``ivoro serve --new-token`` printed. `certificate` is a file with the server's own certificate,
    which is then the only one that is believed.

    A request whose connection is lost is sent again, at most `retries` times, and so is one that
    the server had no room for. Changes carry a key, so that each counts once however often it was
    sent. One client is for one thread.
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8080",
        model: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        certificate: str | os.PathLike[str] | None = None,
    ) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"address: expected http://HOST:PORT or https://…, found {address}")
        self._host, self._port = parts.hostname, parts.port
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=certificate)
        self._token, self._timeout, self._retries = token, timeout, retries
        self._connection: HTTPConnection | None = None
        self._model = model

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next request opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # What is there

    def models(self) -> list[dict[str, Any]]:
        """All models that the server has."""
        return cast("list[dict[str, Any]]", self._json("GET", "/api/v1/models"))

    @property
    def model(self) -> str:
        """The name of the model."""
        if self._model is None:
            names = [str(model["name"]) for model in self.models()]
            if len(names) != 1:
                raise ValueError(f"model: expected the name of one of {', '.join(names) or 'none'}")
            self._model = names[0]
        return self._model

    def describe(self) -> dict[str, Any]:
        """The model: its variant, settings, layers, hash and size."""
        return self._dict("GET", "")

    def classes(self) -> list[dict[str, Any]]:
        """The classes in the order in which they came, each with its number of samples."""
        return cast("list[dict[str, Any]]", self._json("GET", self._path("/classes")))

    def quality(self) -> dict[str, Any]:
        """How good the model was on samples that it was asked before it learned them."""
        return self._dict("GET", "/quality")

    def journal(self) -> dict[str, Any]:
        """What was done to the model, when and by which token."""
        return self._dict("GET", "/journal")

    def audit(self) -> dict[str, Any]:
        """Every number that the model keeps."""
        return self._dict("GET", "/audit")

    def events(self) -> Iterator[dict[str, Any]]:
        """The model as it is, and then as it is after each change, until the server stops."""
        connection = self._connect(timeout=None)
        try:
            connection.request("GET", self._path("/events"), headers=self._headers({}))
            response = connection.getresponse()
            if response.status != 200:
                raise _error(response.status, response.read())
            for line in response:
                if line.startswith(b"data:"):
                    yield json.loads(line[len(b"data:") :])
        finally:
            connection.close()

    # Ask and teach

    def ask(
        self,
        queries: ArrayLike | Sequence[Photo] | Photo,
        *,
        top: int = 3,
        false_rejection: float = 0.05,
        keep_unknown: bool = False,
    ) -> Answers:
        """Asks what photos or feature vectors are.

        `queries` are photos, or an array of one row for each query; of a model with several layers
        and views, of one vector for each of them in every row.
        """
        kind, body = _content(queries, None)
        words = {"top": top, "false_rejection": false_rejection}
        query = urllib.parse.urlencode(words | ({"keep_unknown": "true"} if keep_unknown else {}))
        answer = self._json("POST", self._path("/ask") + "?" + query, body, {"Content-Type": kind})
        return cast(Answers, answer)

    def teach(
        self,
        samples: ArrayLike | Sequence[Photo] | Photo,
        classes: str | Sequence[str],
        *,
        receipts: bool = True,
        if_match: str | None = None,
    ) -> Lesson:
        """Teaches photos or feature vectors: new classes begin, the others get more samples.

        `classes` is the class of each sample, or one for all. It returns once the lesson is on
        disk. `if_match` is the hash that the model must have.
        """
        kind, body = _content(samples, classes)
        path = "/samples" if receipts else "/samples?receipts=false"
        return cast(Lesson, self._write("POST", path, body, kind, if_match))

    # Correct

    def retract(self, receipts: str | Sequence[str], *, if_match: str | None = None) -> Change:
        """Takes samples back: afterwards the model is the one that never saw them."""
        return self._change("POST", "/retract", {"receipts": _list(receipts)}, if_match)

    def relabel(
        self, receipts: str | Sequence[str], class_: str, *, if_match: str | None = None
    ) -> Change:
        """Gives samples another class. Their receipts change."""
        body = {"receipts": _list(receipts), "class": class_}
        return self._change("POST", "/relabel", body, if_match)

    def undo(self, *, if_match: str | None = None) -> Change:
        """Undoes the last lesson or correction."""
        return self._change("POST", "/undo", None, if_match)

    def rename(self, class_: str, name: str, *, if_match: str | None = None) -> Change:
        """Gives a class another name."""
        return self._change("PATCH", _class(class_), {"name": name}, if_match)

    def join(self, class_: str, into: str, *, if_match: str | None = None) -> Change:
        """Makes all samples of a class samples of another one."""
        return self._change("PATCH", _class(class_), {"into": into}, if_match)

    def forget(
        self,
        class_: str,
        receipts: Sequence[str] = (),
        *,
        strike: bool = False,
        if_match: str | None = None,
    ) -> Change:
        """Forgets a class. Where classes share their scatter it takes the receipts of all its
        samples. `strike` takes its name out of the journals too."""
        body = {"receipts": list(receipts), "strike": strike}
        return self._change("DELETE", _class(class_), body, if_match)

    def unknowns(self) -> dict[str, Any]:
        """Rejected queries that wait to be named, where the server keeps any."""
        return self._dict("GET", "/unknowns")

    def name_unknown(self, number: int, class_: str) -> Lesson:
        """Teaches a rejected query, now that it has a name."""
        body = json.dumps({"class": class_}).encode()
        path = f"/unknowns/{number}"
        return cast(Lesson, self._write("POST", path, body, "application/json", None))

    # Keep and move

    def download(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The model file; it is also written to `path` if one is given."""
        _, data = self._request("GET", self._path("/file"), None, {})
        if path is not None:
            Path(path).write_bytes(data)
        return data

    def upload(
        self, model: str | os.PathLike[str] | bytes, *, if_match: str | None = None
    ) -> Change:
        """Puts another model in the place of this one."""
        kind = "application/octet-stream"
        return cast(Change, self._write("PUT", "/file", _bytes(model), kind, if_match))

    def merge(
        self,
        model: str | os.PathLike[str] | bytes,
        ancestor: str | os.PathLike[str] | bytes | None = None,
        *,
        if_match: str | None = None,
    ) -> Change:
        """Merges a model: afterwards this one has learned what both have. `ancestor` is the model
        that both began as copies of, if they did."""
        parts = [("model", "model.ivoro", _bytes(model))]
        if ancestor is not None:
            parts.append(("ancestor", "ancestor.ivoro", _bytes(ancestor)))
        kind, body = _multipart(parts)
        return cast(Change, self._write("POST", "/merge", body, kind, if_match))

    def seal(
        self,
        classes: Sequence[str] | None = None,
        *,
        rank: int | None = None,
        bits: int | None = None,
        if_match: str | None = None,
    ) -> Change:
        """Seals classes, or all: they take little room, and no sample can be added any more."""
        body = {"classes": None if classes is None else list(classes), "rank": rank, "bits": bits}
        return self._change("POST", "/seal", body, if_match)

    # Requests

    def _path(self, path: str) -> str:
        return f"/api/v1/models/{urllib.parse.quote(self.model, safe='')}{path}"

    def _dict(self, method: str, path: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self._json(method, self._path(path)))

    def _change(
        self, method: str, path: str, body: Mapping[str, Any] | None, if_match: str | None
    ) -> Change:
        data = b"" if body is None else json.dumps(body).encode()
        return cast(Change, self._write(method, path, data, "application/json", if_match))

    def _write(
        self, method: str, path: str, body: bytes, kind: str, if_match: str | None
    ) -> Any:
        headers = {"Content-Type": kind, "Idempotency-Key": str(uuid.uuid4())}
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"'
        return self._json(method, self._path(path), body, headers)

    def _json(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
    ) -> Any:
        _, data = self._request(method, path, body, headers)
        return json.loads(data)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        """Sends a request until it is answered. Every request may be sent again: those that change
        something carry a key."""
        pause = PAUSE
        for left in range(self._retries, -1, -1):
            try:
                response, data = self._send(method, path, body, headers)
            except (HTTPException, OSError):
                self.close()
                if left == 0:
                    raise
            else:
                if response.status < 400:
                    return response, data
                if response.status != 503 or left == 0:
                    raise _error(response.status, data)
                pause = max(pause, float(response.headers.get("Retry-After") or 0.0))
            time.sleep(min(pause, LONGEST_PAUSE))
            pause *= 2.0
        raise AssertionError("unreachable")

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        if self._connection is None:
            self._connection = self._connect(self._timeout)
        self._connection.request(method, path, body, self._headers(headers))
        response = self._connection.getresponse()
        return response, response.read()

    def _connect(self, timeout: float | None) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=timeout)
        return HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        token = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        return {**headers, **token}


def _error(status: int, data: bytes) -> ServeError:
    try:
        problem = json.loads(data)
        kind, detail = str(problem["type"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        kind, detail = "", f"the server answered {status}"
    return ServeError(status, kind.removeprefix("urn:ivoro:"), detail)


def _class(name: str) -> str:
    return f"/classes/{urllib.parse.quote(name, safe='')}"


def _list(receipts: str | Sequence[str]) -> list[str]:
    return [receipts] if isinstance(receipts, str) else list(receipts)


def _bytes(given: Photo) -> bytes:
    return given if isinstance(given, bytes) else Path(given).read_bytes()


def _content(
    given: ArrayLike | Sequence[Photo] | Photo, classes: str | Sequence[str] | None
) -> tuple[str, bytes]:
    """A body, and its type."""
    if isinstance(given, (str, bytes, os.PathLike)):
        given = [given]
    if isinstance(given, (list, tuple)) and all(
        isinstance(photo, (str, bytes, os.PathLike)) for photo in given
    ):
        photos = cast("Sequence[Photo]", given)
        return _multipart(_photos(photos, _each(classes, len(photos))))
    rows = np.asarray(given, dtype=np.float32)
    if rows.ndim == 1:
        rows = rows[np.newaxis]
    if classes is None and rows.ndim == 2:
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(rows))
        return "application/x-npy", buffer.getvalue()
    samples: list[dict[str, Any]] = [{"features": row.tolist()} for row in rows]
    for sample, class_ in zip(samples, _each(classes, len(samples)), strict=True):
        if class_ is not None:
            sample["class"] = class_
    return "application/json", json.dumps({"samples": samples}).encode()


def _each(classes: str | Sequence[str] | None, count: int) -> list[str | None]:
    """A class for each sample."""
    if classes is None or isinstance(classes, str):
        return [classes] * count
    each: list[str | None] = [str(class_) for class_ in classes]
    if len(each) != count:
        raise ValueError(f"classes: expected one for each sample: {count}, found {len(each)}")
    return each


def _photos(
    photos: Sequence[Photo], classes: Sequence[str | None]
) -> list[tuple[str, str | None, bytes]]:
    """Parts of a body: a class is that of all photos that follow."""
    parts: list[tuple[str, str | None, bytes]] = []
    current = None
    for at, (photo, class_) in enumerate(zip(photos, classes, strict=True)):
        if class_ is not None and class_ != current:
            parts.append(("class", None, class_.encode()))
            current = class_
        name = f"photo {at}" if isinstance(photo, bytes) else Path(photo).name
        parts.append(("image", name, _bytes(photo)))
    return parts


def _multipart(parts: Sequence[tuple[str, str | None, bytes]]) -> tuple[str, bytes]:
    boundary = uuid.uuid4().hex
    body = bytearray()
    for field, name, data in parts:
        disposition = f'form-data; name="{field}"'
        if name is not None:
            escaped = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
            disposition += f'; filename="{escaped}"'
        head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\n\r\n"
        body += head.encode() + data + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return f"multipart/form-data; boundary={boundary}", bytes(body)
