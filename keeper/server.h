#ifndef GMB_KEEPER_SERVER_H_
#define GMB_KEEPER_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "ipc/epoll_set.h"
#include "ipc/fd_disposer.h"
#include "ipc/listener.h"
#include "ipc/pidfd.h"
#include "ipc/seqpacket.h"
#include "ipc/service_manager.h"
#include "keeper/claim.h"
#include "keeper/closer.h"
#include "keeper/life.h"
#include "keeper/link/keeper_place.h"
#include "keeper/shelf.h"
#include "keeper/succession.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"

namespace gmb::keeper {

struct ServerOptions {
  Shelf::Limits limits;
  LifeOptions life = {};
  bool once = false;  // it ends when its broker is done, or none comes
  ipc::ServiceManager manager = {};
  // How long it serves nobody for the sake of one that replaces it: less than a
  // broker waits for an answer.
  std::chrono::milliseconds hand_over = std::chrono::milliseconds(1500);
};

// The keeper: one thread that waits on its socket, its connections, the broker's
// pidfd and those of peers, and never on any of them alone.
//
// A peer that breaks the protocol loses its connection and nothing else: what
// was put before stays until the broker's process has died and another one
// takes it over, or its time is over.
class Server {
 public:
  // Takes the place's lock and listens. `stop`: readable when the keeper is to
  // end; it must outlive the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      KeeperPlace place, const ServerOptions& options, int stop);
  // In the place of one that has given all away: the same lock, listener,
  // broker and entries. Its peers notice nothing. handing_over.cc.
  static absl::StatusOr<std::unique_ptr<Server>> Inherit(
      KeeperPlace place, const ServerOptions& options, int stop,
      Inheritance inheritance);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until `stop` is readable, or what it was there for is over. All that is
  // kept then ends with the process. An error is one of epoll itself.
  [[nodiscard]] absl::Status Run();
  // All that was inherited is this process's: from here on it listens.
  [[nodiscard]] absl::Status Claim() { return listener_.Claim(); }
  // The process that has all of it, where Run has ended for that. This one has
  // to end without a destructor, which would remove what is the other's.
  [[nodiscard]] std::optional<pid_t> replaced_by() const {
    return replaced_by_;
  }

 private:
  static constexpr size_t kMostConnections = 16;
  static constexpr std::chrono::seconds kGreetingTime{5};
  // Until the next accept, where the system has nothing left for one.
  static constexpr std::chrono::milliseconds kAcceptPause{100};
  // In the tag of a broker's pidfd, beside its number. Entries have orders far
  // below.
  static constexpr uint64_t kOfHolder = uint64_t{1} << 60;
  // Frames of one connection before others get their turn.
  static constexpr int kAtOnce = 32;

  struct Connection {
    enum class State { kGreets, kWaits, kBroker, kCommand, kSuccessor };

    explicit Connection(base::UniqueFd fd) : socket(std::move(fd)) {}

    ipc::SeqpacketSocket socket;
    ipc::PeerCredentials peer;
    base::UniqueFd pidfd;
    std::string nonce;
    State state = State::kGreets;
    Time greets_by;
    uint32_t hello = 0;  // its call, once it has greeted

    // Of one that has its pidfd still.
    [[nodiscard]] Process process() const {
      return {peer.pid, ipc::ProcessNumber(pidfd)};
    }
  };

  Server(KeeperPlace place, const ServerOptions& options,
         ipc::Listener listener, ipc::EpollSet epoll,
         std::unique_ptr<ipc::FdDisposer> disposer, std::string id);

  static absl::StatusOr<std::unique_ptr<Server>> Make(
      KeeperPlace place, const ServerOptions& options, ipc::Listener listener,
      int stop, std::string id);

