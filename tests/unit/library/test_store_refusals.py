"""What a store said, in a sentence."""

import errno
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from mirrorlake.library.store_refusals import disk_refusal, store_refusal

PLACE = "http://127.0.0.1:45325/lakes/x/changes/_delta_log/_last_checkpoint"
BY_DELTA = (
    "Kernel error -> Generic S3 error\n          \x1b[31m↳\x1b[0m "
    f"Error performing GET {PLACE} in 3.8ms - Server returned non-2xx status code\n"
    "           \x1b[31m↳\x1b[0m 503 Service Unavailable\n"
)
BY_OBSTORE = f"Generic S3 error: Error performing GET {PLACE} in 13 s - HTTP error: timed out"
MISSING = f'Generic GCS error: Error performing GET {PLACE}: 404 Not Found: <?xml version="1.0"?>'
RIGHTS = "The operation lacked the necessary privileges to complete for path x: 403 Forbidden"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BY_DELTA, "503 Service Unavailable; try again"),
        (BY_OBSTORE, "HTTP error: timed out; try again"),
        (MISSING, "404 Not Found; try again"),
        (RIGHTS, "403 Forbidden; try again"),
    ],
)
def test_what_a_store_said_is_one_sentence(text: str, said: str) -> None:
    problem = store_refusal(OSError(text))
    assert problem is not None and problem.exit_code == 2
    assert said in problem.message and "\n" not in problem.message and "\x1b" not in problem.message
    assert len(store_refusal(OSError(text + 9_999 * "x")).message) < 600  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), ValueError(BY_OBSTORE), OSError("closed")],
)
def test_what_a_disk_says_is_none_of_it(error: Exception) -> None:
    assert store_refusal(error) is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/lake/records"),
            "/lake/records cannot be read or written (Permission denied); look at",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "a file cannot be read or written (No space left on device); look at the room on",
        ),
        (
            OSError(errno.EMFILE, "Too many open files", "/lake/records"),
            "no more files can be opened (Too many open files); allow this process more of them",
        ),
        (
            DeltaError("Kernel error: unexpected 'g'\nstack backtrace:\n  1: core"),
            "a table of the lake cannot be read or written (Kernel error: unexpected 'g'); where",
        ),
    ],
)
def test_what_a_disk_says_ends_a_command_with_a_sentence(error: Exception, said: str) -> None:
    problem = disk_refusal(error)
    assert problem is not None and problem.exit_code == 2 and "\n" not in problem.message
    assert problem.message.startswith(said)


@pytest.mark.parametrize("error", [OSError("closed"), KeyError("x"), TimeoutError()])
def test_what_has_no_place_stays_what_it_is(error: Exception) -> None:
    """A page of where it came from is all that there is to go by."""
    assert disk_refusal(error) is None


def test_a_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_refusal(FileNotFoundError(errno.ENOENT, "No such file or directory")) is None
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        Path.cwd()
    problem = disk_refusal(caught.value)
    assert problem is not None and "is not there any more: go to another" in problem.message
