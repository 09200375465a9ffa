#include "tests/simcuda/runtime/call.h"

#include "tests/simcuda/driver/entry.h"
#include "tests/simcuda/export_table.h"

namespace sim {
namespace {

// Returns null without a driver, or with one that has no such table.
const ToolTable* Tools() {
  static const ToolTable* const tools = [] {
    const void* table = nullptr;
    CUresult result = SIM_DRIVER(cuGetExportTable, 3000)(&table, &kExportTableId);
    return result == CUDA_SUCCESS ? static_cast<const ExportTable*>(table)->tools : nullptr;
  }();
  return tools;
}

}  // namespace

RuntimeCall::RuntimeCall(const char* name, const void* arguments) {
  if (Tools() == nullptr || !Tools()->wants_calls()) return;
  scope_.name = name;
  scope_.arguments = arguments;
  Tools()->runtime_enter(&scope_);
}

RuntimeCall::~RuntimeCall() {
  if (scope_.open) Tools()->runtime_exit(&scope_);
}

cudaError_t RuntimeCall::Finish(cudaError_t result) {
  if (Tools() != nullptr && Tools()->wants_calls()) Tools()->runtime_finish(result);
  return result;
}

}  // namespace sim
