// The control socket as clients see it; the test plays the draining thread.

#include "collector/control/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collector/control/client.h"
#include "collector/testing/control_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::control {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kShortSilence(1000);  // for clients that must be dropped

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    folder_ = fs::temp_directory_path() / ("gmt_control_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
    session_ = (folder_ / "1-2-3.session").string();
    StartServer();
    drain_ = std::thread([this] { Drain(); });
  }
  ~ServerTest() override {
    stop_ = true;
    drain_.join();
    server_.reset();
    fs::remove_all(folder_);
  }

  // `silence`: a short one may also expire for the server itself on a busy machine.
  void StartServer(std::chrono::milliseconds silence = std::chrono::milliseconds(kHangMs)) {
    server_.reset();
    ServerOptions options;
    options.session = session_;
    options.hello.set_version(kVersion);
    options.hello.set_pid(42);
    options.silence = silence;
    auto server = Server::Start(options, &mailbox_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Publishes requested copies and answers requests, as a collector's rounds do.
  void Drain() {
    while (!stop_) {
      const auto now =
          static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
      if (const uint32_t kinds = mailbox_.TakeRequestedKinds(now); kinds != 0 && !silent_) {
        Copy copy;
        copy.status.set_t_ns(static_cast<int64_t>(++copies_));
        copy.status.add_heaps()->set_heap(std::string(heap_name_size_, 'h'));
        copy.written = (kinds & Mailbox::kWritten) != 0;
        written_ += copy.written ? 1 : 0;
        if ((kinds & Mailbox::kSites) != 0) copy.sites.emplace(1, SiteRow{0, 1, 5, 1, 1, 5, false});
        mailbox_.Publish(std::move(copy));
      }
      if (mailbox_.has_requests()) {
        for (const Mailbox::QueuedRequest& asked : mailbox_.TakeRequests()) {
          ++carried_;
          Reply reply;
          reply.set_id(asked.request.id());
          reply.mutable_snapshot()->set_name(asked.request.snapshot().name());
          mailbox_.Answer(asked.client, std::move(reply));
        }
      }
      ++rounds_;
      usleep(1000);
    }
  }
  // Waits until the drain has done `rounds` more rounds.
  void LetDrain(uint64_t rounds) {
    for (const uint64_t goal = rounds_ + rounds; rounds_ < goal;) usleep(1000);
  }

  std::unique_ptr<Client> Connect() {
    auto client = Client::Connect(session_);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static Request StatusRequest() {
    Request request;
    request.mutable_status();
    return request;
  }
  static Request SnapshotRequest(const std::string& name) {
    Request request;
    request.mutable_snapshot()->set_name(name);
    return request;
  }
  static std::string Bytes(Request request, uint32_t version = kVersion, uint64_t id = 1) {
    request.set_version(version);
    request.set_id(id);
    return Framed(request.SerializeAsString());
  }

  fs::path folder_;
  std::string session_;
  Mailbox mailbox_;
  std::unique_ptr<Server> server_;
  std::thread drain_;
  std::atomic<bool> stop_{false}, silent_{false};
  std::atomic<uint64_t> copies_{0}, carried_{0}, written_{0}, rounds_{0};
  std::atomic<size_t> heap_name_size_{6};
};

TEST_F(ServerTest, SocketIsAccessibleOnlyToItsUser) {
  struct stat st;
  ASSERT_EQ(stat(SocketPathOf(session_).c_str(), &st), 0);
  EXPECT_TRUE(S_ISSOCK(st.st_mode));
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(ServerTest, StatusComesFromACopyMadeAfterTheRequest) {
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->hello().pid(), 42u);
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto reply = client->Ask(StatusRequest());
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_GT(reply->status().t_ns(), last);
    EXPECT_GT(reply->status().collector_rss_bytes(), 0u);
    last = reply->status().t_ns();
  }
}

TEST_F(ServerTest, NothingIsCopiedWithoutRequests) {
  const auto client = Connect();
  ASSERT_TRUE(client->Ask(StatusRequest()).ok());
  const uint64_t copies = copies_;
  LetDrain(300);
  EXPECT_EQ(copies_, copies);
}

TEST_F(ServerTest, RequestsAreExecutedInOrder) {
  const auto client = Connect();
  for (int i = 0; i < 100; ++i) {
    const auto reply = client->Ask(SnapshotRequest(std::to_string(i)));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->snapshot().name(), std::to_string(i));
  }
  EXPECT_EQ(carried_, 100u);
}

