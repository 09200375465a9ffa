// gpumemtrace: the program. Everything it can do is a verb (cli/verbs.h).

#include <csignal>

#include "cli/command.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  // `gpumemtrace cat run.gmt | head` must end quietly, also under a parent that ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  gmt::cli::Program program;
#define GMT_ADD_VERB(Name) gmt::cli::Add##Name(program);
  GMT_VERBS(GMT_ADD_VERB)
#undef GMT_ADD_VERB
  return program.Run(argc, argv);
}
