// `gmb run`: a program that uses gmb itself, as gmb.torch does, has one session,
// one gate and one thread that parks. The Python package looks for these two,
// and works by the client library and the session that are here.
#include "client/preload/one_session.h"

#include <dlfcn.h>
#include <link.h>

#include "client/preload/broker_library.h"
#include "client/preload/driver.h"
#include "client/preload/process_life.h"
#include "client/preload/serve.h"

const char* gmb_run_library() {
  const gmb::preload::BrokerLibrary* const library =
      gmb::preload::BrokerLibrary::Get();
  if (library == nullptr) return nullptr;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(library->gmb_client_connect), &info,
              reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return nullptr;
  }
  return map->l_name;
}

gmb_error* gmb_run_join(const gmb_client_options* options,
                        gmb_client** joined) {
  *joined = nullptr;
  const gmb::preload::Driver* const driver = gmb::preload::Driver::Get();
  if (driver == nullptr || gmb::preload::InForkedChild() ||
      gmb::preload::Exiting()) {
    return nullptr;
  }
  return gmb::preload::TheMemory(*driver).broker().Join(*options, joined);
}
