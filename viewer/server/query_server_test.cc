#include "viewer/server/query_server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "http/testing/client_fixture.h"

namespace gmt::viewer {
namespace {

using http::Client;
using http::kHangMs;
using testing::HasSubstr;
using testing::StartsWith;

// "/now", "/quick/...", "/slow/..." answer with their path; "/wait" blocks until Release();
// "/stream" is a stream.
class Handler : public QueryHandler {
 public:
  Cost CostOf(const http::Request& request) const override {
    if (request.path == "/now" || request.path == "/stream") return Cost::kNone;
    return request.path.rfind("/quick", 0) == 0 ? Cost::kQuick : Cost::kSlow;
  }
  http::Response Answer(const http::Request& request) override {
    http::Response response;
    response.body = "you asked " + request.path + "?" + request.query;
    ++answered_;
    if (request.path == "/wait") Wait();
    if (request.path == "/throw") throw std::runtime_error("too bad");
    if (request.path == "/stream") {
      response.is_stream = true;
      response.type = "text/event-stream";
      response.body = "data: first\n\n";
    }
    return response;
  }
  void StreamsChanged(size_t streams) override { streams_ = streams; }
  bool ShouldContinue() override { return continues_; }

  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  std::atomic<size_t> streams_ = 0, answered_ = 0;
  std::atomic<bool> continues_ = true;

 private:
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return released_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
};

class QueryServerTest : public testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void TearDown() override { End(); }
  void Start(const QueryLimits& limits) {
    auto server = QueryServer::Listen(0, &handler_, limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] {
      server_->Serve();
      serve_returned_ = true;
    });
  }
  void Restart(const QueryLimits& limits) {
    End();
    Start(limits);
  }
  void End() {
    handler_.Release();
    server_->Stop();
    thread_.join();
    server_.reset();
  }
  // Waits until `condition` holds; returns false if it never does.
  template <typename Condition>
  static bool Becomes(Condition condition) {
    for (int waited = 0; waited < kHangMs; waited += 5) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  void ExpectStillServes() {
    Client client(server_->port());
    client.Get("/quick/well", "Connection: close\r\n");
    EXPECT_THAT(client.ReadAll(), HasSubstr("you asked /quick/well?"));
  }

  Handler handler_;
  std::unique_ptr<QueryServer> server_;
  std::thread thread_;
  std::atomic<bool> serve_returned_ = false;
};

TEST_F(QueryServerTest, AnswersQueriesOfEachCost) {
  for (const char* path : {"/now", "/quick/1", "/slow/2"}) {
    Client client(server_->port());
    client.Get(absl::StrCat(path, "?a=%20b"), "Connection: close\r\n");
    const std::string answer = client.ReadAll();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr(absl::StrCat("you asked ", path, "?a=%20b")));
  }
}

TEST_F(QueryServerTest, ExceptionBecomesAnErrorResponse) {
  Client client(server_->port());
  client.Get("/throw", "Connection: close\r\n");
  EXPECT_THAT(client.ReadAll(), testing::AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("too bad")));
}

TEST_F(QueryServerTest, SlowQueriesDoNotDelayQuickOnes) {
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(std::make_unique<Client>(server_->port()));
    waiting.back()->Get("/wait");
  }
  ASSERT_TRUE(Becomes([&] { return handler_.answered_ == 2; }));  // both threads of the pool
  ExpectStillServes();
  handler_.Release();
  for (const auto& client : waiting) EXPECT_THAT(client->ReadTo("/wait?"), HasSubstr("200 OK"));
}

TEST_F(QueryServerTest, QueryOfADisconnectedClientIsNotComputed) {
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(std::make_unique<Client>(server_->port()));
    waiting.back()->Get("/wait");
  }
  ASSERT_TRUE(Becomes([&] { return handler_.answered_ == 2; }));
  {
    Client left(server_->port()), stays(server_->port());
    left.Get("/slow/left");
    stays.Get("/slow/stays");
    // Whether it waits in the queue cannot be observed; that a later request is answered can.
    ExpectStillServes();
    left.Close();
    ExpectStillServes();  // by now the server has noticed the disconnection
    ExpectStillServes();
    const size_t before = handler_.answered_;
    handler_.Release();
    EXPECT_THAT(stays.ReadTo("/slow/stays?"), HasSubstr("200 OK"));
    EXPECT_EQ(handler_.answered_, before + 1);
  }
}

TEST_F(QueryServerTest, StreamCarriesEventsUntilItsClientDisconnects) {
  Client one(server_->port()), two(server_->port());
  one.Get("/stream");
  two.Get("/stream");
  EXPECT_THAT(one.ReadTo("data: first\n\n"), HasSubstr("text/event-stream"));
  two.ReadTo("data: first\n\n");
  ASSERT_TRUE(Becomes([&] { return handler_.streams_ == 2; }));
  server_->SendToStreams("data: second\n\n");
  EXPECT_THAT(one.ReadTo("data: second\n\n"), HasSubstr("second"));
  one.Close();
  EXPECT_TRUE(Becomes([&] { return handler_.streams_ == 1; }));
  server_->SendToStreams("data: third\n\n");
  EXPECT_THAT(two.ReadTo("data: third\n\n"), HasSubstr("third"));
  two.Close();
  EXPECT_TRUE(Becomes([&] { return handler_.streams_ == 0; }));
}

TEST_F(QueryServerTest, StreamIsClosedIfItsClientNeverReads) {
  Client lazy(server_->port());
  lazy.Get("/stream");
  ASSERT_TRUE(Becomes([&] { return handler_.streams_ == 1; }));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  EXPECT_TRUE(Becomes([&] {
    server_->SendToStreams(event);
    return handler_.streams_ == 0;
  }));
  ExpectStillServes();
}

TEST_F(QueryServerTest, StreamHasAHeartbeat) {
  QueryLimits limits;
  limits.heartbeat = std::chrono::milliseconds(10);
  Restart(limits);
  Client client(server_->port());
  client.Get("/stream");
  EXPECT_THAT(client.ReadTo(": here\n\n"), HasSubstr(": here"));
}

TEST_F(QueryServerTest, ServeReturnsWhenTheHandlerEndsIt) {
  handler_.continues_ = false;
  EXPECT_TRUE(Becomes([&] { return serve_returned_.load(); }));
}

}  // namespace
}  // namespace gmt::viewer