TEST_F(ServerTest, SubscriptionContinuesUntilTheClientLeaves) {
  const auto client = Connect();
  Subscribe subscription;
  subscription.set_what(Subscribe::TOP);
  subscription.set_interval_ms(100);
  int turns = 0;
  EXPECT_TRUE(client
                  ->Subscribe(subscription,
                              [&](const Reply& reply) {
                                EXPECT_EQ(reply.top().sites_size(), 1);
                                return ++turns < 4;
                              })
                  .ok());
  EXPECT_EQ(turns, 4);
}

TEST_F(ServerTest, OnlyRecordingSubscribersCauseAWriteAndAreNotifiedAfterIt) {
  const auto status = Connect();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(status->Ask(StatusRequest()).ok());
  EXPECT_EQ(written_, 0u);
  const auto reader = Connect();
  Subscribe subscription;
  subscription.set_what(Subscribe::RECORDING);
  subscription.set_interval_ms(100);
  int turns = 0;
  EXPECT_TRUE(reader
                  ->Subscribe(subscription,
                              [&](const Reply& reply) {
                                EXPECT_TRUE(reply.has_status());
                                EXPECT_GT(written_, static_cast<uint64_t>(turns));
                                return ++turns < 3;
                              })
                  .ok());
}

TEST_F(ServerTest, SubscriptionChangedImmediatelyIsTheOneServed) {
  Request first, second;
  first.mutable_subscribe()->set_what(Subscribe::STATUS);
  for (const auto what : {Subscribe::TOP, Subscribe::LEAKS, Subscribe::RECORDING}) {
    second.mutable_subscribe()->set_what(what);
    RawClient raw(session_);
    std::string hello;
    ASSERT_TRUE(raw.Read(&hello));
    raw.Send(Bytes(first, kVersion, 1) + Bytes(second, kVersion, 2));
    Reply reply;
    do {
      reply = raw.ReadReply();
      ASSERT_THAT(reply.error(), Not(HasSubstr("(closed)")));
    } while (reply.id() != 2);
  }
  const auto client = Connect();
  EXPECT_TRUE(client->Ask(StatusRequest()).ok()) << "the server still works";
}

TEST_F(ServerTest, SubscriptionWithoutACopyReportsBusy) {
  const auto client = Connect();
  Subscribe subscription;
  subscription.set_what(Subscribe::LEAKS);
  std::string error;
  EXPECT_TRUE(client
                  ->Subscribe(subscription,
                              [&](const Reply& reply) {
                                error = reply.error();
                                return false;
                              })
                  .ok());
  EXPECT_THAT(error, HasSubstr("busy"));
}

TEST_F(ServerTest, LastCopyIsServedWhileTheDrainIsBusy) {
  const auto client = Connect();
  const auto first = client->Ask(StatusRequest());
  ASSERT_TRUE(first.ok());
  silent_ = true;
  LetDrain(2);  // one round may have begun before
  const auto second = client->Ask(StatusRequest());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->status().t_ns(), first->status().t_ns());
}

TEST_F(ServerTest, BusyIsReportedIfTheDrainHasNeverAnswered) {
  silent_ = true;
  LetDrain(2);
  const auto client = Connect();
  const auto reply = client->Ask(StatusRequest());
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("busy"));
}

