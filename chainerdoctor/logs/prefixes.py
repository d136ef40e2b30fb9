"""What launchers, collectors and the kernel write in front of a line, and the times among it."""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import dataclass
from typing import Callable, Dict, Optional, Tuple

#: Colours and cursor movements; a progress bar's carriage returns keep only what is written last.
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b[()][A-Z0-9]|\x00")

#: Who wrote the line: Open MPI 4 (``[1,0]<stdout>:``), Open MPI 5 (``[prterun-host-1@1,0]<stdout>:``), Hydra ``-l``
#: (``[0] ``), srun ``-l`` (``0: ``), Ray (``(Worker pid=1, ip=10.0.0.1) ``), torchrun (``[default0]:``).
_RANK = re.compile(
    r"\[(?:[\w.-]{1,80}@)?\d{1,9},(?P<ompi>\d{1,7})\]\s?(?:<std\w{3}>|\[[\w.-]{1,80}\]<std\w{3}>)?\s?:?\s?"
    r"|(?P<srun>\d{1,7}): "
    r"|\[default(?P<torch>\d{1,7})\]:"
    r"|\((?:[\w.:-]{1,60} )?pid=\d{1,10}(?:, ip=[\w.:]{1,60})?\) "
    r"|<(?:stdout|stderr)>:?\s?"
    r"|\[(?P<hydra>\d{1,7})\] (?!NCCL |\d|[\w/.-]{1,60}\.(?:cc|cu|h|c|cpp):\d)"
)

_MONTHS = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
_MONTH = "(?:" + "|".join(_MONTHS) + ")"

#: Times: ISO 8601 in its dialects (journal, dmesg --time-format iso, containers, NCCL), syslog, dmesg -T, seconds
#: since boot (which cannot be placed).
_TIME = re.compile(
    r"(?:kern|user|daemon|auth|syslog|local\d)\s{0,6}:\s?\w{2,8}\s{0,6}:\s?"
    r"|\[?(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<part>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?\]?\s?"
    r"|\[?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?P<month2>" + _MONTH + r")\s{1,2}(?P<day2>\d{1,2}) "
    r"(?:(?P<year2>\d{4}) )?(?P<hour2>\d\d):(?P<minute2>\d\d):(?P<second2>\d\d)(?:\.(?P<part2>\d{1,9}))?(?: (?P<year3>\d{4}))?\]?\s?"
    r"|\[\s{0,12}\d{1,9}\.\d{1,9}\]\s?"
    r"|<\d{1,3}>"
)

#: What syslog writes after the time: host and program.
_SYSLOG = re.compile(r"(?P<host>[\w.-]{1,255}) (?P<program>[\w./@-]{1,80})(?:\[\d{1,10}\])?: ?")


@dataclass(frozen=True)
class Prefixed:
    """A line taken apart. ``kernel`` says that it carries a kernel or system log's prefix."""

    text: str
    rank: Optional[int] = None
    host: str = ""
    program: str = ""
    at_s: Optional[float] = None
    uptime: bool = False
    kernel: bool = False
    launcher: str = ""


def decoded(line: bytes) -> str:
    """The line as text: what is not UTF-8 becomes U+FFFD, colours vanish, of a progress bar the last state is left."""
    text = line.decode("utf-8", "replace")
    if "\x1b" in text or "\x00" in text:
        text = _ANSI.sub("", text)
    text = text.rstrip("\r\n ")
    if "\r" in text:
        text = text[text.rfind("\r") + 1 :]
    return text


class Prefixes:
    """Takes prefixes off. ``utc_offset_s`` places times without a zone (``None``: this machine's zone);
    ``year`` is that of times without a year (syslog)."""

    def __init__(self, utc_offset_s: Optional[int] = None, year: Optional[int] = None) -> None:
        self._offset = utc_offset_s
        self._year = year
        self._seconds: Dict[Tuple[str, ...], Optional[float]] = {}

    def strip(self, text: str) -> Prefixed:
        """Take off prefixes, in whatever order they come; at most six, so that a hostile line cannot keep us."""
        rank: Optional[int] = None
        launcher = ""
        at_s: Optional[float] = None
        kernel = False
        uptime = False
        position = 0
        dated = syslog_date = False
        for _ in range(6):
            found = _TIME.match(text, position)
            if found is not None:
                first = text[found.start()]
                if found["year"] or found["month2"]:
                    at_s = self._time(found)
                    dated = True
                    kernel = kernel or bool(found["month2"]) and first == "["
                    syslog_date = bool(found["month2"]) and first != "["
                else:
                    kernel = True
                    uptime = uptime or first == "["
                position = found.end()
                continue
            found = _RANK.match(text, position)
            if found is None:
                break
            number = found["ompi"] or found["srun"] or found["torch"] or found["hydra"]
            if number is not None:
                rank = int(number)
            launcher = launcher or _launcher(found)
            position = found.end()
        host = program = ""
        if dated and not launcher:
            syslog = _SYSLOG.match(text, position)
            # "2024-01-01 00:00:00 ERROR: text" has the same shape as a host and a program, but no syslog's.
            if (
                syslog is not None
                and not syslog["host"].isupper()
                and (syslog_date or syslog["program"] == "kernel" or "[" in syslog[0])
            ):
                host, program = syslog["host"], syslog["program"]
                kernel = True
                position = syslog.end()
                inner = _TIME.match(text, position)
                if inner is not None and text[position] == "[":
                    position = inner.end()
        return Prefixed(text[position:], rank, host, program, at_s, uptime, kernel, launcher)

    def _time(self, found: re.Match[str]) -> Optional[float]:
        if found["year"]:
            parts = tuple(found[k] for k in ("year", "month", "day", "hour", "minute", "second"))
            zone = found["zone"] or ""
            part = float("0." + found["part"]) if found["part"] else 0.0
        else:
            year = found["year2"] or found["year3"] or str(self._year or time.gmtime().tm_year)
            parts = (year, str(_MONTHS[found["month2"]]), *(found[k] for k in ("day2", "hour2", "minute2", "second2")))
            zone = ""
            part = float("0." + found["part2"]) if found["part2"] else 0.0
        key = (*parts, zone)
        if key not in self._seconds:
            if len(self._seconds) > 4096:
                self._seconds.clear()
            self._seconds[key] = _seconds(parts, zone, self._offset)
        whole = self._seconds[key]
        return None if whole is None else whole + part


def _seconds(parts: Tuple[str, ...], zone: str, offset: Optional[int]) -> Optional[float]:
    year, month, day, hour, minute, second = (int(p) for p in parts)
    if not (1970 <= year <= 9000 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    fields = (year, month, day, hour, minute, second, 0, 0, -1)
    if zone == "Z":
        return float(calendar.timegm(fields))
    if zone:
        sign = -1 if zone[0] == "-" else 1
        digits = zone[1:].replace(":", "")
        return calendar.timegm(fields) - sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    if offset is not None:
        return float(calendar.timegm(fields) - offset)
    try:
        return time.mktime(fields)
    except (OverflowError, ValueError):
        return None


_LAUNCHERS: Tuple[Tuple[str, Callable[[re.Match[str]], bool]], ...] = (
    ("Open MPI", lambda m: m["ompi"] is not None and "<std" in m[0]),
    ("srun", lambda m: m["srun"] is not None),
    ("torchrun", lambda m: m["torch"] is not None),
    ("Ray", lambda m: "pid=" in m[0]),
    ("Hydra", lambda m: m["hydra"] is not None),
)


def _launcher(found: re.Match[str]) -> str:
    return next((name for name, matches in _LAUNCHERS if matches(found)), "")
