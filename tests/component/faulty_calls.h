#ifndef GMB_TESTS_COMPONENT_FAULTY_CALLS_H_
#define GMB_TESTS_COMPONENT_FAULTY_CALLS_H_

#include <atomic>
#include <cstdint>

namespace gmb::component {

// The variable with the path of the file that has the plan.
inline constexpr char kFaultPlanVariable[] = "GMB_FAULT_PLAN";

// The calls of a broker to the machine. Peers are those of the handle sockets,
// streams those of the gRPC sockets.
enum class FaultyCall : uint32_t {
  kNone,
  kAllocate,  // malloc and its kind
  // The next one after a look at a memory file's seals, as an adopting broker
  // takes at each file that was kept.
  kAllocateAfterSeals,
  kMap,
  kDuplicate,  // of an fd, by fcntl
  kMemoryFile,
  kSize,      // ftruncate and its kind
  kPopulate,  // madvise, to bring pages into use
  kPidfd,
  kWatch,   // epoll_ctl, to watch something
  kWakeup,  // eventfd
  kThread,
  kOwnThread,  // one of std::thread, as gRPC's are not
  kAccept,
  kConnect,
  kPoll,
  kEpollWait,
  kLastOfDisk,  // a directory is synced, and from then on nothing can be read
  kDiskAnswer,  // does not come: a sync lasts as long as this is the plan
  kSendToPeer,
  kSendToKeeper,
  kSendOnStream,
  kReceiveFromPeer,
  kReceiveFromKeeper,
  kReceiveOnStream,
};

// Which calls of a broker fail that has faulty_calls.cc preloaded; in memory
// that it shares with its test.
struct FaultPlan {
  std::atomic<FaultyCall> call;  // written last
  std::atomic<int> error;        // errno
  std::atomic<uint64_t> first;   // so many go well before
  std::atomic<uint64_t> count;   // so many fail then
  std::atomic<uint64_t> calls;   // so far
  // A wall clock says so much more, whatever the call is.
  std::atomic<int64_t> wall_seconds;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_FAULTY_CALLS_H_
