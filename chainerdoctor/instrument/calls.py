"""Every call of ChainerMN's communicators, told to listeners as it begins and as it returns.

Wrapped are the methods of the communicators' classes, once the first communicator is made. Only outermost calls are told:
what ``multi_node_mean_grad`` does by itself is a part of it. No wrapper sends a message of its own.
"""

from __future__ import annotations

import functools
import sys
import threading
import zlib
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

from chainerdoctor.instrument.clocks import now_ns
from chainerdoctor.instrument.imports import when_imported
from chainerdoctor.instrument.places import caller, place_of
from chainerdoctor.instrument.training import PHASES, Training

#: Operations that exchange a model's gradients or parameters; their first argument is the model.
MODEL_OPERATIONS = ("multi_node_mean_grad", "allreduce_grad", "_multi_node_mean_grad_async", "bcast_data")
#: Operations in which every rank of the communicator takes part.
COLLECTIVES = (
    *MODEL_OPERATIONS,
    "broadcast_data",
    "alltoall",
    "bcast",
    "gather",
    "allgather",
    "allreduce",
    "scatter",
    "bcast_obj",
    "gather_obj",
    "allreduce_obj",
    "_multi_node_mean",
    "_multi_node_mean_nccl",
    "split",
)
#: Messages between two ranks, with the position of the peer's rank among the arguments and its name.
MESSAGES = {"send": (1, "dest"), "recv": (0, "source"), "send_obj": (1, "dest"), "recv_obj": (0, "source")}
_ROOTED = {"bcast": 1, "gather": 1, "scatter": 1, "gather_obj": 1, "bcast_obj": 2}
#: What a person knows the operation by.
_NAMES = {
    "allreduce_grad": "multi_node_mean_grad",
    "_multi_node_mean_grad_async": "multi_node_mean_grad",
    "_multi_node_mean": "multi_node_mean",
    "_multi_node_mean_nccl": "multi_node_mean",
    "broadcast_data": "bcast_data",
}
#: A model's parameters are looked at anew after so many exchanges, for programs that change it behind the optimizer.
_LOOK_EVERY = 64
_MARK = "_chainerdoctor_calls"


class Call:
    """One call; times are :func:`now_ns`. ``comm`` is ChainerMN's communicator, ``stream`` a CUDA stream."""

    __slots__ = (
        "begun_ns", "comm", "communicator", "dtype", "ended_ns", "failed", "index", "iteration", "lacking", "number",
        "operation", "parameters", "peer", "phase", "place", "size_bytes", "stream", "via",
    )  # fmt: skip

    def __init__(self, operation: str, comm: Any, communicator: str) -> None:
        self.operation = operation
        self.comm = comm
        self.communicator = communicator
        self.begun_ns = self.ended_ns = 0
        self.dtype = self.parameters = self.place = self.via = ""
        self.failed = False
        self.index = self.number = self.iteration = self.phase = 0
        self.lacking: Tuple[str, ...] = ()
        self.peer = self.size_bytes = -1
        self.stream: Any = None

    def content(self) -> Dict[str, Any]:
        """What a ring keeps of it."""
        return {
            "op": self.operation,
            "comm": self.communicator,
            "i": self.index,
            "k": self.number,
            "bytes": self.size_bytes,
            "dtype": self.dtype,
            "peer": self.peer,
            "hash": self.parameters,
            "lacking": [name[:60] for name in self.lacking[:3]],
            "at": self.place[-100:],
            "via": self.via,
            "phase": PHASES[self.phase],
            "it": self.iteration,
        }


