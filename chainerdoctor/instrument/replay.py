"""Runs an iteration's graph again, function by function, to find the first one that made a NaN or an infinity.

The graph itself says what was computed: from the loss back to the leaves. Every function is copied (its arrays too, so
that running statistics are not updated twice), applied in the order of the graph to the leaves' own arrays, and its
results are looked at; then the backward pass likewise. Parameters, their gradients and the program's random state stay
as they are. A dropout's mask and the like are kept by Chainer's functions themselves, so the replay meets the same ones;
whether it does is checked by comparing the loss bit for bit.
"""

from __future__ import annotations

import contextlib
import copy
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from chainerdoctor.instrument.functions import Functions
from chainerdoctor.instrument.gradient_sums import extremes, nonfinite

#: A graph that was never cut grows without end (truncated BPTT without unchain_backward); this many functions are enough.
_MOST_FUNCTIONS = 100_000
#: What a function keeps of its first run and has to make anew.
_OF_THE_GRAPH = (
    "inputs",
    "outputs",
    "rank",
    "_input_layouts",
    "_output_layouts",
    "_output_count",
    "_input_indexes_to_retain",
    "_output_indexes_to_retain",
    "_retained_output_data",
    "_local_function_hooks",
)


@dataclass
class Loss:
    """What ``backward()`` was called on: the variable, its gradient (``None``: 1) and the loss scale."""

    variable: Any
    gradient: Any
    scale: Optional[float]


@dataclass
class Culprit:
    """The first operation whose result was not finite though everything it got was.

    ``stage`` is ``input``, ``parameter``, ``forward``, ``backward`` or ``accumulation`` (the sum of gradients that reach
    one variable). ``arrays`` are what it got and ``results`` what it gave. ``function`` is the original one.
    """

    stage: str
    label: str
    path: str = ""
    place: str = ""
    inner: str = ""
    arrays: List[Tuple[str, Dict[str, Any]]] = field(default_factory=list)
    results: List[Tuple[str, Dict[str, Any]]] = field(default_factory=list)
    function: Any = None
    inputs: Tuple[Any, ...] = ()
    gradients: Tuple[Any, ...] = ()
    #: Whether the same function on float32 numbers stays finite; ``None``: not tried.
    float32_survives: Optional[bool] = None
    #: A loss scale at which the backward pass stays finite; 0: none was found; ``None``: not tried.
    scale_survives: Optional[float] = None


@dataclass
class Replayed:
    """What a replay found. ``same`` says whether the loss had the same bits; ``problem`` why it could not be done."""

    culprit: Optional[Culprit] = None
    same: bool = False
    problem: str = ""
    functions: int = 0


