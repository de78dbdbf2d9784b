"""Bodies: a page's form or the API's JSON, decoded to the route's struct; what does not fit is told by its field."""

from typing import Any, Final, get_origin
from urllib.parse import parse_qsl

import msgspec
import trio
from quart import request
from werkzeug.exceptions import RequestEntityTooLarge

from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import FormProblem
from gatewayd.control.web.route import FORM_BYTES, JSON_BYTES, Route

BODY_S: Final = 30.0
_FIELDS: Final = 2000


async def read_body(route: Route) -> object:
    """Of the current request. Raises Refusal 413, 408, 415 or FormProblem."""
    if route.body is None:
        await _bytes(FORM_BYTES)
        return None
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if route.body is bytes:
        return await _bytes(JSON_BYTES)
    wanted = "application/json" if route.is_api else "application/x-www-form-urlencoded"
    if kind != wanted:
        raise Refusal(415, f"expected {wanted}")
    data = await _bytes(JSON_BYTES if route.is_api else FORM_BYTES)
    return decode_json(data, route.body) if route.is_api else decode_form(data, route.body)


def decode_json(data: bytes, shape: type) -> object:
    try:
        found: object = msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormProblem(str(error)) from None
    return found


def decode_form(data: bytes, shape: type) -> object:
    """A field of `list` takes every value of its name, another one exactly one. A form is UTF-8 without NUL."""
    try:
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except ValueError:
        raise FormProblem("the form is not UTF-8, or has too many fields") from None
    lists = {field.encode_name for field in msgspec.structs.fields(shape) if get_origin(field.type) in (list, tuple)}
    values: dict[str, Any] = {}
    for name, value in pairs:
        if "\0" in value:
            raise FormProblem(f"`{name[:50]}` holds a NUL")
        text = value.replace("\r\n", "\n")  # as browsers send the line ends of a text area
        if name in lists:
            values.setdefault(name, []).append(text)
        elif name in values:
            raise FormProblem(f"`{name[:50]}` was sent twice")
        else:
            values[name] = text
    try:
        found: object = msgspec.convert(values, shape, strict=False)
    except msgspec.ValidationError as error:
        raise FormProblem(str(error)) from None
    return found


async def _bytes(at_most: int) -> bytes:
    body = bytearray()
    try:
        with trio.fail_after(BODY_S):
            async for part in request.body:
                body += part
                if len(body) > at_most:
                    raise Refusal(413, f"this is longer than {at_most} bytes", headers=(("Connection", "close"),))
    except trio.TooSlowError:
        raise Refusal(408, f"the body did not arrive within {BODY_S:g} s", headers=(("Connection", "close"),)) from None
    except RequestEntityTooLarge:
        raise Refusal(413, f"this is longer than {at_most} bytes", headers=(("Connection", "close"),)) from None
    return bytes(body)
