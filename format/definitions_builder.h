// format/definitions_builder.h
//
// DefinitionsBuilder: assigns ids to the strings, modules, frames and stacks of a recording and
// collects new ones in chunks of definitions (format/definitions.h reads them).
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_DEFINITIONS_BUILDER_H_
#define GMT_FORMAT_DEFINITIONS_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "format/definitions.h"
#include "format/messages_fwd.h"

namespace gmt::format {

// Assigns equal values equal ids, densely from 1, and collects the values that are new since the
// last TakeNew().
class DefinitionsBuilder {
 public:
  DefinitionsBuilder();
  ~DefinitionsBuilder();
  DefinitionsBuilder(const DefinitionsBuilder& other);
  DefinitionsBuilder(DefinitionsBuilder&&) noexcept;
  DefinitionsBuilder& operator=(const DefinitionsBuilder& other);
  DefinitionsBuilder& operator=(DefinitionsBuilder&&) noexcept;

  uint32_t InternString(std::string_view text);  // "" is 0
  uint32_t AddModule(
      const ModuleInfo& module);  // always a new id, because a file may be mapped twice
  uint32_t InternModule(const ModuleInfo& module);
  uint32_t InternFrame(const FrameInfo& frame);
  uint32_t InternStack(const StackNode& node);

  // `frames`: ids, innermost first. Returns 0 for an empty list without `lacks` and `log_id`.
  uint32_t InternStack(const std::vector<uint32_t>& frames, uint32_t lacks, uint32_t log_id = 0);

  bool has_new() const;
  uint64_t new_bytes() const;  // approximate serialised size of TakeNew()
  gmt::Definitions TakeNew();

  // From now on, also keeps everything that is taken, so that another file can repeat it.
  void KeepAll();
  // Returns everything taken since KeepAll(), in order, in chunks of a few MiB.
  std::vector<gmt::Definitions> TakenSoFar() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_DEFINITIONS_BUILDER_H_
