// libassay_device_cpu.so with a switch for the events of captured steps. What the host asks of it stands in the case's
// log. EVENT_NS is what each event is said to take; SWITCHED_DEVICE_CPU the CPU device's file.
#include <assay/graph_events.h>
#include <dlfcn.h>
#include <cstdint>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const assay_device_api& cpu() {
  static const assay_device_api& api = *[] {
    void* library = dlopen(std::getenv("SWITCHED_DEVICE_CPU"), RTLD_NOW | RTLD_LOCAL);
    void* table = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
    if (!table) std::abort();
    return static_cast<const assay_device_api*>(table);
  }();
  return api;
}

const assay_graph_events& events() {
  static const assay_graph_events table{sizeof(assay_graph_events), std::atof(std::getenv("EVENT_NS")),
                                        [](assay_device*, std::int32_t on) noexcept -> assay_status {
                                          std::fprintf(stderr, "switched device: events %s\n", on ? "on" : "off");
                                          return ASSAY_OK;
                                        }};
  return table;
}

assay_device_api make() {
  assay_device_api api = cpu();
  api.get_extension = [](const char* id) noexcept -> const void* {
    return std::strcmp(id, ASSAY_EXT_GRAPH_EVENTS) == 0 ? &events() : cpu().get_extension(id);
  };
  return api;
}

}  // namespace

extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = make();
