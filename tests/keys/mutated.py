"""Copies of a document that differ from it."""

import random


def mutated(data: bytes, dice: random.Random) -> bytes:
    """A copy that differs: bits, bytes, pieces cut, doubled, moved."""
    while True:
        copy = bytearray(data)
        for _ in range(dice.randint(1, 3)):
            at, to = sorted((dice.randrange(len(copy) + 1), dice.randrange(len(copy) + 1)))
            match dice.randrange(6):
                case 0 if at < len(copy):
                    copy[at] ^= 1 << dice.randrange(8)
                case 1 if at < len(copy):
                    copy[at] = dice.randrange(256)
                case 2:
                    del copy[at : min(to, at + 40)]
                case 3:
                    copy[at:at] = copy[at : min(to, at + 40)]
                case 4:
                    copy[at:at] = dice.choice([b" ", b'"', b"\\u0061", b"=", b"\0", b"{}", b"[", b"1e9"])
                case _:
                    copy[at:to] = dice.randbytes(dice.randrange(8))
        if copy != data:
            return bytes(copy)
