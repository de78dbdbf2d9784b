"""`gatewayd control key`: the secrets, by key id. Values are shown by `new` alone."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from gatewayd.cli.control.configuration import control_settings_or_exit
from gatewayd.config.exit_codes import FAILURE

if TYPE_CHECKING:
    from gatewayd.control.keyring.ring import Ring
    from gatewayd.control.settings import ControlSettings

NAMES = ("CONTROL_AUTH_SECRET", "CONTROL_KMS_KEY", "CONTROL_TOKEN_PEPPER", "CONTROL_SIGNING_KEY")
named = click.argument("name", type=click.Choice(NAMES))


@click.group()
def command() -> None:
    """Secrets of the control plane: a ring of values each. The first makes, all of them open.

    To change one: `key add` on every replica (restart them), then `key use`, and `key drop` once nothing needs the former value.
    Secrets that come from the environment or from credentials are changed there, in the same order.
    """


@command.command()
def new() -> None:
    """Print a new value, for CONTROL_AUTH_SECRET and its like."""
    from gatewayd.control.keyring.ring import VALUE_BYTES, value_text

    click.echo(value_text(os.urandom(VALUE_BYTES)))


@command.command(name="list")
def listing() -> None:
    """The key ids of each secret, the current one first."""
    from gatewayd.control.keyring.stored import read_stored

    settings = control_settings_or_exit()
    for name in NAMES:
        given = settings.given.get(name)
        ring = given or read_stored(settings.state, name)
        source = "environment" if given else "state folder"
        click.echo(f"{name:<22} {' '.join(key.key_id for key in ring.keys)}   ({source})")


@command.command()
@named
def add(name: str) -> None:
    """Add a next value to a secret of the state folder."""
    from gatewayd.control.keyring.ring import VALUE_BYTES, Ring, key_of

    settings, ring = _stored(name)
    key = key_of(os.urandom(VALUE_BYTES))
    _write(settings, name, Ring((*ring.keys, key)))
    click.echo(f"added {key.key_id}; restart every replica, then: gatewayd control key use {name} {key.key_id}")


@command.command()
@named
@click.argument("key_id")
def use(name: str, key_id: str) -> None:
    """Make a value the current one."""
    from gatewayd.control.keyring.ring import Ring

    settings, ring = _stored(name)
    key = ring.by_id(key_id) or _unknown(name, key_id)
    _write(settings, name, Ring((key, *(each for each in ring.keys if each != key))))
    click.echo(f"{key_id} is current from the next start on")


@command.command()
@named
@click.argument("key_id")
def drop(name: str, key_id: str) -> None:
    """Remove a value; the current one stays."""
    from gatewayd.control.keyring.ring import Ring

    settings, ring = _stored(name)
    key = ring.by_id(key_id) or _unknown(name, key_id)
    if key == ring.current:
        click.echo(f"{key_id} is the current value of {name}; make another one current first", err=True)
        sys.exit(FAILURE)
    _write(settings, name, Ring(tuple(each for each in ring.keys if each != key)))
    click.echo(f"removed {key_id}")


def _stored(name: str) -> "tuple[ControlSettings, Ring]":
    from gatewayd.control.keyring.stored import read_stored

    settings = control_settings_or_exit()
    if name in settings.given:
        click.echo(f"{name} comes from the environment or a credential; change it there", err=True)
        sys.exit(FAILURE)
    return settings, read_stored(settings.state, name)


def _write(settings: "ControlSettings", name: str, ring: "Ring") -> None:
    from gatewayd.control.keyring.stored import write_ring

    write_ring(settings.state, name, ring)


def _unknown(name: str, key_id: str) -> "NoReturn":
    click.echo(f"{name} has no key {key_id}; `gatewayd control key list` shows those it has", err=True)
    sys.exit(FAILURE)
