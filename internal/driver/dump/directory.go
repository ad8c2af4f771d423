package dump

import (
	"fmt"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// directoryError says that dumps cannot be written to a directory.
type directoryError struct{ Directory string }

func (e *directoryError) Error() string {
	return fmt.Sprintf(`dump directory %q is not a path of this system; allowed: an absolute path, one below \SystemRoot\temp, or one of a drive`, e.Directory)
}

// Directory returns the local directory for the value of a key of form DirectoryPath. What is below \SystemRoot\temp is
// below temp. So is a drive where the system has none: \??\C:\DMN_DIR is C/DMN_DIR there.
func Directory(value, temp string) (string, error) {
	p, ok := catalogue.ParseSystemPath(value)
	below := filepath.FromSlash(p.Below)
	drive := string(p.Drive)
	drives := filepath.VolumeName("C:") != ""
	switch {
	case !ok || p.Below != "" && !filepath.IsLocal(below):
		return "", &directoryError{value}
	case p.Temp:
		return filepath.Join(temp, below), nil
	case p.Drive != 0 && drives:
		return drive + `:\` + below, nil
	case p.Drive != 0:
		return filepath.Join(temp, drive, below), nil
	case drives:
		return "", &directoryError{value}
	}
	return "/" + below, nil
}
