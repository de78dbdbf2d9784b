"""Changes to an audit file that somebody with SQLite at hand could make."""

import random
import sqlite3


def random_change(connection: sqlite3.Connection, draw: random.Random) -> None:
    """One change to one place, of a kind that somebody with SQLite at hand could make."""
    table = draw.choices(["audit_events", "meta", "checkpoints"], [8, 1, 1])[0]
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    keys = {"audit_events": "id", "meta": "key", "checkpoints": "size"}
    key = keys[table]
    (chosen,) = connection.execute(
        f"SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET ?", (draw.randrange(rows),)
    ).fetchone()
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    kind = draw.random()
    if kind < 0.08:
        connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (chosen,))
    elif kind < 0.12 and table == "audit_events":
        connection.execute("DELETE FROM audit_events WHERE id >= ?", (chosen,))
    elif kind < 0.16 and table == "audit_events":
        connection.execute(
            f"INSERT INTO audit_events SELECT substr(id, 1, 25) || '!', {', '.join(columns[1:12])}, NULL, NULL, NULL"
            " FROM audit_events WHERE id = ?",
            (chosen,),
        )
    elif kind < 0.22 and table == "audit_events":
        (other,) = connection.execute("SELECT id FROM audit_events ORDER BY random() LIMIT 1").fetchone()
        connection.execute("UPDATE audit_events SET id = 'x' WHERE id = ?", (chosen,))
        connection.execute("UPDATE audit_events SET id = ? WHERE id = ?", (chosen, other))
        connection.execute("UPDATE audit_events SET id = ? WHERE id = 'x'", (other,))
    else:
        column = draw.choice(columns)
        (value,) = connection.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (chosen,)).fetchone()
        connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {key} = ?", (altered(value, draw), chosen))


def altered(value: object, draw: random.Random) -> object:
    match value:
        case int():
            return value + draw.choice([-1, 1, 1000])
        case bytes() if value:
            place = draw.randrange(len(value))
            return value[:place] + bytes([value[place] ^ (1 << draw.randrange(8))]) + value[place + 1 :]
        case str() if value:
            place = draw.randrange(len(value))
            return value[:place] + draw.choice(["", " ", "x", "1", '"', "\n", chr(ord(value[place]) ^ 1)]) + value[place + 1 :]
        case _:
            return draw.choice(["", "x", 0, b"\x00"])
