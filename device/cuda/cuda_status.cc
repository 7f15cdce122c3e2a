// Errors of the driver become statuses that say what to do.
#include "device/cuda/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace gmb::device {
namespace {

struct Meaning {
  CUresult result;
  absl::StatusCode code;
  const char* advice;  // may be empty
};

using absl::StatusCode;

constexpr char kContextLost[] =
    "the device context is lost: end this process and start it again";
constexpr char kMemoryError[] =
    "the GPU met a memory or link error: end this process, and look for Xid "
    "messages in the kernel log";
constexpr char kMps[] = "look after the MPS control daemon";
constexpr char kCapturing[] =
    "a stream capture is under way in this process: do this outside of it";

// Errors missing here are INTERNAL.
constexpr Meaning kMeanings[] = {
    {CUDA_ERROR_INVALID_VALUE, StatusCode::kInvalidArgument, ""},
    {CUDA_ERROR_OUT_OF_MEMORY, StatusCode::kResourceExhausted,
     "the device has no memory left for it"},
    {CUDA_ERROR_NOT_INITIALIZED, StatusCode::kFailedPrecondition,
     "CUDA does not work in a forked child: start the program with exec"},
    {CUDA_ERROR_DEINITIALIZED, StatusCode::kUnavailable,
     "the driver has shut down: this process is ending"},
    {CUDA_ERROR_STUB_LIBRARY, StatusCode::kFailedPrecondition,
     "the library found is a stub to link with: put the driver's libcuda.so.1 "
     "first"},
    {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, StatusCode::kFailedPrecondition,
     "install a newer NVIDIA driver"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, StatusCode::kUnavailable,
     "the GPU is busy or in exclusive mode: see nvidia-smi -q -d COMPUTE"},
    {CUDA_ERROR_NO_DEVICE, StatusCode::kFailedPrecondition,
     "no GPU is visible here: check CUDA_VISIBLE_DEVICES and the container's "
     "GPU request"},
    {CUDA_ERROR_INVALID_DEVICE, StatusCode::kNotFound,
     "this process cannot see the GPU: give it the same GPU as the broker, "
     "by UUID"},
    {CUDA_ERROR_INVALID_CONTEXT, StatusCode::kFailedPrecondition,
     "for ipc devices: broker and client must share PID and IPC namespaces "
     "and the user, and be different processes; use a vmm device otherwise"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, StatusCode::kUnavailable, kMemoryError},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, StatusCode::kFailedPrecondition,
     "these GPUs cannot access each other's memory: lease from each alone"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, StatusCode::kUnavailable, kMemoryError},
    {CUDA_ERROR_CONTAINED, StatusCode::kUnavailable, kMemoryError},
    {CUDA_ERROR_OPERATING_SYSTEM, StatusCode::kInternal,
     "a system call of the driver failed: check open files (ulimit -n), that "
     "/proc is mounted, and access to /dev/nvidia*"},
    {CUDA_ERROR_INVALID_HANDLE, StatusCode::kInvalidArgument, ""},
    {CUDA_ERROR_ILLEGAL_ADDRESS, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_LAUNCH_TIMEOUT, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_ASSERT, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_MISALIGNED_ADDRESS, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_INVALID_PC, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_LAUNCH_FAILED, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_NOT_PERMITTED, StatusCode::kPermissionDenied,
     "the driver does not permit this here"},
    {CUDA_ERROR_NOT_SUPPORTED, StatusCode::kFailedPrecondition,
     "this GPU or driver cannot do it: try a device of another kind"},
    {CUDA_ERROR_SYSTEM_NOT_READY, StatusCode::kUnavailable,
     "the GPU is starting: check nvidia-fabricmanager and nvidia-persistenced, "
     "and try again"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, StatusCode::kFailedPrecondition,
     "libcuda and the kernel driver differ in version: reload the driver"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, StatusCode::kFailedPrecondition,
     "this GPU does not support CUDA's forward compatibility package: remove "
     "it"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, StatusCode::kUnavailable, kMps},
    {CUDA_ERROR_MPS_RPC_FAILURE, StatusCode::kUnavailable, kMps},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, StatusCode::kUnavailable, kMps},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, StatusCode::kUnavailable, kMps},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, StatusCode::kUnavailable, kMps},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, StatusCode::kUnavailable, kContextLost},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, StatusCode::kFailedPrecondition,
     kCapturing},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, StatusCode::kFailedPrecondition,
     kCapturing},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, StatusCode::kFailedPrecondition,
     kCapturing},
};

}  // namespace

absl::Status CudaStatus(CUresult result, absl::string_view call,
                        absl::string_view error_name) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  StatusCode code = StatusCode::kInternal;
  absl::string_view advice;
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result != result) continue;
    code = meaning.code;
    advice = meaning.advice;
    break;
  }
  return absl::Status(
      code, absl::StrCat(call, ": ", advice, advice.empty() ? "" : ": ",
                         error_name, " (", static_cast<int>(result), ")"));
}

}  // namespace gmb::device
