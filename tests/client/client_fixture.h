#ifndef GMB_TESTS_CLIENT_CLIENT_FIXTURE_H_
#define GMB_TESTS_CLIENT_CLIENT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gmb/client.h"
#include "tests/client/fake_broker.h"

namespace gmb::test {

// A fake broker in a directory of its own.
class ClientTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMiB = uint64_t{1} << 20;

  ClientTest() {
    char path[] = "/tmp/gmb-client-XXXXXX";
    dir_ = mkdtemp(path);
  }
  ~ClientTest() override {
    broker_.reset();
    std::filesystem::remove_all(dir_);
  }

  void StartBroker(FakeBroker::Options options = {}) {
    broker_ = std::make_unique<FakeBroker>(dir_, std::move(options));
    named_ = broker_.get();
  }
  void StopBroker() { broker_.reset(); }
  // Also while StopBroker() waits for the broker's threads, which may ask.
  FakeBroker& broker() { return *named_; }
  const std::string& dir() const { return dir_; }

  ClientOptions Options() const {
    ClientOptions options;
    options.socket_dir = dir_;
    return options;
  }
  // With a short patience, for brokers that do not answer.
  ClientOptions ImpatientOptions() const {
    ClientOptions options = Options();
    // Answers have to come within it, on a loaded machine, too.
    options.answer_timeout = absl::Seconds(1);
    return options;
  }
  // Asks again while that patience is too short for a busy machine.
  template <typename Ask>
  static auto InTime(Ask ask) {
    constexpr int kMostTries = 100;
    for (int i = 1; i < kMostTries; ++i) {
      if (auto answer = ask(); !WasLate(answer)) return answer;
    }
    return ask();
  }
  static std::unique_ptr<Client> ConnectOrDie(ClientOptions options) {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect(std::move(options));
    if (!client.ok()) throw std::runtime_error(client.status().ToString());
    return *std::move(client);
  }
  std::unique_ptr<Client> ConnectOrDie() const {
    return ConnectOrDie(Options());
  }

  static size_t OpenFds() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                      std::filesystem::directory_iterator()));
  }

 private:
  static bool WasLate(const absl::Status& status) {
    return absl::IsDeadlineExceeded(status);
  }
  template <typename Answer>
  static bool WasLate(const absl::StatusOr<Answer>& answer) {
    return WasLate(answer.status());
  }

  std::string dir_;
  std::unique_ptr<FakeBroker> broker_;
  FakeBroker* named_ = nullptr;
};

// And with one that is told how to misbehave.
class ClientFaultsTest : public ClientTest {
 protected:
  // Answers everything well but Acquire, which `acquire` deals with.
  void OnAcquire(std::function<void(const v1::ClientMessage&)> acquire) {
    broker().OnMessage(
        [this, acquire = std::move(acquire)](const v1::ClientMessage& message) {
          if (message.has_acquire()) {
            acquire(message);
          } else {
            broker().Serve(message);
          }
        });
  }
  void BehaveAgain() { broker().OnMessage(nullptr); }
};

}  // namespace gmb::test

#endif  // GMB_TESTS_CLIENT_CLIENT_FIXTURE_H_
