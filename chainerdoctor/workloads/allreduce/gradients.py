"""ChainerMN's own exchange: ``multi_node_mean_grad`` on a real model's gradients, split into its parts."""

from __future__ import annotations

import runpy
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from chainerdoctor.workloads.allreduce.backends import RefusedError
from chainerdoctor.workloads.allreduce.checking import period, period_sum
from chainerdoctor.workloads.collectives import own_device

#: Names of models of chainer.links that need no download: (class, number of layers).
MODELS: Dict[str, Tuple[str, Dict[str, object]]] = {
    "resnet50": ("ResNet50Layers", {}),
    "resnet101": ("ResNet101Layers", {}),
    "resnet152": ("ResNet152Layers", {}),
    "vgg16": ("VGG16Layers", {}),
    "vgg19": ("VGG19Layers", {}),
    "googlenet": ("GoogLeNet", {}),
}

_PACK, _UNPACK = "_pack_params_to_buffer", "_unpack_params_from_buffer"


def load_model(name: str) -> Any:
    """A model of :data:`MODELS`, or what ``script.py:function`` returns.

    Raises:
        RefusedError: there is none of that name, or the script fails.
    """
    try:
        import chainer.links
    except Exception as error:
        raise RefusedError(f"Chainer cannot be imported: {type(error).__name__}: {error}") from None
    if name in MODELS:
        kind, arguments = MODELS[name]
        return getattr(chainer.links, kind)(pretrained_model=None, **arguments)
    path, _, function = name.rpartition(":")
    if not path.endswith(".py"):
        raise RefusedError(f"no model {name!r}; there are {', '.join(MODELS)}, or script.py:make_model")
    try:
        make = runpy.run_path(path, run_name="chainerdoctor_model")[function]
        return make()
    except KeyError:
        raise RefusedError(f"{path} has no function {function}") from None
    except Exception as error:
        raise RefusedError(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def gradient_bytes(model: Any) -> Tuple[int, int]:
    """(number of parameters' elements, bytes of their gradients). Uninitialised parameters have none yet."""
    arrays = [parameter.array for parameter in model.params() if parameter.array is not None]
    return sum(each.size for each in arrays), sum(each.nbytes for each in arrays)


class ChainermnBackend:
    """A communicator of ChainerMN and a model whose gradients are known numbers."""

    def __init__(self, mpi: Any, world: Any, communicator: str, model: str, local_rank: int) -> None:
        try:
            import chainermn
            import numpy
        except Exception as error:
            raise RefusedError(f"ChainerMN cannot be imported: {type(error).__name__}: {error}") from None
        self.name = f"chainermn:{communicator}"
        self._numpy, self._ranks, self._rank = numpy, world.Get_size(), world.Get_rank()
        self.model = load_model(model)
        self.device: Optional[int] = None
        xp: Any = numpy
        if communicator != "naive":
            xp, self.device = _to_gpu(self.model, local_rank)
        self._make: Callable[[], Any] = lambda: chainermn.create_communicator(communicator, mpi_comm=world)
        self._communicator: Any = None
        self.library = f"ChainerMN {communicator}, {mpi.Get_library_version().split(chr(10))[0].split(',')[0][:40]}"
        self._world, self._xp = world, xp
        self.parameters, self.size_bytes = gradient_bytes(self.model)

    def connect(self) -> None:
        """Make ChainerMN's communicator; every rank has to take part."""
        self._communicator = self._make()

    def set_gradients(self) -> None:
        """Known numbers, as in :mod:`checking`, in every gradient."""
        xp = self._xp
        for parameter in self.model.params():
            if parameter.array is not None:
                one = xp.array(period(self._rank), dtype=parameter.dtype)
                parameter.grad = (
                    xp.resize(one, parameter.shape) if xp is self._numpy else _resized(xp, one, parameter.shape)
                )

    def batch(self, count: int) -> List[float]:
        """Seconds of ``count`` exchanges; on a GPU until the device has finished."""
        times = []
        for _ in range(count):
            self.set_gradients()
            self._world.Barrier()
            began = time.perf_counter()
            self._communicator.multi_node_mean_grad(self.model)
            self._wait()
            times.append(time.perf_counter() - began)
        return times

    def phases(self, repeats: int) -> Tuple[float, float, float]:
        """Median seconds of packing, all-reduce and the rest (unpacking, casting, division)."""
        clock: Dict[str, float] = {}
        rows = []
        # Methods of ChainerMN 7's communicators; naive packs nothing and has none.
        names = [name for name in (_PACK, _UNPACK) if hasattr(self._communicator, name)]
        try:
            for name in names:
                setattr(self._communicator, name, self._timed(clock, name, getattr(self._communicator, name)))
            for _ in range(repeats):
                clock.clear()
                total = self.batch(1)[0]
                pack, unpack = clock.get(_PACK, 0.0), clock.get(_UNPACK, 0.0)
                rows.append((pack, total - pack - unpack, unpack))
        finally:
            for name in names:
                delattr(self._communicator, name)
        pack_s, rest_s, unpack_s = (sorted(column)[len(rows) // 2] for column in zip(*rows))
        return pack_s, rest_s, unpack_s

    def _timed(self, clock: Dict[str, float], name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **keywords: Any) -> Any:
            self._wait()
            began = time.perf_counter()
            try:
                return call(*arguments, **keywords)
            finally:
                self._wait()
                clock[name] = clock.get(name, 0.0) + time.perf_counter() - began

        return timed

    def wrong(self) -> Tuple[int, Optional[int], float]:
        """(wrong elements, place of the first, bound): the mean is the exact sum over the ranks, rounded twice."""
        numpy = self._numpy
        self.set_gradients()
        self._communicator.multi_node_mean_grad(self.model)
        mean = [each / self._ranks for each in period_sum(self._ranks)]
        count, first, place, allowed = 0, None, 0, 0.0
        for _, parameter in sorted(self.model.namedparams()):
            if parameter.array is None:
                continue
            got = parameter.grad if self._xp is numpy else self._xp.asnumpy(parameter.grad)
            expected = numpy.resize(numpy.array(mean), got.shape)
            allowed = float(2 * numpy.finfo(got.dtype).eps * 6)  # a product by 1/n or a quotient, and one rounding
            off = ~(numpy.abs(got.astype("float64") - expected) <= allowed)
            if first is None and off.any():
                first = place + int(off.argmax())
            count += int(off.sum())
            place += got.size
        return count, first, allowed

    def _wait(self) -> None:
        if self._xp is not self._numpy:
            self._xp.cuda.Device(self.device).synchronize()


def _to_gpu(model: Any, local_rank: int) -> Tuple[Any, int]:
    import chainer

    if not chainer.backends.cuda.available:
        raise RefusedError("this communicator needs a GPU and CuPy; chainermn:naive works without")
    import cupy

    device = own_device(local_rank, cupy.cuda.runtime.getDeviceCount(), None)
    if device is None:
        raise RefusedError(f"there is no GPU for local rank {local_rank}")
    chainer.backends.cuda.get_device_from_id(device).use()
    model.to_gpu()
    return cupy, device


def _resized(xp: Any, one: Any, shape: Tuple[int, ...]) -> Any:
    size = 1
    for each in shape:
        size *= each
    return xp.tile(one, size // len(one) + 1)[:size].reshape(shape)
