#include "tests/component/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "tests/component/await.h"
#include "tests/end_with_parent.h"

namespace gmb::component {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

// Everything but where a broker is: each test says that itself.
std::vector<char*> Environment() {
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, "GMB_SOCKET_DIR="))
      environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  return environment;
}

int OpenOutput(const std::string& path) {
  return ::open(path.c_str(),
                O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

Program::Program(const std::string& directory, const std::string& name,
                 const std::vector<std::string>& argv)
    : out_(directory + "/" + name + ".out"),
      err_(directory + "/" + name + ".err") {
  std::vector<std::string> words = argv;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment = Environment();
  const int out = OpenOutput(out_);
  const int err = OpenOutput(err_);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    EndWithParent(parent);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::execvpe(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  ::close(out);
  ::close(err);
}

Program::~Program() {
  if (!IsRunning()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::Signal(int number) const {
  if (exit_code_ < 0) ::kill(pid_, number);
}

bool Program::IsRunning() {
  if (exit_code_ >= 0 || pid_ <= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

int Program::AwaitExit() {
  if (!Await([this] { return !IsRunning(); })) return -1;
  return exit_code_;
}

std::string Program::Out() const { return ReadFile(out_); }
std::string Program::Err() const { return ReadFile(err_); }

bool Program::AwaitOut(const std::string& text) { return AwaitIn(out_, text); }
bool Program::AwaitErr(const std::string& text) { return AwaitIn(err_, text); }

bool Program::AwaitIn(const std::string& file, const std::string& text) {
  bool found = false;
  (void)Await([&] {
    const bool running = IsRunning();
    found = absl::StrContains(ReadFile(file), text);
    return found || !running;
  });
  return found;
}

std::string Program::SanitizerReport() const {
  const std::string said = Err();
  const bool reported = absl::StrContains(said, "Sanitizer") ||
                        absl::StrContains(said, "runtime error:");
  return reported ? said : "";
}

}  // namespace gmb::component
