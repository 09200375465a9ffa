// viewer/html/standalone_file.h
//
// The input of a standalone file: a recording, the results of its analysis, and the answers as the
// commands print them.
//
// Ownership: everything pointed to must outlive it. Thread safety: plain data.

#ifndef GMT_VIEWER_HTML_STANDALONE_FILE_H_
#define GMT_VIEWER_HTML_STANDALONE_FILE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "answers/recording.h"
#include "viewer/index/view_index.h"
#include "viewer/questions/questions.h"

namespace gmt::viewer {

struct StandaloneFile {
  const answers::Recording* recording = nullptr;
  const ViewIndex* index = nullptr;  // kReady
  Questions* questions = nullptr;
  nlohmann::ordered_json meta;                  // FileMeta, without `omitted`
  std::vector<nlohmann::ordered_json> answers;  // Answer of protocol.ts
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_STANDALONE_FILE_H_
