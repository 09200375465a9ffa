// gpumemtrace-collector: reads the session of one traced process and writes its recording.
//
// The preloaded library starts it with descriptors 3 to 5 (session/layout.h, kSessionFd ...) and no
// arguments. By hand:
//
//   gpumemtrace-collector --session FILE --output FILE
//
// Says nothing, anywhere, unless GPUMEMTRACE_COLLECTOR_LOG names a file to append to. Exit code: 0
// when the recording is complete, 1 when it is not, 2 for wrong usage.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/arguments.h"
#include "collector/collector.h"
#include "collector/log.h"
#include "collector/session_claim.h"

namespace gmt::collector {
namespace {

Collector* running = nullptr;

void StopOnSignal(int) {
  if (running != nullptr) running->RequestStop();
}

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = StopOnSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error like a full disk
}

absl::Status Errno(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Opens what the command line names over the descriptors that the shim would have left.
absl::Status OpenByHand(const Arguments& arguments, Descriptors* fds) {
  if (!arguments.session.empty()) {
    fds->session = open(arguments.session.c_str(), O_RDWR | O_CLOEXEC);
    if (fds->session < 0) return Errno(arguments.session);
    fds->target = -1;
  }
  if (!arguments.output.empty()) {
    fds->output = open(arguments.output.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fds->output < 0) return Errno(arguments.output);
  }
  return absl::OkStatus();
}

absl::Status Collect(const Arguments& arguments) {
  Descriptors fds;
  if (absl::Status status = OpenByHand(arguments, &fds); !status.ok()) return status;
  auto claim = SessionClaim::Take(fds.session);
  if (!claim.ok()) return claim.status();
  const session::SessionMap session = (*claim)->session();
  Target target(session.header(), fcntl(fds.target, F_GETFD) >= 0 ? fds.target : -1);
  SystemClock clock(target.pidfd());
  auto collector =
      Collector::Start({session, &target, &clock}, std::make_unique<OutputFile>(fds.output));
  if (!collector.ok()) return collector.status();
  running = collector->get();
  HandleSignals();
  Log(absl::StrCat("recording process ", target.pid()));
  absl::Status status = (*collector)->Run();
  if (status.ok() && (*collector)->TargetHasEnded()) status = (*claim)->RemoveName();
  running = nullptr;
  return status;
}

}  // namespace
}  // namespace gmt::collector

int main(int argc, char** argv) {
  using namespace gmt::collector;
  if (const char* path = std::getenv("GPUMEMTRACE_COLLECTOR_LOG")) LogTo(path);
  const auto arguments = ParseArguments(argc, argv);
  if (!arguments.ok()) {
    const std::string message =
        absl::StrCat("gpumemtrace-collector: ", arguments.status().message(), "\n");
    return write(STDERR_FILENO, message.data(), message.size()) < 0 ? 1 : 2;
  }
  const absl::Status status = Collect(*arguments);
  Log(status.ok() ? "the recording is complete" : std::string(status.message()));
  return status.ok() ? 0 : 1;
}
