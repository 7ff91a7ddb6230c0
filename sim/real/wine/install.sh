#!/bin/sh
# Installs what runs Windows programs here: Wine, and mingw for the DLLs. It does so
# on Debian and Ubuntu, as root or where sudo asks for no password. Elsewhere it says
# in one line what is missing, and that is no error: the tests that need it skip.
set -u
missing=
{ [ -x /usr/lib/wine/wine64 ] || command -v wine64 || command -v wine; } >/dev/null 2>&1 || missing="wine wine64"
command -v x86_64-w64-mingw32-gcc >/dev/null 2>&1 || missing="$missing gcc-mingw-w64-x86-64"
missing=${missing# }
if [ -z "$missing" ]; then
  exit 0
fi
leave() {
  echo "$missing: not installed, $1; tests that run Windows programs will skip" >&2
  exit 0
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || leave "this is not Linux on amd64"
command -v apt-get >/dev/null 2>&1 || leave "and there is no apt-get; install them by hand"
sudo=
if [ "$(id -u)" != 0 ]; then
  sudo -n true >/dev/null 2>&1 || leave "and sudo needs a password; run: sudo apt-get install $missing"
  sudo="sudo -n"
fi
echo "installing $missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
get() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
# shellcheck disable=SC2086 # several packages
if ! get install -y --no-install-recommends $missing; then # the lists may be old or not there
  get update
  # shellcheck disable=SC2086
  get install -y --no-install-recommends $missing || leave "apt-get says: $(tail -n 1 "$log")"
fi
