// A full disk, played by a small tmpfs and by a limit on the size of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "broker/store/quota_store.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;

AuditRecord RecordOf(const std::string& action, const std::string& subject) {
  return {absl::UnixEpoch(), "uid 0, pid 4711 (gmb)", action, subject, ""};
}

class QuotaStoreOnFullDisk : public testing::Test {
 protected:
  const TempDirectory directory_;
};

// Runs `body` in a child, which says what went wrong and exits 1 then, or 77
// when it cannot be tried here.
int InChild(const std::function<std::string()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string problem = body();
    if (problem.empty()) ::_exit(0);
    (void)!::write(STDERR_FILENO, (problem + "\n").data(), problem.size() + 1);
    ::_exit(problem == "skip" ? 77 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Fills the disk through the store itself until it refuses; then nothing may
// be lost, and the store works again when there is room.
std::string FillUntilRefused(QuotaStore* store, int* stored) {
  AuditRecord record = RecordOf("set_tenant", "x");
  record.detail = std::string(2'000, 'x');
  for (int i = 0; i < 2'000; ++i) {
    TenantPolicy policy;
    policy.name = "t" + std::to_string(i);
    const absl::Status put = store->PutTenant(policy, record);
    if (put.ok()) continue;
    *stored = i;
    if (put.code() != absl::StatusCode::kResourceExhausted)
      return std::string(put.message());
    if (put.message().find("full") == std::string::npos)
      return std::string(put.message());
    // Acts of operators in trouble are done all the same, and nothing else.
    int done = 0;
    const auto act = [&] {
      ++done;
      return absl::OkStatus();
    };
    int recorded = 0;  // there may be room for some that are smaller
    while (recorded < 2'000 && store->Audit(record, act).ok()) ++recorded;
    if (done != recorded) return "an action without a record was done";
    const absl::Status audited =
        store->Audit(record, act, QuotaStore::OnBadDisk::kActAnyway);
    if (!audited.ok() || done != recorded + 1) return "an action was refused";
    const auto state = store->Load();
    if (!state.ok()) return std::string(state.status().message());
    if (state->tenants.size() != static_cast<size_t>(i))
      return "a tenant was lost or half stored";
    return "";
  }
  return "the disk never filled";
}

TEST_F(QuotaStoreOnFullDisk, AFullDiskIsSaidAndLosesNothing) {
  const int code = InChild([this]() -> std::string {
    // A small disk of our own, gone with the child.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=512k") !=
            0) {
      return "skip";
    }
    auto store = QuotaStore::Open(directory_.path());
    if (!store.ok()) return std::string(store.status().message());
    int stored = 0;
    std::string problem = FillUntilRefused(store->get(), &stored);
    if (!problem.empty()) return problem;
    if (stored < 10) return "it filled at once";
    if ((*store)->CheckDisk().ok()) return "it passes for one with room";
    // A start on the full disk works, or says so; nothing is overwritten.
    store->reset();
    store = QuotaStore::Open(directory_.path());
    if (!store.ok()) return std::string(store.status().message());
    if ((*store)->Load()->tenants.size() != static_cast<size_t>(stored))
      return "lost at the start";
    // With room again it goes on.
    if (::mount("tmpfs", directory_.path().c_str(), "tmpfs", MS_REMOUNT,
                "size=4m") != 0)
      return "remount";
    TenantPolicy policy;
    policy.name = "later";
    return std::string(
        (*store)->PutTenant(policy, RecordOf("set_tenant", "later")).message());
  });
  if (code == 77) GTEST_SKIP() << "mounting a tmpfs needs root";
  EXPECT_EQ(code, 0);
}

TEST_F(QuotaStoreOnFullDisk, AStartOnAReadOnlyDiskIsRefusedAndLosesNothing) {
  const int code = InChild([this]() -> std::string {
    const char* const place = directory_.path().c_str();
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", place, "tmpfs", 0, "size=4m") != 0) {
      return "skip";
    }
    TenantPolicy policy;
    policy.name = "a";
    const absl::Status put =
        (*QuotaStore::Open(directory_.path()))
            ->PutTenant(policy, RecordOf("set_tenant", "a"));
    if (!put.ok()) return std::string(put.message());
    const auto remount = [&](unsigned long flags) {
      return ::mount("tmpfs", place, "tmpfs", MS_REMOUNT | flags, nullptr) == 0;
    };
    if (!remount(MS_RDONLY)) return "not read-only";
    const absl::Status opened = QuotaStore::Open(directory_.path()).status();
    if (opened.message().find("Read-only file system") == std::string::npos)
      return opened.ToString();
    if (!remount(0)) return "not writable again";
    const auto store = QuotaStore::Open(directory_.path());
    if (!store.ok()) return std::string(store.status().message());
    return (*store)->Load()->tenants.size() == 1 ? "" : "a tenant is lost";
  });
  if (code == 77) GTEST_SKIP() << "mounting a tmpfs needs root";
  EXPECT_EQ(code, 0);
}

TEST_F(QuotaStoreOnFullDisk, AFirstStartOnAFullDiskIsRefusedClearly) {
  const int code = InChild([this]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=64k") !=
            0) {
      return "skip";
    }
    std::ofstream(directory_ / "filler") << std::string(1 << 20, 'x');
    const auto store = QuotaStore::Open(directory_.path());
    if (store.ok()) return "it opened";
    if (store.status().code() != absl::StatusCode::kResourceExhausted)
      return store.status().ToString();
    std::filesystem::remove(directory_ / "filler");
    return std::string(QuotaStore::Open(directory_.path()).status().message());
  });
  if (code == 77) GTEST_SKIP() << "mounting a tmpfs needs root";
  EXPECT_EQ(code, 0);
}

TEST_F(QuotaStoreOnFullDisk, ALimitOnFileSizesIsLikeAFullDisk) {
  testing::internal::CaptureStderr();
  const int code = InChild([this]() -> std::string {
    ::signal(SIGXFSZ, SIG_IGN);
    auto store = QuotaStore::Open(directory_.path());
    if (!store.ok()) return std::string(store.status().message());
    const rlimit limit{.rlim_cur = 200'000, .rlim_max = RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "skip";
    int stored = 0;
    return FillUntilRefused(store->get(), &stored);
  });
  const std::string log = testing::internal::GetCapturedStderr();
  if (code == 77) GTEST_SKIP() << "no limit on file sizes here";
  EXPECT_EQ(code, 0) << log;
  EXPECT_THAT(log,
              HasSubstr("error state_not_written action=set_tenant subject=x"));
}

}  // namespace
}  // namespace gmb::broker
