#ifndef GMB_TESTS_BROKER_SERVER_ADMIN_PARTS_FIXTURE_H_
#define GMB_TESTS_BROKER_SERVER_ADMIN_PARTS_FIXTURE_H_

#include <signal.h>
#include <sys/resource.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/server/admin_calls.h"
#include "broker/server/not_in_force.h"
#include "broker/server/waiting_guarantees.h"
#include "broker/store/quota_store.h"
#include "tests/broker/core/core_fixture.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {

// As on a full disk: no file may grow.
class FullDisk {
 public:
  FullDisk() {
    ::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit full{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

// A part of the operators' service works on this, without the service: a core
// with one pool of 64 MiB, a store and the operators' thread.
class AdminPartsFixture : public CoreFixture {
 protected:
  void SetUp() override { AddHostPool(64 * kMiB); }

  static TenantPolicy Policy(const std::string& name, double guarantee,
                             double weight = 1) {
    TenantPolicy policy;
    policy.name = name;
    policy.quota = {quota::Amount::Fraction(guarantee),
                    quota::Amount::Fraction(1), weight};
    return policy;
  }
  static AuditRecord Record() {
    AuditRecord record;
    record.operator_name = "tester";
    return record;
  }
  // In the core alone.
  void InForce(const std::string& name, double guarantee) {
    ASSERT_TRUE(core.SetTenant(Policy(name, guarantee)).ok());
  }
  // In the store alone.
  void Declare(const std::string& name, double guarantee) {
    AuditRecord record = Record();
    record.action = "set_tenant";
    record.subject = name;
    ASSERT_TRUE(store_->PutTenant(Policy(name, guarantee), record).ok());
  }
  bool HasGuarantee(const std::string& name, double guarantee) {
    return core.GetPolicy(name)->quota.guarantee ==
           quota::Amount::Fraction(guarantee);
  }
  // All that was given to the operators' thread is done.
  void Finish() {
    std::promise<void> done;
    calls_.Post([&done] { done.set_value(); });
    done.get_future().wait();
  }
  // On the operators' thread.
  template <typename Work>
  void InTurn(Work work) {
    calls_.Post(std::move(work));
    Finish();
  }
  // "action subject by operator: detail", the newest first.
  std::vector<std::string> Audit() {
    std::vector<std::string> lines;
    const auto records = store_->ListAudit(100);
    EXPECT_TRUE(records.ok()) << records.status();
    for (const AuditRecord& record : *records) {
      lines.push_back(record.action + " " + record.subject + " by " +
                      record.operator_name + ": " + record.detail);
    }
    return lines;
  }

  const TempDirectory directory_;
  const std::unique_ptr<QuotaStore> store_ =
      QuotaStore::Open(directory_.path()).value();
  NotInForce not_in_force_{DroppedValues()};
  AdminCalls calls_{/*authenticator=*/nullptr, &clock};
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_SERVER_ADMIN_PARTS_FIXTURE_H_
