"""CD922: variable nothing reads."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot

#: The variable and what to write instead.
UNREAD = {
    "CHAINERMN_FORCE_ABORT_ON_EXCEPTIONS": "os.environ['CHAINERMN_FORCE_ABORT_ON_EXCEPTION'] = '1'",
    "CHAINER_PRINT_PROFILE": "with chainer.function_hooks.TimerHook() as hook:",
}


@rule("CD922", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def variable_nothing_reads(snapshot: Snapshot) -> Iterator[Finding]:
    """An environment variable is set that nothing reads.

    Why it hurts: the script looks protected or profiled and is not: one rank raises and the others hang all
    the same.

    How to mend it: the variable that ChainerMN reads is CHAINERMN_FORCE_ABORT_ON_EXCEPTION (without S),
    before chainermn is imported.

    Example:
        os.environ['CHAINERMN_FORCE_ABORT_ON_EXCEPTIONS'] = '1'   # wrong: nothing reads it
        os.environ['CHAINERMN_FORCE_ABORT_ON_EXCEPTION'] = '1'    # right

    Source: chainermn/global_except_hook.py of Chainer 7.8.1; no file of it reads CHAINER_PRINT_PROFILE.
    """
    scripts = scripts_of(snapshot)
    for setting in scripts.settings:
        for target in setting.targets:
            for name, instead in UNREAD.items():
                if target == f"os.environ['{name}']":
                    yield at(setting, f"{name} is read by nothing", f"Write {instead} instead.")
    for call in scripts.methods("setdefault", "putenv"):
        for name, instead in UNREAD.items():
            if call.args and call.args[0].literal == f"'{name}'" and call.names[0].startswith("os."):
                yield at(call, f"{name} is read by nothing", f"Write {instead} instead.")
