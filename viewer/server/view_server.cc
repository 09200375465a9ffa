#include "viewer/server/view_server.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "format/version.h"
#include "viewer/html/content_policy.h"
#include "viewer/questions/questions_json.h"
#include "viewer/served/tile_slabs.h"
#include "viewer/server/error_response.h"
#include "viewer/server/guard.h"
#include "viewer/server/lifetime.h"
#include "viewer/server/read_query.h"
#include "viewer/server/served_files.h"

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;
using Cost = QueryHandler::Cost;
using http::Request;
using http::Response;

constexpr int kProtocol = 1;
constexpr char kSlabType[] = "application/octet-stream";

int StatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return 500;
    default:
      return 400;
  }
}

Response Refusal(const absl::Status& status) {
  return ErrorResponse(StatusOf(status), status.message());
}

Response Body(absl::StatusOr<std::string> body, const char* type = "application/json") {
  if (!body.ok()) return Refusal(body.status());
  Response response;
  response.type = type;
  response.body = *std::move(body);
  return response;
}

// Writes a successful result to *body with `write`.
template <typename Result, typename Write>
absl::Status Put(const absl::StatusOr<Result>& result, Write write, std::string* body) {
  if (!result.ok()) return result.status();
  *body = write(*result);
  return absl::OkStatus();
}

template <typename Result>
std::string JsonText(const Result& result) {
  return Dump(ToJson(result));
}

class Server : public ViewServer, public QueryHandler {
 public:
  Server(const Backend& backend, const ViewOptions& options)
      : options_(options),
        policy_(PolicyHeader(options.page)),
        token_(MakeToken()),
        guard_(token_),
        lifetime_(options.grace),
        files_(backend, [this] { SendProgress(); }) {}

  absl::Status Begin(const std::vector<std::string>& paths, std::vector<LiveProcess> processes);

  std::string url() const override {
    return absl::StrCat("http://127.0.0.1:", http_->port(), "/", token_, "/");
  }
  uint16_t port() const override { return http_->port(); }
  void Serve() override { http_->Serve(); }
  void Stop() override { http_->Stop(); }

  Cost CostOf(const Request& request) const override;
  Response Answer(const Request& request) override;
  void StreamsChanged(size_t streams) override {
    lifetime_.PagesOpen(streams, Lifetime::Clock::now());
  }
  bool ShouldContinue() override { return !lifetime_.IsOver(Lifetime::Clock::now()); }

 private:
  using Method = Response (Server::*)(Parameters&);
  struct Question {
    Cost cost;
    Method method;
  };
  static const std::map<std::string, Question, std::less<>>& Questions();
  // Returns "curve" for "/api/curve", and "" if it is not a query.
  static std::string_view NameOfQuestion(std::string_view rest);

  Response Page() const;
  Response Meta(Parameters& parameters);
  Response Progress(Parameters& parameters);
  Response Alive(Parameters& parameters);
  Response Curve(Parameters& parameters);
  Response Passing(Parameters& parameters);
  Response Predicted(Parameters& parameters);
  Response Blocks(Parameters& parameters);
  Response Block(Parameters& parameters);
  Response Stacks(Parameters& parameters);
  Response Source(Parameters& parameters);
  Response Flame(Parameters& parameters);
  Response Table(Parameters& parameters);
  Response Range(Parameters& parameters);
  Response Segments(Parameters& parameters);
  Response Events(Parameters& parameters);
  Response Find(Parameters& parameters);
  Response Answers(Parameters& parameters);
  Response Compare(Parameters& parameters);
  Response Moved(Parameters& parameters);
  Response Ranks(Parameters& parameters);
  Response Load(Parameters& parameters);

  size_t NumberOf(Parameters& parameters, const char* name = "file") {
    return parameters.Integer(name, 0, files_.count() - 1);
  }
  std::shared_ptr<ServedRecording> File(Parameters& parameters) {
    const size_t number = NumberOf(parameters);
    if (files_.live(number) == nullptr) return files_.Now(number);
    return files_.Now(number, parameters.OptionalInteger("window", 0, UINT32_MAX));
  }
  Response Ask(Parameters& parameters, ServedRecording& file,
               const std::function<absl::Status(viewer::Questions&, std::string*)>& ask,
               const char* type = "application/json");
  // The same for a query about the columns of a timeline.
  Response AskColumns(
      Parameters& parameters, ServedRecording& file, const Window& window,
      const std::function<absl::Status(viewer::Questions&, const ColumnPeaks&, std::string*)>& ask);
  std::string ProgressText() const;
  void SendProgress() { http_->SendToStreams(absl::StrCat("data: ", ProgressText(), "\n\n")); }

