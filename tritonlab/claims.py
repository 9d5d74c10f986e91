"""Claims: what a certificate says, read from a file that anybody may have written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MARKER = '<script type="application/json" id="certificate">'  # before the data in a page


def fingerprint(data: Mapping[str, Any]) -> str:
    """The SHA-256 by which a certificate is known, however its JSON is laid out."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
