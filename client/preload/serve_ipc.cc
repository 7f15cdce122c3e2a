// `gmb run`: the functions of legacy CUDA IPC, by which other processes map a
// lease.
#include "client/preload/exported.h"
#include "client/preload/ipc_memory.h"
#include "client/preload/serve.h"

namespace gmb::preload {

IpcMemory& TheIpcMemory(const Driver& driver) {
  static IpcMemory& memory =
      *new IpcMemory(driver, TheMemory(driver), TheVirtualMemory(driver));
  return memory;
}

namespace {

CUresult Open(CUdeviceptr* address, const CUipcMemHandle& handle,
              unsigned flags) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return TheIpcMemory(driver).Open(address, handle, flags);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuIpcOpenMemHandle_v2, address, handle,
                             flags);
      });
}

}  // namespace
}  // namespace gmb::preload

using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::TheIpcMemory;

GMB_SERVED CUresult cuIpcGetMemHandle(CUipcMemHandle* handle,
                                      CUdeviceptr address) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
        return TheIpcMemory(driver).GetHandle(handle, address);
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuIpcGetMemHandle, handle, address);
      });
}

// The first version differs in nothing that is served.
GMB_SERVED CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address,
                                          CUipcMemHandle handle,
                                          unsigned int flags) {
  return gmb::preload::Open(address, handle, flags);
}
GMB_SERVED CUresult cuIpcOpenMemHandle(CUdeviceptr* address,
                                       CUipcMemHandle handle,
                                       unsigned int flags) {
  return gmb::preload::Open(address, handle, flags);
}

GMB_SERVED CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return AnswerCall(
      [&](const Driver& driver) { return TheIpcMemory(driver).Close(address); },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuIpcCloseMemHandle, address);
      });
}
