#include "collector/metrics/metrics_server.h"

#include <event2/event.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "collector/sessions/unix_socket.h"
#include "http/testing/client_fixture.h"

namespace gmt::metrics {
namespace {

using http::Client;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kToken[] = "0123456789abcdef";

// A server in a thread of its own, which also makes the copies.
class MetricsServerTest : public testing::Test {
 protected:
  MetricsServerTest() {
    folder_ = std::filesystem::temp_directory_path() / absl::StrCat("gmt_metrics.", getpid());
    std::filesystem::create_directories(folder_);
  }
  ~MetricsServerTest() override {
    End();
    std::filesystem::remove_all(folder_);
  }

  void Start(const std::string& listen) {
    const auto address = ParseListenAddress(listen, "");
    ASSERT_TRUE(address.ok()) << address.status();
    loop_ = http::MakeEventLoop();
    server_ = std::make_unique<MetricsServer>(
        MetricsServer::Dependencies{loop_.get(), &waiters_, &sites_,
                                    [](const control::Status& status) { return status; }},
        Identity{});
    const absl::Status opened = server_->Open(*address);
    ASSERT_TRUE(opened.ok()) << opened;
    turn_.reset(event_new(
        loop_.get(), -1, EV_PERSIST,
        [](int, short, void* self) { static_cast<MetricsServerTest*>(self)->OnTurn(); }, this));
    const timeval every = http::TimeOf(std::chrono::milliseconds(2));
    event_add(turn_.get(), &every);
    thread_ = std::thread([this] {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
      event_base_dispatch(loop_.get());
    });
  }
  void End() {
    if (!thread_.joinable()) return;
    stops_ = true;
    thread_.join();
    server_.reset();
  }
  void OnTurn() {
    if (stops_) event_base_loopbreak(loop_.get());
    now_ns_ += control::Mailbox::kMinDistanceNs;
    if (mailbox_.TakeRequestedKinds(now_ns_) == 0) return;
    control::Copy copy;
    copy.status.add_heaps()->set_heap("driver");
    if (stalled_) {
      copy.status.set_stalled(true);
      copy.status.set_stall_reason("No space left on device");
    }
    copy.sites.emplace();
    copy.leaks.emplace();
    mailbox_.Publish(std::move(copy));
    waiters_.Take(mailbox_.TakeCopy());
    ++copies_;
  }
  uint16_t Port() const {
    const std::string url = server_->Url();
    return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  std::string Get(const std::string& path, const std::string& headers = "") {
    Client client(Port());
    client.Get(path, headers + "Connection: close\r\n");
    return client.ReadAll();
  }

  std::filesystem::path folder_;
  control::Mailbox mailbox_;
  control::CopyWaiters waiters_{&mailbox_};
  control::SiteSummary sites_;
  http::EventOwned<event_base> loop_;
  http::EventOwned<event> turn_;
  std::unique_ptr<MetricsServer> server_;
  std::thread thread_;
  uint64_t now_ns_ = 0;
  std::atomic<bool> stops_ = false, stalled_ = false;
  std::atomic<int> copies_ = 0;
};

TEST_F(MetricsServerTest, AnswersEachPath) {
  Start("127.0.0.1:0");
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("text/plain; version=0.0.4"),
                    HasSubstr("gpumemtrace_build_info")));
  EXPECT_THAT(Get("/metrics", "Accept: application/openmetrics-text\r\n"),
              AllOf(HasSubstr("application/openmetrics-text; version=1.0.0"), HasSubstr("# EOF")));
  EXPECT_THAT(Get("/healthz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\n\r\nok\n")));
  EXPECT_THAT(Get("/debug/pprof/gpu?seconds=0"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("filename=\"gpu.pb.gz\"")));
  EXPECT_THAT(Get("/nothing"), AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("available: /metrics")));
}

TEST_F(MetricsServerTest, HealthIsBadWhileNothingCanBeWritten) {
  stalled_ = true;
  Start("127.0.0.1:0");
  EXPECT_THAT(Get("/healthz"),
              AllOf(StartsWith("HTTP/1.1 503"),
                    HasSubstr("the recording cannot be written: No space left on device")));
}

