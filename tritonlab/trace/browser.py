"""Opens a page in a browser."""

import webbrowser
from pathlib import Path

from tritonlab.errors import shown


def open_page(file: Path) -> str:
    """Opens a file in a browser. Returns a sentence where there is none."""
    try:
        if webbrowser.get().open(file.absolute().as_uri()):
            return ""
    except webbrowser.Error:
        pass
    return f"No browser was found on this machine. Open {shown(file)} in one."
