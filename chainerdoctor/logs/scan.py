"""One log file → facts, in one pass and bounded memory.

A NCCL line costs one ``partition`` and a look-up of its message, any other line a look-up of the line without its
digits: what a message says is worked out once. That, not a faster regular expression, makes large logs bearable.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List, Optional, Tuple, Union

from chainerdoctor.facts import Fact
from chainerdoctor.facts.log import KernelLog, LauncherLog, LogFile, PythonLog
from chainerdoctor.logs import ib, nccl, nccltests, nvidia_smi, nvidia_smi_more, topo
from chainerdoctor.logs.events import Events
from chainerdoctor.logs.nccl_state import NcclState
from chainerdoctor.logs.nccl_warnings import warned
from chainerdoctor.logs.prefixes import Prefixed, Prefixes, decoded
from chainerdoctor.logs.reading import LogReader
from chainerdoctor.logs.recognise import KERNEL, LAUNCHER, NCCL, PYTHON, UNKNOWN, candidates, first_match, plain_kind
from chainerdoctor.logs.sections import Section
from chainerdoctor.logs.tracebacks import EXCEPTION
from chainerdoctor.logs.wordings import Wording

#: Bounds of the tables of what was already worked out; they are emptied when full.
MAX_MESSAGES = 50_000
MAX_TEMPLATES = 15_000

_DIGITS = b"0123456789"
_INFO = b"NCCL INFO "

#: host:pid:tid [dev] file:line (function) NCCL WARN text, in all ages; 2.2 has no word NCCL.
_NCCL_LINE = re.compile(
    r"(?:(?P<host>[\w][\w.-]{0,254}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) )?(?:\[(?P<device>-?\d{1,4})\] )?"
    r"(?:(?P<time>\d{1,12}\.\d{1,9}) )?(?:(?P<source>[\w./+-]{1,120}:\d{1,6}) )?(?:\((?P<function>\w{1,80})\) )?"
    r"(?:NCCL )?(?P<level>INFO|WARN|TRACE|CALL|ABORT)(?: |$)(?P<text>.*)"
)
_VERSION = re.compile(r"NCCL version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?(?:\+\w{1,10}[\d.]{0,8})?)")
_TEST_FAILURE = re.compile(
    r"(?P<host>[\w.-]{1,255}): Test (?P<library>CUDA|NCCL|MPI)? ?failure (?P<source>\S{1,80}:\d+) '(?P<why>[^']{1,2"
    r"00})|"
    r" ?\.\. (?P<host2>[\w.-]{1,255}) pid \d+: Test failure "
)
_OPENERS: Tuple[Callable[[str], Optional[Section]], ...] = (
    nvidia_smi.opened,
    nvidia_smi_more.opened,
    topo.opened,
    ib.opened,
    nccltests.opened,
)

#: What a template stands for: a kind that is only counted, the wordings to try, or one of the words below.
_Seen = Union[int, str, Tuple[int, List[Tuple[int, Wording]]]]
_OPENS, _WARNS, _CHECKS = "opens", "nccl", "checks"

_KIND_NAMES = {NCCL: "NCCL", KERNEL: "kernel", LAUNCHER: "launcher", PYTHON: "Python"}


class Scanner:
    """Reads one file. ``each_time`` (line, time, text) is called for every line that carries a time, if given."""

    def __init__(
        self, path: str, prefixes: Prefixes, each_time: Optional[Callable[[int, float, bytes], None]] = None
    ) -> None:
        self.path = path
        self.reader = LogReader(path)
        self.prefixes = prefixes
        self.events = Events(path)
        self.nccl = NcclState(path)
        self.number = 0
        self._each_time = each_time
        self._parser = nccl.MessageParser()
        self._messages: Dict[bytes, nccl.Message] = {}
        self._templates: Dict[bytes, _Seen] = {}
        self._counts = [0, 0, 0, 0, 0]
        self._sections: Dict[str, int] = {}
        self._section: Optional[Section] = None
        self._facts: List[Fact] = []
        self._flavours: Dict[str, int] = {}
        self._tracebacks = 0
        self._in_traceback = 0

    def scan(self, progress: Optional[Callable[[int], None]] = None) -> None:
        """Read the whole file. ``progress`` is told the number of bytes after each block.

        Raises:
            LogReadError: the file cannot be opened or read.
        """
        for lines in self.reader:
            if self._each_time is not None:
                self._timed(lines)
            self._block(lines)
            if progress is not None:
                progress(self.reader.size_bytes)
        self._close_section()

    def _block(self, lines: List[bytes]) -> None:
        number = self.number
        messages = self._messages
        templates = self._templates
        counts = self._counts
        thread_of = self.nccl.thread
        heads: Dict[bytes, Dict[nccl.Edge, List[int]]] = {}
        edge_kind, dull_kind, collective_kind = nccl.EDGE, nccl.DULL, nccl.COLLECTIVE
        seen_nccl = 0
        for line in lines:
            number += 1
            head, mark, text = line.partition(_INFO)
            if mark:
                seen_nccl += 1
                message = messages.get(text)
                if message is None:
                    message = self._message(text)
                kind, payload = message
                if kind == edge_kind:
                    edges = heads.get(head)
                    if edges is None:
                        thread = thread_of(head, number)
                        edges = heads[head] = thread.edges
                    slot = edges.get(payload[0])
                    if slot is not None:
                        slot[0] |= payload[1]
                    else:
                        self.nccl.edge(thread_of(head, number), payload[0], payload[1], number)
                elif kind == collective_kind:
                    self.nccl.collective(payload, thread_of(head, number).process, number)
                elif kind != dull_kind:
                    # An initialisation's end takes the thread's edges away, so the short cut to them must go.
                    heads.pop(head, None)
                    self.number = number
                    self._apply(message, head, text, number)
                continue
            if self._section is None:
                seen = templates.get(line.translate(None, _DIGITS))
                if seen.__class__ is int:
                    counts[seen] += 1
                    continue
            self.number = number
            self._line(line, number)
        counts[NCCL] += seen_nccl
        self.number = number

    def _message(self, text: bytes) -> nccl.Message:
        """Work out a message that was not met before (or that is different each time)."""
        if b": opCount " in text[:44]:
            found = nccl.collective(text)
            if found is not None:
                return found
        if len(self._messages) >= MAX_MESSAGES:
            self._messages.clear()
            self._parser.forget()
        message = self._parser.parse(text)
        if message[0] != nccl.COMM:  # those are never the same twice
            self._messages[text] = message
        return message

    def _apply(self, message: nccl.Message, head: bytes, text: bytes, number: int) -> None:
        thread = self.nccl.thread(head, number)
        at_s = None
        if message[0] in (nccl.COMM, nccl.EVENT, nccl.NETWORK):
            before = self.prefixes.strip(decoded(head))
            at_s = before.at_s
            self._flavour(before)
        if message[0] == nccl.EVENT:
            shown = decoded(head + _INFO + text)
            rank = thread.process.rank
            self.events.add(message[1], number, shown, host=thread.process.host, rank=rank, at_s=at_s)
            return
        self.nccl.apply(message, thread, number, at_s)

    def _flavour(self, before: Prefixed) -> None:
        if before.launcher:
            self._flavours[before.launcher] = self._flavours.get(before.launcher, 0) + 1

    def _line(self, line: bytes, number: int) -> None:
        """The long way, for lines that are new, mean something, or lie in a section."""
        text = decoded(line)
        if self._section is not None:
            stripped = text if text[:1] in " \t#|+" else self.prefixes.strip(text).text
            if self._section.feed(stripped, number):
                self._sections[self._section.kind] = self._sections.get(self._section.kind, 0) + 1
                return
            self._close_section()
        template = line.translate(None, _DIGITS)
        seen = self._templates.get(template)
        if seen is None:
            # With a traceback open, an unknown line can be its last: then it is asked again each time.
            seen = self._classify(text)
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            self._templates[template] = seen
        if isinstance(seen, int):
            self._counts[seen] += 1
            return
        before = self.prefixes.strip(text)
        if seen == _OPENS:
            self._open(before.text, number)
        elif seen == _WARNS:
            self._nccl_line(before, text, number)
        elif seen == _CHECKS:
            self._exception(before, number)
        else:
            assert isinstance(seen, tuple)
            self._event(before, seen[1], seen[0], number)

    def _classify(self, text: str) -> _Seen:
        before = self.prefixes.strip(text)
        self._flavour(before)
        bare = before.text
        if not bare:
            return UNKNOWN if not before.kernel else KERNEL
        if any(opener(bare) is not None for opener in _OPENERS):
            return _OPENS
        if bare.startswith("# "):
            return UNKNOWN  # a comment, whatever it quotes
        if "WARN" in bare or "NCCL" in bare or " INFO " in bare:
            found = _NCCL_LINE.match(bare)
            if found is not None and ("NCCL " in bare or found["host"]) or _VERSION.match(bare):
                return _WARNS
        if _TEST_FAILURE.match(bare):
            return _WARNS
        among = candidates(bare)
        if among:
            return (plain_kind(before), among)
        if EXCEPTION.match(bare):
            return _CHECKS
        return plain_kind(before)

    def _open(self, text: str, number: int) -> None:
        for opener in _OPENERS:
            section = opener(text)
            if section is not None:
                section.path, section.line = self.path, number
                section.feed(text, number)
                self._section = section
                self._sections[section.kind] = self._sections.get(section.kind, 0) + 1
                return
        self._counts[UNKNOWN] += 1

    def _close_section(self) -> None:
        if self._section is not None:
            self._section.close()
            if len(self._facts) < 20_000:
                self._facts.extend(self._section.facts)
            self._section = None

    def _nccl_line(self, before: Prefixed, whole: str, number: int) -> None:
        version = _VERSION.match(before.text)
        if version is not None:
            self._counts[NCCL] += 1
            self.nccl.versions.setdefault(version[1], number)
            return
        failure = _TEST_FAILURE.match(before.text)
        if failure is not None:
            self._sections["nccl-tests"] = self._sections.get("nccl-tests", 0) + 1
            if failure["why"]:
                detail = {"library": failure["library"] or "", "why": failure["why"]}
                event = "nccltests.failure"
                if "invalid device ordinal" in failure["why"]:
                    event = "python.invalid_device"
                self.events.add(event, number, before.text, host=failure["host"], detail=detail)
            return
        found = _NCCL_LINE.match(before.text)
        if found is None:
            self._counts[UNKNOWN] += 1
            return
        self._counts[NCCL] += 1
        if found["level"] == "INFO":
            # NCCL 2.2: the same messages without the word.
            head, _, text = before.text.partition("INFO ")
            message = self._message(text.encode("utf-8", "replace"))
            thread = self.nccl.thread(head.encode("utf-8", "replace"), number)
            if message[0] == nccl.EDGE:
                self.nccl.edge(thread, message[1][0], message[1][1], number)
            elif message[0] != nccl.DULL:
                self._apply(message, head.encode("utf-8", "replace"), text.encode("utf-8", "replace"), number)
        elif found["level"] in ("WARN", "ABORT"):
            event, detail = warned(found["text"])
            host = found["host"] or before.host
            if found["source"]:
                detail = {**detail, "source": found["source"]}
            self.events.add(event, number, before.text, host=host, rank=before.rank, at_s=before.at_s, detail=detail)

    def _event(self, before: Prefixed, among: List[Tuple[int, Wording]], plain: int, number: int) -> None:
        matched = first_match(before.text, among)
        if matched is None:
            self._counts[plain] += 1
            return
        kind, known, found = matched
        self._counts[kind] += 1
        detail = {name: value for name, value in found.groupdict().items() if value}
        if known.event == "python.traceback":
            self._tracebacks += 1
            self._in_traceback = number
        key = tuple(detail.get(name, "") for name in known.key)
        self.events.add(
            known.event,
            number,
            before.text,
            host=detail.get("host") or before.host,
            rank=before.rank,
            at_s=before.at_s,
            detail=detail,
            key=key,
        )

    def _exception(self, before: Prefixed, number: int) -> None:
        found = EXCEPTION.match(before.text)
        # Far from any traceback this is prose or a log message.
        if found is None or not self._in_traceback or number - self._in_traceback > 400:
            self._counts[UNKNOWN] += 1
            return
        self._counts[PYTHON] += 1
        detail = {"kind": found["kind"], "why": (found["why"] or "")[:200]}
        self.events.add(
            "python.exception",
            number,
            before.text,
            rank=before.rank,
            at_s=before.at_s,
            detail=detail,
            key=(found["kind"],),
        )

    def _timed(self, lines: List[bytes]) -> None:
        assert self._each_time is not None
        for number, line in enumerate(lines, self.number + 1):
            at_s = self.prefixes.strip(line[:96].decode("utf-8", "replace")).at_s
            if at_s is not None:
                self._each_time(number, at_s, line)

    def facts(self) -> List[Fact]:
        """All facts of the file; :class:`LogFile` comes first."""
        counts = self._counts
        known = {name: counts[kind] for kind, name in _KIND_NAMES.items() if counts[kind]}
        known.update(self._sections)
        if self._flavours:
            known.setdefault("launcher", sum(self._flavours.values()))
        kinds = tuple(sorted(known, key=lambda name: (-known[name], name)))
        file = LogFile(
            self.path, self.reader.size_bytes, self.number, counts[UNKNOWN], kinds, tuple(self.reader.damage)
        )
        made: List[Fact] = [file]
        if counts[NCCL]:
            made.extend(self.nccl.facts(counts[NCCL], self.number))
        if counts[LAUNCHER] or self._flavours:
            made.append(LauncherLog(self.path, counts[LAUNCHER], tuple(sorted(self._flavours))))
        if counts[KERNEL]:
            made.append(KernelLog(self.path, counts[KERNEL]))
        if counts[PYTHON]:
            made.append(PythonLog(self.path, counts[PYTHON], self._tracebacks))
        made.extend(self._facts)
        made.extend(self.events.facts())
        return made
