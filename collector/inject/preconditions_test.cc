#include "collector/inject/preconditions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gmt::inject {
namespace {

// A process that could be attached to if it existed; no process has its pid.
class PreconditionsTest : public testing::Test {
 protected:
  PreconditionsTest() {
    target_.pid = 1 << 30;
    target_.exists = true;
    target_.name = "python";
    target_.state = 'S';
    target_.threads = 3;
    target_.uids.assign(4, geteuid());
    target_.uid = geteuid();
    target_.kind = ProgramKind::kGlibc;
  }

  std::string Refusal() { return FirstRefusal(target_, CheckAttachable(target_, "/lib/x.so")); }
  bool Refuses(const std::string& words) { return Refusal().find(words) != std::string::npos; }
  // Simulates that the kernel does not allow tracing.
  void Forbid(int yama_scope, bool can_trace_others) {
    target_.memory_errno = EACCES;
    target_.yama_scope = yama_scope;
    target_.can_trace_others = can_trace_others;
  }

  TargetInfo target_;
};

TEST_F(PreconditionsTest, OrdinaryProcessCanBeAttachedTo) { EXPECT_EQ(Refusal(), ""); }

TEST_F(PreconditionsTest, RestrictedPtraceNamesTheSettingAndThreeSolutions) {
  Forbid(1, false);
  EXPECT_TRUE(Refuses("kernel.yama.ptrace_scope is 1: a process may be traced by its ancestors"));
  EXPECT_TRUE(Refuses("sudo gpumemtrace attach"));
  EXPECT_TRUE(Refuses("sysctl kernel.yama.ptrace_scope=0"));
  EXPECT_TRUE(Refuses("setpriv --ptracer any"));
}

TEST_F(PreconditionsTest, AdminOnlyPtraceRequiresRoot) {
  Forbid(2, false);
  EXPECT_TRUE(Refuses("ptrace_scope is 2: only root may trace"));
}

TEST_F(PreconditionsTest, DisabledPtraceIsReportedToRootToo) {
  Forbid(3, true);
  EXPECT_TRUE(Refuses("until this machine restarts"));
  EXPECT_TRUE(Refuses("GPUMEMTRACE=dormant"));
}

TEST_F(PreconditionsTest, MissingCapabilityInAContainerNamesItsOption) {
  Forbid(-1, false);
  EXPECT_TRUE(Refuses("--cap-add=SYS_PTRACE"));
}

TEST_F(PreconditionsTest, OtherUserNamespaceIsReported) {
  Forbid(-1, false);
  target_.own_user_namespace = false;
  EXPECT_TRUE(Refuses("another user namespace"));
}

TEST_F(PreconditionsTest, RootIsPointedToSecurityModules) {
  Forbid(-1, true);
  EXPECT_TRUE(Refuses("a security module forbids it"));
}

TEST_F(PreconditionsTest, OtherUserIsNamedBeforeItsConsequences) {
  Forbid(1, false);
  target_.uids.assign(4, geteuid() + 1);
  target_.uid = geteuid() + 1;
  EXPECT_TRUE(Refuses("it belongs to user"));
}

// Its effective user may be the caller; reporting another owner would be misleading.
TEST_F(PreconditionsTest, SetUserIdProgramIsNotReportedAsAnotherUsers) {
  target_.uids = {geteuid() + 1, geteuid(), geteuid(), geteuid()};
  target_.can_trace_others = false;
  EXPECT_TRUE(Refuses("set-user-ID"));
  EXPECT_TRUE(Refuses("A copy of it without set-user-ID can be recorded"));
  EXPECT_FALSE(Refuses("belongs to"));
}

TEST_F(PreconditionsTest, TracerIsNamed) {
  target_.tracer = 77;
  target_.tracer_name = "strace";
  EXPECT_TRUE(Refuses("traced by strace (process 77)"));
}

TEST_F(PreconditionsTest, ProgramsThatCannotLoadLibrariesAreDistinguished) {
  target_.kind = ProgramKind::kHosted;
  EXPECT_TRUE(Refuses("it runs inside of python, a static program"));
  EXPECT_TRUE(Refuses("GPUMEMTRACE=dormant"));
  target_.kind = ProgramKind::k32Bit;
  EXPECT_TRUE(Refuses("32-bit"));
  target_.kind = ProgramKind::kOtherMachine;
  EXPECT_TRUE(Refuses("another processor"));
  target_.kind = ProgramKind::kStatic;
  EXPECT_TRUE(Refuses("static"));
  target_.kind = ProgramKind::kNoLibc;
  target_.interpreter = "/lib/ld-other.so";
  EXPECT_TRUE(Refuses("/lib/ld-other.so"));
}

TEST_F(PreconditionsTest, AllReasonsAreListed) {
  target_.state = 'T';
  target_.tracer = 77;
  const auto checks = CheckAttachable(target_, "/lib/x.so");
  EXPECT_EQ(std::count_if(checks.begin(), checks.end(),
                          [](const Precondition& c) { return c.verdict == Verdict::kFail; }),
            2);
}

TEST_F(PreconditionsTest, EveryRefusalHasAFix) {
  Forbid(1, false);
  target_.state = 'T';
  target_.tracer = 7;
  for (const Precondition& check : CheckAttachable(target_, "/lib/x.so")) {
    if (check.verdict == Verdict::kFail) {
      EXPECT_NE(check.fix, "") << check.name;
    }
  }
}

TEST(InspectTest, DescribesThisProcess) {
  const TargetInfo self = Inspect(getpid());
  EXPECT_TRUE(self.exists);
  EXPECT_EQ(self.thread_of, 0);
  EXPECT_EQ(self.uid, geteuid());
  EXPECT_EQ(self.kind, ProgramKind::kGlibc);
  EXPECT_TRUE(self.own_mount_namespace);
  EXPECT_NE(self.program.find("inject_test"), std::string::npos);
}

TEST(InspectTest, MissingProcessDoesNotExist) { EXPECT_FALSE(Inspect(1 << 30).exists); }

}  // namespace
}  // namespace gmt::inject
