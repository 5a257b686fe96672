"""The scripts of this folder are run as they are by `make soak` and `make chaos`; their tests import them as they do each other."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
