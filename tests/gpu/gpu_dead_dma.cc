#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "tests/end_with_parent.h"
#include "tests/gpu/driver_call.h"

// Whether a GPU still writes into page-locked memory when the process that asked
// for it is dead. A host pool's pages outlive their broker, and the next broker
// uses them as soon as the last one's pidfd is readable. It knows nothing of gmb
// and is run natively.
//   gpu_dead_dma DEATHS [BYTES [SEED]]
// A child page-locks BYTES (1 GiB) of a memfd, as a broker does, and copies
// counters from the GPU into it without an end. It is killed while it copies. As
// soon as its pidfd is readable, the first word of each MiB gets a mark; 200 ms
// later every word is written, and 200 ms later looked at. A line for each death:
//   dead      ms from SIGKILL until the pidfd is readable,
//   copying   until when the GPU was seen to write, in ms from SIGKILL,
//   overwritten   words that the GPU wrote after that: one is a failure.
// It also fails where no copy was seen to go on after SIGKILL: that shows nothing.

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kStride = size_t{1} << 20;
constexpr size_t kPiece = size_t{32} << 20;
constexpr uint32_t kMark = 0xFFFFFFFF;
constexpr uint32_t kFill = 0xA5A5A5A5;
constexpr auto kWatch = std::chrono::milliseconds(200);

void Must(bool good, const char* what, int error) {
  if (good) return;
  std::fprintf(stderr, "gpu_dead_dma: %s: %d\n", what, error);
  std::exit(1);
}
double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::span<uint32_t> Map(int memfd, size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, memfd, 0);
  Must(at != MAP_FAILED, "mmap", errno);
  return {static_cast<uint32_t*>(at), bytes / sizeof(uint32_t)};
}

// The child: each pass over the memory writes the pass's number, by two streams.
[[noreturn]] void CopyForEver(std::span<uint32_t> host, int copying) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  GMB_CALL(cuInit, 0);
  GMB_CALL(cuDeviceGet, &device, 0);
  GMB_CALL(cuDevicePrimaryCtxRetain, &context, device);
  GMB_CALL(cuCtxSetCurrent, context);
  GMB_CALL(cuMemHostRegister, host.data(), host.size_bytes(),
           CU_MEMHOSTREGISTER_PORTABLE);
  CUstream streams[2] = {};
  CUdeviceptr buffers[2] = {};
  for (int i = 0; i < 2; ++i) {
    GMB_CALL(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
    GMB_CALL(cuMemAlloc, &buffers[i], kPiece);
  }
  for (uint32_t pass = 1;; ++pass) {
    for (size_t at = 0; at < host.size_bytes(); at += kPiece) {
      const size_t i = at / kPiece % 2;
      GMB_CALL(cuMemsetD32Async, buffers[i], pass, kPiece / 4, streams[i]);
      GMB_CALL(cuMemcpyDtoHAsync, host.data() + at / 4, buffers[i], kPiece,
               streams[i]);
    }
    // The next pass is asked for while this one's last copies are made.
    GMB_CALL(cuStreamSynchronize, streams[0]);
    if (pass == 2) Must(write(copying, "c", 1) == 1, "write", errno);
  }
}

class Child {
 public:
  explicit Child(std::span<uint32_t> host) {
    int ends[2];
    Must(pipe2(ends, O_CLOEXEC) == 0, "pipe2", errno);
    const pid_t parent = getpid();
    pid_ = fork();
    Must(pid_ >= 0, "fork", errno);
    if (pid_ == 0) {
      gmb::EndWithParent(parent);
      close(ends[0]);
      CopyForEver(host, ends[1]);
    }
    close(ends[1]);
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    Must(pidfd_ >= 0, "pidfd_open", errno);
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1) {
      int status = 0;
      waitpid(pid_, &status, 0);
      std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    close(pidfd_);
    waitpid(pid_, nullptr, 0);
  }
  void Kill() const { kill(pid_, SIGKILL); }
  void AwaitDeath() const {
    pollfd wait{pidfd_, POLLIN, 0};
    while (poll(&wait, 1, -1) != 1) {
    }
  }

