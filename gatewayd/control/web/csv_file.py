"""A list as CSV, for spreadsheets: UTF-8, quoted, one line a row, and no cell that begins like a formula."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from gatewayd.control.web.answer import Answer

ROWS_MOST: Final = 2000
"""In one file; its `Link: <…>; rel="next"` leads to the next one."""
_TYPE: Final = "text/csv; charset=utf-8"
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")  # spreadsheets take the wide ones, too


def as_csv(rows: Iterable[Sequence[object]], names: Sequence[str] | None) -> bytes:
    """`names` None: a later file of the same list, without its line of names. A quote mark stands before a cell that would be a
    formula."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if names is not None:
        writer.writerow(names)
    for row in rows:
        writer.writerow([cell(each) for each in row])
    return text.getvalue().encode()


def csv_file(name: str, body: bytes, following: str | None = None) -> Answer:
    """`following`: the address of the next file, None at the end."""
    answer = Answer(200, body, _TYPE, (("Content-Disposition", f'attachment; filename="{name}.csv"'),))
    return answer if following is None else answer.with_header("Link", f'<{following}>; rel="next"')


def cell(value: object) -> str:
    """Text that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    text = " ".join(value) if isinstance(value, list) else str(value)
    text = text.replace("\0", "")
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text
