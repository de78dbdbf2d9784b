"""The long run: `python -m tests.control.random_run --minutes 30`: two replicas of the control plane over one PostgreSQL.

Both stand behind a balancer, and each is killed (SIGKILL) at random, under load: linked gateways push their audit and poll,
agents read, are refused and write, reviewers decide what is held at random, policies are published. In the end all is compared
(`system/comparison.py`): nothing is lost, doubled or decided twice, no write ran without what its policy asks, proofs verify.

With `--system` it is the whole product: the replicas run engines, agents are of both eras, and every ten seconds something
befalls any part: replicas, gateways and engines killed, stopped or hung, both PostgreSQL crashed, the network cut.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random

import trio

from tests import places
from tests.conftest import reserved_port
from tests.control.linked_rig import new_project
from tests.control.system.comparison import Comparison
from tests.control.system.faults import Faults
from tests.control.system.load import POLICIES, Heard, Load
from tests.control.system.stage import Stage

GATEWAYS = 3  # one of them an engine, with --system
AGENTS_OF_EACH = 3
PACE_S = 0.5
POLICY_S = 10.0
SYSTEM_POLICY_S = 60.0
KILL_S = 30.0
FAULT_S = 10.0


async def run(stage: Stage, heard: Heard, dice: Random, seconds: float) -> None:
    faults = Faults(stage, dice)
    async with trio.open_nursery() as network:
        network.start_soon(stage.switch.serve, stage.switch_port)
        owner, reviewer = await stage.people()
        project = await new_project(owner, stage)
        await stage.project(project)
        tokens = [await project.token(f"agent {number}") for number in range(AGENTS_OF_EACH)]
        await project.publish(POLICIES["held"])
        await stage.enrol(project)
        load = Load(project, heard, dice, pace_s=PACE_S, policy_s=SYSTEM_POLICY_S if stage.has_engines else POLICY_S)
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for url in stage.agent_urls():
                    for number, token in enumerate(tokens):
                        is_stateless = stage.has_engines and number == 0
                        nursery.start_soon(partial(load.agent, url, token, is_stateless=is_stateless))
                nursery.start_soon(load.reviewer, owner, "Ada")
                nursery.start_soon(load.reviewer, reviewer, "Grace")
                nursery.start_soon(load.publisher)
                if stage.has_engines:
                    nursery.start_soon(faults.any_part, FAULT_S)
                else:
                    for replica in stage.replicas:
                        nursery.start_soon(faults.kill_each, replica, KILL_S)
        print(f"the load is over: {heard.counts.total()} answers, {faults.counts.total()} faults", flush=True)
        await stage.settle(tokens[0])
        await compare(stage, heard, project.id, dice)
        for part in (*stage.gateways, *stage.replicas):
            assert await part.stop() == 0, f"{part.name} did not stop in order"
        network.cancel_scope.cancel()
    for part in (*stage.gateways, *stage.replicas):
        assert not part.unexpected(), f"{part.name}: {part.unexpected()[:3]}"
    show({**heard.counts, **faults.counts})


async def compare(stage: Stage, heard: Heard, project_id: str, dice: Random) -> None:
    console = stage.console()
    try:
        org_id = await stage.organisation(console)
        comparison = Comparison(console, org_id, project_id, stage.files(), stage.ledger(), heard)
        await comparison.run(stage.witness(console), dice)
    finally:
        console.store.close()
    show(comparison.counts)


def show(counts: dict[str, int]) -> None:
    for what, count in sorted(counts.items()):
        print(f"{count:9} {what}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--system", action="store_true", help="every part, and a fault every ten seconds on any of them")
    parser.add_argument("--logs", type=Path, help="folder in which the logs stay")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="gw", dir=places.ROOT) as place, ExitStack() as stack:
        os.chmod(place, 0o755)
        gateways = GATEWAYS - 1 if given.system else GATEWAYS
        ports = [stack.enter_context(reserved_port()) for _ in range(3 + gateways)]
        dice = Random(given.seed)
        stage = Stage(Path(place), ports, dice, has_engines=given.system, logs=given.logs)
        stack.callback(stage.close)
        stage.open()
        trio.run(run, stage, Heard(), dice, given.minutes * 60)
    print("nothing is lost, doubled or decided twice; every write was allowed; all proofs verify")
    return 0


if __name__ == "__main__":
    sys.exit(main())
