"""Makes a checkout known to a Python that cannot install it: a link and its metadata.

Children of the sandbox start without the current folder on their path, so the package has to be
among what is installed.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_known() -> bool:
    """Whether this very checkout is what an isolated Python imports, with its metadata."""
    asked = "import importlib.metadata, grader; importlib.metadata.version('tritonlab'); " \
            "print(grader.__file__)"
    found = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True,
                           cwd="/")
    return found.stdout.strip() == str(ROOT / "grader" / "__init__.py")


def commit() -> str:
    """The short hash of the commit that is checked out; empty where git cannot name it."""
    result = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            cwd=ROOT)
    return result.stdout.strip()


def make_known() -> str:
    """What was done, in words; empty where nothing had to be."""
    if is_known():
        return ""
    packages = Path(sysconfig.get_path("purelib"))
    text = (ROOT / "tritonlab" / "version.py").read_text(encoding="utf-8")
    found = re.search(r"__version__\s*=\s*\"([^\"]+)\"", text)
    version = found[1] if found else "0"
    try:
        importlib.metadata.version("tritonlab")
    except importlib.metadata.PackageNotFoundError:
        about = packages / f"tritonlab-{version}.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tritonlab\nVersion: {version}\n", encoding="utf-8")
        (about / "INSTALLER").write_text("checkout\n", encoding="utf-8")
        (about / "entry_points.txt").write_text(
            "[pytest11]\ntritonlab-grader = grader.judge.pytest_plugin\n", encoding="utf-8")
    (packages / "tritonlab-checkout.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    if not is_known():
        raise RuntimeError(f"Another tritonlab hides the one in {ROOT}.")
    return f"linked {ROOT} into {packages}"
