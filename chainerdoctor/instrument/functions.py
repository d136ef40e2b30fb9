"""Where each function of the graph in progress was called: its link, and the program's own line.

Both are needed only when something breaks, so they are kept in the cheapest form (a link, a code object, an offset into
it) on the function itself, and the arrays at the graph's leaves are held until the iteration is over.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

from chainerdoctor.instrument.places import line_of
from chainerdoctor.instrument.training import BACKWARD, Paths, Training, around

#: On a FunctionNode: (link or None, code or None, offset of the instruction).
_ORIGIN = "_chainerdoctor_origin"
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: What is told each function after it ran forward: (function, its inputs as given, its outputs).
Ran = Callable[[Any, Tuple[Any, ...], Tuple[Any, ...]], None]


class Functions:
    """Follows ``FunctionNode.apply`` of a training."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.paths = Paths(training)
        #: Arrays at leaves of the graph that nothing else holds: id of the variable node → (node, array).
        self.leaves: Dict[int, Tuple[Any, Any]] = {}
        #: Called after every function while it is set, nested ones included.
        self.ran: Optional[Ran] = None
        #: Arguments of the outermost link's call, the last one of the iteration.
        self.arguments: Tuple[Any, ...] = ()
        self._links: List[Any] = []
        self._library: Dict[CodeType, bool] = {}
        self._chainer_folder = ""

    def hook(self, chainer: ModuleType) -> None:
        """Begin, once Chainer is there."""
        self._chainer_folder = os.path.dirname(str(chainer.__file__)) + os.sep
        around(chainer.FunctionNode, "apply", self._around_apply(chainer))
        self._training.link_hooks.append(_hook_of(chainer, self._links, self._called))

    def forget(self) -> None:
        """The iteration is over: let its arrays go."""
        self.leaves.clear()
        self.arguments = ()
        self._links.clear()  # a link that raised never left

    def targets(self) -> List[Any]:
        """The main links of the program's optimizers."""
        return self._training.targets

    def path_of(self, function: Any) -> str:
        """The path of the link in whose ``forward`` the function was called; "" outside of every link."""
        link = getattr(function, _ORIGIN, (None, None, 0))[0]
        return "" if link is None else self.paths.of(link)

    def place_of(self, function: Any) -> str:
        """File and line of the program that called the function; "" where there is none."""
        _, code, offset = getattr(function, _ORIGIN, (None, None, 0))
        return "" if code is None else f"{code.co_filename}:{_line(code, offset)}"

    def here(self, outermost: str) -> Tuple[str, str]:
        """Path of the innermost link and the program's line at this moment, as above, but nothing that is outside of
        the nearest frame of the file ``outermost``."""
        frame, place = sys._getframe(1), ""
        while frame is not None and not place:
            code = frame.f_code
            if code.co_filename == outermost and frame.f_back is not None and code.co_name != "ran":
                break
            if not code.co_filename.startswith((self._chainer_folder, _HERE)):
                place = f"{code.co_filename}:{line_of(frame)}"
            frame = frame.f_back  # type: ignore[assignment]
        return (self.paths.of(self._links[-1]) if self._links else "", place)

    def _called(self, arguments: Any) -> None:
        if len(self._links) == 1:
            self.arguments = arguments.args

    def _around_apply(self, chainer: ModuleType) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        training, variable_kind, parameter_kind = self._training, chainer.Variable, chainer.Parameter
        leaves, links = self.leaves, self._links

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def apply(self_: Any, inputs: Any) -> Any:
                outputs = original(self_, inputs)
                if self.ran is not None:
                    self.ran(self_, inputs, outputs)
                nodes = self_.inputs
                # Inside a backward pass functions belong to no line of the program; without a graph none is replayed.
                if nodes is None or training.phase == BACKWARD:
                    return outputs
                setattr(self_, _ORIGIN, (links[-1] if links else None, *self._caller()))
                for each, node in zip(inputs, nodes):
                    if node.creator_node is None and node.data is None:
                        if not isinstance(each, variable_kind):
                            leaves[id(node)] = (node, each)
                        elif not isinstance(each, parameter_kind):
                            leaves[id(node)] = (node, each.raw_array)
                return outputs

            return apply

        return make

    def _caller(self) -> Tuple[Optional[CodeType], int]:
        """The nearest frame that is neither Chainer's nor ours."""
        frame = sys._getframe(2)
        known = self._library
        while frame is not None:
            code = frame.f_code
            library = known.get(code)
            if library is None:
                library = known[code] = code.co_filename.startswith((self._chainer_folder, _HERE))
            if not library:
                return code, frame.f_lasti
            frame = frame.f_back  # type: ignore[assignment]
        return None, 0


def _hook_of(chainer: ModuleType, links: List[Any], called: Callable[[Any], None]) -> Any:
    class Stack(chainer.link_hook.LinkHook):  # type: ignore[misc,name-defined]
        name = "chainerdoctor-links"

        def forward_preprocess(self, arguments: Any) -> None:
            links.append(arguments.link)
            called(arguments)

        def forward_postprocess(self, arguments: Any) -> None:
            while links and links.pop() is not arguments.link:
                pass  # one that raised inside of it

    return Stack()


def _line(code: CodeType, offset: int) -> int:
    """The line of an instruction; the last one that begins at or before it."""
    import dis

    line = code.co_firstlineno
    for start, number in dis.findlinestarts(code):
        if start > offset:
            break
        line = number if number is not None else line
    return line
