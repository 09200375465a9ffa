#include "preload/testing/traced_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "session/arena_reader.h"

namespace gmt::preload {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> FilesIn(const std::string& directory, const std::string& extension) {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, none)) {
    if (entry.path().extension() == extension) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<uint64_t> Addresses(const session::SessionMap& map, uint32_t id) {
  session::StackFrames stack;
  std::vector<uint64_t> addresses;
  if (!session::ReadStack(map, id, &stack)) return addresses;
  for (const session::StackFrame& frame : stack.frames) addresses.push_back(frame.address);
  return addresses;
}

}  // namespace

TracedProgram::TracedProgram() {
  std::string pattern = "/dev/shm/gmt-test.XXXXXX";
  directory_ = mkdtemp(pattern.data());
}

TracedProgram::~TracedProgram() {
  std::error_code none;
  fs::remove_all(directory_, none);
}

Outcome TracedProgram::Run(const std::vector<std::string>& command, const std::string& options) {
  return RunWith(command, {"LD_PRELOAD=" GMT_SHIM_PATH, "GPUMEMTRACE=exit_wait=0s," + options,
                           "GPUMEMTRACE_DIR=" + directory_, "GPUMEMTRACE_COLLECTOR=" + collector});
}

Outcome TracedProgram::RunPlain(const std::vector<std::string>& command) {
  return RunWith(command, {});
}

Outcome TracedProgram::RunWith(const std::vector<std::string>& command,
                               const std::vector<std::string>& environment) {
  const std::string out = directory_ + "/stdout", err = directory_ + "/stderr";
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(directory_.c_str()) != 0) _exit(125);
    dup2(open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
    std::vector<char*> argv, envp;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& pair : environment) envp.push_back(const_cast<char*>(pair.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    execve(argv[0], argv.data(), envp.data());
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), ReadFile(out),
          ReadFile(err)};
}

std::vector<std::string> TracedProgram::sessions() const { return FilesIn(directory_, ".session"); }
std::vector<std::string> TracedProgram::recordings() const { return FilesIn(directory_, ".gmt"); }

LeftSession TracedProgram::ReadSession() const {
  const std::vector<std::string> names = sessions();
  EXPECT_EQ(names.size(), 1u) << "sessions left behind";
  return names.empty() ? LeftSession() : ReadSession(names[0]);
}

LeftSession TracedProgram::ReadSession(const std::string& name) const {
  LeftSession left;
  const int fd = open((directory_ + "/" + name).c_str(), O_RDWR);
  session::OpenedSession opened = session::OpenSession(fd);
  close(fd);
  if (!opened.map) {
    ADD_FAILURE() << name << ": " << (opened.error == nullptr ? "not opened" : opened.error);
    return left;
  }
  session::RingReader reader = opened.map.ring_reader();
  session::Record record;
  uint64_t ticket;
  session::RingReader::Lost lost;
  while (true) {
    const session::RingReader::Outcome outcome = reader.Next(&record, &ticket, &lost);
    if (outcome == session::RingReader::Outcome::kEmpty) break;
    if (outcome == session::RingReader::Outcome::kPending) reader.SkipPending();
    if (outcome != session::RingReader::Outcome::kRecord) continue;
    left.records.push_back(record);
    const auto text = [&](uint64_t id) { return session::ReadText(opened.map, id); };
    if (record.kind == session::Kind::kDevice) {
      left.devices.push_back({record, text(record.value), text(record.stream >> 32),
                              text(record.stream & UINT32_MAX)});
    }
    left.stacks.push_back(Addresses(opened.map, record.stack));
    left.forward_stacks.push_back(Addresses(opened.map, record.forward_stack));
  }
  opened.map.live().Scan([&](session::Space space, uint64_t value, const session::LiveValue& live) {
    left.live.push_back({space, value, live});
  });
  const session::Control& control = opened.map.control();
  for (uint32_t i = 0; i < control.module_count.load(); ++i) {
    const auto& module = opened.map.section<session::ModuleRecord>(session::kModules)[i];
    left.modules.emplace_back(module.path, module.path_size);
  }
  for (uint32_t i = 0; i < session::kCounterCount; ++i) left.counters[i] = control.counters[i];
  left.losses = reader.losses();
  left.pid = opened.map.header().pid;
  if (control.exit_kind == session::ExitKind::kExited) left.exit_code = control.exit_code;
  session::CloseSession(&opened);
  return left;
}

}  // namespace gmt::preload
