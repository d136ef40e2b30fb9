"""What the rules about scripts share: looking calls up by what they are, and findings that point at a line."""

from __future__ import annotations

import functools
import re
from typing import Dict, FrozenSet, Iterable, Iterator, List, Optional, Set, Tuple, Union

from chainerdoctor.facts.script import Operand, ScriptCall, ScriptClass, ScriptFile, ScriptName, ScriptSetting
from chainerdoctor.findings import Evidence, Finding, Location
from chainerdoctor.snapshot import Snapshot

#: Conditions that look like "only on some ranks": where one stands, a rule about all ranks stays silent.
_SOME_RANKS = re.compile(r"rank|master|is_main|is_root|leader|chief|primary|Get_rank", re.IGNORECASE)
#: Conditions that hold on exactly one rank, for rules that say so.
_COMMUNICATOR = r"(?:chainermn\.(?:\w+\.)*create_communicator\(\)|\?(?:\w+\.)*comm)"
_ONE_RANK = re.compile(rf"(?:{_COMMUNICATOR}\.rank == 0|0 == {_COMMUNICATOR}\.rank)")
_NOT_ONE_RANK = re.compile(rf"(?:not \({_COMMUNICATOR}\.rank != 0\)|not \({_COMMUNICATOR}\.rank\))")

ITERATORS = (
    "SerialIterator",
    "MultiprocessIterator",
    "MultithreadIterator",
)
UPDATERS = ("StandardUpdater", "ParallelUpdater", "MultiprocessParallelUpdater")


_MODEL_PARALLEL = frozenset(
    {
        "chainermn.MultiNodeChainList",
        "chainermn.links.MultiNodeChainList",
        "chainermn.links.create_multi_node_n_step_rnn",
    }
)


class Calls(List[ScriptCall]):
    """Calls in the order of the files, with those of one file at hand: rules ask for them file by file."""

    def __init__(self, calls: Iterable[ScriptCall] = ()) -> None:
        super().__init__(calls)
        self._by_path: Optional[Dict[str, List[ScriptCall]]] = None

    def of_file(self, path: str) -> List[ScriptCall]:
        """Those in this file."""
        if self._by_path is None:
            self._by_path = {}
            for call in self:
                self._by_path.setdefault(call.path, []).append(call)
        return self._by_path.get(path, [])


