"""Rules: pure functions from a snapshot to findings, one a file in ``rules/<family>/cdNNN_slug.py``.

Adding one touches nothing else: this module finds every file of that name. The docstring of a rule is what ``explain``
and the README's table print. Its first paragraph says what is wrong; paragraphs that start with ``Why it hurts:``,
``How to mend it:``, ``Example:`` and ``Source:`` follow.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Dict, Iterator, Tuple, Type

from chainerdoctor.facts import Fact
from chainerdoctor.findings import Finding, Severity

if TYPE_CHECKING:
    from chainerdoctor.snapshot import Snapshot

Judge = Callable[["Snapshot"], Iterator[Finding]]

FAMILIES = {
    "CD0": "the doctor itself",
    "CD1": "host",
    "CD2": "GPU",
    "CD3": "fabric and NCCL",
    "CD4": "MPI and launch",
    "CD5": "Python stack",
    "CD6": "bandwidth and scaling",
    "CD7": "memory",
    "CD8": "gradients and numerics",
    "CD9": "training script",
}


@dataclass(frozen=True)
class Rule:
    """One check. ``needs`` are the kinds of fact without any of which there is nothing to judge.

    With ``any_of`` a single kind of ``needs`` is enough; otherwise each has to be seen at least once.
    """

    code: str
    slug: str
    severity: Severity
    needs: Tuple[Type[Fact], ...]
    since: str
    judge: Judge
    doc: str
    any_of: bool = False

    @property
    def summary(self) -> str:
        """The first paragraph of the documentation, on one line."""
        return " ".join(self.doc.split("\n\n")[0].split())

    @property
    def family(self) -> str:
        """The name of the family that the code's first digit stands for."""
        return FAMILIES[self.code[:3]]


_RULES: Dict[str, Rule] = {}
_ALL_LOADED = False


def rule(
    code: str, severity: Severity, needs: Tuple[Type[Fact], ...], since: str, any_of: bool = False
) -> Callable[[Judge], Judge]:
    """Register the decorated function as a rule; its name is the slug and its docstring the documentation.

    Raises:
        ValueError: the code is malformed or taken, or the function has no docstring.
    """
    if not re.fullmatch(r"CD[0-9]{3}", code) or code[:3] not in FAMILIES:
        raise ValueError(f"a rule's code is CD and three digits, not {code!r}")

    def register(judge: Judge) -> Judge:
        name = getattr(judge, "__name__", "")
        doc = inspect.getdoc(judge)
        if not doc:
            raise ValueError(f"rule {code} has no docstring, and explain would have nothing to say")
        known = _RULES.get(code)
        if known is not None and known.judge.__module__ != judge.__module__:
            raise ValueError(f"rule {code} exists twice: {known.judge.__module__} and {judge.__module__}")
        _RULES[code] = Rule(code, name, severity, needs, since, judge, doc, any_of)
        return judge

    return register


def all_rules() -> Tuple[Rule, ...]:
    """Every rule, sorted by code. Imports the rule files on first use."""
    global _ALL_LOADED
    if not _ALL_LOADED:
        for family in pkgutil.iter_modules(__path__):
            if not family.ispkg:
                continue
            package = importlib.import_module(f"{__name__}.{family.name}")
            for module in pkgutil.iter_modules(package.__path__):
                if re.match(r"cd[0-9]{3}_", module.name):
                    importlib.import_module(f"{package.__name__}.{module.name}")
        _ALL_LOADED = True
    return tuple(_RULES[code] for code in sorted(_RULES))


class SelectionError(ValueError):
    """A prefix selects no rule at all, so that "nothing found" would mean nothing. The text is one line."""


def selected(rules: Tuple[Rule, ...], select: Tuple[str, ...], ignore: Tuple[str, ...]) -> Tuple[Rule, ...]:
    """The rules whose code starts with one of ``select`` (all if empty) and with none of ``ignore``.

    As in ruff, the longer prefix wins: ``select=CD512, ignore=CD5`` keeps CD512.

    Raises:
        SelectionError: a prefix of ``select`` fits no rule.
    """
    for prefix in select:
        if not any(each.code.startswith(prefix) for each in rules):
            raise SelectionError(f"no rule's code starts with {prefix} (chainerdoctor rules lists them)")

    def reach(code: str, prefixes: Tuple[str, ...]) -> int:
        return max((len(p) for p in prefixes if code.startswith(p)), default=-1)

    kept = []
    for each in rules:
        wanted = reach(each.code, select) if select else 0
        if wanted >= 0 and wanted > reach(each.code, ignore):
            kept.append(each)
    return tuple(kept)
