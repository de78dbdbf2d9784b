"""A file of refusals as YAML text in the one form that the corpus keeps, so that `--write` makes small diffs."""

import json

from tests.corpus.corpus import Deny, DenyFile


def text_of(file: DenyFile) -> str:
    """Values that the rows share with their file are written once, at the top."""
    lines = [f"family: {_scalar(file.family)}"]
    lines += [f"{field}: {_scalar(getattr(file, field))}" for field in ("policy", "rule") if getattr(file, field)]
    if file.effect:
        lines.append(f"effect: {_effect(file.effect)}")
    lines.append("rows:")
    for row in file.rows:
        lines += ["", *_row(row, file)]
    return "\n".join(lines) + "\n"


def _row(row: Deny, file: DenyFile) -> list[str]:
    found = [f"- statement: {_text(row.statement)}"]
    if row.escaped:
        found.append("  escaped: true")
    if row.repeats:
        found.append("  repeats: {" + ", ".join(f"{_quoted(piece)}: {times}" for piece, times in row.repeats.items()) + "}")
    if row.catalog != "read":
        found.append(f"  catalog: {row.catalog}")
    if row.tainted:
        found.append("  tainted: true")
    own = [field for field in ("policy", "rule") if getattr(row, field) != getattr(file, field)]
    found += [f"  {field}: {_scalar(getattr(row, field))}" for field in own]
    found.append(f"  why: {_scalar(row.why)}")
    if row.effect != file.effect:
        found.append(f"  effect: {_effect(row.effect)}")
    if row.reason:
        found.append(f"  reason: {_scalar(row.reason)}")
    return found


def _effect(effect: str | dict[str, str]) -> str:
    if isinstance(effect, str):
        return _scalar(effect)
    return "{" + ", ".join(f"{name}: {_quoted(value)}" for name, value in effect.items()) + "}"


def _text(statement: str) -> str:
    """A block where that gives the same text back, else a quoted string."""
    lines = statement.split("\n")
    if len(lines) > 1 and all(line.isprintable() and line == line.strip(" ") for line in lines) and all(lines[:-1]) and lines[0]:
        return ("|-" if lines[-1] else "|") + "".join(f"\n    {line}" for line in lines if line)
    return _scalar(statement)


def _scalar(text: str) -> str:
    plain = text and text == text.strip() and text[0].isalnum() and text.isprintable() and ": " not in text and " #" not in text
    return text if plain and text[-1] != ":" and text.lower() not in _WORDS and not text[0].isdigit() else _quoted(text)


def _quoted(text: str) -> str:
    if text.isprintable() and "'" not in text:
        return f"'{text}'"
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else json.dumps(text)


_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
