// The fake as a process of its own, for tests that cannot have it inside (a C
// program; a broker that is stopped or killed).
//   fake_broker DIR: says "ready", then does what it reads, a word a line,
//     until its input ends.
//   fake_broker --run PROGRAM: runs the program with GMB_SOCKET_DIR set, and
//     exits as it does.
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "google/protobuf/duration.pb.h"
#include "ipc/gate_control.h"
#include "proto/error_status.h"
#include "tests/client/fake_broker.h"

namespace {

google::protobuf::Duration WaitOf(const gmb::v1::ClientMessage& asked) {
  return asked.has_acquire() ? asked.acquire().wait() : asked.attach().wait();
}

int Serve(const char* dir) {
  gmb::test::FakeBroker broker(dir);
  std::cout << "ready" << std::endl;
  for (std::string word; std::getline(std::cin, word);) {
    gmb::v1::BrokerMessage message;
    if (word == "budget") {
      message.mutable_budget_changed()->mutable_quota()->set_device("host-0");
      message.mutable_budget_changed()->mutable_quota()->set_limit_bytes(4711);
      broker.Say(message);
    } else if (word == "drain") {
      message.mutable_draining()->mutable_remaining()->set_seconds(3);
      broker.Say(message);
    } else if (word == "trim") {
      message.mutable_trim()->set_trim(1);
      message.mutable_trim()->set_device("host-0");
      message.mutable_trim()->set_bytes(815);
      message.mutable_trim()->mutable_within()->set_seconds(60);
      broker.Say(message);
    } else if (word == "close") {
      if (!broker.WaitUntil([&] {
            gmb::ipc::GateCells& gate = broker.gate();
            return gmb::ipc::CloseGate(gate, gmb::ipc::LookAtGate(gate));
          })) {
        std::cerr << "fake_broker: the gate does not park\n";
        return 2;
      }
      // And open again when that is asked for.
      broker.OnMessage([&broker](const gmb::v1::ClientMessage& asked) {
        if (asked.has_restore()) {
          gmb::ipc::GateCells& gate = broker.gate();
          (void)gmb::ipc::ReopenGate(gate, gmb::ipc::LookAtGate(gate));
        }
        broker.Serve(asked);
      });
    } else if (word == "refuse-waits") {
      broker.OnMessage([&broker](const gmb::v1::ClientMessage& asked) {
        if (WaitOf(asked).seconds() > 0 || WaitOf(asked).nanos() > 0) {
          broker.Refuse(asked, gmb::proto::MakeError(gmb::v1::BAD_REQUEST,
                                                     "it would wait"));
        } else {
          broker.Serve(asked);
        }
      });
    } else if (word == "serve") {
      broker.OnMessage(nullptr);
    } else if (word == "silence") {
      broker.OnMessage([](const gmb::v1::ClientMessage&) {});
    } else if (word == "hangup") {
      broker.HangUp();
    } else {
      std::cerr << "fake_broker: unknown word: " << word << "\n";
      return 2;
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}

int Run(char* program) {
  char dir[] = "/tmp/gmb-fake-XXXXXX";
  if (mkdtemp(dir) == nullptr) throw std::runtime_error("mkdtemp failed");
  setenv("GMB_SOCKET_DIR", dir, 1);
  int status = 0;
  {
    gmb::test::FakeBroker broker(dir);
    pid_t child = 0;
    char* argv[] = {program, nullptr};
    if (posix_spawn(&child, program, nullptr, nullptr, argv, environ) != 0) {
      throw std::runtime_error("cannot run the program");
    }
    waitpid(child, &status, 0);
  }
  std::filesystem::remove_all(dir);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

}  // namespace

int main(int argc, char** argv) {
  const bool run = argc == 3 && argv[1] == std::string("--run");
  if (argc != 2 && !run) {
    std::cerr << "usage: fake_broker DIR | --run PROGRAM\n";
    return 2;
  }
  try {
    return run ? Run(argv[2]) : Serve(argv[1]);
  } catch (const std::exception& e) {
    std::cerr << "fake_broker: " << e.what() << "\n";
    return 1;
  }
}
