// Settings of Kubernetes alone: the table [kubernetes] of a site file. site.hpp has those that all kinds share.
#pragma once
#include <string>

namespace assay::host::batch {

struct SiteKind;

// This part stays with a batch: its jobs are there as long as it lives.
struct KubernetesTarget {
  std::string name_space;  // "": the one of the user's context
};

struct KubernetesSettings : KubernetesTarget {
  using Target = KubernetesTarget;
  static const SiteKind kind;  // kubernetes_kind.cpp

  std::string image, volume, mount;
};

}  // namespace assay::host::batch
