"""Legacy CUDA IPC from Python, by the libraries that PyTorch has loaded, as vLLM calls it."""

import ctypes
import os

import torch

DEFAULT = 4  # cudaMemcpyDefault
LAZY_PEER_ACCESS = 1
RANGE_START = 11  # CU_POINTER_ATTRIBUTE_RANGE_START_ADDR


class Handle(ctypes.Structure):
    """cudaIpcMemHandle_t."""

    _fields_ = [("bytes", ctypes.c_byte * 64)]


def loaded(name):
    """The file of a library that this process has already."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            if os.path.basename(line.strip()).startswith(name):
                return line[line.index("/"):].strip()
    raise RuntimeError(f"{name} is not loaded")


class Cuda:
    """The calls that are needed; each raises when it fails. After torch.cuda.init()."""

    def __init__(self):
        self.runtime = ctypes.CDLL(loaded("libcudart.so"))
        self.driver = ctypes.CDLL("libcuda.so.1")

    def ask(self, library, name, *arguments):
        result = getattr(library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def malloc(self, count):
        """Zeroed device memory."""
        pointer = ctypes.c_void_p()
        self.ask(self.runtime, "cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(count))
        self.ask(self.runtime, "cudaMemset", pointer, 0, ctypes.c_size_t(count))
        torch.cuda.synchronize()
        return pointer.value

    def free(self, pointer):
        self.ask(self.runtime, "cudaFree", ctypes.c_void_p(pointer))

    def copy(self, to, source, count):
        """On the current stream."""
        self.ask(self.runtime, "cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source),
                 ctypes.c_size_t(count), DEFAULT,
                 ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))

    def base_of(self, pointer):
        """Where the allocation begins that the pointer is in."""
        base = ctypes.c_uint64()
        self.ask(self.driver, "cuPointerGetAttribute", ctypes.byref(base), RANGE_START,
                 ctypes.c_uint64(pointer))
        return base.value

    def handle_of(self, pointer):
        """Of its whole allocation, and the pointer's place in that."""
        base = self.base_of(pointer)
        handle = Handle()
        self.ask(self.runtime, "cudaIpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(base))
        return bytes(handle), pointer - base

    def open(self, handle):
        pointer = ctypes.c_void_p()
        self.ask(self.runtime, "cudaIpcOpenMemHandle", ctypes.byref(pointer),
                 Handle.from_buffer_copy(handle), LAZY_PEER_ACCESS)
        return pointer.value

    def close(self, pointer):
        self.ask(self.runtime, "cudaIpcCloseMemHandle", ctypes.c_void_p(pointer))

    def function(self, text, name):
        """A kernel of a module in PTX, for the current device."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.ask(self.driver, "cuModuleLoadData", ctypes.byref(module), text.encode())
        self.ask(self.driver, "cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, blocks, threads, *arguments):
        """On the current stream; the arguments are ctypes values."""
        places = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in arguments))
        self.ask(self.driver, "cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0,
                 ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), places, None)


class Opened:
    """Memory of other processes, each allocation opened once."""

    def __init__(self, cuda):
        self.cuda, self.bases = cuda, {}

    def at(self, handle, offset):
        if handle not in self.bases:
            self.bases[handle] = self.cuda.open(handle)
        return self.bases[handle] + offset

    def close(self):
        """All of it; how many allocations that were."""
        count = len(self.bases)
        while self.bases:
            self.cuda.close(self.bases.popitem()[1])
        return count


class Floats:
    """Raw device memory, for torch.as_tensor."""

    def __init__(self, pointer, count):
        self.__cuda_array_interface__ = {
            "data": (pointer, False), "shape": (count,), "typestr": "<f4", "version": 3}


def tensor_at(pointer, count):
    return torch.as_tensor(Floats(pointer, count), device="cuda")
