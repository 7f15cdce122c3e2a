#include "tests/quota/interpreter.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "quota/engine.h"
#include "tests/quota/describe.h"
#include "tests/quota/invariants.h"
#include "tests/quota/reference_model.h"

namespace gmb::quota {
namespace {

// Small on purpose: with few bytes and few tenants everything collides.
constexpr uint64_t kPools = 2;
constexpr uint64_t kTenants = 5;
constexpr uint64_t kSessions = 6;
constexpr uint64_t kPoolBytes = 48;
constexpr EngineOptions kOptions = {.max_handles = 24,
                                    .pass_window = Nanoseconds(40),
                                    .covered_hold = Nanoseconds(90),
                                    .longest_series = Nanoseconds(400)};

class Run {
 public:
  explicit Run(absl::Span<const uint8_t> program)
      : program_(program),
        engine_(kOptions),
        model_(kOptions),
        checker_(engine_) {}

  InterpreterResult Go() {
    for (uint64_t pool = 1; pool <= kPools; ++pool) {
      Do(PoolSet{PoolId{pool}, kPoolBytes, Granularity(PoolId{pool})});
    }
    for (uint64_t tenant = 1; tenant <= kTenants; ++tenant) {
      Do(TenantSet{.tenant = TenantId{tenant}, .max_handles = 12});
      for (uint64_t pool = 1; pool <= kPools; ++pool) {
        const TenantQuota quota{.guarantee = Amount::Fraction(0.1),
                                .limit = Amount::Fraction(0.7),
                                .weight = static_cast<double>(tenant)};
        Do(QuotaSet{PoolId{pool}, TenantId{tenant}, quota});
      }
    }
    while (!program_.empty() && result_.problem.empty()) Do(NextEvent());
    if (result_.problem.empty()) Drain();
    return result_;
  }

 private:
  static uint64_t Granularity(PoolId pool) { return pool.value == 1 ? 1 : 3; }

  uint8_t Byte() {
    if (program_.empty()) return 0;
    const uint8_t byte = program_.front();
    program_.remove_prefix(1);
    return byte;
  }
  uint64_t Below(uint64_t bound) { return Byte() % bound; }
  // Now and then one that does not exist.
  PoolId AnyPool() {
    return PoolId{1 + Below(16 * kPools + 1) % (kPools + 1) % 3};
  }
  PoolId SomePool() { return PoolId{1 + Below(kPools)}; }
  TenantId SomeTenant() { return TenantId{1 + Below(kTenants)}; }

  Event NextEvent() {
    now_ = now_ + Nanoseconds(Below(4) == 0 ? Below(64) : Below(4));
    const uint64_t kind = Below(96);
    if (kind >= 64) return NextReclaim(kind - 64);
    if (kind < 28) return NextAcquire();
    if (kind < 43) return NextRelease();
    if (kind < 47) return NextQuota();
    switch (kind) {
      case 47:
      case 48:
        return NextPoolSet();
      case 49:
      case 50:
      case 51:
      case 52:
      case 53:
        return Tick{};
      case 54:
        return PoolDrain{.pool = AnyPool(), .draining = Below(8) == 0};
      case 55: {
        const PoolId pool = AnyPool();
        const uint64_t bytes = NextOutsideBytes();
        return MissingChanged{.pool = pool,
                              .missing_bytes = bytes,
                              .returning_bytes = Below(2) * Below(8)};
      }
      case 56:
        return UnreturnedChanged{SomePool(), SomeTenant(), NextOutsideBytes()};
      case 57:
        // One that was removed comes back like this.
        return TenantSet{SomeTenant(),
                         static_cast<uint32_t>(Below(4) == 0 ? Below(8) : 12)};
      case 58:
        if (Below(8) == 0) return TenantRemove{SomeTenant()};
        return TenantSet{SomeTenant(), 12};
      case 59:
        return SessionClosed{SessionId{1 + Below(kSessions)}};
      case 60:
        return Cancel{RequestId{1 + Below(last_request_ + 1)}};
      case 61:
        if (!checker_.waiting().empty())
          return Cancel{checker_.waiting().rbegin()->first};
        return Tick{};
      case 62:
        now_ = engine_.NextDeadline().value_or(now_);
        return Tick{};
      default:
        // Healing: without it the pools would mostly be broken.
        return MissingChanged{.pool = SomePool(), .missing_bytes = 0};
    }
  }

  uint64_t NextOutsideBytes() {
    const uint64_t kind = Below(64);
    if (kind == 0) return std::numeric_limits<uint64_t>::max();
    return kind < 40 ? 0 : Below(kPoolBytes / 3);
  }

