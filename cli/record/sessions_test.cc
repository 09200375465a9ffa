// Runs `gpumemtrace list`, `status` and `collect` on sessions in every state.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "collector/sessions/session_claim.h"
#include "collector/testing/fake_target.h"

namespace gmt::cli {
namespace {

using collector::FakeTarget;
using collector::FileBytes;
using collector::ReadBack;
using collector::Recording;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;
constexpr char kAsNobody[] = "setpriv --reuid=65534 --clear-groups";

class SessionsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("gmt_sessions_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
    setenv("GPUMEMTRACE_COLLECTOR", GMT_COLLECTOR_PROGRAM, 1);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (child_ > 0) EndChild();
    fs::remove_all(folder_);
  }

  int Run(const std::string& arguments, const std::string& through = "") {
    const std::string command = "cd " + folder_.string() + " && " + through + " " GMT_PROGRAM " " +
                                arguments + " >out 2>err </dev/null";
    const int status = std::system(command.c_str());
    out_ = FileBytes(folder_ / "out");
    err_ = FileBytes(folder_ / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Returns the row of a session in `list --json`.
  json Row(const FakeTarget& target) {
    EXPECT_EQ(Run("list --json"), 0) << err_;
    const json list = json::parse(out_);
    for (const json& row : list["sessions"]) {
      if (row["path"] == target.path()) return row;
    }
    return nullptr;
  }
  // Forks a child whose identity the session has until EndChild().
  void UseLiveChild(FakeTarget& target) {
    child_ = fork();
    if (child_ == 0) {
      while (true) pause();
    }
    target.header().pid = static_cast<uint64_t>(child_);
    target.header().start_ticks = session::StartTicks(target.header().pid);
  }
  void EndChild() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  bool NobodyReachesTheProgram() {
    const std::string reachable =
        std::string(kAsNobody) + " test -x " GMT_PROGRAM " -a -x " + folder_.string();
    return std::system(reachable.c_str()) == 0;
  }
  std::string InFolder(const std::string& name) { return (folder_ / name).string(); }
  Recording Read(const std::string& name) { return ReadBack(FileBytes(folder_ / name)); }

  fs::path folder_;
  std::string out_, err_;
  pid_t child_ = 0;
};

// ---- list ---------------------------------------------------------------------------------------

TEST_F(SessionsTest, ListSucceedsWithoutSessions) {
  setenv("GPUMEMTRACE_DIR", InFolder("none").c_str(), 1);
  // There may be other sessions of this user in /dev/shm.
  EXPECT_EQ(Run("list --json"), 0);
  EXPECT_THAT(out_, StartsWith("{\n  \"schema\": \"gpumemtrace.list/1\""));
  EXPECT_EQ(Run("list"), 0);
  EXPECT_THAT(out_, HasSubstr("ession"));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(SessionsTest, FirstLineCountsStatesAndNamesTheCommand) {
  FakeTarget target;
  target.BeGone();
  EXPECT_EQ(Run("list"), 0);
  const std::string first = out_.substr(0, out_.find('\n'));
  EXPECT_THAT(first, HasSubstr(" orphaned"));
  EXPECT_THAT(first, HasSubstr("gpumemtrace collect "));
  EXPECT_THAT(out_, HasSubstr(target.path()));
  EXPECT_THAT(out_, HasSubstr("python train.py"));
}

TEST_F(SessionsTest, EveryStateHasAName) {
  FakeTarget live, gone, boot, elsewhere, newer, cut, claimed;
  gone.BeGone();
  boot.header().boot_id[0] ^= 1;
  elsewhere.header().pid_namespace += 1;
  newer.header().abi_major += 1;
  ASSERT_EQ(truncate(cut.path().c_str(), 50), 0);
  const auto claim = collector::SessionClaim::Take(claimed.fd());
  const std::pair<FakeTarget*, const char*> states[] = {
      {&live, "unattended"},     {&gone, "orphaned"},       {&boot, "other_boot"},
      {&elsewhere, "elsewhere"}, {&newer, "other_release"}, {&cut, "damaged"},
      {&claimed, "recording"},
  };
  for (const auto& [target, state] : states) {
    setenv("GPUMEMTRACE_DIR", target->directory().c_str(), 1);
    EXPECT_EQ(Row(*target)["state"], state);
    EXPECT_EQ(Run("list"), 0);
  }
}

TEST_F(SessionsTest, RowHasTheKeysThatCallersRelyOn) {
  FakeTarget target;
  target.Alloc(0x1000, 1);
  const json row = Row(target);
  for (const char* key : {"path", "state", "pid", "argv", "started_unix_ns", "age_ns", "idle_ns",
                          "bytes", "output", "version", "run_id", "collector_pid", "problem"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row["argv"], json({"python", "train.py"}));
  EXPECT_TRUE(row["collector_pid"].is_null());
}

// ---- status -------------------------------------------------------------------------------------

TEST_F(SessionsTest, StatusWaitsForACollectorThatStartsBeforeItReportsNone) {
  FakeTarget unattended, claimed;
  const auto claim = collector::SessionClaim::Take(claimed.fd());
  const std::pair<FakeTarget*, const char*> reasons[] = {
      {&unattended, "is alive, but no collector is recording it"},
      {&claimed, "has no control socket"},
  };
  for (const auto& [target, reason] : reasons) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Run("status " + target->path()), 1);
    EXPECT_THAT(err_, HasSubstr(reason));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  }
}

// ---- collect ------------------------------------------------------------------------------------

TEST_F(SessionsTest, OrphanIsCollectedAndRemoved) {
  FakeTarget target;
  for (uint64_t i = 0; i < 10; ++i) target.Alloc(0x1000 + i * 16, i);
  target.BeGone();
  ASSERT_EQ(Run("collect " + target.path() + " -o run.gmt"), 0) << err_;
  EXPECT_EQ(out_, "run.gmt\n");
  const Recording recording = Read("run.gmt");
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 10u);
  EXPECT_FALSE(fs::exists(target.path()));
}

TEST_F(SessionsTest, FileNameOrPidSelectsASession) {
  FakeTarget target;
  target.BeGone();
  ASSERT_EQ(Run("collect " + fs::path(target.path()).filename().string() + " -o a.gmt"), 0) << err_;
  FakeTarget other;
  other.header().pid = 999999999;
  ASSERT_EQ(Run("collect 999999999 -o b.gmt"), 0) << err_;
  EXPECT_FALSE(fs::exists(other.path()));
}

TEST_F(SessionsTest, UnknownSessionIsReportedWithAdvice) {
  EXPECT_EQ(Run("collect 999999998 -o a.gmt"), 1);
  EXPECT_EQ(err_,
            "gpumemtrace: process 999999998 has no session. To see all sessions: gpumemtrace "
            "list\n");
  EXPECT_EQ(Run("collect none.session -o a.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("none.session: there is no such session"));
}

TEST_F(SessionsTest, DefaultOutputIsTheSessionsOwnAndNeverOverwrites) {
  FakeTarget first(FakeTarget::SmallSizes(), "", InFolder("run.gmt"));
  first.BeGone();
  ASSERT_EQ(Run("collect " + first.path()), 0) << err_;
  EXPECT_EQ(out_, InFolder("run.gmt") + "\n");
  EXPECT_THAT(err_, IsEmpty());
  const std::string before = FileBytes(folder_ / "run.gmt");
  FakeTarget second(FakeTarget::SmallSizes(), "", InFolder("run.gmt"));
  second.BeGone();
  ASSERT_EQ(Run("collect " + second.path()), 0) << err_;
  EXPECT_EQ(out_, InFolder("run.1.gmt") + "\n");
  EXPECT_THAT(err_, HasSubstr("run.gmt holds what was recorded earlier"));
  EXPECT_EQ(FileBytes(folder_ / "run.gmt"), before);
}

TEST_F(SessionsTest, ExistingOutputIsRefusedWithoutForce) {
  FakeTarget target;
  target.BeGone();
  std::ofstream(folder_ / "run.gmt") << "precious";
  EXPECT_EQ(Run("collect " + target.path() + " -o run.gmt"), 1);
  EXPECT_EQ(err_, "gpumemtrace: run.gmt exists already. Overwrite it with: --force\n");
  EXPECT_EQ(FileBytes(folder_ / "run.gmt"), "precious");
  EXPECT_TRUE(fs::exists(target.path()));
  EXPECT_EQ(Run("collect " + target.path() + " -o run.gmt --force"), 0) << err_;
  EXPECT_TRUE(Read("run.gmt").complete);
}

TEST_F(SessionsTest, SessionWithoutAnOutputNeedsOne) {
  FakeTarget target;
  target.BeGone();
  EXPECT_EQ(Run("collect " + target.path()), 2);
  EXPECT_THAT(err_, HasSubstr("-o FILE"));
}

TEST_F(SessionsTest, SessionWithACollectorIsRefused) {
  FakeTarget target;
  target.BeGone();
  const auto claim = collector::SessionClaim::Take(target.fd());
  EXPECT_EQ(Run("collect " + target.path() + " -o a.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("a collector (process " + std::to_string(getpid()) +
                              ") is already recording it"));
  EXPECT_FALSE(fs::exists(folder_ / "a.gmt"));
}

TEST_F(SessionsTest, OnlyOneOfTwoConcurrentCollectsSucceeds) {
  FakeTarget target;
  for (uint64_t i = 0; i < 10; ++i) target.Alloc(0x1000 + i * 16, i);
  target.BeGone();
  const std::string collect = std::string(GMT_PROGRAM) + " collect " + target.path() + " -o ";
  const std::string script = "cd " + folder_.string() + "; (" + collect + "a.gmt; echo $? >a) & (" +
                             collect + "b.gmt; echo $? >b) & wait";
  const std::string said = " >" + InFolder("out") + " 2>" + InFolder("err");
  ASSERT_EQ(std::system(("{ " + script + "; }" + said).c_str()), 0);
  const int made = fs::exists(folder_ / "a.gmt") + fs::exists(folder_ / "b.gmt");
  EXPECT_EQ(made, 1) << FileBytes(folder_ / "err");
  const std::string codes = FileBytes(folder_ / "a") + FileBytes(folder_ / "b");
  EXPECT_TRUE(codes == "0\n1\n" || codes == "1\n0\n") << codes;
  EXPECT_TRUE(Read(fs::exists(folder_ / "a.gmt") ? "a.gmt" : "b.gmt").complete);
}

TEST_F(SessionsTest, LiveProcessIsRecordedUntilItEnds) {
  FakeTarget target;
  target.Alloc(0x1000, 1);
  UseLiveChild(target);
  const pid_t collecting = fork();
  if (collecting == 0) _exit(Run("collect " + target.path() + " -o run.gmt"));
  while (target.control().collector_pid.load() == 0) usleep(1000);
  target.Alloc(0x2000, 2);
  EndChild();
  int status;
  waitpid(collecting, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << FileBytes(folder_ / "err");
  EXPECT_THAT(FileBytes(folder_ / "err"), HasSubstr("until it ends; ^C stops"));
  const Recording recording = Read("run.gmt");
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(Recording::LiveOf(recording.snapshots.back()).size(), 2u);
  EXPECT_FALSE(fs::exists(target.path()));
}

TEST_F(SessionsTest, InterruptLeavesACompleteFileAndTheSession) {
  FakeTarget target;
  target.Alloc(0x1000, 1);
  UseLiveChild(target);
  const pid_t collecting = fork();
  if (collecting == 0) {
    chdir(folder_.c_str());
    execl(GMT_PROGRAM, GMT_PROGRAM, "collect", target.path().c_str(), "-o", "run.gmt", nullptr);
    _exit(127);
  }
  while (Read("run.gmt").Count(gmt::ALLOC) == 0) usleep(20000);
  kill(collecting, SIGINT);
  int status;
  waitpid(collecting, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const Recording recording = Read("run.gmt");
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.facts.exit().kind(), gmt::Exit::RUNNING);
  EXPECT_TRUE(fs::exists(target.path()));
  EXPECT_EQ(Row(target)["state"], "unattended");
}

TEST_F(SessionsTest, OnceWritesTheContentsAndKeepsTheSession) {
  FakeTarget target;
  target.Alloc(0x1000, 1);
  UseLiveChild(target);
  ASSERT_EQ(Run("collect --once " + target.path() + " -o run.gmt"), 0) << err_;
  EXPECT_EQ(Read("run.gmt").Count(gmt::ALLOC), 1u);
  EXPECT_TRUE(fs::exists(target.path()));
}

TEST_F(SessionsTest, SessionOfAnotherNamespaceNeedsOnceAndIsKept) {
  FakeTarget target;
  target.Alloc(0x1000, 1);
  target.header().pid_namespace += 1;
  target.BeGone();
  EXPECT_EQ(Run("collect " + target.path() + " -o run.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("another PID namespace"));
  EXPECT_EQ(Run("collect --once " + target.path() + " -o run.gmt"), 0) << err_;
  EXPECT_TRUE(Read("run.gmt").complete);
  EXPECT_TRUE(fs::exists(target.path()));
}

TEST_F(SessionsTest, DamagedSessionIsRefused) {
  FakeTarget target;
  target.BeGone();
  ASSERT_EQ(truncate(target.path().c_str(), 100000), 0);
  EXPECT_EQ(Run("collect " + target.path() + " -o run.gmt"), 1);
  EXPECT_EQ(err_, "gpumemtrace: " + target.path() + ": its size is not what its header says\n");
  EXPECT_FALSE(fs::exists(folder_ / "run.gmt"));
}

TEST_F(SessionsTest, SessionOfAnotherReleaseUsesItsCollector) {
  const std::string other = InFolder("other-collector");
  std::ofstream(other) << "#!/bin/sh\necho \"$@\" >" << InFolder("asked") << "\n";
  chmod(other.c_str(), 0755);
  FakeTarget target(FakeTarget::SmallSizes(), "", "", other);
  target.header().abi_major += 1;
  ASSERT_EQ(Run("collect " + target.path() + " -o run.gmt"), 0) << err_;
  EXPECT_EQ(FileBytes(folder_ / "asked"), "--session " + target.path() + " --output run.gmt\n");
}

TEST_F(SessionsTest, MissingCollectorOfAnotherReleaseIsReported) {
  FakeTarget target(FakeTarget::SmallSizes(), "", "", "/gone/gpumemtrace-collector");
  target.header().abi_major += 1;
  EXPECT_EQ(Run("collect " + target.path() + " -o run.gmt"), 1);
  EXPECT_THAT(err_, HasSubstr("was made by gpumemtrace"));
  EXPECT_THAT(err_, HasSubstr("/gone/gpumemtrace-collector. Collect it with that release"));
}

TEST_F(SessionsTest, SessionOfAnotherUserIsRefused) {
  std::string as_a_user;
  if (geteuid() == 0) {  // root may collect the sessions of all users
    as_a_user = kAsNobody;
    if (!NobodyReachesTheProgram()) GTEST_SKIP() << "no user but root reaches " GMT_PROGRAM;
  }
  EXPECT_EQ(Run("collect /etc/passwd -o run.gmt", as_a_user), 1);
  EXPECT_THAT(err_, HasSubstr("belongs to user 0"));
}

// A pid is used again sooner or later, and the session of an earlier process may still be there.
TEST_F(SessionsTest, SessionOfAnEarlierProcessDoesNotHideWhyAnAttachIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root";
  if (!NobodyReachesTheProgram()) GTEST_SKIP() << "no user but root reaches " GMT_PROGRAM;
  FakeTarget target;
  UseLiveChild(target);
  target.BeGone();
  ASSERT_EQ(chown(target.directory().c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chown(target.path().c_str(), kNobody, kNobody), 0);
  setenv("GPUMEMTRACE_DIR", target.directory().c_str(), 1);
  EXPECT_EQ(Run("list --json", kAsNobody), 0) << err_;
  EXPECT_THAT(out_, HasSubstr(target.path()));
  setenv("GPUMEMTRACE_LIBRARY", GMT_PROGRAM, 1);  // it is refused before the library matters
  EXPECT_EQ(Run("attach --check " + std::to_string(child_), kAsNobody), 1);
  unsetenv("GPUMEMTRACE_LIBRARY");
  EXPECT_THAT(out_, HasSubstr("belongs to user 0, and you are user 65534"));
}

TEST_F(SessionsTest, FullDiskLeavesTheSessionAndNoHalfFile) {
  FakeTarget target;
  for (uint64_t i = 0; i < 500; ++i) target.Alloc(0x1000 + i * 16, i);
  target.BeGone();
  // A limit on the file size simulates a full disk.
  const std::string command = "cd " + folder_.string() +
                              " && ulimit -f 1 && " GMT_PROGRAM " collect " + target.path() +
                              " -o run.gmt 2>err";
  const int status = std::system(("bash -c '" + command + "' >/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(FileBytes(folder_ / "err"), HasSubstr("File too large"));
  EXPECT_FALSE(fs::exists(folder_ / "run.gmt"));
  EXPECT_TRUE(fs::exists(target.path()));
}

}  // namespace
}  // namespace gmt::cli
