#ifndef GMB_BROKER_DAEMON_RECORD_IN_HAND_H_
#define GMB_BROKER_DAEMON_RECORD_IN_HAND_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "broker/daemon/out_of_memory.h"
#include "broker/keeping/adoption_marks.h"
#include "broker/keeping/keeper_client.h"
#include "broker/keeping/record_parts.h"

namespace gmb::broker {

// Which record this broker has in hand while it takes over, marked in memory
// that the keeper has. Before Begin and after End nothing is marked.
class RecordInHand {
 public:
  // The client outlives it.
  explicit RecordInHand(KeeperClient* client) : client_(client) {}

  // `last`: the marks of a broker that died before it was done; null: it was.
  // Where they cannot be kept, the log says so: then a record that ends this
  // process is not known by the next one.
  void Begin(const SharedFd& last);
  // The records that brokers have died of; null: nothing is marked.
  [[nodiscard]] AdoptionMarks* marks() { return marks_.get(); }

  void Take(RecordKind kind, uint64_t id);
  // The start fails, or does something that is no record's: should the process
  // end now, no record is to blame.
  void LetGo();

  // All is taken over.
  void End();

 private:
  KeeperClient* const client_;
  std::unique_ptr<AdoptionMarks> marks_;
  std::optional<BlamesNoRecord> out_of_memory_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_RECORD_IN_HAND_H_
