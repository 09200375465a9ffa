#include "preload/record/python_blocks.h"

#include <dlfcn.h>
#include <string.h>

#include <type_traits>

#include "preload/loader/loader.h"

namespace gmt::preload {
namespace {

// Uses no import, which could run the program's code. `modules` is sys.modules. The result is
// `reported`, or None with the reason in `why`. memory_snapshot() has taken include_traces since
// PyTorch 2.9; its history of the program is not needed. Blocks have had an address since 2.1.
constexpr char kQuestion[] = R"(
reported, why = None, "PyTorch is not loaded"
try:
    cuda = getattr(modules.get("torch"), "cuda", None)
    if cuda is not None:
        why = "PyTorch has not used the GPU"
    if cuda is not None and cuda.is_initialized():
        why = "PyTorch's allocator provides no snapshot"
        try:
            segments = cuda.memory_snapshot(include_traces=False)
        except TypeError:
            segments = cuda.memory_snapshot()
        words = []
        for s in segments:
            at = s["address"]
            if not s.get("is_expandable", False):
                words += [0, s["device"], at, s["total_size"], s["stream"]]
            for b in s["blocks"]:
                if b["state"] == "active_allocated":
                    words += [1, s["device"], b.get("address", at), b["size"], s["stream"]]
                at += b["size"]
        reported = b"".join([int(w).to_bytes(8, "little") for w in words])
except Exception:
    pass
)";

using Object = void*;

// Python's API, as exported by every CPython 3 (Include/; PyRun_String is a macro for
// PyRun_StringFlags).
struct Api {
  int (*is_initialized)();
  int (*add_pending_call)(int (*)(void*), void*);
  void (*fetch)(Object*, Object*, Object*);
  void (*restore)(Object, Object, Object);
  void (*clear)();
  Object (*sys_get)(const char*);  // borrowed
  Object (*builtins)();            // borrowed
  Object (*new_dict)();
  int (*set_item)(Object, const char*, Object);
  Object (*get_item)(Object, const char*);  // borrowed
  Object (*run)(const char*, int, Object, Object, void*);
  int (*bytes)(Object, char**, ptrdiff_t*);
  const char* (*utf8)(Object);
  void (*release)(Object);

  bool Find() {
    const auto find = [](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(
          LibcDlsym(RTLD_DEFAULT, name));
      return *function != nullptr;
    };
    const bool found = find("Py_IsInitialized", &is_initialized) &
                       find("Py_AddPendingCall", &add_pending_call) & find("PyErr_Fetch", &fetch) &
                       find("PyErr_Restore", &restore) & find("PyErr_Clear", &clear) &
                       find("PySys_GetObject", &sys_get) & find("PyEval_GetBuiltins", &builtins) &
                       find("PyDict_New", &new_dict) & find("PyDict_SetItemString", &set_item) &
                       find("PyDict_GetItemString", &get_item) & find("PyRun_StringFlags", &run) &
                       find("PyBytes_AsStringAndSize", &bytes) & find("PyUnicode_AsUTF8", &utf8) &
                       find("Py_DecRef", &release);
    dlerror();  // failed lookups must not be visible to the target
    return found;
  }
};

// Cache: functions of Python.
constinit Api api = {};
constexpr int kFileInput = 257;  // Py_file_input (Include/compile.h)

// Returns the reason from the dictionary. The text lives as long as the process.
const char* ReasonIn(Object globals) {
  static constinit char reason[64] = {};
  const Object why = api.get_item(globals, "why");
  const char* text = why == nullptr ? nullptr : api.utf8(why);
  strncpy(reason, text == nullptr ? "the query failed in Python" : text, sizeof(reason) - 1);
  return reason;
}

const char* Read(Object globals, void (*visit)(void*, const char*, size_t), void* context) {
  const Object modules = api.sys_get("modules"), builtins = api.builtins();
  if (modules == nullptr || builtins == nullptr || api.set_item(globals, "modules", modules) != 0 ||
      api.set_item(globals, "__builtins__", builtins) != 0) {
    return "Python is shutting down";
  }
  const Object result = api.run(kQuestion, kFileInput, globals, globals, nullptr);
  if (result == nullptr) return "the query failed in Python";
  api.release(result);
  const Object reported = api.get_item(globals, "reported");
  char* words;
  ptrdiff_t size;
  if (reported == nullptr || api.bytes(reported, &words, &size) != 0) return ReasonIn(globals);
  visit(context, words, static_cast<size_t>(size) / sizeof(PythonBlock));
  return nullptr;
}

}  // namespace

const char* AskPython(int (*back)(void*), void* argument) {
  if (!api.Find() || api.is_initialized() == 0) return "there is no initialized Python interpreter";
  return api.add_pending_call(back, argument) == 0 ? nullptr
                                                   : "Python's queue of pending calls is full";
}

const char* ReadPythonBlocks(void (*visit)(void*, const char*, size_t), void* context) {
  Object type, value, traceback;
  api.fetch(&type, &value, &traceback);
  const Object globals = api.new_dict();
  const char* why = globals == nullptr ? "Python has no memory" : Read(globals, visit, context);
  api.clear();
  if (globals != nullptr) api.release(globals);
  api.restore(type, value, traceback);
  return why;
}

}  // namespace gmt::preload