def replay(losses: List[Loss], functions: Functions, chainer: Any) -> Replayed:
    """Replay the graphs of these losses, the first fault ends it."""
    result = Replayed()
    for loss in losses:
        try:
            with _undisturbed():
                one = _Replay(loss, functions, chainer).run()
        except MemoryError:
            one = Replayed(problem="there was not enough memory to run the iteration a second time")
        except Exception as error:
            one = Replayed(problem=f"{type(error).__name__}: {error}")
        result.functions += one.functions
        result.same = one.same
        result.problem = result.problem or one.problem
        if one.culprit is not None:
            result.culprit = one.culprit
            return result
    return result


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep NumPy's random state: a function of the program's own may draw in its ``forward``."""
    import numpy

    state = numpy.random.get_state()
    try:
        with numpy.errstate(all="ignore"):
            yield
    finally:
        numpy.random.set_state(state)


class _Replay:
    def __init__(self, loss: Loss, functions: Functions, chainer: Any) -> None:
        self._loss = loss
        self._functions = functions
        self._chainer = chainer
        #: New variables by the identity of the old graph's nodes.
        self._values: Dict[int, Any] = {}
        #: Copies with their originals, in order of the forward pass.
        self._pairs: List[Tuple[Any, Any]] = []
        self._culprit: Optional[Culprit] = None
        #: A function within a function: its label, and the words that name it.
        self._inner = ("", "")

    def run(self) -> Replayed:
        order = self._order()
        result = Replayed(functions=len(order))
        with self._chainer.using_config("enable_backprop", True), self._chainer.using_config("debug", False):
            for function in order:
                if not self._leaves_are_finite(function) or not self._forward(function):
                    result.culprit = self._culprit
                    result.same = True
                    return result
            again = self._values.get(id(self._loss.variable.node))
            if again is None:
                result.problem = "the loss is not part of the graph"
                return result
            result.same = _bytes(again.array) == _bytes(self._loss.variable.array)
            self._backward(again, self._loss.scale)
            result.culprit = self._culprit
            if self._culprit is not None and self._culprit.stage != "forward":
                self._try_smaller_scales()
        return result

    def _order(self) -> List[Any]:
        """Every function between the leaves and the loss, in an order in which it can be run."""
        found: Dict[int, Any] = {}
        rest = [self._loss.variable.creator_node]
        while rest:
            function = rest.pop()
            if function is None or id(function) in found:
                continue
            found[id(function)] = function
            if len(found) > _MOST_FUNCTIONS:
                raise MemoryError
            rest += [node.creator_node for node in function.inputs]
        return sorted(found.values(), key=lambda each: each.rank)

    def _leaves_are_finite(self, function: Any) -> bool:
        """Make variables of the leaves that this function needs, and look at them."""
        for number, node in enumerate(function.inputs):
            if id(node) in self._values:
                continue
            array = self._array_of(node)
            if array is None:
                raise LookupError(f"input {number} of {function.label} is gone")
            made = self._chainer.Variable(array, requires_grad=node.requires_grad)
            self._values[id(node)] = made
            if nonfinite(array):
                original = node.get_variable_or_none()
                is_parameter = isinstance(original, self._chainer.Parameter)
                path = self._parameter_path(original) if is_parameter else self._functions.path_of(function)
                what = "parameter" if is_parameter else "input"
                self._culprit = Culprit(what, function.label, path, self._functions.place_of(function))
                self._culprit.arrays = [(path if is_parameter else f"input {number}", extremes(array))]
                return False
        return True

    def _array_of(self, node: Any) -> Any:
        held = self._functions.leaves.get(id(node))
        if held is not None and held[0] is node:
            return held[1]
        if node.data is not None:
            return node.data
        variable = node.get_variable_or_none()
        return None if variable is None else variable.raw_array

    def _parameter_path(self, parameter: Any) -> str:
        for target in self._functions.targets():
            for path, each in target.namedparams():
                if each is parameter:
                    return str(path)
        return str(getattr(parameter, "name", None) or "a parameter")

    def _forward(self, function: Any) -> bool:
        """Run one function; ``False`` once its results are not finite."""
        clone = cloned(function)
        given = [self._values[id(node)] for node in function.inputs]
        with self._watching_inside():
            outputs = clone.apply(given)
        for reference, output in zip(function.outputs, outputs):
            node = reference()
            if node is not None:
                self._values[id(node)] = output
        self._pairs.append((clone, function))
        arrays = [output.array for output in outputs]
        if not any(nonfinite(array) for array in arrays):
            return True
        self._culprit = self._named("forward", function)
        self._culprit.inputs = tuple(each.array for each in given)
        self._culprit.arrays = [(f"input {n}", extremes(each.array)) for n, each in enumerate(given)]
        self._culprit.results = [(f"output {n}", extremes(array)) for n, array in enumerate(arrays)]
        self._culprit.float32_survives = self._survives_in_float32(function)
        return False

    @contextlib.contextmanager
    def _watching_inside(self) -> Iterator[None]:
        """Functions that one function calls itself (F.forget, a function made of others) are named as well."""
        self._inner = ("", "")

        def ran(function: Any, inputs: Tuple[Any, ...], outputs: Tuple[Any, ...]) -> None:
            if not self._inner[0] and any(nonfinite(each.array) for each in outputs):
                given = [getattr(each, "array", each) for each in inputs]
                if not any(nonfinite(each) for each in given):
                    path, place = self._functions.here(__file__)
                    self._inner = (function.label, " ".join(filter(None, (function.label, path, place))))

        self._functions.ran, before = ran, self._functions.ran
        try:
            yield
        finally:
            self._functions.ran = before

    def _named(self, stage: str, function: Any) -> Culprit:
        path, place = self._functions.path_of(function), self._functions.place_of(function)
        label, words = self._inner
        inner = words if label != function.label else ""
        return Culprit(stage, function.label, path, place, inner, function=function)

    def _survives_in_float32(self, function: Any) -> Optional[bool]:
        assert self._culprit is not None
        if not any(str(each.dtype) == "float16" for each in self._culprit.inputs):
            return None
        wide = [each.astype("float32") if each.dtype.kind == "f" else each for each in self._culprit.inputs]
        try:
            outputs = cloned(function).apply(wide)
        except Exception:  # functions may insist on their type
            return None
        return not any(nonfinite(each.array) for each in outputs)

    # The backward pass.

    def _backward(self, loss: Any, scale: Optional[float]) -> None:
        for clone, original in self._pairs:
            self._watch_backward(clone, original)
        self._run_backward(loss, scale)

    def _run_backward(self, loss: Any, scale: Optional[float]) -> None:
        loss.grad_var = None
        if self._loss.gradient is not None:
            loss.grad = self._loss.gradient
        for variable in self._values.values():
            if variable.creator_node is None:
                variable.cleargrad()
        with self._watching_sums():
            loss.backward(loss_scale=scale)

    def _watch_backward(self, clone: Any, original: Any) -> None:
        # Chainer looks at which of the two a function overrides, so the same one has to be replaced.
        plain = type(clone).backward_accumulate is self._chainer.FunctionNode.backward_accumulate
        name = "backward" if plain else "backward_accumulate"
        real: Callable[..., Any] = getattr(clone, name)

        def backward(indexes: Any, gradients: Any, *more: Any) -> Any:
            with self._watching_inside():
                made = real(indexes, gradients, *more)
            # Where it already got something bad, the culprit came before.
            turned_bad = any(_is_bad(each) for each in made) and not any(_is_bad(each) for each in gradients)
            if self._culprit is None and turned_bad:
                self._blame_backward(original, clone, gradients, made)
            return made

        setattr(clone, name, backward)

    def _blame_backward(self, original: Any, clone: Any, gradients: Any, made: Any) -> None:
        self._culprit = self._named("backward", original)
        inputs = tuple(self._values[id(node)].array for node in original.inputs)
        self._culprit.inputs = inputs
        self._culprit.gradients = tuple(None if each is None else each.array for each in gradients)
        told = [(f"input {n}", extremes(each)) for n, each in enumerate(inputs)]
        told += [(f"gradient of output {n}", extremes(g.array)) for n, g in enumerate(gradients) if g is not None]
        self._culprit.arrays = told
        self._culprit.results = [
            (f"gradient of input {n}", extremes(each.array)) for n, each in enumerate(made) if each is not None
        ]

    @contextlib.contextmanager
    def _watching_sums(self) -> Iterator[None]:
        """Chainer adds the gradients that reach one variable by a function of its own, outside of every backward()."""

        def ran(function: Any, inputs: Tuple[Any, ...], outputs: Tuple[Any, ...]) -> None:
            if self._culprit is None and any(nonfinite(each.array) for each in outputs):
                given = [getattr(each, "array", each) for each in inputs]
                if not any(nonfinite(each) for each in given):
                    self._culprit = Culprit("accumulation", function.label)
                    self._culprit.arrays = [(f"gradient {n}", extremes(each)) for n, each in enumerate(given)]
                    self._culprit.results = [("their sum", extremes(each.array)) for each in outputs]

        self._functions.ran, before = ran, self._functions.ran
        try:
            yield
        finally:
            self._functions.ran = before

    def _try_smaller_scales(self) -> None:
        """Run the backward pass with ever smaller loss scales, until it stays finite."""
        found, scale = self._culprit, self._loss.scale
        assert found is not None
        if scale is None or scale <= 1 or self._loss.gradient is not None:
            return
        loss = self._values[id(self._loss.variable.node)]
        found.scale_survives = 0.0
        while scale > 1 and not found.scale_survives:
            scale /= 2
            self._culprit = None
            self._run_backward(loss, scale)
            if self._culprit is None:
                found.scale_survives = scale
        self._culprit = found


def cloned(function: Any) -> Any:
    """A function as it was before it was applied, with arrays of its own; an old-style one with its adapter."""
    clone = copy.copy(function)
    for name in _OF_THE_GRAPH:
        clone.__dict__.pop(name, None)
    _own_arrays(clone)
    wrapped = getattr(function, "function", None) if hasattr(function, "_weak_function") else None
    if wrapped is not None:
        inner = copy.copy(wrapped)
        _own_arrays(inner)
        clone._function, clone._weak_function = inner, None
        inner._node, inner._owned_node = weakref.ref(clone), None
    return clone


def _own_arrays(holder: Any) -> None:
    for name, value in list(vars(holder).items()):
        if hasattr(value, "dtype") and hasattr(value, "copy") and hasattr(value, "shape"):
            vars(holder)[name] = value.copy()


def _is_bad(variable: Any) -> bool:
    return variable is not None and variable.array is not None and bool(nonfinite(variable.array))


def _bytes(array: Any) -> bytes:
    host = array.get() if hasattr(array, "get") else array
    return bytes(host.tobytes())


def loss_of(variable: Any, scale: Optional[float]) -> Loss:
    """Hold a loss before its backward pass."""
    gradient = variable.grad
    return Loss(variable, None if gradient is None else gradient.copy(), scale)
