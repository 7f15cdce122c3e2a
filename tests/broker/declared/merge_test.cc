#include "broker/declared/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "broker/declared/changes.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kAt = absl::FromUnixSeconds(1'795'184'546);
const Source kAnn{Source::Writer::kOperator, "ann"};

// A file of one tenant, whose other fields have their defaults.
FileState FileWith(const std::string& name, const Fields& fields) {
  FileState file;
  file.tenants[name] = FieldsOf(PolicyOf(name, fields));
  return file;
}

class Merge : public testing::Test {
 protected:
  FileMerge Apply(const FileState& file) {
    FileMerge merge = MergeFile(declared_, file, kAt);
    declared_ = merge.next;
    return merge;
  }
  void Set(const std::string& name, const std::string& field,
           const std::string& value) {
    const auto found = declared_.tenants.find(name);
    Fields fields = found == declared_.tenants.end() || found->second.deleted
                        ? FieldsOf(PolicyOf(name, {}))
                        : InForce(found->second);
    fields[field] = value;
    WriteFields(name, fields, kAnn, kAt, &declared_);
  }
  std::string Value(const std::string& name, const std::string& field) {
    const Written* const written = InForce(declared_.tenants[name], field);
    return written == nullptr ? "" : written->value;
  }
  Source SourceOf(const std::string& name, const std::string& field) {
    return InForce(declared_.tenants[name], field)->source;
  }

  Declared declared_;
};

TEST_F(Merge, AFieldThatChangedInTheFileClearsTheOverrideAndTheRestStays) {
  Apply(FileWith("a", {{"limit", "50%"}, {"weight", "2"}}));
  Set("a", "limit", "60%");
  Set("a", "weight", "3");
  Apply(FileWith("a", {{"limit", "70%"}, {"weight", "2"}}));
  EXPECT_EQ(Value("a", "limit"), "70%");
  EXPECT_EQ(SourceOf("a", "limit"), Source());
  EXPECT_EQ(Value("a", "weight"), "3");
  EXPECT_EQ(SourceOf("a", "weight"), kAnn);
}

// An override that was cleared does not come back with the old value.
TEST_F(Merge, AnOverrideThatWasClearedIsGone) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  Set("a", "limit", "60%");
  Apply(FileWith("a", {{"limit", "70%"}}));
  Apply(FileWith("a", {{"limit", "50%"}}));
  EXPECT_EQ(Value("a", "limit"), "50%");
  EXPECT_EQ(declared_.tenants["a"].fields["limit"].size(), 1U);
}

TEST_F(Merge, AFieldThatIsLeftOutOfTheFileHasItsDefaultAgain) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  Set("a", "limit", "60%");
  Apply(FileWith("a", {}));
  EXPECT_EQ(Value("a", "limit"), "100%");
}

TEST_F(Merge, ADeviceThatIsLeftOutOfTheFileHasTheTenantsValuesAgain) {
  Apply(FileWith("a", {{"devices/GPU-1/limit", "50%"}}));
  EXPECT_EQ(Value("a", "devices/GPU-1/limit"), "50%");
  Apply(FileWith("a", {}));
  EXPECT_EQ(Value("a", "devices/GPU-1/limit"), "");
}

TEST_F(Merge, TheFirstFileIsPutBeneathWhatOperatorsWrote) {
  Set("a", "limit", "60%");
  Set("a", "weight", "2");
  Apply(FileWith("a", {{"limit", "50%"}, {"weight", "2"}}));
  EXPECT_EQ(Value("a", "limit"), "60%");
  EXPECT_EQ(SourceOf("a", "limit"), kAnn);
  // An equal value is the file's.
  EXPECT_EQ(SourceOf("a", "weight"), Source());
  Apply(FileWith("a", {{"limit", "50%"}, {"weight", "5"}}));
  EXPECT_EQ(Value("a", "limit"), "60%");
  EXPECT_EQ(Value("a", "weight"), "5");
}

TEST_F(Merge, ATenantThatOperatorsMadeIsTheFilesOnceTheFileNamesIt) {
  Apply(FileState());
  Set("a", "limit", "60%");
  Apply(FileWith("a", {{"limit", "50%"}}));
  EXPECT_EQ(Value("a", "limit"), "50%");
  // But the file did not make it: it stays, with the values that it has.
  Set("a", "weight", "4");
  EXPECT_THAT(Apply(FileState()).leaving, IsEmpty());
  EXPECT_EQ(Value("a", "limit"), "50%");
  EXPECT_EQ(SourceOf("a", "limit"), kAnn);
  EXPECT_EQ(Value("a", "weight"), "4");
}

TEST_F(Merge, ATenantThatTheFileMadeLeavesWithIt) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  Set("a", "limit", "60%");
  EXPECT_THAT(Apply(FileState()).leaving, ElementsAre("a"));
  // As long as it has sessions it stays as it is, and is asked again.
  EXPECT_EQ(Value("a", "limit"), "60%");
  EXPECT_THAT(Apply(FileState()).leaving, ElementsAre("a"));
  // It comes back as if it had never been away.
  EXPECT_THAT(Apply(FileWith("a", {{"limit", "50%"}})).leaving, IsEmpty());
  EXPECT_EQ(Value("a", "limit"), "60%");
}

