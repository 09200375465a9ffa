// gpumemtrace: the program. Everything that it does is a verb (cli/verbs.h).

#include <unistd.h>

#include <csignal>
#include <new>

#include "cli/command.h"
#include "cli/verbs.h"

namespace {

// Abseil and protobuf containers are not exception safe when an allocation fails: continuing would
// mean working with half-modified data. So the program ends instead.
[[noreturn]] void EndOutOfMemory() {
  constexpr char kWords[] =
      "gpumemtrace: out of memory: reading a recording takes about 30 bytes for each of its "
      "events\n";
  (void)!write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(1);
}

// Called before the constructors of static objects, because protobuf's allocate. (101 is the first
// priority that is not reserved.)
[[gnu::constructor(101)]] void HandleOutOfMemory() { std::set_new_handler(EndOutOfMemory); }

}  // namespace

int main(int argc, char** argv) {
  // `gpumemtrace cat run.gmt | head` must end quietly even if the parent process ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  gmt::cli::Program program;
#define GMT_ADD_VERB(Name) gmt::cli::Add##Name(program);
  GMT_VERBS(GMT_ADD_VERB)
#undef GMT_ADD_VERB
  return program.Run(argc, argv);
}
