"""The way from nothing to the first case: install and run, beside promptfoo and deepeval, and what is installed.

    python -m benchmarks.cold [--image NAME]

Each program gets an empty directory and an empty cache, one after the other. agenteval is installed as the native
action does it; its first case is a run of the quickstart example. With podman and an image, the sizes of the image's
layers, the time to unpack them, and the time of the first case in a container are measured too; a download is not.
Fails if the image is more than 5 % larger than ``requirements/sizes.toml`` says.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "examples" / "quickstart" / "agent.yaml"
RECORDED = ROOT / "requirements" / "sizes.toml"
TOLERANCE = 1.05
_BASE = "docker.io/library/python:3.11-slim-bookworm"


@dataclass(frozen=True)
class Way:
    """How a program is installed and started.

    Attributes:
        name: of the program.
        needs: the command that has to be there.
        install: the commands that install it.
        first: the command that runs the first case, or says its version.
    """

    name: str
    needs: str
    install: Sequence[Sequence[str]]
    first: Sequence[str]


def ways() -> list[Way]:
    """Return the programs."""
    lock, build = (str(ROOT / "requirements" / name) for name in ("runtime.lock", "build.lock"))
    uv = ("uv", "pip", "install", "--quiet", "--no-config", "--python", "env/bin/python", "--no-build-isolation")
    pip = ("env/bin/python", "-m", "pip", "install", "--quiet", "--no-compile", "--no-build-isolation")
    run = ("env/bin/agenteval", "run", str(SUITE), "--out", "report", "--quiet")

    environment = (sys.executable, "-m", "venv", "env")

    def own(create: Sequence[str], installer: Sequence[str]) -> list[Sequence[str]]:
        return [
            create,
            (*installer, "--require-hashes", "--requirement", build),
            (*installer, "--require-hashes", "--no-deps", "--requirement", lock),
            (*installer, "--no-deps", str(ROOT)),
        ]

    return [
        Way("agenteval by uv", "uv", own(("uv", "venv", "--quiet", "--python", sys.executable, "env"), uv), run),
        Way("agenteval by pip", "python3", own(environment, pip), run),
        Way(
            "deepeval by pip",
            "python3",
            [
                environment,
                ("env/bin/python", "-m", "pip", "install", "--quiet", "deepeval"),
            ],
            ("env/bin/python", "-c", "from deepeval import evaluate"),
        ),
        Way(
            "promptfoo by npx",
            "npx",
            [("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "env", "promptfoo")],
            ("env/node_modules/.bin/promptfoo", "--version"),
        ),
    ]


def measured(way: Way) -> tuple[float, float, float] | None:
    """Return the seconds of the installation and of the first case, and the MB on disk; ``None`` if it failed."""
    with tempfile.TemporaryDirectory(prefix="agenteval-cold-") as folder:
        cache = {name: str(Path(folder, "cache")) for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache")}
        environment = {**os.environ, **cache, "HOME": folder, "UV_LINK_MODE": "copy"}
        start = time.monotonic()
        if not all(_succeeds(command, folder, environment) for command in way.install):
            return None
        installed = time.monotonic()
        size = megabytes(Path(folder, "env"))
        started = time.monotonic()
        if not _succeeds(way.first, folder, environment):
            return None
        return installed - start, time.monotonic() - started, size


def _succeeds(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> bool:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{' '.join(command[:4])} … failed: {(done.stderr or done.stdout)[-500:]}")
    return done.returncode == 0


def megabytes(folder: Path) -> float:
    """Return the size of the files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()) / 1e6


@dataclass(frozen=True)
class Layer:
    """A layer of an image: its MB, the MB that gzip makes of them, and the seconds to unpack these."""

    unpacked_mb: float
    compressed_mb: float
    unpack_s: float


def layers_of(name: str) -> list[Layer]:
    """Return the layers of an image above its base."""
    [base] = json.loads(_podman("image", "inspect", _BASE))
    with tempfile.TemporaryDirectory(prefix="agenteval-image-") as folder:
        _podman("save", "--quiet", "--format", "docker-archive", "--output", f"{folder}/image.tar", name)
        with tarfile.open(f"{folder}/image.tar") as archive:
            manifest = archive.extractfile("manifest.json")
            assert manifest
            layers = json.load(manifest)[0]["Layers"][len(base["RootFS"]["Layers"]) :]
            return [_layer(archive, layer, Path(folder)) for layer in layers]


def _layer(archive: tarfile.TarFile, layer: str, folder: Path) -> Layer:
    member = archive.extractfile(layer)
    assert member
    packed = folder / "layer.gz"
    with gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(member, target, 2**20)
    unpacked = folder / Path(layer).name
    unpacked.mkdir()
    start = time.monotonic()
    subprocess.run(("tar", "--extract", "--gzip", "--file", packed, "--directory", unpacked), check=True)
    unpack_s = time.monotonic() - start
    return Layer(archive.getmember(layer).size / 1e6, packed.stat().st_size / 1e6, unpack_s)


def first_case_s(name: str) -> float:
    """Return the seconds of a container's start and its first case: a run of the quickstart example."""
    start = time.monotonic()
    _podman(
        *("run", "--rm", "--network=none", f"--volume={SUITE.parent}:/suite:ro", "--workdir=/suite"),
        *("--entrypoint=/opt/agenteval/bin/python", name, "-I", "-m", "agenteval"),
        *("run", SUITE.name, "--out", "/tmp/report", "--quiet"),
    )
    return time.monotonic() - start


def _podman(*arguments: str) -> str:
    return subprocess.run(("podman", *arguments), capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Measure, print, and return 1 if something grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", help="name of a built image")
    parser.add_argument(
        "--only", metavar="NAME", default="", help="measure only the programs whose name contains this"
    )
    options = parser.parse_args()
    recorded = tomllib.loads(RECORDED.read_text(encoding="utf-8"))
    grown = []
    print("| from an empty cache | install s | first case s | MB |\n| :-- | --: | --: | --: |")
    for way in ways():
        if options.only not in way.name:
            continue
        found = measured(way) if shutil.which(way.needs) else None
        print(
            f"| {way.name} | {' | '.join(f'{value:.1f}' for value in found) if found else '– | – | –'} |", flush=True
        )
    if options.image:
        layers = layers_of(options.image)
        unpack_s, first_s = sum(layer.unpack_s for layer in layers), first_case_s(options.image)
        print(f"container: {unpack_s:.1f} s to unpack, {first_s:.1f} s to start and for the first case")
        for name, size in (
            ("image_mb", sum(layer.unpacked_mb for layer in layers)),
            ("image_compressed_mb", sum(layer.compressed_mb for layer in layers)),
        ):
            print(f"{name}: {size:.1f}, recorded {recorded[name]}")
            grown += [name] if size > recorded[name] * TOLERANCE else []
    if grown:
        print(f"grew by more than 5 %: {', '.join(grown)}; if that is wanted, change requirements/sizes.toml")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
