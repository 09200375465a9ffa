#include "preload/cupti/cupti_library.h"

#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"

namespace gmt::preload {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  void* found = LibcDlsym(library, name);
  *function = InOwnImage(found) ? nullptr : reinterpret_cast<Function>(found);
  return *function != nullptr;
}

}  // namespace

bool CuptiLibrary::Resolve(void* open, const char** lacks) {
  *lacks = nullptr;
#define GMT_FIND(function) \
  if (!Find(open, "cupti" #function, &function) && *lacks == nullptr) *lacks = "cupti" #function;
  GMT_CUPTI_NEEDED(GMT_FIND)
#undef GMT_FIND
#define GMT_FIND(function) Find(open, "cupti" #function, &function);
  GMT_CUPTI_OPTIONAL(GMT_FIND)
#undef GMT_FIND
  if (*lacks != nullptr) return false;
  handle = open;
  return true;
}

}  // namespace gmt::preload
