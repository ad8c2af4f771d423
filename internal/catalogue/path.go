package catalogue

import (
	"path"
	"strings"
)

const (
	kernelPrefix = `\??\`
	systemTemp   = `\SystemRoot\temp`
)

// SystemPath is a directory as the keys of form DirectoryPath name it: in the style of the Windows kernel, in which
// drives have the prefix \??\ (WinOF 5.50, 4.7.4: \??\C:\DMN_DIR), or as an absolute path of this system.
type SystemPath struct {
	// Temp says that the path is below \SystemRoot\temp, which stands for the driver's own directory.
	Temp bool
	// Drive is the upper-case letter of the drive, 0 if the path names none.
	Drive byte
	// Below is the rest, with slashes and without one at the start; it never leads out of where it begins.
	Below string
}

// ParseSystemPath parses the text of a key of form DirectoryPath. It reports false if it is of neither style.
func ParseSystemPath(text string) (p SystemPath, ok bool) {
	if len(text) >= len(systemTemp) && strings.EqualFold(text[:len(systemTemp)], systemTemp) {
		p.Temp, text = true, text[len(systemTemp):]
		return p.below(text, text == "" || text[0] == '\\')
	}
	text = strings.TrimPrefix(text, kernelPrefix)
	if len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') {
		p.Drive = text[0] &^ ('a' - 'A')
		return p.below(text[2:], 'A' <= p.Drive && p.Drive <= 'Z')
	}
	return p.below(text, strings.HasPrefix(text, "/"))
}

// below sets the rest of a path whose beginning was parsed, if that was good.
func (p SystemPath) below(rest string, good bool) (SystemPath, bool) {
	if p.Temp || p.Drive != 0 {
		rest = strings.ReplaceAll(rest, `\`, "/")
	}
	for part := range strings.SplitSeq(rest, "/") {
		good = good && part != ".."
	}
	if !good {
		return SystemPath{}, false
	}
	p.Below = strings.TrimPrefix(path.Clean("/"+rest), "/")
	return p, true
}
