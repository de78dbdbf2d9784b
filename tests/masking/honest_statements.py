"""Statements of honest users over masked columns."""

from pathlib import Path

import yaml

STATEMENTS: list[str] = yaml.safe_load((Path(__file__).parent / "usefulness.yaml").read_text(encoding="utf-8"))
