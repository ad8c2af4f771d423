//go:build unix

package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Own returns why a socket must not be trusted: without XDG_RUNTIME_DIR it is in the system's temporary
// directory, where somebody else may have created this user's directory first, or be able to change its
// contents. Nil: it is elsewhere, or the directory belongs to this user alone or does not exist.
func Own(socket string) error {
	dir := filepath.Dir(socket)
	if of, ok := strings.CutSuffix(dir, functionsSuffix); ok { // beside the driver's socket
		dir = filepath.Dir(of)
	}
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
