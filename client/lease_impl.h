#ifndef GMB_CLIENT_LEASE_IMPL_H_
#define GMB_CLIENT_LEASE_IMPL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "client/session.h"
#include "device/mapper.h"
#include "gmb/lease.h"

namespace gmb {

// A mapped lease. Members are destroyed from the last to the first: the range
// goes before its mapper, and the session last.
struct Lease::Impl {
  Impl(std::shared_ptr<internal::Session> its_session,
       std::shared_ptr<device::Mapper> its_mapper, uint64_t its_id,
       std::string its_device, std::unique_ptr<device::MappedRange> its_range)
      : session(std::move(its_session)),
        mapper(std::move(its_mapper)),
        id(its_id),
        device(std::move(its_device)),
        range(std::move(its_range)) {}

  std::shared_ptr<internal::Session> session;
  std::shared_ptr<device::Mapper> mapper;
  uint64_t id;
  std::string device;
  std::unique_ptr<device::MappedRange> range;
};

}  // namespace gmb

#endif  // GMB_CLIENT_LEASE_IMPL_H_
