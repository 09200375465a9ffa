#include "http/server.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "http/testing/client_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Answers with the path, "/later..." when ReplyToAll() is called; "/stream" is a stream. The loop
// runs in its own thread.
class HttpServerTest : public testing::Test, public Handler {
 protected:
  void SetUp() override { Start({}); }
  void TearDown() override { End(); }
  void Start(const Limits& limits) {
    loop_ = MakeEventLoop();
    auto server = Server::Listen(loop_.get(), "127.0.0.1", 0, this, limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    Run();
  }
  void Run() {
    stops_ = false;
    turn_.reset(event_new(
        loop_.get(), -1, EV_PERSIST,
        [](int, short, void* self) { static_cast<HttpServerTest*>(self)->OnTurn(); }, this));
    const timeval every = TimeOf(std::chrono::milliseconds(2));
    event_add(turn_.get(), &every);
    thread_ = std::thread([this] {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
      event_base_dispatch(loop_.get());
    });
  }
  void Restart(const Limits& limits) {
    End();
    Start(limits);
  }
  void End() {
    stops_ = true;
    thread_.join();
    server_.reset();
    turn_.reset();
    loop_.reset();
    waiting_.clear();
    streams_.clear();
  }
  void OnRequest(uint64_t id, Request request) override {
    ++asked_;
    Response response;
    response.type = "text/plain";
    response.body = absl::StrCat("you asked ", request.path, "?", request.query);
    if (request.path == "/big") response.body.assign(64 << 20, 'x');
    if (request.path.rfind("/later", 0) == 0) {
      waiting_.emplace_back(id, std::move(response));
      return;
    }
    if (request.path == "/stream") {
      response.is_stream = true;
      response.type = "text/event-stream";
      response.body = "data: first\n\n";
      streams_.push_back(id);
      open_streams_ = streams_.size();
    }
    server_->Reply(id, std::move(response));
  }
  void OnDisconnect(uint64_t id) override {
    std::erase(streams_, id);
    open_streams_ = streams_.size();
    std::erase_if(waiting_, [&](const auto& one) { return one.first == id; });
    ++left_;
  }
  void OnTurn() {
    server_->Tick();
    if (stops_) event_base_loopbreak(loop_.get());
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(mutex_);
      work.swap(work_);
    }
    for (const auto& one : work) one();
  }
  // Runs `work` in the thread of the loop.
  void Post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  void SendToStreams(const std::string& event) {
    Post([this, event] {
      for (const uint64_t id : std::vector(streams_)) server_->SendToStream(id, event);
    });
  }
  void ReplyToAll() {
    Post([this] {
      for (auto& [id, response] : std::exchange(waiting_, {}))
        server_->Reply(id, std::move(response));
    });
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
    client.Get("/well", "Connection: close\r\n");
    EXPECT_THAT(client.ReadAll(), HasSubstr("you asked /well?"));
  }

  EventOwned<event_base> loop_;
  EventOwned<event> turn_;
  std::unique_ptr<Server> server_;
  std::vector<std::pair<uint64_t, Response>> waiting_;
  std::vector<uint64_t> streams_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<std::function<void()>> work_;
  std::atomic<size_t> asked_ = 0, left_ = 0, open_streams_ = 0;
  std::atomic<bool> stops_ = false;
};

TEST_F(HttpServerTest, AnswersRequests) {
  for (const char* path : {"/now", "/x/1"}) {
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
    client.Get(absl::StrCat("/x/", i));
    EXPECT_THAT(client.ReadTo(absl::StrCat("you asked /x/", i, "?")), HasSubstr("200 OK"));
  }
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Client client(server_->port());
  client.Send(
      "GET /x/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /y/2 HTTP/1.1\r\nHost: a\r\nConnection: "
      "close\r\n\r\n");
  const std::string answers = client.ReadAll();
  EXPECT_LT(answers.find("/x/1"), answers.find("/y/2"));
  EXPECT_NE(answers.find("/y/2"), std::string::npos);
}

