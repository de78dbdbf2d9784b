"""What must hold for any text at all, without a database: a decision and never an exception, and a fingerprint of its own."""

from random import Random
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Denied, Held
from gatewayd.policy.file.model import Policy
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.properties.model import Model
from tests.properties.mutations import PIECES, reformatted
from tests.properties.statements import generate

WORDS: Final = (
    "select", "from", "where", "(", ")", ",", "1", "'x'", "id", "users", "secrets", "union", "all", "with", "recursive", "as",
    "case", "when", "then", "end", "[", "]", "::", "int", "not", "-", "+", "~", "@", "/*", "*/", "--", "\n", '"', "'", "$$",
    "$q$", "e'", "u&'", "b'", "x'", "\\", ".", "*", ";", "in", "array", "row", "join", "on", "values", "insert", "into",
    "update", "set", "=", "delete", "merge", "using", "matched", "do", "explain", "analyze", "lateral", "1.5e", "0x", "1_",
    "$1", ":=", "=>",
)  # fmt: skip


def any_text(chance: Random, model: Model, most: int = 2000) -> str:
    """Bytes, words in any order, one piece many times over, or a broken statement; at most about `most` characters."""
    length = min(chance.randrange(1, most), chance.randrange(1, most))
    match chance.randrange(6):
        case 0:
            return bytes(chance.randrange(256) for _ in range(min(length, 400))).decode(
                chance.choice(("latin-1", "utf-16-le")), "replace"
            )
        case 1:
            return " ".join(chance.choice(WORDS) for _ in range(length // 4 + 1))
        case 2:
            return "".join(chance.choice((*WORDS, *PIECES)) for _ in range(length // 4 + 1))
        case 3:
            piece = "".join(chance.choice((*WORDS, " ")) for _ in range(chance.randrange(1, 5)))
            return chance.choice(("", "SELECT ", "SELECT * FROM ")) + piece * (length // len(piece) + 1)
        case 4:
            text = generate(chance, chance, model)
            return text[: chance.randrange(len(text) + 1)] + chance.choice(PIECES) + text[chance.randrange(len(text) + 1) :]
        case _:
            text = generate(chance, chance, model, 2)
            return chance.choice((" UNION ALL ", ", ", " ")).join([text] * min(length // (len(text) + 1) + 1, 200))


def decides(sql: str, policy: Policy, catalog: Catalog) -> str | None:
    """What is wrong with the decision on a text; None when it is one of the three."""
    try:
        decision = decide(analyze(sql), policy, catalog)
    except Exception as error:
        return repr(error)
    if isinstance(decision, Denied) and not decision.reason:
        return "a denial without a reason"
    return None if isinstance(decision, Allowed | Denied | Held) else f"{decision!r} is no decision"


def fingerprint_differs(seed: int, model: Model) -> tuple[str, str] | None:
    """Two texts of one shape, with other literals or another format, whose fingerprints differ; None where all is well."""
    shapes = [generate(Random(seed), Random(literals), model, twists=False) for literals in (seed, seed + 1)]
    again = reformatted(shapes[0], Random(seed))
    statements = [analyze(text) for text in shapes]
    if not all(isinstance(each, Statement) and each.category != "unsupported" for each in statements):
        return None  # the body of CREATE FUNCTION is text, and of that the fingerprint keeps every word
    if statements[0].fingerprint != statements[1].fingerprint:
        return shapes[0], shapes[1]
    if again is not None and analyze(again).fingerprint != statements[0].fingerprint:
        return shapes[0], again
    return None
