// The broker itself is given no memory: it ends at once. An exception would
// leave a change half made behind, and gRPC drops those that reach it: a
// stream's client would wait for ever.
#include "broker/daemon/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "absl/strings/string_view.h"

namespace gmb::broker {
namespace {

constexpr absl::string_view kLine =
    "gmbd: this process is given no memory and ends, as if it was killed: give "
    "it more (systemd: MemoryMax=, LimitAS=; shell: ulimit -v; "
    "vm.overcommit_memory), or end what uses up the machine's\n";

std::atomic<AdoptionMarks*> marks_of_adoption = nullptr;

// Allocates nothing. Another thread may use the marks meanwhile: those that
// come out torn count as none.
[[noreturn]] void End() {
  [[maybe_unused]] const ssize_t said =
      ::write(STDERR_FILENO, kLine.data(), kLine.size());
  if (AdoptionMarks* const marks = marks_of_adoption.exchange(nullptr))
    marks->LetGo();
  std::abort();
}

}  // namespace

void EndWhenOutOfMemory() { std::set_new_handler(End); }

BlamesNoRecord::BlamesNoRecord(AdoptionMarks* marks) {
  marks_of_adoption = marks;
}

BlamesNoRecord::~BlamesNoRecord() { marks_of_adoption = nullptr; }

}  // namespace gmb::broker
