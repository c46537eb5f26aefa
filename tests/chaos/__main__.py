"""`make chaos`: schedules of the simulation (`--schedules N`), or kills of real processes and
brokers (`--kills N`)."""

import argparse
import random
import sys
import time

#: Schedules of one seed: a run of more goes through several.
BATCH = 1_000


def main() -> int:
    """Run what is asked for; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--schedules", type=int, help="so many simulated schedules")
    what.add_argument("--kills", type=int, help="so many kills of a real driver, worker or broker")
    parser.add_argument("--seed", type=int, help="the same again; a new one without it")
    parser.add_argument(
        "--processes", type=int, default=1, help="of `run`, which stand by for each other"
    )
    parser.add_argument("--only", help="kills of this kind, such as driver")
    told = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if told.seed is None else told.seed
    return (
        kill(told.kills, seed, told.processes, told.only)
        if told.kills
        else schedule(told.schedules, seed)
    )


def schedule(schedules: int, seed: int) -> int:
    """Run simulated schedules, a batch a seed, and name the seed that fails."""
    from tests.simulation.run import simulate

    began, done = time.monotonic(), 0
    while done < schedules:
        count = min(BATCH, schedules - done)
        say(f"seed {seed}: {count} schedules")
        try:
            simulate(count, seed)
        except AssertionError as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            say(f'{error}\n{notes}\nagain: make chaos ARGS="--schedules {count} --seed {seed}"')
            return 1
        done, seed = done + count, seed + 1
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
