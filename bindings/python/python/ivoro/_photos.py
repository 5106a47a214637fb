"""Photos as people hold them, in the forms that the compiled module takes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What can be a photo: a file, the contents of a file, an image of Pillow, or an array of pixels.
Photo = str | os.PathLike[str] | bytes | NDArray[np.uint8] | Any

#: Modes of Pillow that a PNG holds as they are.
_MODES = {"1", "L", "LA", "I;16", "P", "RGB", "RGBA"}
#: What other modes become; all others RGB.
_NEAR = {"I": "I;16", "I;16B": "I;16", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}


def held(photo: Photo) -> str | bytes | NDArray[np.uint8]:
    """A photo as the compiled module takes it."""
    if isinstance(photo, (str, os.PathLike)):
        return os.fsdecode(photo)
    if isinstance(photo, (bytes, bytearray, memoryview)):
        return bytes(photo)
    if isinstance(photo, np.ndarray):
        return pixels(photo)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(photo, pillow.Image):
        return contents(photo)
    if hasattr(photo, "__array__") or hasattr(photo, "__dlpack__"):
        return pixels(np.asarray(photo) if hasattr(photo, "__array__") else np.from_dlpack(photo))
    kinds = "a path, the bytes of a file, an image of Pillow or an array of pixels"
    raise TypeError(f"a photo: expected {kinds}, found {type(photo).__name__}")


def pixels(array: NDArray[Any]) -> NDArray[np.uint8]:
    """An array as rows, columns and one or three channels of bytes."""
    if array.dtype != np.uint8:
        raise ValueError(
            f"an array of pixels: expected bytes from 0 to 255 (uint8), found {array.dtype}"
        )
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        expected = "rows, columns and 1, 3 or 4 channels"
        raise ValueError(f"an array of pixels: expected {expected}, found the shape {array.shape}")
    if array.shape[2] == 4:
        # what is transparent is seen on white, as in files
        opaque = array[:, :, 3:].astype(np.uint32)
        array = ((array[:, :, :3] * opaque + 255 * (255 - opaque) + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(array)


def contents(image: Any) -> bytes:
    """An image of Pillow as a file that loses nothing: its orientation, colours and transparency are
    then read as those of any file."""
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    profile = image.info.get("icc_profile")
    if upright.mode not in _MODES:
        # numbers of CMYK and others are not those that their profile speaks of any more
        upright, profile = upright.convert(_NEAR.get(upright.mode, "RGB")), None
    file = io.BytesIO()
    upright.save(file, "PNG", compress_level=0, icc_profile=profile, exif=b"")
    return file.getvalue()


def listed(photos: Photo | Iterable[Photo]) -> list[Any]:
    """One photo, or each of several."""
    given: Any = photos
    one = isinstance(given, (str, os.PathLike, bytes, bytearray, memoryview))
    if one or hasattr(given, "getbands") or getattr(given, "ndim", 0) in (2, 3):
        return [held(given)]
    return [held(photo) for photo in given]