class Scripts:
    """The calls of a snapshot, by what is called."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.files = {s.fact.path: s.fact for s in snapshot.all(ScriptFile)}
        self.calls = Calls(s.fact for s in snapshot.all(ScriptCall))
        self.settings = [s.fact for s in snapshot.all(ScriptSetting)]
        self.names = [s.fact for s in snapshot.all(ScriptName)]
        self.classes = [s.fact for s in snapshot.all(ScriptClass)]
        self.by_number = {call.number: call for call in self.calls}
        self._by_leaf: Dict[str, List[ScriptCall]] = {}
        for call in self.calls:
            for leaf in {leaf_of(name) for name in call.names}:
                self._by_leaf.setdefault(leaf, []).append(call)
        self._selected: Dict[Tuple[str, ...], Calls] = {}
        self._names_of: Dict[str, List[ScriptName]] = {}
        for name in self.names:
            self._names_of.setdefault(name.path, []).append(name)
        self._leaves_of: Dict[str, FrozenSet[str]] = {}
        self._with_ranks: Dict[str, bool] = {}
        self._users: Dict[str, List[str]] = {}
        for file in self.files.values():
            for used in file.uses:
                self._users.setdefault(used, []).append(file.path)
        self._reach: Dict[str, FrozenSet[str]] = {}
        self._units: Dict[str, FrozenSet[str]] = {}

    def of(self, root: str, *leaves: str) -> Calls:
        """Calls of ``root….leaf`` itself (not of a method of something that such a call made)."""
        key = (root, *leaves)
        if key not in self._selected:
            self._selected[key] = Calls(
                call for leaf in leaves for call in self._by_leaf.get(leaf, ()) if is_a(call.names, root, leaf)
            )
        return self._selected[key]

    def methods(self, *leaves: str) -> Calls:
        """Calls of a method (or function) of this name, whatever it belongs to."""
        key = ("", *leaves)
        if key not in self._selected:
            self._selected[key] = Calls(call for leaf in leaves for call in self._by_leaf.get(leaf, ()))
        return self._selected[key]

    def with_keyword(self, keyword: str) -> List[ScriptCall]:
        """Calls that are given this keyword argument."""
        return [call for call in self.calls if keyword in call.keywords]

    def unit(self, path: str) -> FrozenSet[str]:
        """Files that run together with this one: what it imports, and what the scripts that import it import."""
        known = self._units.get(path)
        if known is None:
            parts = [self.reach(each) for each in (path, *self._users.get(path, ()))]
            known = self._units[path] = frozenset().union(*parts)
        return known

    def reach(self, path: str) -> FrozenSet[str]:
        """This file and everything that it imports from the given paths."""
        known = self._reach.get(path)
        if known is None:
            reached: Set[str] = set()
            waiting = [path]
            while waiting:
                each = waiting.pop()
                if each not in reached and each in self.files:
                    reached.add(each)
                    waiting += self.files[each].uses
            known = self._reach[path] = frozenset(reached)
        return known

    def splits_the_model(self, path: str) -> bool:
        """Whether the ranks hold parts of a model (or of a batch) by ChainerMN's functions instead of whole copies."""
        return any(
            name.name.startswith("chainermn.functions.") or name.name in _MODEL_PARALLEL
            for each in self.unit(path)
            for name in self._names_of.get(each, ())
        )

    def mentions_intra_rank(self, path: str) -> bool:
        """Whether the number of a GPU comes from a rank somewhere."""
        return any(self._gives_ranks(each) for each in self.unit(path))

    def _gives_ranks(self, path: str) -> bool:
        known = self._with_ranks.get(path)
        if known is None:
            known = self._with_ranks[path] = any(
                "rank" in name
                for call in self.calls.of_file(path)
                for operand in (*call.args, *call.keywords.values())
                for name in operand.names
            )
        return known

    def inside(self, calls: Calls, path: str) -> List[ScriptCall]:
        """Those calls that run together with this file."""
        unit = self.unit(path)
        if len(unit) == 1:
            return calls.of_file(path)
        return sorted((call for each in unit for call in calls.of_file(each)), key=lambda call: call.number)

    def names_inside(self, path: str) -> Iterator[ScriptName]:
        """Names in the files that run together with this one."""
        return (name for each in sorted(self.unit(path)) for name in self._names_of.get(each, ()))

    def sets(self, path: str, variable: str) -> bool:
        """Whether a file that runs together with this one sets this environment variable."""
        unit = self.unit(path)
        aim = f"os.environ[{variable!r}]"
        return any(setting.path in unit and aim in setting.targets for setting in self.settings) or any(
            call.args and call.args[0].literal == repr(variable)
            for call in self.inside(self.methods("setdefault", "putenv"), path)
            if call.names[0].startswith("os.")
        )

    def communicators(self, path: str) -> List[ScriptCall]:
        """Calls of ``create_communicator`` in this file or in what it imports."""
        made = self.of("chainermn", "create_communicator")
        return [call for each in sorted(self.reach(path)) for call in made.of_file(each)]

    def distributed(self) -> List[ScriptCall]:
        """The first ``create_communicator`` of each file that has one."""
        first: Dict[str, ScriptCall] = {}
        for call in self.of("chainermn", "create_communicator"):
            first.setdefault(call.path, call)
        return list(first.values())

    def made_by(self, operand: Operand) -> List[ScriptCall]:
        """The calls that made a value; ``optimizer = Adam().setup(model)`` leads to ``Adam``."""
        found = []
        for number in operand.calls:
            call = self.by_number.get(number)
            steps = 0
            while call is not None and leaf_of(call.names[0]) in ("setup", "to_gpu", "to_device") and steps < 5:
                back = [self.by_number[n] for n in call.receiver.calls if n in self.by_number]
                if not back:
                    break
                call, steps = back[0], steps + 1
            if call is not None:
                found.append(call)
        return found

    def mentions(self, path: str, *words: str) -> bool:
        """Whether any name in the files that run with this one ends so."""
        return any(not self._leaves(each).isdisjoint(words) for each in self.unit(path))

    def _leaves(self, path: str) -> FrozenSet[str]:
        known = self._leaves_of.get(path)
        if known is None:
            known = self._leaves_of[path] = frozenset(leaf_of(name.name) for name in self._names_of.get(path, ()))
        return known


