#include "preload/process/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "session/testing/session_fixture.h"

namespace gmt::preload {
namespace {

// Returns how many calls without a real function a session gets that begins now.
int CountedInANewSession() {
  alignas(Process) static char page[sizeof(Process)] = {};
  const session::ScratchSession session;
  auto* process = reinterpret_cast<Process*>(page);
  process->map = session.map();
  process->FlushDeferredCounts();
  return static_cast<int>(session.control().counters[session::kNoRealFunction].load());
}

int InForkChild(int (*function)()) {
  const pid_t child = fork();
  if (child == 0) _exit(function());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessTest, CountsMadeBeforeTheSessionAreNotThoseOfAForkChild) {
  Process::CountOrDefer(session::kNoRealFunction);
  Process::CountOrDefer(session::kNoRealFunction);
  EXPECT_EQ(InForkChild(CountedInANewSession), 0);
  EXPECT_EQ(InForkChild([] {
              Process::CountOrDefer(session::kNoRealFunction);
              return CountedInANewSession();
            }),
            1);
  EXPECT_EQ(CountedInANewSession(), 2);
}

}  // namespace
}  // namespace gmt::preload
