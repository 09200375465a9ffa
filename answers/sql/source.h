// answers/sql/source.h
//
// Source: a recording as the tables of SQL read it.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_SQL_SOURCE_H_
#define GMT_ANSWERS_SQL_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/recording.h"

namespace gmt::answers::sql {

// A recording and what its tables compute once, when they are first read.
class Source {
 public:
  // `name`: the value of the column `file`. REQUIRES: `recording` outlives the source.
  Source(const Recording& recording, std::string name)
      : recording_(recording), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  const Recording& recording() const { return recording_; }
  const analysis::Trace& trace() const { return recording_.trace(); }
  std::string_view String(uint32_t id) const { return recording_.definitions().string(id); }

  // The line of a stack, as in reports; empty if there is none. It lasts as long as the source.
  const std::string& StackLine(uint32_t stack);

  // The stacks that something in the recording refers to, in ascending order.
  const std::vector<uint32_t>& stacks();
  // The first row of each of these stacks in the table `frames`, and the number of rows at the end.
  const std::vector<uint64_t>& first_frames();

  struct StepUse {
    uint32_t step, device;  // indices of Cycles::cycles and Cycles::devices
  };
  const std::vector<StepUse>& step_uses();
  struct PhaseRow {
    StepUse use;
    uint32_t phase;
  };
  const std::vector<PhaseRow>& phases();
  struct CategoryRow {
    int32_t device;
    int64_t t_ns;
    analysis::CategoryUse use;
  };
  // At the peak of each device.
  const std::vector<CategoryRow>& categories();

 private:
  const Recording& recording_;
  std::string name_;
  std::vector<std::optional<std::string>> stack_lines_;  // by stack
  std::optional<std::vector<uint32_t>> stacks_;
  std::optional<std::vector<uint64_t>> first_frames_;
  std::optional<std::vector<StepUse>> step_uses_;
  std::optional<std::vector<PhaseRow>> phases_;
  std::optional<std::vector<CategoryRow>> categories_;
};

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_SOURCE_H_
