# shellcheck shell=bash
# Sourced by the programs of a bundle (scripts/bundle copies this to its root as environment.sh), and by whoever wants to
# start them by hand. Sets bundle_root, and has the loader look for the distribution's libraries in the bundle, and for the
# vendor's where Python's packages have them: a machine's system-wide copies are often older.

bundle_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

# The folders nvidia/*/lib of Python's packages, joined by colons; nothing where there is no Python.
vendor_folders() {
  command -v python3 >/dev/null || return 0
  python3 -c '
import glob, os, sys
folders = [f for p in sys.path if p.endswith("-packages") for f in sorted(glob.glob(os.path.join(p, "nvidia", "*", "lib")))]
print(":".join(folders))' 2>/dev/null || true
}

_assay_folders=$bundle_root/lib
_assay_vendor=$(vendor_folders)
export LD_LIBRARY_PATH=$_assay_folders${_assay_vendor:+:$_assay_vendor}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset _assay_folders _assay_vendor