  Event NextAcquire() {
    Acquire acquire{.request = RequestId{++last_request_},
                    .session = SessionId{1 + Below(kSessions)},
                    .tenant = SomeTenant(),
                    .pool = SomePool(),
                    .bytes = 1 + Below(12),
                    .handles = static_cast<uint32_t>(1 + Below(16) / 14),
                    .deadline = now_,
                    .hard = Below(4) == 0};
    switch (Below(64)) {
      case 0:
        acquire.bytes = 0;
        break;
      case 1:
        acquire.bytes = std::numeric_limits<uint64_t>::max() - Below(4);
        break;
      case 2:
        acquire.bytes = uint64_t{1} << 63;
        break;
      case 3:
        acquire.handles = static_cast<uint32_t>(Below(2) * 0xffffffff);
        break;
      case 4:
        acquire.pool = PoolId{9};
        break;
      case 5:
        acquire.tenant = TenantId{kTenants + 1};
        break;
      case 6:
        if (checker_.waiting().empty()) break;
        acquire.request = checker_.waiting().begin()->first;
        break;
      default:
        if (Below(4) == 0) acquire.bytes = 1 + Below(kPoolBytes);
    }
    if (Below(4) != 0) {
      acquire.deadline = now_ + Nanoseconds(Below(128) * (1 + Below(8)));
    }
    return acquire;
  }

  LeaseId SomeLease() {
    const auto& leases = checker_.leases();
    if (leases.empty() || Below(32) == 0) return LeaseId{Below(250)};
    auto it = leases.begin();
    std::advance(it, Below(leases.size()));
    return it->first;
  }

  // Now and then one that does not wait.
  RequestId SomeRequest() {
    const auto& waiting = checker_.waiting();
    if (waiting.empty() || Below(16) == 0)
      return RequestId{1 + Below(last_request_ + 1)};
    auto it = waiting.begin();
    std::advance(it, Below(waiting.size()));
    return it->first;
  }

  // An event that a broker's reclaim tells the engine.
  Event NextReclaim(uint64_t kind) {
    if (kind < 9) return Evicted{SomeLease()};
    if (kind < 16) return NextRestore();
    if (kind < 18) return HardChanged{SomeLease(), Below(4) == 0};
    if (kind == 18 && Below(2) == 0) return Shared{SomeLease()};
    if (kind >= 28) return Softened{SomeRequest()};
    if (kind >= 20) return BytesLeaving{SomePool(), 2 + Below(kPoolBytes)};
    return SessionPausing{SessionId{1 + Below(kSessions)}, Below(3) == 0};
  }

  // Of all leases of a session and tenant that are evicted, of all of a tenant's
  // in a pool, as of a group, or of any leases.
  Event NextRestore() {
    Restore restore{.request = RequestId{++last_request_},
                    .session = SessionId{1 + Below(kSessions)},
                    .leases = {},
                    .deadline = now_};
    if (Below(8) == 0) {
      for (uint64_t n = Below(4); n > 0; --n)
        restore.leases.push_back(SomeLease());
    } else if (!checker_.evicted().empty()) {
      auto it = checker_.evicted().begin();
      std::advance(it, Below(checker_.evicted().size()));
      const Granted& first = checker_.leases().at(*it);
      restore.session = first.session;
      const bool of_group = Below(2) == 0;
      for (const LeaseId id : checker_.evicted()) {
        const Granted& lease = checker_.leases().at(id);
        if (lease.tenant != first.tenant) continue;
        if (lease.session == first.session ||
            (of_group && lease.pool == first.pool))
          restore.leases.push_back(id);
      }
    }
    if (Below(4) != 0) restore.deadline = now_ + Nanoseconds(Below(128) * 4);
    if (Below(2) == 0) restore.linger = Nanoseconds(Below(64));
    // Sent again: as a client does that waits on.
    if (Below(4) == 0) {
      restore.request = SomeRequest();
      restore.leases.clear();
      result_.sent_again += checker_.waiting().contains(restore.request);
    }
    return restore;
  }

  Event NextRelease() {
    const auto& leases = checker_.leases();
    const uint64_t kind = Below(32);
    if (leases.empty() || kind == 0) return Released{LeaseId{Below(250)}};
    auto it = leases.begin();
    std::advance(it, Below(leases.size()));
    if (kind == 1) return GrantFailed{it->first};
    return Released{it->first};
  }

  Amount NextAmount(uint64_t most) {
    switch (Below(8)) {
      case 0:
        return Amount::Fraction(static_cast<double>(Below(256)) / 255);
      case 1:
        return Amount::Fraction(static_cast<double>(Below(64)) / 255);
      case 2:
        if (Below(4) != 0) return Amount::Bytes(0);
        return Below(2) == 0
                   ? Amount::Fraction(std::numeric_limits<double>::quiet_NaN())
                   : Amount::Bytes(std::numeric_limits<uint64_t>::max());
      default:
        return Amount::Bytes(Below(most));
    }
  }

  Event NextQuota() {
    constexpr double kWeights[] = {1, 1, 2, 0.5, 1e-300, 1e300, 3, 0};
    return QuotaSet{AnyPool(),
                    SomeTenant(),
                    {.guarantee = NextAmount(kPoolBytes / 4),
                     .limit = NextAmount(kPoolBytes + 8),
                     .weight = kWeights[Below(8)]}};
  }

