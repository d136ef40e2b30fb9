"""NVML through nvidia-ml-py, whose module is called ``pynvml``. The only file that imports it."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gpu import Gpu, GpuDriver


class NvmlUnavailable(Exception):
    """NVML cannot be used; ``absent`` is true if that is because there is no driver or no nvidia-ml-py."""

    def __init__(self, text: str, absent: bool) -> None:
        super().__init__(text)
        self.absent = absent


def driver_and_gpus() -> Iterator[object]:
    """One :class:`GpuDriver`, then one :class:`Gpu` for each device.

    Raises:
        NvmlUnavailable: there is no driver, or it does not answer.
    """
    try:
        import pynvml
    except ImportError as error:
        raise NvmlUnavailable(f"nvidia-ml-py is not installed: {error}", absent=True) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        absent = getattr(error, "value", None) in (
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        )
        raise NvmlUnavailable(f"NVML: {error}", absent) from None
    try:
        cuda = pynvml.nvmlSystemGetCudaDriverVersion()
        count = pynvml.nvmlDeviceGetCount()
        version = _text(pynvml.nvmlSystemGetDriverVersion())
        yield GpuDriver(version, (cuda // 1000, cuda % 1000 // 10), count)
        for index in range(count):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            try:
                capability = tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))
            except pynvml.NVMLError_NotSupported:
                capability = None
            yield Gpu(
                index=index,
                name=_text(pynvml.nvmlDeviceGetName(handle)),
                uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                compute_capability=capability,
                pci_bus_id=_text(pynvml.nvmlDeviceGetPciInfo(handle).busId),
            )
    except pynvml.NVMLError as error:
        raise NvmlUnavailable(f"NVML: {error}", absent=False) from None
    finally:
        pynvml.nvmlShutdown()


def _text(value: object) -> str:
    # Old versions of the module give bytes.
    return value.decode() if isinstance(value, bytes) else str(value)