TEST_F(Merge, ADeletedTenantStaysDeletedWhileTheFileNamesIt) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  Delete("a", &declared_);
  Apply(FileWith("a", {{"limit", "70%"}}));
  EXPECT_TRUE(declared_.tenants["a"].deleted);
  EXPECT_THAT(Apply(FileState()).leaving, IsEmpty());
  EXPECT_FALSE(declared_.tenants.contains("a"));
  Apply(FileWith("a", {{"limit", "70%"}}));
  EXPECT_FALSE(declared_.tenants["a"].deleted);
  EXPECT_EQ(Value("a", "limit"), "70%");
}

TEST_F(Merge, OfADeletedTenantOnlyWhatTheFileWroteIsKept) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  Set("a", "limit", "60%");
  Delete("a", &declared_);
  EXPECT_EQ(Value("a", "limit"), "50%");
}

TEST_F(Merge, ATenantThatIsSetAfterItsDeletionHasWhatItWasSetTo) {
  Apply(FileWith("a", {{"limit", "50%"}, {"weight", "2"}}));
  Delete("a", &declared_);
  Set("a", "limit", "60%");
  EXPECT_EQ(Value("a", "limit"), "60%");
  EXPECT_EQ(Value("a", "weight"), "1");
  EXPECT_THAT(Apply(FileState()).leaving, IsEmpty());
}

TEST_F(Merge, PoolsAreMergedAsTenantsAre) {
  FileState file;
  file.pools["GPU-1"] = {{kPoolSize, "90%"}};
  Apply(file);
  WritePool("GPU-1", "50%", kAnn, kAt, &declared_);
  Apply(file);
  EXPECT_EQ(InForce(declared_.pools["GPU-1"], kPoolSize)->value, "50%");
  file.pools["GPU-1"] = {{kPoolSize, "80%"}};
  Apply(file);
  EXPECT_EQ(InForce(declared_.pools["GPU-1"], kPoolSize)->value, "80%");
}

TEST_F(Merge, AnOperatorsChangeWritesWhatDiffersAlone) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  Set("a", "weight", "2");
  EXPECT_EQ(SourceOf("a", "limit"), Source());
  const Declared before = declared_;
  Set("a", "weight", "2");
  EXPECT_EQ(declared_, before);
}

TEST_F(Merge, ADevicesFieldThatIsNotNamedIsNotWritten) {
  Apply(FileWith("a", {{"guarantee", "10%"}}));
  const auto set = [this](const std::string& field, const std::string& value) {
    Fields fields = InForce(declared_.tenants["a"]);
    fields["devices/GPU-1/limit"] = "50%";
    fields[field] = value;
    WriteFields("a", FieldsOf(PolicyOf("a", fields)), kAnn, kAt, &declared_,
                {field});
  };
  set("devices/GPU-1/limit", "50%");
  EXPECT_EQ(Value("a", "devices/GPU-1/limit"), "50%");
  EXPECT_EQ(Value("a", "devices/GPU-1/guarantee"), "");
  Apply(FileWith("a", {{"guarantee", "30%"}}));
  EXPECT_EQ(
      PolicyOf("a", InForce(declared_.tenants["a"])).QuotaOn("GPU-1").guarantee,
      quota::Amount::Fraction(0.3));
  // One that is named is, although it is as on every device.
  set("devices/GPU-1/weight", "1");
  EXPECT_EQ(Value("a", "devices/GPU-1/weight"), "1");
}

TEST_F(Merge, AnApplyTakesAwayWhatItWroteForADevice) {
  const Source web{Source::Writer::kApply, "web"};
  const Source other{Source::Writer::kApply, "other"};
  const auto apply = [&](const Source& source, const Fields& fields) {
    WriteFields("a", FieldsOf(PolicyOf("a", fields)), source, kAt, &declared_);
  };
  apply(web, {{"devices/GPU-1/limit", "25%"}});
  EXPECT_EQ(Value("a", "devices/GPU-1/limit"), "25%");
  apply(other, {});
  EXPECT_EQ(Value("a", "devices/GPU-1/limit"), "25%") << "another one's";
  apply(web, {});
  EXPECT_EQ(Value("a", "devices/GPU-1/limit"), "");
}

TEST_F(Merge, TheChangesAreSaidInWords) {
  Apply(FileWith("a", {{"limit", "50%"}}));
  const Declared before = declared_;
  FileState file = FileWith("a", {{"limit", "75%"}});
  file.tenants["b"] = FieldsOf(PolicyOf("b", {}));
  Apply(file);
  EXPECT_EQ(ChangesText(before, declared_),
            "a: limit 50% -> 75%; tenant b is new");
  EXPECT_EQ(ChangesText(declared_, before),
            "a: limit 75% -> 50%; tenant b is gone");
  EXPECT_EQ(ChangesText(before, before), "");
}

}  // namespace
}  // namespace gmb::broker
