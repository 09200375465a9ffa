// cli/cat_text.h
//
// CatText: prints the events of a recording as text, one event per line. Stacks are printed as IDs
// (`gpumemtrace show F stack/7`).
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_CAT_TEXT_H_
#define GMT_CLI_CAT_TEXT_H_

#include <string>

#include "format/definitions.h"
#include "format/recording_reader.h"

namespace gmt::cli {

// Prints to stdout. `definitions` must outlive this object.
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
