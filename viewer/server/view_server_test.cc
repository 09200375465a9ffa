#include "viewer/server/view_server.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "analysis/testing/event_script.h"
#include "http/testing/client_fixture.h"
#include "viewer/slab/slab.h"

namespace gmt::viewer {
namespace {

using http::Client;
using http::kHangMs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A backend with synthetic files: "good..."; "held...", which blocks until Release(); "bad", which
// fails; "throws", which throws.
class ViewServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / absl::StrCat("gmt_view.", getpid());
    std::filesystem::create_directories(folder_);
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    backend_.load = [this](const std::string& path, const answers::LoadListener& listener) {
      analysis::EventScript begun;
      begun.Alloc(0x1000, 512);
      const analysis::Trace so_far = begun.Build();
      listener({answers::LoadProgress::kReadingEvents, 1, 0.5, so_far});
      return Load(std::filesystem::path(path).filename().string(), path);
    };
    backend_.answer = [this](
                          const std::string& verb,
                          const answers::Recording& recording) -> absl::StatusOr<answers::Answer> {
      ++answers_;
      if (verb == "ledger") return absl::FailedPreconditionError("no driver was asked");
      return answers::Answer{absl::StrCat(verb, " of ", recording.trace().rows.count(), "\nmore\n"),
                             R"({"schema": "x"})"};
    };
    backend_.diff = [](const answers::Recording&,
                       const answers::Recording&) -> absl::StatusOr<answers::Answer> {
      return answers::Answer{"grew\n", "{}"};
    };
  }
  void TearDown() override {
    Release();
    if (server_ != nullptr) {
      server_->Stop();
      thread_.join();
      server_.reset();
    }
    std::filesystem::remove_all(folder_);
  }

  absl::StatusOr<std::unique_ptr<answers::Recording>> Load(const std::string& name,
                                                           const std::string& path) {
    if (name == "bad") return absl::NotFoundError("bad: cannot be read");
    if (name == "throws") throw std::runtime_error("out of luck");
    if (name.rfind("held", 0) == 0) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return released_; });
    }
    analysis::EventScript script;
    for (uint64_t i = 0; i < 100; ++i) {
      script.Alloc(0x1000 * (i + 1), 512 * (i + 1), {"f", "main"});
      if (i % 3 == 0) script.Free(0x1000 * (i + 1));
    }
    return answers::RecordingSoFar(path, script.Build(), script.definitions());
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void View(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder_ / name);
    ViewOptions options;
    options.grace = std::nullopt;
    options.loaded_at_start = loaded_at_start_;
    options.page =
        "<meta http-equiv=\"Content-Security-Policy\" content=\"script-src 'sha256-x'\">"
        "<script>page()</script>";
    auto server = ViewServer::Start(paths, backend_, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Serve(); });
  }
  // Returns head and body of the answer to `rest`, relative to the page's address.
  std::string Get(const std::string& rest) {
    Client client(server_->port());
    const std::string url = server_->url();
    client.Get(url.substr(url.find('/', 7)) + rest, "Connection: close\r\n");
    return client.ReadAll();
  }
  nlohmann::json Json(const std::string& rest) {
    const std::string answer = Get(rest);
    return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
  }
  std::string StateOf(size_t file) { return Json("api/progress")["files"][file]["state"]; }
  void WaitFor(size_t file, const std::string& state) {
    for (int waited = 0; waited < kHangMs && StateOf(file) != state; waited += 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(StateOf(file), state);
  }

  std::filesystem::path folder_;
  Backend backend_;
  std::atomic<int> answers_ = 0;
  size_t loaded_at_start_ = ViewOptions().loaded_at_start;
  std::unique_ptr<ViewServer> server_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
};

constexpr char kWindow[] = "&lane=0&axis=event&from=0&to=100&columns=10";

TEST_F(ViewServerTest, PageAndMetaAreAvailableWhileTheFileLoads) {
  View({"held"});
  EXPECT_THAT(Get(""), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("<script>page()</script>"),
                             HasSubstr("Policy: script-src 'sha256-x'; frame-anc")));
  const auto meta = Json("api/meta");
  EXPECT_EQ(meta["files"][0]["name"], "held");
  EXPECT_TRUE(meta["files"][0]["lanes"].empty());
  EXPECT_EQ(StateOf(0), "loading");
}

TEST_F(ViewServerTest, RanksAreThoseOfRecordingsThatAreReady) {
  View({"good", "held", "bad"});
  WaitFor(0, "ready");
  WaitFor(2, "failed");
  auto ranks = Json("api/ranks");
  ASSERT_EQ(ranks["rows"].size(), 1u);
  EXPECT_EQ(ranks["rows"][0]["file"], 0);
  EXPECT_GT(ranks["rows"][0]["peak_bytes"], 0);
  ASSERT_EQ(ranks["missing"].size(), 2u);
  EXPECT_THAT(ranks["missing"][0]["why"], HasSubstr("held is being loaded"));
  EXPECT_EQ(ranks["missing"][1]["why"], "bad: cannot be read");
  Release();
  WaitFor(1, "ready");
  ranks = Json("api/ranks");
  EXPECT_EQ(ranks["rows"].size(), 2u);
  EXPECT_EQ(ranks["headline"], "2 ranks agree: peak 1.68 MiB");
  EXPECT_THAT(Get("api/ranks?file=0"), StartsWith("HTTP/1.1 400"));
}

