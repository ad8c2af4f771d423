package dump

import (
	"fmt"
	"path/filepath"
	"strings"
)

// directoryError is a directory that dumps cannot go into.
type directoryError struct{ Directory, Reason string }

func (e *directoryError) Error() string {
	return fmt.Sprintf(`dump directory %q %s; allowed: an absolute path, or one below \SystemRoot\temp`, e.Directory, e.Reason)
}

const systemTemp = `\SystemRoot\temp`

// Directory is the directory of the system that a registry value means. \SystemRoot\temp stands for temp; \??\
// before a path, as the kernel writes them, is left out.
func Directory(value, temp string) (string, error) {
	if len(value) >= len(systemTemp) && strings.EqualFold(value[:len(systemTemp)], systemTemp) {
		below, ok := strings.CutPrefix(value[len(systemTemp):], `\`)
		if !ok && below != "" {
			return "", &directoryError{value, "is outside of it"}
		}
		local := filepath.FromSlash(strings.ReplaceAll(below, `\`, "/"))
		if below != "" && !filepath.IsLocal(local) {
			return "", &directoryError{value, "leads out of it"}
		}
		return filepath.Join(temp, local), nil
	}
	path := strings.TrimPrefix(value, `\??\`)
	if !filepath.IsAbs(path) {
		return "", &directoryError{value, "is not absolute"}
	}
	return filepath.Clean(path), nil
}
