#include "collector/inject/seccomp_filter.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>

namespace gmt::inject {
namespace {

SeccompFilter Forbids(unsigned number, unsigned action) {
  return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

seccomp_data Call(int number) {
  seccomp_data call = {};
  call.nr = number;
  return call;
}

TEST(SeccompFilterTest, FilterIsEvaluated) {
  const SeccompFilter filter = Forbids(SYS_openat, SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(RunFilter(filter, Call(SYS_openat)), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(RunFilter(filter, Call(SYS_read)), static_cast<uint32_t>(SECCOMP_RET_ALLOW));
}

TEST(SeccompFilterTest, NothingIsForbiddenWithoutFilters) { EXPECT_EQ(FindForbiddenCall({}), ""); }

TEST(SeccompFilterTest, KillAndErrorAreDistinguished) {
  EXPECT_EQ(FindForbiddenCall({Forbids(SYS_openat, SECCOMP_RET_KILL_PROCESS)}),
            "openat would end it");
  EXPECT_EQ(FindForbiddenCall({Forbids(SYS_read, SECCOMP_RET_ERRNO | 1)}), "read is refused");
  EXPECT_EQ(FindForbiddenCall({Forbids(SYS_close, SECCOMP_RET_LOG)}), "");
}

TEST(SeccompFilterTest, StrictestFilterWins) {
  const SeccompFilter allows = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  EXPECT_NE(FindForbiddenCall({allows, Forbids(SYS_mmap, SECCOMP_RET_KILL_PROCESS), allows}), "");
}

// Calls that the library does not need may fail, but must not kill the process.
TEST(SeccompFilterTest, UnneededCallsMayFailButNotKill) {
  EXPECT_EQ(FindForbiddenCall({Forbids(SYS_memfd_create, SECCOMP_RET_ERRNO | 1)}), "");
  EXPECT_EQ(FindForbiddenCall({Forbids(SYS_memfd_create, SECCOMP_RET_KILL_THREAD)}),
            "memfd_create would end it");
}

TEST(SeccompFilterTest, ExecutableMemoryIsCheckedSeparately) {
  const SeccompFilter no_code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 16),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  EXPECT_EQ(FindForbiddenCall({no_code}), "mmap of code is refused");
}

TEST(SeccompFilterTest, ArithmeticAndMemoryWork) {
  const SeccompFilter filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                BPF_STMT(BPF_ST, 3),
                                BPF_STMT(BPF_LDX | BPF_MEM, 3),
                                BPF_STMT(BPF_LD | BPF_IMM, 5),
                                BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
                                BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 2),
                                BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                BPF_STMT(BPF_LD | BPF_IMM, 0),
                                BPF_STMT(BPF_MISC | BPF_TXA, 0),
                                BPF_STMT(BPF_RET | BPF_A, 0)};
  EXPECT_EQ(RunFilter(filter, Call(7)), 24u);
}

TEST(SeccompFilterTest, FilterWithoutReturnKillsTheProcess) {
  EXPECT_EQ(RunFilter({}, Call(0)), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(RunFilter({BPF_STMT(BPF_JMP | BPF_JA, 1000)}, Call(0)), SECCOMP_RET_KILL_PROCESS);
}

}  // namespace
}  // namespace gmt::inject