  // The loop and its times: server.cc.
  [[nodiscard]] int WaitMilliseconds() const;
  [[nodiscard]] std::optional<Time> GivesBack() const;
  // Of one that is there for one broker, and has none: when it ends.
  [[nodiscard]] std::optional<Time> NobodyComes() const;
  [[nodiscard]] bool IsOver(Time now) const;
  // `looked_at`: all that had come by then was heard.
  void OnTime(Time now, Time looked_at);
  void BeginTimesAnew(Time now);
  void OnProcess(uint64_t order);
  void OnBrokerDeath();
  void GiveAllBack(const char* why);

  // Connections and their greetings: connections.cc.
  void OnListener();
  void Listen(bool on);
  [[nodiscard]] absl::Status Challenge(base::UniqueFd fd);
  void MakeRoom();
  void OnSocket(uint64_t id);
  // False: the connection has ended.
  [[nodiscard]] bool Receive(uint64_t id);
  [[nodiscard]] absl::Status OnHello(uint64_t id, const ipc::Packet& packet);
  [[nodiscard]] absl::Status Serve(uint64_t id);
  void ServeWaiting();
  void End(uint64_t id);

  // Questions: questions.cc. An error ends the connection; a refusal does not.
  [[nodiscard]] absl::Status OnQuestion(uint64_t id, ipc::Packet packet);
  [[nodiscard]] absl::Status OnPut(Connection* connection, const Frame& frame,
                                   std::vector<base::UniqueFd> fds);
  [[nodiscard]] absl::Status OnRemove(Connection* connection,
                                      const Frame& frame);
  [[nodiscard]] absl::Status OnFetch(Connection* connection,
                                     const Frame& frame);
  [[nodiscard]] absl::Status OnDone(uint64_t id, const Frame& frame);
  [[nodiscard]] absl::Status OnDrop(Connection* connection, const Frame& frame);
  [[nodiscard]] absl::Status OnLook(Connection* connection, const Frame& frame);
  // Its place is another's from now on: handing_over.cc.
  [[nodiscard]] absl::Status OnHandOver(uint64_t id, const Frame& frame);
  [[nodiscard]] absl::Status GiveAway(Connection* successor);
  [[nodiscard]] absl::Status LeaveEstate(Connection* successor,
                                         const Frame& frame);
  [[nodiscard]] absl::Status Confirm(Connection* successor, const Frame& frame,
                                     Time until);
  [[nodiscard]] absl::Status TakeOver(Inheritance inheritance);
  void Discard(KeptEntry entry);
  [[nodiscard]] size_t SlowToClose() const;
  [[nodiscard]] KeeperStatus MakeStatus() const;
  [[nodiscard]] KeptCount Count() const;

  // A peer that does not read its answers breaks the protocol.
  [[nodiscard]] static absl::Status Answer(Connection* connection, Kind kind,
                                           uint32_t call, std::string body,
                                           const std::vector<int>& fds = {});
  [[nodiscard]] static absl::Status Refuse(Connection* connection,
                                           uint32_t call,
                                           const absl::Status& why);

  const KeeperPlace place_;
  const ServerOptions options_;
  ipc::Listener listener_;
  const ipc::EpollSet epoll_;
  const std::unique_ptr<ipc::FdDisposer> disposer_;
  const std::string id_;
  Closer closer_;
  Shelf shelf_;
  // The pidfds of peers that live, by the orders of their entries.
  std::map<uint64_t, int> living_;
  Time last_peer_died_;

  const Time started_ = std::chrono::steady_clock::now();
  std::optional<Holder> holder_;
  base::UniqueFd holder_pidfd_;
  uint64_t holders_ = 0;  // so far; the last one's number
  Time holder_died_;
  Time respite_;       // nothing is given back before: it was held up
  bool done_ = false;  // the last one was, or a command said so

  // By an id that is never used twice: in the order in which they came.
  std::map<uint64_t, Connection> connections_;
  uint64_t last_connection_ = 0;
  std::optional<Time> listens_again_;
  std::optional<pid_t> replaced_by_;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_SERVER_H_