  const ViewOptions options_;
  const std::string policy_, token_;
  const Guard guard_;
  Lifetime lifetime_;  // used only in the serving thread
  std::unique_ptr<QueryServer> http_;
  ServedFiles files_;  // calls SendProgress() until it is destroyed, so before http_
};

absl::Status Server::Begin(const std::vector<std::string>& paths,
                           std::vector<LiveProcess> processes) {
  if (token_.empty()) return absl::UnavailableError("the kernel provides no random numbers");
  auto http = QueryServer::Listen(options_.port, this, options_.limits);
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  files_.Open(paths, std::move(processes), options_.window_rows, options_.loaded_at_start);
  return absl::OkStatus();
}

// ---- Dispatch ----------------------------------------------------------------------------------

const std::map<std::string, Server::Question, std::less<>>& Server::Questions() {
  static const auto* questions = new std::map<std::string, Question, std::less<>>{
      {"meta", {Cost::kQuick, &Server::Meta}},
      {"progress", {Cost::kNone, &Server::Progress}},
      {"alive", {Cost::kNone, &Server::Alive}},
      {"curve", {Cost::kQuick, &Server::Curve}},
      {"passing", {Cost::kSlow, &Server::Passing}},
      {"predicted", {Cost::kSlow, &Server::Predicted}},
      {"blocks", {Cost::kQuick, &Server::Blocks}},
      {"block", {Cost::kSlow, &Server::Block}},
      {"stacks", {Cost::kSlow, &Server::Stacks}},
      {"source", {Cost::kSlow, &Server::Source}},
      {"flame", {Cost::kSlow, &Server::Flame}},
      {"table", {Cost::kSlow, &Server::Table}},
      {"range", {Cost::kSlow, &Server::Range}},
      {"segments", {Cost::kSlow, &Server::Segments}},
      {"events", {Cost::kSlow, &Server::Events}},
      {"find", {Cost::kSlow, &Server::Find}},
      {"answer", {Cost::kSlow, &Server::Answers}},
      {"compare", {Cost::kSlow, &Server::Compare}},
      {"moved", {Cost::kQuick, &Server::Moved}},
      {"ranks", {Cost::kSlow, &Server::Ranks}},
      {"load", {Cost::kQuick, &Server::Load}},
  };
  return *questions;
}

std::string_view Server::NameOfQuestion(std::string_view rest) {
  absl::string_view name(rest.data(), rest.size());
  return absl::ConsumePrefix(&name, "/api/") ? std::string_view(name.data(), name.size())
                                             : std::string_view();
}

Cost Server::CostOf(const Request& request) const {
  std::string rest;
  if (guard_.Refuse(request, &rest)) return Cost::kNone;
  const auto found = Questions().find(NameOfQuestion(rest));
  return found == Questions().end() ? Cost::kNone : found->second.cost;
}

Response Server::Answer(const Request& request) {
  std::string rest;
  if (auto refusal = guard_.Refuse(request, &rest)) return *std::move(refusal);
  if (rest == "/") return Page();
  if (rest.empty()) {
    Response response = ErrorResponse(308, "the page's address ends in '/'");
    response.headers.emplace_back("Location", absl::StrCat("/", token_, "/"));
    return response;
  }
  const auto found = Questions().find(NameOfQuestion(rest));
  if (found == Questions().end()) return ErrorResponse(404, "no such query");
  Parameters parameters(request.query);
  return (this->*found->second.method)(parameters);
}

Response Server::Page() const {
  Response response;
  response.type = "text/html; charset=utf-8";
  response.body = options_.page;
  response.headers.emplace_back("Content-Security-Policy", policy_);
  return response;
}

// ---- Meta and progress -------------------------------------------------------------------------

Response Server::Meta(Parameters& parameters) {
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  return Body(Dump(Json{{"protocol", kProtocol},
                        {"version", std::string(format::ToolVersion())},
                        {"origin", "server"},
                        {"files", files_.meta()}}));
}

