"""CD919: start method unguarded."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD919", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def start_method_unguarded(snapshot: Snapshot) -> Iterator[Finding]:
    """The start method of processes is set outside of the `__main__` guard.

    Why it hurts: with forkserver and spawn every worker imports the script again, comes to this line and
    raises "context has already been set".

    How to mend it: put it below `if __name__ == '__main__':`.

    Example:
        if __name__ == '__main__':
            multiprocessing.set_start_method('forkserver')
            main()

    Source: reproduced: RuntimeError "context has already been set".
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("multiprocessing", "set_start_method"):
        method = argument(call, 0, "method")
        plain = call.scope == "" and not call.guards and scripts.files[call.path].form == "script"
        if (
            plain
            and method is not None
            and method.literal in ("'forkserver'", "'spawn'")
            and "force" not in call.keywords
        ):
            yield at(
                call,
                "every worker imports this script and sets the start method again, which raises",
                "Put it below if __name__ == '__main__':.",
                Evidence("method", method.literal or ""),
            )