TEST_F(ViewServerTest, FurtherRecordingsAreLoadedWhenTheyAreOpened) {
  loaded_at_start_ = 1;
  View({"good", "good2", "good3"});
  WaitFor(0, "ready");
  EXPECT_EQ(StateOf(1), "waiting");
  EXPECT_THAT(Json("api/ranks")["missing"][0]["why"], HasSubstr("not loaded before it is opened"));
  EXPECT_THAT(Get(absl::StrCat("api/curve?file=1", kWindow)), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Get("api/load?file=2"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("api/load?file=2"), StartsWith("HTTP/1.1 200"));  // nothing more to do
  WaitFor(2, "ready");
  EXPECT_EQ(StateOf(1), "waiting");
  EXPECT_EQ(Json("api/ranks")["rows"].size(), 2u);
}

TEST_F(ViewServerTest, ProgressGrowsWhileTheFileIsRead) {
  View({"held"});
  // Half of the file is half of reading, and reading is half of the total work.
  while (Json("api/progress")["files"][0]["what"] != "reading events: 1") usleep(1000);
  EXPECT_EQ(Json("api/progress")["files"][0]["fraction"], 0.25);
  Release();
  WaitFor(0, "ready");
  EXPECT_EQ(Json("api/progress")["files"][0]["fraction"], 1);
}

TEST_F(ViewServerTest, ReportsCurvesSoFarUntilThereIsAnIndex) {
  View({"held"});
  while (Json("api/progress")["files"][0]["what"] != "reading events: 1") usleep(1000);
  const auto so_far = Json("api/progress")["files"][0]["so_far"];
  EXPECT_EQ(so_far["share"], 0.5);
  ASSERT_EQ(so_far["lanes"].size(), 1u);
  EXPECT_EQ(so_far["lanes"][0]["label"], "GPU 0 · driver memory");
  EXPECT_EQ(so_far["lanes"][0]["bytes"], 512);
  EXPECT_EQ(so_far["lanes"][0]["most"], nlohmann::json({512}));
  Release();
  WaitFor(0, "ready");
  EXPECT_FALSE(Json("api/progress")["files"][0].contains("so_far"));
}

TEST_F(ViewServerTest, QueryBeforeItsDataIsLoadedGets503) {
  View({"held"});
  for (const std::string& question :
       {absl::StrCat("api/curve?file=0", kWindow),
        absl::StrCat("api/blocks?file=0&layout=stacked&low=0&high=9&rows=9", kWindow),
        absl::StrCat("api/passing?file=0&text=f", kWindow),
        absl::StrCat("api/predicted?file=0", kWindow), std::string("api/block?file=0&row=0"),
        std::string("api/answer?file=0&name=report")}) {
    EXPECT_THAT(Get(question), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("is being loaded")))
        << question;
  }
  Release();
  WaitFor(0, "ready");
  EXPECT_THAT(Get(absl::StrCat("api/curve?file=0", kWindow)), HasSubstr("GMTV"));
  EXPECT_THAT(Get("api/block?file=0&row=0"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ViewServerTest, MetaDescribesTheFileAfterItIsLoaded) {
  View({"good"});
  WaitFor(0, "ready");
  const auto file = Json("api/meta")["files"][0];
  EXPECT_EQ(file["events"], 134);
  ASSERT_FALSE(file["lanes"].empty());
  EXPECT_EQ(file["lanes"][0]["series"][0], "live");
}

TEST_F(ViewServerTest, ReadsTheFilterInAdditionToTheWindow) {
  View({"good"});
  WaitFor(0, "ready");
  const auto live = [this](const std::string& filter) {
    const std::string answer = Get(absl::StrCat("api/passing?file=0", kWindow, filter));
    const auto slab = slab::Slab::Parse(answer.substr(answer.find("GMTV")));
    return *slab->Values<double>("live");
  };
  const std::vector<double> all = live(""), large = live("&min_size=10000");
  ASSERT_EQ(all.size(), 10);
  EXPECT_GT(all.back(), large.back());
  EXPECT_GT(large.back(), 0);
  EXPECT_EQ(live("&text=f"), all);
  EXPECT_THAT(live("&text=nothing"), testing::Each(0));
  EXPECT_THAT(Get(absl::StrCat("api/passing?file=0&text=/(/", kWindow)),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("no regular expression")));
}

TEST_F(ViewServerTest, PredictionOfWhatCannotBeReplayedIsRefusedWithTheReason) {
  View({"good"});
  WaitFor(0, "ready");
  EXPECT_THAT(Get(absl::StrCat("api/predicted?file=0&settings=x", kWindow)),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("there is nothing to replay")));
}

