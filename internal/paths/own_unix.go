//go:build unix

package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Own says why a socket must not be trusted: it is where sockets are without XDG_RUNTIME_DIR, in the system's temporary directory, and there
// somebody else has made this user's directory first, or may change what is in it. Nil: it is another place, the directory is this user's
// alone, or not there.
func Own(socket string) error {
	dir := filepath.Dir(socket)
	if dir != temporaryDir() {
		return nil
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if info.IsDir() && ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return fmt.Errorf("%s is not a directory of this user alone; have it removed, or set XDG_RUNTIME_DIR or %s", dir, SocketVariable)
}