TEST_F(HttpServerTest, MethodsOtherThanGetAreRefused) {
  // After some refusals, libevent waits for the client to close.
  Limits limits;
  limits.silence = std::chrono::milliseconds(200);
  Restart(limits);
  for (const char* method :
       {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"}) {
    const std::string answer = Answer(absl::StrCat(
        method, " /x/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"));
    EXPECT_THAT(answer, Not(HasSubstr("200 OK"))) << method;
    EXPECT_THAT(answer, Not(HasSubstr("(hangs)"))) << method;
  }
  EXPECT_EQ(asked_, 0);
}

TEST_F(HttpServerTest, AmbiguousRequestsAreRefused) {
  for (const char* rest :
       {"GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "GET /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET http://evil.example/x HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    EXPECT_THAT(Answer(rest), StartsWith("HTTP/1.1 4")) << rest;
  }
  EXPECT_EQ(asked_, 0);
}

TEST_F(HttpServerTest, TooLongHeadIsRefused) {
  const std::string answer =
      Answer("GET /x HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(answer, Not(HasSubstr("200 OK")));
  ExpectStillServes();
}

TEST_F(HttpServerTest, SurvivesClientsThatDisconnectDuringTheirAnswer) {
  for (int i = 0; i < 50; ++i) {
    Client client(server_->port());
    client.Get(i % 2 == 0 ? "/big" : "/later");
  }
  ExpectStillServes();
}

TEST_F(HttpServerTest, ClientThatNeverReadsDelaysNoOther) {
  std::vector<std::unique_ptr<Client>> lazy;
  for (int i = 0; i < 4; ++i) {
    lazy.push_back(std::make_unique<Client>(server_->port()));
    lazy.back()->Get("/big");
  }
  ASSERT_TRUE(Becomes([&] { return asked_ == 4; }));
  ExpectStillServes();
}

TEST_F(HttpServerTest, SilentClientIsDisconnected) {
  Limits limits;
  limits.silence = std::chrono::milliseconds(100);
  Restart(limits);
  Client nothing(server_->port()), half(server_->port());
  half.Send("GET /x HTTP/1.1\r\nHos");
  EXPECT_EQ(nothing.ReadAll(), "");
  EXPECT_THAT(half.ReadAll(), Not(HasSubstr("(hangs)")));
  std::string answer;
  do {  // on a busy machine the connection may be closed before the request is sent
    Client idle(server_->port());
    idle.Get("/x");
    answer = idle.ReadAll();
    ASSERT_THAT(answer, Not(HasSubstr("(hangs)")));
  } while (answer.find("200 OK") == std::string::npos);
}

TEST_F(HttpServerTest, LaterAnswerArrives) {
  Client client(server_->port());
  client.Get("/later", "Connection: close\r\n");
  ASSERT_TRUE(Becomes([&] { return asked_ == 1; }));
  ExpectStillServes();
  ReplyToAll();
  EXPECT_THAT(client.ReadAll(), HasSubstr("you asked /later?"));
}

TEST_F(HttpServerTest, DisconnectionOfAWaitingClientIsReported) {
  Client closes(server_->port()), resets(server_->port()), stays(server_->port());
  closes.Get("/later/1");
  resets.Get("/later/2");
  stays.Get("/later/3", "Connection: close\r\n");
  ASSERT_TRUE(Becomes([&] { return asked_ == 3; }));
  closes.Close();
  resets.Reset();
  EXPECT_TRUE(Becomes([&] { return left_ == 2; }));
  ReplyToAll();
  EXPECT_THAT(stays.ReadAll(), HasSubstr("/later/3?"));
  EXPECT_EQ(left_, 2);
}

TEST_F(HttpServerTest, AnswerToADisconnectedClientIsDropped) {
  {
    Client client(server_->port());
    client.Get("/later");
    ASSERT_TRUE(Becomes([&] { return asked_ == 1; }));
  }
  ASSERT_TRUE(Becomes([&] { return left_ == 1; }));
  Post([this] {
    EXPECT_FALSE(server_->IsWaiting(1));
    server_->Reply(1, TextResponse(200, "late"));
    server_->SendToStream(1, "later");
  });
  ExpectStillServes();
}

TEST_F(HttpServerTest, EndOfTheServerClosesWaitingClients) {
  Client waits(server_->port()), streams(server_->port());
  waits.Get("/later");
  streams.Get("/stream");
  ASSERT_TRUE(Becomes([&] { return asked_ == 2; }));
  Restart({});
  EXPECT_EQ(waits.ReadAll(), "");
  EXPECT_THAT(streams.ReadAll(), HasSubstr("data: first"));
  EXPECT_EQ(left_, 0);
}

TEST_F(HttpServerTest, TooManyRequestsAtOnceAreRefused) {
  Limits limits;
  limits.max_waiting = 2;
  Restart(limits);
  Client one(server_->port()), two(server_->port()), three(server_->port());
  one.Get("/later/1", "Connection: close\r\n");
  two.Get("/later/2", "Connection: close\r\n");
  ASSERT_TRUE(Becomes([&] { return asked_ == 2; }));
  three.Get("/later/3");
  EXPECT_THAT(three.ReadTo("at once"), StartsWith("HTTP/1.1 503"));
  ReplyToAll();
  EXPECT_THAT(one.ReadAll(), HasSubstr("/later/1?"));
  EXPECT_THAT(two.ReadAll(), HasSubstr("/later/2?"));
  three.Get("/x", "Connection: close\r\n");
  EXPECT_THAT(three.ReadAll(), HasSubstr("you asked /x?"));
}

TEST_F(HttpServerTest, ClientsWaitWhileTheDescriptorsAreUsedUp) {
  Limits limits;
  limits.max_descriptors = 200;
  Restart(limits);
  std::vector<int> used;
  while (used.empty() || used.back() < limits.max_descriptors) used.push_back(dup(STDERR_FILENO));
  Client last(server_->port());  // the one with which the server notices
  last.Get("/last/1");
  EXPECT_THAT(last.ReadTo("/last/1?"), HasSubstr("200 OK"));
  Client waits(server_->port());
  waits.Get("/waits", "Connection: close\r\n");
  last.Get("/last/2");
  EXPECT_THAT(last.ReadTo("/last/2?"), HasSubstr("200 OK"));
  EXPECT_EQ(asked_, 2);
  for (const int fd : used) close(fd);
  EXPECT_THAT(waits.ReadAll(), HasSubstr("you asked /waits?"));
}

TEST_F(HttpServerTest, AcceptsConnectionsOfAGivenSocket) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  ASSERT_EQ(listen(fd, 8), 0);  // at any free port of any address
  End();
  loop_ = MakeEventLoop();
  auto server = Server::Accept(loop_.get(), fd, this, {});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  Run();
  ExpectStillServes();
}

TEST_F(HttpServerTest, ServesFiftyConcurrentConnections) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(std::make_unique<Client>(server_->port()));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) clients[i]->Get(absl::StrCat("/x/", i, "/", round));
    for (int i = 0; i < 50; ++i) {
      const std::string said = absl::StrCat("/x/", i, "/", round, "?");
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
  ASSERT_TRUE(Becomes([&] { return open_streams_ == 2; }));
  SendToStreams("data: second\n\n");
  EXPECT_THAT(one.ReadTo("data: second\n\n"), HasSubstr("second"));
  one.Close();
  EXPECT_TRUE(Becomes([&] { return open_streams_ == 1; }));
  SendToStreams("data: third\n\n");
  EXPECT_THAT(two.ReadTo("data: third\n\n"), HasSubstr("third"));
  two.Close();
  EXPECT_TRUE(Becomes([&] { return open_streams_ == 0; }));
}

TEST_F(HttpServerTest, StreamIsClosedAfterAReset) {
  Client client(server_->port());
  client.Get("/stream");
  client.ReadTo("data: first\n\n");
  ASSERT_TRUE(Becomes([&] { return open_streams_ == 1; }));
  client.Reset();
  EXPECT_TRUE(Becomes([&] { return open_streams_ == 0; }));
}

TEST_F(HttpServerTest, StreamIsClosedIfItsClientNeverReads) {
  Client lazy(server_->port());
  lazy.Get("/stream");
  ASSERT_TRUE(Becomes([&] { return open_streams_ == 1; }));
  const std::string event = "data: " + std::string(1 << 20, 'x') + "\n\n";
  EXPECT_TRUE(Becomes([&] {
    SendToStreams(event);
    return open_streams_ == 0;
  }));
  ExpectStillServes();
}

TEST_F(HttpServerTest, ErrorForAPortInUseNamesThePort) {
  const auto loop = MakeEventLoop();
  const auto second = Server::Listen(loop.get(), "127.0.0.1", server_->port(), this, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat("127.0.0.1:", server_->port())));
  EXPECT_EQ(AddressText("::1", 9400), "[::1]:9400");
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
    const std::string good = "GET /x/1?a=b HTTP/1.1\r\nHost: localhost\r\nOrigin: x\r\n\r\n";
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
}  // namespace gmt::http