TEST_F(ServerTest, OtherVersionIsRefusedWithOursAndDisconnected) {
  RawClient client(session_);
  std::string hello;
  ASSERT_TRUE(client.Read(&hello));
  client.Send(Bytes(StatusRequest(), 99));
  const Reply reply = client.ReadReply();
  EXPECT_EQ(reply.version(), kVersion);
  EXPECT_THAT(reply.error(), HasSubstr("version 99"));
  EXPECT_FALSE(client.Read(&hello));
}

TEST_F(ServerTest, RequestAfterTheEndIsRefusedWithTheReason) {
  mailbox_.Close("the recording is being completed");
  const auto client = Connect();
  const auto reply = client->Ask(SnapshotRequest("late"));
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("being completed"));
}

TEST_F(ServerTest, EndOfTheServerClosesClientsAndRemovesItsName) {
  const auto client = Connect();
  server_.reset();
  EXPECT_TRUE(client->WaitForEnd(std::chrono::milliseconds(kHangMs)).ok());
  EXPECT_FALSE(fs::exists(SocketPathOf(session_)));
  EXPECT_TRUE(absl::IsNotFound(Client::Connect(session_).status()));
}

TEST_F(ServerTest, RemovedNameIsFreeForTheNextServerAndClientsStay) {
  const auto client = Connect();
  const std::unique_ptr<Server> former = std::move(server_);
  former->RemoveName();
  EXPECT_FALSE(fs::exists(SocketPathOf(session_)));
  EXPECT_TRUE(client->Ask(StatusRequest()).ok());
  StartServer();
  former->RemoveName();
  EXPECT_TRUE(fs::exists(SocketPathOf(session_)));
}

TEST_F(ServerTest, EndOfAServerLeavesTheNameToTheNext) {
  server_->RemoveName();
  std::unique_ptr<Server> former = std::move(server_);
  StartServer();
  former.reset();
  EXPECT_TRUE(Connect()->Ask(StatusRequest()).ok());
}

TEST_F(ServerTest, SocketLeftByAKilledCollectorIsReplaced) {
  server_.reset();
  const auto left = ListenAt(SocketPathOf(session_), 1);
  ASSERT_TRUE(left.ok());
  close(*left);  // the name remains
  EXPECT_TRUE(absl::IsNotFound(Client::Connect(session_).status()));
  StartServer();
  EXPECT_TRUE(Connect()->Ask(StatusRequest()).ok());
}

TEST_F(ServerTest, FileOtherThanASocketIsNotReplaced) {
  const std::string path = (folder_ / "precious").string();
  std::filesystem::create_directory(path);
  EXPECT_FALSE(ListenAt(path, 1).ok());
  EXPECT_TRUE(fs::is_directory(path));
}

TEST_F(ServerTest, PathMayBeLongerThanASocketAddress) {
  server_.reset();
  fs::path deep = folder_;
  for (int i = 0; i < 5; ++i) deep /= std::string(40, 'd');
  fs::create_directories(deep);
  session_ = (deep / "1-2-3.session").string();
  StartServer();
  EXPECT_TRUE(Connect()->Ask(StatusRequest()).ok());
}

// ---- Hostile clients ----------------------------------------------------------------------------

TEST_F(ServerTest, GarbagePartialMessagesAndManyConnectionsDelayNoOthers) {
  ForEachSeed({1, 688088039}, [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::unique_ptr<RawClient>> crowd;
    for (int i = 0; i < 300; ++i) {
      crowd.push_back(std::make_unique<RawClient>(session_));
      std::string bytes = Bytes(random() % 2 == 0 ? StatusRequest() : SnapshotRequest("x"));
      switch (random() % 5) {
        case 0:  // garbage
          for (char& c : bytes) c = static_cast<char>(random());
          break;
        case 1:  // half a message
          bytes.resize(bytes.size() / 2);
          break;
        case 2:  // a length without an end
          bytes = std::string("\xff\xff\xff\xff", 4) + bytes;
          break;
        case 3:  // a valid one, damaged
          bytes[kLengthBytes + random() % (bytes.size() - kLengthBytes)] ^= 0x55;
          break;
        default:
          break;
      }
      crowd.back()->Send(bytes);
      if (random() % 3 == 0) crowd.back()->Leave();
    }
    const auto client = Connect();
    ASSERT_NE(client, nullptr);
    EXPECT_TRUE(client->Ask(StatusRequest()).ok());
    EXPECT_TRUE(client->Ask(SnapshotRequest("after")).ok());
  });
}

