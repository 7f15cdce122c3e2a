#ifndef GMB_TESTS_ATTACK_HTTP_FLOOD_H_
#define GMB_TESTS_ATTACK_HTTP_FLOOD_H_

#include <functional>
#include <string>

#include "tests/attack/attack.h"
#include "tests/attack/http_connection.h"

namespace gmb::attack {

struct HttpFlood {
  // Sent first on a connection, after HTTP/2's own opening; may be empty.
  std::function<std::string(HttpConnection&, const std::string& token)> begin;
  // Sent next, again and again: some KiB.
  std::function<std::string(HttpConnection&, const std::string& token)> next;
  // Whether it takes the answers; otherwise the broker has to keep them, or to
  // stop.
  bool reads = false;
};

// Keeps as many connections to gmb.sock as the options say full of it, with a
// session of this process where they ask for one. A connection that the broker
// closes, or does not read for some seconds, is opened anew.
void Run(const HttpFlood& flood, Attack& attack);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HTTP_FLOOD_H_
