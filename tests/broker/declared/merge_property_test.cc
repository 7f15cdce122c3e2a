// Random edits of the file, changes by operators and deletions, beside a model
// that knows only what each field's last writer said.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

const absl::Time kThen = absl::UnixEpoch();

struct ModelTenant {
  bool by_file = false;  // made by it
  bool deleted = false;
  bool in_file = false;
  Fields last;   // of the file
  Fields value;  // in force
};

class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {
    Apply();  // the first: over nothing
  }

  void Step() {
    switch (random_() % 4) {
      case 0:
        EditFile();
        break;
      case 1:
        Apply();
        break;
      case 2:
        Set();
        break;
      default:
        if (random_() % 4 == 0) DeleteOne();
        break;
    }
    Compare();
  }

 private:
  std::string Name() { return std::string(1, "abc"[random_() % 3]); }
  std::string Field() {
    static const char* const kFields[] = {"limit", "weight",
                                          "devices/GPU-1/limit"};
    return kFields[random_() % 3];
  }
  std::string Value(const std::string& field) {
    const std::string number = std::to_string(1 + random_() % 4);
    return field == "weight" ? number : number + "0%";
  }

  void EditFile() {
    const std::string name = Name();
    if (random_() % 4 == 0) {
      file_.tenants.erase(name);
      return;
    }
    Fields& fields =
        file_.tenants.try_emplace(name, FieldsOf(PolicyOf(name, {})))
            .first->second;
    const std::string field = Field();
    if (field[0] == 'd' && random_() % 3 == 0) {
      fields.erase(field);
    } else {
      fields[field] = Value(field);
    }
  }

  void Apply() {
    const FileMerge merge = MergeFile(declared_, file_, kThen);
    // Once more changes nothing.
    const FileMerge again = MergeFile(merge.next, file_, kThen);
    EXPECT_EQ(again.next, merge.next);
    EXPECT_EQ(again.leaving, merge.leaving);
    declared_ = merge.next;
    std::vector<std::string> leaving;
    for (auto it = model_.begin(); it != model_.end();) {
      auto& [name, tenant] = *it;
      if (file_.tenants.contains(name)) {
        ++it;
        continue;
      }
      if (tenant.deleted) {
        it = model_.erase(it);
        continue;
      }
      if (tenant.by_file) {
        leaving.push_back(name);
      } else {
        tenant.last.clear();
      }
      tenant.in_file = false;
      ++it;
    }
    for (const auto& [name, fields] : file_.tenants) ApplyTo(name, fields);
    EXPECT_EQ(merge.leaving, leaving);
    // Some of those that leave have no sessions.
    for (const std::string& name : leaving) {
      if (random_() % 2 == 0) continue;
      Forget(name, &declared_);
      model_.erase(name);
    }
  }

  void ApplyTo(const std::string& name, const Fields& fields) {
    auto [it, is_new] = model_.try_emplace(name);
    if (it->second.deleted && !it->second.in_file) {
      it->second = ModelTenant();
      is_new = true;
    }
    ModelTenant& tenant = it->second;
    if (is_new) tenant.by_file = true;
    for (const char* const field : {"limit", "weight", "devices/GPU-1/limit"}) {
      const auto now = fields.find(field);
      const auto last = tenant.last.find(field);
      const bool same = now == fields.end() ? last == tenant.last.end()
                                            : last != tenant.last.end() &&
                                                  last->second == now->second;
      if (same) continue;
      if (now == fields.end()) {
        tenant.value.erase(field);
      } else {
        tenant.value[field] = now->second;
      }
    }
    tenant.last = fields;
    tenant.in_file = true;
  }

  void Set() {
    const std::string name = Name();
    const std::string field = Field();
    const auto known = model_.find(name);
    const bool is_new = known == model_.end() || known->second.deleted;
    Fields fields = is_new ? FieldsOf(PolicyOf(name, {}))
                           : InForce(declared_.tenants[name]);
    fields[field] = Value(field);
    WriteFields(name, fields, {Source::Writer::kOperator, "ann"}, kThen,
                &declared_, {field});
    ModelTenant& tenant = model_[name];
    if (is_new) {
      tenant.by_file = false;
      // An operator cannot unsay what the file says of a device.
      const auto device = tenant.last.find("devices/GPU-1/limit");
      if (device != tenant.last.end()) fields.insert(*device);
    }
    tenant.deleted = false;
    tenant.value = fields;
  }

  void DeleteOne() {
    const std::string name = Name();
    const auto known = model_.find(name);
    if (known == model_.end() || known->second.deleted) return;
    Delete(name, &declared_);
    known->second.deleted = true;
  }

  void Compare() const {
    ASSERT_EQ(declared_.tenants.size(), model_.size());
    for (const auto& [name, tenant] : model_) {
      const Subject& subject = declared_.tenants.at(name);
      ASSERT_EQ(subject.deleted, tenant.deleted) << name;
      if (tenant.deleted) continue;
      for (const char* const field :
           {"limit", "weight", "devices/GPU-1/limit"}) {
        const Written* const written = InForce(subject, field);
        const auto value = tenant.value.find(field);
        ASSERT_EQ(written == nullptr ? "" : written->value,
                  value == tenant.value.end() ? "" : value->second)
            << name << " " << field;
      }
    }
  }

  std::mt19937_64 random_;
  FileState file_;
  Declared declared_;
  std::map<std::string, ModelTenant> model_;
};

TEST(MergeProperty, TheLastWriterOfAFieldWinsAndAFileWritesWhatChangedInIt) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomRun run(seed);
    for (int step = 0; step < 100; ++step) {
      run.Step();
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gmb::broker
