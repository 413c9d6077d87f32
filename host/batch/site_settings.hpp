// The kinds of sites, a row for each: all other code finds them here.
#pragma once
#include <string>
#include <variant>

#include "batch/hosts_settings.hpp"
#include "batch/kubernetes_settings.hpp"
#include "batch/slurm_settings.hpp"

namespace assay::host::batch {

using SiteSettings = std::variant<  //
    SlurmSettings,                  // first: what a site is unless its file says otherwise
    HostsSettings,                  //
    KubernetesSettings>;

// The target of a batch that a later version of assay has submitted.
struct UnknownTarget {
  std::string kind;
};

template <class Settings>
struct TargetsOf;
template <class... Settings>
struct TargetsOf<std::variant<Settings...>> {
  using Type = std::variant<typename Settings::Target..., UnknownTarget>;
};
using SiteTarget = TargetsOf<SiteSettings>::Type;

}  // namespace assay::host::batch
