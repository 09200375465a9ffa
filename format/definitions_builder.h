// format/definitions_builder.h
//
// DefinitionsBuilder: gives ids to the strings, modules, frames and stacks that a recording refers
// to, and collects those that are new as chunks of definitions (format/definitions.h reads them).
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

// Gives equal values equal ids and collects what is new since the last TakeNew(). Ids are given
// densely from 1.
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
      const ModuleInfo& module);  // always a new id: the same file may be mapped twice
  uint32_t InternModule(const ModuleInfo& module);
  uint32_t InternFrame(const FrameInfo& frame);
  uint32_t InternStack(const StackNode& node);

  // frames: ids, innermost first. 0 for an empty list that neither lacks anything nor has an id in a
  // log.
  uint32_t InternStack(const std::vector<uint32_t>& frames, uint32_t lacks, uint32_t log_id = 0);

  bool has_new() const;
  uint64_t new_bytes() const;  // about as many as TakeNew() will serialise to
  gmt::Definitions TakeNew();

  // From now on all that is taken is also kept, to be stated again in another file.
  void KeepAll();
  // All that was taken since, in order, in chunks of a few MiB.
  std::vector<gmt::Definitions> TakenSoFar() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_DEFINITIONS_BUILDER_H_
