#include "client/cli/commands/preloadable.h"

#include <elf.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/demo/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/as_ordinary_user.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using Kind = Preloadable::Kind;

class PreloadableTest : public testing::Test {
 protected:
  PreloadableTest() : dir_(*TempDir::Make()) {}

  std::string Write(const std::string& name, const std::string& bytes,
                    mode_t mode = 0755) const {
    const std::string path = absl::StrCat(dir_.path(), "/", name);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  // A program that names this dynamic linker, or none.
  static std::string Elf(const std::string& linker, uint16_t machine) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = machine;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    Elf64_Phdr second{};
    second.p_type = linker.empty() ? PT_NOTE : PT_INTERP;
    second.p_offset = sizeof(header) + 2 * sizeof(Elf64_Phdr);
    second.p_filesz = linker.size() + 1;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(reinterpret_cast<const char*>(&load), sizeof(load));
    bytes.append(reinterpret_cast<const char*>(&second), sizeof(second));
    return bytes + linker + std::string(1, 0);
  }
  static std::string Elf(const std::string& linker) {
    return Elf(linker, EM_X86_64);
  }

  TempDir dir_;
};

constexpr char kGlibc[] = "/lib64/ld-linux-x86-64.so.2";
constexpr char kMusl[] = "/lib/ld-musl-x86_64.so.1";

TEST_F(PreloadableTest, ProgramsOfGlibcTakeIt) {
  EXPECT_EQ(LookAt(Write("p", Elf(kGlibc))).kind, Kind::kYes);
  EXPECT_EQ(LookAt("sh").kind, Kind::kYes) << LookAt("sh").why;
}

TEST_F(PreloadableTest, ProgramsOfMuslBreak) {
  const Preloadable musl = LookAt(Write("p", Elf(kMusl)));
  EXPECT_EQ(musl.kind, Kind::kBreaks);
  EXPECT_THAT(musl.why, HasSubstr("p is linked to musl (/lib/ld-musl"));
  EXPECT_THAT(musl.why, HasSubstr("use an image with glibc"));
}

TEST_F(PreloadableTest, StaticAndForeignProgramsPassBy) {
  const Preloadable linked = LookAt(Write("p", Elf("")));
  EXPECT_EQ(linked.kind, Kind::kPassesBy);
  EXPECT_THAT(linked.why, HasSubstr("p is linked statically"));
  const Preloadable foreign = LookAt(Write("q", Elf(kGlibc, EM_AARCH64)));
  EXPECT_EQ(foreign.kind, Kind::kPassesBy);
  EXPECT_THAT(foreign.why, HasSubstr("another processor"));
}

// It is given the program, and loads what LD_PRELOAD names into that.
TEST_F(PreloadableTest, TheDynamicLinkerOfGlibcTakesIt) {
  if (!std::filesystem::exists(kGlibc)) GTEST_SKIP() << "no " << kGlibc;
  EXPECT_EQ(LookAt(kGlibc).kind, Kind::kYes) << LookAt(kGlibc).why;
  std::ifstream file(kGlibc, std::ios::binary);
  std::string renamed(std::istreambuf_iterator<char>(file), {});
  const std::string name = "ld-linux-x86-64.so.2";
  for (size_t at = 0; (at = renamed.find(name, at)) != std::string::npos;) {
    renamed.replace(at, name.size(), "xx-linux-x86-64.so.2");
  }
  EXPECT_EQ(LookAt(Write("ld-linux-x86-64.so.2", renamed)).kind,
            Kind::kPassesBy);
}

TEST_F(PreloadableTest, ProgramsWithTheirOwnersRightsPassBy) {
  const std::string program = Write("p", Elf(kGlibc));
  if (::getuid() == 0) {
    ASSERT_EQ(::chown(program.c_str(), 12345, 12345), 0);
  }
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  EXPECT_EQ(LookAt(program).kind,
            ::getuid() == 0 ? Kind::kPassesBy : Kind::kYes);
}

TEST_F(PreloadableTest, ProgramsWithCapabilitiesPassByForWhoIsNotRoot) {
  const std::string program = Write("p", Elf(kGlibc));
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const auto set = [&](uint32_t permitted) {
    const std::array<uint32_t, 5> words = {VFS_CAP_REVISION_2, permitted, 0, 0,
                                           0};
    return ::setxattr(program.c_str(), "security.capability", words.data(),
                      sizeof(words), 0) == 0;
  };
  if (!set(uint32_t{1} << CAP_NET_BIND_SERVICE))
    GTEST_SKIP() << "needs the right to give a file capabilities";
  const auto why = [&] { return LookAt(program).why; };
  EXPECT_THAT(AsOrdinaryUser(why), HasSubstr("has capabilities of its file"));
  EXPECT_EQ(why(), "");  // root's
  ASSERT_TRUE(set(0));
  EXPECT_EQ(AsOrdinaryUser(why), "");
}

TEST_F(PreloadableTest, OfAScriptTheInterpreterCounts) {
  const std::string musl = Write("musl", Elf(kMusl));
  const std::string script =
      Write("s", absl::StrCat("#! ", musl, " -x\nrun\n"));
  EXPECT_EQ(LookAt(script).kind, Kind::kBreaks);
  EXPECT_EQ(LookAt(Write("t", absl::StrCat("#!", script))).kind, Kind::kBreaks);
  EXPECT_EQ(
      LookAt(Write("e", absl::StrCat("#!/usr/bin/env -S A=b ", musl, " -x\n")))
          .kind,
      Kind::kBreaks);
  EXPECT_EQ(LookAt(Write("u", "#!/usr/bin/env sh\n")).kind, Kind::kYes);
}

// Starting them says what is wrong, if anything.
TEST_F(PreloadableTest, FilesOfAnyKindAreLookedAtWithoutHarm) {
  const std::string itself = absl::StrCat(dir_.path(), "/itself");
  Elf64_Phdr endless{};
  std::string wild = Elf(kMusl).substr(0, sizeof(Elf64_Ehdr));
  const uint64_t far = ~uint64_t{0} - 7;
  std::memcpy(wild.data() + offsetof(Elf64_Ehdr, e_phoff), &far, sizeof(far));
  endless.p_type = PT_INTERP;
  endless.p_filesz = ~uint64_t{0};
  std::string long_path = Elf(kMusl).substr(0, sizeof(Elf64_Ehdr));
  long_path.append(reinterpret_cast<const char*>(&endless), sizeof(endless));
  for (const std::string& bytes :
       {std::string(), std::string("#!"), std::string("#!\n"),
        absl::StrCat("#!", itself),
        std::string("\x7f"
                    "ELF"),
        std::string("#!/usr/bin/env"), std::string("text"), long_path}) {
    EXPECT_EQ(LookAt(Write("itself", bytes)).kind, Kind::kYes) << bytes;
  }
  EXPECT_EQ(LookAt(Write("wild", wild)).kind, Kind::kPassesBy);
  for (const std::string& none :
       {std::string(), std::string("/"), dir_.path(), std::string("/nowhere"),
        std::string("no-such-program"), std::string("/dev/null")}) {
    EXPECT_EQ(LookAt(none).kind, Kind::kYes) << none;
  }
}

}  // namespace
}  // namespace gmb::cli
