"""Points ``action.yml`` at a published image instead of the Dockerfile; usage: pin_image.py ACTION_YML IMAGE@DIGEST.

Only releases are pinned, so that users do not build the image. The main branch names the Dockerfile.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_IMAGE = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}")
_LINE = re.compile(r"(?m)^  image: .*$")


def pinned(action: str, image: str) -> str:
    """Return the text of an ``action.yml`` that runs an image.

    Args:
        action: the current text.
        image: registry, name and digest: ``ghcr.io/owner/name@sha256:…``.

    Raises:
        ValueError: the image has no digest, or the text does not have exactly one line for it.
    """
    if not _IMAGE.fullmatch(image):
        raise ValueError(f"{image!r} is not of the form registry/owner/name@sha256:<64 hexadecimal digits>")
    text, count = _LINE.subn(f"  image: docker://{image}", action)
    if count != 1:
        raise ValueError(f"one line `  image: …` is needed in action.yml, found {count}")
    return text


def main(arguments: list[str]) -> int:
    """Rewrite the file; the exit status is 2 if that is impossible."""
    if len(arguments) != 2:
        print("usage: pin_image.py ACTION_YML IMAGE@DIGEST", file=sys.stderr)
        return 2
    file = Path(arguments[0])
    try:
        file.write_text(pinned(file.read_text(encoding="utf-8"), arguments[1]), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"pin_image.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
