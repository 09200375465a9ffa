// A C++ program that loads Python late, as a plug-in would: it allocates, opens a libpython, runs a
// script in it, finalizes it, and does all that again. embedded.py is the script.
//
// Python's functions are looked up by name, so that one build works with every version, and with a
// library that is opened RTLD_LOCAL, whose names other libraries cannot find.
//
// Usage: embedded LIBPYTHON local|global SCRIPT
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/programs/stack_sites/cpp_sites.h"

namespace cpp {

struct Object;
struct Method {  // PyMethodDef
  const char* name;
  Object* (*function)(Object* self, Object* argument);
  int flags;
  const char* documentation;
};
constexpr int kOneArgument = 8;  // METH_O
constexpr int kWholeFile = 257;  // Py_file_input

void* library = nullptr;

// Calls a function of Python by name.
template <typename Result, typename... Arguments>
INLINE Result Py(const char* name, Arguments... arguments) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return reinterpret_cast<Result (*)(Arguments...)>(found)(arguments...);
}

Object* Nothing() { return Py<Object*>("Py_BuildValue", ""); }

NOINLINE void Take(size_t size) {
  void* pointer = nullptr;
  const cudaError_t error = cudaMalloc(&pointer, size);
  if (error != cudaSuccess) fprintf(stderr, "cudaMalloc: %d\n", error);
}

// Allocates with the GIL released, as programs do around long calls.
NOINLINE Object* Allocate(Object*, Object* size) {
  const size_t bytes = Py<size_t>("PyLong_AsSize_t", size);
  void* const state = Py<void*>("PyEval_SaveThread");
  Take(bytes);
  Py<void>("PyEval_RestoreThread", state);
  return Nothing();
}

NOINLINE Object* Call(Object*, Object* function) {
  Object* const result = Py<Object*>("PyObject_CallObject", function, nullptr);  // @call
  Stay();
  return result;
}

constinit Method allocate = {"allocate", Allocate, kOneArgument, nullptr};
constinit Method call = {"call", Call, kOneArgument, nullptr};

// Runs the script in a new interpreter. Returns whether it succeeded.
NOINLINE bool Run(const char* path, size_t round) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  Py<void>("Py_InitializeEx", 0);
  Object* const globals =
      Py<Object*>("PyModule_GetDict", Py<Object*>("PyImport_AddModule", "__main__"));
  for (Method* method : {&allocate, &call}) {
    Object* const function = Py<Object*>("PyCFunction_NewEx", method, nullptr, nullptr);
    Py<int>("PyDict_SetItemString", globals, method->name, function);
  }
  Py<int>("PyDict_SetItemString", globals, "ROUND", Py<Object*>("PyLong_FromSize_t", round));
  Object* const code = Py<Object*>("Py_CompileString", text.str().c_str(), path, kWholeFile);
  Object* result = nullptr;
  if (code != nullptr) {
    result = Py<Object*>("PyEval_EvalCode", code, globals, globals);  // @run
  }
  if (result == nullptr) Py<void>("PyErr_Print");
  return Py<int>("Py_FinalizeEx") == 0 && result != nullptr;
}

}  // namespace cpp

int main(int count, char** words) {
  if (count != 4) return 2;
  cpp::Take(cpp::SizeOf("before_python"));  // site before_python: main
  cpp::library =
      dlopen(words[1], RTLD_NOW | (strcmp(words[2], "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
  if (cpp::library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (!cpp::Run(words[3], 1)) return 1;       // @round_1
  cpp::Take(cpp::SizeOf("between_pythons"));  // site between_pythons: main
  if (!cpp::Run(words[3], 2)) return 1;       // @round_2
  cpp::Take(cpp::SizeOf("after_python"));     // site after_python: main
  return 0;
}
