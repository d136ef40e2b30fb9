"""Values → names: what a value may be, followed through calls, arguments, returns and attributes."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts.script import Operand
from chainerdoctor.scripts.values import MOST_ALTERNATIVES, Class, Function, RawCall, Value

#: Steps through calls and arguments that one value is followed.
_DEEPEST = 12
_UNKNOWN: Tuple[Value, ...] = (None,)


class Resolver:
    """Follows values. Answers are kept, so link all calls (:meth:`link`) before asking about names."""

    def __init__(self) -> None:
        self._known: Dict[Value, Tuple[Value, ...]] = {}
        self._guards: Dict[Function, Tuple[str, ...]] = {}
        self._names: Dict[Value, Tuple[str, ...]] = {}

    def link(self, calls: List[RawCall]) -> None:
        """Tell functions of the given paths who calls them and with what. Repeated, since a function can be an
        argument of another; twice is enough for what scripts do."""
        for _ in range(2):
            self._known.clear()
            for call in calls:
                for target in self.origins(call.callee):
                    if target is None:
                        continue
                    if target[0] == "f":
                        bound = 1 if _is_method_call(call.callee, target[1]) else 0
                        self._bind(call, target[1], bound)
                    elif target[0] == "k":
                        start = self.method(target[1], "__init__")
                        if start is not None:
                            self._bind(call, start, 1)
        self._known.clear()

    def _bind(self, call: RawCall, function: Function, skip: int) -> None:
        if call in function.sites:
            return
        function.sites.append(call)
        parameters = function.parameters[skip:]
        for name, value in zip(parameters, call.args):
            function.bound.setdefault(name, []).append(value)
        given = set(parameters[: len(call.args)])
        for name, value in call.keywords.items():
            function.bound.setdefault(name, []).append(value)
            given.add(name)
        for name in parameters:
            if name not in given:
                default = function.defaults.get(name)
                function.bound.setdefault(name, []).append(None if call.open else default)

    def origins(self, value: Value, depth: int = 0) -> Tuple[Value, ...]:
        """What a value may be; ``None`` among the answers stands for what cannot be told."""
        if value is None:
            return _UNKNOWN
        kind = value[0]
        if kind in ("q", "l", "f", "k", "i", "n", "t", "m"):
            return (value,)
        if depth > _DEEPEST:
            return _UNKNOWN
        known = self._known.get(value)
        if known is None:
            self._known[value] = _UNKNOWN  # a value that is made of itself
            found: List[Value] = []
            for each in self._follow(value, kind, depth + 1):
                if each not in found:
                    found.append(each)
            if len(found) > MOST_ALTERNATIVES:
                found = [*found[:MOST_ALTERNATIVES], None]
            known = self._known[value] = tuple(found) or _UNKNOWN
        return known

    def _follow(self, value: Value, kind: str, depth: int) -> List[Value]:
        if kind == "u":
            return [each for part in value[1] for each in self.origins(part, depth)]
        if kind == "p":
            bound = value[1].bound.get(value[2])
            if not bound:
                return [("n", value[2])]
            return [each for part in bound for each in self.origins(part, depth)]
        if kind == "c":
            return [
                each for target in self.origins(value[1].callee, depth) for each in self._result(value, target, depth)
            ]
        if kind == "a":
            return [each for base in self.origins(value[1], depth) for each in self._attribute(base, value[2], depth)]
        if kind == "s":
            return [each for base in self.origins(value[1], depth) for each in self._item(base, value[2], depth)]
        return [value]

    def _result(self, value: Value, target: Value, depth: int) -> List[Value]:
        if target is None:
            return [value]
        if target[0] == "k":
            return [("i", target[1], value[1])]
        if target[0] == "f":
            function: Function = target[1]
            if function.generator or not function.returns:
                return [value]
            return [each for part in function.returns for each in self.origins(part, depth)]
        return [value]

    def _attribute(self, base: Value, name: str, depth: int) -> List[Value]:
        if base is None:
            return [("a", None, name)]
        if base[0] == "q":
            return [("q", f"{base[1]}.{name}")]
        if base[0] == "m":
            return list(self.origins(base[1].env.get(name), depth))
        if base[0] in ("i", "k"):
            method = self.method(base[1], name)
            if method is not None:
                if method.property:
                    return [each for part in method.returns for each in self.origins(part, depth)]
                return [("f", method)]
            for each in self.lineage(base[1]):
                if name in each.attributes:
                    return [one for part in each.attributes[name] for one in self.origins(part, depth)]
        return [("a", base, name)]

    def _item(self, base: Value, index: object, depth: int) -> List[Value]:
        if base is not None and base[0] == "t":
            items = base[1]
            if isinstance(index, int) and -len(items) <= index < len(items):
                return list(self.origins(items[index], depth))
            if index is None and items:
                return [each for part in items[:MOST_ALTERNATIVES] for each in self.origins(part, depth)]
        return [("s", base, index)]

    def lineage(self, klass: Class) -> List[Class]:
        """The class and its bases of the given paths, nearest first."""
        found: List[Class] = []
        waiting = [klass]
        while waiting and len(found) < 20:
            each = waiting.pop(0)
            if each not in found:
                found.append(each)
                for base in each.bases:
                    waiting += [one[1] for one in self.origins(base) if one is not None and one[0] == "k"]
        return found

    def method(self, klass: Class, name: str) -> Optional[Function]:
        """The method that a call of this name reaches, if it is in the given paths."""
        for each in self.lineage(klass):
            if name in each.methods:
                return each.methods[name]
        return None

    def outside_bases(self, klass: Class) -> Tuple[str, ...]:
        """Absolute names of the bases that come from outside the given paths."""
        found: Dict[str, None] = {}
        for each in self.lineage(klass):
            for base in each.bases:
                for one in self.origins(base):
                    if one is None or one[0] != "k":
                        found.update(dict.fromkeys(self.texts(one)))
        return tuple(found)

    def names(self, value: Value) -> Tuple[str, ...]:
        """Absolute names of a value, one for each origin."""
        known = self._names.get(value)
        if known is None:
            self._names[value] = ("?",)  # a condition that stands for itself
            found: Dict[str, None] = {}
            for each in self.origins(value):
                found.update(dict.fromkeys(self.texts(each)))
            known = self._names[value] = tuple(found)[: 2 * MOST_ALTERNATIVES]
        return known

    def texts(self, origin: Value, depth: int = 0) -> Tuple[str, ...]:
        """The names of one origin (an instance of a project's class has one for each base from outside)."""
        if origin is None or depth > _DEEPEST:
            return ("?",)
        kind = origin[0]
        if kind == "q":
            return (origin[1],)
        if kind == "n":
            return (f"?{origin[1]}",)
        if kind == "l":
            return (repr(origin[1]),)
        if kind == "i":
            outside = tuple(f"{base}()" for base in self.outside_bases(origin[1]))
            return (*outside, f"{origin[1].module.name}.{origin[1].name}()")
        if kind in ("k", "f"):
            return (f"{origin[1].module.name}.{origin[1].name}",)
        if kind == "m":
            return (origin[1].name,)
        if kind == "c":
            return tuple(f"{text}()" for text in self._all(origin[1].callee, depth))
        if kind == "a":
            return tuple(f"{text}.{origin[2]}" for text in self._all(origin[1], depth))
        if kind == "s":
            return tuple(
                f"{text}[{'' if origin[2] is None else repr(origin[2])}]" for text in self._all(origin[1], depth)
            )
        if kind == "x":
            return (self.condition(origin, depth),)
        return ("?",)

    def _all(self, value: Value, depth: int) -> Tuple[str, ...]:
        return tuple(dict.fromkeys(text for each in self.origins(value) for text in self.texts(each, depth + 1)))[:8]

    def condition(self, value: Value, depth: int = 0) -> str:
        """A condition as text, names made absolute."""
        if depth > _DEEPEST:
            return "?"
        if value is not None and value[0] == "x":
            parts = [self.condition(each, depth + 1) for each in value[2]]
            if value[1] == "not":
                return f"not ({parts[0]})"
            if value[1] in ("and", "or"):
                return "(" + f" {value[1]} ".join(parts) + ")"
            return f"{parts[0]} {value[1]} {parts[-1]}"
        found = self.origins(value)
        if len(found) == 1 and found[0] is not None and found[0][0] == "x" and found[0] is not value:
            return self.condition(found[0], depth + 1)
        if len(found) == 1 and found[0] is not None and found[0][0] == "c":
            # ``int(chainer.__version__[0]) < 2``, ``LooseVersion(…)``: what a condition asks is in the arguments.
            called, made = self.names(found[0])[0][:-2], found[0][1]
            if made.args and called.split(".", 1)[0] not in ("chainer", "chainermn"):
                return f"{called}({', '.join(self.condition(each, depth + 1) for each in made.args)})"
        names = self.names(value)
        return names[0] if len(names) == 1 else "|".join(names)

    def guards(self, function: Optional[Function], own: Tuple[Value, ...], depth: int = 0) -> Tuple[str, ...]:
        """Conditions of a place, with those that every caller of its function stands under."""
        mine = tuple(self.condition(each) for each in own)
        return (*self._inherited(function, depth), *mine)

    def _inherited(self, function: Optional[Function], depth: int) -> Tuple[str, ...]:
        if function is None or depth > 6:
            return ()
        if function in self._guards:
            return self._guards[function]
        self._guards[function] = ()  # a function that calls itself
        shared: Optional[Dict[str, None]] = None
        for site in function.sites:
            seen = dict.fromkeys(self.guards(site.function, site.guards, depth + 1))
            shared = seen if shared is None else {each: None for each in shared if each in seen}
        self._guards[function] = tuple(shared or ())
        return self._guards[function]

    def operand(self, value: Value) -> Operand:
        """A value as facts hold it."""
        found = self.origins(value)
        literal = None
        if len(found) == 1 and found[0] is not None and found[0][0] == "l":
            literal = repr(found[0][1])[:200]
        calls: Dict[int, None] = {}
        certain = True
        for each in found:
            if each is None or each[0] == "n":
                certain = False
            call = _maker(each)
            if call is not None:
                calls[call.number] = None
        names = self.names(value)
        return Operand(() if literal is not None else names, tuple(calls), literal, certain, self._default(found))

    def _default(self, found: Tuple[Value, ...]) -> Optional[str]:
        """The default of an argparse option, where a value is ``parser.parse_args().option``."""
        for each in found:
            if each is None or each[0] != "a" or each[1] is None:
                continue
            for base in self.origins(each[1]):
                parse = _maker(base)
                if parse is None or parse.callee is None or parse.callee[0] != "a" or parse.callee[2] != "parse_args":
                    continue
                return _declared(parse, each[2], self)
        return None


def _declared(parse: RawCall, option: str, resolver: Resolver) -> Optional[str]:
    for call in parse.module.calls:
        if call.callee is None or call.callee[0] != "a" or call.callee[2] != "add_argument":
            continue
        flags = [each[1] for each in call.args if each is not None and each[0] == "l" and isinstance(each[1], str)]
        long = [flag.lstrip("-").replace("-", "_") for flag in flags if flag.startswith("--")] or [
            flag.lstrip("-") for flag in flags
        ]
        target = call.keywords.get("dest")
        name = target[1] if target is not None and target[0] == "l" else (long[0] if long else None)
        if name == option:
            default = call.keywords.get("default")
            found = resolver.origins(default) if default is not None else ()
            if len(found) == 1 and found[0] is not None and found[0][0] == "l":
                return repr(found[0][1])
    return None


def _maker(value: Value) -> Optional[RawCall]:
    """The call that made a value, through elements of what it returned."""
    while value is not None and value[0] == "s":
        value = value[1]
    if value is None:
        return None
    if value[0] == "c":
        made: RawCall = value[1]
        return made
    return value[2] if value[0] == "i" else None


def _is_method_call(callee: Value, function: Function) -> bool:
    if function.owner is None or function.static:
        return False
    # ``Base.__init__(self, x)`` names the instance itself.
    return not (callee is not None and callee[0] == "a" and callee[1] is not None and callee[1][0] == "k")
