package dump

import (
	"fmt"
	"path/filepath"
	"strings"
)

// directoryError says that dumps cannot be written to a directory.
type directoryError struct{ Directory, Reason string }

func (e *directoryError) Error() string {
	return fmt.Sprintf(`dump directory %q %s; allowed: an absolute path, or one below \SystemRoot\temp`, e.Directory, e.Reason)
}

const systemTemp = `\SystemRoot\temp`

// Directory returns the local directory for a registry value. \SystemRoot\temp stands for temp; the prefix
// \??\ of kernel paths is removed.
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
