"""`make chaos`: schedules of the simulation (`--schedules N`), or kills of real processes and
brokers (`--kills N`)."""

import argparse
import itertools
import random
import sys
import time


def main() -> int:
    """Run what is asked for; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--schedules", type=int, help="so many simulated schedules, of all kinds")
    what.add_argument("--kills", type=int, help="so many kills of a real driver, worker or broker")
    parser.add_argument("--seed", type=int, help="the same again; a new one without it")
    parser.add_argument(
        "--processes", type=int, default=1, help="of `run`, which stand by for each other"
    )
    parser.add_argument("--only", help="kills, or schedules, of this kind, such as driver")
    told = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if told.seed is None else told.seed
    return (
        kill(told.kills, seed, told.processes, told.only)
        if told.kills
        else schedule(told.schedules, seed, told.only)
    )


def schedule(schedules: int, seed: int, only: str | None) -> int:
    """Run simulated schedules, of each kind its share in turn, each time with the next seed; name
    the kind and the seed that fail."""
    from tests.simulation.kinds import KINDS

    if only is not None and only not in KINDS:
        raise SystemExit(f"no kind of schedule is called {only}; there are {', '.join(KINDS)}")
    began, done = time.monotonic(), 0
    kinds = itertools.cycle([only] if only else KINDS)
    while done < schedules:
        name = next(kinds)
        count = min(KINDS[name].share, schedules - done)
        say(f"{name}, seed {seed}: {count} schedules")
        try:
            KINDS[name].run(count, seed)
        except AssertionError as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            again = f"--schedules {count} --seed {seed} --only '{name}'"
            say(f'{error}\n{notes}\nagain: make chaos ARGS="{again}"')
            return 1
        done, seed = done + count, seed + count
    say(f"{done} schedules, nothing wrong, {done / (time.monotonic() - began):.1f} a second")
    return 0


def kill(kills: int, seed: int, processes: int, only: str | None) -> int:
    """Kill real processes and brokers."""
    from tests.chaos.real import main as run

    return int(run(kills, seed, processes, only) or 0)


def say(text: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