  Event NextPoolSet() {
    const PoolId pool = SomePool();
    PoolSet set{pool, kPoolBytes / 2 + Below(kPoolBytes), Granularity(pool)};
    const uint64_t kind = Below(32);
    if (kind == 0) set.granularity_bytes = Below(5);
    if (kind == 1) set.target_bytes = kMaxPoolBytes + Below(2);
    return set;
  }

  void Do(const Event& event) {
    // The checker sees an event as a whole: let what is due happen first, where
    // the order of the two matters to it.
    const auto due = engine_.NextDeadline();
    const bool moves = std::holds_alternative<Evicted>(event) ||
                       std::holds_alternative<Restore>(event) ||
                       std::holds_alternative<HardChanged>(event) ||
                       std::holds_alternative<Released>(event) ||
                       std::holds_alternative<GrantFailed>(event);
    if (moves && due && *due <= now_) Do(Tick{});
    if (!result_.problem.empty()) return;
    ++result_.events;
    history_.push_back(absl::StrCat("t=", now_.ns, " ", Describe(event)));
    const bool is_acquire = std::holds_alternative<Acquire>(event);
    const Effects effects = engine_.Handle(event, now_);
    for (const Effect& effect : effects) {
      result_.granted += std::holds_alternative<Granted>(effect);
      result_.granted_softened += std::holds_alternative<Softened>(event) &&
                                  std::holds_alternative<Granted>(effect);
      result_.granted_after_waiting +=
          !is_acquire && std::holds_alternative<Granted>(effect);
      if (const auto* denied = std::get_if<Denied>(&effect)) {
        ++result_.denied[denied->reason];
        result_.denied_pausing += denied->pausing;
        result_.denied_claimed += denied->claimed;
      }
      if (const auto* restored = std::get_if<Restored>(&effect)) {
        const bool at_once = std::holds_alternative<Restore>(event);
        ++(at_once ? result_.restored : result_.restored_after_waiting);
        result_.restored_nothing += restored->bytes == 0;
        result_.restored_in_part += restored->in_part;
        if (restored->in_part) model_.FollowInPart(*restored);
      }
      result_.pending += std::holds_alternative<QuotaPending>(effect);
    }
    const std::string engine_says = DescribeAnswers(effects);
    const std::string model_says = DescribeAnswers(model_.Handle(event, now_));
    history_.push_back("  " + engine_says);
    if (!model_.WrongInPart().empty()) {
      Fail(absl::StrCat("what came back in part: ", model_.WrongInPart()));
    } else if (engine_says != model_says) {
      Fail(absl::StrCat("the reference model says\n  ", model_says));
    } else if (engine_.NextDeadline() != model_.NextDeadline()) {
      Fail(absl::StrCat("NextDeadline is ", DeadlineText(engine_),
                        ", the reference model says ", DeadlineText(model_)));
    } else if (const std::string broken = checker_.Check(event, now_, effects);
               !broken.empty()) {
      Fail(broken);
    }
  }

  template <typename Told>
  static std::string DeadlineText(const Told& told) {
    const auto next = told.NextDeadline();
    return next ? absl::StrCat(next->ns) : "none";
  }

  void Fail(const std::string& problem) {
    const size_t shown = std::min<size_t>(history_.size(), 120);
    result_.problem = absl::StrCat(
        absl::StrJoin(history_.end() - static_cast<std::ptrdiff_t>(shown),
                      history_.end(), "\n"),
        "\nafter event ", result_.events, ": ", problem);
  }

  // Everything goes away in the end, and nothing is left of it.
  void Drain() {
    for (uint64_t pool = 1; pool <= kPools; ++pool) {
      Do(MissingChanged{.pool = PoolId{pool}, .missing_bytes = 0});
      for (uint64_t tenant = 1; tenant <= kTenants; ++tenant) {
        Do(UnreturnedChanged{PoolId{pool}, TenantId{tenant}, 0});
      }
    }
    while (result_.problem.empty() &&
           !(checker_.leases().empty() && checker_.waiting().empty())) {
      if (checker_.leases().empty()) {
        now_ = *engine_.NextDeadline();
        Do(Tick{});
      } else {
        Do(Released{checker_.leases().begin()->first});
      }
    }
    if (!result_.problem.empty()) return;
    if (const std::string left = checker_.CheckDrained(); !left.empty())
      return Fail(left);
    for (const TenantId tenant : engine_.Tenants()) Do(TenantRemove{tenant});
    if (result_.problem.empty() && !engine_.Tenants().empty())
      Fail("tenants are left");
    for (const PoolId pool : engine_.Pools()) {
      if (engine_.Pool(pool)->committed_bytes != 0)
        return Fail("committed bytes are left");
    }
  }

  absl::Span<const uint8_t> program_;
  Engine engine_;
  ReferenceModel model_;
  InvariantChecker checker_;
  Instant now_;
  uint64_t last_request_ = 0;
  std::vector<std::string> history_;
  InterpreterResult result_;
};

}  // namespace

InterpreterResult Interpret(absl::Span<const uint8_t> program) {
  return Run(program).Go();
}

}  // namespace gmb::quota
