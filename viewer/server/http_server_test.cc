#include "viewer/server/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/seeds/seeds.h"
#include "viewer/testing/http_client_fixture.h"

#if defined(__SANITIZE_THREAD__)
// libevent removes a descriptor from epoll after closing it, when its number may already belong to
// another socket. That socket is in no epoll set, so the call fails. It is not a data race.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libevent_core"; }
#endif

namespace gmt::viewer {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// "/now", "/quick/...", "/slow/..." answer with their path; "/wait" blocks until Release();
// "/stream" is a stream.
class Handler : public RequestHandler {
 public:
  Cost CostOf(const Request& request) const override {
    if (request.path == "/now" || request.path == "/stream") return Cost::kNone;
    return request.path.rfind("/quick", 0) == 0 ? Cost::kQuick : Cost::kSlow;
  }
  Response Answer(const Request& request) override {
    Response response;
    response.body = "you asked " + request.path + "?" + request.query;
    ++answered_;
    if (request.path == "/wait") Wait();
    if (request.path == "/throw") throw std::runtime_error("too bad");
    if (request.path == "/big") response.body.assign(64 << 20, 'x');
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

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void TearDown() override { End(); }
  void Start(const HttpLimits& limits) {
    auto server = HttpServer::Listen(0, &handler_, limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] {
      server_->Serve();
      serve_returned_ = true;
    });
  }
  void Restart(const HttpLimits& limits) {
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
  std::string Answer(const std::string& bytes) {
    Client client(server_->port());
    client.Send(bytes);
    return client.ReadAll();
  }
  void ExpectStillServes() {
    Client client(server_->port());
    client.Get("/quick/well", "Connection: close\r\n");
    EXPECT_THAT(client.ReadAll(), HasSubstr("you asked /quick/well?"));
  }

  Handler handler_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::atomic<bool> serve_returned_ = false;
};

TEST_F(HttpServerTest, AnswersRequests) {
  for (const char* path : {"/now", "/quick/1", "/slow/2"}) {
    Client client(server_->port());
    client.Get(absl::StrCat(path, "?a=%20b"), "Connection: close\r\n");
    const std::string answer = client.ReadAll();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr(absl::StrCat("you asked ", path, "?a=%20b")));
    EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(answer, HasSubstr("Cache-Control: no-store"));
    EXPECT_THAT(answer, HasSubstr("Referrer-Policy: no-referrer"));
    EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
  }
}

TEST_F(HttpServerTest, ConnectionIsReused) {
  Client client(server_->port());
  for (int i = 0; i < 100; ++i) {
    client.Get(absl::StrCat("/quick/", i));
    EXPECT_THAT(client.ReadTo(absl::StrCat("you asked /quick/", i, "?")), HasSubstr("200 OK"));
  }
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Client client(server_->port());
  client.Send(
      "GET /quick/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /slow/2 HTTP/1.1\r\nHost: a\r\nConnection: "
      "close\r\n\r\n");
  const std::string answers = client.ReadAll();
  EXPECT_LT(answers.find("/quick/1"), answers.find("/slow/2"));
  EXPECT_NE(answers.find("/slow/2"), std::string::npos);
}

TEST_F(HttpServerTest, MethodsOtherThanGetAreRefused) {
  // After some refusals, libevent waits for the client to close.
  HttpLimits limits;
  limits.silence = std::chrono::milliseconds(200);
  Restart(limits);
  for (const char* method :
       {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"}) {
    const std::string answer = Answer(absl::StrCat(
        method,
        " /quick/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"));
    EXPECT_THAT(answer, Not(HasSubstr("200 OK"))) << method;
    EXPECT_THAT(answer, Not(HasSubstr("(hangs)"))) << method;
  }
  EXPECT_EQ(handler_.answered_, 0);
}

TEST_F(HttpServerTest, AmbiguousRequestsAreRefused) {
  for (const char* rest :
       {"GET /quick HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /quick HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
        "GET /quick HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "GET /quick HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET http://evil.example/quick HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    EXPECT_THAT(Answer(rest), StartsWith("HTTP/1.1 4")) << rest;
  }
  EXPECT_EQ(handler_.answered_, 0);
}

TEST_F(HttpServerTest, TooLongHeadIsRefused) {
  const std::string answer =
      Answer("GET /quick HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(answer, Not(HasSubstr("200 OK")));
  ExpectStillServes();
}

TEST_F(HttpServerTest, ExceptionBecomesAnErrorResponse) {
  Client client(server_->port());
  client.Get("/throw", "Connection: close\r\n");
  EXPECT_THAT(client.ReadAll(), testing::AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("too bad")));
}

TEST_F(HttpServerTest, SlowQueriesDoNotDelayQuickOnes) {
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

TEST_F(HttpServerTest, QueryOfADisconnectedClientIsNotComputed) {
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

TEST_F(HttpServerTest, SurvivesClientsThatDisconnectDuringTheirAnswer) {
  for (int i = 0; i < 50; ++i) {
    Client client(server_->port());
    client.Get(i % 2 == 0 ? "/big" : "/slow/x");
  }
  ExpectStillServes();
}

TEST_F(HttpServerTest, ClientThatNeverReadsDelaysNoOther) {
  std::vector<std::unique_ptr<Client>> lazy;
  for (int i = 0; i < 4; ++i) {
    lazy.push_back(std::make_unique<Client>(server_->port()));
    lazy.back()->Get("/big");
  }
  ASSERT_TRUE(Becomes([&] { return handler_.answered_ == 4; }));
  ExpectStillServes();
}

TEST_F(HttpServerTest, SilentClientIsDisconnected) {
  HttpLimits limits;
  limits.silence = std::chrono::milliseconds(100);
  Restart(limits);
  Client nothing(server_->port()), half(server_->port());
  half.Send("GET /quick HTTP/1.1\r\nHos");
  EXPECT_EQ(nothing.ReadAll(), "");
  EXPECT_THAT(half.ReadAll(), Not(HasSubstr("(hangs)")));
  std::string answer;
  do {  // on a busy machine the connection may be closed before the request is sent
    Client idle(server_->port());
    idle.Get("/quick");
    answer = idle.ReadAll();
    ASSERT_THAT(answer, Not(HasSubstr("(hangs)")));
  } while (answer.find("200 OK") == std::string::npos);
}

TEST_F(HttpServerTest, ServesFiftyConcurrentConnections) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(std::make_unique<Client>(server_->port()));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) clients[i]->Get(absl::StrCat("/quick/", i, "/", round));
    for (int i = 0; i < 50; ++i) {
      const std::string said = absl::StrCat("/quick/", i, "/", round, "?");
      EXPECT_THAT(clients[i]->ReadTo(said), HasSubstr(said));
    }
  }
}

TEST_F(HttpServerTest, StreamCarriesEventsUntilItsClientDisconnects) {
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

TEST_F(HttpServerTest, StreamIsClosedAfterAReset) {
  Client client(server_->port());
  client.Get("/stream");
  client.ReadTo("data: first\n\n");
  ASSERT_TRUE(Becomes([&] { return handler_.streams_ == 1; }));
  client.Reset();
  EXPECT_TRUE(Becomes([&] { return handler_.streams_ == 0; }));
}

TEST_F(HttpServerTest, StreamIsClosedIfItsClientNeverReads) {
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

TEST_F(HttpServerTest, StreamHasAHeartbeat) {
  HttpLimits limits;
  limits.heartbeat = std::chrono::milliseconds(10);
  Restart(limits);
  Client client(server_->port());
  client.Get("/stream");
  EXPECT_THAT(client.ReadTo(": here\n\n"), HasSubstr(": here"));
}

TEST_F(HttpServerTest, ServeReturnsWhenTheHandlerEndsIt) {
  handler_.continues_ = false;
  EXPECT_TRUE(Becomes([&] { return serve_returned_.load(); }));
}

TEST_F(HttpServerTest, ErrorForAPortInUseNamesThePort) {
  const auto second = HttpServer::Listen(server_->port(), &handler_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat("127.0.0.1:", server_->port())));
}

TEST_F(HttpServerTest, ListensOnlyOnLoopback) {
  Client client(server_->port());
  client.Get("/now");
  EXPECT_THAT(client.ReadTo("/now?"), HasSubstr("200"));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in other = {};
  other.sin_family = AF_INET;
  other.sin_port = htons(server_->port());
  other.sin_addr.s_addr = htonl(0x7f000002);  // 127.0.0.2, another address of this machine
  EXPECT_NE(connect(fd, reinterpret_cast<sockaddr*>(&other), sizeof other), 0);
  close(fd);
}

TEST_F(HttpServerTest, SurvivesTenThousandGarbageRequests) {
  ForEachSeed(SeedsUpTo(10), [&](uint32_t seed) {
    std::mt19937 random(seed);
    const std::string good = "GET /quick/1?a=b HTTP/1.1\r\nHost: localhost\r\nOrigin: x\r\n\r\n";
    for (int round = 0; round < 1000; ++round) {
      std::string bytes = good;
      if (random() % 4 == 0) {
        bytes.resize(random() % 400);
        for (char& byte : bytes) byte = static_cast<char>(random());
      }
      for (int edits = static_cast<int>(random() % 6); edits > 0 && !bytes.empty(); --edits) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      Client client(server_->port());
      client.Send(bytes);
      if (round % 100 == 0) ExpectStillServes();
    }
    ExpectStillServes();
  });
}

}  // namespace
}  // namespace gmt::viewer
