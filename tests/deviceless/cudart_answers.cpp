// cuDNN's frontend asks the CUDA runtime a few things on the way to a plan. On a machine without a GPU these answer in
// the runtime's place, for the GPU that the device properties describe: the program is linked with --wrap for each.
#include <cuda_runtime_api.h>

extern "C" {

cudaError_t __wrap_cudaGetDevice(int* ordinal) {
  *ordinal = 0;
  return cudaSuccess;
}

cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = cudaDeviceProp{};
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = 132;
  return cudaSuccess;
}

cudaError_t __wrap_cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
}
