package report

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// limits are the sizes of what a report has.
type limits struct{ file, all int }

var usual = limits{file: 16 << 20, all: 64 << 20}

// archive is what a report has: files, each without secrets, and what is said about them.
type archive struct {
	redactor
	limits
	files []file
	bytes int
	lines []string // of what was taken
	left  []string // what was left out, and why
	count int      // secrets removed
}

type file struct {
	name string
	data []byte
}

// add takes a file. Of a long one it takes the end.
func (a *archive) add(name string, data []byte) {
	note := ""
	if len(data) > a.limits.file {
		note = fmt.Sprintf(", the last %d of %d bytes", a.limits.file, len(data))
		data = data[len(data)-a.limits.file:]
	}
	switch {
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) && note == "":
		a.omit(name, "is not text, in which secrets could be looked for")
		return
	case a.bytes+len(data) > a.limits.all:
		a.omit(name, fmt.Sprintf("the report would have more than %d MB", a.limits.all>>20))
		return
	}
	data, n := a.text(data)
	if n > 0 {
		note += fmt.Sprintf(", secrets removed: %d", n)
	}
	a.count += n
	a.bytes += len(data)
	a.files = append(a.files, file{name, data})
	a.lines = append(a.lines, fmt.Sprintf("%-40s %d bytes%s", name, len(data), note))
}

// omit says that something is left out.
func (a *archive) omit(name, why string) {
	line, _ := a.text([]byte(name + ": " + why))
	a.left = append(a.left, string(line))
}

// manifest is the file that says what the report is.
func (a *archive) manifest(about string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\nTaken:\n", about)
	for _, l := range a.lines {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	fmt.Fprintln(&b, "\nLeft out:")
	for _, l := range a.left {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	fmt.Fprintf(&b, `
%d secrets were removed, each of which is %s now: tokens, passwords, private and shared keys, by their values where these are known and
by their names. What is still in it, and may be more than everybody should see: names of this machine, its users' programs and
its network interfaces, addresses, memory keys of programs that run.
`, a.count, removed)
	return b.Bytes()
}

// write writes the archive as .tar.gz or .zip, below one folder.
func (a *archive) write(w io.Writer, name, folder string, now time.Time) error {
	if strings.HasSuffix(name, ".zip") {
		z := zip.NewWriter(w)
		for _, f := range a.files {
			h := &zip.FileHeader{Name: path.Join(folder, f.name), Method: zip.Deflate, Modified: now}
			h.SetMode(0o600)
			to, err := z.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := to.Write(f.data); err != nil {
				return err
			}
		}
		return z.Close()
	}
	g := gzip.NewWriter(w)
	t := tar.NewWriter(g)
	for _, f := range a.files {
		h := &tar.Header{Name: path.Join(folder, f.name), Mode: 0o600, Size: int64(len(f.data)), ModTime: now, Typeflag: tar.TypeReg}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return g.Close()
}
