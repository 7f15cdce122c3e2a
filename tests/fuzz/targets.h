#ifndef GMB_TESTS_FUZZ_TARGETS_H_
#define GMB_TESTS_FUZZ_TARGETS_H_

#include <cstdint>

#include "absl/types/span.h"

// The fuzz targets. Each one is given bytes of any kind, and aborts where
// something does not hold. libFuzzer calls one (entry.cc); in every build
// corpora_test.cc calls each with the files of corpus/<target>.
namespace gmb::fuzz {

using Bytes = absl::Span<const uint8_t>;

// An operator's calls, through gRPC.
void FuzzAdmin(Bytes bytes);
// A configuration file.
void FuzzConfig(Bytes bytes);
// The messages of a broker on the handle socket, read by a client.
void FuzzFrames(Bytes bytes);
// A gate's page that its client writes, read and changed by the broker.
void FuzzGate(Bytes bytes);
// The messages of a client on the handle socket.
void FuzzGreeting(Bytes bytes);
// The answers of a keeper, read by its broker.
void FuzzKeeperAnswers(Bytes bytes);
// The questions of a broker or a command to a keeper.
void FuzzKeeperQuestions(Bytes bytes);
// Events of the broker's machine.
void FuzzMachine(Bytes bytes);
// Calls of the quota engine.
void FuzzQuota(Bytes bytes);
// A journal.
void FuzzRecords(Bytes bytes);
// A client's HTTP/2, on its way to gRPC.
void FuzzRelay(Bytes bytes);
// A client's messages on its stream.
void FuzzSession(Bytes bytes);
// Rows of the databases of quotas and usage.
void FuzzStore(Bytes bytes);

}  // namespace gmb::fuzz

#endif  // GMB_TESTS_FUZZ_TARGETS_H_
