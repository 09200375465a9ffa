// A Python module that allocates: in nested functions, in callbacks to Python, on its own threads,
// and while an exception propagates. sites_native.py calls it.
//
// One build works with every version (limited API), and through ctypes with free-threaded ones.
// Because those have a different object layout, only functions of the interpreter change reference
// counts.
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <thread>

namespace sites {

// Prevents that the preceding call becomes a tail call, which leaves no frame.
inline void NoTailCall() { asm volatile("" ::: "memory"); }

__attribute__((noinline)) bool Allocate(size_t size) {
  void* pointer = nullptr;
  const bool good = cudaMalloc(&pointer, size) == cudaSuccess;  // @cpp_malloc
  NoTailCall();
  return good;
}

// A function that is inlined into its caller and must still appear as a frame.
template <typename Number>
inline __attribute__((always_inline)) bool Inlined(Number size) {
  return Allocate(size);  // @cpp_inlined
}

template <typename Number>
__attribute__((noinline)) bool Templated(Number size) {
  const bool good = Inlined(size);  // @cpp_template
  NoTailCall();
  return good;
}

__attribute__((noinline)) bool Outer(size_t size) {
  const bool good = Templated<unsigned long>(size);  // @cpp_outer
  NoTailCall();
  return good;
}

PyObject* Result(bool good) {
  if (good) return Py_BuildValue("");
  if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_MemoryError, "cudaMalloc");
  return nullptr;
}

__attribute__((noinline)) bool CallBack(PyObject* function) {
  PyObject* result = PyObject_CallFunctionObjArgs(function, nullptr);  // @cpp_call_back
  if (result != nullptr) Py_DecRef(result);
  return result != nullptr;
}

__attribute__((noinline)) void RunWithGil(PyObject* function, bool* good) {
  const PyGILState_STATE state = PyGILState_Ensure();
  *good = CallBack(function);  // @cpp_with_gil
  PyGILState_Release(state);
}

__attribute__((noinline)) void RunWithoutGil(size_t size, bool* good) {
  *good = Allocate(size);  // @cpp_without_gil
  NoTailCall();
}

struct AllocatesAtTheEnd {
  size_t size;
  __attribute__((noinline)) ~AllocatesAtTheEnd() {
    Allocate(size);  // @cpp_destructor
    NoTailCall();
  }
};

__attribute__((noinline)) void Throws(PyObject* function, size_t size) {
  AllocatesAtTheEnd guard{size};
  if (!CallBack(function)) throw std::runtime_error("Python raised");  // @cpp_throws
}

}  // namespace sites

extern "C" {

using sites::Result;

PyObject* nested(PyObject*, PyObject* size) {
  return Result(sites::Outer(PyLong_AsSize_t(size)));  // @entry_nested
}

PyObject* released(PyObject*, PyObject* size) {
  const size_t bytes = PyLong_AsSize_t(size);
  PyThreadState* state = PyEval_SaveThread();
  const bool good = sites::Outer(bytes);  // @entry_released
  PyEval_RestoreThread(state);
  return Result(good);
}

PyObject* call_back(PyObject*, PyObject* function) {
  return Result(sites::CallBack(function));  // @entry_call_back
}

PyObject* thread_with_gil(PyObject*, PyObject* function) {
  bool good = false;
  PyThreadState* state = PyEval_SaveThread();
  std::thread(sites::RunWithGil, function, &good).join();
  PyEval_RestoreThread(state);
  return Result(good);
}

PyObject* thread_without_gil(PyObject*, PyObject* size) {
  bool good = false;
  PyThreadState* state = PyEval_SaveThread();
  std::thread(sites::RunWithoutGil, PyLong_AsSize_t(size), &good).join();
  PyEval_RestoreThread(state);
  return Result(good);
}

// The calling thread holds the GIL meanwhile. Its frames must not be recorded for the new thread.
PyObject* thread_while_held(PyObject*, PyObject* size) {
  bool good = false;
  std::thread(sites::RunWithoutGil, PyLong_AsSize_t(size), &good).join();
  return Result(good);
}

// The callback raises. A destructor allocates during unwinding, and then the catch block does.
// `arguments` is (function, size for the destructor, size for the catch block).
PyObject* throws(PyObject*, PyObject* arguments) {
  PyObject* function = PySequence_GetItem(arguments, 0);
  PyObject* first = PySequence_GetItem(arguments, 1);
  PyObject* second = PySequence_GetItem(arguments, 2);
  const size_t destructor_size = PyLong_AsSize_t(first);
  const size_t catch_size = PyLong_AsSize_t(second);
  bool caught = false;
  try {
    sites::Throws(function, destructor_size);  // @cpp_try
  } catch (const std::runtime_error&) {
    caught = sites::Allocate(catch_size);  // @cpp_catch
  }
  for (PyObject* held : {function, first, second}) Py_DecRef(held);
  if (caught) PyErr_Clear();
  return Result(caught);
}

// Allocates while a Python error is pending, which must still be pending afterwards.
PyObject* with_error_set(PyObject*, PyObject* size) {
  const size_t bytes = PyLong_AsSize_t(size);
  PyErr_SetString(PyExc_LookupError, "pending");
  if (!sites::Outer(bytes)) return nullptr;  // @entry_pending
  const bool still = PyErr_ExceptionMatches(PyExc_LookupError) != 0;
  PyErr_Clear();
  return Result(still);
}

static PyMethodDef methods[] = {
    {"nested", nested, METH_O, nullptr},
    {"released", released, METH_O, nullptr},
    {"call_back", call_back, METH_O, nullptr},
    {"thread_with_gil", thread_with_gil, METH_O, nullptr},
    {"thread_without_gil", thread_without_gil, METH_O, nullptr},
    {"thread_while_held", thread_while_held, METH_O, nullptr},
    {"throws", throws, METH_O, nullptr},
    {"with_error_set", with_error_set, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "extension", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_extension() { return PyModule_Create(&module); }
}
