"""Regexes that mean the same to Java (java.util.regex) and Python (re.ASCII), and equivalents."""

import re

from mirrorlake.naming.policy import escape

_GROUP = re.compile(r"\((?:\?(?:[:=!]|<[=!]|[is]+:)|(?![?]))")
_ESCAPE = re.compile(r"\\(?:[^a-zA-Z0-9]|[dDwWsSbBAtnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_CLASS_ESCAPE = re.compile(r"\\(?:[^a-zA-Z0-9]|[dDwWsStnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_IN_NAMES = re.compile(r"[a-zA-Z0-9._-]")
_META = frozenset(".^$|()[]{}*+?\\")

#: The body of a Java character class without a set operation.
_BODY = r"(?:\\.|[^\[\]&\\]|&(?!&))+"
_QUOTED = re.compile(r"\\Q(?P<text>.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_SETS = re.compile(
    rf"\\.|\[(?!\^)(?P<one>{_BODY})\[(?!\^)(?P<other>{_BODY})\]\]"
    rf"|\[(?!\^)(?P<of>{_BODY})&&(?:\[(?P<within>\^?{_BODY})\]|(?P<bare>{_BODY}))\]"
    rf"|\[\^?{_BODY}\]",
    re.DOTALL,
)
_NAMED = re.compile(
    rf"(?P<set>\[\^?{_BODY}\])|\\(?P<sign>[pP])\{{(?P<name>\w+)\}}|\\."
    r"|(?P<group>\(\?<[A-Za-z][A-Za-z0-9]*>)",
    re.DOTALL,
)
_CLASS = re.compile(r"\\p\{(?P<name>\w+)\}|\\.", re.DOTALL)
_FLAGS = re.compile(r"(?P<begin>\^?)\(\?(?P<flags>[is]+)\)(?P<rest>.*)", re.DOTALL)
_PIECE = re.compile(rf"\[\^?{_BODY}\]|\\.|\{{\d+(?:,\d*)?\}}|.", re.DOTALL)
#: The members of Java's POSIX classes, which are ASCII, as the body of [ ].
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "XDigit": "0-9a-fA-F",
    "Punct": r"!-/:-@\[-`\{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "ASCII": r"\x00-\x7f",
}


def check_pattern(pattern: str) -> str | None:
    """Why a regex cannot be used; None if it compiles and means the same to Java and Python.

    Patterns are joined; back references and named groups would count across all, and are refused.
    """
    position, in_class = 0, False
    while position < len(pattern):
        step = _class_token(pattern, position) if in_class else _token(pattern, position)
        if isinstance(step, str):
            return step
        opened, closed = (
            not in_class and pattern[position] == "[",
            in_class and pattern[position] == "]",
        )
        in_class = (in_class or opened) and not closed
        position += step
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        hint = "; write .* for all names" if pattern == "*" else ""
        return f"{error}{hint}"
    return None


def _token(pattern: str, position: int) -> int | str:
    """Length of the token outside a character class at `position`, or why it is refused."""
    char = pattern[position]
    if char == "[":
        start = 2 if pattern.startswith("[^", position) else 1
        if pattern.startswith("]", position + start):
            return "write ] as \\] within [ ]"
        return start
    for lead, known in (("\\", _ESCAPE), ("(", _GROUP), ("{", _REPEAT)):
        if char == lead:
            match = known.match(pattern, position)
            return len(match[0]) if match else _refusal(pattern, position)
    return 1


def _class_token(pattern: str, position: int) -> int | str:
    """Length of the token inside a character class at `position`, or why it is refused."""
    if pattern[position] == "\\":
        match = _CLASS_ESCAPE.match(pattern, position)
        return len(match[0]) if match else _refusal(pattern, position)
    if pattern[position] == "[" or pattern.startswith(("&&", "||", "~~", "--"), position):
        return (
            f"{pattern[position]} within [ ] means a set operation to Java or Python; write it "
            "with a backslash"
        )
    return 1


def _refusal(pattern: str, position: int) -> str:
    part = pattern[position : position + 3]
    return (
        f"{part!r} at position {position} is not a syntax that Java and Python share, or it "
        "counts groups"
    )


def shared_form(pattern: str) -> str | None:
    """Rewrite a Java regex that `check_pattern` refuses in shared syntax; None if impossible."""
    text = _QUOTED.sub(
        lambda part: part[0] if part["text"] is None else escape(part["text"]), pattern
    )
    text = _NAMED.sub(_plain, _SETS.sub(_without_sets, text))
    if match := _FLAGS.fullmatch(text):
        text = f"{match['begin']}(?{match['flags']}:{match['rest']})"
    return text if text != pattern and check_pattern(text) is None else None


def _without_sets(part: re.Match[str]) -> str:
    """Rewrite a union as one class, and an intersection as a class with a lookahead."""
    if part["one"] is not None and not (part["one"][-1] == "-" or part["other"][0] == "-"):
        return f"[{part['one']}{part['other']}]"
    if part["of"] is not None:
        return f"(?:(?=[{part['within'] or part['bare']}])[{part['of']}])"
    return part[0]


def _plain(part: re.Match[str]) -> str:
    """Rewrite a POSIX class as its characters, and drop the name of a group."""
    if part["set"] is not None:
        return _CLASS.sub(lambda one: _POSIX.get(one["name"] or "", one[0]), part[0])
    if part["name"] in _POSIX:
        return f"[{'^' if part['sign'] == 'P' else ''}{_POSIX[part['name']]}]"
    return "(?:" if part["group"] else part[0]


def never_in_names(pattern: str) -> str | None:
    """A character of every match that no topic name has; None if none. Ignores groups' content."""
    strays, depth = [""], 0
    pieces = _PIECE.findall(pattern)
    for piece, behind in zip(pieces, [*pieces[1:], ""], strict=True):
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece == "|":
            strays.append("")
        elif depth == 0 and behind[:1] not in ("?", "*", "{") and _is_stray(piece):
            strays[-1] = strays[-1] or piece[-1]
    return strays[0] if all(strays) else None


def _is_stray(piece: str) -> bool:
    literal = piece not in _META if len(piece) == 1 else piece[0] == "\\" and not piece[1].isalnum()
    return literal and not _IN_NAMES.fullmatch(piece[-1])
