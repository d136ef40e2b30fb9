"""Where :class:`~chainerdoctor.instrument.training.Training` looks into Chainer 7 and ChainerMN.

Wrapped are methods of Chainer's own classes; user classes inherit them. A wrapper adds no argument, keeps the result
and lets every exception through.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any, Callable, Iterator

from chainerdoctor.instrument.training import (
    ALLREDUCE,
    BACKWARD,
    DATA,
    EVALUATION,
    EXTENSION,
    UPDATE,
    Training,
    around,
    subclasses,
)

Method = Callable[..., Any]

#: Under this name our hooks are registered with Chainer.
HOOK_NAME = "chainerdoctor"


#: Methods of ChainerMN's communicators that exchange gradients.
GRADIENT_EXCHANGES = ("multi_node_mean_grad", "allreduce_grad", "_multi_node_mean_grad_async")


def hook_chainer(training: Training, chainer: ModuleType) -> None:
    """Called once, right after ``import chainer``."""
    from chainer.dataset import convert
    from chainer.training.extensions.evaluator import Evaluator

    _hook_links(training, chainer)
    _hook_iterators(training, chainer)
    around(type(convert.concat_examples), "__call__", _phase(training, DATA))
    around(convert, "_call_converter", _phase(training, DATA))
    around(chainer.Variable, "backward", _backward(training))
    around(chainer, "grad", _phase(training, BACKWARD))
    around(Evaluator, "__call__", _phase(training, EVALUATION, hold=True))
    around(chainer.Optimizer, "setup", _setup(training))
    around(chainer.Optimizer, "check_nan_in_grads", _gradients(training))
    around(chainer.GradientMethod, "reallocate_cleared_grads", _update_begins(training))
    for optimizer in subclasses(chainer.Optimizer):
        around(optimizer, "update", _update(training))
    around(chainer.training.Trainer, "run", _trainer_run(training, chainer))


def hook_chainermn(training: Training, chainermn: ModuleType) -> None:
    """Called once, right after ``import chainermn``."""
    from chainermn import optimizers
    from chainermn.communicators.mpi_communicator_base import MpiCommunicatorBase

    for name in ("_MultiNodeOptimizer", "_DoubleBufferingOptimizer"):
        optimizer = getattr(optimizers, name, None)
        if optimizer is not None:
            around(optimizer, "update", _update(training))
    # Communicators' modules are imported when one is made.
    around(MpiCommunicatorBase, "__init__", _communicator_made(training))


def _communicator_made(training: Training) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            for kind in type(self).__mro__:
                for name in GRADIENT_EXCHANGES:
                    around(kind, name, _exchange(training))
                around(kind, "bcast_data", _phase(training, ALLREDUCE))
                for name in ("send", "recv", "alltoall"):
                    around(kind, name, _between_parts(training))
            original(self, *args, **kwargs)

        return __init__

    return make


def register_in_this_thread(training: Training, chainer: ModuleType) -> None:
    """Chainer's hooks belong to a thread; a program may train in another one than it imports Chainer in."""
    for registered, hooks in (
        (chainer._get_link_hooks(), training.link_hooks),
        (chainer.get_function_hooks(), training.function_hooks),
    ):
        for hook in hooks:
            if hook.name not in registered:
                registered[hook.name] = hook
                training.forget_hooks.append(lambda of=registered, name=hook.name: of.pop(name, None))  # type: ignore[misc]


def _hook_links(training: Training, chainer: ModuleType) -> None:
    config = chainer.config

    class Outermost(chainer.link_hook.LinkHook):  # type: ignore[misc,name-defined]
        name = HOOK_NAME

        def forward_preprocess(self, arguments: Any) -> None:
            training.forward_begins(lambda: not config.train)

    training.link_hooks.append(Outermost())
    register_in_this_thread(training, chainer)


def _hook_iterators(training: Training, chainer: ModuleType) -> None:
    for iterator in subclasses(chainer.dataset.Iterator):
        for name in ("__next__", "next"):
            around(iterator, name, _phase(training, DATA))


def _phase(training: Training, phase: int, hold: bool = False) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            before = training.enter(phase, hold)
            try:
                return original(*args, **kwargs)
            finally:
                training.leave(before)

        return wrapper

    return make


