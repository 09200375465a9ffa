#include "cli/view_backend.h"

#include <memory>
#include <utility>

#include "cli/load_trace.h"
#include "cli/verb_answers.h"

namespace gmt::cli {
namespace {

viewer::VerbAnswer ToServer(VerbAnswerText answer) {
  return {std::move(answer.text), std::move(answer.json)};
}

AnsweredFile FileOf(const viewer::Examined& recording) {
  return {recording.data.path, recording.data.lacks, recording.data.unnamed, recording.examination,
          recording.categories};
}

absl::StatusOr<std::unique_ptr<viewer::RecordingData>> LoadForPage(
    const std::string& path, const viewer::Backend::Progress& progress) {
  auto loaded = LoadTrace(path, progress);
  if (!loaded.ok()) return loaded.status();
  auto data = std::make_unique<viewer::RecordingData>();
  data->path = path;
  data->trace = std::move((*loaded)->trace);
  data->definitions = std::move((*loaded)->definitions);
  data->lacks = std::move((*loaded)->lacks);
  data->unnamed = std::move((*loaded)->unnamed);
  return data;
}

// Frames have the names that the collector has found so far.
std::unique_ptr<viewer::RecordingData> CompleteForPage(const std::string& path,
                                                       analysis::Trace trace,
                                                       format::Definitions definitions) {
  auto data = std::make_unique<viewer::RecordingData>();
  data->path = path;
  data->lacks = WhatTraceLacks(trace);
  data->trace = std::move(trace);
  data->definitions = std::move(definitions);
  return data;
}

absl::StatusOr<viewer::VerbAnswer> AnswerForPage(const std::string& verb,
                                                 const viewer::Examined& recording) {
  auto answer = AnswerOfVerb(verb, FileOf(recording));
  if (!answer.ok()) return answer.status();
  return ToServer(*std::move(answer));
}

absl::StatusOr<viewer::VerbAnswer> DiffForPage(const viewer::Examined& base,
                                               const viewer::Examined& changed) {
  auto answer = AnswerOfDiff(FileOf(base), FileOf(changed));
  if (!answer.ok()) return answer.status();
  return ToServer(*std::move(answer));
}

}  // namespace

viewer::Backend MakeViewBackend() {
  return {LoadForPage, AnswerForPage, DiffForPage, CompleteForPage};
}

}  // namespace gmt::cli
