"""Packs of a class, unpacked and installed beside the packages of the running Python."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import torch

from tritonlab.classroom import settings
from tritonlab.classroom.pack import build
from tritonlab.classroom.store import Store

CLASS = """
schema = 1
name = "CS 149, \\"autumn\\""
course = "tritonlab"
require_isolation = 2
[assignments.hw1]
modules = ["track1/tile-copy"]
points = 20
due = 2026-10-12T23:59:00
[assignments.hw2]
modules = ["track1/tile-copy", "track1/softmax"]
"""


def packed(root: Path, target: str, name: str = "hw1", text: str = CLASS,
           torch_index: str = build.TORCH_INDEX) -> build.Pack:
    """Builds an assignment of a class that is written into ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / settings.SETTINGS).write_text(text)
    loaded, store = settings.load(root), Store(root)
    store.create()
    return build.of_assignment(loaded, store, loaded.assignment(name), target,
                               torch_index=torch_index)


def only_wheel(pack: build.Pack, folder: str = "") -> bytes:
    (name,) = [name for name in pack.files if name.startswith(folder) and name.endswith(".whl")]
    return pack.files[name]


def install(wheel: bytes, environment: Path) -> Path:
    """Unpacks a wheel as pip does, and links all packages but tritonlab; returns bin/."""
    import venv

    venv.create(environment, with_pip=False)
    site = next(environment.glob("lib/python*/site-packages"))
    outer = Path(torch.__file__).parent.parent
    archive = environment / "wheel.zip"
    archive.write_bytes(wheel)
    zipfile.ZipFile(archive).extractall(site)
    for entry in outer.iterdir():
        if "tritonlab" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    program = environment / "bin" / "tritonlab"
    program.write_text(f"#!/bin/sh\nexec {environment}/bin/python -m tritonlab \"$@\"\n")
    program.chmod(0o755)
    return environment / "bin"


def run(command: list[object], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs a command without what the environment says about tritonlab and Python."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1", **more}
    return subprocess.run(list(map(str, command)), cwd=folder, env=environment, text=True,
                          capture_output=True)
