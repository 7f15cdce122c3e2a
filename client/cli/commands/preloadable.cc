// `gmb run`: looks at the program before it becomes it. The dynamic linker says
// nothing of a library that it does not load, and little of one that it cannot.
#include "client/cli/commands/preloadable.h"

#include <elf.h>
#include <endian.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"

namespace gmb::cli {
namespace {

constexpr int kMostInterpreters = 4;  // of scripts of scripts, as the kernel
constexpr size_t kLongestLine = 256;  // of a script's first one, likewise
constexpr size_t kLongestPath = 4096;
constexpr uint16_t kMostHeaders = 1024;

// As many bytes as there are; of a file that anybody may have written.
std::string ReadAt(int fd, uint64_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t got =
      ::pread(fd, text.data(), bytes, static_cast<off_t>(offset));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

template <typename Header>
std::optional<Header> ReadHeader(int fd, uint64_t offset) {
  const std::string bytes = ReadAt(fd, offset, sizeof(Header));
  if (bytes.size() != sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::string Find(const std::string& program) {
  if (absl::StrContains(program, '/')) return program;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path == nullptr ? "/bin:/usr/bin" : path, ':')) {
    const std::string file =
        absl::StrCat(folder.empty() ? "." : folder, "/", program);
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

// "#!/usr/bin/env python3" is about python3.
std::string InterpreterOf(const std::string& line) {
  std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty()) return "";
  if (!absl::EndsWith(words[0], "/env")) return words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i][0] != '-' && !absl::StrContains(words[i], '='))
      return words[i];
  }
  return words[0];
}

std::vector<Elf64_Phdr> SegmentsOf(int fd, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return segments;
  const uint16_t count = std::min(header.e_phnum, kMostHeaders);
  for (uint16_t i = 0; i < count; ++i) {
    const auto segment = ReadHeader<Elf64_Phdr>(
        fd, header.e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
    if (!segment.has_value()) break;
    segments.push_back(*segment);
  }
  return segments;
}

// The dynamic linker that the program names; nothing when it names none.
std::optional<std::string> LinkerOf(int fd, const Elf64_Ehdr& header) {
  for (const Elf64_Phdr& segment : SegmentsOf(fd, header)) {
    if (segment.p_type != PT_INTERP) continue;
    const std::string path =
        ReadAt(fd, segment.p_offset,
               std::min<uint64_t>(segment.p_filesz, kLongestPath));
    return path.substr(0, path.find('\0'));
  }
  return std::nullopt;
}

// The name that the library gives itself; empty when it has none.
std::string NameOf(int fd, const std::vector<Elf64_Phdr>& segments) {
  uint64_t strings = 0;
  std::optional<uint64_t> name;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const uint64_t count =
        std::min<uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), kMostHeaders);
    for (uint64_t i = 0; i < count; ++i) {
      const auto entry =
          ReadHeader<Elf64_Dyn>(fd, segment.p_offset + i * sizeof(Elf64_Dyn));
      if (!entry.has_value() || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
    }
  }
  if (!name.has_value()) return "";
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || strings < segment.p_vaddr ||
        strings - segment.p_vaddr >= segment.p_filesz) {
      continue;
    }
    const std::string text =
        ReadAt(fd, segment.p_offset + (strings - segment.p_vaddr) + *name,
               kLongestLine);
    return text.substr(0, text.find('\0'));
  }
  return "";
}

// glibc's dynamic linker, called as a program: it heeds LD_PRELOAD for the
// program that it is given, which has to be of the same C library.
bool IsLinkerOfGlibc(int fd, const Elf64_Ehdr& header) {
  return header.e_type == ET_DYN &&
         absl::StartsWith(NameOf(fd, SegmentsOf(fd, header)), "ld-linux");
}

// The dynamic linker forgets LD_PRELOAD then, also for what the program starts.
bool ChangesUser(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  return ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::geteuid()) ||
         ((info.st_mode & S_ISGID) != 0 && info.st_gid != ::getegid());
}

// Likewise, for who is not root.
bool GainsCapabilities(int fd) {
  if (::getuid() == 0) return false;
  std::array<uint32_t, XATTR_CAPS_SZ_3 / sizeof(uint32_t)> words{};
  const ssize_t bytes =
      ::fgetxattr(fd, "security.capability", words.data(), sizeof(words));
  if (bytes < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) return false;
  // Each set is two words: what is permitted, and what may be inherited.
  return (le32toh(words[0]) & VFS_CAP_FLAGS_EFFECTIVE) != 0 || words[1] != 0 ||
         words[3] != 0;
}

Preloadable PassesBy(const std::string& program, const std::string& why) {
  return {
      Preloadable::Kind::kPassesBy,
      absl::StrCat(program, " ", why, ", so its device memory is not leased")};
}

Preloadable LookAtElf(int fd, const std::string& program) {
  const auto header = ReadHeader<Elf64_Ehdr>(fd, 0);
  if (!header.has_value()) return {};
  if (header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_X86_64) {
    return PassesBy(program, "is for another processor than x86-64");
  }
  if (ChangesUser(fd)) {
    return PassesBy(program,
                    "runs with the rights of its owner, and the dynamic linker "
                    "loads nothing more into it and what it starts");
  }
  if (GainsCapabilities(fd)) {
    return PassesBy(program,
                    "has capabilities of its file (getcap shows them), and the "
                    "dynamic linker loads nothing more into it and what it "
                    "starts");
  }
  const std::optional<std::string> linker = LinkerOf(fd, *header);
  if (!linker.has_value()) {
    if (IsLinkerOfGlibc(fd, *header)) return {};
    return PassesBy(program, "is linked statically and loads no libraries");
  }
  if (!absl::StrContains(*linker, "ld-musl")) return {};
  return {Preloadable::Kind::kBreaks,
          absl::StrCat(program, " is linked to musl (", *linker,
                       "), and the library that `gmb run` loads into programs "
                       "to glibc: use an image with glibc, such as Debian's, "
                       "Ubuntu's or NVIDIA's")};
}

}  // namespace

Preloadable LookAt(const std::string& program) {
  std::string file = Find(program);
  for (int i = 0; i <= kMostInterpreters; ++i) {
    const base::UniqueFd fd(
        ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.get() < 0) return {};  // starting it will say so
    const std::string start = ReadAt(fd.get(), 0, kLongestLine);
    if (absl::StartsWith(start, ELFMAG)) return LookAtElf(fd.get(), file);
    if (!absl::StartsWith(start, "#!")) return {};
    file = Find(InterpreterOf(start.substr(2, start.find('\n') - 2)));
  }
  return {};
}

}  // namespace gmb::cli
