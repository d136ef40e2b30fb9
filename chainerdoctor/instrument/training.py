"""What the training is doing at this moment: its iteration and phase, seen from hooks on Chainer's own classes.

Nothing of the program changes: hooks call what was there with the same arguments and give back what it gave. Where
Chainer has a hook of its own that is used, elsewhere a method of a class is wrapped once Chainer has been imported.

An iteration is one ``updater.update()`` of a Trainer with the extensions after it or, in a loop of the program's own, one
completed update of the optimizer that was updated first.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from chainerdoctor.instrument.imports import when_imported
from chainerdoctor.instrument.spool import Spool, Stride

#: Phases by number. "other" is the program's own code between them.
PHASES = ("other", "data", "forward", "backward", "all-reduce", "update", "evaluation", "extension")
OTHER, DATA, FORWARD, BACKWARD, ALLREDUCE, UPDATE, EVALUATION, EXTENSION = range(8)

Listener = Callable[..., None]


class StopTraining(SystemExit):
    """Ends the program from within a listener, on the user's demand; the exit code is 1."""

    def __init__(self) -> None:
        super().__init__(1)


class Training:
    """Follows one process's training and tells listeners.

    Lists of listeners, each called in the training's own thread:

    - ``on_phase(old, new)``: numbers of :data:`PHASES`.
    - ``on_backward(variable, loss_scale)``: before the outermost ``variable.backward()``, ``variable`` being the loss as a
      rule, ``loss_scale`` what that call was given or ``None``.
    - ``on_backward_done()``: after it; gradients are this rank's own.
    - ``on_gradients(optimizer)``: gradients are complete (after the all-reduce, before the optimizer's hooks and update).
    - ``on_updated(optimizer)``: that optimizer's update is complete.
    - ``on_iteration(number)``: an iteration is complete; the first is 1.

    A listener that raises is told of in the capture and not called again; only :class:`StopTraining` passes.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.phase = OTHER
        #: Iterations that are complete.
        self.completed = 0
        self.on_phase: List[Listener] = []
        self.on_backward: List[Listener] = []
        self.on_backward_done: List[Listener] = []
        self.on_gradients: List[Listener] = []
        self.on_updated: List[Listener] = []
        self.on_iteration: List[Listener] = []
        #: How often gradients were exchanged with other ranks.
        self.gradient_exchanges = 0
        #: The mpi4py communicator of the first exchange.
        self.exchanged_over: Any = None
        #: Whether this rank sent arrays to single ranks or received them, as parts of one model do.
        self.model_parallel = False
        #: The main link of every optimizer that was set up, by the optimizer's number in order of their set-up.
        self.targets: List[Any] = []
        #: Chainer's own hooks, registered in every thread that trains.
        self.link_hooks: List[Any] = []
        self.function_hooks: List[Any] = []
        #: Take those away again.
        self.forget_hooks: List[Callable[[], None]] = []
        self._thread = threading.get_ident()
        self._held = False
        self._in_trainer = 0
        self._updating = 0
        self._first_optimizer: Optional[int] = None
        self._spent_ns = [0] * len(PHASES)
        self._since_ns = time.perf_counter_ns()
        self._began_ns = self._since_ns
        self._stride = Stride()
        self._folded: Optional[List[int]] = None
        self._folded_count = self._longest_ns = 0

    def watch(self) -> None:
        """Put the hooks in place as soon as the program has imported what they are for."""
        from chainerdoctor.instrument import chainer_hooks

        when_imported("chainer", lambda module: self._guarded(chainer_hooks.hook_chainer, module))
        when_imported("chainermn", lambda module: self._guarded(chainer_hooks.hook_chainermn, module))

    def stop(self) -> None:
        """Tell nobody anything any more, and take the hooks away."""
        for listeners in (
            self.on_phase,
            self.on_backward,
            self.on_backward_done,
            self.on_gradients,
            self.on_updated,
            self.on_iteration,
        ):
            listeners.clear()
        unhook()
        for forget in self.forget_hooks:
            forget()

    def _guarded(self, hook: Callable[[Training, ModuleType], None], module: ModuleType) -> None:
        try:
            hook(self, module)
        except Exception as error:  # another Chainer than the one known: the program must run all the same
            self.failed(hook.__name__, error)

    def failed(self, who: str, error: BaseException) -> None:
        """Put into the capture that a part of the doctor broke."""
        self._spool.tell("failed", {"who": who, "error": f"{type(error).__name__}: {error}"}, now=True)

    def tell(self, listeners: List[Listener], *arguments: Any) -> None:
        """Call each listener; one that raises is retired."""
        for listener in tuple(listeners):
            try:
                listener(*arguments)
            except StopTraining:
                raise
            except Exception as error:
                listeners.remove(listener)
                self.failed(getattr(listener, "__qualname__", repr(listener)), error)

    # Phases.

    def enter(self, phase: int, hold: bool = False) -> Optional[int]:
        """A phase begins; the answer goes to :meth:`leave`. Within an evaluation or extension nothing changes.

        ``hold`` keeps the phases that begin inside from showing.
        """
        if threading.get_ident() != self._thread or (self._held and not (hold and phase == EVALUATION)):
            return None
        before = (self.phase << 1) | self._held
        self._held = hold
        self._to(phase)
        return before

    def leave(self, before: Optional[int]) -> None:
        """That phase is over. A forward pass that it interrupted is over as well: nobody tells its end."""
        if before is None:
            return
        self._held = bool(before & 1)
        self._to(before >> 1 if self._held else OTHER)

    def forward_begins(self, in_evaluation: Callable[[], bool]) -> None:
        """The outermost link is called; the phase lasts until another begins."""
        if self.phase > DATA or threading.get_ident() != self._thread:
            return
        self._to(EVALUATION if in_evaluation() else FORWARD)

    def _to(self, phase: int) -> None:
        old = self.phase
        if old == phase:
            return
        now_ns = time.perf_counter_ns()
        self._spent_ns[old] += now_ns - self._since_ns
        self._since_ns = now_ns
        self.phase = phase
        if self.on_phase:
            self.tell(self.on_phase, old, phase)

    # Iterations.

    def iteration_ends(self) -> None:
        """Complete an iteration: count it, tell it, and record where its time went."""
        now_ns = time.perf_counter_ns()
        self._spent_ns[self.phase] += now_ns - self._since_ns
        self._since_ns = now_ns
        self.completed += 1
        self._fold(now_ns - self._began_ns)
        self._began_ns = now_ns
        if self.on_iteration:
            self.tell(self.on_iteration, self.completed)

    def _fold(self, wall_ns: int) -> None:
        """Record an iteration, or add it to those that the next record stands for."""
        spent, self._spent_ns = self._spent_ns, [0] * len(PHASES)
        if self._folded is not None:
            spent = [one + other for one, other in zip(spent, self._folded)]
        self._folded_count += 1
        self._longest_ns = max(self._longest_ns, wall_ns)
        if not self._stride.keep():
            self._folded = spent
            return
        self._spool.tell(
            "iteration",
            {"n": self.completed, "k": self._folded_count, "t": time.time(), "ns": spent, "longest": self._longest_ns},
        )
        self._folded, self._folded_count, self._longest_ns = None, 0, 0

    def optimizer_updates(self) -> int:
        """An optimizer's ``update`` begins; the answer is how many surround it."""
        self._updating += 1
        return self._updating - 1

    def optimizer_updated(self, optimizer: Any, surrounding: int, completed: bool) -> None:
        """It has returned (``completed``) or raised."""
        self._updating = surrounding
        if not completed or surrounding or threading.get_ident() != self._thread:
            return
        if self._first_optimizer is None:
            self._first_optimizer = id(optimizer)
        if not self._in_trainer and id(optimizer) == self._first_optimizer:
            self.iteration_ends()

    def trainer_runs(self) -> None:
        """A Trainer's loop begins in this thread."""
        self._thread = threading.get_ident()
        self._in_trainer += 1

    def trainer_ran(self) -> None:
        """It is over."""
        self._in_trainer -= 1


