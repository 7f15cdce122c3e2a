#ifndef GMB_BROKER_MACHINE_ORIGIN_H_
#define GMB_BROKER_MACHINE_ORIGIN_H_

namespace gmb::broker {

// By which socket a peer came; the socket's place is what it may be.
enum class Origin {
  kTenantDirectory,  // DIR/tenants/<name>/handle.sock: that tenant
  kShared,           // DIR/handle.sock: by token, uid, or the default tenant
  kAdmin,            // DIR/admin/handle.sock: an operator
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ORIGIN_H_