std::string Server::ProgressText() const { return Dump(Json{{"files", files_.progress()}}); }

Response Server::Progress(Parameters& parameters) {
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  return Body(ProgressText());
}

Response Server::Alive(Parameters& parameters) {
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  Response response;
  response.type = "text/event-stream";
  response.body = absl::StrCat("retry: 1000\ndata: ", ProgressText(), "\n\n");
  response.is_stream = true;
  return response;
}

// ---- Timelines ---------------------------------------------------------------------------------

Response Server::Curve(Parameters& parameters) {
  const std::shared_ptr<const ServedRecording> file = File(parameters);
  const Window window = ReadWindow(parameters);
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  const ViewIndex* index = file->index();
  if (index == nullptr) return Refusal(file->WhyNot());
  const auto tile = index->SelectCurve(window);
  return tile.ok() ? Body(CurveSlab(*tile), kSlabType) : Refusal(tile.status());
}

Response Server::Blocks(Parameters& parameters) {
  const std::shared_ptr<const ServedRecording> file = File(parameters);
  const BlockQuery query = ReadBlockQuery(parameters);
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  const ViewIndex* index = file->index();
  if (index == nullptr) return Refusal(file->WhyNot());
  const auto tile = index->SelectBlocks(query);
  return tile.ok() ? Body(BlockSlab(*tile), kSlabType) : Refusal(tile.status());
}

// ---- Queries ------------------------------------------------------------------------------------

Response Server::Ask(Parameters& parameters, ServedRecording& file,
                     const std::function<absl::Status(viewer::Questions&, std::string*)>& ask,
                     const char* type) {
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  std::string body;
  const absl::Status status =
      file.Ask([&](viewer::Questions& questions) { return ask(questions, &body); });
  return status.ok() ? Body(std::move(body), type) : Refusal(status);
}

Response Server::AskColumns(
    Parameters& parameters, ServedRecording& file, const Window& window,
    const std::function<absl::Status(viewer::Questions&, const ColumnPeaks&, std::string*)>& ask) {
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  const ViewIndex* index = file.index();
  if (index == nullptr) return Refusal(file.WhyNot());
  const auto columns = index->SelectPeaks(window);
  if (!columns.ok()) return Refusal(columns.status());
  return Ask(
      parameters, file,
      [&](viewer::Questions& questions, std::string* body) {
        return ask(questions, *columns, body);
      },
      kSlabType);
}

Response Server::Passing(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const Window window = ReadWindow(parameters);
  const Filter filter = ReadFilter(parameters);
  return AskColumns(
      parameters, *file, window,
      [&](viewer::Questions& questions, const ColumnPeaks& columns, std::string* body) {
        return Put(questions.AnswerPassing(window.lane, filter, columns), PassingSlab, body);
      });
}

Response Server::Predicted(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const Window window = ReadWindow(parameters);
  const std::string settings = parameters.Text("settings");
  return AskColumns(
      parameters, *file, window,
      [&](viewer::Questions& questions, const ColumnPeaks& columns, std::string* body) {
        return Put(questions.AnswerPredicted(window.lane, settings, columns), PredictedSlab, body);
      });
}

Response Server::Block(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const auto row = static_cast<uint32_t>(parameters.Integer("row", 0, UINT32_MAX));
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerBlock(row), JsonText<BlockDetails>, body);
  });
}

Response Server::Stacks(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const std::vector<uint32_t> ids = parameters.Integers("ids", UINT32_MAX, kMaxStacks);
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerStacks(ids), JsonText<std::vector<StackInfo>>, body);
  });
}

Response Server::Source(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const std::string path = parameters.Text("path");
  const auto line = static_cast<uint32_t>(parameters.Integer("line", 0, UINT32_MAX));
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerSource(path, line), JsonText<SourceText>, body);
  });
}

