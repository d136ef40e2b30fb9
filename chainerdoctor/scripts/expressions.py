"""Expressions of one file: each is given a value, and every call is recorded with where and under what it stands."""

from __future__ import annotations

import abc
import ast
from typing import Any, Callable, Dict, List, Optional, Tuple

from chainerdoctor.scripts.values import Class, Function, Module, RawCall, Value, union

_COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class Expressions(abc.ABC):
    """What the walk of a module's statements stands on; ``scopes`` are the names around, the innermost last."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.function: Optional[Function] = None
        self.scopes: List[Dict[str, Value]] = [module.env]
        self.guards: Tuple[Value, ...] = ()
        self.contexts: Tuple[Value, ...] = ()
        self.loops: Tuple[int, ...] = ()

    @abc.abstractmethod
    def assign(self, target: ast.expr, value: Value) -> None:
        """Give a name, attribute, item or sequence of them a value."""

    @abc.abstractmethod
    def new_function(self, node: Any, name: str, owner: Optional[Class]) -> Function:
        """A function or lambda, to be walked later."""

    def value(self, node: Any, mention: bool = True) -> Value:
        """What an expression stands for; calls within it are recorded."""
        step = _EXPRESSIONS.get(type(node))
        if step is None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, (ast.expr, ast.keyword, ast.slice)):
                    self.value(child.value if isinstance(child, ast.keyword) else child)
            return None
        return step(self, node) if mention or type(node) is not ast.Attribute else self.attribute(node, False)

    def constant(self, node: Any) -> Value:
        return ("l", node.value, type(node.value))

    def name(self, node: ast.Name) -> Value:
        name = node.id
        for scope in reversed(self.scopes):
            if name in scope:
                found = scope[name]
                return ("n", name) if found is None else found
        return ("n", name)

    def attribute(self, node: ast.Attribute, mention: bool = True) -> Value:
        inner = node.value
        base = self.attribute(inner, False) if type(inner) is ast.Attribute else self.value(inner)
        if base is not None and base[0] == "q":
            made = ("q", f"{base[1]}.{node.attr}")
            if mention:
                self.mention(made, node)
            return made
        return ("a", base, node.attr)

    def mention(self, value: Value, node: Any) -> None:
        places = self.module.mentions.setdefault((value[1], self.guards), [])
        places.append((node.lineno, node.col_offset + 1))

    def call(self, node: ast.Call) -> Value:
        callee = self.value(node.func)
        made = RawCall(self.module, node, callee, self.function, self.guards, self.contexts, self.loops)
        for arg in node.args:
            if type(arg) is ast.Starred:
                value = self.value(arg.value)
                if value is not None and value[0] == "t":
                    made.args.extend(value[1])
                else:
                    made.open = True
            else:
                made.args.append(self.value(arg))
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                made.open = True
            else:
                made.keywords[keyword.arg] = value
        self.module.calls.append(made)
        func = node.func
        if type(func) is ast.Attribute and func.attr == "append" and len(node.args) == 1:
            self.keep(node, func.value, node.args[0])
        return ("c", made)

    def keep(self, node: ast.AST, holder: ast.expr, kept: ast.expr) -> None:
        if self.loops and isinstance(holder, (ast.Name, ast.Attribute)) and isinstance(kept, ast.Name):
            name = holder.id if isinstance(holder, ast.Name) else ast.dump(holder)
            scope = self.function.name if self.function is not None else ""
            self.module.kept.append((node, name, kept.id, self.name(kept), scope, self.loops[-1]))

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        inner: Any = node.slice
        if type(inner).__name__ == "Index":  # Python 3.8 wraps it
            inner = inner.value
        index = self.value(inner)
        if index is not None and index[0] == "l" and isinstance(index[1], (int, str)):
            return element(base, index[1])
        return ("s", base, None)

    def sequence(self, node: Any) -> Value:
        return ("t", tuple([self.value(each) for each in node.elts]))

    def compare(self, node: ast.Compare) -> Value:
        values = tuple([self.value(each) for each in (node.left, *node.comparators)])
        return ("x", _COMPARISONS[type(node.ops[0])], values) if len(node.ops) == 1 else None

    def boolean(self, node: ast.BoolOp) -> Value:
        values = tuple([self.value(each) for each in node.values])
        return ("x", "and" if isinstance(node.op, ast.And) else "or", values)

    def unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return ("x", "not", (value,))
        if isinstance(node.op, ast.USub) and value is not None and value[0] == "l":
            return ("l", -value[1], value[2]) if isinstance(value[1], (int, float)) else None
        return None

    def either(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        before = self.guards
        self.guards = (*before, test)
        yes = self.value(node.body)
        self.guards = (*before, ("x", "not", (test,)))
        no = self.value(node.orelse)
        self.guards = before
        return union([yes, no])

    def lambda_(self, node: ast.Lambda) -> Value:
        return ("f", self.new_function(node, "<lambda>", None))

    def binary(self, node: ast.BinOp) -> Value:
        # A sum of thousands of terms leans to the left: a loop, so that it does not exhaust the stack.
        inner: Any = node
        while isinstance(inner, ast.BinOp):
            self.value(inner.right)
            inner = inner.left
        self.value(inner)

    def comprehension(self, node: Any) -> Value:
        self.scopes.append({})
        for part in node.generators:
            self.assign(part.target, ("s", self.value(part.iter), None))
            for test in part.ifs:
                self.value(test)
        if isinstance(node, ast.DictComp):
            self.value(node.key)
            made = self.value(node.value)
        else:
            made = self.value(node.elt)
        self.scopes.pop()
        return ("t", (made,)) if made is not None else None

    def starred(self, node: Any) -> Value:
        self.value(node.value)

    def yielded(self, node: Any) -> Value:
        if self.function is not None:
            self.function.generator = True
        if node.value is not None:
            self.value(node.value)


def element(value: Value, index: Any) -> Value:
    """An item of a value: of a tuple that is known, the very item."""
    if value is not None and value[0] == "t" and isinstance(index, int) and -len(value[1]) <= index < len(value[1]):
        return value[1][index]
    return ("s", value, index)


_EXPRESSIONS: Dict[type, Callable[[Expressions, Any], Value]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.call,
    ast.Subscript: Expressions.subscript,
    ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence,
    ast.Compare: Expressions.compare,
    ast.BoolOp: Expressions.boolean,
    ast.UnaryOp: Expressions.unary,
    ast.IfExp: Expressions.either,
    ast.Lambda: Expressions.lambda_,
    ast.BinOp: Expressions.binary,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.Starred: Expressions.starred,
    ast.Yield: Expressions.yielded,
    ast.YieldFrom: Expressions.yielded,
}