TEST_F(ViewServerTest, PageOfEventsHasItsPlaceInTheList) {
  View({"good"});
  WaitFor(0, "ready");
  const auto page = Json("api/events?file=0&lane=0&kinds=2&offset=1&limit=2&event=20");
  ASSERT_EQ(page["rows"].size(), 2u);
  EXPECT_EQ(page["rows"][0]["kind"], "free");
  EXPECT_EQ(page["rows"][0]["bytes"], 512 * 4);
  EXPECT_EQ(page["total"], 34);
  EXPECT_EQ(page["position"], 4);
  EXPECT_EQ(page["counts"][0], 100);
  EXPECT_THAT(Get("api/events?file=0&lane=7&kinds=2&limit=2&event=20"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("no lane 7")));
}

TEST_F(ViewServerTest, FailedFileDoesNotAffectTheOthers) {
  View({"bad", "good", "throws"});
  WaitFor(0, "failed");
  WaitFor(1, "ready");
  WaitFor(2, "failed");
  const auto files = Json("api/progress")["files"];
  EXPECT_EQ(files[0]["error"], "bad: cannot be read");
  EXPECT_THAT(std::string(files[2]["error"]), HasSubstr("out of luck"));
  EXPECT_THAT(Get(absl::StrCat("api/curve?file=0", kWindow)),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("bad: cannot be read")));
  EXPECT_THAT(Get(absl::StrCat("api/curve?file=1", kWindow)), StartsWith("HTTP/1.1 200"));
}

TEST_F(ViewServerTest, AnswerIsComputedOnceAndFailsLikeTheCommand) {
  View({"good"});
  WaitFor(0, "ready");
  const auto answer = Json("api/answer?file=0&name=oom");
  EXPECT_EQ(answer["headline"], "oom of 100");
  EXPECT_EQ(answer["text"], "oom of 100\nmore\n");
  EXPECT_EQ(answer["json"]["schema"], "x");
  EXPECT_EQ(Json("api/answer?file=0&name=oom"), answer);
  EXPECT_EQ(answers_, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Get("api/answer?file=0&name=ledger"),
                AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("no driver was asked")));
  }
  EXPECT_EQ(answers_, 2);
}

TEST_F(ViewServerTest, ComparesTwoFilesFromManyThreads) {
  View({"good", "good2"});
  WaitFor(0, "ready");
  WaitFor(1, "ready");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      // In both orders: comparisons must not deadlock.
      const std::string files = i % 2 == 0 ? "file=0&other=1" : "file=1&other=0";
      EXPECT_THAT(Get("api/compare?" + files), HasSubstr("\"headline\":\"grew\""));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Get("api/compare?file=0&other=0"), StartsWith("HTTP/1.1 400"));
}

TEST_F(ViewServerTest, CachedIndexAnswersBeforeTheFileIsRead) {
  // An index is cached only for a file that exists.
  ASSERT_TRUE(std::filesystem::create_directories(folder_ / "cache"));
  {
    FILE* file = fopen((folder_ / "held").c_str(), "w");
    fputs("events", file);
    fclose(file);
  }
  released_ = true;
  View({"held"});
  WaitFor(0, "ready");
  const auto meta = Json("api/meta");
  const auto curve = Get(absl::StrCat("api/curve?file=0", kWindow));
  server_->Stop();
  thread_.join();
  server_.reset();
  released_ = false;
  View({"held"});
  WaitFor(0, "coarse");
  EXPECT_EQ(Json("api/meta"), meta);
  const auto body = [](const std::string& answer) { return answer.substr(answer.find("GMTV")); };
  EXPECT_EQ(body(Get(absl::StrCat("api/curve?file=0", kWindow))), body(curve));
  EXPECT_THAT(Get("api/block?file=0&row=0"), StartsWith("HTTP/1.1 503"));
  Release();
  WaitFor(0, "ready");
  EXPECT_EQ(Json("api/meta"), meta);
}

TEST_F(ViewServerTest, ErrorsNameUnknownQueriesAndParameters) {
  View({"good"});
  WaitFor(0, "ready");
  EXPECT_THAT(Get("api/nothing"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("../api/meta"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("api/meta?x=1"), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("x: this query")));
  EXPECT_THAT(Get("api/curve?file=1"), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("file: 1")));
  EXPECT_THAT(Get("api/answer?file=0&name=rm"), HasSubstr("name: rm is not one of report, oom"));
  EXPECT_THAT(Get("api/answer?file=0&name=oom"), Not(HasSubstr("error")));
}

}  // namespace
}  // namespace gmt::viewer
