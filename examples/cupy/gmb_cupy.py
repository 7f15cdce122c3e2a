"""CuPy's memory from a broker's leases, through libgmb's C interface.

    heap = gmb_cupy.Heap()          # GMB_SOCKET_DIR, or /run/gmb
    heap.use()                      # cupy.cuda.set_allocator

CuPy's own memory pool is not used then: the heap caches by itself. Keep the
heap as long as any array of it. Blocks are allocated for the current stream and
freed in the order of the stream that they were allocated for, as CuPy's pool
does it; arrays that another stream still uses when they are dropped have to be
waited for, or recorded with Heap.record_stream.
"""

import ctypes
import os

import cupy

_RESOURCE_EXHAUSTED = 8


class _ClientOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("socket_dir", ctypes.c_char_p),
                ("program", ctypes.c_char_p), ("tenant_token", ctypes.c_void_p),
                ("tenant_token_bytes", ctypes.c_size_t), ("connect_timeout_ms", ctypes.c_int64),
                ("answer_timeout_ms", ctypes.c_int64), ("on_budget_changed", ctypes.c_void_p),
                ("on_draining", ctypes.c_void_p), ("user", ctypes.c_void_p)]


class _HeapOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p),
                ("least_growth_bytes", ctypes.c_uint64), ("most_growth_bytes", ctypes.c_uint64),
                ("wait_ms", ctypes.c_int64), ("contents", ctypes.c_int32),
                ("keep_empty", ctypes.c_int32), ("access_from", ctypes.c_void_p),
                ("access_from_count", ctypes.c_size_t)]


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "allocated_bytes", "peak_allocated_bytes", "held_bytes", "leased_bytes", "peak_leased_bytes",
        "empty_bytes", "largest_free_bytes", "blocks", "leases", "allocations", "frees", "growths",
        "returned_leases", "out_of_memory")]


def _load(path):
    library = ctypes.CDLL(path)
    pointer = ctypes.c_void_p
    for name, arguments in (
            ("gmb_client_connect", [ctypes.POINTER(_ClientOptions), ctypes.POINTER(pointer)]),
            ("gmb_heap_create", [pointer, ctypes.POINTER(_HeapOptions), ctypes.POINTER(pointer)]),
            ("gmb_heap_allocate", [pointer, ctypes.c_uint64, pointer, ctypes.POINTER(pointer)]),
            ("gmb_heap_free", [pointer, pointer]),
            ("gmb_heap_record_stream", [pointer, pointer, pointer]),
            ("gmb_heap_detach_stream", [pointer, pointer])):
        getattr(library, name).argtypes = arguments
        getattr(library, name).restype = pointer
    for name, arguments in (
            ("gmb_client_close", [pointer]), ("gmb_heap_destroy", [pointer]),
            ("gmb_error_free", [pointer]),
            ("gmb_heap_statistics", [pointer, ctypes.POINTER(Stats), ctypes.c_size_t])):
        getattr(library, name).argtypes = arguments
        getattr(library, name).restype = None
    library.gmb_heap_trim.argtypes = [pointer, ctypes.c_uint64]
    library.gmb_heap_trim.restype = ctypes.c_uint64
    library.gmb_error_message.argtypes = library.gmb_error_code.argtypes = [pointer]
    library.gmb_error_message.restype = ctypes.c_char_p
    library.gmb_error_code.restype = ctypes.c_int32
    return library


class GmbError(RuntimeError):
    """An error of the library that is no lack of memory."""


class Heap:
    """A session with a broker and a heap of one device."""

    def __init__(self, socket_dir=None, device=None, library="libgmb.so.0"):
        self._library = _load(os.environ.get("GMB_LIBRARY", library))
        self._client, self._heap = ctypes.c_void_p(), ctypes.c_void_p()
        client = _ClientOptions(struct_size=ctypes.sizeof(_ClientOptions))
        client.socket_dir = socket_dir.encode() if socket_dir else None
        self._check(self._library.gmb_client_connect(client, self._client))
        options = _HeapOptions(struct_size=ctypes.sizeof(_HeapOptions))
        options.device = device.encode() if device else None
        self._check(self._library.gmb_heap_create(self._client, options, self._heap))

    def use(self):
        """All of CuPy's arrays come from it from now on."""
        cupy.cuda.set_allocator(self.allocator())

    def allocator(self):
        """For cupy.cuda.set_allocator and cupy.cuda.using_allocator."""
        return cupy.cuda.PythonFunctionAllocator(self._malloc, self._free).malloc

    def statistics(self):
        stats = Stats()
        self._library.gmb_heap_statistics(self._heap, stats, ctypes.sizeof(stats))
        return stats

    def trim(self, size=2**64 - 1):
        """Gives leases back that no block lies in; how many bytes."""
        return self._library.gmb_heap_trim(self._heap, size)

    def record_stream(self, array, stream):
        """The array's memory is not used again before the stream has got there."""
        self._check(self._library.gmb_heap_record_stream(self._heap, array.data.mem.ptr, stream.ptr))

    def detach_stream(self, stream):
        """Before a stream is destroyed."""
        self._check(self._library.gmb_heap_detach_stream(self._heap, stream.ptr))

    def close(self):
        """Gives everything back; nobody uses the arrays any more."""
        self._library.gmb_heap_destroy(self._heap)
        self._library.gmb_client_close(self._client)
        self._heap = self._client = None

    def _malloc(self, size, _device):
        address = ctypes.c_void_p()
        stream = cupy.cuda.get_current_stream().ptr
        self._check(self._library.gmb_heap_allocate(self._heap, size, stream, address))
        return address.value or 0

    def _free(self, address, _device):
        if self._heap is not None:
            self._check(self._library.gmb_heap_free(self._heap, address))

    def _check(self, error):
        if not error:
            return
        message = self._library.gmb_error_message(error).decode()
        code = self._library.gmb_error_code(error)
        self._library.gmb_error_free(error)
        raise MemoryError(message) if code == _RESOURCE_EXHAUSTED else GmbError(message)
