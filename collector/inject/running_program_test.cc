#include "collector/inject/running_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace gmt::inject {
namespace {

// A child that executes `cat` as soon as its input has a byte, which `cat` then waits at.
class Child {
 public:
  Child() {
    if (pipe(input_) != 0 || pipe(ready_) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    char byte;
    if (read(input_[0], &byte, 1) != 1) _exit(1);
    dup2(input_[0], STDIN_FILENO);
    dup2(ready_[1], STDOUT_FILENO);
    close(input_[1]);
    execlp("cat", "cat", "-u", nullptr);
    _exit(1);
  }
  ~Child() {
    End();
    for (const int fd : {input_[0], input_[1], ready_[0], ready_[1]}) close(fd);
  }

  pid_t pid() const { return pid_; }
  // Returns once the other program runs.
  void Exec() {
    char byte = 'x';
    ASSERT_EQ(write(input_[1], &byte, 1), 1);
    ASSERT_EQ(write(input_[1], &byte, 1), 1);
    ASSERT_EQ(read(ready_[0], &byte, 1), 1);
  }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  int input_[2], ready_[2];
  pid_t pid_;
};

TEST(RunningProgramTest, IsThereWhileItsProcessRuns) {
  Child child;
  const RunningProgram program(child.pid());
  EXPECT_FALSE(program.IsGone());
}

TEST(RunningProgramTest, IsGoneAfterAnExecAndTheNewProgramIsThere) {
  Child child;
  const RunningProgram program(child.pid());
  child.Exec();
  EXPECT_TRUE(program.IsGone());
  EXPECT_FALSE(RunningProgram(child.pid()).IsGone());
}

TEST(RunningProgramTest, IsGoneAfterTheEndOfItsProcess) {
  Child child;
  const RunningProgram program(child.pid());
  child.End();
  EXPECT_TRUE(program.IsGone());
}

// A kernel that hides the mappings gives the same answer.
TEST(RunningProgramTest, IsNotCalledGoneIfItsMappingsCannotBeRead) {
  Child child;
  const pid_t pid = child.pid();
  child.End();
  EXPECT_FALSE(RunningProgram(pid).IsGone());
}

}  // namespace
}  // namespace gmt::inject
