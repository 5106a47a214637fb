"""The table of settings."""

from __future__ import annotations

import json
from typing import Any

from ._ivoro import settings_table


def settings() -> dict[str, dict[str, Any]]:
    """All settings by the name of their parameter.

    Returns
    -------
    dict
        For each name ``letters`` (those under which it acts, empty for all), ``meaning``, ``range``,
        ``default``, and ``chosen``: whether the first classes choose it where it isn't given.

    Examples
    --------
    >>> import ivoro
    >>> volume = ivoro.settings()["volume"]
    >>> volume["letters"], volume["default"], volume["chosen"]
    ('Q', 0.4, False)
    """
    table: list[dict[str, Any]] = json.loads(settings_table())
    return {entry.pop("name"): entry for entry in table}