def _exchange(training: Training) -> Callable[[Method], Method]:
    phase = _phase(training, ALLREDUCE)

    def make(original: Method) -> Method:
        def exchange(*args: Any, **kwargs: Any) -> Any:
            training.gradient_exchanges += 1
            if training.exchanged_over is None:
                training.exchanged_over = getattr(args[0], "mpi_comm", None)
            return original(*args, **kwargs)

        return phase(exchange)

    return make


def _between_parts(training: Training) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def message(*args: Any, **kwargs: Any) -> Any:
            training.model_parallel = True
            return original(*args, **kwargs)

        return message

    return make


def _backward(training: Training) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = training.phase != BACKWARD
            if outermost and training.on_backward:
                scale = kwargs.get("loss_scale", args[2] if len(args) > 2 else None)
                training.tell(training.on_backward, self, scale)
            before = training.enter(BACKWARD)
            try:
                result = original(self, *args, **kwargs)
            finally:
                training.leave(before)
            if outermost and training.on_backward_done:
                training.tell(training.on_backward_done)
            return result

        return backward

    return make


def _setup(training: Training) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def setup(self: Any, link: Any) -> Any:
            if not any(link is target for target in training.targets):
                training.targets.append(link)
            return original(self, link)

        return setup

    return make


def _gradients(training: Training) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def check_nan_in_grads(self: Any) -> Any:
            result = original(self)
            if training.on_gradients:
                training.tell(training.on_gradients, self)
            return result

        return check_nan_in_grads

    return make


def _update_begins(training: Training) -> Callable[[Method], Method]:
    """The first thing that an update does once gradients are there."""

    def make(original: Method) -> Method:
        def reallocate_cleared_grads(self: Any) -> Any:
            if training.phase != UPDATE:
                training.enter(UPDATE)  # left when update() returns
            return original(self)

        return reallocate_cleared_grads

    return make


def _update(training: Training) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def update(self: Any, *args: Any, **kwargs: Any) -> Any:
            surrounding, completed = training.optimizer_updates(), False
            try:
                result = original(self, *args, **kwargs)
                completed = True
                return result
            finally:
                if training.phase == UPDATE:
                    training.leave(0)
                if completed and training.on_updated:
                    training.tell(training.on_updated, self)
                training.optimizer_updated(self, surrounding, completed)

        return update

    return make


def _trainer_run(training: Training, chainer: ModuleType) -> Callable[[Method], Method]:
    def make(original: Method) -> Method:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            _hook_iterators(training, chainer)  # those that the program defined
            register_in_this_thread(training, chainer)
            training.trainer_runs()
            try:
                with _watched(training, self):
                    return original(self, *args, **kwargs)
            finally:
                training.trainer_ran()

        return run

    return make


class _WatchedTrigger:
    """A trigger that tells when its extension is about to be called; everything else is the real trigger's."""

    def __init__(self, real: Any, fired: Callable[[], None]) -> None:
        self.__dict__.update(_real=real, _fired=fired)

    def __call__(self, trainer: Any) -> Any:
        fires = self._real(trainer)
        if fires:
            self._fired()
        return fires

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


@contextlib.contextmanager
def _watched(training: Training, trainer: Any) -> Iterator[None]:
    """Follow a Trainer's loop by its updater and triggers, which it asks each time."""
    updater, entries = trainer.updater, list(trainer._extensions.values())
    update, pending = updater.update, False

    def one_update() -> Any:
        nonlocal pending
        training.leave(0)
        if pending:  # the extensions after the update before belong to that iteration
            pending = False
            training.iteration_ends()
        result = update()
        pending = True
        return result

    def extension_begins() -> None:
        training.leave(0)
        training.enter(EXTENSION, hold=True)

    real = [entry.trigger for entry in entries]
    updater.update = one_update
    try:
        for entry in entries:
            entry.trigger = _WatchedTrigger(entry.trigger, extension_begins)
        yield
    finally:
        training.leave(0)
        if pending:
            training.iteration_ends()
        del updater.update
        for entry, trigger in zip(entries, real):
            entry.trigger = trigger
