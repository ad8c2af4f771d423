#!/bin/sh
# Runs tests that were compiled with sanitizers, against a driver of their own: sanitized.sh LIBRARIES SOFTVPI, absolute paths.
set -eu
lib=$1 softvpi=$2
. "$(dirname "$0")/driver.sh"
# An attachment is not memory of malloc, so what it alone points to is taken for lost while it is in use.
printf 'leak:svpi_frame_read\nleak:keep_fds\nleak:svpi_events_take\nleak:ipc/neighbour.c\n' >"$dir/suppressed"
# Threads of the C library end without the stack that the sanitizer gives them for signals.
export ASAN_OPTIONS=use_sigaltstack=0 UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS="suppressions=$dir/suppressed:print_suppressions=0"
export LD_LIBRARY_PATH="$lib"
"$lib/test/verbs"
"$lib/test/manager"
echo "again, with the copier:"
SOFTVPI_MEMORY_PATH=copier "$lib/test/verbs"
echo "again, without the direct path:"
SOFTVPI_DIRECT=off "$lib/test/verbs"