class Paths:
    """Names of links as ``/predictor/conv1``, from the optimizers' targets; of others by their class."""

    def __init__(self, training: Training) -> None:
        self._training = training
        # By identity, with a weak reference that says whether the identity is still that of the same link.
        self._known: Dict[int, Tuple[weakref.ReferenceType[Any], str]] = {}

    def of(self, link: Any) -> str:
        """The path of a link; ``(ClassName)`` for one below no optimizer's target."""
        known = self._known.get(id(link))
        if known is None or known[0]() is not link:
            self._known[id(link)] = (weakref.ref(link), f"({type(link).__name__})")
            self._look()
            known = self._known[id(link)]
        return known[1]

    def _look(self) -> None:
        targets = self._training.targets
        for target in targets:
            prefix = "" if len(targets) == 1 else f"{type(target).__name__}"
            for path, link in target.namedlinks():
                self._known[id(link)] = (weakref.ref(link), prefix + path)


def around(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace ``owner.name``, if ``owner`` itself defines it, by what ``make`` makes of it."""
    original = vars(owner).get(name)
    if original is None or getattr(original, "_chainerdoctor", False):
        return
    made = functools.wraps(original)(make(original))
    made._chainerdoctor = True  # type: ignore[attr-defined]
    setattr(owner, name, made)
    _HOOKED.append((owner, name, original, made))


#: What was replaced: owner, name, the original and what stands in its place.
_HOOKED: List[Tuple[Any, str, Any, Any]] = []


def unhook() -> None:
    """Put every original back, but for those that somebody else has replaced since."""
    while _HOOKED:
        owner, name, original, made = _HOOKED.pop()
        if vars(owner).get(name) is made:
            setattr(owner, name, original)


def subclasses(owner: type) -> Iterator[type]:
    """The class and everything below it that is loaded, each once."""
    seen: Set[type] = set()
    rest = [owner]
    while rest:
        each = rest.pop()
        if each not in seen:
            seen.add(each)
            yield each
            rest += each.__subclasses__()