Response Server::Flame(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const FlameQuery query = ReadFlameQuery(parameters);
  const auto other = ReadOtherSide(parameters, files_.count());
  if (!other || other->file == NumberOf(parameters)) {
    return Ask(
        parameters, *file,
        [&](viewer::Questions& questions, std::string* body) {
          return Put(other ? questions.AnswerFlame(query, questions, other->lane, other->to)
                           : questions.AnswerFlame(query),
                     FlameSlab, body);
        },
        kSlabType);
  }
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  std::string body;
  const std::shared_ptr<ServedRecording> other_file = files_.Now(other->file, other->window);
  const absl::Status status = ServedRecording::AskBoth(
      *file, *other_file, [&](viewer::Questions& one, viewer::Questions& two) {
        return Put(one.AnswerFlame(query, two, other->lane, other->to), FlameSlab, &body);
      });
  return status.ok() ? Body(std::move(body), kSlabType) : Refusal(status);
}

Response Server::Table(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const TableQuery query = ReadTableQuery(parameters);
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerTable(query), JsonText<viewer::Table>, body);
  });
}

Response Server::Range(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const RangeQuery query = ReadRangeQuery(parameters);
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerRange(query, file->index()), JsonText<RangeTable>, body);
  });
}

Response Server::Segments(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const auto lane = static_cast<uint32_t>(parameters.Integer("lane", 0, UINT32_MAX));
  const auto event = static_cast<uint32_t>(parameters.Integer("event", 0, UINT32_MAX));
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerSegments(lane, event), JsonText<viewer::Segments>, body);
  });
}

Response Server::Events(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const EventsQuery query = ReadEventsQuery(parameters);
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerEvents(query), JsonText<EventPage>, body);
  });
}

Response Server::Find(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const Scope scope = ReadScope(parameters);
  const auto after = static_cast<uint32_t>(parameters.IntegerOr("after", 0, UINT32_MAX, kNoRow));
  const auto limit = static_cast<uint32_t>(parameters.Integer("limit", 1, kMaxFound));
  return Ask(parameters, *file, [&](viewer::Questions& questions, std::string* body) {
    return Put(questions.AnswerFind(scope, after, limit), JsonText<Found>, body);
  });
}

Response Server::Answers(Parameters& parameters) {
  static const std::vector<std::string> kVerbs = {"report", "oom", "leaks", "ledger", "frag"};
  const std::shared_ptr<ServedRecording> file = File(parameters);
  const std::string& verb = kVerbs[parameters.Choice("name", kVerbs)];
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  return Body(file->AnswerOf(verb));
}

Response Server::Compare(Parameters& parameters) {
  const std::shared_ptr<ServedRecording> base = File(parameters);
  const size_t other = NumberOf(parameters, "other");
  if (other == NumberOf(parameters)) parameters.Refuse("other: is the same file");
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  const std::shared_ptr<ServedRecording> changed = files_.Now(other);
  return Body(ServedRecording::CompareOf(*base, *changed));
}

Response Server::Moved(Parameters& parameters) {
  const LiveRecording* live = files_.live(NumberOf(parameters));
  const auto from = static_cast<uint32_t>(parameters.Integer("from", 0, UINT32_MAX));
  const auto to = static_cast<uint32_t>(parameters.Integer("to", 0, UINT32_MAX));
  const auto row = static_cast<uint32_t>(parameters.Integer("row", 0, UINT32_MAX));
  if (live == nullptr) parameters.Refuse("file: is complete; its rows are never renumbered");
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  return Body(Dump(Json{{"row", live->RowIn(to, from, row)}}));
}

Response Server::Ranks(Parameters& parameters) {
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  return Body(files_.Ranks());
}

Response Server::Load(Parameters& parameters) {
  const size_t number = NumberOf(parameters);
  if (absl::Status status = parameters.Finish(); !status.ok()) return Refusal(status);
  files_.Load(number);
  return Body("{}");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ViewServer>> ViewServer::Start(const std::vector<std::string>& paths,
                                                              const Backend& backend,
                                                              const ViewOptions& options) {
  if (paths.empty()) return absl::InvalidArgumentError("no file was given");
  auto server = std::make_unique<Server>(backend, options);
  if (absl::Status status = server->Begin(paths, {}); !status.ok()) return status;
  return server;
}

absl::StatusOr<std::unique_ptr<ViewServer>> ViewServer::StartLive(
    std::vector<LiveProcess> processes, const Backend& backend, const ViewOptions& options) {
  if (processes.empty()) return absl::InvalidArgumentError("no process was given");
  auto server = std::make_unique<Server>(backend, options);
  if (absl::Status status = server->Begin({}, std::move(processes)); !status.ok()) return status;
  return server;
}

}  // namespace gmt::viewer
