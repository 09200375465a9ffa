// gpumemtrace: the program. Everything it can do is a verb (cli/verbs.h).

#include <unistd.h>

#include <csignal>
#include <new>

#include "cli/command.h"
#include "cli/verbs.h"

namespace {

// Containers of abseil and protobuf do not stand an allocation that fails: whoever goes on afterwards
// works with what is half changed.
[[noreturn]] void EndForLackOfMemory() {
  constexpr char kWords[] =
      "gpumemtrace: there is not enough memory: a recording takes about 40 bytes for each of its "
      "events\n";
  (void)!write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  // `gpumemtrace cat run.gmt | head` must end quietly, also under a parent that ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  std::set_new_handler(EndForLackOfMemory);
  gmt::cli::Program program;
#define GMT_ADD_VERB(Name) gmt::cli::Add##Name(program);
  GMT_VERBS(GMT_ADD_VERB)
#undef GMT_ADD_VERB
  return program.Run(argc, argv);
}
