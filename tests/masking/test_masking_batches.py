"""Whole batches of rows are masked at their keys: byte for byte what a slow reading of each row's JSON gives."""

import hmac
import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatewayd.masking.dictionaries import ENTRIES
from gatewayd.masking.families import misfit
from gatewayd.masking.results import PostExec, RowMask
from gatewayd.masking.transforms import Transform, transform
from gatewayd.policy.model import ConsistentHash, FullRedact, Mask, NullOut, Partial, Pseudonymize
from tests.masking.masking_table import MASKS, SALT

NAMES = ["note", "mail", "a", "a_2", "", ",", ":b", "}", " x", 'q"', "\\", "ü", "note:", ',"note', "]", "\t"]
TEXTS = ["", "new", ',"note":', '","note":"', '{"note":1}', "\\", '\\"', "x,", ":b", "ü•", "\x01", "null", "***", "  x "]
MASKED: list[Mask] = [FullRedact(), NullOut(), ConsistentHash(), Partial(keepStart=1, keepEnd=2), Pseudonymize("name")]

strings = st.sampled_from(TEXTS) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
keys = st.sampled_from(NAMES) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)
blanks = st.sampled_from(["", "", " ", "\n\t"])


@st.composite
def stored_json(draw: st.DrawFn) -> bytes:
    """The text of a json column: with the blanks and in the spelling that it was stored with."""
    separators = (",", ":") if draw(st.booleans()) else (" , ", ": ")
    text = json.dumps(draw(json_values), ensure_ascii=draw(st.booleans()), separators=separators)
    return (draw(blanks) + text + draw(blanks)).encode()


def a_string(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


text_values = st.none().map(lambda _: b"null") | strings.map(a_string)


@st.composite
def results(draw: st.DrawFn) -> tuple[list[str], dict[int, Mask], list[list[bytes]]]:
    """Names of the columns, the masks by place, and rows of values. Other masks than those for any type are on texts alone."""
    names = draw(st.lists(keys, min_size=1, max_size=5, unique=True))
    places = draw(st.sets(st.sampled_from(range(len(names))), min_size=1))
    masks = {place: draw(st.sampled_from(MASKED)) for place in sorted(places)}
    kinds = [stored_json() if misfit(masks.get(place, NullOut()), "json") is None else text_values for place in range(len(names))]
    kinds = [draw(st.sampled_from([text_values, kind])) for kind in kinds]
    return names, masks, draw(st.lists(st.tuples(*kinds).map(list), min_size=1, max_size=6))


def row_of(names: list[str], values: list[bytes]) -> bytes:
    return b"{" + b",".join(a_string(name) + b":" + value for name, value in zip(names, values, strict=True)) + b"}"


@given(results())
@example((["note", "b"], {0: FullRedact()}, [[b'{"a":1,"b":"secret"}', b"1"]]))
@example((["m", "a", ":b", ",", "c"], {0: FullRedact(), 3: FullRedact()}, [[b"1", b'"x,"', b"1", b'"secret"', b"2"]]))
@example((["a", "note"], {1: FullRedact()}, [[b'[{"x":1,"note":2}]', b'"secret"'], [b"1", b'"secret"']]))
def test_a_batch_is_masked_as_each_value_is(result: tuple[list[str], dict[int, Mask], list[list[bytes]]]) -> None:
    names, masks, rows = result
    transforms = {
        place: transform(mask, "other" if misfit(mask, "json") is None else "text", SALT) for place, mask in masks.items()
    }

    def masked(place: int, value: bytes) -> bytes:
        """The value alone is replaced: blanks beside it belong to the row."""
        bare = value.strip(b" \t\r\n")
        before, _, behind = value.partition(bare)
        return before + slowly(masks[place])(bare) + behind if place in masks else value

    mask = RowMask(PostExec(len(names), tuple((place, names[place], each) for place, each in transforms.items()), ()))
    expected = [row_of(names, [masked(place, value) for place, value in enumerate(row)]) for row in rows]
    assert mask.batch([row_of(names, row) for row in rows]) == expected
    assert [mask(row_of(names, row)) for row in rows] == expected


def slowly(mask: Mask) -> Callable[[bytes], bytes]:
    """One value by the words of the contract."""

    def apply(value: bytes) -> bytes:
        if value == b"null" or isinstance(mask, NullOut):
            return b"null"
        if isinstance(mask, FullRedact):
            return b'"***"'
        text = json.loads(value)
        digits = hmac.new(SALT, text.encode(), "sha256").hexdigest()
        if isinstance(mask, ConsistentHash):
            return a_string(digits[:32])
        if isinstance(mask, Partial):
            hidden = len(text) - mask.keepStart - mask.keepEnd
            shown = text[: mask.keepStart] + "•" * hidden + text[mask.keepStart + hidden :]
            return a_string(shown if hidden > 0 else "•" * max(len(text), 1))
        assert isinstance(mask, Pseudonymize)
        entries = ENTRIES[mask.kind]
        chosen = int(digits[32:47], 16) % 256
        return a_string(entries[chosen] if entries[chosen] != text else entries[(chosen + 1) % 256])

    return apply


@given(st.lists(text_values, max_size=12), st.sampled_from([mask for mask in MASKS if misfit(mask, "text") is None]))
def test_a_batch_of_texts_is_each_text(values: list[bytes], mask: Mask) -> None:
    for kind in ("text", "blank-padded"):
        one_by_one = transform(mask, kind, SALT)
        assert one_by_one.batch(values) == [one_by_one(value) for value in values]


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.sampled_from([7, -20])
number_values = st.sampled_from([b"null", b'"NaN"', b'"-Infinity"']) | numbers.map(lambda number: f"{number:f}".encode())


@given(st.lists(number_values, max_size=12), st.sampled_from([mask for mask in MASKS if misfit(mask, "numeric") is None]))
def test_a_batch_of_numbers_is_each_number(values: list[bytes], mask: Mask) -> None:
    one_by_one = transform(mask, "numeric", SALT)
    assert one_by_one.batch(values) == [one_by_one(value) for value in values]


@pytest.mark.parametrize("rows", [[], [b'{"a":1,"b":2}'], [b'{"a":1,"b":2}'] * 3000])
def test_batches_of_any_length(rows: list[bytes]) -> None:
    redact: Transform = transform(FullRedact(), "integer", SALT)
    assert RowMask(PostExec(2, ((1, "b", redact),), ())).batch(rows) == [b'{"a":1,"b":"***"}'] * len(rows)
