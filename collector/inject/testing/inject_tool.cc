// The injector as a command, for tests: injects a library into a process and prints the answer.
//
//   inject_tool --pid PID --library FILE [--function NAME] [--options TEXT] [--search MS]
//               [--call MS] [--end-at STAGE] [--place copy]
//
// --place copy: copies FILE to where the process sees it. --end-at: the tool kills itself (SIGKILL)
// at that stage and reports it on stderr. Prints "RESULT THREAD TRIES TEXT" and exits with 0, or
// prints the error on stderr and exits with 1.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "collector/inject/inject.h"
#include "collector/inject/library_place.h"
#include "collector/inject/target_info.h"

int main(int argc, char** argv) {
  gmt::inject::Request request;
  request.function = "probe_attach";
  int end_at = 0;
  bool copy = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--pid") request.pid = std::atoi(value);
    if (name == "--library") request.library = value;
    if (name == "--function") request.function = value;
    if (name == "--options") request.options = value;
    if (name == "--search") request.search = std::chrono::milliseconds(std::atoi(value));
    if (name == "--call") request.call = std::chrono::milliseconds(std::atoi(value));
    if (name == "--place") copy = true;
    if (name == "--end-at") end_at = std::atoi(value);
  }
  if (end_at != 0) {
    request.on_stage = [end_at](gmt::inject::Stage stage) {
      if (static_cast<int>(stage) != end_at) return;
      dprintf(2, "ended at stage %d\n", end_at);
      kill(getpid(), SIGKILL);
    };
  }
  std::unique_ptr<gmt::inject::LibraryPlace> place;
  if (copy) {
    auto found =
        gmt::inject::LibraryPlace::Find(gmt::inject::Inspect(request.pid), request.library);
    if (!found.ok()) {
      std::fprintf(stderr, "%s\n", std::string(found.status().message()).c_str());
      return 1;
    }
    place = *std::move(found);
    request.library = place->path();
  }
  const auto reply = gmt::inject::Inject(request);
  if (!reply.ok()) {
    std::fprintf(stderr, "%s\n", std::string(reply.status().message()).c_str());
    return 1;
  }
  std::printf("%d %d %d %s\n", reply->result, reply->thread, reply->tries, reply->text.c_str());
  return 0;
}
