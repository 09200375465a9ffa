// cli/cat_text.h
//
// CatText: a recording's events as lines for people, one event a line, stacks by id (`gpumemtrace
// show F stack/7`).
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_CAT_TEXT_H_
#define GMT_CLI_CAT_TEXT_H_

#include <string>

#include "format/definitions.h"
#include "format/recording_reader.h"

namespace gmt::cli {

// Prints on stdout. `definitions` must outlive it.
class CatText : public format::RecordingVisitor {
 public:
  explicit CatText(const format::Definitions* definitions) : definitions_(*definitions) {}

  absl::Status OnEvents(const format::EventBatch& batch) override;
  absl::Status OnSnapshot(const Snapshot& snapshot) override;

 private:
  std::string Describe(const format::EventBatch& batch, const format::Event& event) const;

  const format::Definitions& definitions_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_CAT_TEXT_H_
