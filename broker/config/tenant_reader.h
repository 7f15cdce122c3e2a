#ifndef GMB_BROKER_CONFIG_TENANT_READER_H_
#define GMB_BROKER_CONFIG_TENANT_READER_H_

#include <map>
#include <set>
#include <string>
#include <utility>

#include "broker/config/broker_config.h"
#include "broker/config/yaml_map.h"

namespace gmb::broker {

// Reads the file's tenants, and what must differ between them.
class TenantReader {
 public:
  // Token files are relative to `directory`.
  TenantReader(std::string directory, ConfigErrors* errors,
               BrokerConfig* config)
      : directory_(std::move(directory)), errors_(errors), config_(config) {}
  // Refuses what is the configuration file's alone: token files and sockets.
  struct PoliciesAlone {};
  TenantReader(PoliciesAlone, ConfigErrors* errors, BrokerConfig* config)
      : policies_alone_(true), errors_(errors), config_(config) {}

  void Read(const YamlValue& tenants);

 private:
  void ReadTenant(const YamlValue& value);
  void ReadQuota(YamlMap* map, quota::TenantQuota* quota);
  void ReadReclaim(YamlMap* map, ReclaimPolicy* reclaim);
  void ReadDeviceQuotas(const YamlValue& value, TenantPolicy* policy);
  void ReadUids(const YamlValue& value, TenantPolicy* policy);
  void RefuseOfFile(YamlMap* map);
  void ReadToken(YamlMap* map, TenantConfig* tenant);
  void ReadSocket(const YamlValue& value, SocketAccess* access);

  const std::string directory_;
  const bool policies_alone_ = false;
  ConfigErrors* const errors_;
  BrokerConfig* const config_;
  std::set<std::string> names_;
  std::map<uint32_t, std::string> tenant_of_uid_;
  std::set<std::string> tokens_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_TENANT_READER_H_