TEST_F(ServerTest, ClientThatNeverReadsIsDropped) {
  StartServer(kShortSilence);
  heap_name_size_ = 4000;
  RawClient deaf(session_);
  for (int i = 0; i < 2000; ++i) deaf.Send(Bytes(StatusRequest()));
  const auto client = Connect();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client->Ask(StatusRequest()).ok());
  // The client reads nothing, and is closed nevertheless.
  pollfd polled = {deaf.fd(), 0, 0};
  EXPECT_EQ(poll(&polled, 1, kHangMs), 1);
  EXPECT_TRUE(client->Ask(StatusRequest()).ok());
}

TEST_F(ServerTest, FloodOfRequestsIsBoundedAndTheDrainContinues) {
  RawClient flood(session_);
  const std::string request = Bytes(SnapshotRequest("flood"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += request;
  std::thread sender([&] {
    for (int i = 0; i < 50; ++i) flood.Send(many);
  });
  const auto client = Connect();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client->Ask(StatusRequest()).ok());
  sender.join();
  EXPECT_GT(copies_, 0u);
}

TEST_F(ServerTest, SixtyFourStatusRequestsWaitAndFurtherOnesAreRefused) {
  silent_ = true;
  RawClient hasty(session_);
  std::string message;
  ASSERT_TRUE(hasty.Read(&message));
  std::string many;
  for (uint64_t id = 1; id <= 100; ++id) many += Bytes(StatusRequest(), kVersion, id);
  hasty.Send(many);
  for (uint64_t id = 65; id <= 100; ++id) {
    const Reply refused = hasty.ReadReply();
    EXPECT_EQ(refused.id(), id);
    EXPECT_THAT(refused.error(), HasSubstr("too many requests wait already"));
  }
  silent_ = false;
  EXPECT_TRUE(Connect()->Ask(StatusRequest()).ok());  // its copy serves the others, too
  std::set<uint64_t> answered;
  for (int i = 0; i < 64; ++i) {
    const Reply reply = hasty.ReadReply();
    EXPECT_THAT(reply.error(), Not(HasSubstr("too many")));
    answered.insert(reply.id());
  }
  EXPECT_EQ(answered.size(), 64u);
  EXPECT_EQ(*answered.rbegin(), 64u);
  hasty.Send(Bytes(StatusRequest(), kVersion, 101));
  EXPECT_TRUE(hasty.ReadReply().has_status()) << "and it may send requests again";
}

// Checks how much the server reads, not how fast: it disconnects the client with its unread
// requests.
TEST_F(ServerTest, FloodOfRequestsWithoutReadingRepliesIsNotRead) {
  StartServer(kShortSilence);
  silent_ = true;
  RawClient deaf(session_);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += Bytes(StatusRequest());
  const timeval hang = {kHangMs / 1000, 0};
  setsockopt(deaf.fd(), SOL_SOCKET, SO_SNDTIMEO, &hang, sizeof hang);
  size_t taken = 0;
  ssize_t sent = 0;
  while (taken < size_t{64} << 20 &&
         (sent = send(deaf.fd(), many.data(), many.size(), MSG_NOSIGNAL)) > 0) {
    taken += static_cast<size_t>(sent);
  }
  EXPECT_EQ(sent, -1);
  EXPECT_NE(errno, EAGAIN) << "it was not closed";
  EXPECT_LT(taken, size_t{4} << 20);
  silent_ = false;
  EXPECT_TRUE(Connect()->Ask(StatusRequest()).ok());
}

TEST_F(ServerTest, NewClientReplacesTheQuietestOne) {
  std::vector<std::unique_ptr<RawClient>> quiet;
  for (int i = 0; i < 40; ++i) {
    quiet.push_back(std::make_unique<RawClient>(session_));
    std::string hello;
    EXPECT_TRUE(quiet.back()->Read(&hello)) << i;
  }
  std::string message;
  EXPECT_FALSE(quiet.front()->Read(&message));
}

// ---- Collectors that are stopped ----------------------------------------------------------------

class StoppedCollectorTest : public ServerTest {
 protected:
  using Milliseconds = std::chrono::milliseconds;

  StoppedCollectorTest() {
    server_.reset();
    const auto fd = ListenAt(SocketPathOf(session_), 1);
    EXPECT_TRUE(fd.ok()) << fd.status();
    listens_ = fd.value_or(-1);
  }
  ~StoppedCollectorTest() override {
    for (const int fd : crowd_) close(fd);
    close(listens_);
  }

  // Connects until the backlog is full.
  void FillTheQueue() {
    absl::StatusOr<int> fd;
    while ((fd = ConnectTo(SocketPathOf(session_), Milliseconds(1))).ok() && crowd_.size() < 10)
      crowd_.push_back(*fd);
    ASSERT_TRUE(absl::IsDeadlineExceeded(fd.status())) << fd.status();
    ASSERT_FALSE(crowd_.empty());
  }
  // Accepts the first waiting client and sends a collector's hello.
  int AcceptClient() {
    int fd;
    while ((fd = accept(listens_, nullptr, nullptr)) < 0 && errno == EAGAIN) usleep(1000);
    Hello hello;
    hello.set_version(kVersion);
    const std::string words = Framed(hello.SerializeAsString());
    EXPECT_EQ(send(fd, words.data(), words.size(), MSG_NOSIGNAL), ssize_t(words.size()));
    return fd;
  }

  int listens_ = -1;
  std::vector<int> crowd_;
};

TEST_F(StoppedCollectorTest, FullBacklogIsReported) {
  FillTheQueue();
  const absl::Status status = Client::Connect(session_, Milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("does not answer, and its connection backlog is full"));
}

TEST_F(StoppedCollectorTest, SignalsDoNotShortenThePatience) {
  FillTheQueue();
  signal(SIGUSR1, [](int) {});
  std::atomic<bool> over{false};
  std::thread disturber([&, whom = pthread_self()] {
    for (; !over; usleep(5000)) pthread_kill(whom, SIGUSR1);
  });
  const auto begun = std::chrono::steady_clock::now();
  const absl::Status status = Client::Connect(session_, Milliseconds(100)).status();
  over = true;
  disturber.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_GE(std::chrono::steady_clock::now() - begun, Milliseconds(100));
}

TEST_F(StoppedCollectorTest, WaitingClientIsAcceptedWhenTheCollectorContinues) {
  FillTheQueue();
  std::thread collector([this] {
    usleep(20'000);  // so that the client usually waits; the test holds without it, too
    for (size_t i = 0; i <= crowd_.size(); ++i) close(AcceptClient());
  });
  EXPECT_TRUE(Client::Connect(session_, Milliseconds(kHangMs)).ok());
  collector.join();
}

TEST_F(StoppedCollectorTest, RequestsThatCannotBeSentTimeOut) {
  absl::StatusOr<std::unique_ptr<Client>> client;
  do {  // the same patience limits each send; on a busy machine it may be too short for Connect()
    std::thread collector([this] { crowd_.push_back(AcceptClient()); });
    client = Client::Connect(session_, Milliseconds(200));
    collector.join();
  } while (absl::IsDeadlineExceeded(client.status()));
  ASSERT_TRUE(client.ok()) << client.status();
  for (int i = 0; i < 8; ++i) {  // more than the kernel buffers
    const auto reply = (*client)->Ask(SnapshotRequest(std::string(60'000, 's')), Milliseconds(1));
    EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status())) << reply.status();
  }
}

}  // namespace
}  // namespace gmt::control
