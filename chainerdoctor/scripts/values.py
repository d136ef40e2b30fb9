"""What an expression stands for, as far as the source tells: small tuples, cheap to make and to hash.

``None`` is "cannot be told". Otherwise the first item says what follows:

=========  =====================================  ==============================================
``"q"``    absolute dotted name                   something imported from outside
``"m"``    :class:`Module`                        a module of the given paths
``"f"``    :class:`Function`                      a function of the given paths
``"k"``    :class:`Class`                         a class of the given paths
``"i"``    :class:`Class`, call or ``None``       an instance of it, and the call that made it
``"c"``    :class:`RawCall`                       what a call returns
``"a"``    value, attribute                       an attribute
``"s"``    value, index                           an element (index ``None``: one that cannot be told)
``"l"``    constant, its type                     a literal (0 and False are equal, so the type is kept)
``"t"``    tuple of values                        a tuple or list
``"p"``    :class:`Function`, parameter           an argument of the function around
``"n"``    name                                   a name that the source does not explain
``"u"``    tuple of values                        one of these
``"x"``    operator, tuple of values              a condition or operation, kept for its text
=========  =====================================  ==============================================
"""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Optional, Tuple

Value = Any

#: Alternatives that are kept of one value.
MOST_ALTERNATIVES = 6


class Module:
    """One parsed file and what its walk collected."""

    def __init__(self, path: str, name: str, is_package: bool) -> None:
        self.path = path
        self.name = name
        self.is_package = is_package
        self.env: Dict[str, Value] = {}
        self.calls: List[RawCall] = []
        self.settings: List[RawSetting] = []
        self.kept: List[Tuple[ast.AST, str, str, Value, str, int]] = []
        self.functions: List[Function] = []
        self.classes: List[Class] = []
        self.imports: Dict[str, None] = {}
        self.uses: Dict[str, None] = {}
        self.mentions: Dict[Tuple[str, Tuple[Value, ...]], List[Tuple[int, int]]] = {}


class Function:
    """A function or method; ``sites`` are filled when calls are linked."""

    def __init__(self, module: Module, name: str, node: Any, owner: Optional[Class], outer: Dict[str, Value]) -> None:
        self.module = module
        self.name = name
        self.node = node
        self.owner = owner
        self.outer = outer
        self.parameters: List[str] = []
        self.defaults: Dict[str, Value] = {}
        self.returns: List[Value] = []
        self.generator = False
        self.static = False
        self.property = False
        self.sites: List[RawCall] = []
        self.bound: Dict[str, List[Value]] = {}


class Class:
    """A class; ``attributes`` are values given to ``self.x`` or in its body."""

    def __init__(self, module: Module, name: str, node: ast.ClassDef, bases: List[Value]) -> None:
        self.module = module
        self.name = name
        self.node = node
        self.bases = bases
        self.methods: Dict[str, Function] = {}
        self.attributes: Dict[str, List[Value]] = {}


class RawCall:
    """A call before its names are resolved."""

    __slots__ = (
        "args",
        "callee",
        "contexts",
        "function",
        "guards",
        "keywords",
        "loops",
        "module",
        "node",
        "number",
        "open",
    )

    def __init__(
        self,
        module: Module,
        node: ast.Call,
        callee: Value,
        function: Optional[Function],
        guards: Tuple[Value, ...],
        contexts: Tuple[Value, ...],
        loops: Tuple[int, ...],
    ) -> None:
        self.module = module
        self.node = node
        self.callee = callee
        self.function = function
        self.guards = guards
        self.contexts = contexts
        self.loops = loops
        self.args: List[Value] = []
        self.keywords: Dict[str, Value] = {}
        self.open = False
        self.number = 0


class RawSetting:
    """An assignment to an attribute or item before its names are resolved."""

    __slots__ = ("function", "guards", "node", "target", "value")

    def __init__(
        self, node: ast.AST, target: Value, value: Value, function: Optional[Function], guards: Tuple[Value, ...]
    ) -> None:
        self.node = node
        self.target = target
        self.value = value
        self.function = function
        self.guards = guards


def union(values: List[Value]) -> Value:
    """One value for several alternatives."""
    flat: List[Value] = []
    for value in values:
        for each in value[1] if value is not None and value[0] == "u" else (value,):
            if each not in flat:
                flat.append(each)
    if len(flat) == 1:
        return flat[0]
    if not flat:
        return None
    return ("u", tuple(flat[:MOST_ALTERNATIVES]) + ((None,) if len(flat) > MOST_ALTERNATIVES else ()))