TEST_F(MetricsServerTest, SecondsOfAProfileAreChecked) {
  Start("127.0.0.1:0");
  for (const char* seconds : {"601", "-1", "x", "", "4294967296"}) {
    EXPECT_THAT(Get(absl::StrCat("/debug/pprof/gpu?seconds=", seconds)),
                AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("from 0 to 600")))
        << seconds;
  }
  EXPECT_EQ(copies_, 0);
}

TEST_F(MetricsServerTest, ProfileOfSomeSecondsComparesTwoCopies) {
  Start("127.0.0.1:0");
  EXPECT_THAT(Get("/debug/pprof/gpu?seconds=1"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(copies_, 2);
}

TEST_F(MetricsServerTest, ClientMayLeaveWhileItsProfileRuns) {
  Start("127.0.0.1:0");
  {
    Client client(Port());
    client.Get("/debug/pprof/gpu?seconds=600");
    while (copies_ == 0) usleep(1000);
  }
  Client stays(Port());
  stays.Get("/debug/pprof/gpu?seconds=600");
  while (copies_ == 1) usleep(1000);
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsServerTest, RequestWithoutTheTokenLearnsNothing) {
  const std::string file = folder_ / "token";
  std::ofstream(file) << kToken << "\n";
  chmod(file.c_str(), 0600);
  Start("127.0.0.1:0+token:" + file);
  for (const char* path : {"/metrics", "/nothing"}) {
    for (const std::string& headers :
         {std::string(), "Authorization: " + std::string(kToken) + "\r\n",
          "Authorization: Bearer " + std::string(kToken, 15) + "\r\n"}) {
      EXPECT_THAT(Get(path, headers),
                  AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("WWW-Authenticate: Bearer")));
    }
  }
  EXPECT_THAT(Get("/healthz", "Authorization: Bearer " + std::string(kToken) + "\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsServerTest, OtherHostNamesAreRefusedOnLoopback) {
  Start("127.0.0.1:0");
  Client client(Port());
  client.Send("GET /metrics HTTP/1.1\r\nHost: rebound.example.org\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 403"));
}

TEST_F(MetricsServerTest, UnixSocketIsForItsUserAndEndsWithTheServer) {
  const std::string path = folder_ / "metrics.sock";
  Start("unix:" + path);
  EXPECT_EQ(server_->Url(), "unix:" + path);
  struct stat st = {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  End();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(MetricsServerTest, SecondServerLeavesTheUnixSocketToTheFirst) {
  const std::string path = folder_ / "metrics.sock";
  Start("unix:" + path);
  const ino_t first = control::SocketInode(path);
  const auto loop = http::MakeEventLoop();
  {
    MetricsServer second({loop.get(), &waiters_, &sites_, nullptr}, Identity{});
    const absl::Status opened = second.Open(*ParseListenAddress("unix:" + path, ""));
    EXPECT_THAT(std::string(opened.message()), HasSubstr("Address already in use"));
  }
  EXPECT_EQ(control::SocketInode(path), first);
}

TEST_F(MetricsServerTest, UnixSocketOfAKilledServerIsReplaced) {
  const std::string path = folder_ / "metrics.sock";
  const auto left = control::ListenAt(path, 1);
  ASSERT_TRUE(left.ok());
  close(*left);  // the name remains
  Start("unix:" + path);
  const auto client = control::ConnectTo(path, std::chrono::milliseconds(http::kHangMs));
  EXPECT_TRUE(client.ok()) << client.status();
  close(client.value_or(-1));
}

TEST_F(MetricsServerTest, SocketThatHasReplacedTheServersIsLeft) {
  const std::string path = folder_ / "metrics.sock";
  Start("unix:" + path);
  std::filesystem::remove(path);
  const auto other = control::ListenAt(path, 1);
  ASSERT_TRUE(other.ok());
  const ino_t inode = control::SocketInode(path);
  End();
  EXPECT_EQ(control::SocketInode(path), inode);
  close(*other);
}

}  // namespace
}  // namespace gmt::metrics
