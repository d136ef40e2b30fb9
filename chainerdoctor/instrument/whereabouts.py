"""From a ring's content to where its rank is. Pure; the watcher in a rank and the report afterwards both use it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from chainerdoctor.facts.stall import CommunicatorCall, Initialised, Whereabouts
from chainerdoctor.instrument.ring import RingContent
from chainerdoctor.instrument.training import PHASES

#: A watcher that has not been heard of for so long does not run, in seconds.
FROZEN_S = 5.0
#: So many of the last calls are told.
_HISTORY = 48
#: Operations in which mpi4py keeps the GIL while it waits, so that no watcher runs beside them: seen with 4.1.
HOLDS_THE_GIL = ("allreduce_obj",)


def whereabouts(content: RingContent, silent_s: float = 0.0, died: bool = False, quiet_s: float = 0.0) -> Whereabouts:
    """Where a rank is.

    ``quiet_s`` is for how long a living process has given no heartbeat, ``silent_s`` for how long it has used no CPU
    since then either.
    """
    beat, end = content.beat, content.end
    state = "inside" if content.inside_number else "outside"
    error = ""
    if end is not None:
        how, code = _text(end, "how"), end.get("code")
        state = "returned" if how == "returned" or (how == "exit" and code == 0) else "raised"
        error = _text(end, "error") or (f"left with exit code {code}" if how == "exit" else how)
    elif died:
        state = "died"
    quiet_s = max(quiet_s, silent_s)
    # A heartbeat from before the present state tells nothing of it.
    stale = _number(beat, "mono") < content.changed_ns
    if stale and end is None:
        beat = {"mono": content.changed_ns}
    since_s = max(0.0, (_number(beat, "mono") - content.changed_ns) / 1e9 + quiet_s)
    doing = "frozen" if silent_s > FROZEN_S else _text(beat, "doing")
    last = content.inside or {}
    if quiet_s > FROZEN_S / 2 and last.get("op") in HOLDS_THE_GIL:
        doing = f"MPI {last['op']}"
    return Whereabouts(
        state=state,
        phase=PHASES[content.phase] if content.phase < len(PHASES) else "other",
        iteration=content.iteration,
        since_s=since_s,
        idle_s=_number(beat, "idle") + silent_s,
        doing=doing,
        place=_text(end or {}, "place").rpartition("/")[2] or _text(beat, "place"),
        line=_text(beat, "line"),
        error=error,
        history=tuple(_call(each, content.inside_number) for each in content.calls[-_HISTORY:] if "op" in each),
        initialised=tuple(_initialised(content.milestones)),
    )


def _call(raw: Dict[str, Any], inside: int) -> CommunicatorCall:
    lacking = raw.get("lacking")
    return CommunicatorCall(
        operation=_text(raw, "op"),
        communicator=_text(raw, "comm"),
        index=int(_number(raw, "i")),
        number=int(_number(raw, "k")),
        size_bytes=int(_number(raw, "bytes", -1)),
        dtype=_text(raw, "dtype"),
        peer=int(_number(raw, "peer", -1)),
        parameters=_text(raw, "hash"),
        lacking=tuple(str(each) for each in lacking) if isinstance(lacking, list) else (),
        place=_text(raw, "at"),
        via=_text(raw, "via"),
        phase=_text(raw, "phase"),
        iteration=int(_number(raw, "it")),
        done=raw.get("n") != inside,
    )


def _initialised(milestones: List[Dict[str, Any]]) -> List[Initialised]:
    told = [each for each in milestones if each.get("what") == "initialised"]
    return [Initialised(_text(each, "path"), int(_number(each, "it")), _text(each, "at")) for each in told]


def _text(raw: Dict[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _number(raw: Optional[Dict[str, Any]], key: str, default: float = 0.0) -> float:
    value = None if raw is None else raw.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default
