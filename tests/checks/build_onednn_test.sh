#!/usr/bin/env bash
# build_onednn_test.sh SCRIPTS WORK: what scripts/build_onednn leaves when a step fails and when none does, and that a build
# of assay goes on without it. apt, dpkg and CMake are played: nothing is fetched or compiled.
set -euo pipefail
scripts=$1 work=$2
# shellcheck source-path=SCRIPTDIR source=failures.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/failures.sh"

rm -rf -- "$work"
mkdir -p -- "$work"/{bin,tree/scripts}
cp -- "$scripts"/{build_onednn,setup-lib.sh} "$work/tree/scripts/"
echo '{}' >"$work/tree/CMakePresets.json"
built=$work/tree/.deps/onednn

play() { # PROGRAM, with what it does on standard input
  { printf '#!/usr/bin/env bash\necho "%s $*" >>"%s/called"\n' "$1" "$work" && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
play apt-get <<'TEXT'
case " $* " in
  *' indextargets '*) [[ -n ${PLAYED_ARCHIVE-Debian} ]] && echo "Debian http://archive.invalid/debian/" ;;
  *' update '*) echo 'Could not resolve the archive'; exit "${PLAYED_UPDATE:-0}" ;;
  *' source '*) touch 'onednn_3.7.2+ds-2.dsc' 'onednn_3.7.2+ds.orig.tar.xz' 'onednn_3.7.2+ds-2.debian.tar.xz' ;;
esac
TEXT
play dpkg-source <<<'mkdir -p "${!#}"'
# The prefix is remembered between the calls, as a build folder does.
play cmake <<TEXT
for argument; do
  [[ \$argument != -DCMAKE_INSTALL_PREFIX=* ]] || echo "\${argument#*=}" >"$work/prefix"
done
case \$1 in
  --build) exit "\${PLAYED_BUILD:-0}" ;;
  --install) mkdir -p "\$DESTDIR\$(cat "$work/prefix")/include" && touch "\$DESTDIR\$(cat "$work/prefix")/include/dnnl.hpp" ;;
esac
TEXT
# The played sources are empty, so their checksums are not those that the script expects.
take_any_content() { play sha256sum <<<'[[ $1 == --check ]] || exec /usr/bin/sha256sum "$@"'; }

run() { # EXPECTED-STATUS WHAT, with `said` set to what it said
  local status=0
  : >"$work/called"
  said=$(PATH=$work/bin:$PATH ASSAY_SKIP_PACKAGES=1 "$work/tree/scripts/build_onednn" 2>&1) || status=$?
  [[ $status == "$1" ]] || fail "$2: exit status $status, expected $1: $said"
}

PLAYED_ARCHIVE='' run 2 'a system without an archive of Debian'
[[ $said == *"use the distribution's oneDNN"* ]] || fail "without an archive: $said"
if [[ ! -r /usr/share/keyrings/debian-archive-keyring.gpg ]]; then
  echo 'build_onednn: the rest needs the keys of the archive of Debian (debian-archive-keyring)'
  ((failures == 0))
  exit
fi

PLAYED_UPDATE=100 run 1 'no network'
[[ $said == *'Could not resolve the archive'*"with the distribution's oneDNN"* ]] || fail "no network: $said"
run 1 'other content than expected'
[[ ! -s $work/called ]] || ! grep -q '^\(cmake\|dpkg-source\) ' "$work/called" || fail "other content was unpacked or built"
take_any_content
PLAYED_BUILD=1 run 1 'a build that fails'
[[ ! -e $built ]] || fail "a failed call left $built"

# A build of assay says so and goes on.
status=0
said=$(PATH=$work/bin:$PATH ASSAY_SKIP_PACKAGES=1 ASSAY_ONEDNN=build PLAYED_UPDATE=100 \
  bash -c '. "$1/scripts/setup-lib.sh" && build_preset dev' _ "$work/tree" 2>&1) || status=$?
[[ $status == 0 && $said == *"going on with the distribution's oneDNN"* ]] || fail "a build of assay without it: $status, $said"

run 0 'all steps'
[[ -f $built/include/dnnl.hpp ]] || fail "$built has no header after: $said"
run 0 'a second call'
[[ $said == *'is there already'* ]] && ! grep -q '^cmake ' "$work/called" || fail "a second call: $said"

((failures == 0)) && printf 'build_onednn: ok\n'
