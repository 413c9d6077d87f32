#include "assay/comm/communicator.hpp"

#include <dlfcn.h>

#include <string>

namespace assay::comm {
namespace {

// Why a library did not open, with what to do about it.
[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(ASSAY_UNSUPPORTED, "the communication backend " + file + " cannot be used: " + why);
}

const BackendFactory& open_factory(const std::string& folder, const std::string& backend, const char* built_for) {
  const std::string file = folder + "/libassay_comm_" + backend + ".so";
  // Never closed: a library that has run threads or touched a GPU does not survive it.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const std::string remedy = "; install what it needs, or build assay with it";
  if (!library) refuse(file, dlerror() + remedy);
  const auto* factory = static_cast<const BackendFactory*>(dlsym(library, "assay_comm_backend_v1"));
  if (!factory) refuse(file, "it does not export assay_comm_backend_v1" + remedy);
  if (const std::string difference = compute::interface_difference(built_for, factory->interface_id, "it");
      !difference.empty())
    refuse(file, difference);
  return *factory;
}

}  // namespace

const assay_comm& ranks_of(const Host& host) {
  const auto* comm = host.extension<assay_comm>(ASSAY_EXT_COMM);
  if (!comm) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_COMM);
  return *comm;
}

std::unique_ptr<Communicator> open_communicator(const Host& host, const Launch& launch, std::string_view backend,
                                                const Options& options, const char* built_for) {
  const assay_comm& comm = ranks_of(host);
  const auto* access = host.extension<assay_device_access>(ASSAY_EXT_DEVICE);
  if (!access) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_DEVICE);
  const std::string kind = access->api->kind;
  if (kind != "cpu" && kind != "cuda")
    throw Error(ASSAY_UNSUPPORTED, "no communication backend serves the memory of device '" + kind +
                                       "'; gloo serves cpu, and nccl serves cuda");
  const std::string serves_kind = kind == "cuda" ? "nccl" : "gloo";
  const std::string name = backend == "auto" ? serves_kind : std::string(backend);
  if (name != serves_kind)
    throw Error(ASSAY_UNSUPPORTED, "backend '" + name + "' does not serve the memory of device '" + kind + "'; '" +
                                       serves_kind + "' does");
  const BackendFactory& factory = open_factory(comm.library_folder, name, built_for);
  return std::unique_ptr<Communicator>(factory.create(comm, *access, launch.stream(), options));
}

}  // namespace assay::comm
