"""What `mirrorlake --help` shows: commands in groups, each in one line that is whole at 80
columns."""

from typing import Any

from typer.core import TyperGroup


class Overview(TyperGroup):
    """Shows commands under the panels that they were registered with, as plain text: typer does so
    by Rich only, which takes longer to import than all the rest."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each panel as a section of its own, in the order of its first command."""
        shown = {name: one for name, one in self.commands.items() if not one.hidden}
        width = max(map(len, shown))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in shown.items():
            row = (f"{name:{width}}", command.short_help or "")
            panels.setdefault(getattr(command, "rich_help_panel", None) or "Others", []).append(row)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)
