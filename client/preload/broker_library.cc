// `gmb run`: opens libgmb.so in a scope of its own.
#include "client/preload/broker_library.h"

#include <dlfcn.h>
#include <link.h>

#include <fstream>
#include <string>

#include "client/preload/find_symbol.h"
#include "client/preload/own_libraries.h"
#include "client/preload/process_life.h"
#include "client/preload/say.h"

#define GMB_TEXT_OF(x) #x
#define GMB_TEXT(x) GMB_TEXT_OF(x)

namespace gmb::preload {
namespace {

constexpr char kFile[] = "libgmb.so." GMB_TEXT(GMB_ABI_MAJOR);
// An installed copy that shares nothing with a gRPC of the program's
// (cmake/install.cmake), and the names of all its libraries.
constexpr char kOwnFolder[] = "gmb/run/";
constexpr char kOwnCopy[] = "libgmb-client.so." GMB_TEXT(GMB_ABI_MAJOR);
constexpr char kOwnOrder[] = "order";

// The client library brings gRPC, protobuf and Abseil, of which the program may
// have others. RTLD_LOCAL hides ours from the program, RTLD_DEEPBIND the
// program's from ours, and this library's dlsym from the client library too.
constexpr int kHow = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;

// With the slash at its end; empty where it is not known.
std::string FolderOfThisLibrary() {
  Dl_info here{};
  if (dladdr(kFile, &here) == 0 || here.dli_fname == nullptr) return "";
  const std::string path = here.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

void SayWhyNot(const char* what) {
  const char* const why = dlerror();
  Say(std::string(what) + (why == nullptr ? kFile : why));
}

// RTLD_DEEPBIND is good for the library that is opened alone: the others that it
// brings along would be bound to the program's first. So each is opened by
// itself, those first that need no other. Null: there is no such copy, or not a
// whole one, which is said.
void* OpenOwnCopy(const std::string& beside, OwnLibraries* own) {
  if (beside.empty()) return nullptr;  // not what is in the working directory
  const std::string folder = beside + kOwnFolder;
  std::ifstream order(folder + kOwnOrder);
  void* last = nullptr;
  for (std::string name; std::getline(order, name);) {
    void* const library = dlopen((folder + name).c_str(), kHow);
    if (library == nullptr) {
      SayWhyNot("cannot load its own copy of the client library: ");
      return nullptr;
    }
    own->Add(library);
    if (name == kOwnCopy) last = library;
  }
  return last;
}

// A program may have C++'s run time within itself, and export it. The shared one
// uses that in part then, and std::call_once crashes between the two. A copy of
// our own has a run time of its own.
bool ExportsARunTime() {
  const void* const proxy = RealSymbol(RTLD_DEFAULT, "__once_proxy");
  Dl_info where{};
  void* found = nullptr;
  if (proxy == nullptr || dladdr1(proxy, &where, &found, RTLD_DL_SYMENT) == 0 ||
      found == nullptr) {
    return false;
  }
  // A program without PIE has a place by which it calls the shared one's.
  const bool defines =
      static_cast<const ElfW(Sym)*>(found)->st_shndx != SHN_UNDEF;
  return defines && where.dli_fname != nullptr &&
         std::string(where.dli_fname).find("libstdc++.so") == std::string::npos;
}

void* Open() {
  OwnLibraries own;
  const std::string beside = FolderOfThisLibrary();
  void* library = OpenOwnCopy(beside, &own);
  if (library == nullptr && ExportsARunTime()) {
    SayAlways(
        "cannot load the client library: this program exports a C++ run time "
        "of its own, with which only gmb's installed copies (lib/gmb/run) get "
        "along: a package has them, and make install where patchelf is");
    return nullptr;
  }
  if (library == nullptr) library = dlopen((beside + kFile).c_str(), kHow);
  if (library == nullptr) library = dlopen(kFile, kHow);
  if (library == nullptr) {
    SayWhyNot("cannot load the client library: ");
  } else {
    own.Add(library);
  }
  own.Publish();
  return library;
}

const BrokerLibrary* LoadLibrary() {
  const RealSymbolsHere real;
  void* const library = Open();
  if (library == nullptr) return nullptr;
  auto* const functions = new BrokerLibrary;  // lives as long as the process
  bool complete = true;
#define GMB_LIBRARY_LOAD(name)                                         \
  functions->name =                                                    \
      reinterpret_cast<decltype(&::name)>(RealSymbol(library, #name)); \
  complete = complete && functions->name != nullptr;
  GMB_LIBRARY_FUNCTIONS(GMB_LIBRARY_LOAD)
#undef GMB_LIBRARY_LOAD
  NoteExitFromNowOn();
  if (!complete) Say(std::string(kFile) + " is older than this library");
  return complete ? functions : nullptr;
}

}  // namespace

const BrokerLibrary* BrokerLibrary::Get() {
  static const BrokerLibrary* const kLibrary = LoadLibrary();
  return kLibrary;
}

}  // namespace gmb::preload
