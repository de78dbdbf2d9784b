"""The states of one HTTP/1.1 connection, seen from the server, as one table.

Rules of this file:
1. TABLE has every transition. Any other step raises, and the state does not change.
2. The file knows no socket, no clock and no parser. `http1.py` tells it each step.
3. A request is in progress in `read`, `known`, `answering` and `answered`; it still needs an answer in `read` and `known`.
4. Bytes that arrive belong to the next request in `idle`, `head` and `known`, and to the request in progress in the others.
5. Nothing leads out of `closing`.

Almost every request of an agent goes idle → known → idle; the first one of a connection goes idle → head → read → idle.
"""

from collections.abc import Mapping
from typing import Final, Literal

import h11

ConnectionState = Literal[
    "idle",  # between two requests; no byte of the next one has arrived
    "head",  # some bytes of the next request have arrived
    "read",  # a request is in progress, whose head h11 has read
    "known",  # a request is in progress, whose head was recognised; h11 never sees it
    "answering",  # the head of its answer is written, through h11
    "answered",  # all of its answer is written; the rest of its body may still be read
    "closing",  # no request follows
]
Step = Literal[
    "fed",  # bytes of the next request arrived
    "recognised",  # they are one whole request with a head seen before
    "begun",  # h11 has read its head
    "handed_to_h11",  # a recognised request needs an answer of another form, so h11 reads it after all
    "answered_plainly",  # the whole answer at once, without h11
    "answer_begun",  # its head, through h11
    "answer_ended",
    "recycled",  # all of the request was read: the connection can be used again
    "refused",  # an answer without a body that ends the connection
    "ended",  # the answer said so, or one side has closed
]

TABLE: Final[Mapping[ConnectionState, Mapping[Step, ConnectionState]]] = {
    "idle": {"fed": "head", "recognised": "known"},
    "head": {"fed": "head", "begun": "read", "refused": "closing"},
    "known": {"answered_plainly": "idle", "handed_to_h11": "read"},
    "read": {"answered_plainly": "idle", "answer_begun": "answering", "refused": "closing"},
    "answering": {"answer_ended": "answered", "ended": "closing"},
    "answered": {"recycled": "idle", "ended": "closing"},
    "closing": {},
}


def after(state: ConnectionState, step: Step) -> ConnectionState:
    """The state after the step. Raises h11.LocalProtocolError for a step that TABLE does not have."""
    follows = TABLE[state].get(step)
    if follows is None:
        raise h11.LocalProtocolError(f"a connection that is `{state}` takes no `{step}`")
    return follows