@functools.lru_cache(maxsize=1)
def scripts_of(snapshot: Snapshot) -> Scripts:
    """The index of a snapshot; kept for the rules that follow, since a snapshot never changes."""
    return Scripts(snapshot)


def leaf_of(name: str) -> str:
    """The last part of a dotted name."""
    return name.rsplit(".", 1)[-1]


def is_a(names: Iterable[str], root: str, leaf: str) -> bool:
    """Whether one of the names is ``root….leaf`` and no method of an object."""
    return any(name.startswith(root + ".") and name.endswith("." + leaf) and "(" not in name for name in names)


def argument(call: ScriptCall, position: int, keyword: str) -> Optional[Operand]:
    """An argument by place or name; ``None`` if it is not given (or hidden behind ``*args``)."""
    if keyword in call.keywords:
        return call.keywords[keyword]
    return call.args[position] if position < len(call.args) else None


def on_some_ranks(fact: Union[ScriptCall, ScriptSetting]) -> bool:
    """Whether a condition around it may have to do with ranks."""
    return any(_SOME_RANKS.search(guard) for guard in fact.guards)


def on_one_rank(call: ScriptCall) -> bool:
    """Whether it certainly runs on rank 0 alone."""
    return any(_ONE_RANK.fullmatch(guard) or _NOT_ONE_RANK.fullmatch(guard) for guard in call.guards)


#: Conditions by which a script chooses between versions: what stands under them is meant for one of them.
_VERSIONED = re.compile(r"version|hasattr|_v[0-9]\b|\?try|PY2|six\.|available", re.IGNORECASE)


def for_some_versions(fact: Union[ScriptCall, ScriptSetting, ScriptName]) -> bool:
    """Whether it runs only with some versions, or its failure is caught."""
    return any(_VERSIONED.search(guard) for guard in fact.guards)


def everywhere(name: ScriptName, message: str, remedy: str, *evidence: Evidence) -> Iterator[Finding]:
    """A finding for each place of a name; two in one line are told once."""
    for line in sorted({line for line, _ in name.places}):
        column = min(c for each, c in name.places if each == line)
        yield Finding(f"{name.path}:{line}", message, remedy, evidence, Location(name.path, line, column))


def at(place: Union[ScriptCall, ScriptSetting, ScriptName], message: str, remedy: str, *evidence: Evidence) -> Finding:
    """A finding that points at a line of a script."""
    if isinstance(place, ScriptName):
        line, column = place.places[0]
    else:
        line, column = place.line, place.column
    return Finding(f"{place.path}:{line}", message, remedy, evidence, Location(place.path, line, column))


def once_a_file(calls: Iterable[ScriptCall]) -> Iterator[ScriptCall]:
    """The first call of each file."""
    seen: Set[str] = set()
    for call in calls:
        if call.path not in seen:
            seen.add(call.path)
            yield call


def inherits(klass: ScriptClass, *leaves: str) -> bool:
    """Whether a class comes from one of these Chainer classes."""
    return any(base.startswith("chainer.") and leaf_of(base) in leaves for base in klass.bases)
