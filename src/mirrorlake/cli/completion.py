"""What a shell offers behind an option, once `mirrorlake --install-completion` was run."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import typer

from mirrorlake.library import names_known

#: The variable in which typer passes the shell, such as `complete_bash`.
_ASKED_BY = "_MIRRORLAKE_COMPLETE"
#: zsh runs typer's script at the first Tab, as the function _mirrorlake; the script only registers
#: completion for later, and offers nothing for that Tab.
_LOADED = "compdef %(complete_func)s %(prog_name)s\n"
_OFFERS = '[[ $funcstack[1] != _%(prog_name)s ]] || %(complete_func)s "$@"\n'
_HARMLESS = re.compile(r"[\w@%+=:,./-]")


class _Word(str):
    """A name as the shell is to have it. Typer leaves out what does not begin with what was typed,
    which a word does not that has a backslash more."""

    def startswith(self, *_: object) -> bool:
        """Whether it is offered: `_offering` has chosen."""
        return True


def offer_at_the_first_tab() -> None:
    """Have the script that is installed for zsh offer something at once. A typer whose script is
    another one is left alone."""
    try:
        from typer import _completion_shared
    except ImportError:
        return
    scripts: dict[str, str] = getattr(_completion_shared, "_completion_scripts", {})
    script = scripts.get("zsh", "")
    if script.endswith(_LOADED):
        scripts["zsh"] = script + _OFFERS


def for_bash(name: str, typed: str) -> str:
    """A name as bash is to have it behind what was typed so far: it puts the word into the line as
    it is, where `>` would begin the name of a file. Pure."""
    quoted = any(typed.rpartition("\n")[2].startswith(quote) for quote in "'\"")
    return name if quoted else "".join(c if _HARMLESS.match(c) else f"\\{c}" for c in name)


def _offering(known: Callable[[Path], list[str]]) -> Callable[[typer.Context, str], list[str]]:
    def offered(context: typer.Context, incomplete: str) -> list[str]:
        try:
            names = known(Path(context.find_root().params["config"]))
        except Exception:  # noqa: BLE001 - whatever it is, a line that is being typed is no place to say so
            return []
        chosen = [name for name in names if name.startswith(incomplete)]
        if os.environ.get(_ASKED_BY) == "complete_bash":
            typed = os.environ.get("COMP_WORDS", "")
            chosen = [for_bash(name, typed) for name in chosen]
        return [_Word(name) for name in chosen]

    return offered


FLOWS = _offering(names_known.flows)
TOPICS = _offering(names_known.topics)
GROUPS = _offering(names_known.groups)
FLOW = typer.Option(..., "--flow", help="The flow, as source->target.", autocompletion=FLOWS)
ONLY_FLOWS = typer.Option(
    [], "--flow", help="Only this flow; may be given several times.", autocompletion=FLOWS
)
