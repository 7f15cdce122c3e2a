#ifndef GMB_TESTS_COMPONENT_RECLAIM_LIAR_H_
#define GMB_TESTS_COMPONENT_RECLAIM_LIAR_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "gmb/v1/session.pb.h"
#include "ipc/gate_page.h"
#include "ipc/seqpacket.h"
#include "tests/component/raw_session.h"

namespace gmb::component {

// A session spoken by hand that has a gate and leases of host memory, and does
// with both what the test says. Of one thread. A word that the broker should
// have said and did not is thrown as std::runtime_error, which fails the test.
class Liar {
 public:
  // `tenant_dir` is the tenant's socket directory.
  explicit Liar(const std::string& tenant_dir);

  [[nodiscard]] uint64_t session_id() const { return welcome_.session_id(); }
  [[nodiscard]] ipc::GateCells& cells() const { return gate_->cells(); }
  [[nodiscard]] int gate_fd() const { return gate_fd_.get(); }

  // Asks under a new id; the answer. Notices that come before it are kept.
  v1::BrokerMessage Ask(v1::ClientMessage message);
  // The id under which it was asked, for AwaitAnswer.
  uint64_t Send(v1::ClientMessage message);
  v1::BrokerMessage AwaitAnswer(uint64_t id);
  // The next notice of that kind: what the broker says by itself. Others of
  // before are dropped.
  v1::BrokerMessage AwaitNotice(v1::BrokerMessage::KindCase kind);
  // A new stream; what the old one had not read is lost.
  void BreakStream();

  // The lease's id. Mapped, and said so unless `silent`.
  uint64_t Acquire(uint64_t bytes, v1::Contents contents = v1::PRESERVE,
                   bool silent = false);
  void TurnGateOn();
  // PARKED in a new epoch, whatever the memory is used for.
  void Park() const;

  v1::Evict AwaitEvict();
  // Unmaps, and says so.
  void Unmap(const v1::Evict& evict);
  // Says so only.
  void SayUnmapped(uint64_t lease, uint64_t move);
  // Takes the slabs of the Map and maps them.
  v1::Map AwaitMap();
  void SayMapped(uint64_t lease, uint64_t move);

  void ReleaseMemory(uint64_t lease) { memory_.erase(lease); }
  // The first slab's words, as long as the memory is mapped.
  [[nodiscard]] uint64_t* Words(uint64_t lease) const;

 private:
  struct Mapping {
    void* at = nullptr;
    uint64_t bytes = 0;
    Mapping(void* start, uint64_t size) : at(start), bytes(size) {}
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();
  };
  struct Memory {
    std::vector<std::unique_ptr<Mapping>> slabs;
  };

  v1::BrokerFrame ReceiveFrame(std::vector<base::UniqueFd>* fds);
  void TakeSlabs(uint64_t lease, uint32_t slabs);
  v1::BrokerMessage Receive();

  const std::string tenant_dir_;
  std::optional<ipc::SeqpacketSocket> socket_;
  v1::Welcome welcome_;
  base::UniqueFd gate_fd_;
  std::optional<ipc::GatePage> gate_;
  std::unique_ptr<RawStream> stream_;
  uint64_t last_id_ = 0;
  std::deque<v1::BrokerMessage> notices_;
  std::map<uint64_t, v1::BrokerMessage> answers_;
  std::map<uint64_t, Memory> memory_;  // by lease
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_RECLAIM_LIAR_H_
