#ifndef GMB_CLIENT_LEASE_IMPL_H_
#define GMB_CLIENT_LEASE_IMPL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "client/lease/mapped_lease.h"
#include "client/session/session.h"
#include "gmb/lease.h"

namespace gmb {

// Members are destroyed from the last to the first: the session goes last.
struct Lease::Impl {
  Impl(std::shared_ptr<internal::Session> its_session, uint64_t its_id,
       std::string its_device,
       std::shared_ptr<internal::MappedLease> its_mapping)
      : session(std::move(its_session)),
        id(its_id),
        device(std::move(its_device)),
        mapping(std::move(its_mapping)) {}

  std::shared_ptr<internal::Session> session;
  uint64_t id;
  std::string device;
  std::shared_ptr<internal::MappedLease> mapping;  // its session's too
};

}  // namespace gmb

#endif  // GMB_CLIENT_LEASE_IMPL_H_