 private:
  pid_t pid_ = 0;
  int pidfd_ = -1;
};

// Looks at the first word of each MiB until it is stopped.
class Watch {
 public:
  explicit Watch(std::span<uint32_t> host)
      : host_(host), thread_([this] { Look(); }) {}
  // When a word was last seen to change.
  Clock::time_point Stop() {
    stop_ = true;
    thread_.join();
    return last_;
  }

 private:
  void Look() {
    std::vector<uint32_t> seen(host_.size_bytes() / kStride);
    while (!stop_) {
      for (size_t i = 0; i < seen.size(); ++i) {
        const volatile uint32_t* const word = &host_[i * kStride / 4];
        const uint32_t now = *word;
        if (now == seen[i] || now == kMark) continue;
        seen[i] = now;
        last_ = Clock::now();
      }
    }
  }

  std::span<uint32_t> host_;
  std::atomic<bool> stop_ = false;
  Clock::time_point last_;
  std::thread thread_;
};

size_t Overwritten(std::span<uint32_t> host, size_t stride, uint32_t expected) {
  size_t count = 0;
  for (size_t i = 0; i < host.size(); i += stride) {
    const volatile uint32_t* const word = &host[i];
    if (*word != expected) ++count;
  }
  return count;
}

struct Death {
  double dead = 0, copying = 0;
  size_t overwritten = 0;
};

Death Die(std::span<uint32_t> host, std::chrono::milliseconds after) {
  Death death;
  const Child child(host);
  Watch watch(host);
  std::this_thread::sleep_for(after);
  const auto killed = Clock::now();
  child.Kill();
  child.AwaitDeath();
  for (size_t at = 0; at < host.size(); at += kStride / 4) host[at] = kMark;
  death.dead = Milliseconds(Clock::now() - killed);
  const auto last = watch.Stop();
  std::this_thread::sleep_for(kWatch);
  death.overwritten = Overwritten(host, kStride / 4, kMark);
  std::ranges::fill(host, kFill);
  std::this_thread::sleep_for(kWatch);
  death.overwritten += Overwritten(host, 1, kFill);
  death.copying = Milliseconds(last - killed);
  return death;
}

}  // namespace

int main(int argc, char** argv) {
  const int deaths = argc > 1 ? std::atoi(argv[1]) : 0;
  const size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 30;
  const unsigned seed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  if (deaths <= 0 || bytes == 0 || bytes % kPiece != 0) {
    std::fprintf(stderr,
                 "usage: gpu_dead_dma DEATHS [BYTES [SEED]]\n"
                 "BYTES is a multiple of 32 MiB.\n");
    return 2;
  }
  const int memfd = memfd_create("gpu_dead_dma", MFD_CLOEXEC);
  Must(memfd >= 0 && ftruncate(memfd, static_cast<off_t>(bytes)) == 0, "memfd",
       errno);
  const std::span<uint32_t> host = Map(memfd, bytes);
  std::mt19937 random(seed);
  size_t overwritten = 0;
  int outlived = 0;
  for (int i = 1; i <= deaths; ++i) {
    const Death death = Die(host, std::chrono::milliseconds(random() % 100));
    std::printf("%d: dead %.1f ms, copying until %.1f ms, overwritten %zu\n", i,
                death.dead, death.copying, death.overwritten);
    std::fflush(stdout);
    overwritten += death.overwritten;
    outlived += death.copying > 0 ? 1 : 0;
  }
  std::printf(
      "%d deaths, %zu MiB, seed %u: the GPU wrote on after SIGKILL in %d, "
      "%zu words overwritten\n",
      deaths, bytes >> 20, seed, outlived, overwritten);
  return overwritten == 0 && outlived > 0 ? 0 : 1;
}