class Parameters:
    """A model's parameters as the last look found them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.entries = sorted(model.namedparams())
        self.initialised = {path: param.array is not None for path, param in self.entries}
        have = [param.array for _, param in self.entries if param.array is not None]
        told = [(path, None if param.array is None else param.array.shape) for path, param in self.entries]
        self.hash = f"{zlib.crc32(repr(told).encode()):08x}"
        self.elements = sum(array.size for array in have)
        self.size_bytes = sum(array.nbytes for array in have)
        self.dtype = str(have[0].dtype) if have else ""
        self.uses = 0


class Calls:
    """Tells of calls: ``on_begin(call)``, ``on_end(call)`` and ``on_initialised(path, iteration, place)``."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.on_begin: List[Callable[[Call], None]] = []
        self.on_end: List[Callable[[Call], None]] = []
        self.on_initialised: List[Callable[[str, int, str], None]] = []
        self.on_communicator: List[Callable[[Any, str], None]] = []
        self._inside = threading.local()
        self._communicators: List[Tuple[Any, str]] = []
        self._ordinals: Dict[str, int] = {}
        self._counts: Dict[Tuple[str, ...], int] = {}
        self._parameters: Dict[int, Parameters] = {}

    def watch(self) -> None:
        """Wrap communicators as soon as ChainerMN has been imported."""
        when_imported("chainermn", self._hook)

    def _hook(self, chainermn: ModuleType) -> None:
        try:
            from chainermn.communicators.mpi_communicator_base import MpiCommunicatorBase
        except ImportError as error:
            self._training.failed("calls", error)
            return
        _wrap(MpiCommunicatorBase, "__init__", self._made)

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(communicator: Any, mpi_comm: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            for kind in type(communicator).__mro__:
                for name in (*COLLECTIVES, *MESSAGES):
                    _wrap(kind, name, functools.partial(self._told, name))
            name = self._identity(mpi_comm)
            self._around("create_communicator", communicator, name, original, (communicator, mpi_comm, *args), kwargs)
            if self.on_communicator:
                self._training.tell(self.on_communicator, communicator, name)

        return __init__

    def _told(self, operation: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(communicator: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "now", False):
                return original(communicator, *args, **kwargs)
            return self._around(operation, communicator, None, original, (communicator, *args), kwargs)

        return wrapper

    def _around(
        self,
        operation: str,
        comm: Any,
        name: Optional[str],
        original: Callable[..., Any],
        args: Tuple[Any, ...],
        kwargs: Dict[str, Any],
    ) -> Any:
        if getattr(self._inside, "now", False):
            return original(*args, **kwargs)
        call = None
        try:
            call = self._begin(operation, comm, name, args[1:], kwargs)
        except Exception as error:  # the program's call has to be made all the same
            self._training.failed("calls", error)
        self._inside.now = True
        try:
            return original(*args, **kwargs)
        except BaseException:
            if call is not None:
                call.failed = True
            raise
        finally:
            self._inside.now = False
            if call is not None:
                call.ended_ns = now_ns()
                self._training.tell(self.on_end, call)

    def _begin(self, operation: str, comm: Any, name: Optional[str], args: Any, kwargs: Dict[str, Any]) -> Call:
        call = Call(_NAMES.get(operation, operation), comm, self._identity(comm.mpi_comm) if name is None else name)
        call.phase, call.iteration = self._training.phase, self._training.completed + 1
        # Above this: _around and its wrapper.
        call.place, call.via = place_of(caller(3))
        if operation in MESSAGES:
            at, keyword = MESSAGES[operation]
            call.peer = int(kwargs.get(keyword, args[at] if len(args) > at else -1))
            call.index = self._count(call.communicator, operation[:4], str(call.peer))
        else:
            call.index = self._count(call.communicator)
            at = _ROOTED.get(operation, -1)
            if at >= 0:
                call.peer = int(kwargs.get("root", args[at] if len(args) > at else 0))
        call.number = self._count(call.communicator, "#", call.operation)
        if operation in (*MODEL_OPERATIONS, "broadcast_data"):
            self._measure_model(call, operation, args, kwargs)
        else:
            _measure_arrays(call, operation, args, kwargs)
        self._training.tell(self.on_begin, call)
        call.begun_ns = now_ns()
        return call

    def _count(self, *key: str) -> int:
        self._counts[key] = number = self._counts.get(key, 0) + 1
        return number

    def _identity(self, mpi_comm: Any) -> str:
        """The name of an MPI communicator that all its ranks use: its members, and which of those with these it is."""
        for known, name in self._communicators:
            if known is mpi_comm or known == mpi_comm:
                return name
        members = _members(mpi_comm)
        ordinal = self._ordinals[members] = self._ordinals.get(members, 0) + 1
        self._communicators.append((mpi_comm, f"{members}/{ordinal}"))
        return self._communicators[-1][1]

    def _measure_model(self, call: Call, operation: str, args: Any, kwargs: Dict[str, Any]) -> None:
        model = kwargs.get("model", args[0] if args else None)
        known = self._parameters.get(id(model))
        if call.operation == "bcast_data" or known is None or known.model is not model or known.uses >= _LOOK_EVERY:
            found = Parameters(model)
            if known is not None and known.model is model:
                for path, have in found.initialised.items():
                    if have and not known.initialised.get(path, False):
                        self._training.tell(self.on_initialised, path, call.iteration, call.place)
            self._parameters[id(model)] = known = found
        known.uses += 1
        call.parameters, call.size_bytes, call.dtype = known.hash, known.size_bytes, known.dtype
        if call.operation == "bcast_data":
            return
        call.stream = args[2] if operation == "_multi_node_mean_grad_async" and len(args) > 2 else None
        elements = known.elements
        if not kwargs.get("zero_fill", args[1] if len(args) > 1 else False):
            lacking = [(path, param) for path, param in known.entries if param.grad is None and param.array is not None]
            call.lacking = tuple(path for path, _ in lacking)
            elements -= sum(param.array.size for _, param in lacking)
            call.size_bytes -= sum(param.array.nbytes for _, param in lacking)
        chosen = getattr(call.comm, "allreduce_grad_dtype", None)
        if chosen is not None:  # pure_nccl converts on the way
            call.dtype, call.size_bytes = str(chosen), elements * chosen.itemsize


def calls_of(training: Training) -> Calls:
    """The one :class:`Calls` of a training; several instruments listen to it."""
    made = _calls.get(id(training))
    if made is None:
        made = _calls[id(training)] = Calls(training)
        made.watch()
    return made


_calls: Dict[int, Calls] = {}


def _wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = vars(owner).get(name)
    if original is None or getattr(original, _MARK, False):
        return
    made = functools.wraps(original)(make(original))
    setattr(made, _MARK, True)
    setattr(owner, name, made)


def _members(mpi_comm: Any) -> str:
    """World ranks of a communicator as ``0-3`` or ``0,2``; asking sends nothing."""
    mpi = sys.modules["mpi4py.MPI"]
    group = mpi_comm.Get_group()
    ranks = mpi.Group.Translate_ranks(group, list(range(group.Get_size())), mpi.COMM_WORLD.Get_group())
    runs: List[List[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _measure_arrays(call: Call, operation: str, args: Any, kwargs: Dict[str, Any]) -> None:
    if operation == "_multi_node_mean_nccl" and len(args) > 3:
        call.dtype, call.size_bytes = str(args[3]), int(args[2]) * args[3].itemsize
        call.stream = args[4] if len(args) > 4 else kwargs.get("stream")
        return
    data = args[1] if operation == "_multi_node_mean" and len(args) > 1 else args[0] if args else None
    arrays = data if isinstance(data, (tuple, list)) else [data]
    sizes = [getattr(array, "nbytes", None) for array in arrays]
    if sizes and all(isinstance(size, int) for size in sizes):
        call.size_bytes = sum(size for size in sizes if size is not None)
        call.dtype = str(getattr(arrays[0], "dtype", ""))
