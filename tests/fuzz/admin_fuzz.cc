// Operators' calls with anything in their fields, through gRPC, to a broker of
// host memory: what is refused changes nothing that is stored, and what is
// stored is in force.
#include <chrono>
#include <string>
#include <utility>

#include "broker/config/config_file.h"
#include "broker/declared/declared.h"
#include "gmb/v1/admin.pb.h"
#include "tests/broker/server/admin_fixture.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using broker::Declared;
using broker::TenantPolicy;
using Stub = v1::Admin::Stub;

constexpr std::chrono::seconds kLongestCall{60};

// One broker, for all inputs. Its tenants are gone when the next one comes.
class AdminWorld final : public broker::AdminFixture {
 public:
  // In memory: each change waits for the disk otherwise.
  AdminWorld() : AdminFixture("/dev/shm") { SetUp(); }
  void TestBody() override {}
  [[nodiscard]] broker::ReadTenants Reader() override {
    return [](const std::string& yaml, const std::string& name)
               -> absl::StatusOr<std::vector<TenantPolicy>> {
      broker::BrokerConfig config;
      const absl::Status read = broker::ParseTenants(yaml, name, &config);
      if (!read.ok()) return read;
      std::vector<TenantPolicy> policies;
      for (const auto& tenant : config.tenants)
        policies.push_back(tenant.policy);
      return policies;
    };
  }

  void StartAnew() {
    for (const TenantPolicy& tenant : InForce(Stored()).tenants) {
      v1::DeleteTenantRequest request;
      request.set_name(tenant.name);
      v1::DeleteTenantResponse response;
      Require(Ask(&Stub::DeleteTenant, request, &response).ok(),
              "a tenant without sessions can be deleted");
    }
    v1::DrainPoolRequest drain;
    v1::DrainPoolResponse drained;
    Require(Ask(&Stub::DrainPool, drain, &drained).ok(), "a pool serves again");
  }

  void Step(Input* input) {
    const size_t method = input->Below(18);
    const std::string bytes = input->Text();
    switch (method) {
      case 0:
        return Say<v1::ResetTenantRequest>(&Stub::ResetTenant, bytes);
      case 1:
        return Say<v1::DeleteTenantRequest>(&Stub::DeleteTenant, bytes);
      case 2:
        return Say<v1::ApplyRequest>(&Stub::Apply, bytes);
      case 3:
        return Say<v1::ResizePoolRequest>(&Stub::ResizePool, bytes);
      case 4:
        return Say<v1::DrainPoolRequest>(&Stub::DrainPool, bytes);
      case 5:
        return Say<v1::ReclaimRequest>(&Stub::Reclaim, bytes);
      case 6:
        return Say<v1::CloseSessionRequest>(&Stub::CloseSession, bytes);
      case 7:
        return Say<v1::DropLeaseRequest>(&Stub::DropLease, bytes);
      case 8:
        return Say<v1::GetTenantRequest>(&Stub::GetTenant, bytes);
      case 9:
        return Say<v1::ListTenantsRequest>(&Stub::ListTenants, bytes);
      case 10:
        return Say<v1::ListSessionsRequest>(&Stub::ListSessions, bytes);
      case 11:
        return Say<v1::ListLeasesRequest>(&Stub::ListLeases, bytes);
      case 12:
        return Say<v1::ExplainRequest>(&Stub::Explain, bytes);
      case 13:
        return Say<v1::ListAuditRequest>(&Stub::ListAudit, bytes);
      case 14:
        return Say<v1::ListUsageRequest>(&Stub::ListUsage, bytes);
      default:
        return Say<v1::SetTenantRequest>(&Stub::SetTenant, bytes);
    }
  }

  // The broker goes by what is declared.
  void CheckInForce() {
    for (const TenantPolicy& stored : InForce(Stored()).tenants) {
      const auto is = core.GetPolicy(stored.name);
      Require(is.ok(), "a tenant that is stored is there");
      Require(is->quota == stored.quota && is->reclaim == stored.reclaim &&
                  is->max_handles == stored.max_handles &&
                  is->max_sessions == stored.max_sessions &&
                  is->device_quotas == stored.device_quotas,
              "what is stored of a tenant is in force");
      Require(core.CheckTenant(stored).ok(), "what is in force is valid");
    }
    const v1::GetStatusResponse status = core.Status();
    for (const v1::PoolStatus& pool : status.pools())
      Require(pool.granted_bytes() == 0, "nobody was granted anything");
  }

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                        Response*);

  Declared Stored() { return store_->GetDeclared(); }
  // A value that is set for a time ends while others are looked at.
  static bool EndsByItself(const Declared& declared) {
    for (const auto& [name, subject] : declared.tenants) {
      for (const auto& [field, writes] : subject.fields) {
        for (const broker::Written& written : writes)
          if (written.until.has_value()) return true;
      }
    }
    return false;
  }

  template <typename Request, typename Response>
  absl::Status Ask(Method<Request, Response> method, const Request& request,
                   Response* response) {
    grpc::ClientContext context;
    context.AddMetadata("gmb-session-bin", token_);
    context.set_deadline(std::chrono::system_clock::now() + kLongestCall);
    return proto::FromGrpcStatus(
        (stub_.get()->*method)(&context, request, response));
  }
  template <typename Request, typename Response>
  void Say(Method<Request, Response> method, const std::string& bytes) {
    Request request;
    if (!request.ParseFromString(bytes)) return;
    const Declared before = Stored();
    Response response;
    const absl::Status done = Ask(method, request, &response);
    Require(!absl::IsDeadlineExceeded(done) && !absl::IsUnknown(done) &&
                !absl::IsUnavailable(done),
            "a call is answered");
    Require(done.ok() || !done.message().empty(), "a refusal says why");
    const Declared after = Stored();
    if (EndsByItself(before) || EndsByItself(after)) return;
    Require(done.ok() || after == before, "what is refused changes nothing");
  }
};

}  // namespace

void FuzzAdmin(Bytes bytes) {
  static AdminWorld world;
  world.StartAnew();
  Input input(bytes);
  for (int calls = 0; calls < 16 && !input.empty(); ++calls) {
    world.Step(&input);
    world.CheckInForce();
  }
}

}  // namespace gmb::fuzz
